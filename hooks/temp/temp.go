// Package temp writes files whole or not at all: under another name first, in the
// directory of the name they are to have. Such a file is locked for as long as its
// writer works on it, so that whoever comes next can tell what a killed writer left
// from what a living one, or one that was stopped, is at.
package temp

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"ways/hooks/dirs"
)

// Names are prefix, digits, suffix.
const (
	prefix = ".ways-"
	suffix = ".tmp"
)

// tries bounds how often a file is made anew because another process, sweeping,
// took it for a dead one's before it was locked.
const tries = 100

var errSwept = errors.New("a file that is not written yet keeps being removed")

// Create makes an empty file, 0600, in dir, under a name of its own. It ends with
// Commit or with Discard; where one is left by a process that died, a later one
// calls Sweep.
func Create(dir string) (*os.File, error) {
	for range tries {
		f, err := os.CreateTemp(dir, prefix+"*"+suffix)
		if err != nil {
			return nil, err
		}
		// Where there are no locks nobody sweeps either.
		if err := flock(f); !errors.Is(err, syscall.EWOULDBLOCK) && there(f) {
			return f, nil
		}
		f.Close()
	}
	return nil, &os.PathError{Op: "create", Path: filepath.Join(dir, prefix+"*"+suffix), Err: errSwept}
}

// Commit gives the file its name, in the place of what has it, and closes it.
// When it fails, nothing has changed and the file is gone.
func Commit(f *os.File, path string) error {
	if err := os.Rename(f.Name(), path); err != nil {
		Discard(f)
		return err
	}
	// Only now: it is locked until it has its name.
	return f.Close()
}

// Discard removes the file, unless it has got its name, and closes it.
func Discard(f *os.File) {
	if there(f) {
		_ = os.Remove(f.Name())
	}
	f.Close()
}

// Write gives the file at path a new content, 0600, and removes what dead writers
// left beside it. With sync the disk has the content before the file has its name;
// its directory is the caller's to flush.
func Write(path string, data []byte, sync bool) error {
	Sweep(filepath.Dir(path))
	f, err := Create(filepath.Dir(path))
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && sync {
		err = f.Sync()
	}
	if err != nil {
		Discard(f)
		return err
	}
	return Commit(f, path)
}

// Sweep removes the files in dir whose writers are dead. What it may not remove
// stays, and is in nobody's way.
func Sweep(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if Is(e.Name()) {
			remove(filepath.Join(dir, e.Name()))
		}
	}
}

func remove(path string) {
	f, err := dirs.Open(path, os.O_RDWR) // some systems want that for a lock
	if err != nil {
		return // not ours, or just gone
	}
	defer f.Close()
	// Its writer may have given it its name while we waited for nothing.
	if flock(f) == nil && there(f) {
		_ = os.Remove(path)
	}
}

// Is reports whether a name is that of a file that is being written, or was.
func Is(name string) bool {
	digits, ours := strings.CutPrefix(name, prefix)
	digits, whole := strings.CutSuffix(digits, suffix)
	return ours && whole && digits != "" && strings.Trim(digits, "0123456789") == ""
}

func flock(f *os.File) error {
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// there reports whether the open file is what its name leads to.
func there(f *os.File) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(open, named)
}
