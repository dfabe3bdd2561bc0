package redact

import (
	"bytes"
	"slices"
	"sort"
	"unicode/utf16"
	"unicode/utf8"
)

// A document is a record as one text: every string of it decoded, in order,
// with enough of the structure between them (`"key": "value"` and a line
// break) that a rule sees a key beside its value, the arguments of a command
// beside each other, and the lines of an array of lines as lines. It keeps for
// every byte of text where it came from.
type document struct {
	text   []byte
	pieces []piece
	marks  []mark
}

// A piece is one string of the record: text[start:end] came from the record's
// bytes from raw on. Text outside pieces is structure, and is never masked.
type piece struct {
	start, end int
	raw        int
	marks      int // the piece's marks are doc.marks[marks:] up to the next piece's
	number     bool
}

// A mark is one escape sequence: n bytes of text at text came from size bytes
// at raw.
type mark struct {
	text, raw int
	n, size   int
}

func (d *document) reset() {
	d.text, d.pieces, d.marks = d.text[:0], d.pieces[:0], d.marks[:0]
}

// load reads a record. It reports false when rec is not a JSON object with
// nothing behind it as far as strings and brackets show; such a record cannot
// be masked string by string.
func (d *document) load(rec []byte) bool {
	d.reset()
	if len(rec) < 2 || rec[0] != '{' || rec[len(rec)-1] != '}' {
		return false
	}
	d.text = slices.Grow(d.text, len(rec)+len(rec)/8)
	depth := 0
	for i := 0; i < len(rec); {
		switch c := rec[i]; {
		case c == '"':
			end := d.addString(rec, i+1)
			if end < 0 {
				return false
			}
			i = end
			for i < len(rec) && isSpace(rec[i]) {
				i++
			}
			if i < len(rec) && rec[i] == ':' {
				d.text = append(d.text, `": `...)
				i++
			} else {
				d.text = append(d.text, '"', '\n')
			}
		case c == '{' || c == '[':
			depth++
			i++
		case c == '}' || c == ']':
			depth--
			i++
			if depth == 0 && i != len(rec) {
				return false
			}
		case c == '-' || c >= '0' && c <= '9':
			start := i
			for i < len(rec) && isNumberByte(rec[i]) {
				i++
			}
			d.pieces = append(d.pieces, piece{start: len(d.text), end: len(d.text) + i - start, raw: start, marks: len(d.marks), number: true})
			d.text = append(append(d.text, rec[start:i]...), '\n')
		case c == 't' || c == 'f' || c == 'n':
			for i < len(rec) && rec[i] >= 'a' && rec[i] <= 'z' {
				i++
			}
			d.text = append(d.text, '\n')
		default:
			i++
		}
	}
	return depth == 0
}

func isNumberByte(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// addString decodes the string whose first byte behind the quote is at i,
// and returns the offset behind its closing quote, or -1.
func (d *document) addString(rec []byte, i int) int {
	d.text = append(d.text, '"')
	p := piece{start: len(d.text), raw: i, marks: len(d.marks)}
	for {
		n := bytes.IndexByte(rec[i:], '"')
		if n < 0 {
			return -1
		}
		esc := bytes.IndexByte(rec[i:i+n], '\\')
		if esc < 0 {
			d.text = append(d.text, rec[i:i+n]...)
			p.end = len(d.text)
			d.pieces = append(d.pieces, p)
			return i + n + 1
		}
		d.text = append(d.text, rec[i:i+esc]...)
		i += esc
		// Escapes come in bunches; the search for the quote is paid once
		// per bunch.
		for i < len(rec) && rec[i] == '\\' {
			size := d.addEscape(rec, i)
			if size == 0 {
				return -1
			}
			i += size
			end := i
			for end < len(rec) && rec[end] != '\\' && rec[end] != '"' {
				end++
			}
			d.text = append(d.text, rec[i:end]...)
			i = end
		}
	}
}

// addEscape decodes the escape sequence at i and returns its size, 0 if there
// is none. What is no JSON escape stands for itself.
func (d *document) addEscape(rec []byte, i int) int {
	if i+1 >= len(rec) {
		return 0
	}
	start, size := len(d.text), 2
	switch c := rec[i+1]; c {
	case 'n':
		d.text = append(d.text, '\n')
	case 't':
		d.text = append(d.text, '\t')
	case 'r':
		d.text = append(d.text, '\r')
	case 'b':
		d.text = append(d.text, '\b')
	case 'f':
		d.text = append(d.text, '\f')
	case 'u':
		r, ok := hex4(rec, i+2)
		if !ok {
			return 0
		}
		size = 6
		if utf16.IsSurrogate(r) {
			if i+7 < len(rec) && rec[i+6] == '\\' && rec[i+7] == 'u' {
				if low, ok := hex4(rec, i+8); ok {
					if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
						r, size = full, 12
					}
				}
			}
		}
		d.text = utf8.AppendRune(d.text, r)
	default:
		d.text = append(d.text, c)
	}
	d.marks = append(d.marks, mark{text: start, raw: i, n: len(d.text) - start, size: size})
	return size
}

