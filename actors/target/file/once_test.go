package file

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ways/actors/target"
	"ways/config/plan"
	"ways/hooks/chain"
	"ways/hooks/redact"
)

// at is record n of a session, made at a minute of an hour.
func at(session string, n, minute int) target.Dispatch {
	d := Record(session, n)
	text := bytes.Replace(d.Body.Bytes(), []byte("03:04:05Z"), fmt.Appendf(nil, "03:%02d:05Z", minute), 1)
	text, _, _ = bytes.Cut(text, []byte(`,"rule":`))
	d.Body = redact.Plain(append(text, '}'), redact.Envelope{Rule: "s/r", RuleSeq: uint64(n)})
	return d
}

// count returns how often each record is in the log, in its order.
func count(t *testing.T, log string) string {
	t.Helper()
	var list []string
	for line := range strings.Lines(read(t, log)) {
		session, _, n, _ := recordOf([]byte(strings.TrimSuffix(line, "\n")))
		list = append(list, fmt.Sprint(session, n))
	}
	return strings.Join(list, " ")
}

// A record that was written is not written again, also when many other sessions
// have written since; one that was not, is.
func TestOnceAfterManyOtherSessions(t *testing.T) {
	f := newFixture(t)
	a := f.target(t, plan.File{Path: f.log})
	for n := 1; n <= 3; n++ {
		deliver(t, a, Record("a", n))
	}
	others := f.target(t, plan.File{Path: f.log})
	for s := range maxWriters - 1 {
		deliver(t, others, Record(fmt.Sprint("other", s), 1))
	}
	before := read(t, f.log)
	again := f.target(t, plan.File{Path: f.log})
	for n := 1; n <= 3; n++ {
		deliver(t, again, Record("a", n))
	}
	if got := read(t, f.log); got != before {
		t.Errorf("written again: %q", strings.TrimPrefix(got, before))
	}
	deliver(t, again, Record("a", 4))
	if got := strings.TrimPrefix(read(t, f.log), before); got != line(Record("a", 4)) {
		t.Errorf("the next record: %q", got)
	}
	// One writer more than are remembered: the one that was idle longest is not.
	deliver(t, others, Record("last", 1))
	if a := f.target(t, plan.File{Path: f.log}); a.resolve(true) == nil {
		must(t, a.journal.lock(t.Context(), a.place))
		must(t, a.journal.load())
		a.journal.unlock()
		if n := len(a.journal.writers); n != maxWriters {
			t.Errorf("%d writers are remembered", n)
		}
	}
}

// Where records come in no order, only the very delivery counts as written.
func TestUnorderedDeliveries(t *testing.T) {
	f := newFixture(t)
	to := f.target(t, plan.File{Path: f.log})
	unordered := func(n int) target.Dispatch { d := Record("a", n); d.Unordered = true; return d }
	for _, n := range []int{5, 3, 5, 4, 3} {
		deliver(t, to, unordered(n))
	}
	if got := count(t, f.log); got != "a5 a3 a4" {
		t.Errorf("log: %s", got)
	}
	deliver(t, to, Record("a", 1)) // an ordered one has not been seen either
	for n := 100; n < 100+maxIDs; n++ {
		deliver(t, to, unordered(n))
	}
	deliver(t, to, unordered(5)) // too long ago
	if got := count(t, f.log); !strings.HasPrefix(got, "a5 a3 a4 a1 a100") || !strings.HasSuffix(got, " a163 a5") {
		t.Errorf("log: %s", got)
	}
}

// A session whose spool was deleted counts from 1 again. Its records are newer
// than all that were written, and none is taken for an old one.
func TestNumbersThatBeginAnew(t *testing.T) {
	f := newFixture(t)
	to := f.target(t, plan.File{Path: f.log})
	for n := 1; n <= 5; n++ {
		deliver(t, to, at("a", n, n))
	}
	deliver(t, to, at("a", 2, 2))  // again
	deliver(t, to, at("a", 1, 10)) // anew
	deliver(t, to, at("a", 1, 10)) // again
	deliver(t, to, at("a", 2, 11))
	deliver(t, to, at("a", 6, 6)) // its time does not matter
	if got := count(t, f.log); got != "a1 a2 a3 a4 a5 a1 a2 a6" {
		t.Errorf("log: %s", got)
	}
}

