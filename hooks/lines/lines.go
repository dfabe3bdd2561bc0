// Package lines reads a file line by line, in memory bounded by the longest line
// that can be of use, and says where each line is.
package lines

import (
	"bytes"
	"errors"
	"io"
)

// Line is one line.
type Line struct {
	// Text is the line without its newline; only valid until the next call. nil for
	// one longer than the reader's Longest.
	Text []byte
	// At is where the line begins, Size its length with the newline, in bytes.
	At, Size int64
}

// ErrUnterminated is the end of input inside a line.
var ErrUnterminated = errors.New("unterminated line")

// Reader reads lines. Set Longest, and begin with Reset.
type Reader struct {
	// Longest is the longest line that is kept, in bytes: a longer one is passed over.
	Longest int
	// Keep is the largest buffer that stays from one input to the next, in bytes.
	Keep int

	r        io.Reader
	buf      []byte
	from, to int // unread bytes in buf
	at       int64
}

// Reset begins anew with r, whose first byte is at that offset.
func (l *Reader) Reset(r io.Reader, at int64) {
	if len(l.buf) > l.Keep {
		l.buf = nil
	}
	l.r, l.from, l.to, l.at = r, 0, 0, at
}

// Next returns the next line. io.EOF: the input is at its end. ErrUnterminated: it
// ends inside the line that is returned. Any other error is the input's own.
func (l *Reader) Next() (Line, error) {
	searched, skipped := 0, int64(0)
	for {
		if i := bytes.IndexByte(l.buf[l.from+searched:l.to], '\n'); i >= 0 {
			end := l.from + searched + i
			ln := Line{Text: l.buf[l.from:end], At: l.at, Size: skipped + int64(end-l.from) + 1}
			if skipped > 0 {
				ln.Text = nil
			}
			l.from = end + 1
			l.at += ln.Size
			return ln, nil
		}
		searched = l.to - l.from
		if searched > l.Longest {
			skipped += int64(searched)
			l.from, l.to, searched = 0, 0, 0
		}
		if err := l.fill(); err != nil {
			rest := Line{Text: l.buf[l.from:l.to], At: l.at, Size: skipped + int64(l.to-l.from)}
			if skipped > 0 {
				rest.Text = nil
			}
			if errors.Is(err, io.EOF) && rest.Size > 0 {
				return rest, ErrUnterminated
			}
			return rest, err
		}
	}
}

// fill reads more input behind the unread bytes.
func (l *Reader) fill() error {
	if l.from > 0 {
		copy(l.buf, l.buf[l.from:l.to])
		l.to -= l.from
		l.from = 0
	}
	if l.to == len(l.buf) {
		grown := make([]byte, max(64<<10, 2*len(l.buf)))
		copy(grown, l.buf[:l.to])
		l.buf = grown
	}
	for range 100 {
		n, err := l.r.Read(l.buf[l.to:])
		l.to += n
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}
