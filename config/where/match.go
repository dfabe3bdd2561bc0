package where

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// state is how far one entry's path has come at some value: bit i says that
// steps i and on remain to be taken below it; bit len(path) that it has arrived.
type state struct {
	entry int
	at    uint64
}

// result is what was found out about the entries, one bit each. Results of
// siblings are or-ed together; nothing found ever becomes less true, so a repeated
// name's earlier result can simply be left out.
type result struct {
	seen uint64 // the path led somewhere
	good uint64 // a value satisfies every positive operator
	bad  uint64 // a value is what `not` names
}

func (r *result) add(o result) {
	r.seen |= o.seen
	r.good |= o.good
	r.bad |= o.bad
}

var errStop = errors.New("the record is not valid JSON")

// Match reports whether the record, one JSON value, satisfies the condition.
// A record that is not valid JSON does not.
func (c *Cond) Match(record []byte) bool {
	if len(c.entries) == 0 {
		return true
	}
	for _, n := range c.needs {
		if !n.in(record) {
			return false
		}
	}
	m := matcher{cond: c}
	m.dec.Reset(bytes.NewBuffer(record), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	r, err := m.value(c.start)
	if err != nil {
		return false
	}
	if _, err := m.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return false
	}
	holds := r.seen & r.good &^ r.bad
	if c.any {
		return holds != 0
	}
	return holds == ^uint64(0)>>(64-len(c.entries))
}

// matcher walks one record.
type matcher struct {
	cond *Cond
	dec  jsontext.Decoder
	// states is a stack: each level of nesting pushes the states of the child
	// it is about to enter, and pops them after.
	states []state
	text   []byte // scratch for strings with escapes
}

// value reads the next value and finds out about the entries in states.
func (m *matcher) value(states []state) (result, error) {
	switch m.dec.PeekKind() {
	case '{':
		return m.object(states)
	case '[':
		return m.array(states)
	}
	raw, err := m.dec.ReadValue()
	if err != nil {
		return result{}, errStop
	}
	var r result
	for _, s := range states {
		if e := &m.cond.entries[s.entry]; s.at&e.arrived() != 0 {
			r.add(m.scalar(s.entry, raw))
		}
	}
	return r, nil
}

// container notes the entries whose path ends at an object or array: it is a
// value, and no operator but contains is true of it.
func (m *matcher) container(states []state) result {
	var r result
	for _, s := range states {
		e := &m.cond.entries[s.entry]
		if s.at&e.arrived() == 0 {
			continue
		}
		r.seen |= 1 << s.entry
		if len(e.tests) == 0 {
			r.good |= 1 << s.entry
		}
	}
	return r
}

// member is what a name of an object has yielded so far.
type member struct {
	name  string
	found result
}

// manyMembers is where a search through an object's members becomes a map.
const manyMembers = 16

func (m *matcher) object(states []state) (result, error) {
	r := m.container(states)
	if _, err := m.dec.ReadToken(); err != nil {
		return r, errStop
	}
	var few [4]member
	members := few[:0]
	var index map[string]int
	for m.dec.PeekKind() != '}' {
		raw, err := m.dec.ReadValue()
		if err != nil {
			return r, errStop
		}
		base := len(m.states)
		name := m.unquote(raw)
		for _, s := range states {
			m.push(s, func(st *step) bool { return st.member(name) })
		}
		if len(m.states) == base {
			// No path comes this way, so a repetition of this name would not
			// matter either.
			if err := m.dec.SkipValue(); err != nil {
				return r, errStop
			}
			continue
		}
		kept := string(name) // name lies in a buffer that the value overwrites
		found, err := m.value(m.states[base:])
		m.states = m.states[:base]
		if err != nil {
			return r, err
		}
		at := -1
		if index != nil {
			if i, ok := index[kept]; ok {
				at = i
			}
		} else {
			for i := range members {
				if members[i].name == kept {
					at = i
					break
				}
			}
		}
		if at >= 0 {
			members[at].found = found
			continue
		}
		members = append(members, member{kept, found})
		if index != nil {
			index[kept] = len(members) - 1
		} else if len(members) == manyMembers {
			index = make(map[string]int, 2*manyMembers)
			for i := range members {
				index[members[i].name] = i
			}
		}
	}
	if _, err := m.dec.ReadToken(); err != nil {
		return r, errStop
	}
	for i := range members {
		r.add(members[i].found)
	}
	return r, nil
}

