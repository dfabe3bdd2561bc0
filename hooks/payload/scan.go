package payload

import (
	"bytes"
	"errors"
	"io"
)

// scanner finds the end of the first JSON object or array in a stream. It
// knows strings and nesting and nothing else: Parse judges the rest.
type scanner struct {
	depth    int
	inString bool
	escaped  bool
	started  bool
}

// feed looks at the next bytes. It returns how many belong to the value, and
// whether the value ends there. ErrNotObject: the input begins with something
// that is neither an object nor an array.
func (s *scanner) feed(b []byte) (int, bool, error) {
	quote := -1 // the next quote from i on, when it is not behind i
	for i := 0; i < len(b); i++ {
		if s.inString {
			if s.escaped {
				s.escaped = false
				continue
			}
			// Strings are nearly all there is of a large payload: to their next quote
			// or backslash in one step, each byte looked at once for either.
			if quote < i {
				quote = next(b, i, '"')
			}
			if escape := next(b[:quote], i, '\\'); escape < quote {
				i, s.escaped = escape, true
			} else if i = quote; quote < len(b) {
				s.inString = false
			}
			continue
		}
		c := b[i]
		switch c {
		case '"':
			s.inString = s.started
		case '{', '[':
			s.depth++
			s.started = true
			continue
		case '}', ']':
			s.depth--
			if s.started && s.depth <= 0 {
				return i + 1, true, nil
			}
		case ' ', '\t', '\n', '\r':
			continue
		}
		if !s.started {
			return i, false, ErrNotObject
		}
	}
	return len(b), false, nil
}

// next is where c is in b from i on; b's end when it is nowhere.
func next(b []byte, i int, c byte) int {
	if n := bytes.IndexByte(b[i:], c); n >= 0 {
		return i + n
	}
	return len(b)
}

// Read takes the first JSON object or array from r and stops at its end, also
// when r stays open (hard case BR-04). An error of r comes with ErrTruncated.
// Whatever the error, everything up to it was taken from r; the caller drains
// the rest, so that the writer never meets a closed pipe (BR-05).
func Read(r io.Reader) ([]byte, error) {
	buf := make([]byte, 0, 16<<10)
	var scan scanner
	for {
		if len(buf) == cap(buf) {
			if len(buf) >= MaxBytes {
				return nil, ErrTooLarge
			}
			// Growing fourfold keeps a payload of megabytes to a few copies.
			grown := make([]byte, len(buf), min(4*cap(buf), MaxBytes))
			copy(grown, buf)
			buf = grown
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		from := len(buf)
		buf = buf[:from+n]
		taken, done, scanErr := scan.feed(buf[from:])
		switch {
		case scanErr != nil:
			return nil, scanErr
		case done:
			return buf[:from+taken], nil
		case errors.Is(err, io.EOF) && !scan.started:
			return nil, ErrEmpty
		case errors.Is(err, io.EOF):
			return nil, ErrTruncated
		case err != nil:
			return nil, errors.Join(ErrTruncated, err)
		}
	}
}
