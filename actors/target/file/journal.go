package file

import (
	"context"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"ways/hooks/dirs"
)

// tornLimit is where <hash>.torn begins anew, in bytes.
const tornLimit = 1 << 20

// The lock is tried again after these times; flock itself cannot be given up.
const (
	lockPauseMin = 100 * time.Microsecond
	lockPauseMax = 10 * time.Millisecond
)

// journal is the lock of a log, and in it what must be known to append: one read
// and one write for each record, under the lock.
type journal struct {
	disk  disk
	table *crc32.Table
	path  string
	file  *os.File
	id    identity
	buf   [journalSize]byte

	// state is what the file holds, the mark included; fresh says that it holds
	// nothing, and known that it was read before and need not be decoded again
	// while its generation stays.
	state
	fresh, known bool
}

func newJournal(d disk) journal {
	return journal{disk: d, table: crc32.MakeTable(crc32.Castagnoli)}
}

// lock takes the lock at path, making it and its directory, and waits for it
// until ctx ends; the error is ctx's then.
func (j *journal) lock(ctx context.Context, path string) error {
	if j.path != path {
		if err := j.close(); err != nil {
			return err
		}
		j.path = path
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if taken, err := j.tryLock(); taken || err != nil {
		return err
	}
	pause := time.NewTimer(lockPauseMin)
	defer pause.Stop()
	for wait := lockPauseMin; ; wait = min(2*wait, lockPauseMax) {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if taken, err := j.tryLock(); taken || err != nil {
			return err
		}
		pause.Reset(wait)
	}
}

func (j *journal) tryLock() (bool, error) {
	if j.file == nil {
		if err := j.disk.mkdirAll(filepath.Dir(j.path)); err != nil {
			return false, err
		}
		f, err := j.disk.open(j.path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK)
		if err != nil {
			return false, err
		}
		st, err := j.disk.fstat(f)
		if err == nil && st.kind != syscall.S_IFREG {
			err = &fs.PathError{Op: "open the journal", Path: j.path, Err: dirs.ErrNotFile}
		}
		if err != nil {
			return false, errors.Join(err, f.Close())
		}
		j.file, j.id, j.known = f, st.identity, false
	}
	for {
		err := syscall.Flock(int(j.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return false, nil
		}
		if err != nil {
			return false, &fs.PathError{Op: "flock", Path: j.path, Err: err}
		}
		break
	}
	// A lock on a file that somebody deleted keeps nobody out.
	there, err := j.disk.lstat(j.path)
	if err == nil && there.identity == j.id {
		return true, nil
	}
	return false, j.close()
}

func (j *journal) unlock() {
	if j.file == nil {
		return
	}
	_ = syscall.Flock(int(j.file.Fd()), syscall.LOCK_UN)
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file, j.known = nil, false
	return err
}

// load reads the journal. A damaged one is as none; it does not fail for that.
func (j *journal) load() error {
	n, err := j.disk.readAt(j.file, j.buf[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		j.known = false
		return err
	}
	clear(j.buf[n:])
	slots := [2][]byte{j.buf[:slotSize], j.buf[slotSize:markAt]}
	if slotGeneration(slots[1]) > slotGeneration(slots[0]) {
		slots[0], slots[1] = slots[1], slots[0]
	}
	if j.known && slotGeneration(slots[0]) == j.generation {
		return nil
	}
	j.fresh, j.known = false, true
	for _, slot := range slots {
		if !j.decode(slot, j.table) {
			continue
		}
		if j.intent.open {
			switch decodeMark(j.buf[markAt:], j.generation, j.table) {
			case markWritten:
				j.finish(true)
			case markNotWritten:
				j.finish(false)
			}
		}
		return nil
	}
	j.state, j.fresh = state{}, true
	return nil
}

// store writes the state into the older slot.
func (j *journal) store() error {
	j.generation++
	at := int64(j.generation%2) * slotSize
	b := j.buf[at : at+slotSize]
	j.encode(b, j.table)
	if j.fresh {
		// All of the file, so that no later write needs room on a full disk.
		clear(j.buf[:at])
		clear(j.buf[at+slotSize:])
		b, at = j.buf[:], 0
	}
	if err := j.disk.writeAt(j.file, b, at); err != nil {
		j.known = false
		return err
	}
	j.fresh = false
	return nil
}

// settle says what became of the open intent, to the state and in the file. The
// mark is for others: who finds none looks into the log.
func (j *journal) settle(written bool) {
	mark := uint32(markNotWritten)
	if written {
		mark = markWritten
	}
	j.finish(written)
	b := j.buf[markAt:]
	encodeMark(b, j.generation, mark, j.table)
	if j.disk.writeAt(j.file, b, markAt) != nil {
		j.known = false
	}
}

// moveAside appends a fragment to <hash>.torn, behind a line that says what it
// is. The file begins anew when it would pass tornLimit; a fragment that is too
// long by itself is cut there.
func (j *journal) moveAside(i *intent, fragment []byte) (err error) {
	label, err := json.Marshal(map[string]any{
		"moved": time.Now().UTC().Format(time.RFC3339Nano), "offset": i.begin,
		"bytes": len(fragment), "of": i.size, "seq": i.seq,
	})
	if err != nil {
		return err
	}
	entry := append(label, '\n')
	entry = append(entry, fragment[:min(len(fragment), tornLimit-len(entry)-1)]...)
	entry = append(entry, '\n')

	f, err := j.disk.open(j.path+".torn", os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	st, err := j.disk.fstat(f)
	if err != nil {
		return err
	}
	if st.size+int64(len(entry)) > tornLimit {
		if err := j.disk.truncate(f, 0); err != nil {
			return err
		}
		st.size = 0
	}
	return j.disk.writeAt(f, entry, st.size)
}