// After a power cut the journal may be older than the log, or gone: the lines
// say what it does not, and the chain goes on.
func TestAJournalOlderThanTheLog(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, place string, old []byte){
		"older": func(t *testing.T, place string, old []byte) { must(t, os.WriteFile(place, old, 0o600)) },
		"gone":  func(t *testing.T, place string, _ []byte) { must(t, os.Remove(place)) },
		"zeros": func(t *testing.T, place string, old []byte) {
			must(t, os.WriteFile(place, make([]byte, len(old)), 0o600))
		},
	} {
		f := newFixture(t)
		f.opts.Chain = true
		to := f.target(t, plan.File{Path: f.log})
		for n := 1; n <= 2; n++ {
			deliver(t, to, Record("a", n))
		}
		old, err := os.ReadFile(to.place)
		must(t, err)
		for n := 3; n <= 6; n++ {
			deliver(t, to, Record("a", n))
		}
		place := to.place
		must(t, to.Close())
		lose(t, place, old)
		appendTo(t, f.log, "{\"foreign\":1}\n")
		after := f.target(t, plan.File{Path: f.log})
		deliver(t, after, Record("a", 5)) // whose dispatcher had not noted it down
		deliver(t, after, Record("a", 7))
		var head chain.Head
		n := 0
		for line := range strings.Lines(read(t, f.log)) {
			if l, ok := chain.Parse([]byte(strings.TrimSuffix(line, "\n"))); ok {
				if !l.Follows(head) {
					t.Errorf("%s: %s does not follow %d", name, line, head.N)
				}
				head = l.Head()
				n++
			}
		}
		if n != 7 {
			t.Errorf("%s: %d records in the chain, want 7", name, n)
		}
		if j := &after.journal; j.adoptedTo != 6 || name == "older" && j.adoptedFrom != 3 {
			t.Errorf("%s: taken up %d to %d", name, j.adoptedFrom, j.adoptedTo)
		}
		known, err := Inspect(t.Context(), f.opts.StateDir, f.log)
		must(t, err)
		if known.First != 1 || known.Offset != 0 {
			t.Errorf("%s: the file is said to begin with record %d at %d", name, known.First, known.Offset)
		}
	}
}

// Without its journal a log that is no chain still says what is in it, and one that
// begins with foreign lines (0 here) where its chain begins.
func TestALogWithoutItsJournal(t *testing.T) {
	for _, chained := range []bool{false, true} {
		f := newFixture(t)
		f.opts.Chain = chained
		write(t, f.log, "foreign\n\n")
		to := f.target(t, plan.File{Path: f.log})
		deliverAll(t, to, append(records("a", 1, 4), Record("b", 2)))
		must(t, to.Close())
		must(t, os.Remove(to.place))
		after := f.target(t, plan.File{Path: f.log})
		deliverAll(t, after, append(records("a", 3, 5), records("b", 1, 3)...))
		if got := count(t, f.log); got != "0 0 a1 a2 a3 a4 b2 a5 b3" {
			t.Errorf("chained %v: log: %s", chained, got)
		}
		if j := &after.journal; chained && (j.chainFirst != 1 || j.chainBegin != int64(len("foreign\n\n"))) {
			t.Errorf("the chain is said to begin with %d at %d", j.chainFirst, j.chainBegin)
		}
	}
}