func (m *matcher) array(states []state) (result, error) {
	r := m.container(states)
	var within uint64 // entries that ask what this array contains
	for _, s := range states {
		if e := &m.cond.entries[s.entry]; s.at&e.arrived() != 0 && e.contains != nil {
			within |= 1 << s.entry
		}
	}
	if _, err := m.dec.ReadToken(); err != nil {
		return r, errStop
	}
	for i := 0; m.dec.PeekKind() != ']'; i++ {
		base := len(m.states)
		for _, s := range states {
			m.push(s, func(st *step) bool { return st.element(i) })
		}
		below := m.states[base:]
		kind := m.dec.PeekKind()
		switch {
		case kind == '{' || kind == '[':
			if len(below) == 0 {
				if err := m.dec.SkipValue(); err != nil {
					return r, errStop
				}
				break
			}
			found, err := m.value(below)
			if err != nil {
				return r, err
			}
			r.add(found)
		default:
			raw, err := m.dec.ReadValue()
			if err != nil {
				return r, errStop
			}
			for _, s := range below {
				if e := &m.cond.entries[s.entry]; s.at&e.arrived() != 0 {
					r.add(m.scalar(s.entry, raw))
				}
			}
			if within&^r.good == 0 {
				break
			}
			got := m.read(raw)
			for _, s := range states {
				if within&(1<<s.entry) != 0 && m.cond.entries[s.entry].contains.equal(got) {
					r.good |= 1 << s.entry
				}
			}
		}
		m.states = m.states[:base]
	}
	if _, err := m.dec.ReadToken(); err != nil {
		return r, errStop
	}
	return r, nil
}

// push adds the state that s becomes at a child, when it becomes any. takes
// says whether a step leads to that child.
func (m *matcher) push(s state, takes func(*step) bool) {
	path := m.cond.entries[s.entry].path
	var next uint64
	for i := range path {
		if s.at&(1<<i) == 0 {
			continue
		}
		if path[i].descend {
			next |= 1 << i
		}
		if takes(&path[i]) {
			next |= 1 << (i + 1)
		}
	}
	if next != 0 {
		m.states = append(m.states, state{s.entry, next})
	}
}

// scalar finds out about one entry from a value its path led to.
func (m *matcher) scalar(n int, raw jsontext.Value) result {
	e := &m.cond.entries[n]
	got := m.read(raw)
	r := result{seen: 1 << n, good: 1 << n}
	for i := range e.tests {
		if !e.tests[i].holds(got) {
			r.good = 0
			break
		}
	}
	for i := range e.not {
		if e.not[i].equal(got) {
			r.bad = 1 << n
			break
		}
	}
	return r
}

// read turns a raw scalar into a value. Its text is good until the next read.
func (m *matcher) read(raw jsontext.Value) value {
	kind := byte(raw.Kind())
	if kind == '"' {
		return value{kind: 's', text: m.unquote(raw)}
	}
	return value{kind: kind, text: raw}
}

// unquote returns the text of a JSON string, without a copy where it can.
func (m *matcher) unquote(raw jsontext.Value) []byte {
	inside := raw[1 : len(raw)-1]
	if bytes.IndexByte(inside, '\\') < 0 && utf8.Valid(inside) {
		return inside
	}
	// The error says that something was replaced by U+FFFD; that is wanted.
	m.text, _ = jsontext.AppendUnquote(m.text[:0], raw)
	return m.text
}

func (t *test) holds(got value) bool {
	switch t.op {
	case opBare:
		return t.value.equal(got)
	case opIn:
		for i := range t.list {
			if t.list[i].equal(got) {
				return true
			}
		}
		return false
	case opContains:
		return t.value.kind == 's' && got.kind == 's' && bytes.Contains(got.text, t.value.text)
	case opMatches:
		return got.kind == 's' && t.re.Match(got.text)
	case opAbove:
		return got.kind == '0' && compareNumbers(got.text, t.value.text) > 0
	case opBelow:
		return got.kind == '0' && compareNumbers(got.text, t.value.text) < 0
	}
	return false
}

// equal reports whether got is what v asks for.
func (v *value) equal(got value) bool {
	switch v.kind {
	case 'g':
		return got.kind == 's' && v.glob.Match(got.text)
	case 's':
		return got.kind == 's' && bytes.Equal(got.text, v.text)
	case '0':
		return got.kind == '0' && compareNumbers(got.text, v.text) == 0
	}
	return got.kind == v.kind
}
