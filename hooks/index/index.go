// Package index is the compiled sensor index: what a hook reads instead of
// YAML (design §6.2). One file per project holds a small header for the hook,
// the files it was made from and the sections that some rule selects, and the
// plan for the dispatcher, which this package carries unread.
package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"ways/hooks/crc"
	"ways/hooks/dirs"
	"ways/hooks/record"
	"ways/hooks/temp"
)

// ErrDamaged is returned for an index file that is not whole, or of another
// format. The remedy is to compile again.
var ErrDamaged = errors.New("index file damaged or of another version")

// Kind says what of a file's stat belongs to the index's key.
type Kind uint8

// The kinds of input.
const (
	// File: any change of it.
	File Kind = iota
	// Dir: a directory whose entries matter.
	Dir
	// Root: a directory of which only its identity matters.
	Root
)

// Input is a file or directory that the index was made from, as it was then. An
// absent one is an input too: its appearance is a change.
type Input struct {
	Kind    Kind
	Path    string
	Present bool
	Dev     uint64
	Ino     uint64
	Size    int64
	Mtime   int64 // Unix nanoseconds
	Ctime   int64 // Unix nanoseconds
}

// Look stats an input as it is now.
func Look(kind Kind, path string) Input {
	in := Input{Kind: kind, Path: path}
	var st syscall.Stat_t
	for {
		err := syscall.Stat(path, &st)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return in
		}
		break
	}
	in.fill(&st)
	return in
}

// Seen is Look for a file that was stat'ed already, when it was read. A nil info
// is an absent input.
func Seen(kind Kind, path string, info fs.FileInfo) Input {
	in := Input{Kind: kind, Path: path}
	if info != nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			in.fill(st)
		}
	}
	return in
}

func (in *Input) fill(st *syscall.Stat_t) {
	in.Present, in.Dev, in.Ino = true, uint64(st.Dev), st.Ino
	if in.Kind != Root {
		in.Size, in.Mtime, in.Ctime = st.Size, mtime(st), ctime(st)
	}
}

// Header is what the hook reads.
type Header struct {
	// Generation changes with the plan.
	Generation uint64
	// Async and Blocking are the sections that some enabled rule of that mode
	// selects.
	Async, Blocking record.Set
	Flags           Flags
	// Since says of each section that is selected from when on it has been,
	// without a break (Unix nanoseconds): what a transcript shows of an earlier
	// time is nobody's.
	Since [SetBits]int64
	// Project is the project the index is for: the file's name is a hash of it, and
	// somebody may name a directory so that it has a trusted one's.
	Project string
	Inputs  []Input
}

// SetBits is how many sections a record.Set can hold.
const SetBits = 16

// Selects reports whether some rule has asked for a section at that time.
func (h *Header) Selects(s record.Section, at time.Time) bool {
	return (h.Async | h.Blocking).Has(s) && at.UnixNano() >= h.Since[s]
}

// Inherit takes over from the index before this one since when sections have
// been selected; those that were not are from now on.
func (h *Header) Inherit(old *Header, now time.Time) {
	for _, s := range (h.Async | h.Blocking).List() {
		h.Since[s] = now.UnixNano()
		if old != nil && (old.Async | old.Blocking).Has(s) {
			h.Since[s] = min(h.Since[s], old.Since[s])
		}
	}
}

// Stale returns what makes the index unfit for a project: the first input that is
// no longer as it was, or the project itself when the index is another one's; ""
// when it is fit.
func (h *Header) Stale(project string) string {
	if h.Project != project {
		return project + " (an index of another project is in its place)"
	}
	for _, in := range h.Inputs {
		if Look(in.Kind, in.Path) != in {
			return in.Path
		}
	}
	return ""
}

// Flags are settings that a hook acts on.
type Flags uint16

// The flags; their bits are part of the file.
const (
	// Sync: a hook waits until its records are on the disk (spool.sync: always).
	Sync Flags = 1 << iota
)

const (
	magic = "WAYSIDX4"
	// fixed is the part in front of the header: magic, header length, header
	// checksum, plan length, plan checksum.
	fixed = len(magic) + 4*4
	// firstRead takes most headers whole: 50 files with paths of 100 bytes.
	firstRead = 8 << 10
	// maxPart bounds the header and the plan.
	maxPart = 64 << 20
)

