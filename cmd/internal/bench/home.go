package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"ways/hooks/dirs"
	"ways/hooks/launch"
)

// drainTime bounds the wait for a dispatcher to deliver what is left and end.
const drainTime = 60 * time.Second

// home is a user's home with sensor files in it.
type home struct {
	root string
	dirs dirs.Dirs
	tail *tail
}

// newHome makes a home with n sensor files below root. The first one's rule
// selects section, the others session_end.
func newHome(root string, n int, section string) (home, error) {
	h := home{root: root}
	d, err := dirs.From(func(name string) string {
		if name == "HOME" {
			return root
		}
		return ""
	})
	if err != nil {
		return home{}, err
	}
	h.dirs = d
	h.tail = &tail{path: h.log()}
	for _, dir := range []string{d.Sensors(), h.project()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return home{}, err
		}
	}
	for i := range n {
		log := h.log()
		if i > 0 {
			section = "session_end"
			log = filepath.Join(root, fmt.Sprintf("other-%03d.jsonl", i))
		}
		name := fmt.Sprintf("bench-%03d", i)
		text := fmt.Sprintf(`spec: 1
kind: ways
name: %s
description: One of the sensor files of a benchmark.
enabled: true
rules:
  - name: log
    enabled: true
    sections: [%s]
    dispatch:
      file: {path: %q, format: jsonl}
    mode: async
`, name, section, log)
		if err := os.WriteFile(filepath.Join(d.Sensors(), name+".yaml"), []byte(text), 0o600); err != nil {
			return home{}, err
		}
	}
	return h, nil
}

func (h home) project() string { return filepath.Join(h.root, "project") }

// log is the file of the rule that selects.
func (h home) log() string { return filepath.Join(h.root, "selected.jsonl") }

func (h home) env() []string {
	return []string{"HOME=" + h.root, "PATH=" + os.Getenv("PATH"), "CLAUDE_PROJECT_DIR=" + h.project()}
}

// lineTime bounds the wait for a line.
const lineTime = 20 * time.Second

// await returns when the log of the rule that selects has that many lines.
func (h home) await(ctx context.Context, lines int) error {
	deadline := time.Now().Add(lineTime)
	tick := time.NewTicker(200 * time.Microsecond)
	defer tick.Stop()
	for {
		got, err := h.tail.count()
		switch {
		case err != nil || got >= lines:
			return err
		case time.Now().After(deadline):
			return fmt.Errorf("%s has %d lines and not %d, after %s", h.log(), got, lines, lineTime)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// waitIdle returns once no dispatcher runs for the session.
func (h home) waitIdle(ctx context.Context, session string) error {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		lock, err := launch.TryLock(h.dirs.Session(session))
		switch {
		case err == nil:
			return launch.Release(lock)
		case errors.Is(err, fs.ErrNotExist):
			return nil // it gave the spool back
		case !errors.Is(err, launch.ErrRunning):
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the dispatcher still runs %s after the session's end", drainTime)
		case <-tick.C:
		}
	}
}

// tail counts the lines of a file that grows.
type tail struct {
	path  string
	at    int64
	lines int
}

// count reads what came since the last call. A file that is not there has no
// lines.
func (t *tail) count() (int, error) {
	info, err := os.Stat(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return t.lines, nil
	}
	if err != nil || info.Size() == t.at {
		return t.lines, err
	}
	f, err := os.Open(t.path)
	if err != nil {
		return t.lines, err
	}
	defer f.Close()
	buf := make([]byte, 256<<10)
	for {
		n, err := f.ReadAt(buf, t.at)
		t.lines += bytes.Count(buf[:n], []byte{'\n'})
		t.at += int64(n)
		if errors.Is(err, io.EOF) {
			return t.lines, nil
		}
		if err != nil {
			return t.lines, err
		}
	}
}
