// Package ticket says who answers for a record that a blocking rule may want:
// the hook's own process, for as long as it holds the record's ticket, and the
// session's dispatcher after that (design §8).
//
// A ticket is a file in the session's directory, named by the record's sequence
// number. The hook makes and locks it before the record is in the spool, and
// keeps it locked across the exec into the operator binary, which writes down
// what became of the record with each rule. When the process ends, however it
// ends, the kernel drops the lock: what the ticket does not call finished is the
// dispatcher's to do.
package ticket

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"ways/hooks/dirs"
)

// dirName is the directory of tickets in a session's directory.
const dirName = "blocking"

// Ticket is a record's ticket, held by this process.
type Ticket struct {
	Seq uint64
	f   *os.File
}

func path(dir string, seq uint64) string {
	return filepath.Join(dir, dirName, strconv.FormatUint(seq, 10))
}

// Claim makes the tickets of the records first to last and locks them. It is
// called under the spool's append lock, before the records are written. A ticket
// that a process left which died before it wrote its records is taken over.
func Claim(dir string, first, last uint64) ([]Ticket, error) {
	if err := os.Mkdir(filepath.Join(dir, dirName), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("claim a record: %w", err)
	}
	var held []Ticket
	for seq := first; seq <= last; seq++ {
		f, err := dirs.Open(path(dir, seq), os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND)
		if err == nil {
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		}
		if err != nil {
			for _, t := range held {
				t.f.Close()
			}
			return nil, fmt.Errorf("claim record %d: %w", seq, err)
		}
		held = append(held, Ticket{seq, f})
	}
	return held, nil
}

// Keep makes the ticket survive an exec, and returns the descriptor it is under.
func (t Ticket) Keep() (int, error) {
	fd := int(t.f.Fd())
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_SETFD, 0); errno != 0 {
		return 0, errno
	}
	return fd, nil
}

// Adopt takes over a ticket that was kept across an exec. No process that this
// one starts inherits it.
func Adopt(dir string, seq uint64, fd int) (Ticket, error) {
	syscall.CloseOnExec(fd)
	var have, want syscall.Stat_t
	if err := syscall.Fstat(fd, &have); err != nil {
		return Ticket{}, fmt.Errorf("descriptor %d is not open: %w", fd, err)
	}
	if err := syscall.Lstat(path(dir, seq), &want); err != nil {
		return Ticket{}, fmt.Errorf("the ticket of record %d: %w", seq, err)
	}
	if have.Dev != want.Dev || have.Ino != want.Ino {
		return Ticket{}, fmt.Errorf("descriptor %d is not the ticket of record %d", fd, seq)
	}
	return Ticket{seq, os.NewFile(uintptr(fd), path(dir, seq))}, nil
}

// Close gives the ticket back: what it does not call finished is the
// dispatcher's.
func (t Ticket) Close() { t.f.Close() }

// Note writes a line down. Lines of several goroutines do not mix: each is one
// append.
func (t Ticket) Note(line []byte) error {
	_, err := t.f.Write(append(append([]byte{}, line...), '\n'))
	return err
}

// ErrHeld is returned by Read while the hook's process holds the ticket.
var ErrHeld = errors.New("the hook's process is still at it")

// Read returns the lines of a ticket. os.ErrNotExist: the record has none, so it
// is the dispatcher's alone. A last line without an end was torn, and is left out.
func Read(dir string, seq uint64) ([][]byte, error) {
	f, err := dirs.Open(path(dir, seq), os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
			return nil, ErrHeld
		}
		return nil, err
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	lines := bytes.Split(text, []byte{'\n'})
	return lines[:len(lines)-1], nil
}

// Reclaim removes the tickets of the records up to seq.
func Reclaim(dir string, seq uint64) error {
	entries, err := os.ReadDir(filepath.Join(dir, dirName))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if n, err := strconv.ParseUint(e.Name(), 10, 64); err == nil && n <= seq {
			errs = append(errs, os.Remove(filepath.Join(dir, dirName, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// Number gives a blocking rule's next number in the session. Hooks run in
// parallel, so it counts in the order records are handed out.
func Number(dir, rule string) (uint64, error) {
	name := strings.ReplaceAll(rule, "/", "~") + ".n"
	f, err := dirs.Open(filepath.Join(dir, dirName, name), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return 0, fmt.Errorf("number a record: %w", err)
	}
	defer f.Close()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EINTR) {
			return 0, fmt.Errorf("number a record: %w", err)
		}
	}
	var buf [20]byte
	n, _ := f.ReadAt(buf[:], 0)
	last, _ := strconv.ParseUint(strings.TrimSpace(string(buf[:n])), 10, 64)
	// Fixed width, so that a number is replaced in one write of the same bytes.
	_, err = f.WriteAt(fmt.Appendf(nil, "%20d", last+1), 0)
	return last + 1, err
}
