// Package placeholder fills {field} placeholders from a record: the text format
// of a file rule, and the arguments of a command rule (design §5).
//
// A placeholder holds a path into the record: names with dots between, and [n]
// for the nth element of an array, from 0. Several paths with | between mean the
// first that holds something. {{ and }} stand for single braces.
//
//	{ts} {section} {data.input.command}
//	{data.prompt|data.text|data}
package placeholder

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrSyntax is wrapped by every error of Parse.
var ErrSyntax = errors.New("template cannot be read")

// Template is text with placeholders, parsed. The zero value is empty text.
type Template struct {
	parts []part
}

// part is plain text, or, when it has paths, a placeholder.
type part struct {
	text  string
	paths []path
}

// path is a list of steps: a name, or with name empty an index.
type path []step

type step struct {
	name  string
	index int
	isIdx bool
}

// Parse reads a template. An error says at which byte, from 1, and wraps ErrSyntax.
func Parse(s string) (Template, error) {
	var t Template
	var text strings.Builder
	for i := 0; i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], "{{"), strings.HasPrefix(s[i:], "}}"):
			text.WriteByte(s[i])
			i += 2
		case s[i] == '{':
			end := strings.IndexByte(s[i:], '}')
			if end < 0 {
				return Template{}, fmt.Errorf("byte %d: a { without its }; write {{ for a plain one: %w", i+1, ErrSyntax)
			}
			paths, err := parsePaths(s[i+1 : i+end])
			if err != nil {
				return Template{}, fmt.Errorf("byte %d: {%s}: %w", i+1, s[i+1:i+end], err)
			}
			t.parts = append(t.parts, part{text: text.String()}, part{paths: paths})
			text.Reset()
			i += end + 1
		default:
			text.WriteByte(s[i])
			i++
		}
	}
	t.parts = append(t.parts, part{text: text.String()})
	return t, nil
}

func parsePaths(s string) ([]path, error) {
	var paths []path
	for alternative := range strings.SplitSeq(s, "|") {
		p, err := parsePath(alternative)
		if err != nil {
			return nil, err
		}
		paths = append(paths, p)
	}
	return paths, nil
}

func parsePath(s string) (path, error) {
	var p path
	for name := range strings.SplitSeq(s, ".") {
		name, indexes, _ := strings.Cut(name, "[")
		if name == "" || strings.ContainsAny(name, " \t\r\n{\"'`,:]") {
			return nil, fmt.Errorf("%q is no field name; write {{ for a plain brace: %w", name, ErrSyntax)
		}
		p = append(p, step{name: name})
		for indexes != "" {
			digits, rest, closed := strings.Cut(indexes, "]")
			n, err := strconv.Atoi(digits)
			if !closed || err != nil || n < 0 || rest != "" && rest[0] != '[' {
				return nil, fmt.Errorf("[%s is no index: %w", indexes, ErrSyntax)
			}
			p = append(p, step{index: n, isIdx: true})
			indexes = strings.TrimPrefix(rest, "[")
		}
	}
	return p, nil
}

// Append fills the template from record, a JSON object, and appends the result
// to dst. value is called for each value to append it in the caller's way;
// missing fields and nulls are empty.
func (t Template) Append(dst, record []byte, value func(dst []byte, v string) []byte) []byte {
	for _, p := range t.parts {
		dst = append(dst, p.text...)
		for _, path := range p.paths {
			if v := lookup(record, path); v != "" {
				dst = value(dst, v)
				break
			}
		}
	}
	return dst
}

// lookup returns the value at a path as text: a string decoded, anything else as
// it is written in the record, null and what is missing as "". Of a name that
// an object holds twice the first counts.
func lookup(record []byte, p path) string {
	d := jsontext.NewDecoder(bytes.NewBuffer(record),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for _, s := range p {
		if !descend(d, s) {
			return ""
		}
	}
	v, err := d.ReadValue()
	if err != nil {
		return ""
	}
	switch v.Kind() {
	case 'n':
		return ""
	case '"':
		// Invalid UTF-8 is reported and replaced; the replaced text is wanted.
		text, _ := jsontext.AppendUnquote(nil, v)
		return string(text)
	}
	return string(v)
}

// descend moves d in front of the value that s names; false when there is none.
func descend(d *jsontext.Decoder, s step) bool {
	open, err := d.ReadToken()
	if err != nil {
		return false
	}
	switch {
	case s.isIdx && open.Kind() == '[':
		for range s.index {
			if k := d.PeekKind(); k == ']' || d.SkipValue() != nil {
				return false
			}
		}
		return d.PeekKind() != ']'
	case !s.isIdx && open.Kind() == '{':
		for d.PeekKind() == '"' {
			name, err := d.ReadToken()
			if err != nil {
				return false
			}
			if name.String() == s.name {
				return true
			}
			if d.SkipValue() != nil {
				return false
			}
		}
	}
	return false
}
