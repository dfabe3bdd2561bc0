package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// faulty is a disk whose operation number k, and all behind it if lasting, fails.
type faulty struct {
	k, n    int
	lasting bool
	err     error
	// hit says what failed, as "write 0001.seg".
	hit []string
}

func (f *faulty) fault(op, path string) error {
	f.n++
	if f.n == f.k || f.lasting && f.n > f.k {
		f.hit = append(f.hit, op+" "+filepath.Base(path))
		return f.err
	}
	return nil
}

// life is a session's whole life on a disk that fails, and what it promised.
type life struct {
	t       *testing.T
	dir     string
	f       *faulty
	disk    disk
	stored  []string // what Append gave a number, or left in the inbox
	refused []string // what it said it could not write
	errs    []error
}

func (l *life) say(err error) {
	var d *Damage
	if err != nil && !errors.Is(err, ErrLocked) && !errors.As(err, &d) {
		l.errs = append(l.errs, err)
	}
}

func (l *life) append(req Request, whats ...string) {
	res, err := l.disk.append(l.dir, req)
	l.say(err)
	n := 0
	switch {
	case res.Inbox && err == nil:
		n = len(whats)
	case res.First != 0:
		n = int(res.Last - res.First + 1)
	}
	l.stored = append(l.stored, whats[:n]...)
	l.refused = append(l.refused, whats[n:]...)
	if n < len(whats) && err == nil {
		l.t.Errorf("%v: not stored, and no error", whats[n:])
	}
}

// play appends, reads, gives space back, takes the inbox in, leaves.
func (l *life) play() {
	two := one("")
	two.Sync = true
	two.Build = func(bool) []Draft {
		return []Draft{draft{`{"seq":`, `,"what":"b"}`}, draft{`{"seq":`, `,"what":"c"}`}}
	}
	l.append(one("a"), "a")
	l.append(two, "b", "c")
	l.fill()
	l.append(one("next segment"), "next segment")

	// A writer that finds the lock held leaves its record in the inbox.
	if held, err := Lock(l.dir, time.Second); err == nil {
		late := one("late")
		late.Wait, late.Key, late.Window = 0, 77, time.Minute
		l.append(late, "late")
		held.Release()
	}
	for range 3 {
		took, err := l.disk.takeInbox(l.dir, time.Second)
		l.say(err)
		if took == 0 {
			break
		}
	}

	r := NewReader(l.dir, Position{})
	r.disk = l.disk
	defer r.Close()
	c := Cursors{Rules: map[string]Cursor{}}
	failures := 0
	for failures < 5 {
		f, err := r.Next()
		if errors.Is(err, ErrWait) {
			break
		}
		if err != nil {
			l.say(err)
			failures++
			continue
		}
		if strings.Contains(string(f.JSON), `"a"`) {
			// As far as the second record: a cursor must never be ahead of that.
			c.Read = Cursor{Seq: f.Seq, At: f.Next}
			l.say(l.disk.saveCursors(l.dir, c))
		}
	}
	_, err := l.disk.reclaim(l.dir, 1)
	l.say(err)
	l.append(one("end"), "end")
}

// fill makes the first segment a full one; there is nothing in most of it.
func (l *life) fill() {
	names, err := segments(l.dir)
	if err != nil || len(names) == 0 {
		return
	}
	path := segmentPath(l.dir, names[0])
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.WriteString("\n") // ends a frame that lacks its newline
		err = errors.Join(err, f.Truncate(SegmentBytes), f.Close())
	}
	if err != nil {
		l.t.Error(err)
	}
}

