package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// consumer is what records arrive at.
type consumer interface {
	// wait returns how many different records came, once n did; with an error
	// when ctx is over before.
	wait(ctx context.Context, n int) (int, error)
	// result is what came, and how many lines are torn.
	result() (report, int, error)
	close() error
}

// watch follows a file that one of the sides writes, and notes when which record
// was there.
type watch struct {
	path   string
	stream stream
	otlp   bool
	stop   context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex
	came map[int]time.Time
	err  error
	more chan struct{}
}

// atOnce, in place of a time, is when something in the file's directory changes.
const atOnce = time.Duration(0)

// watchFile looks at the file every so often, or atOnce; a file that is not there
// yet is empty. otlp says that the Collector writes it.
func watchFile(path string, s stream, otlp bool, every time.Duration) (*watch, error) {
	ring, quit, err := ringing(filepath.Dir(path), every)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	w := &watch{
		path: path, stream: s, otlp: otlp, stop: stop, done: make(chan struct{}),
		came: map[int]time.Time{}, more: make(chan struct{}),
	}
	go w.run(ctx, ring, quit)
	return w, nil
}

// ringing returns a channel that has a value when a file should be looked at.
func ringing(dir string, every time.Duration) (<-chan time.Time, func(), error) {
	if every == atOnce {
		return changes(dir)
	}
	tick := time.NewTicker(every)
	return tick.C, tick.Stop, nil
}

func (w *watch) run(ctx context.Context, ring <-chan time.Time, quit func()) {
	defer close(w.done)
	defer quit()
	mark := marker()
	if w.otlp {
		// There, a record is a string.
		quoted, _ := json.Marshal(string(mark))
		mark = quoted[1 : len(quoted)-1]
	}
	scan := scanner{mark: mark}
	buf := make([]byte, 1<<20)
	var f *os.File
	for ctx.Err() == nil {
		var err error
		n := 0
		if f == nil {
			f, err = os.Open(w.path)
		}
		if err == nil {
			n, err = f.Read(buf)
		}
		if n > 0 {
			w.note(scan.next(buf[:n]), time.Now())
			continue // there may be more
		}
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, fs.ErrNotExist) {
			w.fail(err)
			return
		}
		select {
		case <-ctx.Done():
		case <-ring:
		}
	}
	if f != nil {
		f.Close()
	}
}

func (w *watch) note(seqs []int, at time.Time) {
	if len(seqs) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, seq := range seqs {
		if _, there := w.came[seq]; !there {
			w.came[seq] = at
		}
	}
	close(w.more)
	w.more = make(chan struct{})
}

func (w *watch) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	close(w.more)
	w.more = make(chan struct{})
}

func (w *watch) wait(ctx context.Context, n int) (int, error) {
	for {
		w.mu.Lock()
		have, err, more := len(w.came), w.err, w.more
		w.mu.Unlock()
		if have >= n || err != nil {
			return have, err
		}
		select {
		case <-ctx.Done():
			return have, ctx.Err()
		case <-more:
		}
	}
}

// result reads the file once more, from its beginning and as what it is.
func (w *watch) result() (report, int, error) {
	came, torn, err := w.stream.readFile(w.path, w.otlp)
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, a := range came {
		came[i].At = w.came[a.Seq]
	}
	return report{Came: came}, torn, errors.Join(err, w.err)
}

func (w *watch) close() error {
	w.stop()
	<-w.done
	return nil
}

// scanner finds numbered records in text that comes in pieces.
type scanner struct {
	mark, rest []byte
}

// next returns the numbers of the records that the piece completes the numbers of.
func (s *scanner) next(piece []byte) []int {
	text := append(s.rest, piece...)
	var seqs []int
	for {
		i := bytes.Index(text, s.mark)
		if i < 0 {
			// What may be the beginning of a mark stays.
			text = text[max(0, len(text)-len(s.mark)+1):]
			break
		}
		seq, whole := number(text[i+len(s.mark):])
		if !whole && len(text)-i < len(s.mark)+20 {
			text = text[i:]
			break
		}
		seqs = append(seqs, seq)
		text = text[i+len(s.mark):]
	}
	s.rest = bytes.Clone(text)
	return seqs
}
