package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"ways/hooks/dirs"
)

// ErrLocked is returned when a lock stayed with another process for longer than
// the caller wanted to wait.
var ErrLocked = errors.New("the lock is held by another process")

// lockName is the writers' lock in a session directory.
const lockName = "append.lock"

// flock takes the lock on f, trying for at most wait. A blocking flock could
// not be given up, so it polls; the waits are short because the lock is held for
// microseconds.
func flock(f *os.File, how int, wait time.Duration) error {
	deadline := time.Now().Add(wait)
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 2*time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
			continue
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		case !time.Now().Before(deadline):
			return ErrLocked
		}
		time.Sleep(pause)
	}
}

// lockAppend opens and takes a session's append lock, making the session
// directory when there is none.
func (d disk) lockAppend(dir string, wait time.Duration) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	f, err := d.open(path, os.O_RDWR|os.O_CREATE)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeSession(dir); err != nil {
			return nil, err
		}
		f, err = d.open(path, os.O_RDWR|os.O_CREATE)
	}
	if err != nil {
		return nil, fmt.Errorf("open the spool's lock: %w", err)
	}
	if err := flock(f, syscall.LOCK_EX, wait); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// makeSession makes a session's directory, and those above it that are ours.
func makeSession(dir string) error {
	sessions := filepath.Dir(dir)
	for _, d := range []string{filepath.Dir(sessions), sessions, dir} {
		if err := dirs.MakePrivate(d); err != nil {
			return err
		}
	}
	return nil
}

// Locked holds a session's append lock: while it lives, nobody appends.
type Locked struct {
	f    *os.File
	disk disk
}

// Lock takes the append lock of a session, waiting for at most wait. ErrLocked
// when it did not get it.
func Lock(dir string, wait time.Duration) (*Locked, error) {
	f, err := disk{}.lockAppend(dir, wait)
	if err != nil {
		return nil, err
	}
	return &Locked{f: f}, nil
}

// Release gives the lock back.
func (l *Locked) Release() { l.f.Close() }
