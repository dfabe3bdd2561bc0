package where

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// Glob is a compiled glob: `*` any run of characters, `/` included; `?` one
// character; `[a-z]` one of a class, `[!x]` and `[^x]` one outside it; `\` makes
// the next character plain. It is matched against the whole text, in time
// proportional to the length of the pattern times that of the text at worst.
type Glob struct {
	parts []globPart
}

type globPart struct {
	kind   globKind
	char   rune
	negate bool
	ranges []runeRange
}

type globKind uint8

const (
	globChar  globKind = iota
	globAny            // ?
	globStar           // *
	globClass          // [..]
)

type runeRange struct{ low, high rune }

// maxGlob bounds a glob's length in bytes: matching is a product of the two
// lengths at worst, and nobody writes longer ones by hand.
const maxGlob = 1024

var (
	errGlobLong    = errors.New("the glob is longer than 1024 bytes")
	errGlobOpen    = errors.New("the glob has a [ without its ]; write \\[ for a plain bracket")
	errGlobEscape  = errors.New("the glob ends in a \\ that escapes nothing; write \\\\ for a plain backslash")
	errGlobReverse = errors.New("a range in the glob's [..] runs backwards")
)

// CompileGlob reads a glob. Its errors say which part is wrong; a pattern is
// at most 1024 bytes long.
func CompileGlob(pattern string) (*Glob, error) {
	if len(pattern) > maxGlob {
		return nil, errGlobLong
	}
	g := &Glob{}
	for rest := pattern; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
		switch r {
		case '*':
			if n := len(g.parts); n == 0 || g.parts[n-1].kind != globStar {
				g.parts = append(g.parts, globPart{kind: globStar})
			}
		case '?':
			g.parts = append(g.parts, globPart{kind: globAny})
		case '[':
			part, after, err := compileClass(rest)
			if err != nil {
				return nil, err
			}
			g.parts = append(g.parts, part)
			rest = after
		case '\\':
			if rest == "" {
				return nil, errGlobEscape
			}
			r, size = utf8.DecodeRuneInString(rest)
			rest = rest[size:]
			g.parts = append(g.parts, globPart{kind: globChar, char: r})
		default:
			g.parts = append(g.parts, globPart{kind: globChar, char: r})
		}
	}
	return g, nil
}

// compileClass reads what follows a `[`, up to and with its `]`. A `]` right
// after the opening (or its `!`) is a member, as in a shell.
func compileClass(s string) (globPart, string, error) {
	part := globPart{kind: globClass}
	if s != "" && (s[0] == '!' || s[0] == '^') {
		part.negate = true
		s = s[1:]
	}
	next := func() (r rune, escaped, ok bool) {
		if s == "" {
			return 0, false, false
		}
		r, size := utf8.DecodeRuneInString(s)
		s = s[size:]
		if r != '\\' {
			return r, false, true
		}
		if s == "" {
			return 0, false, false
		}
		r, size = utf8.DecodeRuneInString(s)
		s = s[size:]
		return r, true, true
	}
	for first := true; ; first = false {
		low, escaped, ok := next()
		if !ok {
			return part, "", errGlobOpen
		}
		if low == ']' && !escaped && !first {
			return part, s, nil
		}
		high := low
		if len(s) > 1 && s[0] == '-' && s[1] != ']' {
			s = s[1:]
			if high, _, ok = next(); !ok {
				return part, "", errGlobOpen
			}
			if high < low {
				return part, "", errGlobReverse
			}
		}
		part.ranges = append(part.ranges, runeRange{low, high})
	}
}

func (p *globPart) one(r rune) bool {
	switch p.kind {
	case globAny:
		return true
	case globChar:
		return p.char == r
	}
	for _, rr := range p.ranges {
		if rr.low <= r && r <= rr.high {
			return !p.negate
		}
	}
	return p.negate
}

// Match reports whether the glob covers the whole text.
func (g *Glob) Match(text []byte) bool {
	at, part := 0, 0
	// Where the last star stood, and the text position it was tried from: a
	// mismatch goes back to that star alone, never to an earlier one.
	star, from := -1, 0
	for at < len(text) {
		if part < len(g.parts) && g.parts[part].kind == globStar {
			star, from = part, at
			part++
			continue
		}
		r, size := rune(text[at]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text[at:])
		}
		if part < len(g.parts) && g.parts[part].one(r) {
			at += size
			part++
			continue
		}
		if star < 0 {
			return false
		}
		_, size = utf8.DecodeRune(text[from:])
		from += size
		at, part = from, star+1
	}
	for part < len(g.parts) && g.parts[part].kind == globStar {
		part++
	}
	return part == len(g.parts)
}

// isGlob reports whether a bare string is meant as a glob: it holds a `*` or a
// `?` (escaped ones too, so that `\*` can be written), or a `[` that some `]`
// closes.
func isGlob(s string) bool {
	if strings.ContainsAny(s, "*?") {
		return true
	}
	open := strings.IndexByte(s, '[')
	// The first character of a class may be ], so a class has one more.
	return open >= 0 && len(s) > open+2 && strings.IndexByte(s[open+2:], ']') >= 0
}
