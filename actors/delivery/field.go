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
