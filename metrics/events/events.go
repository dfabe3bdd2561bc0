// Package events is the event log, events.jsonl: one JSON object a line, shared
// by every process of ways on this account. Every value is a string.
package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
)

// The events of sensors.
const (
	DispatcherStart = "dispatcher_start"
	DispatcherEnd   = "dispatcher_end"
	Timeout         = "sensor_timeout"
	Kill            = "sensor_kill"
	Refusal         = "sensor_refusal"
	Failure         = "sensor_failure"
	Drop            = "sensor_drop"
	Spool           = "sensor_spool"
	Damage          = "sensor_damage"
	Panic           = "sensor_panic"
	Retry           = "sensor_retry"
	Pause           = "sensor_pause"
	DeadLetter      = "sensor_dead_letter"
	Gap             = "sensor_gap"
)

// Event is one line. Empty fields are left out; TS is set by Append when empty.
type Event struct {
	TS      string `json:"ts"`
	Event   string `json:"event"`
	Sensor  string `json:"sensor,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Session string `json:"session,omitempty"`
	Project string `json:"project,omitempty"`
	// Seq is the first record it is about, Count how many there were since the
	// event before of the same kind.
	Seq      string `json:"seq,omitempty"`
	Count    string `json:"count,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Duration string `json:"duration_ms,omitempty"`
	Detail   string `json:"detail,omitempty"`
}

// Log is the event log of a state directory.
type Log struct{ path string }

// NewLog returns the log in a state directory; it is made at the first event.
func NewLog(state string) Log { return Log{filepath.Join(state, Name)} }

// Append writes events, as one write of whole lines. Errors name the file; the
// events are then lost, and the caller's counters still have them.
func (l Log) Append(now time.Time, events ...Event) error {
	var lines []byte
	for _, e := range events {
		if e.TS == "" {
			e.TS = now.UTC().Format(time.RFC3339Nano)
		}
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	if len(lines) == 0 {
		return nil
	}
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return fmt.Errorf("event log: %w", err)
	}
	defer f.Close()
	// The log itself is locked: it is ours alone, and is compacted in place.
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("lock the event log: %w", err)
		}
	}
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("event log: %w", err)
	}
	size := info.Size()
	if size+int64(len(lines)) > MaxBytes {
		if size, err = compact(f, size); err != nil {
			return fmt.Errorf("compact the event log: %w", err)
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
		return fmt.Errorf("event log: %w", err)
	}
	return nil
}

// compact keeps the newest whole lines, KeepBytes at most. It rewrites the file
// in place, under its lock, so that a writer that has it open goes on in it.
func compact(f *os.File, size int64) (int64, error) {
	tail := make([]byte, min(KeepBytes, size))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return size, err
	}
	if int64(len(tail)) < size {
		_, tail, _ = bytes.Cut(tail, []byte{'\n'})
	}
	if err := f.Truncate(0); err != nil {
		return size, err
	}
	_, err := f.Write(tail)
	return int64(len(tail)), err
}
