package counters

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// Life is the counters of one run of a session's dispatcher. It is one
// goroutine's.
type Life struct {
	// Session is what is counted; the owner changes it and calls Save.
	Session
	store Store
	owner string
	name  string
	// saved is what the file holds; nil before the first save.
	saved []byte
	// seen is the totals' file as it was at the last save: a fold makes a new one.
	seen os.FileInfo
}

// Open begins a life with nothing counted; owner is the name of the session's
// directory. Nothing is written yet.
func (s Store) Open(owner, session string, now time.Time) *Life {
	l := &Life{store: s, owner: owner, Session: Session{Session: session, PID: os.Getpid(), Counts: NewCounts(now)}}
	l.rename(now)
	return l
}

func (l *Life) rename(now time.Time) {
	l.name = fileName(l.owner, now.UnixNano(), l.PID)
}

// Save writes the counters. When its file was folded meanwhile, what is in the
// totals already is taken off first, and the rest goes to a new file.
func (l *Life) Save(now time.Time) error {
	if err := os.MkdirAll(l.store.dir(), 0o700); err != nil {
		return fmt.Errorf("save counters: %w", err)
	}
	lock, err := l.store.lock(syscall.LOCK_SH)
	if err != nil {
		return err
	}
	defer lock.Close()
	path := filepath.Join(l.store.dir(), l.name)
	if l.saved != nil {
		if l.folded(path) {
			var before Session
			if err := json.Unmarshal(l.saved, &before); err != nil {
				return fmt.Errorf("counters: %w", err)
			}
			l.subtract(before.Counts)
			l.saved = nil
			l.rename(now)
			path = filepath.Join(l.store.dir(), l.name)
		}
	}
	l.Updated = now.UTC()
	data, err := json.Marshal(l.Session)
	if err != nil {
		return fmt.Errorf("counters: %w", err)
	}
	done, err := replace(path, json.RawMessage(data))
	if done {
		l.saved = data
	}
	return err
}

// folded reports whether the totals hold what the file did. The caller holds the
// lock. A folder that died before it could remove the file has named it.
func (l *Life) folded(path string) bool {
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return true
	}
	now, err := os.Lstat(filepath.Join(l.store.state, totalsName))
	if err != nil || (l.seen != nil && os.SameFile(now, l.seen) && now.ModTime().Equal(l.seen.ModTime())) {
		return false
	}
	t, err := l.store.totals()
	if err != nil {
		return false // nobody can fold either
	}
	l.seen = now
	return slices.Contains(t.Folded, l.name)
}

// Begin goes on from what earlier lives of the same session left: their numbers
// are folded, their marks taken over. Call it before anything is counted. Files of
// other sessions are left alone: only their own next dispatcher knows what of
// theirs will come again. What killed writers of any session left unfinished is
// removed.
func (l *Life) Begin(now time.Time) error {
	names, strays, err := l.store.names()
	if err != nil {
		return err
	}
	var fold []string
	for _, name := range names {
		owner, _, _ := cutName(name)
		if owner != l.owner || name == l.name {
			continue
		}
		fold = append(fold, name)
		if f, err := l.store.read(name); err == nil {
			l.Seq = max(l.Seq, f.Seq)
			for rule, n := range f.Marks {
				l.Mark(rule, n)
			}
		}
	}
	if len(fold) == 0 && !strays {
		return nil
	}
	return l.store.Fold(now, fold...)
}

// End saves and, when nothing waits, folds the file: a session that is over costs
// nothing from then on.
func (l *Life) End(now time.Time) error {
	if err := l.Save(now); err != nil {
		return err
	}
	if waiting, _ := l.Waiting(); waiting > 0 {
		return nil
	}
	return l.store.Fold(now, l.name)
}