func hex4(b []byte, i int) (rune, bool) {
	if i+4 > len(b) {
		return 0, false
	}
	var r rune
	for _, c := range b[i : i+4] {
		v := hexValue(c)
		if v < 0 {
			return 0, false
		}
		r = r<<4 | rune(v)
	}
	return r, true
}

func hexValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// loadText makes a document of a plain text: one piece, no structure.
func (d *document) loadText(text []byte) {
	d.reset()
	d.text = append(d.text, text...)
	d.pieces = append(d.pieces, piece{end: len(text)})
}

// unescape makes d the text of src with one level of backslash escapes
// undone, wherever they stand: JSON inside a string, a source literal, a
// printf. A terminal's control sequences are taken out: what colours a line stands
// within names and secrets. It reports false when there was nothing to undo.
func (d *document) unescape(src []byte) bool {
	d.reset()
	if bytes.IndexByte(src, '\\') < 0 && bytes.IndexByte(src, 0x1b) < 0 {
		return false
	}
	d.text = slices.Grow(d.text, len(src))
	i := 0
	for i < len(src) {
		n := bytes.IndexByte(src[i:], '\\')
		if n < 0 {
			break
		}
		d.uncoloured(src, i, i+n)
		i += n
		if i+1 < len(src) && isJSONEscape(src[i+1]) {
			if size := d.addEscape(src, i); size > 0 {
				i += size
				continue
			}
		}
		d.text = append(d.text, '\\')
		i++
	}
	d.uncoloured(src, i, len(src))
	d.pieces = append(d.pieces, piece{end: len(d.text)})
	return len(d.marks) > 0
}

// uncoloured appends src[i:end] without control sequences (ECMA-48, CSI), each of
// which becomes a mark of no text.
func (d *document) uncoloured(src []byte, i, end int) {
	for i < end {
		n := bytes.IndexByte(src[i:end], 0x1b)
		if n < 0 {
			break
		}
		d.text = append(d.text, src[i:i+n]...)
		i += n
		size := controlSequence(src[i:end])
		if size == 0 {
			d.text = append(d.text, src[i])
			i++
			continue
		}
		d.marks = append(d.marks, mark{text: len(d.text), raw: i, size: size})
		i += size
	}
	d.text = append(d.text, src[i:end]...)
}

// controlSequence returns the length of the control sequence that t begins with,
// 0 if it is none or a long one.
func controlSequence(t []byte) int {
	if len(t) < 3 || t[1] != '[' {
		return 0
	}
	for i := 2; i < len(t) && i < 32; i++ {
		switch c := t[i]; {
		case c >= 0x40 && c <= 0x7e:
			return i + 1
		case c < 0x20 || c > 0x3f:
			return 0
		}
	}
	return 0
}

func isJSONEscape(c byte) bool {
	switch c {
	case '"', '\\', '/', 'n', 'r', 't', 'u':
		return true
	}
	return false
}

// back maps text[start:end], which lies within piece p, to the bytes it came
// from, never cutting an escape sequence.
func (d *document) back(p int, start, end int) (int, int) {
	piece := &d.pieces[p]
	last := len(d.marks)
	if p+1 < len(d.pieces) {
		last = d.pieces[p+1].marks
	}
	marks := d.marks[piece.marks:last]
	at := func(x int, closing bool) int {
		// An end lies in front of what stands there without text of its own.
		n := sort.Search(len(marks), func(i int) bool { return marks[i].text > x || closing && marks[i].text == x })
		if n == 0 {
			return piece.raw + x - piece.start
		}
		m := marks[n-1]
		if x >= m.text+m.n {
			return m.raw + m.size + x - m.text - m.n
		}
		if closing && x > m.text {
			return m.raw + m.size
		}
		return m.raw
	}
	return at(start, false), at(end, true)
}

// pieceAt returns the number of the first piece that ends behind offset x.
func (d *document) pieceAt(x int) int {
	return sort.Search(len(d.pieces), func(i int) bool { return d.pieces[i].end > x })
}
