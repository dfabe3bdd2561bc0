package spool

import (
	"bytes"
	"errors"
	"io"
)

// line is one line of a segment.
type line struct {
	// text is the line without its newline; only valid until the next call. nil
	// for a line longer than any frame.
	text []byte
	// at is where the line begins, counted from where reading began; size is
	// its length with the newline.
	at, size int64
}

// errUnterminated is the end of input inside a line.
var errUnterminated = errors.New("unterminated line")

// lines reads lines of any length in memory bounded by the longest frame.
type lines struct {
	r        io.Reader
	buf      []byte
	from, to int // unread bytes in buf
	at       int64
}

func newLines(r io.Reader) *lines { return &lines{r: r} }

// reset begins anew with r, keeping the buffer unless it grew for a giant.
func (l *lines) reset(r io.Reader) {
	if len(l.buf) > 1<<20 {
		l.buf = nil
	}
	l.r, l.from, l.to, l.at = r, 0, 0, 0
}

// next returns the next line. io.EOF at the end of input; errUnterminated, with
// the rest, when the input ends inside a line.
func (l *lines) next() (line, error) {
	searched, skipped := 0, int64(0)
	for {
		if i := bytes.IndexByte(l.buf[l.from+searched:l.to], '\n'); i >= 0 {
			end := l.from + searched + i
			ln := line{text: l.buf[l.from:end], at: l.at, size: skipped + int64(end-l.from) + 1}
			if skipped > 0 {
				ln.text = nil
			}
			l.from = end + 1
			l.at += ln.size
			return ln, nil
		}
		searched = l.to - l.from
		if searched > MaxFrame+frameOverhead {
			// No frame is that long: pass over it without keeping it.
			skipped += int64(searched)
			l.from, l.to, searched = 0, 0, 0
		}
		if err := l.fill(); err != nil {
			rest := line{text: l.buf[l.from:l.to], at: l.at, size: skipped + int64(l.to-l.from)}
			if skipped > 0 {
				rest.text = nil
			}
			if errors.Is(err, io.EOF) && rest.size > 0 {
				return rest, errUnterminated
			}
			return rest, err
		}
	}
}

// fill reads more input behind the unread bytes.
func (l *lines) fill() error {
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
