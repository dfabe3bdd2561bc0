package spool

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// draft is a record of a test: head and tail around the number.
type draft struct{ head, tail string }

func (d draft) Append(dst []byte, seq uint64) []byte {
	return fmt.Appendf(dst, "%s%d%s", d.head, seq, d.tail)
}
func (d draft) Size() int { return len(d.head) + len(d.tail) }

// one is a request for a single record that says what.
func one(what string) Request {
	return Request{
		Generation: 7, Now: time.Unix(1000, 0), Wait: time.Second,
		Build: func(bool) []Draft { return []Draft{draft{`{"seq":`, `,"what":"` + what + `"}`}} },
	}
}

func appendOne(t *testing.T, dir, what string) Result {
	t.Helper()
	res, err := Append(dir, one(what))
	if err != nil {
		t.Fatalf("append %s: %v", what, err)
	}
	return res
}

// appendFrame appends a record's frame to dst.
func appendFrame(dst []byte, seq, generation uint64, record []byte) []byte {
	return appendMarked(dst, recordMark, seq, generation, record)
}

// session is a fresh session directory.
func session(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "state", "sessions", "s")
}

// readAll reads every frame there is, and counts damage.
func readAll(t *testing.T, dir string) (frames []string, damaged int) {
	t.Helper()
	r := NewReader(dir, Position{})
	defer r.Close()
	for {
		f, err := r.Next()
		var d *Damage
		switch {
		case errors.Is(err, ErrWait):
			return frames, damaged
		case errors.As(err, &d):
			damaged++
		case err != nil:
			t.Fatalf("read: %v", err)
		default:
			frames = append(frames, string(f.JSON))
		}
	}
}

func rec(seq int, what string) string { return fmt.Sprintf(`{"seq":%d,"what":"%s"}`, seq, what) }

