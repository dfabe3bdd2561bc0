package spool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SegmentBytes is the size at which the next append begins a new segment.
const SegmentBytes = 8 << 20

// ErrUnwritten is returned when records could not be written (a full disk,
// say). They are counted in the state, which needs no new space.
var ErrUnwritten = errors.New("records not written")

// errTooLong is the reason for a record that no frame can hold.
var errTooLong = errors.New("record longer than a frame can be")

// Draft is a record without its number; record.Draft is one.
type Draft interface {
	Append(dst []byte, seq uint64) []byte
	Size() int
}

// Request is one hook event's records on their way into the spool.
type Request struct {
	// Key tells this event from others; a Key noted within Window is a
	// duplicate and takes no number. 0 is never a duplicate.
	Key    uint64
	Window time.Duration
	// Turn is a key of the event's prompt id, when the event is a prompt.
	Turn uint64
	// Build makes the records. inTurn says that Turn is the running turn's.
	Build func(inTurn bool) []Draft
	// Claim, when set, is called with the numbers the records get, under the
	// lock and before they are written.
	Claim func(first, last uint64)
	// Note, when set, is appended behind the records: JSON for the readers of
	// notes alone. It takes no number. It is lost when the lock is not to be had,
	// so it may say nothing that cannot be found out later.
	Note []byte
	// Direct: when the lock stays held, fail with ErrLocked and leave nothing in
	// the inbox. For a writer that must know what it has written.
	Direct bool
	// Kept: the caller keeps the request when nothing of it could be written, and
	// comes again, so its records are not counted as lost then.
	Kept bool
	// Generation is the index generation the records were selected under.
	Generation uint64
	// Sync: return only when the disk has the records.
	Sync bool
	// Now is when the hook saw the event; Wait bounds the wait for the lock.
	Now  time.Time
	Wait time.Duration
}

// Result says what became of a Request.
type Result struct {
	// First and Last are the numbers given; 0 when none was.
	First, Last uint64
	// At is where the first frame begins.
	At Position
	// Noted: the note was written.
	Noted bool
	// Duplicate: the event was here already.
	Duplicate bool
	// Inbox: the lock was not to be had; the records wait in a file of their
	// own, and take their numbers when the dispatcher takes them in.
	Inbox bool
}

// Append gives the records their numbers and appends them, as one write. It
// makes the session directory when there is none. When the lock stays held for
// Wait it leaves the records in the inbox. Errors: ErrUnwritten and others that
// name the file; the records that the result gives no number are then counted,
// not stored.
func Append(dir string, req Request) (Result, error) { return disk{}.append(dir, req) }

func (d disk) append(dir string, req Request) (Result, error) {
	f, err := d.lockAppend(dir, req.Wait)
	if errors.Is(err, ErrLocked) && !req.Direct {
		return Result{Inbox: true}, d.leaveInInbox(dir, req)
	}
	if err != nil {
		return Result{}, err
	}
	defer f.Close()
	return d.appendLocked(f, dir, req)
}

func (d disk) appendLocked(lock *os.File, dir string, req Request) (Result, error) {
	// A lost state is rebuilt from the segments and the cursors (openLast).
	s, _ := readState(lock)
	if req.Key != 0 && s.seen(req.Key, req.Now, req.Window) {
		return Result{Duplicate: true}, nil
	}
	drafts := req.Build(req.Turn != 0 && req.Turn == s.turn)
	res, err := s.write(d, dir, drafts, req)
	written := 0
	if res.First != 0 {
		written = int(res.Last - res.First + 1)
	}
	if err != nil && written < len(drafts) {
		if !req.Kept || written > 0 {
			s.unwritten += uint64(len(drafts) - written)
		}
		err = fmt.Errorf("%w: %w", ErrUnwritten, err)
	}
	if err == nil || written > 0 {
		if req.Key != 0 {
			s.note(req.Key, req.Now)
		}
		if req.Turn != 0 {
			s.turn = req.Turn
		}
	}
	// A state that cannot be written is stale, no more: the next writer reads the
	// frames behind it.
	_ = d.writeState(lock, &s)
	return res, err
}

// write appends the drafts' frames to the active segment.
func (s *state) write(d disk, dir string, drafts []Draft, req Request) (Result, error) {
	if len(drafts) == 0 && req.Note == nil {
		return Result{}, nil
	}
	if err := checkSizes(drafts); err != nil {
		return Result{}, err
	}
	seg, size, err := s.openActive(d, dir)
	if err != nil {
		return Result{}, err
	}
	defer seg.Close()

	total := len(req.Note) + frameOverhead
	for _, draft := range drafts {
		total += draft.Size() + frameOverhead
	}
	ends := make([]int, 0, len(drafts)) // of the frames, in buf
	buf := make([]byte, 0, total)
	seq := s.seq
	for _, draft := range drafts {
		seq++
		buf = appendDraft(buf, seq, req.Generation, draft)
		ends = append(ends, len(buf))
	}
	noted := req.Note != nil && len(req.Note) <= MaxNote
	if noted {
		buf = appendMarked(buf, noteMark, seq, req.Generation, req.Note)
	}
	if req.Claim != nil && len(drafts) > 0 {
		req.Claim(s.seq+1, seq)
	}
	n, err := d.write(seg, buf)
	if err != nil {
		// What is whole stays: the reader may have seen it. A frame is whole also
		// without the newline at its end. Under the lock the bytes behind it are
		// ours alone, so they can go.
		whole, keep := 0, 0
		for whole < len(ends) && n >= ends[whole]-1 {
			keep = min(n, ends[whole])
			whole++
		}
		if n > keep {
			err = errors.Join(err, d.truncate(seg, size+int64(keep)))
		}
		if whole == 0 {
			return Result{}, err
		}
		seq, n = s.seq+uint64(whole), keep
	}
	res := Result{At: Position{s.segment, size}, Noted: noted && err == nil}
	if seq > s.seq {
		res.First, res.Last = s.seq+1, seq
	}
	s.seq, s.end = seq, size+int64(n)
	if err == nil && req.Sync {
		err = d.flush(seg, dir, size == 0)
	}
	return res, err
}

