package wiring

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxSize is the largest settings file that is read, in bytes. A settings file
// is a few kilobytes; more than this is some other file.
const MaxSize = 10 << 20

// ErrRefused is matched by every error that says a settings file was not
// touched because of what it is or holds.
var ErrRefused = errors.New("settings file refused")

// Refusal says why a settings file was not touched, where, and what to do.
type Refusal struct {
	// Line and Column count from 1, Column in characters; 0 when the reason is
	// not at one place.
	Line, Column int
	Problem      string
	Remedy       string
}

// Error is one line, without the file's name.
func (r *Refusal) Error() string {
	where := ""
	if r.Line > 0 {
		where = fmt.Sprintf("line %d, column %d: ", r.Line, r.Column)
	}
	return where + r.Problem + "; " + r.Remedy
}

// Is makes errors.Is(err, ErrRefused) true.
func (r *Refusal) Is(target error) bool { return target == ErrRefused }

func refuseAt(src []byte, offset int, problem, remedy string) *Refusal {
	offset = min(offset, len(src))
	before := src[:offset]
	start := bytes.LastIndexByte(before, '\n') + 1
	return &Refusal{
		Line:    bytes.Count(before, []byte("\n")) + 1,
		Column:  utf8.RuneCount(before[start:]) + 1,
		Problem: problem,
		Remedy:  remedy,
	}
}

// span is a stretch of the settings: src[start:end].
type span struct{ start, end int }

// item is a member of an object or an element of an array.
type item struct {
	name    string // decoded; members only
	start   int    // of the name in an object, else of the value
	nameEnd int    // members only
	value   span
}