// A log that is rotated while an append is in doubt is looked for beside the new
// one.
func TestRotatedInDoubt(t *testing.T) {
	for _, row := range []struct {
		name  string
		away  bool
		whole bool
		want  string
	}{
		{"whole", false, true, ""},
		{"torn", false, false, "a2"},
		{"whole, and taken away", true, true, "a2"}, // nobody can know
	} {
		f := newFixture(t)
		to := f.target(t, plan.File{Path: f.log})
		deliver(t, to, Record("a", 1))
		deliver(t, to, Record("a", 2))
		encodeMark(to.journal.buf[markAt:], 0, markNone, to.journal.table)
		must(t, to.disk.writeAt(to.journal.file, to.journal.buf[markAt:], markAt))
		if !row.whole {
			must(t, os.Truncate(f.log, int64(len(line(Record("a", 1)))+20)))
		}
		must(t, os.Rename(f.log, f.log+".1"))
		if row.away {
			must(t, os.Rename(f.log+".1", filepath.Join(f.dir, "elsewhere")))
		}
		deliver(t, f.target(t, plan.File{Path: f.log}), Record("a", 2))
		if got := count(t, f.log); got != row.want {
			t.Errorf("%s: the new log has %q, want %q", row.name, got, row.want)
		}
		if !row.away && !row.whole {
			if got := read(t, f.log+".1"); got != line(Record("a", 1)) {
				t.Errorf("%s: the old log is %q", row.name, got)
			}
		}
	}
}

// Whatever byte of a journal is wrong, it is read as its newer or its older slot
// says, or as none; never as something that was not written.
func TestEveryFlipOfAJournal(t *testing.T) {
	f := newFixture(t)
	f.opts.Chain = true
	to := f.target(t, plan.File{Path: f.log})
	for n := 1; n <= 3; n++ {
		deliver(t, to, Record("a", n))
	}
	whole, err := os.ReadFile(to.place)
	must(t, err)
	head := to.journal.head
	read := func() chain.Head {
		must(t, to.journal.disk.writeAt(to.journal.file, whole, 0))
		to.journal.known = false
		must(t, to.journal.load())
		return to.journal.head
	}
	for i := range whole {
		whole[i] ^= 0x10
		got := read()
		switch {
		case got == head, got.N == 0:
		case got.N == 2 && i >= markAt: // not known to be finished
		case got.N == 1: // the older slot, whose own append the newer one settled
		default:
			t.Errorf("byte %d: the head is %d", i, got.N)
		}
		whole[i] ^= 0x10
	}
	if read() != head {
		t.Error("the journal was not put back")
	}
}

func FuzzJournal(f *testing.F) {
	table := crc32.MakeTable(crc32.Castagnoli)
	s := state{generation: 3, head: chain.Head{N: 7}, intent: intent{open: true, known: true, begin: 10, size: 5, prefix: []byte("{")}}
	s.remember(keyOf("a"), 4, 5)
	b := make([]byte, slotSize)
	s.encode(b, table)
	f.Add(b)
	f.Add(b[:50])
	f.Fuzz(func(t *testing.T, b []byte) {
		slot := make([]byte, slotSize)
		copy(slot, b)
		// The sum is made right, so that what is behind it is tried.
		good := crc32.Checksum(slot[:sumAt], table)
		slot[sumAt], slot[sumAt+1], slot[sumAt+2], slot[sumAt+3] = byte(good), byte(good>>8), byte(good>>16), byte(good>>24)
		var s state
		if !s.decode(slot, table) {
			return
		}
		again := make([]byte, slotSize)
		s.encode(again, table)
		var s2 state
		if !s2.decode(again, table) || s2.head != s.head || len(s2.writers) != len(s.writers) || s2.intent.end() != s.intent.end() {
			t.Errorf("%+v is read again as %+v", s, s2)
		}
		s.remember(key{1}, 2, 3)
		s.finish(s.intent.begin%2 == 0)
		s.written(false, key{}, key{1}, 1, 1)
		if len(s.writers) > maxWriters || s.intent.end() < 0 {
			t.Errorf("%d writers, end %d", len(s.writers), s.intent.end())
		}
	})
}