// flush returns when the disk has the segment, and its name if it is new.
func (d disk) flush(seg *os.File, dir string, isNew bool) error {
	err := d.sync(seg)
	if err == nil && isNew {
		err = d.syncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("records written, but not flushed: %w", err)
	}
	return nil
}

// checkSizes refuses records that no reader would take for one.
func checkSizes(drafts []Draft) error {
	for _, d := range drafts {
		if d.Size()+frameOverhead > MaxFrame {
			return errTooLong
		}
	}
	return nil
}

// frameOverhead is more than a frame's header and a number's digits take.
const frameOverhead = 100

// openActive opens the segment to append to. It begins a new one when there is
// none, or the last one is full.
func (s *state) openActive(d disk, dir string) (*os.File, int64, error) {
	f, size, err := s.openLast(d, dir)
	if err != nil || (f != nil && size < SegmentBytes) {
		return f, size, err
	}
	if f != nil {
		f.Close()
	}
	// The number after the last one names the new segment.
	name := s.seq + 1
	f, err = d.open(segmentPath(dir, name), os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return nil, 0, err
	}
	s.segment, s.end = name, 0
	size, err = s.catchUp(f)
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, size, nil
}

// openLast opens the segment that the log ends in, nil when there is none, and
// takes into the state what writers that died before they wrote the state left
// there.
func (s *state) openLast(d disk, dir string) (*os.File, int64, error) {
	if s.segment != 0 {
		f, err := d.open(segmentPath(dir, s.segment), os.O_RDWR|os.O_APPEND)
		switch {
		case err == nil:
			size, err := s.catchUp(f)
			if err == nil && size < SegmentBytes {
				return f, size, nil
			}
			f.Close()
			if err != nil {
				return nil, 0, err
			}
		case !errors.Is(err, os.ErrNotExist):
			return nil, 0, err
		}
	}
	// The state's segment is full or was given back. There may be one behind it,
	// and the numbers up to the cursors are taken in any case.
	names, err := segments(dir)
	if err != nil {
		return nil, 0, err
	}
	if c, err := LoadCursors(dir); err == nil {
		s.seq = max(s.seq, c.Read.Seq)
	}
	if len(names) == 0 {
		return nil, 0, nil
	}
	if last := names[len(names)-1]; last != s.segment {
		s.segment, s.end = last, 0
		s.seq = max(s.seq, last-1)
	}
	f, err := d.open(segmentPath(dir, s.segment), os.O_RDWR|os.O_APPEND)
	if err != nil {
		return nil, 0, err
	}
	size, err := s.catchUp(f)
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, size, nil
}

// catchUp reads the frames behind the place the state knows, written by a
// writer that was killed before it wrote the state.
func (s *state) catchUp(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	size := info.Size()
	if size <= s.end {
		s.end = size // cut short from outside: the frames lost are the reader's to report
		return size, nil
	}
	rd := frameLines()
	rd.Reset(io.NewSectionReader(f, s.end, size-s.end), 0)
	for {
		line, err := rd.Next()
		// A frame that lacks only the newline at its end is whole.
		if fr, bad := parseFrame(line.Text); bad == nil && fr.Seq > s.seq {
			s.seq = fr.Seq
		}
		if err != nil {
			break
		}
	}
	s.end = size
	return size, nil
}

// segmentPath is the file of the segment that begins with that number; the name
// is padded so that names sort as numbers.
func segmentPath(dir string, first uint64) string {
	name := strconv.FormatUint(first, 10)
	return filepath.Join(dir, strings.Repeat("0", 20-len(name))+name+".seg")
}

// segments lists a session's segments in order.
func segments(dir string) ([]uint64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []uint64
	for _, e := range entries {
		num, ok := strings.CutSuffix(e.Name(), ".seg")
		if !ok || len(num) != 20 || e.Type() != 0 {
			continue
		}
		if n, err := strconv.ParseUint(num, 10, 64); err == nil {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names, nil
}

// LastSeq is the last sequence number given in a session; 0 when none was.
func LastSeq(dir string, wait time.Duration) (uint64, error) {
	var d disk
	lock, err := d.lockAppend(dir, wait)
	if err != nil {
		return 0, err
	}
	defer lock.Close()
	// A lost state is rebuilt from the segments and the cursors (openLast).
	s, _ := readState(lock)
	f, _, err := s.openLast(d, dir)
	if f != nil {
		f.Close()
	}
	return s.seq, err
}

// Unwritten is how many records of a session could not be written, ever. It does
// not take the lock, and may miss the newest.
func Unwritten(dir string) uint64 {
	f, err := disk{}.open(filepath.Join(dir, lockName), os.O_RDONLY)
	if err != nil {
		return 0
	}
	defer f.Close()
	s, _ := readState(f)
	return s.unwritten
}
