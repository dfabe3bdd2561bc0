package logs

import (
	"bufio"
	"container/heap"
	"errors"
	"io"
	"os"
	"slices"
	"syscall"
	"time"
)

// maxLine bounds one line; what is longer is taken apart, and no JSON then.
const maxLine = 1 << 20

// lookahead is how many lines of one file are put in order: several processes may
// write one file, and be late by a few lines.
const lookahead = 16

// source is one log file, read in the order of time.
type source struct {
	path  string
	first time.Time // of its first line
	file  *os.File
	info  os.FileInfo // of file
	in    *bufio.Reader
	last  time.Time
	ahead []Line // in order
	// read is how much was read, as far as whole lines go.
	read int64
	err  error
}

// openLog opens a log for reading. Nothing but a regular file is one.
func openLog(path string) (*os.File, os.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("no regular file")
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// firstTime is the time of a file's first line that has one.
func firstTime(path string) (time.Time, error) {
	f, _, err := openLog(path)
	if err != nil {
		return time.Time{}, err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	for range lookahead {
		raw, err := in.ReadSlice('\n')
		if l, ok := parse(raw[:max(len(raw)-1, 0)]); ok && !l.Time.IsZero() {
			return l.Time, nil
		}
		if err != nil {
			break
		}
	}
	return time.Time{}, nil
}

// next is the source's next line; ok is false at its end.
func (s *source) next() (l Line, ok bool) {
	if s.in == nil && s.err == nil {
		if s.file, s.info, s.err = openLog(s.path); s.err == nil {
			s.in = bufio.NewReaderSize(s.file, 64<<10)
		}
	}
	for s.err == nil && len(s.ahead) < lookahead {
		raw, err := readLine(s.in)
		if errors.Is(err, io.EOF) {
			s.err = err // what stands behind the last newline is being written
			break
		}
		if err != nil {
			s.err = err
			break
		}
		s.read += int64(len(raw))
		if len(raw) <= 1 {
			continue
		}
		l := Parse(raw, s.path, s.last)
		s.last = l.Time
		at, _ := slices.BinarySearchFunc(s.ahead, l, func(a, b Line) int {
			if c := a.Time.Compare(b.Time); c != 0 {
				return c
			}
			return -1 // behind its equals
		})
		s.ahead = slices.Insert(s.ahead, at, l)
	}
	if len(s.ahead) == 0 {
		s.close()
		return Line{}, false
	}
	l, s.ahead = s.ahead[0], s.ahead[1:]
	return l, true
}

func (s *source) close() {
	if s.file != nil {
		s.file.Close()
		s.file = nil
	}
}

// readLine reads to the next newline, or maxLine bytes.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(line) < maxLine:
		case errors.Is(err, bufio.ErrBufferFull):
			return line, nil
		default:
			return line, err
		}
	}
}

// queue orders opened sources by the line each has in hand.
type queue []*entry

type entry struct {
	*source
	line Line
}

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].line.Time.Before(q[j].line.Time) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(*entry)) }
func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

// merge hands the lines of all sources to emit in the order of time. A source is
// opened when its first line's turn comes and closed at its end, so that open
// files are as many as sessions ran at once.
func merge(sources []*source, emit func(Line) error) error {
	slices.SortStableFunc(sources, func(a, b *source) int { return a.first.Compare(b.first) })
	defer func() {
		for _, s := range sources {
			s.close()
		}
	}()
	var open queue
	add := func(s *source) {
		if l, ok := s.next(); ok {
			heap.Push(&open, &entry{s, l})
		}
	}
	waiting := sources
	for len(waiting) > 0 || len(open) > 0 {
		for len(waiting) > 0 && (len(open) == 0 || !waiting[0].first.After(open[0].line.Time)) {
			add(waiting[0])
			waiting = waiting[1:]
		}
		if len(open) == 0 {
			continue
		}
		top := open[0]
		if err := emit(top.line); err != nil {
			return err
		}
		if l, ok := top.next(); ok {
			top.line = l
			heap.Fix(&open, 0)
		} else {
			heap.Pop(&open)
		}
	}
	return nil
}
