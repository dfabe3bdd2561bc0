package dirs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// ErrNotFile is returned for what lies in the place of a file of ours and is
// none.
var ErrNotFile = errors.New("not a regular file")

// Open opens or makes a file of ours, 0600. It neither follows a symlink nor
// waits, whatever lies there: a FIFO would hold a plain open until somebody
// takes its other end.
func Open(path string, flags int) (*os.File, error) {
	fd, err := Descriptor(path, flags)
	if err != nil {
		return nil, err
	}
	var st syscall.Stat_t
	switch err := syscall.Fstat(fd, &st); {
	case err != nil:
		_ = syscall.Close(fd)
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	case st.Mode&syscall.S_IFMT != syscall.S_IFREG:
		_ = syscall.Close(fd)
		return nil, fmt.Errorf("%s: %w", path, ErrNotFile)
	}
	// What does not wait is given to the runtime's poller, which is of no use with
	// a regular file, and takes longer to start than a hook has for all its files.
	if err := syscall.SetNonblock(fd, false); err != nil {
		_ = syscall.Close(fd)
		return nil, &os.PathError{Op: "fcntl", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Descriptor opens a file of ours without following a link and without waiting, and
// does not look what it is. It is for a reader to whom an os.File costs too much.
func Descriptor(path string, flags int) (int, error) {
	for {
		fd, err := syscall.Open(path, flags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0o600)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return -1, &os.PathError{Op: "open", Path: path, Err: err}
		default:
			return fd, nil
		}
	}
}

// ReadFile reads a file of ours, opened by Open.
func ReadFile(path string) ([]byte, error) {
	f, err := Open(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// Clear removes what lies in the place of a file of ours and is none, so that
// the file can be made.
func Clear(path string) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		_ = os.Remove(path)
	}
}

// Linked reports whether a file has other names (hard links): what is written to it
// shows under those, wherever they are.
func Linked(path string) bool {
	var st syscall.Stat_t
	return syscall.Lstat(path, &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFREG && st.Nlink > 1
}
