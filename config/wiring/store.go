package wiring

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"ways/hooks/dirs"
	"ways/hooks/temp"
)

// ErrWrite is matched by the error for a settings file, or a file of our own
// beside it, that could not be written. The settings are then as they were,
// or, after a crash while a hard-linked file was written, in the backup.
var ErrWrite = errors.New("write failed")

// Store installs and removes the hook entry in settings files and keeps what it
// needs to undo that in a private directory of ours. The client's directory
// never holds anything of ours but the entry.
type Store struct {
	dir string
	// lockWait bounds the wait for another reconcile.
	lockWait time.Duration
	// beforeWrite runs between reading and writing; for tests of a change made
	// by somebody else in that time.
	beforeWrite func()
}

// NewStore keeps its files in the directory wiring under our state directory.
func NewStore(state string) Store {
	return Store{dir: filepath.Join(state, "wiring"), lockWait: 10 * time.Second, beforeWrite: func() {}}
}

// Outcome says what was done to a settings file, or would be.
type Outcome struct {
	// File is the path that was asked for, Real the file behind its symlinks.
	File, Real string
	Changed    bool
	// Before and After are the texts; nil where there is no file.
	Before, After []byte
	// Added, Updated and Removed name events.
	Added, Updated, Removed []string
	// Restored is true when the file is, to the byte, what it was before the install.
	Restored bool
	// Backup is where Before is kept; empty when nothing was written or there
	// was no file.
	Backup string
}

// attempts bounds how often a change is begun again because the file changed
// under it.
const attempts = 5

// change is what is to be written for one reading of the file.
type change struct {
	Edit
	gone     bool // the file is to be deleted
	restored bool
	ledger   *ledger // nil: no ledger after this
	forget   bool    // a ledger that is there has nothing left to undo
}

// Install applies h to the settings file at path, which is made, 0600, when it
// is missing. With preview nothing is written anywhere. Errors match ErrRefused
// (the file was left as it is) or ErrWrite.
func (s Store) Install(ctx context.Context, path string, h Hook, preview bool) (Outcome, error) {
	return s.change(ctx, path, preview, func(was snapshot, last *ledger) (change, error) {
		edit, err := Apply(was.text, h)
		if err != nil || !edit.Changed {
			return change{Edit: edit}, err
		}
		next := ledger{File: was.real, Result: sum(edit.Settings)}
		if last != nil && was.exists && sum(was.text) == last.Result {
			// Ours and untouched since: what was before stays what it was.
			next.Original, next.Exact, next.original = last.Original, last.Exact, last.original
			next.Made, next.MadeDirs = last.Made, last.MadeDirs
			next.Undo = last.Undo.Then(edit.Undo)
			return change{Edit: edit, ledger: &next}, nil
		}
		before, err := Inspect(was.text, h)
		if err != nil {
			return change{}, err
		}
		next.Original, next.original = sum(was.text), was.text
		next.Exact = len(before.Commands) == 0
		next.Undo = edit.Undo
		switch {
		case !was.exists:
			next.Made = true
			if last != nil {
				next.MadeDirs = last.MadeDirs // the file was deleted, its directory not
			}
		case last != nil && !next.Exact:
			// Edited by its user since our last install, with our entry still in.
			next.Made, next.MadeDirs = last.Made, last.MadeDirs
			next.Undo = last.Undo.Then(edit.Undo)
		}
		return change{Edit: edit, ledger: &next}, nil
	})
}

// Uninstall takes the entry out of the settings file at path. A file that is
// still what Install wrote becomes what it was before, to the byte, which for
// one that Install made means deleted; from any other file only our entry is
// cut. With preview nothing is written. Errors are as those of Install.
func (s Store) Uninstall(ctx context.Context, path string, preview bool) (Outcome, error) {
	return s.change(ctx, path, preview, func(was snapshot, last *ledger) (change, error) {
		if !was.exists {
			return change{forget: true}, nil
		}
		var undo Undo
		if last != nil {
			undo = last.Undo
		}
		edit, err := Remove(was.text, undo)
		if err != nil || !edit.Changed {
			return change{Edit: edit, forget: err == nil}, err
		}
		out := change{Edit: edit}
		if last == nil {
			return out, nil
		}
		if last.Exact && sum(was.text) == last.Result {
			out.Settings, out.restored = last.original, true
		}
		// A file we made and in which nobody has put anything goes with us.
		out.gone = last.Made && isBlank(out.Settings)
		out.restored = out.restored || out.gone
		if out.gone {
			out.ledger = &ledger{MadeDirs: last.MadeDirs}
		}
		return out, nil
	})
}

