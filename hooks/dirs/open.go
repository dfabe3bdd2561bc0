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
	f, err := os.OpenFile(path, flags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", path, ErrNotFile)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
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