// Read reads the header of an index file. os.ErrNotExist when there is none,
// ErrDamaged when it cannot be used.
func Read(path string) (Header, error) {
	fd, err := open(path)
	if err != nil {
		return Header{}, err
	}
	defer syscall.Close(int(fd))
	body, _, _, err := readHeader(fd)
	if err != nil {
		return Header{}, err
	}
	return decodeHeader(body)
}

// Fresh reads the header of an index file as a hook wants it: without its inputs,
// each of which it has looked at instead. What it returns beside is what Stale
// would say.
func Fresh(path, project string) (h Header, changed string, err error) {
	fd, err := open(path)
	if err != nil {
		return Header{}, "", err
	}
	defer syscall.Close(int(fd))
	body, _, _, err := readHeader(fd)
	if err != nil {
		return Header{}, "", err
	}
	h, n, rest, err := decodeFixed(body)
	if err != nil {
		return Header{}, "", err
	}
	if changed = h.Stale(project); changed != "" {
		return h, changed, nil // another project's: there are no inputs in h
	}
	for range n {
		var in Input
		if in, rest, err = decodeInput(rest); err != nil {
			return Header{}, "", err
		}
		if Look(in.Kind, in.Path) != in {
			return h, in.Path, nil
		}
	}
	if len(rest) != 0 {
		return Header{}, "", ErrDamaged
	}
	return h, "", nil
}

// ReadPlan reads the header and the plan.
func ReadPlan(path string) (Header, []byte, error) {
	fd, err := open(path)
	if err != nil {
		return Header{}, nil, err
	}
	defer syscall.Close(int(fd))
	body, at, want, err := readHeader(fd)
	if err != nil {
		return Header{}, nil, err
	}
	h, err := decodeHeader(body)
	if err != nil {
		return Header{}, nil, err
	}
	plan := make([]byte, want.size)
	if n, err := fd.readAt(plan, at); err != nil || n < len(plan) || crc.IEEE(plan) != want.sum {
		return Header{}, nil, ErrDamaged
	}
	return h, plan, nil
}

// file is an open file's descriptor. An os.File would bring in the runtime's
// poller, which takes longer to start than an index takes to read.
type file int

func open(path string) (file, error) {
	fd, err := dirs.Descriptor(path, syscall.O_RDONLY)
	return file(fd), err
}

// readAt fills b from an offset on; fewer bytes are the file's end.
func (f file) readAt(b []byte, at int64) (n int, err error) {
	for n < len(b) {
		got, err := syscall.Pread(int(f), b[n:], at+int64(n))
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return n, fmt.Errorf("read the index: %w", err)
		}
		if got == 0 {
			break
		}
		n += got
	}
	return n, nil
}

type part struct{ size, sum uint32 }

// readHeader reads an encoded header, and finds the plan behind it.
func readHeader(f file) (body []byte, planAt int64, plan part, err error) {
	buf := make([]byte, firstRead)
	n, err := f.readAt(buf, 0)
	if err != nil {
		return nil, 0, plan, err
	}
	buf = buf[:n]
	if n < fixed || string(buf[:len(magic)]) != magic {
		return nil, 0, plan, ErrDamaged
	}
	le := binary.LittleEndian
	head := part{le.Uint32(buf[8:]), le.Uint32(buf[12:])}
	plan = part{le.Uint32(buf[16:]), le.Uint32(buf[20:])}
	if head.size > maxPart || plan.size > maxPart {
		return nil, 0, plan, ErrDamaged
	}
	whole := fixed + int(head.size)
	if whole > len(buf) {
		buf = make([]byte, whole)
		if n, err := f.readAt(buf, 0); err != nil || n < whole {
			return nil, 0, plan, ErrDamaged
		}
	}
	body = buf[fixed:whole]
	if crc.IEEE(body) != head.sum {
		return nil, 0, plan, ErrDamaged
	}
	return body, int64(whole), plan, nil
}