func (s Store) change(ctx context.Context, path string, preview bool, decide func(snapshot, *ledger) (change, error)) (Outcome, error) {
	for range attempts {
		out, err := s.attempt(ctx, path, preview, decide)
		if errors.Is(err, errRaced) {
			continue
		}
		if err != nil {
			return Outcome{}, fmt.Errorf("%s: %w", path, err)
		}
		return out, nil
	}
	return Outcome{}, fmt.Errorf("%s: %w: %w, %d times in a row; nothing was changed, try again", path, ErrWrite, errRaced, attempts)
}

func (s Store) attempt(ctx context.Context, path string, preview bool, decide func(snapshot, *ledger) (change, error)) (Outcome, error) {
	was, err := take(path)
	if err != nil {
		return Outcome{}, err
	}
	if !preview {
		unlock, err := s.lock(ctx, was.real)
		if err != nil {
			return Outcome{}, fmt.Errorf("%w: %w", ErrWrite, err)
		}
		defer unlock()
		// A killed reconcile left its copy of the settings.
		temp.Sweep(filepath.Dir(was.real))
		temp.Sweep(s.dir)
		// Read again: another reconcile may have been at it until now.
		now, err := take(path)
		if err != nil {
			return Outcome{}, err
		}
		if now.real != was.real {
			return Outcome{}, errRaced
		}
		was = now
	}
	todo, err := decide(was, s.load(was.real))
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{
		File: path, Real: was.real, Changed: todo.Changed,
		Added: todo.Added, Updated: todo.Updated, Removed: todo.Removed, Restored: todo.restored,
	}
	if was.exists {
		out.Before, out.After = was.text, was.text
	}
	if !todo.Changed {
		if todo.forget && !preview {
			if err := s.drop(was.real); err != nil {
				return Outcome{}, fmt.Errorf("%w: %w", ErrWrite, err)
			}
		}
		return out, nil
	}
	out.After = todo.Settings
	if todo.gone {
		out.After = nil
	}
	if err := was.checkWritable(); err != nil || preview {
		return out, err
	}
	if err := s.commit(path, was, todo, &out); err != nil {
		if errors.Is(err, errRaced) {
			return Outcome{}, err
		}
		return Outcome{}, fmt.Errorf("%w: %w", ErrWrite, err)
	}
	return out, nil
}

// commit writes the backup and the ledger first: a crash after them and before
// the settings leaves an install undone, never one that cannot be undone.
func (s Store) commit(path string, was snapshot, todo change, out *Outcome) error {
	if was.exists {
		out.Backup = s.file(was.real, ".backup")
		if err := replaceOwn(out.Backup, was.text); err != nil {
			return err
		}
	}
	removing := len(todo.Removed) > 0
	if !removing {
		if !was.exists {
			made, err := makeDirs(filepath.Dir(was.real))
			if err != nil {
				return err
			}
			todo.ledger.MadeDirs = append(todo.ledger.MadeDirs, made...)
		}
		if err := s.save(was.real, *todo.ledger); err != nil {
			return err
		}
	}
	s.beforeWrite()
	switch {
	case todo.gone:
		if err := was.remove(path, todo.ledger.MadeDirs); err != nil {
			return err
		}
	default:
		if err := was.write(path, todo.Settings); err != nil {
			return err
		}
	}
	if removing {
		return s.drop(was.real)
	}
	return nil
}

// lock takes the settings file's lock, for as long as the process lives or
// until unlock. The kernel drops it with its holder.
func (s Store) lock(ctx context.Context, real string) (unlock func(), err error) {
	if err := dirs.MakePrivate(s.dir); err != nil {
		return nil, err
	}
	path := s.file(real, ".lock")
	f, err := dirs.Open(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.lockWait)
	defer cancel()
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("another reconcile has held %s for %s; try again when it is done", path, s.lockWait)
		}
	}
}
