package logs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ways/cmd/internal/dispatch"
	"ways/hooks/dirs"
)

// Times of following.
const (
	// pollEvery is how often the logs of sessions that are at work are looked at.
	pollEvery = 200 * time.Millisecond
	// sweepEvery is how often all others are.
	sweepEvery = 10 * time.Second
	// warm is how long a session counts as at work after it was seen so.
	warm = 30 * time.Second
)

// tail is how far one log was read.
type tail struct {
	path string
	info os.FileInfo // of the file that was read, which may have another name by now
	at   int64
	last time.Time
}

// follower goes on where merge has ended. It polls: a listing of the sessions at
// work and a stat of each of their logs, five times a second, works on every file
// system and needs no watch for each of ten thousand directories.
type follower struct {
	d       dirs.Dirs
	only    string
	tails   map[string]*tail
	warm    map[string]time.Time // session directories at work
	known   map[string]bool      // session directories seen at the last sweep
	swept   time.Time
	changed time.Time // of the directory of sessions
}

// run emits what is added to the logs until ctx ends or gone says that nobody
// reads.
func (f *follower) run(ctx context.Context, gone func() bool, emit func(Line) error) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		lines, err := f.poll(time.Now())
		if err != nil {
			return err
		}
		for _, l := range lines {
			if err := emit(l); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if gone() {
				return nil
			}
		}
	}
}

// poll reads what was added since the last time, in the order of time.
func (f *follower) poll(now time.Time) ([]Line, error) {
	dirs, err := f.atWork(now)
	if err != nil {
		return nil, err
	}
	var lines []Line
	for _, path := range hookLogs(f.d)[1:] {
		lines = append(lines, f.read(path, path+".1")...)
	}
	for _, dir := range dirs {
		for _, name := range live() {
			lines = append(lines, f.read(filepath.Join(dir, name), "")...)
		}
	}
	slices.SortStableFunc(lines, func(a, b Line) int { return a.Time.Compare(b.Time) })
	return lines, nil
}

// atWork lists the directories whose logs may have grown: those with a dispatcher
// or something left, those that are new, and now and then all.
func (f *follower) atWork(now time.Time) ([]string, error) {
	if f.only != "" {
		return []string{f.d.Session(f.only)}, nil
	}
	marked, err := dispatch.Marked(f.d)
	if err != nil {
		return nil, err
	}
	for _, name := range marked {
		f.warm[filepath.Join(f.d.Sessions(), name)] = now
	}
	var all []string
	info, err := os.Stat(f.d.Sessions())
	fresh := err == nil && !info.ModTime().Equal(f.changed)
	if sweep := now.Sub(f.swept) >= sweepEvery; sweep || fresh {
		if all, err = sessionDirs(f.d, ""); err != nil {
			return nil, err
		}
		for _, dir := range all {
			if !f.known[dir] {
				f.known[dir] = true
				f.warm[dir] = now
			}
		}
		if info != nil {
			f.changed = info.ModTime()
		}
		if sweep {
			f.swept = now
			return all, nil
		}
	}
	var dirs []string
	for dir, seen := range f.warm {
		if now.Sub(seen) > warm {
			delete(f.warm, dir)
			continue
		}
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	return dirs, nil
}

// read returns the whole lines that were added to a log. A log that was put aside
// is read to its end first, under the name it has then.
func (f *follower) read(path, aside string) []Line {
	info, err := os.Lstat(path)
	t := f.tails[path]
	if err != nil || (t != nil && os.SameFile(info, t.info) && info.Size() == t.at) {
		return nil
	}
	var lines []Line
	if t != nil && !os.SameFile(info, t.info) {
		if old := f.find(t, aside); old != "" {
			lines = t.drain(old)
		}
		t = nil
	}
	if t == nil {
		t = &tail{path: path, info: info}
		f.tails[path] = t
	}
	return append(lines, t.drain(path)...)
}

// find looks for the file that a tail has read, which was renamed.
func (f *follower) find(t *tail, aside string) string {
	candidates := []string{aside}
	if aside == "" {
		stem := strings.TrimSuffix(t.path, ".log")
		candidates, _ = filepath.Glob(escape(stem) + "-*.log")
	}
	for _, path := range candidates {
		if info, err := os.Lstat(path); err == nil && os.SameFile(info, t.info) {
			return path
		}
	}
	return ""
}

// escape takes the meaning from what filepath.Glob would take for a pattern.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// drain reads whole lines from where the tail is.
func (t *tail) drain(path string) []Line {
	f, info, err := openLog(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if !os.SameFile(info, t.info) {
		return nil // renamed this moment; the next look finds it
	}
	if info.Size() < t.at {
		t.at = 0 // emptied in place
	}
	t.info = info
	if _, err := f.Seek(t.at, io.SeekStart); err != nil {
		return nil
	}
	var lines []Line
	in := bufio.NewReaderSize(f, 64<<10)
	for {
		raw, err := readLine(in)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				return lines
			}
			return lines // behind the last newline a line is being written
		}
		t.at += int64(len(raw))
		if len(bytes.TrimSpace(raw)) == 0 {
			continue
		}
		l := Parse(raw, path, t.last)
		t.last = l.Time
		lines = append(lines, l)
	}
}