// verify reads everything on a sound disk.
func (l *life) verify() {
	l.disk = disk{}
	l.append(one("after"), "after")
	for range 3 {
		took, err := TakeInbox(l.dir, time.Second)
		if err != nil {
			l.t.Errorf("inbox: %v", err)
		}
		if took == 0 {
			break
		}
	}
	if InboxWaiting(l.dir) {
		l.t.Error("the inbox is not taken in")
	}
	got, _ := readAll(l.t, l.dir)
	var whats []string
	for i, json := range got {
		what := strings.TrimSuffix(json[strings.Index(json, `"what":"`)+8:], `"}`)
		if json != rec(i+1, what) {
			l.t.Errorf("record %d is %.80s", i+1, json)
		}
		whats = append(whats, what)
	}
	for _, w := range l.stored {
		// Twice only where both the note of its key and its removal from the inbox
		// failed.
		most := 1
		if l.f.lasting && w == "late" {
			most = 2
		}
		if n := count(whats, w); n < 1 || n > most {
			l.t.Errorf("%.20q was stored and is there %d times", w, n)
		}
	}
	for _, w := range l.refused {
		if n := count(whats, w); n > 0 {
			l.t.Errorf("%.20q was refused and is there", w)
		}
	}
	if n := Unwritten(l.dir); n > uint64(len(l.refused)) {
		l.t.Errorf("%d records are counted as unwritten, %d were refused", n, len(l.refused))
	}
	for _, err := range l.errs {
		if !errors.Is(err, l.f.err) {
			l.t.Errorf("an error of its own: %v", err)
		}
		var inPath *fs.PathError
		if !errors.As(err, &inPath) || !strings.Contains(err.Error(), l.dir) {
			l.t.Errorf("%v does not name the file", err)
		}
	}
}

func count(list []string, w string) int {
	n := 0
	for _, x := range list {
		if x == w {
			n++
		}
	}
	return n
}

// TestEveryOperationFails makes each open, write, sync, rename, removal and
// truncation of a session's life fail in turn, once and from then on, with
// nothing and with half of the bytes written. What was said to be stored is
// there, once; numbers have no hole; what was refused is not there; every error
// is the disk's and names the file; nothing goes round in circles.
func TestEveryOperationFails(t *testing.T) {
	ops := map[string]bool{}
	for _, row := range []struct {
		name    string
		lasting bool
		half    bool
		err     error
	}{
		{"once", false, false, syscall.ENOSPC},
		{"once, half written", false, true, syscall.EIO},
		{"from then on, half written", true, true, syscall.EDQUOT},
	} {
		t.Run(row.name, func(t *testing.T) {
			for k := 1; ; k++ {
				f := &faulty{k: k, lasting: row.lasting, err: row.err}
				l := &life{t: t, dir: session(t), f: f, disk: disk{fault: f.fault, half: row.half}}
				l.play()
				if len(f.hit) == 0 {
					if k < 30 {
						t.Errorf("only %d operations", k)
					}
					break // an unfaulted run: every operation has had its turn
				}
				for _, h := range f.hit {
					op, _, _ := strings.Cut(h, " ")
					ops[op] = true
				}
				f.k = -1
				l.verify()
				os.RemoveAll(l.dir)
				if t.Failed() {
					t.Fatalf("operation %d: %v", k, f.hit)
				}
			}
		})
	}
	for _, op := range []string{"open", "write", "writeat", "sync", "truncate", "rename", "remove", "mkdir"} {
		if !ops[op] {
			t.Errorf("%s never failed", op)
		}
	}
}

// TestEveryOperationOfLeavingFails: a dispatcher's last steps. Whatever fails,
// the numbers go on and nothing is given twice.
func TestEveryOperationOfLeavingFails(t *testing.T) {
	for k := 1; ; k++ {
		dir := session(t)
		appendOne(t, dir, "a")
		appendOne(t, dir, "b")
		f := &faulty{k: k, err: syscall.EIO}
		d := disk{fault: f.fault}
		c := Cursors{Read: Cursor{Seq: 2, At: Position{Segment: 3}}}
		if held, err := Lock(dir, time.Second); err == nil {
			held.disk = d
			if _, err := held.Clear(dir); err == nil {
				_ = d.saveCursors(dir, c)
			} else if !strings.Contains(err.Error(), dir) {
				t.Errorf("%v does not name the file", err)
			}
			held.Release()
		}
		if res := appendOne(t, dir, "c"); res.First != 3 {
			t.Fatalf("operation %d, %v: the next number is %d", k, f.hit, res.First)
		}
		got, damaged := readAll(t, dir)
		if damaged != 0 || !slices.Contains([]string{"[1 2 3]", "[2 3]", "[3]"}, fmt.Sprint(numbers(got))) {
			t.Fatalf("operation %d, %v: %d damaged, %v", k, f.hit, damaged, got)
		}
		if len(f.hit) == 0 {
			break
		}
	}
}

func numbers(list []string) []int {
	var out []int
	for _, json := range list {
		var n int
		fmt.Sscanf(json, `{"seq":%d`, &n)
		out = append(out, n)
	}
	return out
}
