package where

import "bytes"

// maxNeedles is how many texts are looked for before a record is read; with more it
// is read at once.
const maxNeedles = 8

// needles are texts of which a record must hold one, as it is, to satisfy a
// condition: of what most records do not satisfy, most do not hold one, and that is
// found out many times faster than by reading them.
type needles [][]byte

// in reports whether a record may hold one. One that spells letters as numbers
// (\u0041) may hold any.
func (n needles) in(record []byte) bool {
	for _, text := range n {
		if bytes.Contains(record, text) {
			return true
		}
	}
	return spelled(record)
}

// spelled reports whether a record spells a plain character as a number, or what
// looks like that. A terminal's colours (\u001b) are spelled so and are none.
func spelled(record []byte) bool {
	for {
		at := bytes.Index(record, []byte(`\u00`))
		if at < 0 {
			return false
		}
		if record = record[at+len(`\u00`):]; len(record) > 0 && '2' <= record[0] && record[0] <= '7' {
			return true
		}
	}
}

// needlesOf are the needles of a condition, each of which it needs.
func needlesOf(entries []entry, anyOf bool) []needles {
	var all []needles
	for i := range entries {
		n := entries[i].needles()
		switch {
		case !anyOf && n != nil:
			all = append(all, n)
		case anyOf && n == nil:
			return nil // this entry may be true of any record
		case anyOf:
			if len(all) == 0 {
				all = []needles{nil}
			}
			if all[0] = append(all[0], n...); len(all[0]) > maxNeedles {
				return nil
			}
		}
	}
	return all
}

// needles are those of one entry; nil when it may be true of any record.
func (e *entry) needles() needles {
	for i := range e.tests {
		t := &e.tests[i]
		values := []value{t.value}
		switch t.op {
		case opBare, opContains:
		case opIn:
			values = t.list
		default:
			continue
		}
		var found needles
		for k := range values {
			if text := values[k].needle(); text != nil && len(values) <= maxNeedles {
				found = append(found, text)
			}
		}
		if len(found) == len(values) {
			return found
		}
	}
	return nil
}

// needle is a text that stands in every record that has the value, spelled as it
// is; nil when there is none.
func (v *value) needle() []byte {
	switch v.kind {
	case 's':
		for _, c := range v.text {
			if !plain(rune(c)) {
				return nil
			}
		}
		if len(v.text) == 0 {
			return nil
		}
		return v.text
	case 'g':
		return v.glob.needle()
	}
	return nil
}

// needle is the longest run of plain characters; nil when there is none.
func (g *Glob) needle() []byte {
	var longest, run []byte
	for _, p := range g.parts {
		if p.kind != globChar || !plain(p.char) {
			run = nil
			continue
		}
		if run = append(run, byte(p.char)); len(run) > len(longest) {
			longest = run
		}
	}
	return longest
}

// plain reports whether JSON has no other way to write a character than itself and
// its number.
func plain(r rune) bool {
	return ' ' <= r && r <= '~' && r != '"' && r != '\\' && r != '/'
}