func equal(t *testing.T, got, want []string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAppendNumbersAndReadsBack(t *testing.T) {
	dir := session(t)
	for i, what := range []string{"a", "b", "c"} {
		res := appendOne(t, dir, what)
		if res.First != uint64(i+1) || res.Last != uint64(i+1) {
			t.Errorf("%s got numbers %d to %d, want %d", what, res.First, res.Last, i+1)
		}
	}
	got, damaged := readAll(t, dir)
	equal(t, got, []string{rec(1, "a"), rec(2, "b"), rec(3, "c")})
	if damaged != 0 {
		t.Errorf("%d damaged stretches, want none", damaged)
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, lockName): 0o600, segmentPath(dir, 1): 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
}

func TestDuplicateTakesNoNumber(t *testing.T) {
	dir := session(t)
	now := time.Unix(5000, 0)
	req := func(key uint64, at time.Time) Request {
		r := one("x")
		r.Key, r.Window, r.Now = key, 2*time.Second, at
		return r
	}
	for _, row := range []struct {
		name string
		req  Request
		want uint64 // 0: a duplicate
	}{
		{"first", req(1, now), 1},
		{"the same at once", req(1, now), 0},
		{"another", req(2, now), 2},
		{"the same at the window's end", req(1, now.Add(2*time.Second)), 0},
		{"the same behind the window", req(1, now.Add(2001*time.Millisecond)), 3},
		{"the clock stepped back far", req(1, now.Add(-time.Hour)), 4},
	} {
		res, err := Append(dir, row.req)
		if err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		if res.First != row.want || res.Duplicate != (row.want == 0) {
			t.Errorf("%s: number %d, duplicate %v; want number %d", row.name, res.First, res.Duplicate, row.want)
		}
	}
}

func TestTurnIsRemembered(t *testing.T) {
	dir := session(t)
	var turns []bool
	prompt := func(turn uint64) {
		r := one("p")
		r.Turn = turn
		r.Build = func(in bool) []Draft { turns = append(turns, in); return nil }
		if _, err := Append(dir, r); err != nil {
			t.Fatal(err)
		}
	}
	prompt(1)
	prompt(1)
	prompt(2)
	prompt(1)
	if got := fmt.Sprint(turns); got != "[false true false false]" {
		t.Errorf("in turn: %s", got)
	}
}

// TestKilledWriters plays every way a writer can die: inside the frame, between
// frame and state, at the first append.
func TestKilledWriters(t *testing.T) {
	whole := func(seq uint64) []byte { return appendFrame(nil, seq, 7, []byte(rec(int(seq), "killed"))) }
	for _, row := range []struct {
		name    string
		left    []byte // what the dead writer left at the end of the segment
		want    []string
		damaged int
	}{
		{"between frame and state", whole(3), []string{rec(1, "a"), rec(2, "b"), rec(3, "killed"), rec(4, "c")}, 0},
		{"two such writers", append(whole(3), whole(4)...), []string{rec(1, "a"), rec(2, "b"), rec(3, "killed"), rec(4, "killed"), rec(5, "c")}, 0},
		{"after one byte", whole(3)[:1], []string{rec(1, "a"), rec(2, "b"), rec(3, "c")}, 0},
		{"inside the header", whole(3)[:6], []string{rec(1, "a"), rec(2, "b"), rec(3, "c")}, 1},
		{"inside the record", whole(3)[:len(whole(3))-9], []string{rec(1, "a"), rec(2, "b"), rec(3, "c")}, 1},
		{"before the last newline", whole(3)[:len(whole(3))-1], []string{rec(1, "a"), rec(2, "b"), rec(3, "killed"), rec(4, "c")}, 0},
		{"whole, then torn", append(whole(3), whole(4)[:20]...), []string{rec(1, "a"), rec(2, "b"), rec(3, "killed"), rec(4, "c")}, 1},
		{"NULs", make([]byte, 300), []string{rec(1, "a"), rec(2, "b"), rec(3, "c")}, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := session(t)
			appendOne(t, dir, "a")
			appendOne(t, dir, "b")
			f, err := os.OpenFile(segmentPath(dir, 1), os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			f.Write(row.left)
			f.Close()
			appendOne(t, dir, "c")
			got, damaged := readAll(t, dir)
			equal(t, got, row.want)
			if damaged != row.damaged {
				t.Errorf("%d damaged stretches, want %d", damaged, row.damaged)
			}
		})
	}
}

// TestLostState appends after the state was damaged in every way.
func TestLostState(t *testing.T) {
	for _, row := range []struct {
		name  string
		spoil func(path string)
	}{
		{"emptied", func(p string) { os.Truncate(p, 0) }},
		{"cut short", func(p string) { os.Truncate(p, 100) }},
		{"zeroed", func(p string) { os.WriteFile(p, make([]byte, 4096), 0o600) }},
		{"text", func(p string) { os.WriteFile(p, []byte(strings.Repeat("x", 4096)), 0o600) }},
		{"removed", func(p string) { os.Remove(p) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := session(t)
			appendOne(t, dir, "a")
			appendOne(t, dir, "b")
			row.spoil(filepath.Join(dir, lockName))
			appendOne(t, dir, "c")
			got, _ := readAll(t, dir)
			equal(t, got, []string{rec(1, "a"), rec(2, "b"), rec(3, "c")})
		})
	}
}

// TestEveryFlippedByte flips each byte of a small spool: only the entry that was
// hit may be missing, and the reader neither stops nor invents one.
func TestEveryFlippedByte(t *testing.T) {
	dir := session(t)
	var want []string
	for i := 1; i <= 5; i++ {
		appendOne(t, dir, fmt.Sprint(i))
		want = append(want, rec(i, fmt.Sprint(i)))
	}
	path := segmentPath(dir, 1)
	clean, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := range clean {
		for _, mask := range []byte{0x01, 0x80, 0xff, clean[at] ^ '\n'} {
			if mask == 0 {
				continue
			}
			spoilt := bytes.Clone(clean)
			spoilt[at] ^= mask
			os.WriteFile(path, spoilt, 0o600)
			got, _ := readAll(t, dir)
			missing, j := 0, 0
			for _, w := range want {
				if j < len(got) && got[j] == w {
					j++
				} else {
					missing++
				}
			}
			if j != len(got) || missing > 2 {
				t.Fatalf("byte %d with %#x: read %q", at, mask, got)
			}
			// A newline turned into something else can join two frames; any other
			// byte belongs to one.
			if missing == 2 && clean[at] != '\n' {
				t.Fatalf("byte %d with %#x lost two entries: read %q", at, mask, got)
			}
		}
	}
}

// TestEveryLength cuts a small spool at every length and appends to it: all that
// was whole is read, and the new entry.
func TestEveryLength(t *testing.T) {
	dir := session(t)
	for i := 1; i <= 3; i++ {
		appendOne(t, dir, fmt.Sprint(i))
	}
	path := segmentPath(dir, 1)
	clean, _ := os.ReadFile(path)
	lock, _ := os.ReadFile(filepath.Join(dir, lockName))
	for size := range clean {
		os.WriteFile(path, clean[:size], 0o600)
		os.WriteFile(filepath.Join(dir, lockName), lock, 0o600)
		before, _ := readAll(t, dir)
		for i, g := range before {
			if g != rec(i+1, fmt.Sprint(i+1)) {
				t.Fatalf("cut at %d: entry %d is %q", size, i, g)
			}
		}
		appendOne(t, dir, "new")
		after, _ := readAll(t, dir)
		// A frame that lacks only its last newline becomes whole with the next
		// one's first.
		if len(after) < len(before)+1 || after[len(after)-1] != rec(4, "new") {
			t.Fatalf("cut at %d: read %q", size, after)
		}
	}
}

func TestSegmentsRotateAndAreGivenBack(t *testing.T) {
	dir := session(t)
	big := strings.Repeat("x", SegmentBytes/2)
	for range 5 {
		appendOne(t, dir, big)
	}
	names, _ := segments(dir)
	if got := fmt.Sprint(names); got != "[1 3 5]" {
		t.Fatalf("segments %s, want [1 3 5]", got)
	}
	if got, _ := readAll(t, dir); len(got) != 5 {
		t.Fatalf("read %d entries, want 5", len(got))
	}
	freed, err := Reclaim(dir, 5)
	if err != nil || freed < 2*SegmentBytes {
		t.Errorf("gave back %d, %v", freed, err)
	}
	names, _ = segments(dir)
	if got := fmt.Sprint(names); got != "[5]" {
		t.Errorf("segments left %s, want [5]", got)
	}
	held, err := Lock(dir, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := held.Clear(dir); err != nil {
		t.Fatal(err)
	}
	held.Release()
	if res := appendOne(t, dir, "next"); res.First != 6 || res.At.Segment != 6 {
		t.Errorf("after all was given back: %+v, want number and segment 6", res)
	}
}

func TestInbox(t *testing.T) {
	dir := session(t)
	appendOne(t, dir, "a")
	held, err := Lock(dir, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	req := one("b")
	req.Wait, req.Key, req.Window = 0, 99, time.Minute
	res, err := Append(dir, req)
	if err != nil || !res.Inbox {
		t.Fatalf("with the lock held: %+v, %v", res, err)
	}
	held.Release()
	appendOne(t, dir, "c")
	if !InboxWaiting(dir) {
		t.Fatal("nothing waits in the inbox")
	}
	if n, err := TakeInbox(dir, time.Second); n != 1 || err != nil {
		t.Fatalf("took %d, %v", n, err)
	}
	got, _ := readAll(t, dir)
	equal(t, got, []string{rec(1, "a"), rec(2, "c"), rec(3, "b")})
	if InboxWaiting(dir) {
		t.Error("still waiting")
	}
	// The same event from a second wiring, which did get the lock.
	req.Wait = time.Second
	if res, err := Append(dir, req); err != nil || !res.Duplicate {
		t.Errorf("its duplicate: %+v, %v", res, err)
	}
}

func TestInboxSetsBadFilesAside(t *testing.T) {
	dir := session(t)
	appendOne(t, dir, "a")
	box := filepath.Join(dir, inboxName)
	os.Mkdir(box, 0o700)
	for i, text := range []string{"", "I1", "I1 1 1 1 1 1 0\nx", "\x00\x00", "I1 1 1 1 1 1 zz\n5 {}\n"} {
		os.WriteFile(filepath.Join(box, fmt.Sprintf("%020d-1", i)), []byte(text), 0o600)
	}
	n, err := TakeInbox(dir, time.Second)
	if n != 0 || err == nil {
		t.Errorf("took %d, %v; want 0 and errors", n, err)
	}
	bad, _ := filepath.Glob(filepath.Join(box, "*.bad"))
	if len(bad) != 5 || InboxWaiting(dir) {
		t.Errorf("%d set aside, waiting %v; want 5, false", len(bad), InboxWaiting(dir))
	}
}

func TestReaderWaitsForATornEnd(t *testing.T) {
	dir := session(t)
	appendOne(t, dir, "a")
	f, _ := os.OpenFile(segmentPath(dir, 1), os.O_WRONLY|os.O_APPEND, 0)
	frame := appendFrame(nil, 2, 7, []byte(rec(2, "b")))
	f.Write(frame[:12])
	r := NewReader(dir, Position{})
	defer r.Close()
	if fr, err := r.Next(); err != nil || fr.Seq != 1 {
		t.Fatal(fr, err)
	}
	for range 3 {
		if _, err := r.Next(); !errors.Is(err, ErrWait) {
			t.Fatalf("inside a frame: %v, want ErrWait", err)
		}
	}
	f.Write(frame[12:])
	f.Close()
	if fr, err := r.Next(); err != nil || fr.Seq != 2 {
		t.Fatalf("the frame once whole: %+v, %v", fr, err)
	}
}

func TestCursors(t *testing.T) {
	dir := session(t)
	appendOne(t, dir, "a")
	want := Cursors{
		Read: Cursor{Seq: 9, At: Position{1, 500}},
		Rules: map[string]Cursor{
			"a/b": {Seq: 3, RuleSeq: 2, At: Position{1, 77}},
			"z/z": {Seq: 9, RuleSeq: 4, At: Position{8, 0}},
		},
	}
	if _, err := LoadCursors(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("before: %v", err)
	}
	if err := SaveCursors(dir, want); err != nil {
		t.Fatal(err)
	}
	got, err := LoadCursors(dir)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, %v\nwant %v", got, err, want)
	}
	path := filepath.Join(dir, cursorsName)
	clean, _ := os.ReadFile(path)
	for at := range clean {
		spoilt := bytes.Clone(clean)
		spoilt[at] ^= 0x11
		os.WriteFile(path, spoilt, 0o600)
		if got, err := LoadCursors(dir); err == nil && fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("byte %d: read %v without an error", at, got)
		}
		os.WriteFile(path, clean[:at], 0o600)
		if _, err := LoadCursors(dir); !errors.Is(err, ErrCursors) {
			t.Fatalf("cut at %d: %v, want ErrCursors", at, err)
		}
	}
}
