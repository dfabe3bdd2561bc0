// Package transcript reads a client's transcript: a file of JSON lines that grows
// while the session lives. It reads what was added since the last time, and takes
// nothing for granted: the file may be missing, replaced, cut short or rewritten,
// its last line half written, any line damaged, megabytes long or of a kind that
// nobody here knows (design §10, hard case BR-39).
//
// What it costs is the new bytes; what it keeps is one line. A line's items alias
// it: who wants them longer copies them, or remembers where the line is and reads
// it again (Reader.At).
package transcript

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	"ways/hooks/lines"
)

// ErrNotFile is returned for a transcript that is no regular file.
var ErrNotFile = errors.New("not a regular file")

// markBytes is how much in front of the position is compared to tell whether the
// file is still the one that was read.
const markBytes = 256

// budget is how much one Read takes, in bytes, before it lets its caller do
// something else. It is one line at least.
const budget = 8 << 20

// File is a transcript and how far it was read. It can be kept as JSON.
type File struct {
	Path string `json:"path"`
	Dev  uint64 `json:"dev,omitempty"`
	Ino  uint64 `json:"ino,omitempty"`
	// Offset is where the next line begins.
	Offset int64 `json:"offset"`
	// Mark is a checksum of the bytes in front of Offset.
	Mark uint32 `json:"mark,omitempty"`
	// Last is the newest time of a line that was read, and Recent the ids of the
	// lines of that time: what tells old from new in a file that was rewritten.
	Last   time.Time `json:"last,omitzero"`
	Recent []string  `json:"recent,omitempty"`
	// Again: the file was rewritten, and only lines read before have come so far.
	Again bool `json:"again,omitempty"`
}

// maxRecent bounds Recent; a client writes a few lines a millisecond at most.
const maxRecent = 64

// Stretch is a part of a file that holds no line that could be read.
type Stretch struct {
	At, Size int64
	Err      error
}

func (s Stretch) Error() string {
	return fmt.Sprintf("bytes %d to %d: %v", s.At, s.At+s.Size, s.Err)
}

// Report says what a Read met.
type Report struct {
	Lines   int
	Bytes   int64
	Damaged []Stretch
	// Rewritten: the file is not the one that was read before, or not as it was;
	// it was read from its beginning.
	Rewritten bool
	// More: there is more to read at once.
	More bool
}

// Reader reads transcripts, one at a time. Its buffer is shared by all of them.
type Reader struct{ lines lines.Reader }

// Read calls each with every whole line that was added to the file. again says
// that the line was read before the file was rewritten. With final, nobody writes
// any more: a last line without an end is read too, if it is whole. A missing
// file is no error: it has no lines.
func (r *Reader) Read(f *File, final bool, each func(l Line, again bool)) (Report, error) {
	var rep Report
	h, err := open(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return rep, nil
	}
	if err != nil {
		return rep, err
	}
	defer h.Close()
	if err := f.compare(h, &rep); err != nil {
		return rep, err
	}
	if _, err := h.Seek(f.Offset, io.SeekStart); err != nil {
		return rep, fmt.Errorf("read transcript: %w", err)
	}
	r.lines.Longest, r.lines.Keep = MaxLine, keepBuffer
	r.lines.Reset(h, f.Offset)
	defer r.lines.Reset(nil, 0)
	start := f.Offset
	for {
		if f.Offset-start >= budget {
			rep.More = true
			break
		}
		ln, err := r.lines.Next()
		whole := err == nil
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, lines.ErrUnterminated) {
			return rep, errors.Join(fmt.Errorf("read transcript %s: %w", f.Path, err), f.mark(h))
		}
		if !whole && (!final || ln.Size == 0) {
			break
		}
		f.Offset = ln.At + ln.Size
		rep.Bytes += ln.Size
		switch line, err := parseLine(ln.Text, whole); {
		case err != nil:
			rep.Damaged = append(rep.Damaged, Stretch{ln.At, ln.Size, err})
		default:
			line.At, line.Size = ln.At, ln.Size
			rep.Lines++
			each(line, f.old(line))
			f.note(line)
		}
		if !whole {
			break
		}
	}
	return rep, f.mark(h)
}

