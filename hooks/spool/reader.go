package spool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ways/hooks/lines"
)

// ErrWait is returned by Next when there is nothing more to read for now.
var ErrWait = errors.New("end of the spool for now")

// Damage is a stretch of the spool that holds no whole frame. The reader is past
// it; what comes behind is not affected.
type Damage struct {
	At   Position
	Size int64
	Err  error
}

func (d *Damage) Error() string {
	return fmt.Sprintf("spool segment %d, bytes %d to %d: %v", d.At.Segment, d.At.Offset, d.At.Offset+d.Size, d.Err)
}

func (d *Damage) Unwrap() error { return d.Err }

// Reader reads a session's frames in order. One goroutine at a time.
type Reader struct {
	// Notes: return notes too; without it they are passed over.
	Notes bool

	disk disk
	dir  string
	pos  Position
	f    *os.File
	in   *lines.Reader
	// base is the offset in the segment where in began to read.
	base int64
}

// NewReader reads from pos on; a zero position is the beginning.
func NewReader(dir string, pos Position) *Reader { return &Reader{dir: dir, pos: pos} }

// Position is where the next frame is looked for.
func (r *Reader) Position() Position { return r.pos }

// Close gives the open segment back.
func (r *Reader) Close() {
	if r.f != nil {
		r.f.Close()
		r.f = nil
	}
}

// Next returns the next frame; its JSON is valid until the call after. ErrWait
// when there is none yet; *Damage for a stretch that was passed over, after which
// the caller goes on calling. Other errors name the file.
func (r *Reader) Next() (Frame, error) { return r.next(false) }

// Settle is Next for a caller that holds the append lock: nobody is writing, so
// an unterminated last line is a dead writer's and is damage, not a reason to
// wait.
func (r *Reader) Settle(*Locked) (Frame, error) { return r.next(true) }

func (r *Reader) next(settle bool) (Frame, error) {
	for {
		if r.f == nil {
			if err := r.open(); err != nil {
				return Frame{}, err
			}
		}
		ln, err := r.in.Next()
		at := Position{r.pos.Segment, r.base + ln.At}
		switch {
		case err == nil:
			r.pos.Offset = at.Offset + ln.Size
			if len(ln.Text) == 0 && ln.Size == 1 {
				continue // the newline in front of a frame
			}
			f, err := parseFrame(ln.Text)
			if err != nil {
				return Frame{}, &Damage{At: at, Size: ln.Size, Err: err}
			}
			if f.Note && !r.Notes {
				continue
			}
			f.At, f.Next = at, r.pos
			return f, nil

		case errors.Is(err, io.EOF), errors.Is(err, lines.ErrUnterminated):
			// A frame that lacks only the newline at its end is whole; the next
			// writer's newline will end it.
			if f, err := parseFrame(ln.Text); err == nil {
				f.JSON = slices.Clone(f.JSON)
				r.pos.Offset = at.Offset + ln.Size
				r.reread()
				if f.Note && !r.Notes {
					continue
				}
				f.At, f.Next = at, r.pos
				return f, nil
			}
			// Asked before the look for a successor, so that a frame written and
			// followed by a rotation in between is not passed over.
			rest := ln.Size
			after, listErr := r.after()
			if listErr != nil {
				return Frame{}, listErr
			}
			if rest == 0 && after == 0 {
				r.reread()
				return Frame{}, ErrWait
			}
			if rest > 0 && after == 0 && !settle {
				// Still being written, or a dead writer's that the next one ends.
				r.reread()
				return Frame{}, ErrWait
			}
			if after != 0 {
				if grown, err := r.grown(at.Offset + rest); err != nil || grown {
					r.reread()
					if err != nil {
						return Frame{}, err
					}
					continue
				}
			}
			if rest > 0 {
				r.pos.Offset = at.Offset + rest
				r.reread()
				return Frame{}, &Damage{At: at, Size: rest, Err: lines.ErrUnterminated}
			}
			// Nobody appends to it again: from here on a power cut keeps it. What
			// cannot be flushed is still in the page cache.
			_ = r.disk.sync(r.f)
			r.Close()
			r.pos = Position{after, 0}

		default:
			return Frame{}, fmt.Errorf("read spool segment %s: %w", r.f.Name(), err)
		}
	}
}

// frameLines reads the lines of a segment: a line longer than any frame is none.
func frameLines() *lines.Reader {
	return &lines.Reader{Longest: MaxFrame + frameOverhead, Keep: 1 << 20}
}

