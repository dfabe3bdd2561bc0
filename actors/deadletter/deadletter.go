// Package deadletter keeps the records that an at-least-once rule's consumer
// refused for good, or that grew too old: aside, with the reason, so that they
// hold nothing up and nothing is lost without a word (design §9).
//
// One file a rule, <state>/dead/<sensor>~<rule>.jsonl, one letter a line. The
// record in it is as it would have been sent: masked, unless the rule masks
// nothing.
package deadletter

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"ways/hooks/dirs"
)

// Letter is one record that was put aside.
type Letter struct {
	// ID is the delivery's idempotency key.
	ID      string `json:"id"`
	Rule    string `json:"rule"`
	Session string `json:"session"`
	Seq     uint64 `json:"seq"`
	// At is when it was put aside.
	At time.Time `json:"at"`
	// Reason is a short stable word, Words what happened, without secrets.
	Reason string `json:"reason"`
	Words  string `json:"words"`
	// Attempts is how often it was tried by the dispatcher that gave it up.
	Attempts int `json:"attempts"`
	// Body is the record as it would have been sent.
	Body json.RawMessage `json:"body"`
}

// Store is the dead letters of a state directory.
type Store struct{ dir string }

// NewStore returns the store in a state directory; it is made with its first
// letter.
func NewStore(state string) Store { return Store{filepath.Join(state, "dead")} }

const (
	suffix = ".jsonl"
	// unfinished is behind the name of a file that takes the place of another.
	unfinished = ".tmp"
)

func (s Store) path(rule string) string {
	return filepath.Join(s.dir, strings.ReplaceAll(rule, "/", "~")+suffix)
}

// lock takes the lock of a rule's letters; the file returned holds it.
func (s Store) lock(rule string) (*os.File, error) {
	if err := dirs.MakePrivate(s.dir); err != nil {
		return nil, err
	}
	f, err := dirs.Open(s.path(rule)+".lock", os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err == nil {
			_ = os.Remove(s.path(rule) + unfinished) // a dead writer's copy of letters
			return f, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock the dead letters of %s: %w", rule, err)
		}
	}
}

// Put keeps a letter; when it returns nil, the disk has it.
func (s Store) Put(l Letter) error {
	lock, err := s.lock(l.Rule)
	if err != nil {
		return fmt.Errorf("dead letters: %w", err)
	}
	defer lock.Close()
	line, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("dead letters: %w", err)
	}
	path := s.path(l.Rule)
	f, err := dirs.Open(path, os.O_RDWR|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return fmt.Errorf("dead letters: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("dead letters: %w", err)
	}
	if info.Size() == 0 {
		if err := syncDir(s.dir); err != nil { // its name may be new
			return fmt.Errorf("dead letters: %w", err)
		}
	}
	// The newline in front ends a line that a killed writer left open.
	n, err := f.Write(append(append([]byte{'\n'}, line...), '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		if n > 0 {
			err = errors.Join(err, f.Truncate(info.Size()))
		}
		return fmt.Errorf("dead letters of %s: %w", l.Rule, err)
	}
	return nil
}

// syncDir flushes a directory's names.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// List returns a rule's letters, oldest first. A letter that was put twice, by a
// dispatcher that died in between, is there once. damaged counts lines that are
// no letter; they are kept in the file.
func (s Store) List(rule string) (letters []Letter, damaged int, err error) {
	data, err := dirs.ReadFile(s.path(rule))
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("dead letters: %w", err)
	}
	at := map[string]int{}
	err = eachLine(data, func(line []byte) {
		var l Letter
		if json.Unmarshal(line, &l) != nil || l.ID == "" {
			damaged++
			return
		}
		if i, twice := at[l.ID]; twice {
			letters[i] = l
			return
		}
		at[l.ID] = len(letters)
		letters = append(letters, l)
	})
	return letters, damaged, err
}

func eachLine(data []byte, do func(line []byte)) error {
	lines := bufio.NewReader(bytes.NewReader(data))
	for {
		line, err := lines.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			do(line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Remove takes letters out, by ID. Lines that are no letter stay.
func (s Store) Remove(rule string, ids []string) (int, error) {
	lock, err := s.lock(rule)
	if err != nil {
		return 0, fmt.Errorf("dead letters: %w", err)
	}
	defer lock.Close()
	path := s.path(rule)
	data, err := dirs.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("dead letters: %w", err)
	}
	named := map[string]bool{}
	for _, id := range ids {
		named[id] = true
	}
	removed := map[string]bool{}
	var keep []byte
	err = eachLine(data, func(line []byte) {
		var l Letter
		if json.Unmarshal(line, &l) == nil && named[l.ID] {
			removed[l.ID] = true
			return
		}
		keep = append(append(keep, line...), '\n')
	})
	if err != nil || len(removed) == 0 {
		return 0, err
	}
	if len(keep) == 0 {
		return len(removed), os.Remove(path)
	}
	return len(removed), replace(path, keep)
}

// replace gives a file a new content, whole or not at all.
func replace(path string, data []byte) error {
	tmp := path + unfinished
	dirs.Clear(tmp)
	f, err := dirs.Open(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp)
		return fmt.Errorf("dead letters: %w", err)
	}
	return nil
}

// Rules lists the rules that have letters.
func (s Store) Rules() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var rules []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), suffix); ok {
			rules = append(rules, strings.Replace(name, "~", "/", 1))
		}
	}
	return rules, err
}