// parseLine is Parse of a line that may be too long, blank or torn.
func parseLine(text []byte, whole bool) (Line, error) {
	if text == nil {
		return Line{}, errEndless
	}
	if blank(text) {
		return Line{}, nil
	}
	l, err := Parse(text)
	if err != nil && !whole {
		err = errTorn
	}
	return l, err
}

func blank(text []byte) bool {
	return !slices.ContainsFunc(text, func(c byte) bool { return c != ' ' && c != '\t' && c != '\r' })
}

func open(path string) (*os.File, error) {
	h, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	info, err := h.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNotFile
	}
	if err != nil {
		h.Close()
		return nil, fmt.Errorf("read transcript %s: %w", path, err)
	}
	return h, nil
}

// compare finds out whether the file is the one that was read before, and begins
// anew when it is not.
func (f *File) compare(h *os.File, rep *Report) error {
	info, err := h.Stat()
	if err != nil {
		return fmt.Errorf("read transcript: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("read transcript %s: %w", f.Path, ErrNotFile)
	}
	dev, ino := uint64(st.Dev), st.Ino
	same := f.Offset == 0 || (dev == f.Dev && ino == f.Ino && info.Size() >= f.Offset)
	if same && f.Offset > 0 {
		mark, err := markOf(h, f.Offset)
		if err != nil {
			return err
		}
		same = mark == f.Mark
	}
	if !same {
		rep.Rewritten = true
		f.Offset, f.Again = 0, true
	}
	f.Dev, f.Ino = dev, ino
	return nil
}

// mark notes what stands in front of the position.
func (f *File) mark(h *os.File) error {
	var err error
	f.Mark, err = markOf(h, f.Offset)
	return err
}

func markOf(h *os.File, offset int64) (uint32, error) {
	var buf [markBytes]byte
	n := min(offset, markBytes)
	if _, err := h.ReadAt(buf[:n], offset-n); err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("read transcript: %w", err)
	}
	return crc32.Checksum(buf[:n], crc32.MakeTable(crc32.Castagnoli)), nil
}

// old reports whether a line was read before the file was rewritten.
func (f *File) old(l Line) bool {
	if f.Again && (l.Time.After(f.Last) || l.Time.Equal(f.Last) && l.UUID != "" && !slices.Contains(f.Recent, l.UUID)) {
		f.Again = false
	}
	return f.Again
}

// note moves what tells old from new.
func (f *File) note(l Line) {
	if f.Again || l.Time.Before(f.Last) || l.Time.IsZero() {
		return
	}
	if l.Time.After(f.Last) {
		f.Last, f.Recent = l.Time, f.Recent[:0]
	}
	if l.UUID != "" && len(f.Recent) < maxRecent {
		f.Recent = append(f.Recent, l.UUID)
	}
}

// Skip passes over what the file holds now.
func (f *File) Skip() error {
	h, err := open(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer h.Close()
	if err := f.compare(h, &Report{}); err != nil {
		return err
	}
	info, err := h.Stat()
	if err != nil {
		return fmt.Errorf("read transcript: %w", err)
	}
	f.Offset = info.Size()
	return f.mark(h)
}

// At reads one line again. An error: the file no longer holds it there.
func (r *Reader) At(path string, at, size int64) (Line, error) {
	h, err := open(path)
	if err != nil {
		return Line{}, err
	}
	defer h.Close()
	text := make([]byte, size)
	if _, err := h.ReadAt(text, at); err != nil {
		return Line{}, fmt.Errorf("read transcript %s, byte %d: %w", path, at, err)
	}
	if n := len(text); n > 0 && text[n-1] == '\n' {
		text = text[:n-1]
	}
	l, err := Parse(text)
	if err != nil {
		return Line{}, fmt.Errorf("read transcript %s, byte %d: %w", path, at, err)
	}
	l.At, l.Size = at, size
	return l, nil
}
