package wiring

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"ways/hooks/temp"
)

// snapshot is a settings file as it was read.
type snapshot struct {
	// real is the file itself, behind every symlink.
	real   string
	exists bool
	text   []byte
	mode   fs.FileMode
	info   fs.FileInfo
	uid    int
	gid    int
	links  int
}

// resolve follows symlinks to the file that is to be edited, so that the link
// of a dotfiles repository stays a link.
func resolve(path string) (real string, exists bool, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return "", false, fmt.Errorf("find %s: %w", path, err)
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		real, err = resolveMissing(path)
		return real, false, err
	case err != nil:
		return "", false, refuseIO(err)
	}
	real, err = filepath.EvalSymlinks(path)
	if info.Mode()&fs.ModeSymlink != 0 && errors.Is(err, fs.ErrNotExist) {
		to, _ := os.Readlink(path)
		return "", false, &Refusal{
			Problem: fmt.Sprintf("it is a symlink to %s, which does not exist", to),
			Remedy:  "restore the file it points to, or remove the link",
		}
	}
	if err != nil {
		return "", false, refuseIO(err)
	}
	return real, true, nil
}

// resolveMissing names a file that does not exist by the real path of the
// nearest directory that does, so that it has the same name once it exists.
func resolveMissing(path string) (string, error) {
	dir, rest := filepath.Dir(path), filepath.Base(path)
	for {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if _, lerr := os.Lstat(dir); lerr == nil || !errors.Is(err, fs.ErrNotExist) {
			return "", refuseIO(err) // a dangling link, or no access
		}
		rest = filepath.Join(filepath.Base(dir), rest)
		dir = filepath.Dir(dir)
	}
}

func refuseIO(err error) error {
	return &Refusal{Problem: "it cannot be reached: " + err.Error(), Remedy: "check the path and its permissions"}
}

// Read returns the text of a settings file; nil when there is none. Symlinks are
// followed, and nothing is waited for. Errors match ErrRefused.
func Read(path string) ([]byte, error) {
	s, err := take(path)
	return s.text, err
}

// take reads the settings file at path.
func take(path string) (snapshot, error) {
	real, exists, err := resolve(path)
	if err != nil {
		return snapshot{}, err
	}
	s := snapshot{real: real, exists: exists}
	if !exists {
		return s, nil
	}
	// Looked at before it is opened: opening a FIFO or a device does things.
	info, err := os.Stat(real)
	if errors.Is(err, fs.ErrNotExist) {
		s.exists = false // gone in this moment
		return s, nil
	}
	if err != nil {
		return snapshot{}, refuseIO(err)
	}
	if refusal := checkFile(info); refusal != nil {
		return snapshot{}, refusal
	}
	f, err := os.OpenFile(real, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrPermission) {
		return snapshot{}, unreadable()
	}
	if err != nil {
		return snapshot{}, refuseIO(err)
	}
	defer func() { _ = f.Close() }()
	s.info, err = f.Stat()
	if err != nil {
		return snapshot{}, refuseIO(err)
	}
	if refusal := checkFile(s.info); refusal != nil {
		return snapshot{}, refusal
	}
	s.mode = s.info.Mode()
	if st, ok := s.info.Sys().(*syscall.Stat_t); ok {
		s.uid, s.gid, s.links = int(st.Uid), int(st.Gid), int(st.Nlink)
	}
	s.text, err = io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return snapshot{}, refuseIO(err)
	}
	return s, nil
}

func checkFile(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return &Refusal{Problem: "it is a directory", Remedy: "name the settings file in it"}
	case !info.Mode().IsRegular():
		return &Refusal{Problem: "it is not a regular file", Remedy: "name the settings file itself"}
	case info.Mode().Perm()&0o444 == 0:
		// Root could read it, but somebody took the right away on purpose.
		return unreadable()
	}
	return nil
}

func unreadable() error {
	return &Refusal{Problem: "it cannot be read", Remedy: "give yourself the right with chmod u+r"}
}

