package transcript

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// MaxLine is the longest line that is read. A longer one is passed over and
// reported: no record could hold what is in it.
const MaxLine = 64 << 20

// keepBuffer is how large a buffer stays between two reads.
const keepBuffer = 256 << 10

// errEndless is the reason for a line longer than MaxLine.
var errEndless = errors.New("longer than a line can be")

// errTorn is the reason for a last line without an end, once nobody writes any
// more.
var errTorn = errors.New("cut off in the middle")

// lines reads a file line by line from an offset on, in memory bounded by the
// longest line.
type lines struct {
	f   *os.File
	buf []byte
	// from and to are the unread bytes in buf; at is where they are in the file.
	from, to int
	at       int64
}

// next returns the next whole line without its newline, where it begins and how
// long it is with it. io.EOF: there is none yet; rest is then what stands behind
// the last newline. The line is valid until the next call; it is nil when it is
// too long.
func (l *lines) next() (line []byte, at, size int64, err error) {
	searched, skipped := 0, int64(0)
	for {
		if i := bytes.IndexByte(l.buf[l.from+searched:l.to], '\n'); i >= 0 {
			end := l.from + searched + i
			line, at, size = l.buf[l.from:end], l.at, skipped+int64(end-l.from)+1
			if skipped > 0 {
				line = nil
			}
			l.from = end + 1
			l.at += size
			return line, at, size, nil
		}
		searched = l.to - l.from
		if searched > MaxLine {
			skipped += int64(searched)
			l.from, l.to, searched = 0, 0, 0
		}
		if err := l.fill(); err != nil {
			if skipped == 0 {
				line = l.buf[l.from:l.to]
			}
			return line, l.at, skipped + int64(l.to-l.from), err
		}
	}
}

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
	n, err := l.f.Read(l.buf[l.to:])
	l.to += n
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// reset begins anew with a file, keeping a buffer that is not too large.
func (l *lines) reset(f *os.File, at int64) {
	if len(l.buf) > keepBuffer {
		l.buf = nil
	}
	l.f, l.from, l.to, l.at = f, 0, 0, at
}
