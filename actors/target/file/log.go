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
	"ways/hooks/chain"
)

// The reasons for which a path is not written to. Each becomes a refusal.
var (
	errSymlink    = errors.New("it is a symlink; name the file it should be, records do not follow links")
	errDirectory  = errors.New("it is a directory; name a file in it")
	errNotRegular = errors.New("it is a device, a FIFO or a socket; a file target writes to regular files, use a command target")
	errHardLinked = errors.New("it has several hard links; make it a file of its own")
)

// unchanged reports whether the path still leads to the log that is open, and
// notes its size.
func (t *Target) unchanged() bool {
	if t.log == nil {
		return false
	}
	st, err := t.disk.lstat(t.given)
	if err != nil || st.identity != t.logID || acceptable(st) != nil {
		return false
	}
	t.size = st.size
	return true
}

// openLog opens what is at the log's path now; create is os.O_CREATE to make it
// when nothing is. Nothing here blocks, whatever lies there.
func (t *Target) openLog(create int) error {
	there, err := t.disk.lstat(t.path)
	missing := errors.Is(err, fs.ErrNotExist)
	if err == nil {
		// Opening a device can do something, so look before.
		if err := acceptable(there); err != nil {
			return err
		}
	} else if !missing {
		return err
	}
	if t.log != nil {
		_ = t.log.Close()
		t.log = nil
	}

	f, err := t.disk.open(t.path, os.O_RDWR|os.O_APPEND|create|syscall.O_NOFOLLOW|syscall.O_NONBLOCK)
	if err != nil {
		return err
	}
	opened, err := t.disk.fstat(f)
	if err == nil {
		err = acceptable(opened)
	}
	if err == nil && missing && t.opts.Sync {
		err = t.syncDir(filepath.Dir(t.path))
	}
	if err != nil {
		_ = f.Close()
		return err
	}
	t.log, t.logID, t.size = f, opened.identity, opened.size
	return nil
}

func acceptable(st stat) error {
	switch st.kind {
	case syscall.S_IFREG:
	case syscall.S_IFLNK:
		return errSymlink
	case syscall.S_IFDIR:
		return errDirectory
	default:
		return errNotRegular
	}
	if st.links > 1 {
		return errHardLinked
	}
	return nil
}

// syncDir makes a new name in dir last.
func (t *Target) syncDir(dir string) error {
	f, err := t.disk.open(dir, os.O_RDONLY)
	if err != nil {
		return err
	}
	err = t.disk.sync(f)
	return errors.Join(err, f.Close())
}

// errJournal marks an error that is the journal's and not the log's.
var errJournal = errors.New("its journal")

func inJournal(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errJournal, err)
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
	if errors.Is(err, errJournal) {
		words = fmt.Errorf("%w: %w", errJournal, words)
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
		{chain.ErrNotObject, target.Refused, "not_chainable"},
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
