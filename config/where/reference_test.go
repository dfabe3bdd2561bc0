package where

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// The reference evaluator decodes everything, lists every value a path leads
// to, and then asks the operators about each: slow, and written from the package
// comment rather than from the matcher.

type number string

// decode reads a value: nil, bool, string, number, []any or map[string]any.
func decode(dec *jsontext.Decoder) (any, error) {
	token, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return token.Bool(), nil
	case '"':
		return token.String(), nil
	case '0':
		return number(token.String()), nil
	case '[':
		list := []any{}
		for dec.PeekKind() != ']' {
			v, err := decode(dec)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.ReadToken()
		return list, err
	}
	object := map[string]any{}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String()
		if object[key], err = decode(dec); err != nil {
			return nil, err
		}
	}
	_, err = dec.ReadToken()
	return object, err
}

func decodeAll(record []byte, opts ...jsontext.Options) (any, bool) {
	dec := jsontext.NewDecoder(bytes.NewReader(record), opts...)
	v, err := decode(dec)
	if err != nil {
		return nil, false
	}
	_, err = dec.ReadToken()
	return v, errors.Is(err, io.EOF)
}

func follow(v any, path []step) []any {
	if len(path) == 0 {
		return []any{v}
	}
	var found []any
	st := path[0]
	switch v := v.(type) {
	case map[string]any:
		for name, child := range v {
			if st.kind == stepName && st.name == name || st.kind == stepGlob && asRegexp(st.glob).MatchString(name) {
				found = append(found, follow(child, path[1:])...)
			}
			if st.descend {
				found = append(found, follow(child, path)...)
			}
		}
	case []any:
		for i, child := range v {
			if st.kind == stepEach || st.kind == stepIndex && st.index == i {
				found = append(found, follow(child, path[1:])...)
			}
			if st.descend {
				found = append(found, follow(child, path)...)
			}
		}
	}
	return found
}

func same(a, b any) bool {
	switch a := a.(type) {
	case number:
		b, ok := b.(number)
		return ok && rational(string(a)).Cmp(rational(string(b))) == 0
	case map[string]any, []any:
		return false
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	return a == b
}

func bare(want, got any) bool {
	if pattern, ok := want.(string); ok && isGlob(pattern) {
		return like(pattern, got)
	}
	return same(want, got)
}

func like(pattern string, got any) bool {
	text, ok := got.(string)
	g, err := CompileGlob(pattern)
	return ok && err == nil && asRegexp(g).MatchString(text)
}

func oneOf(list any, got any) bool {
	items, ok := list.([]any)
	if !ok {
		items = []any{list}
	}
	for _, item := range items {
		if bare(item, got) {
			return true
		}
	}
	return false
}

func operatorHolds(name string, want, got any) bool {
	switch name {
	case "equals":
		return same(want, got)
	case "in":
		return oneOf(want, got)
	case "contains":
		if list, ok := got.([]any); ok {
			for _, item := range list {
				if same(want, item) {
					return true
				}
			}
			return false
		}
		text, ok := got.(string)
		part, ok2 := want.(string)
		return ok && ok2 && strings.Contains(text, part)
	case "like":
		return like(want.(string), got)
	case "matches":
		text, ok := got.(string)
		return ok && regexp.MustCompile(want.(string)).MatchString(text)
	}
	n, ok := got.(number)
	if !ok {
		return false
	}
	order := rational(string(n)).Cmp(rational(string(want.(number))))
	return name == "above" && order > 0 || name == "below" && order < 0
}

func reference(condition any, record any, anyOf bool) bool {
	entries := condition.(map[string]any)
	if len(entries) == 0 {
		return true
	}
	holds := 0
	for path, want := range entries {
		steps, err := parsePath(path)
		if err != nil {
			panic(err)
		}
		values := follow(record, steps)
		good, bad := false, false
		for _, v := range values {
			all := true
			operators, ok := want.(map[string]any)
			if !ok {
				all = bare(want, v)
			}
			for name, operand := range operators {
				if name == "not" {
					bad = bad || oneOf(operand, v)
				} else {
					all = all && operatorHolds(name, operand, v)
				}
			}
			good = good || all
		}
		if good && !bad {
			holds++
		}
	}
	if anyOf {
		return holds > 0
	}
	return holds == len(entries)
}

// comparable reports whether every number in the text fits the reference.
func fits(v any) bool {
	switch v := v.(type) {
	case number:
		return rational(string(v)) != nil
	case []any:
		for _, item := range v {
			if !fits(item) {
				return false
			}
		}
	case map[string]any:
		for _, item := range v {
			if !fits(item) {
				return false
			}
		}
	}
	return true
}

func FuzzMatch(f *testing.F) {
	for _, seed := range []string{
		`{"a":1}`, `{"a":"x*"}`, `{"$..a":{"not":"b"}}`, `{"a[*].b":{"in":[1,"x",null]},"c":true}`,
		`{"a.*":{"contains":"x","not":["y"]}}`, `{"a":{"matches":"^x+$"}}`, `{"a":{"above":1,"below":2.5e1}}`,
		`{"a":{"like":"[!x]?*"}}`, `{"$..[0]":{"equals":null}}`, `{"a":{"contains":1}}`, `{}`,
	} {
		for _, record := range []string{
			`{"a":1,"a":2}`, `{"a":["x",1,null,{"b":"x"}],"c":true}`, `{"a":{"b":{"a":"xx"}}}`,
			`{"a":"x\ud800\n"}`, `[[0]]`, `{"a":20}`, `null`,
		} {
			f.Add([]byte(seed), []byte(record), false)
			f.Add([]byte(seed), []byte(record), true)
		}
	}
	f.Fuzz(func(t *testing.T, condition, record []byte, anyOf bool) {
		c, err := Compile(condition, anyOf)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("an error of another type: %v", err)
			}
			return
		}
		got := c.Match(record)
		want, ok := decodeAll(condition)
		if !ok || !utf8.Valid(condition) {
			return // empty
		}
		value, ok := decodeAll(record, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		if !ok {
			if got && len(c.entries) > 0 {
				t.Fatalf("%s matched what is no JSON: %q", condition, record)
			}
			return
		}
		// Many `..` make the reference's list of values explode.
		if !fits(want) || !fits(value) || len(record) > 2000 || bytes.Count(condition, []byte("..")) > 3 {
			return
		}
		if slow := reference(want, value, anyOf); got != slow {
			t.Fatalf("%s on %s (any %v): %v, reference %v", condition, record, anyOf, got, slow)
		}
	})
}

// The reference itself is held to the table of TestMatch by a few rows here,
// so that both being wrong in one way needs two mistakes.
func TestReference(t *testing.T) {
	for _, row := range []struct {
		where string
		want  bool
	}{
		{`{"data.name":"B*"}`, true},
		{`{"data.input.edits[*].new":{"not":"secret"}}`, false},
		{`{"data.missing":{"not":"x"}}`, false},
		{`{"$..command":"rm*"}`, true},
		{`{"data.input.tags":{"contains":3}}`, true},
		{`{"seq":9007199254740992}`, false},
	} {
		condition, _ := decodeAll([]byte(row.where))
		record, ok := decodeAll([]byte(sample))
		if !ok || !json.Valid([]byte(sample)) {
			t.Fatal("the sample is no JSON")
		}
		if got := reference(condition, record, false); got != row.want {
			t.Errorf("%s: %v", row.where, got)
		}
	}
}
