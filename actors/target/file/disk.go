package file

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// disk is what a target does to the disk. A test puts one in that fails, or dies,
// at a chosen call.
type disk interface {
	mkdirAll(dir string) error
	resolve(dir string) (string, error)
	lstat(path string) (stat, error)
	open(path string, flags int) (*os.File, error)
	fstat(f *os.File) (stat, error)
	readAt(f *os.File, b []byte, at int64) (int, error)
	writeAt(f *os.File, b []byte, at int64) error
	// append writes at the end of a file that was opened with O_APPEND, and says
	// how much of b is there.
	append(f *os.File, b []byte) (int, error)
	truncate(f *os.File, size int64) error
	sync(f *os.File) error
}

// identity tells files apart for as long as they exist.
type identity struct{ device, inode uint64 }

// stat is what is asked of a file. It is no fs.FileInfo, since two are needed for
// each record and those are made on the heap.
type stat struct {
	identity
	size  int64
	links uint64
	kind  uint32 // the type bits of st_mode
}

type realDisk struct{}

func (realDisk) mkdirAll(dir string) error          { return os.MkdirAll(dir, 0o700) }
func (realDisk) resolve(dir string) (string, error) { return filepath.EvalSymlinks(dir) }

func (realDisk) lstat(path string) (stat, error) {
	var st syscall.Stat_t
	for {
		err := syscall.Lstat(path, &st)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return stat{}, &fs.PathError{Op: "lstat", Path: path, Err: err}
		}
		return statOf(&st), nil
	}
}

func (realDisk) fstat(f *os.File) (stat, error) {
	info, err := f.Stat()
	if err != nil {
		return stat{}, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stat{}, &fs.PathError{Op: "stat", Path: f.Name(), Err: syscall.ENOSYS}
	}
	return statOf(st), nil
}

func statOf(st *syscall.Stat_t) stat {
	return stat{
		//nolint:unconvert // the types differ between systems
		identity{uint64(st.Dev), uint64(st.Ino)}, st.Size, uint64(st.Nlink), uint32(st.Mode) & syscall.S_IFMT,
	}
}

func (realDisk) open(path string, flags int) (*os.File, error) {
	return os.OpenFile(path, flags, 0o600)
}

func (realDisk) readAt(f *os.File, b []byte, at int64) (int, error) { return f.ReadAt(b, at) }

func (realDisk) writeAt(f *os.File, b []byte, at int64) error {
	_, err := f.WriteAt(b, at)
	return err
}

func (realDisk) append(f *os.File, b []byte) (int, error) { return f.Write(b) }
func (realDisk) truncate(f *os.File, size int64) error    { return f.Truncate(size) }
func (realDisk) sync(f *os.File) error                    { return f.Sync() }
