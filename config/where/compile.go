package where

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits of a condition.
const (
	// MaxBytes is the length of a condition's JSON.
	MaxBytes = 64 << 10
	// MaxEntries is the number of paths: a set of them is one machine word.
	MaxEntries = 64
	// MaxRegexp is the length of one regular expression.
	MaxRegexp = 1024
	// MaxList is the number of items in one list.
	MaxList = 1000
)

// Error says which part of a condition cannot be used, and why.
type Error struct {
	Path     string // empty when the condition as a whole is wrong
	Operator string // empty for a bare value or the path itself
	Reason   string
}

func (e *Error) Error() string {
	switch {
	case e.Path == "":
		return "where: " + e.Reason
	case e.Operator == "":
		return fmt.Sprintf("where %q: %s", e.Path, e.Reason)
	}
	return fmt.Sprintf("where %q: %s: %s", e.Path, e.Operator, e.Reason)
}

// Operators lists the operators by name, in the order the documentation does.
func Operators() []string {
	return []string{"equals", "not", "in", "contains", "like", "matches", "above", "below"}
}

// Cond is a compiled condition. It is safe for use by several goroutines.
type Cond struct {
	entries []entry
	any     bool
	start   []state
	// needs are found before a record is read.
	needs []needles
}

// entry is one path and what its values must be.
type entry struct {
	path  []step
	tests []test  // every one must hold, of one value
	not   []value // none may equal, of any value
	// contains is set when an array may satisfy the entry by its elements; then
	// it is the only test.
	contains *value
}

// arrived is the bit of an entry's state that says: this value is one.
func (e *entry) arrived() uint64 { return 1 << len(e.path) }

type test struct {
	op    op
	value value
	list  []value
	re    *regexp.Regexp
}

type op uint8

const (
	opBare op = iota
	opIn
	opContains
	opMatches
	opAbove
	opBelow
)

// value is a scalar operand. A glob is a value too: what a bare string means.
type value struct {
	kind byte // 's' string, 'g' glob, '0' number, 't', 'f', 'n'
	text []byte
	glob *Glob
}

// Compile reads a condition: a JSON object from paths to bare values or objects
// of operators, at most 64 KiB long with at most 64 paths. anyOf is true for
// `match: any`. A nil or empty condition matches every record. The error is an
// *Error that names the path, the operator and the reason.
func Compile(raw []byte, anyOf bool) (*Cond, error) {
	c := &Cond{any: anyOf}
	if len(bytes.TrimSpace(raw)) == 0 {
		return c, nil
	}
	if len(raw) > MaxBytes {
		return nil, &Error{Reason: fmt.Sprintf("longer than %d bytes", MaxBytes)}
	}
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	if dec.PeekKind() != '{' {
		return nil, &Error{Reason: "not an object of paths"}
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, broken(err)
	}
	seen := map[string]bool{}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, broken(err)
		}
		path := name.String()
		if seen[path] {
			return nil, &Error{Path: path, Reason: "the path is named twice"}
		}
		seen[path] = true
		if len(c.entries) == MaxEntries {
			return nil, &Error{Path: path, Reason: fmt.Sprintf("more than %d paths", MaxEntries)}
		}
		e, err := compileEntry(dec, path)
		if err != nil {
			return nil, err
		}
		c.start = append(c.start, state{entry: len(c.entries), at: 1})
		c.entries = append(c.entries, e)
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, broken(err)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, &Error{Reason: "something follows the object of paths"}
	}
	c.needs = needlesOf(c.entries, anyOf)
	return c, nil
}

func broken(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Reason: "not valid JSON: " + strings.TrimPrefix(err.Error(), "jsontext: ")}
}

func isSyntactic(err error) bool {
	var syntactic *jsontext.SyntacticError
	return errors.As(err, &syntactic)
}

func compileEntry(dec *jsontext.Decoder, path string) (entry, error) {
	steps, err := parsePath(path)
	if err != nil {
		return entry{}, &Error{Path: path, Reason: err.Error()}
	}
	e := entry{path: steps}
	switch dec.PeekKind() {
	case '{':
		return e, e.operators(dec, path)
	case '[':
		return e, &Error{Path: path, Reason: "a list says nothing by itself; write in: [..] for \"one of\", not: [..] for \"none of\""}
	}
	v, err := bareValue(dec)
	if isSyntactic(err) {
		return e, broken(err)
	}
	if err != nil {
		return e, &Error{Path: path, Reason: err.Error()}
	}
	e.tests = []test{{op: opBare, value: v}}
	return e, nil
}

func (e *entry) operators(dec *jsontext.Decoder, path string) error {
	if _, err := dec.ReadToken(); err != nil {
		return broken(err)
	}
	seen := map[string]bool{}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return broken(err)
		}
		operator := name.String()
		if seen[operator] {
			return &Error{Path: path, Operator: operator, Reason: "the operator is named twice"}
		}
		seen[operator] = true
		if err := e.operator(dec, operator); err != nil {
			if isSyntactic(err) {
				return broken(err)
			}
			return &Error{Path: path, Operator: operator, Reason: err.Error()}
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return broken(err)
	}
	if len(seen) == 0 {
		return &Error{Path: path, Reason: "no operator; the operators are " + strings.Join(Operators(), ", ")}
	}
	// An array is never equal, like, above or below anything, so only an entry
	// that asks nothing but contains can be satisfied by one.
	if len(e.tests) == 1 && e.tests[0].op == opContains {
		e.contains = &e.tests[0].value
	}
	return nil
}

