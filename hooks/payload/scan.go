package payload

import (
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
	for i := 0; i < len(b); i++ {
		c := b[i]
		if s.inString {
			switch {
			case s.escaped:
				s.escaped = false
			case c == '\\':
				s.escaped = true
			case c == '"':
				s.inString = false
			}
			continue
		}
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
