package spool

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// readNoted reads a spool to its end: "seq json" of each record, "note seq json"
// of each note.
func readNoted(t *testing.T, dir string, notes bool) []string {
	t.Helper()
	r := NewReader(dir, Position{})
	r.Notes = notes
	defer r.Close()
	var got []string
	for {
		f, err := r.Next()
		if errors.Is(err, ErrWait) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		what := ""
		if f.Note {
			what = "note "
		}
		got = append(got, fmt.Sprintf("%s%d %s", what, f.Seq, f.JSON))
	}
}

// TestNotes: a note takes no number, is seen by readers that ask for notes, and
// is no record to anybody else, in a segment of notes alone too.
func TestNotes(t *testing.T) {
	dir := t.TempDir() + "/sessions/s"
	note := func(text string, drafts ...Draft) Result {
		t.Helper()
		res, err := Append(dir, Request{
			Note: []byte(text), Now: time.Now(), Wait: time.Second, Build: func(bool) []Draft { return drafts },
		})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if res := note(`{"n":1}`); res.First != 0 || res.Last != 0 || !res.Noted {
		t.Errorf("a note alone: %+v", res)
	}
	if res := note(`{"n":2}`, text("a"), text("b")); res.First != 1 || res.Last != 2 || !res.Noted {
		t.Errorf("a note behind two records: %+v", res)
	}
	if res := note(`{"n":3}`); res.First != 0 || !res.Noted {
		t.Errorf("a note alone: %+v", res)
	}
	a, b := string(text("a").Append(nil, 1)), string(text("b").Append(nil, 2))
	for _, row := range []struct {
		notes bool
		want  []string
	}{
		{false, []string{"1 " + a, "2 " + b}},
		{true, []string{`note 0 {"n":1}`, "1 " + a, "2 " + b, `note 2 {"n":2}`, `note 2 {"n":3}`}},
	} {
		if got := readNoted(t, dir, row.notes); fmt.Sprint(got) != fmt.Sprint(row.want) {
			t.Errorf("notes %v: %q, want %q", row.notes, got, row.want)
		}
	}

	// When all is given back, notes are what is left; numbers go on.
	held, err := Lock(dir, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	_, err = held.Clear(dir)
	held.Release()
	if err != nil {
		t.Fatal(err)
	}
	note(`{"n":4}`)
	note(`{"n":5}`, text("c"))
	want := []string{`note 2 {"n":4}`, "3 " + string(text("c").Append(nil, 3)), `note 3 {"n":5}`}
	if got := readNoted(t, dir, true); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("after an idle exit: %q, want %q", got, want)
	}

	// One that is too long is left out, and its records stay.
	if res := note(string(make([]byte, MaxNote+1)), text("d")); res.First != 4 || res.Noted {
		t.Errorf("an endless note: %+v", res)
	}
}

// TestDirect: a direct writer learns that the lock was not to be had, and leaves
// nothing behind.
func TestDirect(t *testing.T) {
	dir := t.TempDir() + "/sessions/s"
	held, err := Lock(dir, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Append(dir, Request{Direct: true, Now: time.Now(), Build: func(bool) []Draft { return []Draft{text("a")} }})
	if !errors.Is(err, ErrLocked) || InboxWaiting(dir) {
		t.Errorf("got %v, inbox %v; want ErrLocked and an empty inbox", err, InboxWaiting(dir))
	}
	held.Release()
}

// text is a draft for these tests.
type text string

func (d text) Append(dst []byte, seq uint64) []byte {
	return fmt.Appendf(dst, `{"seq":%d,"t":%q}`, seq, string(d))
}

func (d text) Size() int { return len(d) + 16 }