// reread makes the next read begin at the position again: a writer may have
// taken a torn end back in the meantime.
func (r *Reader) reread() {
	if r.f == nil {
		return
	}
	if info, err := r.f.Stat(); err == nil && info.Size() < r.pos.Offset {
		r.pos.Offset = info.Size()
	}
	if _, err := r.f.Seek(r.pos.Offset, io.SeekStart); err != nil {
		r.Close()
		return
	}
	r.base = r.pos.Offset
	if r.in == nil {
		r.in = frameLines()
	}
	r.in.Reset(r.f, 0)
}

// grown reports whether the open segment holds more than size bytes.
func (r *Reader) grown(size int64) (bool, error) {
	info, err := r.f.Stat()
	if err != nil {
		return false, err
	}
	return info.Size() > size, nil
}

// open opens the segment of the position, or the next one that exists.
func (r *Reader) open() error {
	names, err := segments(r.dir)
	if errors.Is(err, os.ErrNotExist) {
		return ErrWait
	}
	if err != nil {
		return err
	}
	i, _ := slices.BinarySearch(names, r.pos.Segment)
	if i == len(names) {
		return ErrWait
	}
	f, err := r.disk.open(segmentPath(r.dir, names[i]), os.O_RDONLY)
	if err != nil {
		return err
	}
	if names[i] != r.pos.Segment {
		r.pos = Position{names[i], 0}
	}
	r.f = f
	r.reread()
	if r.f == nil {
		return fmt.Errorf("read spool segment %d: cannot seek", names[i])
	}
	return nil
}

// after returns the segment behind the open one; 0 when it is the last.
func (r *Reader) after() (uint64, error) {
	names, err := segments(r.dir)
	if err != nil {
		return 0, err
	}
	i, found := slices.BinarySearch(names, r.pos.Segment)
	if found {
		i++
	}
	if i < len(names) {
		return names[i], nil
	}
	return 0, nil
}

// ReadAt reads the one frame that begins at pos.
func ReadAt(dir string, pos Position) (Frame, error) {
	r := NewReader(dir, pos)
	defer r.Close()
	f, err := r.Next()
	if err == nil && f.At.Segment != pos.Segment {
		err = fmt.Errorf("spool segment %d: %w", pos.Segment, os.ErrNotExist)
	}
	return f, err
}

// Reclaim deletes the segments in front of the one named before: every rule is
// past them. It returns the bytes given back.
func Reclaim(dir string, before uint64) (int64, error) { return disk{}.reclaim(dir, before) }

func (d disk) reclaim(dir string, before uint64) (int64, error) {
	names, err := segments(dir)
	if err != nil {
		return 0, err
	}
	var freed int64
	for _, name := range names {
		if name >= before {
			break
		}
		size, err := d.removeSegment(dir, name)
		if err != nil {
			return freed, err
		}
		freed += size
	}
	return freed, nil
}

// Clear deletes every segment. It takes the append lock's holder, who has read
// to the end: the active segment may go only while nobody can append to it. The
// state is brought up to date first, since the frames of a writer that died before
// it wrote the state are gone with the segment, and their numbers must not be
// given again.
func (l *Locked) Clear(dir string) (int64, error) {
	s, _ := readState(l.f)
	f, _, err := s.openLast(l.disk, dir)
	if f != nil {
		f.Close()
	}
	if err == nil {
		// No segment: one of the same name can come again, when this one held no
		// whole frame, and where it ends would be wrong for that.
		s.segment, s.end = 0, 0
		err = l.disk.writeState(l.f, &s)
	}
	if err != nil {
		return 0, err
	}
	names, err := segments(dir)
	if err != nil {
		return 0, err
	}
	var freed int64
	for _, name := range names {
		size, err := l.disk.removeSegment(dir, name)
		if err != nil {
			return freed, err
		}
		freed += size
	}
	return freed, nil
}

func (d disk) removeSegment(dir string, name uint64) (int64, error) {
	path := segmentPath(dir, name)
	info, err := os.Lstat(path)
	if err == nil {
		err = d.remove(path)
	}
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Bytes is the size of a session's segments.
func Bytes(dir string) (int64, error) {
	names, err := segments(dir)
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, name := range names {
		if info, err := os.Lstat(segmentPath(dir, name)); err == nil {
			sum += info.Size()
		}
	}
	return sum, nil
}

// Quiet reports whether nothing was appended to a session for that long.
func Quiet(dir string, while time.Duration) (bool, error) {
	info, err := os.Stat(filepath.Join(dir, lockName))
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	age := time.Since(info.ModTime())
	return age >= while || age < 0, nil // a clock that was set back says nothing
}