func encodeHeader(h Header) []byte {
	le := binary.LittleEndian
	b := le.AppendUint64(nil, h.Generation)
	b = le.AppendUint16(b, uint16(h.Async))
	b = le.AppendUint16(b, uint16(h.Blocking))
	b = le.AppendUint16(b, uint16(h.Flags))
	for _, since := range h.Since {
		b = le.AppendUint64(b, uint64(since))
	}
	b = le.AppendUint32(b, uint32(len(h.Project)))
	b = le.AppendUint32(b, uint32(len(h.Inputs)))
	b = append(b, h.Project...)
	for _, in := range h.Inputs {
		present := byte(0)
		if in.Present {
			present = 1
		}
		b = append(b, byte(in.Kind), present)
		for _, v := range []uint64{in.Dev, in.Ino, uint64(in.Size), uint64(in.Mtime), uint64(in.Ctime)} {
			b = le.AppendUint64(b, v)
		}
		b = le.AppendUint32(b, uint32(len(in.Path)))
		b = append(b, in.Path...)
	}
	return b
}

// headerBytes is the part of an encoded header in front of its project and
// inputs.
const headerBytes = 8 + 3*2 + SetBits*8 + 2*4

// inputBytes is the fixed part of an encoded input.
const inputBytes = 2 + 5*8 + 4

// decodeFixed decodes a header up to its inputs, of which there are n in rest.
func decodeFixed(b []byte) (h Header, n int, rest []byte, err error) {
	le := binary.LittleEndian
	if len(b) < headerBytes {
		return Header{}, 0, nil, ErrDamaged
	}
	h = Header{
		Generation: le.Uint64(b), Async: record.Set(le.Uint16(b[8:])), Blocking: record.Set(le.Uint16(b[10:])),
		Flags: Flags(le.Uint16(b[12:])),
	}
	for i := range h.Since {
		h.Since[i] = int64(le.Uint64(b[14+8*i:]))
	}
	name, n := int(le.Uint32(b[headerBytes-8:])), int(le.Uint32(b[headerBytes-4:]))
	b = b[headerBytes:]
	if name > len(b) {
		return Header{}, 0, nil, ErrDamaged
	}
	h.Project, b = string(b[:name]), b[name:]
	if n > len(b)/inputBytes {
		return Header{}, 0, nil, ErrDamaged
	}
	return h, n, b, nil
}

// decodeInput decodes the input that b begins with.
func decodeInput(b []byte) (in Input, rest []byte, err error) {
	le := binary.LittleEndian
	if len(b) < inputBytes {
		return Input{}, nil, ErrDamaged
	}
	size := int(le.Uint32(b[inputBytes-4:]))
	if size > len(b)-inputBytes {
		return Input{}, nil, ErrDamaged
	}
	in = Input{
		Kind: Kind(b[0]), Present: b[1] == 1,
		Dev: le.Uint64(b[2:]), Ino: le.Uint64(b[10:]), Size: int64(le.Uint64(b[18:])),
		Mtime: int64(le.Uint64(b[26:])), Ctime: int64(le.Uint64(b[34:])),
		Path: string(b[inputBytes : inputBytes+size]),
	}
	return in, b[inputBytes+size:], nil
}

func decodeHeader(b []byte) (Header, error) {
	h, n, rest, err := decodeFixed(b)
	if err != nil {
		return Header{}, err
	}
	h.Inputs = make([]Input, n)
	for i := range h.Inputs {
		if h.Inputs[i], rest, err = decodeInput(rest); err != nil {
			return Header{}, err
		}
	}
	if len(rest) != 0 {
		return Header{}, ErrDamaged
	}
	return h, nil
}

// Write replaces an index file, so that a reader sees the old one or the new
// one, whole. It sets the header's generation from the plan, and returns it.
func Write(path string, h Header, plan []byte) (uint64, error) {
	h.Generation = Generation(plan)
	header := encodeHeader(h)
	le := binary.LittleEndian
	out := append(make([]byte, 0, fixed+len(header)+len(plan)), magic...)
	for _, p := range [][]byte{header, plan} {
		out = le.AppendUint32(out, uint32(len(p)))
		out = le.AppendUint32(out, crc.IEEE(p))
	}
	out = append(append(out, header...), plan...)

	dir := filepath.Dir(path)
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := dirs.MakePrivate(d); err != nil {
			return 0, err
		}
	}
	if err := temp.Write(path, out, false); err != nil {
		return 0, fmt.Errorf("write the index: %w", err)
	}
	return h.Generation, nil
}

// Generation is the generation of a plan: a hash of its bytes.
func Generation(plan []byte) uint64 {
	return crc.Sum64(plan)
}
