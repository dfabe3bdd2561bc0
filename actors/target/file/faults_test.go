package file

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"ways/actors/target"
	"ways/config/plan"
	"ways/hooks/redact"
)

// The ways in which a call to the disk goes wrong.
const (
	// FailBefore: it does nothing and fails.
	FailBefore = iota
	// FailHalf: a write does half of its work and fails; another call fails.
	FailHalf
	// DieBefore, DieHalf, DieAfter: the process is killed there.
	DieBefore
	DieHalf
	DieAfter
	Ways
)

// Died is the panic of a killed process. What it held open is closed by Abandon,
// as the kernel does.
type Died struct{}

// Faults is a disk on which call number At goes wrong.
type Faults struct {
	realDisk
	At, How int
	Calls   int
	dead    bool
}

// NewFaulty returns a target on such a disk.
func NewFaulty(cfg plan.File, opts Options, at, how int) (*Target, *Faults) {
	d := &Faults{At: at, How: how}
	t, err := newTarget(cfg, opts, d)
	if err != nil {
		panic(err)
	}
	return t, d
}

// Abandon closes what a killed process held open.
func Abandon(t *Target) {
	_ = t.journal.close()
	if t.log != nil {
		_ = t.log.Close()
	}
}

// errDisk is what a failing call says.
const errDisk = syscall.ENOSPC

// call runs one call; half does half of a write's work.
func (f *Faults) call(name string, do func() error, half func()) error {
	if f.dead {
		panic(Died{})
	}
	f.Calls++
	if f.Calls != f.At {
		return do()
	}
	die := func() { f.dead = true; panic(Died{}) }
	switch f.How {
	case DieBefore:
		die()
	case DieHalf:
		if half != nil {
			half()
		}
		die()
	case DieAfter:
		_ = do()
		die()
	case FailHalf:
		if half != nil {
			half()
		}
	}
	return &os.PathError{Op: name, Path: "the disk", Err: errDisk}
}

func (f *Faults) mkdirAll(dir string) error {
	return f.call("mkdir", func() error { return f.realDisk.mkdirAll(dir) }, nil)
}

func (f *Faults) resolve(dir string) (path string, err error) {
	err = f.call("resolve", func() error { path, err = f.realDisk.resolve(dir); return err }, nil)
	return path, err
}

func (f *Faults) lstat(path string) (st stat, err error) {
	err = f.call("lstat", func() error { st, err = f.realDisk.lstat(path); return err }, nil)
	return st, err
}

func (f *Faults) open(path string, flags int) (file *os.File, err error) {
	err = f.call("open", func() error { file, err = f.realDisk.open(path, flags); return err }, nil)
	return file, err
}

func (f *Faults) fstat(file *os.File) (st stat, err error) {
	err = f.call("fstat", func() error { st, err = f.realDisk.fstat(file); return err }, nil)
	return st, err
}

func (f *Faults) readAt(file *os.File, b []byte, at int64) (n int, err error) {
	if e := f.call("read", func() error { n, err = f.realDisk.readAt(file, b, at); return nil }, nil); e != nil {
		return 0, e
	}
	return n, err
}

func (f *Faults) writeAt(file *os.File, b []byte, at int64) error {
	return f.call("write", func() error { return f.realDisk.writeAt(file, b, at) }, func() {
		_ = f.realDisk.writeAt(file, b[:len(b)/2], at)
	})
}

func (f *Faults) append(file *os.File, b []byte) (n int, err error) {
	if e := f.call("write", func() error { n, err = f.realDisk.append(file, b); return nil }, func() {
		n, _ = f.realDisk.append(file, b[:len(b)/2])
	}); e != nil {
		return n, e
	}
	return n, err
}

func (f *Faults) truncate(file *os.File, size int64) error {
	return f.call("truncate", func() error { return f.realDisk.truncate(file, size) }, nil)
}

// sync does nothing more: what these tests kill is processes, not machines.
func (f *Faults) sync(file *os.File) error {
	return f.call("sync", func() error { _, err := f.realDisk.fstat(file); return err }, nil)
}

// Role starts this test binary as another process.
func Role(ctx context.Context, name string, args ...string) *exec.Cmd {
	return role(ctx, name, args...)
}

// Record is record n of a session; the records differ in length.
func Record(session string, n int) target.Dispatch {
	text := fmt.Sprintf(`{"v":1,"ts":"2026-01-02T03:04:05Z","session":%q,"seq":%d,"data":{"prompt":%q}}`,
		session, n, strings.Repeat("x", n*37%400))
	return target.Dispatch{
		ID: fmt.Sprintf("%s:s/r:%d", session, n), Rule: "s/r", Session: session, Seq: uint64(n), Attempt: 1,
		Body: redact.Plain([]byte(text), redact.Envelope{Rule: "s/r", RuleSeq: uint64(n)}),
	}
}
