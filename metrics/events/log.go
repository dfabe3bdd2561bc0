package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Name is the log's file in the state directory.
const Name = "events.jsonl"

// The log is compacted to its newest KeepBytes when it grows past MaxBytes.
const (
	MaxBytes  = 32 << 20
	KeepBytes = 24 << 20
	// slack is how far past MaxBytes it may grow when it cannot be compacted, and
	// how much a compaction frees at least.
	slack = 8 << 20
)

// lockWait is how long an append waits for its turn. The lock is held for
// milliseconds, a second while the log is compacted, unless its holder was stopped.
const lockWait = 5 * time.Second

var (
	// ErrBusy: another process holds the log. The events may be appended again.
	ErrBusy = errors.New("locked by another process")
	// ErrNotRegular: something else is in the log's place.
	ErrNotRegular = errors.New("no regular file")
	// ErrFull: the log is too large, and cannot be compacted.
	ErrFull = errors.New("too large, and not to be compacted")
)

// Log is the event log of a state directory. It is a value; all processes of an
// account append to one file through their own.
type Log struct {
	path             string
	most, keep, room int64
}

// NewLog returns the log in a state directory; it is made at the first event.
func NewLog(state string) Log {
	return Log{filepath.Join(state, Name), MaxBytes, KeepBytes, slack}
}

// Append writes events, as one write of whole lines: all of them or none. Errors
// name the file; nothing was written then.
func (l Log) Append(now time.Time, events ...Event) error {
	var lines []byte
	for _, e := range events {
		if e.TS == "" {
			e.TS = now.UTC().Format(time.RFC3339Nano)
		}
		for _, text := range e.texts() {
			*text = bounded(*text)
		}
		line, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("event log: %w", err)
		}
		lines = append(append(lines, line...), '\n')
	}
	if len(lines) == 0 {
		return nil
	}
	if err := l.append(lines); err != nil {
		return fmt.Errorf("event log %s: %w", l.path, err)
	}
	return nil
}

func (l Log) append(lines []byte) error {
	f, size, err := l.open()
	if err != nil {
		return err
	}
	defer func() { f.Close() }()
	if size+int64(len(lines)) > l.most {
		fresh, n, err := l.compact(f, size)
		switch {
		case err == nil:
			f.Close() // whoever waits for its lock sees that it is not the log any more
			f, size = fresh, n
		case size+int64(len(lines)) > l.most+l.room:
			return fmt.Errorf("%w: %w", ErrFull, err)
		}
	}
	// A writer that died left a line without an end: this one begins its own.
	if size > 0 {
		var last [1]byte
		if _, err := f.ReadAt(last[:], size-1); err == nil && last[0] != '\n' {
			lines = append([]byte{'\n'}, lines...)
		}
	}
	if n, err := f.Write(lines); err != nil {
		if n > 0 {
			err = errors.Join(err, f.Truncate(size))
		}
		return err
	}
	return nil
}

// open opens the log, locked. The lock is on the file itself; a compaction puts
// another one in its place, so what was locked must still be the log.
func (l Log) open() (*os.File, int64, error) {
	until := time.Now().Add(lockWait)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		f, err := os.OpenFile(l.path, os.O_RDWR|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
		if err != nil {
			return nil, 0, err
		}
		info, err := f.Stat()
		if err == nil && !info.Mode().IsRegular() {
			err = ErrNotRegular
		}
		if err != nil {
			f.Close()
			return nil, 0, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			info, err = f.Stat()
			there, gone := os.Lstat(l.path)
			if err == nil && gone == nil && os.SameFile(info, there) {
				return f, info.Size(), nil
			}
		}
		f.Close()
		switch {
		case err != nil && !errors.Is(err, syscall.EINTR) && !errors.Is(err, syscall.EWOULDBLOCK):
			return nil, 0, fmt.Errorf("lock: %w", err)
		case time.Now().After(until):
			return nil, 0, ErrBusy
		}
		time.Sleep(pause)
	}
}

// compact makes a new file of what is kept and puts it in the log's place, locked.
// A process that dies meanwhile leaves the log as it was.
func (l Log) compact(f *os.File, size int64) (*os.File, int64, error) {
	data := make([]byte, size)
	if _, err := f.ReadAt(data, 0); err != nil {
		return nil, 0, err
	}
	kept := keep(data, l.keep)
	tmp := l.path + ".tmp"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, 0, err
	}
	fresh, err := os.OpenFile(tmp, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, 0, err
	}
	_, err = fresh.Write(kept)
	if err == nil {
		err = fresh.Sync() // the old file had spend in it that must not be lost
	}
	if err == nil {
		err = syscall.Flock(int(fresh.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err == nil {
		err = os.Rename(tmp, l.path)
	}
	if err != nil {
		fresh.Close()
		return nil, 0, errors.Join(err, os.Remove(tmp))
	}
	return fresh, int64(len(kept)), nil
}
