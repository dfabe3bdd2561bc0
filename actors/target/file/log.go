package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"ways/actors/target"
)

// The reasons for which a path is not written to. Each becomes a refusal.
var (
	errSymlink    = errors.New("it is a symlink; name the file it should be, records do not follow links")
	errDirectory  = errors.New("it is a directory; name a file in it")
	errNotRegular = errors.New("it is a device, a FIFO or a socket; a file target writes to regular files, use a command target")
	errHardLinked = errors.New("it has several hard links; make it a file of its own")
)

// openLog makes t.log the file that is at path now, and leaves it alone if it is
// already. Nothing here blocks, whatever lies there.
func (t *Target) openLog(path string) error {
	there, err := os.Lstat(path)
	if err == nil {
		// Opening a device can do something, so look before.
		if err := acceptable(there); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if t.log != nil {
		held, err := t.log.Stat()
		if err == nil && there != nil && os.SameFile(held, there) {
			return nil
		}
		_ = t.log.Close()
		t.log = nil
	}

	const flags = os.O_RDWR | os.O_APPEND | os.O_CREATE | syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return err
	}
	opened, err := f.Stat()
	if err == nil {
		err = acceptable(opened)
	}
	if err == nil && there == nil && t.opts.Sync {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		_ = f.Close()
		return err
	}
	t.log = f
	return nil
}

func acceptable(info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		return errSymlink
	case mode.IsDir():
		return errDirectory
	case !mode.IsRegular():
		return errNotRegular
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
		return errHardLinked
	}
	return nil
}

// syncDir makes a new name in dir last.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	return errors.Join(err, f.Close())
}

func refused(reason string, err error) error {
	return &target.Error{Kind: target.Refused, Reason: reason, Err: err}
}

// failure says what err means for the record. The words name the path as the
// rule gives it, since the filled one may hold what a variable held.
func (t *Target) failure(ctx context.Context, what string, err error) error {
	words := err
	var inPath *fs.PathError
	if errors.As(err, &inPath) {
		words = fmt.Errorf("%s: %w", inPath.Op, inPath.Err)
	}
	words = fmt.Errorf("file: %s: %w", what, words)

	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		cause := context.Cause(ctx)
		if errors.Is(cause, target.ErrExpired) || errors.Is(cause, context.DeadlineExceeded) {
			return &target.Error{Kind: target.TimedOut, Reason: "lock", Err: words}
		}
		return &target.Error{Kind: target.Failed, Reason: target.Cancelled, Err: words}
	}
	for _, known := range []struct {
		is     error
		kind   target.Kind
		reason string
	}{
		{errSymlink, target.Refused, "is_symlink"},
		{errDirectory, target.Refused, "is_directory"},
		{errNotRegular, target.Refused, "not_regular"},
		{errHardLinked, target.Refused, "hard_linked"},
		{syscall.ENOSPC, target.Failed, "disk_full"},
		{syscall.EDQUOT, target.Failed, "disk_full"},
		{syscall.EFBIG, target.Failed, "file_too_large"},
		{syscall.EROFS, target.Failed, "read_only"},
		{syscall.EACCES, target.Refused, "permission"},
		{syscall.EPERM, target.Refused, "permission"},
		{syscall.EISDIR, target.Refused, "is_directory"},
		{syscall.ELOOP, target.Refused, "is_symlink"},
		{syscall.EEXIST, target.Refused, "not_directory"}, // a dangling symlink to a directory
		{syscall.ENOTDIR, target.Refused, "not_directory"},
		{syscall.ENAMETOOLONG, target.Refused, "name_too_long"},
		{syscall.ENXIO, target.Refused, "not_regular"},
	} {
		if errors.Is(err, known.is) {
			return &target.Error{Kind: known.kind, Reason: known.reason, Err: words}
		}
	}
	return &target.Error{Kind: target.Failed, Reason: "io", Err: words}
}
