// Package repair makes what a client wrote fit for a record.
package repair

import "unicode/utf8"

// UTF8 returns text with each byte that is no part of UTF-8 replaced by U+FFFD, and
// how many those were. Text that is sound, which nearly all is, is returned as it is.
func UTF8(text []byte) ([]byte, int) {
	if utf8.Valid(text) {
		return text, 0
	}
	n := 0
	fixed := make([]byte, 0, len(text)+16)
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 {
			fixed = utf8.AppendRune(fixed, utf8.RuneError)
			n++
		} else {
			fixed = append(fixed, rest[:size]...)
		}
		rest = rest[size:]
	}
	return fixed, n
}
