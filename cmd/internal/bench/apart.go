package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"ways/hooks/index"
	"ways/hooks/launch"
	"ways/hooks/payload"
	"ways/hooks/spool"
)

const (
	// apartRuns is how often each part is run; enough for a median.
	apartRuns = 2000
	// apartFrames is how many frames the spool of the append has before.
	apartFrames = 100
)

// apart times the parts of a hook in this process, without what starting a
// process costs. h is a home whose index was compiled; dir is for a spool.
func apart(dir string, h home, c call) ([]timing, error) {
	path := h.dirs.Index(h.project())
	idx, err := index.Read(path)
	if err != nil {
		return nil, err
	}
	small, large := c.numbered(0), c.large(0)
	at := filepath.Join(dir, "sessions", session)
	if err := fillSpool(at, apartFrames, 0); err != nil {
		return nil, err
	}
	lock, err := launch.TryLock(at)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	bell, err := launch.Listen(at)
	if err != nil {
		return nil, err
	}
	defer bell.Close()
	parts := []struct {
		name string
		runs int
		do   func() error
	}{
		{fmt.Sprintf("read a payload of %s and parse it", bytesOf(len(small))), apartRuns, func() error { return parseAll(small) }},
		{fmt.Sprintf("the same of %s", bytesOf(len(large))), apartRuns / 20, func() error { return parseAll(large) }},
		{fmt.Sprintf("read an index of %d sensor files", sensorFiles), apartRuns, func() error {
			_, err := index.Read(path)
			return err
		}},
		{fmt.Sprintf("stat its %d files and directories", len(idx.Inputs)), apartRuns, func() error {
			if changed := idx.Stale(h.project()); changed != "" {
				return errors.New("changed meanwhile: " + changed)
			}
			return nil
		}},
		{"append a record under the lock", apartRuns, func() error { return fillSpool(at, 1, 0) }},
		{"find the dispatcher's lock taken, and ring its bell", apartRuns, func() error {
			if _, err := launch.TryLock(at); !errors.Is(err, launch.ErrRunning) {
				return fmt.Errorf("a lock that is held was to be had: %w", err)
			}
			launch.Wake(at, launch.Appended)
			return nil
		}},
	}
	var timings []timing
	for _, part := range parts {
		t := timing{name: part.name}
		for range part.runs {
			start := time.Now()
			if err := part.do(); err != nil {
				return nil, fmt.Errorf("%s: %w", part.name, err)
			}
			t.runs = append(t.runs, time.Since(start))
		}
		timings = append(timings, t)
	}
	return timings, nil
}

func parseAll(raw []byte) error {
	whole, err := payload.Read(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	_, err = payload.Parse(whole)
	return err
}

func bytesOf(n int) string {
	if n < 1<<20 {
		return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.0f MB", float64(n)/(1<<20))
}

// recordDraft is a record around its number.
type recordDraft struct{ head, tail string }

func (d recordDraft) Append(dst []byte, seq uint64) []byte {
	return append(strconv.AppendUint(append(dst, d.head...), seq, 10), d.tail...)
}

func (d recordDraft) Size() int { return len(d.head) + len(d.tail) }

// fillSpool appends n short records to a session's spool, and makes it.
func fillSpool(dir string, n int, generation uint64) error {
	if err := os.MkdirAll(filepath.Dir(filepath.Dir(dir)), 0o700); err != nil {
		return err
	}
	one := recordDraft{
		`{"v":1,"section":"tool_call","event":"PreToolUse","source":"hook","ts":"2026-11-30T21:01:18.749763504Z","session":"` + session + `","seq":`,
		`,"agent_id":"main","agent_type":"main","project":"/home/dev/proj","cwd":"/home/dev/proj","data":{"id":"toolu_1","name":"Read","input":{"file_path":"a.txt"}}}`,
	}
	batch := make([]spool.Draft, 0, 10_000)
	for n > 0 {
		batch = batch[:0]
		for range min(n, cap(batch)) {
			batch = append(batch, one)
		}
		n -= len(batch)
		_, err := spool.Append(dir, spool.Request{
			Generation: generation, Now: time.Now(), Wait: time.Second, Build: func(bool) []spool.Draft { return batch },
		})
		if err != nil {
			return err
		}
	}
	return nil
}