// checkWritable refuses a file that is read-only on purpose. A rename would
// get around the mode, and around what its owner meant by it.
func (s snapshot) checkWritable() error {
	if !s.exists {
		return nil
	}
	if s.mode.Perm()&0o222 == 0 || unix.Access(s.real, unix.W_OK) != nil {
		return &Refusal{
			Problem: "it is read-only",
			Remedy:  "give yourself the right with chmod u+w; where another tool makes the file, add the entry there (ways reconcile --dry-run shows it)",
		}
	}
	return nil
}

// errRaced says that the file changed between reading and writing.
var errRaced = errors.New("the settings file was changed by another program at the same time")

// unchanged reports whether the file still is what was read.
func (s snapshot) unchanged(path string) bool {
	now, err := take(path)
	return err == nil && now.real == s.real && now.exists == s.exists && bytes.Equal(now.text, s.text) &&
		(!s.exists || os.SameFile(now.info, s.info))
}

// write puts text in the file's place: as a whole by a rename, or, where a
// rename would lose something (a hard link, the owner, a mount), inside it.
// Between the last look at the file and the rename lie microseconds that
// nothing can close, since the client takes no lock.
func (s snapshot) write(path string, text []byte) error {
	if !s.exists {
		return s.create(path, text)
	}
	if s.links > 1 {
		return s.overwrite(path, text)
	}
	fresh, err := writeTemp(filepath.Dir(s.real), text)
	if errors.Is(err, fs.ErrPermission) {
		return s.overwrite(path, text)
	}
	if err != nil {
		return err
	}
	defer temp.Discard(fresh)
	info, err := fresh.Stat()
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && (int(st.Uid) != s.uid || int(st.Gid) != s.gid) {
		if fresh.Chown(s.uid, s.gid) != nil {
			return s.overwrite(path, text)
		}
	}
	if err := fresh.Chmod(s.mode); err != nil {
		return err
	}
	if !s.unchanged(path) {
		return errRaced
	}
	err = os.Rename(fresh.Name(), s.real)
	if errors.Is(err, syscall.EBUSY) {
		return s.overwrite(path, text) // the file is a mount point
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(s.real))
}

// create makes the file, never over one that appeared meanwhile.
func (s snapshot) create(path string, text []byte) error {
	fresh, err := writeTemp(filepath.Dir(s.real), text)
	if err != nil {
		return err
	}
	defer temp.Discard(fresh)
	if !s.unchanged(path) {
		return errRaced
	}
	err = os.Link(fresh.Name(), s.real)
	switch {
	case errors.Is(err, fs.ErrExist):
		return errRaced
	case err != nil:
		// No hard links here; a rename is the next best.
		if err := os.Rename(fresh.Name(), s.real); err != nil {
			return err
		}
	}
	return syncDir(filepath.Dir(s.real))
}

// overwrite writes into the file itself. It is not atomic: a crash in the
// middle leaves a broken file, and the backup.
func (s snapshot) overwrite(path string, text []byte) error {
	f, err := os.OpenFile(s.real, os.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	if !s.unchanged(path) {
		_ = f.Close()
		return errRaced
	}
	_, err = f.WriteAt(text, 0)
	if err == nil {
		err = f.Truncate(int64(len(text)))
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// remove deletes the file, and then the directories that were made for it and
// are empty.
func (s snapshot) remove(path string, dirs []string) error {
	if !s.unchanged(path) {
		return errRaced
	}
	if err := os.Remove(s.real); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(s.real)); err != nil {
		return err
	}
	for _, dir := range slices.Backward(dirs) {
		if os.Remove(dir) != nil {
			return nil // not empty: somebody uses it
		}
	}
	return nil
}

// makeDirs makes the missing directories above a file, 0700, and says which,
// outermost first.
func makeDirs(dir string) (made []string, err error) {
	var missing []string
	for at := dir; ; at = filepath.Dir(at) {
		_, err := os.Stat(at)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		missing = append(missing, at)
	}
	for _, at := range slices.Backward(missing) {
		err := os.Mkdir(at, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return made, err
		}
		made = append(made, at)
	}
	return made, nil
}
