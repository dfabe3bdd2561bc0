// Package launch keeps one dispatcher per session: the lock that says one
// runs, the wake-up that tells it of a record, and the detached start.
package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"ways/hooks/dirs"
)

// Names in a session directory.
const (
	lockName = "dispatcher.lock"
	wakeName = "wake"
	endName  = "ended"
)

// LockFD is the descriptor under which a started dispatcher finds its lock.
const LockFD = 3

// Wake bytes. The dispatcher reads them from the wake FIFO.
const (
	// Appended: there is a record.
	Appended byte = 'a'
	// Ended: the session ended; drain and leave.
	Ended byte = 'e'
)

// ErrRunning is returned by TryLock while a dispatcher holds the lock.
var ErrRunning = errors.New("a dispatcher is running for this session")

// TryLock takes a session's dispatcher lock without waiting. The lock lives as
// long as the returned file, in whichever process that is.
func TryLock(dir string) (*os.File, error) {
	f, err := dirs.Open(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, fmt.Errorf("open the dispatcher's lock: %w", err)
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return f, nil
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			f.Close()
			return nil, ErrRunning
		}
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
}

// Release gives a dispatcher lock back. Closing is not enough: the hook that
// handed the lock down may not have closed its own descriptor yet, and until it
// did, others would believe that a dispatcher runs.
func Release(lock *os.File) error {
	return errors.Join(syscall.Flock(int(lock.Fd()), syscall.LOCK_UN), lock.Close())
}

// Held reports whether a dispatcher lock that is held is the one in the session's
// directory: somebody may have deleted that, and the next hook have made another.
func Held(dir string, lock *os.File) bool {
	return leadsTo(filepath.Join(dir, lockName), int(lock.Fd())) == nil
}

// leadsTo returns an error unless the file at path is the one open as fd.
func leadsTo(path string, fd int) error {
	var have, want syscall.Stat_t
	if err := syscall.Fstat(fd, &have); err != nil {
		return fmt.Errorf("descriptor %d is not open: %w", fd, err)
	}
	if err := syscall.Lstat(path, &want); err != nil {
		return fmt.Errorf("stat %s: %w", path, err)
	}
	if have.Dev != want.Dev || have.Ino != want.Ino {
		return fmt.Errorf("descriptor %d is not %s", fd, path)
	}
	return nil
}

// Adopt takes over a dispatcher lock that a hook handed down as descriptor fd.
// It marks the descriptor close-on-exec before anything else: a consumer that
// inherited it would hold the lock after the dispatcher died, and none would
// ever be started again. It is refused when it is not this session's lock.
func Adopt(dir string, fd int) (*os.File, error) {
	syscall.CloseOnExec(fd)
	path := filepath.Join(dir, lockName)
	if err := leadsTo(path, fd); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Wake tells a running dispatcher what happened. It never waits, and it does not
// matter when nobody listens: who starts later looks for himself.
func Wake(dir string, what byte) {
	if fd, ok := bell(dir); ok {
		// A full pipe holds wake-ups enough.
		_, _ = syscall.Write(fd, []byte{what})
		_ = syscall.Close(fd)
	}
}

// bell opens the wake FIFO of who listens. What is no FIFO is not ours to write to.
func bell(dir string) (fd int, ok bool) {
	fd, err := syscall.Open(filepath.Join(dir, wakeName),
		syscall.O_WRONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if err != nil {
		return -1, false
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil || st.Mode&syscall.S_IFMT != syscall.S_IFIFO {
		_ = syscall.Close(fd)
		return -1, false
	}
	return fd, true
}

// End tells a session's dispatcher that the session ended, also one that is only
// starting and does not listen yet: it finds a file.
func End(dir string) {
	f, err := os.OpenFile(filepath.Join(dir, endName),
		os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0o600)
	if err == nil {
		f.Close()
	}
	Wake(dir, Ended)
}

// TakeEnd reports whether End left its file, and removes it.
func TakeEnd(dir string) bool { return os.Remove(filepath.Join(dir, endName)) == nil }

// Listen makes a new wake FIFO and opens it. It is new each time, so that a
// dispatcher on its way out, which may still have the last one open, takes no
// byte that is meant for this one. It is held for writing too, so that the last
// writer's exit is no end of file.
func Listen(dir string) (*os.File, error) {
	path := filepath.Join(dir, wakeName)
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("make the wake FIFO: %w", err)
	}
	if err := syscall.Mkfifo(fresh, 0o600); err != nil {
		return nil, fmt.Errorf("make %s: %w", fresh, err)
	}
	// Opened before it has its name: who finds it there finds a listener.
	f, err := os.OpenFile(fresh, os.O_RDWR|syscall.O_NONBLOCK|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the wake FIFO: %w", err)
	}
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		_ = os.Remove(path) // rename puts nothing in a directory's place
	}
	if err := os.Rename(fresh, path); err != nil {
		f.Close()
		return nil, fmt.Errorf("make the wake FIFO: %w", err)
	}
	return f, nil
}

// Command is the program that Start starts.
type Command struct {
	Path string
	Args []string // without the program's name
	Env  []string
}

// Start starts a dispatcher that already holds the lock, in a session of its
// own, from /, with its standard streams on /dev/null and no other descriptor
// than the lock: the client waits for the end of its pipes, and whatever a
// hook inherited must not stay open in a process that outlives it.
func Start(c Command, lock *os.File) error { return detach(c, lock.Fd()) }

// Detach starts a program in the same way, with no lock to hand down.
func Detach(c Command) error { return detach(c) }

func detach(c Command, more ...uintptr) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("start %s: %w", c.Path, err)
	}
	defer null.Close()
	closeInherited()
	_, err = syscall.ForkExec(c.Path, c.argv(), &syscall.ProcAttr{
		Dir:   "/",
		Env:   c.Env,
		Files: append([]uintptr{null.Fd(), null.Fd(), null.Fd()}, more...),
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", c.Path, err)
	}
	return nil
}

// Run runs a program to its end with nothing on its standard streams, and
// returns an error when it did not exit with 0. It is what os/exec would do, at
// a fraction of its cost in a process that lives for milliseconds.
func Run(c Command) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("run %s: %w", c.Path, err)
	}
	defer null.Close()
	closeInherited()
	pid, err := syscall.ForkExec(c.Path, c.argv(), &syscall.ProcAttr{
		Dir:   "/",
		Env:   c.Env,
		Files: []uintptr{null.Fd(), null.Fd(), null.Fd()},
	})
	if err != nil {
		return fmt.Errorf("run %s: %w", c.Path, err)
	}
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait for %s: %w", c.Path, err)
		}
		break
	}
	if status.ExitStatus() != 0 {
		return fmt.Errorf("%s %v: exit status %d", c.Path, c.Args, status.ExitStatus())
	}
	return nil
}

func (c Command) argv() []string { return append([]string{c.Path}, c.Args...) }

// closeInherited marks every descriptor above the standard ones close-on-exec.
func closeInherited() {
	dir, err := os.Open("/dev/fd")
	if err != nil {
		return
	}
	names, _ := dir.Readdirnames(-1)
	dir.Close()
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}

// Running reports whether a dispatcher listens in a session directory. It
// touches no lock: to try one, even for a moment, would make a hook believe that
// a dispatcher runs.
func Running(dir string) bool {
	fd, ok := bell(dir)
	if ok {
		_ = syscall.Close(fd)
	}
	return ok
}
