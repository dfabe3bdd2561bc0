package wiring

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// style is how a settings file is laid out, so that what is inserted looks as
// if its owner had written it.
type style struct {
	newline string // "\n" or "\r\n"
	unit    string // one level of indentation
	colon   string // between a name and its value, spaces included
	comma   string // the spaces after a comma on one line
	pad     string // the spaces inside the braces of an object on one line
}

// layout is how one container is laid out.
type layout struct {
	// lines is true when each child stands on a line of its own, behind indent.
	lines  bool
	indent string
	// comma overrides the file's for a container on one line.
	comma string
}

// standard is what JSON.stringify(settings, null, 2) makes, the form in which
// the client itself saves its settings.
func standard() style {
	return style{newline: "\n", unit: "  ", colon: ": ", comma: " "}
}

func (d *document) style() style {
	st := standard()
	if i := bytes.IndexByte(d.src, '\n'); i > 0 && d.src[i-1] == '\r' {
		st.newline = "\r\n"
	}
	if len(d.members) == 0 {
		return st
	}
	first := d.members[0]
	st.colon = d.colon(first, st.colon)
	if !strings.HasSuffix(st.colon, " ") {
		st.comma = ""
	}
	gap := spaceBefore(d.src, first.start)
	if i := strings.LastIndexByte(gap, '\n'); i >= 0 {
		// The braces themselves may stand indented.
		st.unit = strings.TrimPrefix(gap[i+1:], lineIndent(d.src, d.root.end-1))
		return st
	}
	st.pad = gap
	if len(d.members) > 1 {
		if comma := spaceBefore(d.src, d.members[1].start); !strings.ContainsAny(comma, "\r\n") {
			st.comma = comma
		}
	}
	return st
}

// colon is what stands between a member's name and its value, on one line.
func (d *document) colon(m item, otherwise string) string {
	if c := string(d.src[m.nameEnd:m.value.start]); !strings.ContainsAny(c, "\r\n") {
		return c
	}
	return otherwise
}

// layout looks at the last child, behind which an insertion goes. An empty
// container is laid out as the one around it is: outer, or lines for the
// outermost.
func (d *document) layout(st style, c span, list []item, outer *layout) layout {
	if len(list) == 0 {
		if outer == nil {
			return layout{lines: true, indent: lineIndent(d.src, c.start) + st.unit}
		}
		if !outer.lines {
			return layout{comma: outer.comma}
		}
		return layout{lines: true, indent: outer.indent + st.unit}
	}
	gap := spaceBefore(d.src, list[len(list)-1].start)
	if i := strings.LastIndexByte(gap, '\n'); i >= 0 {
		return layout{lines: true, indent: gap[i+1:]}
	}
	if len(list) > 1 {
		return layout{comma: gap}
	}
	return layout{comma: st.comma}
}

// spaceBefore is the white space that ends at an offset.
func spaceBefore(src []byte, at int) string {
	start := len(bytes.TrimRight(src[:at], " \t\r\n"))
	return string(src[start:at])
}

// lineIndent is the white space that begins the line of an offset, when
// nothing else stands before the offset.
func lineIndent(src []byte, at int) string {
	start := bytes.LastIndexByte(src[:at], '\n') + 1
	if len(bytes.Trim(src[start:at], " \t")) > 0 {
		return ""
	}
	return string(src[start:at])
}

// The values that are written: object, array, or raw JSON text.
type (
	object []member
	array  []any
	raw    string
	member struct {
		name  string
		value any
	}
)

func quoted(s string) raw {
	b, _ := jsontext.AppendQuote(nil, s) // Hook.check saw to valid UTF-8
	return raw(b)
}

// write renders a value whose first line is already indented; inner is the
// indentation of its children. With lines false it stays on one line.
func (st style) write(b *strings.Builder, v any, lay layout) {
	switch v := v.(type) {
	case raw:
		b.WriteString(string(v))
	case object:
		b.WriteByte('{')
		for i, m := range v {
			st.between(b, i, lay, st.pad)
			b.WriteString(string(quoted(m.name)))
			b.WriteString(st.colon)
			st.write(b, m.value, st.inside(lay))
		}
		st.end(b, lay, st.pad)
		b.WriteByte('}')
	case array:
		b.WriteByte('[')
		for i, e := range v {
			st.between(b, i, lay, "")
			st.write(b, e, st.inside(lay))
		}
		st.end(b, lay, "")
		b.WriteByte(']')
	}
}

func (st style) inside(lay layout) layout {
	lay.indent += st.unit
	return lay
}

// between writes what stands before child i of a container.
func (st style) between(b *strings.Builder, i int, lay layout, pad string) {
	if i > 0 {
		b.WriteByte(',')
	}
	switch {
	case lay.lines:
		b.WriteString(st.newline + lay.indent)
	case i > 0:
		b.WriteString(lay.comma)
	default:
		b.WriteString(pad)
	}
}

// end writes what stands before the closing bracket of a container.
func (st style) end(b *strings.Builder, lay layout, pad string) {
	if lay.lines {
		b.WriteString(st.newline + strings.TrimSuffix(lay.indent, st.unit))
		return
	}
	b.WriteString(pad)
}
