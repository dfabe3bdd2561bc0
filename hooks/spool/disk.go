package spool

import (
	"io/fs"
	"os"

	"ways/hooks/dirs"
	"ways/hooks/failpoint"
	"ways/hooks/temp"
)

// disk is how this package changes files: every open, write, sync, rename,
// removal and truncation goes through it, so that a test can make each fail.
// The zero value is the disk.
type disk struct {
	// fault, when set, is asked before each operation; what it returns is that
	// operation's error.
	fault func(op, path string) error
	// half: a write that is made to fail has written half of its bytes.
	half bool
}

func (d disk) ask(op, path string) error {
	failpoint.Here("spool." + op)
	if d.fault == nil {
		return nil
	}
	if err := d.fault(op, path); err != nil {
		return &fs.PathError{Op: op, Path: path, Err: err}
	}
	return nil
}

// open opens or makes a file of ours: 0600, never through a symlink, and without
// waiting for a FIFO's other end.
func (d disk) open(path string, flags int) (*os.File, error) {
	if err := d.ask("open", path); err != nil {
		return nil, err
	}
	return dirs.Open(path, flags)
}

// temp makes a file that gets its name later.
func (d disk) temp(dir string) (*os.File, error) {
	if err := d.ask("open", dir); err != nil {
		return nil, err
	}
	return temp.Create(dir)
}

func (d disk) write(f *os.File, b []byte) (int, error) {
	return d.put("write", f, b, f.Write)
}

func (d disk) writeAt(f *os.File, b []byte, off int64) (int, error) {
	return d.put("writeat", f, b, func(b []byte) (int, error) { return f.WriteAt(b, off) })
}

func (d disk) put(op string, f *os.File, b []byte, write func([]byte) (int, error)) (int, error) {
	if n, die := failpoint.Cut("spool."+op, len(b)); die {
		_, _ = write(b[:n])
		failpoint.Kill()
	}
	if err := d.ask(op, f.Name()); err != nil {
		n := 0
		if d.half {
			n, _ = write(b[:len(b)/2])
		}
		return n, err
	}
	n, err := write(b)
	failpoint.Here("spool.written")
	return n, err
}

func (d disk) sync(f *os.File) error {
	if err := d.ask("sync", f.Name()); err != nil {
		return err
	}
	return f.Sync()
}

func (d disk) truncate(f *os.File, size int64) error {
	if err := d.ask("truncate", f.Name()); err != nil {
		return err
	}
	return f.Truncate(size)
}

func (d disk) rename(from, to string) error {
	if err := d.ask("rename", to); err != nil {
		return err
	}
	err := os.Rename(from, to)
	failpoint.Here("spool.renamed")
	return err
}

func (d disk) remove(path string) error {
	if err := d.ask("remove", path); err != nil {
		return err
	}
	return os.Remove(path)
}

func (d disk) mkdir(path string) error {
	if err := d.ask("mkdir", path); err != nil {
		return err
	}
	return os.Mkdir(path, 0o700)
}

// syncDir flushes a directory's names.
func (d disk) syncDir(dir string) error {
	if err := d.ask("open", dir); err != nil {
		return err
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return d.sync(f)
}
