// Package files reads configuration files from places that other people might
// be able to write to. A sensor file can run a program with the user's rights, so
// what somebody else could have put there is not read.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
)

// MaxBytes is the length of the longest configuration file that is read, 1 MiB.
const MaxBytes = 1 << 20

// MaxEntries is the number of entries of the fullest directory that is read.
const MaxEntries = 1000

// What a caller may branch on. An absent file is fs.ErrNotExist.
var (
	// ErrUnsafe: somebody else could change the file or its directory.
	ErrUnsafe = errors.New("others could change it")
	// ErrKind: not a regular file, or not a directory, where one is needed.
	ErrKind = errors.New("not the kind of file it must be")
	// ErrTooBig: longer than MaxBytes, or more than MaxEntries.
	ErrTooBig = errors.New("too big")
)

// Reader reads on behalf of one user.
type Reader struct {
	// User is the user id that may own files, besides root.
	User uint32
}

// NewReader returns a Reader for the user this process acts as.
func NewReader() Reader { return Reader{User: uint32(os.Geteuid())} }

// File is what was read, and the state of the file it was read from.
type File struct {
	Data []byte
	// Info is of the open file: the version that was read.
	Info fs.FileInfo
}

// Read reads a whole regular file. A symbolic link is followed; then the
// directory of what it leads to must be safe as well. It never waits, whatever
// the path names. Errors wrap fs.ErrNotExist, ErrUnsafe, ErrKind or ErrTooBig, or
// are the operating system's; each says what to do. The returned Info is set
// whenever the file could be opened, also with an error.
func (r Reader) Read(path string) (File, error) {
	f, err := r.open(path, false)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return File{}, err
	}
	file := File{Info: info}
	if !info.Mode().IsRegular() {
		return file, fmt.Errorf("%s is a %s, not a regular file: %w", path, kindOf(info.Mode()), ErrKind)
	}
	if err := r.safe(path, info); err != nil {
		return file, err
	}
	if err := r.safeLink(path); err != nil {
		return file, err
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return file, fmt.Errorf("reading %s: %w", path, err)
	}
	if len(data) > MaxBytes {
		return file, fmt.Errorf("%s is longer than %d bytes: %w", path, MaxBytes, ErrTooBig)
	}
	file.Data = data
	return file, nil
}

// Dir is the names in a directory, sorted, and the directory's state before
// they were read.
type Dir struct {
	Names []string
	Info  fs.FileInfo
}

// List reads a directory's names. Errors are as Read's.
func (r Reader) List(path string) (Dir, error) {
	f, err := r.open(path, true)
	if err != nil {
		return Dir{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Dir{}, err
	}
	dir := Dir{Info: info}
	if !info.IsDir() {
		return dir, fmt.Errorf("%s is a %s, not a directory: %w", path, kindOf(info.Mode()), ErrKind)
	}
	if err := r.safe(path, info); err != nil {
		return dir, err
	}
	names, err := f.Readdirnames(MaxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return dir, fmt.Errorf("reading the directory %s: %w", path, err)
	}
	if len(names) > MaxEntries {
		return dir, fmt.Errorf("%s holds more than %d entries: %w", path, MaxEntries, ErrTooBig)
	}
	sort.Strings(names)
	dir.Names = names
	return dir, nil
}

// SafeDir checks a directory that is not read itself. Errors are as Read's.
func (r Reader) SafeDir(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return r.safe(path, info)
}

// open opens for reading without ever waiting: a FIFO without a writer would
// hold a plain open for good.
func (r Reader) open(path string, dir bool) (*os.File, error) {
	flags := os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY
	f, err := os.OpenFile(path, flags, 0)
	if err == nil {
		return f, nil
	}
	if errors.Is(err, syscall.ENXIO) || errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.EOPNOTSUPP) {
		what := "regular file"
		if dir {
			what = "directory"
		}
		return nil, fmt.Errorf("%s is a socket or device, not a %s: %w", path, what, ErrKind)
	}
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s: the symbolic link leads in a circle: %w", path, ErrKind)
	}
	return nil, err
}

// safe refuses what somebody other than the user and root could have written.
func (r Reader) safe(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: its owner is unknown: %w", path, ErrUnsafe)
	}
	return safe(path, info.Mode(), stat.Uid, stat.Gid, r.User, r.ownGroup)
}

// safe reports whether a file or directory with this mode and owner can have
// been changed by user and root alone; the error wraps ErrUnsafe and says what to
// do. A group that own says is the user's alone may write. A directory with the sticky bit lets others only add to it, which is
// refused all the same: a file added there would be a sensor.
func safe(path string, mode fs.FileMode, owner, gid, user uint32, own func(uint32) bool) error {
	if owner != user && owner != 0 {
		return fmt.Errorf("%s belongs to user %d, not to you (%d) or root: %w; if you trust it, run: chown %d '%s'",
			path, owner, user, ErrUnsafe, user, path)
	}
	if writers := mode.Perm() & 0o022; writers&0o002 != 0 || writers != 0 && !own(gid) {
		who := "its group"
		if writers&0o002 != 0 {
			who = "everybody"
		}
		return fmt.Errorf("%s may be written by %s (mode %04o): %w; run: chmod go-w '%s'",
			path, who, mode.Perm(), ErrUnsafe, path)
	}
	return nil
}

// safeLink checks the directory that a symbolic link leads to, where the
// link's own directory is the caller's to check. Nothing is checked when path is
// no link.
func (r Reader) safeLink(path string) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	dir := filepath.Dir(real)
	info, err = os.Stat(dir)
	if err != nil {
		return err
	}
	if err := r.safe(dir, info); err != nil {
		return fmt.Errorf("%s leads to %s: %w", path, real, err)
	}
	return nil
}

// About returns an error's text without the path that it begins with, for a
// message that stands behind the path.
func About(path string, err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) && pathErr.Path == path && pathErr.Error() == err.Error() {
		return "cannot be read: " + pathErr.Err.Error()
	}
	text := err.Error()
	for _, between := range []string{": ", " "} {
		if rest, ok := strings.CutPrefix(text, path+between); ok {
			return rest
		}
	}
	return text
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "directory"
	case mode.IsRegular():
		return "regular file"
	case mode&fs.ModeNamedPipe != 0:
		return "FIFO"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}

// Kind says what about an input a compiled result depends on.
type Kind string

// The kinds of input.
const (
	// Regular: the file's content.
	Regular Kind = "file"
	// Directory: the names in a directory.
	Directory Kind = "dir"
	// Root: which directory it is, after symbolic links; not what is in it.
	Root Kind = "root"
)

// Input is a path that a compiled result depends on. One that is absent is an
// input too: it may appear.
type Input struct {
	Path string
	Kind Kind
	// Info is the state of what was read, nil when it was absent or not
	// opened. The path is followed when it is a symbolic link.
	Info fs.FileInfo
}