// reading accepts what JSON.parse, which the client uses, accepts too: repeated
// names and unpaired surrogate escapes. Both are kept as they stand.
func reading(src []byte) *jsontext.Decoder {
	// A Reader, not a Buffer: a decoder may scribble over a Buffer's bytes.
	return jsontext.NewDecoder(bytes.NewReader(src), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// parse checks that src is one JSON object and returns where it lies. For blank
// text, which the client reads as no settings, blank is true.
func parse(src []byte) (root span, blank bool, err error) {
	if len(src) > MaxSize {
		return span{}, false, &Refusal{
			Problem: fmt.Sprintf("it is larger than %d MiB", MaxSize>>20),
			Remedy:  "that is no settings file; check the path",
		}
	}
	if refusal := checkEncoding(src); refusal != nil {
		return span{}, false, refusal
	}
	if isBlank(src) {
		return span{}, true, nil
	}
	dec := reading(src)
	value, err := dec.ReadValue()
	if err != nil {
		return span{}, false, refuseSyntax(src, err)
	}
	root.end = int(dec.InputOffset())
	root.start = root.end - len(value)
	if _, err := dec.ReadToken(); err != io.EOF {
		at := root.end
		for at < len(src) && strings.IndexByte(" \t\r\n", src[at]) >= 0 {
			at++
		}
		if refusal := refuseComment(src, at); refusal != nil {
			return span{}, false, refusal
		}
		return span{}, false, refuseAt(src, at, "there is more after the end of the JSON object", "remove what follows it")
	}
	if src[root.start] != '{' {
		return span{}, false, refuseAt(src, root.start,
			"the settings are "+kindName(src[root.start])+", not an object", "a settings file is one JSON object: {...}")
	}
	return root, false, nil
}

func checkEncoding(src []byte) error {
	switch {
	case bytes.HasPrefix(src, []byte("\xef\xbb\xbf")):
		return refuseAt(src, 0, "the file begins with a byte order mark", "save it as UTF-8 without BOM")
	case bytes.HasPrefix(src, []byte("\xff\xfe")), bytes.HasPrefix(src, []byte("\xfe\xff")):
		return refuseAt(src, 0, "the file is UTF-16", "save it as UTF-8 without BOM")
	}
	if i := bytes.IndexByte(src, 0); i >= 0 {
		return refuseAt(src, i, "there is a NUL byte", "the file is damaged or not text; restore or repair it")
	}
	if !utf8.Valid(src) {
		i := 0
		for i < len(src) {
			r, n := utf8.DecodeRune(src[i:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			i += n
		}
		return refuseAt(src, i, fmt.Sprintf("byte 0x%02x is not valid UTF-8", src[i]), "save the file as UTF-8")
	}
	return nil
}

func refuseSyntax(src []byte, err error) error {
	syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok {
		return refuseAt(src, len(src), "the JSON cannot be read: "+err.Error(), "repair it")
	}
	at := int(syntax.ByteOffset)
	if refusal := refuseComment(src, at); refusal != nil {
		return refusal
	}
	if errors.Is(syntax.Err, io.ErrUnexpectedEOF) || at >= len(src) {
		return refuseAt(src, len(src), "the JSON ends too early", "complete it: a bracket, brace or quote is missing")
	}
	if src[at] == '}' || src[at] == ']' {
		before := bytes.TrimRight(src[:at], " \t\r\n")
		if bytes.HasSuffix(before, []byte(",")) {
			return refuseAt(src, len(before)-1, "there is a trailing comma", "remove it: the client reads strict JSON")
		}
	}
	return refuseAt(src, at, "the JSON is broken: "+syntax.Err.Error(), "repair it")
}

func refuseComment(src []byte, at int) error {
	for _, mark := range []string{"//", "/*", "#"} {
		if bytes.HasPrefix(src[at:], []byte(mark)) {
			return refuseAt(src, at, "there is a comment", "remove it: the client reads strict JSON, which has no comments")
		}
	}
	return nil
}

func kindName(first byte) string {
	switch first {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// children lists the members or elements of a container in text that parse
// accepted.
func children(src []byte, c span) []item {
	dec := reading(src[c.start:c.end])
	if _, err := dec.ReadToken(); err != nil {
		return nil
	}
	var list []item
	for {
		kind := dec.PeekKind()
		if kind == '}' || kind == ']' || kind == 0 {
			return list
		}
		var it item
		if src[c.start] == '{' {
			name, err := dec.ReadValue()
			if err != nil {
				return list
			}
			it.nameEnd = c.start + int(dec.InputOffset())
			it.start = it.nameEnd - len(name)
			it.name = unquote(name)
		}
		value, err := dec.ReadValue()
		if err != nil {
			return list
		}
		it.value.end = c.start + int(dec.InputOffset())
		it.value.start = it.value.end - len(value)
		if src[c.start] == '[' {
			it.start = it.value.start
		}
		list = append(list, it)
	}
}

// unquote decodes a JSON string. An unpaired surrogate becomes U+FFFD, which
// no name or value looked for holds.
func unquote(quoted []byte) string {
	decoded, _ := jsontext.AppendUnquote(nil, quoted)
	return string(decoded)
}

// text decodes a string value; ok is false for any other kind.
func text(src []byte, s span) (decoded string, ok bool) {
	if src[s.start] != '"' {
		return "", false
	}
	return unquote(src[s.start:s.end]), true
}

// document is what the edits need to know of a settings file.
type document struct {
	src     []byte
	blank   bool
	root    span
	members []item
	// hooks is the "hooks" member, nil when there is none.
	hooks  *item
	events []event
	// disabled is true for "disableAllHooks": true.
	disabled bool
}

// event is one member of "hooks".
type event struct {
	item
	groups []group
}

// group is one element of an event's array.
type group struct {
	item
	members []item
	matcher string
	list    *item // its "hooks" member
	entries []entry
}

// plain reports whether the group holds nothing beyond matcher and hooks, so
// that it means nothing once its entries are gone.
func (g group) plain() bool {
	for _, m := range g.members {
		if m.name != "matcher" && m.name != "hooks" {
			return false
		}
	}
	return true
}

// read takes a settings file apart. Where the meaning of a part that is to be
// edited is in doubt it refuses.
func read(src []byte) (*document, error) {
	root, blank, err := parse(src)
	if err != nil {
		return nil, err
	}
	d := &document{src: src, blank: blank, root: root}
	if blank {
		return d, nil
	}
	d.members = children(src, root)
	if err := once(src, d.members, "hooks"); err != nil {
		return nil, err
	}
	for i, m := range d.members {
		switch m.name {
		case "hooks":
			d.hooks = &d.members[i]
		case "disableAllHooks":
			d.disabled = src[m.value.start] == 't'
		}
	}
	if d.hooks == nil {
		return d, nil
	}
	if err := want(src, *d.hooks, '{', `"hooks"`); err != nil {
		return nil, err
	}
	named := children(src, d.hooks.value)
	if err := once(src, named); err != nil {
		return nil, err
	}
	for _, m := range named {
		e := event{item: m}
		e.groups, err = readGroups(src, m)
		if err != nil && wired(m.name) {
			return nil, err
		}
		if err != nil {
			e.groups = nil // of no concern to us, and perhaps of a newer client
		}
		d.events = append(d.events, e)
	}
	return d, nil
}

func wired(name string) bool {
	return slices.ContainsFunc(Events(), func(e Event) bool { return e.Name == name })
}

func readGroups(src []byte, m item) ([]group, error) {
	if err := want(src, m, '[', fmt.Sprintf("hooks.%q", m.name)); err != nil {
		return nil, err
	}
	var groups []group
	for i, element := range children(src, m.value) {
		path := fmt.Sprintf("hooks.%q[%d]", m.name, i)
		if err := want(src, element, '{', path); err != nil {
			return nil, err
		}
		g := group{item: element, members: children(src, element.value)}
		if err := once(src, g.members, "matcher", "hooks"); err != nil {
			return nil, err
		}
		for j, member := range g.members {
			switch member.name {
			case "matcher":
				g.matcher, _ = text(src, member.value)
			case "hooks":
				g.list = &g.members[j]
			}
		}
		if g.list == nil {
			return nil, refuseAt(src, element.start, path+` has no "hooks" array`, "add one, or remove the group")
		}
		if err := want(src, *g.list, '[', path+".hooks"); err != nil {
			return nil, err
		}
		for j, it := range children(src, g.list.value) {
			if err := want(src, it, '{', fmt.Sprintf("%s.hooks[%d]", path, j)); err != nil {
				return nil, err
			}
			e := entry{item: it, members: children(src, it.value)}
			if err := once(src, e.members, "type", "command", "args", "timeout"); err != nil {
				return nil, err
			}
			e.recognise(src)
			g.entries = append(g.entries, e)
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// want refuses an item whose value is not a container of the given kind.
func want(src []byte, it item, open byte, path string) error {
	if got := src[it.value.start]; got != open {
		return refuseAt(src, it.value.start,
			fmt.Sprintf("%s is %s, not %s", path, kindName(got), kindName(open)), "correct it as the client's documentation of hooks says")
	}
	return nil
}

// once refuses names that stand twice in an object (any name, when none is
// given): which of the two counts is up to the reader, so an edit of either
// might be none.
func once(src []byte, members []item, names ...string) error {
	seen := make(map[string]bool, len(members))
	for _, m := range members {
		if len(names) > 0 && !slices.Contains(names, m.name) {
			continue
		}
		if seen[m.name] {
			return refuseAt(src, m.start, fmt.Sprintf("the name %q stands here a second time", m.name), "keep one of the two")
		}
		seen[m.name] = true
	}
	return nil
}
