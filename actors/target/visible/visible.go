// Package visible makes what a session or a consumer said harmless on a
// terminal: bytes that would move a cursor, write a clipboard or reorder a line
// are shown instead of done.
package visible

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Append appends s to dst with everything a terminal would act on written out:
// C0 and C1 controls, DEL and bytes that are no UTF-8 as \x1b, bidirectional and
// other format characters, line separators and private tags as \u202e. Tabs stay;
// each newline is followed by indent. The joiners U+200C and U+200D stay: scripts
// and emoji need them.
func Append(dst []byte, s, indent string) []byte {
	plain := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == '\n' {
			dst = append(append(dst, s[plain:i+1]...), indent...)
			i++
			plain = i
			continue
		}
		if harmless(r, size) {
			i += size
			continue
		}
		dst = append(dst, s[plain:i]...)
		dst = appendShown(dst, r, s[i:i+size])
		i += size
		plain = i
	}
	return append(dst, s[plain:]...)
}

// Line is Append for one line: newlines are shown as \n.
func Line(s string) string {
	var dst []byte
	for {
		i := 0
		for i < len(s) && s[i] != '\n' {
			i++
		}
		dst = Append(dst, s[:i], "")
		if i == len(s) {
			return string(dst)
		}
		dst = append(dst, `\n`...)
		s = s[i+1:]
	}
}

func harmless(r rune, size int) bool {
	switch {
	case r == utf8.RuneError && size <= 1:
		return false
	case r >= ' ' && r < 0x7f, r == '\t', r == '\u200c', r == '\u200d':
		return true
	case r < 0xa0, r == '\u2028', r == '\u2029':
		return false
	}
	return !unicode.Is(unicode.Cf, r)
}

func appendShown(dst []byte, r rune, raw string) []byte {
	switch {
	case r == '\r':
		return append(dst, `\r`...)
	case r == utf8.RuneError && len(raw) == 1:
		return fmt.Appendf(dst, `\x%02x`, raw[0])
	case r < 0xa0:
		return fmt.Appendf(dst, `\x%02x`, r)
	case r > 0xffff:
		return fmt.Appendf(dst, `\U%08x`, r)
	}
	return fmt.Appendf(dst, `\u%04x`, r)
}
