package delivery

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"ways/hooks/record"
)

// SectionOf returns a record's section. A name that this build does not know is
// one that no rule of its can select.
func SectionOf(rec []byte) record.Section {
	s, ok := record.ParseSection(StringField(rec, "section"))
	if !ok {
		return record.Unknown
	}
	return s
}

// StringField returns a record's top-level string; empty when there is none. It
// stops before the record's data, which comes behind the envelope.
func StringField(record []byte, name string) string {
	if value, ok := plainField(record, name); ok {
		return value
	}
	return anyField(record, name)
}

// plainField is anyField for a record as hooks write it: no space between tokens,
// and nothing escaped in its envelope. It is asked several times for each record
// and rule. It returns false when it cannot tell.
func plainField(record []byte, name string) (value string, ok bool) {
	if len(record) == 0 || record[0] != '{' {
		return "", false
	}
	for rest := record[1:]; ; {
		key, after, ok := plainString(rest)
		if !ok || len(after) < 2 || after[0] != ':' {
			return "", false
		}
		if string(key) == "data" {
			return "", true
		}
		var val []byte
		if after[1] == '"' {
			if val, rest, ok = plainString(after[1:]); !ok {
				return "", false
			}
			if string(key) == name {
				return string(val), true
			}
		} else if rest, ok = plainNumber(after[1:]); !ok {
			return "", false
		}
		if len(rest) < 2 || rest[0] != ',' {
			return "", false
		}
		rest = rest[1:]
	}
}

// plainString cuts a string in which nothing is escaped off the front of b.
func plainString(b []byte) (s, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return nil, nil, false
	}
	for i, c := range b[1:] {
		switch {
		case c == '"':
			return b[1 : i+1], b[i+2:], true
		case c < ' ', c == '\\', c > '~':
			return nil, nil, false
		}
	}
	return nil, nil, false
}

// plainNumber cuts a whole number off the front of b.
func plainNumber(b []byte) (rest []byte, ok bool) {
	i := 0
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return b[i:], i == 1 || i > 1 && b[0] != '0'
}

// anyField is StringField for any JSON.
func anyField(record []byte, name string) string {
	dec := jsontext.NewDecoder(bytes.NewReader(record), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return ""
	}
	for dec.PeekKind() == '"' {
		key, err := dec.ReadToken()
		if err != nil {
			return ""
		}
		found := key.String() == name
		if key.String() == "data" {
			return ""
		}
		val, err := dec.ReadToken()
		if err != nil {
			return ""
		}
		if found && val.Kind() == '"' {
			return val.String()
		}
	}
	return ""
}
