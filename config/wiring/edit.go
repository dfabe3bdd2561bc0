package wiring

import (
	"cmp"
	"slices"
	"strings"
)

// splice replaces src[at:end] with text.
type splice struct {
	at, end int
	text    string
}

// cut applies splices that do not overlap. Of several insertions at one offset
// the earlier in the list comes first.
func cut(src []byte, splices []splice) []byte {
	slices.SortStableFunc(splices, func(a, b splice) int { return cmp.Compare(a.at, b.at) })
	out := make([]byte, 0, len(src)+1024)
	done := 0
	for _, s := range splices {
		out = append(out, src[done:s.at]...)
		out = append(out, s.text...)
		done = s.end
	}
	return append(out, src[done:]...)
}

// insert puts children behind the last one of a container. What it adds begins
// with the comma, so that without removes it to the byte.
func (d *document) insert(st style, c span, list []item, lay layout, add []any) splice {
	var b strings.Builder
	for i, v := range add {
		pad := ""
		if d.src[c.start] == '{' {
			pad = st.pad
		}
		st.between(&b, len(list)+i, lay, pad)
		if m, ok := v.(member); ok {
			b.WriteString(string(quoted(m.name)))
			b.WriteString(st.colon)
			v = m.value
		}
		st.write(&b, v, st.inside(lay))
	}
	if len(list) > 0 {
		at := list[len(list)-1].value.end
		return splice{at, at, b.String()}
	}
	pad := ""
	if d.src[c.start] == '{' {
		pad = st.pad
	}
	st.end(&b, lay, pad)
	return splice{c.start + 1, c.end - 1, b.String()}
}

// inner is the white space inside an empty container.
func (d *document) inner(c span) string { return string(d.src[c.start+1 : c.end-1]) }

// without takes the marked children out of a container. When none is left the
// container holds inner.
func without(c span, list []item, marked []bool, inner string) []splice {
	if !slices.Contains(marked, false) {
		return []splice{{c.start + 1, c.end - 1, inner}}
	}
	var out []splice
	kept := false // whether a child before i stays
	for i, it := range list {
		switch {
		case !marked[i]:
			kept = true
		case kept:
			out = append(out, splice{at: list[i-1].value.end, end: it.value.end})
		default:
			out = append(out, splice{at: it.start, end: list[i+1].start})
		}
	}
	return out
}
