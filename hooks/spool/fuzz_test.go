package spool

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// FuzzReader puts any bytes between two whole entries: both are read, first and
// last, and the reader comes to an end.
func FuzzReader(f *testing.F) {
	frame := appendFrame(nil, 2, 7, []byte(rec(2, "b")))
	f.Add([]byte{})
	f.Add(frame)
	f.Add(frame[:len(frame)-1])
	f.Add(frame[:20])
	f.Add(make([]byte, 300))
	f.Add([]byte("\nW1 2 7 99999999999999999999 0 {}\n"))
	f.Add([]byte("\nW1 18446744073709551615 7 2 0 {}\nW1 W1 W1"))
	f.Add([]byte("\r\n\n\n\n\nW1  "))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, middle []byte) {
		first := appendFrame(nil, 1, 7, []byte(rec(1, "first")))
		last := appendFrame(nil, 900, 7, []byte(rec(900, "last")))
		segment := append(append(bytes.Clone(first), middle...), last...)
		if err := os.WriteFile(segmentPath(dir, 1), segment, 0o600); err != nil {
			t.Fatal(err)
		}
		r := NewReader(dir, Position{})
		defer r.Close()
		var got []string
		at, covered := Position{Segment: 1}, int64(0)
		for range bytes.Count(segment, []byte("\n")) + 3 {
			fr, err := r.Next()
			var d *Damage
			switch {
			case errors.As(err, &d):
				covered += d.Size
			case errors.Is(err, ErrWait):
				if len(got) < 2 || got[0] != rec(1, "first") || got[len(got)-1] != rec(900, "last") {
					t.Fatalf("read %q from %q", got, segment)
				}
				if covered > int64(len(middle))+1 {
					t.Fatalf("%d bytes are called damaged of %d", covered, len(middle))
				}
				return
			case err != nil:
				t.Fatal(err)
			default:
				got = append(got, string(fr.JSON))
				if again, err := ReadAt(dir, fr.At); err != nil || again.Seq != fr.Seq || !bytes.Equal(again.JSON, fr.JSON) {
					t.Fatalf("read again: %+v, %v", again, err)
				}
			}
			if now := r.Position(); now.Offset <= at.Offset {
				t.Fatalf("stood still at %+v", now)
			} else {
				at = now
			}
		}
		t.Fatalf("no end in %q", segment)
	})
}

// FuzzState gives a writer any lock file: it appends all the same, and never
// with a number that is in the spool already.
func FuzzState(f *testing.F) {
	whole := encodeState(&state{generation: 1, seq: 2, segment: 1, end: 90})
	f.Add(whole[:])
	f.Add([]byte{})
	f.Add(make([]byte, 5000))
	f.Add([]byte("WAYSSST1"))
	dir := filepath.Join(f.TempDir(), "a", "b", "s")
	f.Fuzz(func(t *testing.T, lock []byte) {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		appendOne(t, dir, "a")
		appendOne(t, dir, "b")
		// Only whole states get past the checksum, and those are ours.
		if err := os.WriteFile(filepath.Join(dir, lockName), lock, 0o600); err != nil {
			t.Fatal(err)
		}
		res, err := Append(dir, one("c"))
		if err != nil || res.First != 3 {
			t.Fatalf("%+v, %v", res, err)
		}
		got, damaged := readAll(t, dir)
		equal(t, got, []string{rec(1, "a"), rec(2, "b"), rec(3, "c")})
		if damaged != 0 {
			t.Fatalf("%d damaged", damaged)
		}
	})
}

// FuzzCursors reads any body under a right checksum: what is accepted is read
// the same once written again.
func FuzzCursors(f *testing.F) {
	f.Add([]byte("9 0 1 500 \n3 2 1 77 a/b\n"))
	f.Add([]byte("9 0 1 500 \n3 2 1 77 a b\n"))
	f.Add([]byte("9 0 1 \n"))
	f.Add([]byte("\n\n"))
	f.Add([]byte("-1 99999999999999999999 x 0 \n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := parseCursors(body); err == nil {
			t.Fatalf("no head, accepted: %q", body)
		}
		c, err := parseCursors(append(fmt.Appendf(nil, "C1 %x\n", checksum(0, body)), body...))
		if err != nil {
			if !errors.Is(err, ErrCursors) {
				t.Fatal(err)
			}
			return
		}
		again, err := parseCursors(formatCursors(c))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(c) {
			t.Fatalf("%q: %v became %v, %v", body, c, again, err)
		}
	})
}

// FuzzInbox reads any body under a right checksum, and takes what is accepted
// in: the spool stays whole.
func FuzzInbox(f *testing.F) {
	f.Add([]byte("I1 1 2 3 4 5 "), []byte("7 {\"seq\":,\"what\":\"a\"}\n"))
	f.Add([]byte("I1 0 0 0 0 0 "), []byte("0 \n"))
	f.Add([]byte("I1 ffffffffffffffff 18446744073709551615 0 18446744073709551615 0 "), []byte("-1 x\n"))
	f.Add([]byte(""), []byte("5"))
	dir := filepath.Join(f.TempDir(), "a", "b", "s")
	f.Fuzz(func(t *testing.T, head, body []byte) {
		_, _ = parseInbox(append(bytes.Clone(head), body...))
		data := append(append(fmt.Appendf(bytes.Clone(head), "%x", checksum(0, body)), '\n'), body...)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		appendOne(t, dir, "a")
		if err := os.MkdirAll(filepath.Join(dir, inboxName), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, inboxName, "1"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := TakeInbox(dir, time.Second); err != nil && !errors.Is(err, errInbox) {
			t.Fatal(err)
		}
		if InboxWaiting(dir) {
			t.Fatal("still waiting")
		}
		last := appendOne(t, dir, "z")
		got, damaged := readAll(t, dir)
		if damaged != 0 || got[len(got)-1] != rec(int(last.First), "z") || uint64(len(got)) != last.First {
			t.Fatalf("%d damaged, %q", damaged, got)
		}
	})
}
