package file

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// blockSize is the size of an intent on disk. It never changes, so that once
	// the first was written the next needs no room on a full disk.
	blockSize = 1024
	// headSize is how much of an entry its intent repeats, to recognise it.
	headSize = 256
	// tornLimit is where <hash>.torn begins anew, in bytes.
	tornLimit = 1 << 20
)

// The lock is tried again after these times; flock itself cannot be given up.
const (
	lockPauseMin = 100 * time.Microsecond
	lockPauseMax = 10 * time.Millisecond
)

// journal is the lock of a log, and in it the intent of the append under way.
type journal struct {
	path string
	file *os.File
}

// intent says which bytes of which file an append is about to write, or wrote.
type intent struct {
	Writing bool   `json:"writing"`
	Device  uint64 `json:"device"`
	Inode   uint64 `json:"inode"`
	// Begin and End are offsets in the log, the entry being [Begin, End).
	Begin int64 `json:"begin"`
	End   int64 `json:"end"`
	// OneLine is true when no newline may lie inside the entry, apart from one
	// in front that ends a foreign line.
	OneLine bool `json:"one_line"`
	// Delivery is a hash of the delivery's id.
	Delivery string `json:"delivery,omitempty"`
	// Head is how the entry begins.
	Head []byte `json:"head"`
}

func intentFor(stat fs.FileInfo, begin int64, entry []byte, id string) intent {
	device, inode := fileID(stat)
	return intent{
		Writing: true, Device: device, Inode: inode,
		Begin: begin, End: begin + int64(len(entry)),
		Delivery: id, Head: entry[:min(len(entry), headSize)],
	}
}

func fileID(info fs.FileInfo) (device, inode uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return uint64(st.Dev), st.Ino //nolint:unconvert // Dev is an int32 on macOS
}

// in reports whether the intent is about that file.
func (i intent) in(stat fs.FileInfo) bool {
	device, inode := fileID(stat)
	return i.Device == device && i.Inode == inode
}

// holds reports whether entry, of the delivery with that hash, is what the
// intent's writer wrote, whole.
func (i intent) holds(log *os.File, size int64, entry []byte, delivery string) bool {
	begin := i.End - int64(len(entry))
	if delivery == "" || i.Delivery != delivery || begin < i.Begin || size < i.End {
		return false
	}
	there := make([]byte, len(entry))
	_, err := log.ReadAt(there, begin)
	return err == nil && bytes.Equal(there, entry)
}

// fragment returns what the intent's writer left of its entry when it was
// killed; nil when there is no such fragment at the end of the log.
func (i intent) fragment(log *os.File, size int64) ([]byte, error) {
	if !i.Writing || size <= i.Begin || size >= i.End {
		return nil, nil
	}
	left := make([]byte, size-i.Begin)
	if _, err := log.ReadAt(left, i.Begin); err != nil {
		return nil, err
	}
	n := min(len(left), len(i.Head))
	if !bytes.Equal(left[:n], i.Head[:n]) {
		return nil, nil
	}
	// Somebody who knows no lock has written behind the fragment; it is theirs
	// to lose no more.
	if i.OneLine && bytes.IndexByte(left[1:], '\n') >= 0 {
		return nil, nil
	}
	return left, nil
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
	pause := time.NewTimer(0)
	defer pause.Stop()
	for wait := lockPauseMin; ; wait = min(2*wait, lockPauseMax) {
		if err := ctx.Err(); err != nil {
			return err
		}
		taken, err := j.tryLock()
		if taken || err != nil {
			return err
		}
		pause.Reset(wait)
		select {
		case <-pause.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (j *journal) tryLock() (bool, error) {
	if j.file == nil {
		if err := os.MkdirAll(filepath.Dir(j.path), 0o700); err != nil {
			return false, err
		}
		f, err := os.OpenFile(j.path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return false, err
		}
		j.file = f
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
	held, err := j.file.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Lstat(j.path)
	if err == nil && os.SameFile(held, there) {
		return true, nil
	}
	return false, j.close()
}

func (j *journal) unlock() {
	_ = syscall.Flock(int(j.file.Fd()), syscall.LOCK_UN)
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}

// read returns the last intent; false when there is none that can be trusted.
func (j *journal) read() (intent, bool) {
	block := make([]byte, blockSize)
	if _, err := j.file.ReadAt(block, 0); err != nil {
		return intent{}, false
	}
	body, sum := block[:blockSize-9], block[blockSize-9:]
	if string(sum) != checksum(body) {
		return intent{}, false
	}
	var i intent
	if json.Unmarshal(body, &i) != nil {
		return intent{}, false
	}
	return i, true
}

func (j *journal) write(i intent) error {
	body, err := json.Marshal(i)
	if err != nil {
		return err
	}
	if len(body) > blockSize-9 {
		return fmt.Errorf("an intent of %d bytes does not fit its block", len(body))
	}
	block := bytes.Repeat([]byte{' '}, blockSize-9)
	copy(block, body)
	_, err = j.file.WriteAt(append(block, checksum(block)...), 0)
	return err
}

func checksum(body []byte) string {
	return fmt.Sprintf("%08x\n", crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

// moveAside appends a fragment to <hash>.torn, behind a line that says what it
// is. The file begins anew when it would pass tornLimit; a fragment that is too
// long by itself is cut there.
func (j *journal) moveAside(i intent, fragment []byte) (err error) {
	label, err := json.Marshal(map[string]any{
		"moved": time.Now().UTC().Format(time.RFC3339Nano), "offset": i.Begin,
		"bytes": len(fragment), "of": i.End - i.Begin, "delivery": i.Delivery,
	})
	if err != nil {
		return err
	}
	entry := append(label, '\n')
	entry = append(entry, fragment[:min(len(fragment), tornLimit-len(entry)-1)]...)
	entry = append(entry, '\n')

	f, err := os.OpenFile(j.path+".torn", os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if end+int64(len(entry)) > tornLimit {
		if err := f.Truncate(0); err != nil {
			return err
		}
		end = 0
	}
	_, err = f.WriteAt(entry, end)
	return err
}