func (e *entry) operator(dec *jsontext.Decoder, operator string) error {
	t := test{op: opBare}
	var err error
	switch operator {
	case "equals":
		t.value, err = scalar(dec)
	case "not":
		if dec.PeekKind() == '[' {
			e.not, err = list(dec)
			return err
		}
		v, err := bareValue(dec)
		e.not = []value{v}
		return err
	case "in":
		if dec.PeekKind() != '[' {
			return errors.New("takes a list, such as [Bash, Read]")
		}
		t.op = opIn
		t.list, err = list(dec)
	case "contains":
		t.op = opContains
		t.value, err = scalar(dec)
	case "like":
		if t.value, err = stringValue(dec, "a glob in quotes"); err != nil {
			return err
		}
		t.value.glob, err = CompileGlob(string(t.value.text))
		t.value.kind = 'g'
	case "matches":
		t.op = opMatches
		if t.value, err = stringValue(dec, "a regular expression in quotes"); err != nil {
			return err
		}
		t.re, err = compileRegexp(string(t.value.text))
	case "above", "below":
		t.op = opAbove
		if operator == "below" {
			t.op = opBelow
		}
		if t.value, err = scalar(dec); err == nil && t.value.kind != '0' {
			err = errors.New("takes a number, written without quotes")
		}
	default:
		return errors.New("no such operator; the operators are " + strings.Join(Operators(), ", "))
	}
	if err != nil {
		return err
	}
	e.tests = append(e.tests, t)
	return nil
}

func list(dec *jsontext.Decoder) ([]value, error) {
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	var items []value
	for dec.PeekKind() != ']' {
		v, err := bareValue(dec)
		if err != nil {
			return nil, err
		}
		if items = append(items, v); len(items) > MaxList {
			return nil, fmt.Errorf("the list has more than %d items", MaxList)
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	if items == nil {
		return nil, errors.New("the list is empty")
	}
	return items, nil
}

// scalar reads an operand that is compared as it is.
func scalar(dec *jsontext.Decoder) (value, error) {
	switch kind := dec.PeekKind(); kind {
	case '{', '[':
		return value{}, errors.New("takes one text, number, true, false or null; compare a field further inside instead")
	default:
		token, err := dec.ReadToken()
		if err != nil {
			return value{}, err
		}
		v := value{kind: byte(kind), text: []byte(token.String())}
		if kind == '"' {
			v.kind = 's'
		}
		return v, nil
	}
}

// bareValue reads an operand in which a string may be a glob.
func bareValue(dec *jsontext.Decoder) (value, error) {
	v, err := scalar(dec)
	if err != nil || v.kind != 's' || !isGlob(string(v.text)) {
		return v, err
	}
	v.glob, err = CompileGlob(string(v.text))
	v.kind = 'g'
	return v, err
}

func stringValue(dec *jsontext.Decoder, what string) (value, error) {
	v, err := scalar(dec)
	if err == nil && v.kind != 's' {
		err = errors.New("takes " + what)
	}
	return v, err
}

// compileRegexp compiles an RE2 expression, and says which feature of other
// engines stands in it when RE2 cannot.
func compileRegexp(expression string) (*regexp.Regexp, error) {
	if len(expression) > MaxRegexp {
		return nil, fmt.Errorf("the regular expression is longer than %d bytes", MaxRegexp)
	}
	re, err := regexp.Compile(expression)
	if err == nil {
		return re, nil
	}
	var se *syntax.Error
	if !errors.As(err, &se) {
		return nil, err
	}
	if feature := foreignFeature(se.Expr); feature != "" {
		return nil, fmt.Errorf("RE2 has no %s (at %q); see https://github.com/google/re2/wiki/Syntax", feature, se.Expr)
	}
	return nil, fmt.Errorf("not a regular expression: %s (at %q)", se.Code, se.Expr)
}

func foreignFeature(at string) string {
	for _, f := range []struct{ prefix, name string }{
		{"(?=", "lookahead"},
		{"(?!", "negative lookahead"},
		{"(?<=", "lookbehind"},
		{"(?<!", "negative lookbehind"},
		{"(?>", "atomic group"},
		{"(?|", "branch reset group"},
		{"(?#", "comment group"},
		{"(?(", "conditional group"},
		{"(?R", "recursion"},
		{"(?&", "subroutine call"},
		{"(?P", "named backreference, only the group (?P<name>..)"},
		{`\k`, "backreference"},
		{`\g`, "backreference"},
		{`\Z`, `\Z (write \z)`},
		{`\G`, `\G`},
		{`\K`, `\K`},
		{`\R`, `\R (write \r?\n)`},
		{`\h`, `\h (write [ \t])`},
		{`\u`, `\u (write \x{..})`},
		{`\X`, `\X`},
	} {
		if strings.HasPrefix(at, f.prefix) {
			return f.name
		}
	}
	if len(at) > 1 && at[0] == '\\' && at[1] >= '1' && at[1] <= '9' {
		return "backreference"
	}
	if strings.HasSuffix(at, "++") || strings.HasSuffix(at, "*+") || strings.HasSuffix(at, "?+") {
		return "possessive quantifier"
	}
	return ""
}
