package file

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ways/actors/target"
	"ways/config/plan"
	"ways/hooks/chain"
	"ways/hooks/redact"
)

// records are the records from to to of a session.
func records(session string, from, to int) []target.Dispatch {
	var ds []target.Dispatch
	for n := from; n <= to; n++ {
		ds = append(ds, Record(session, n))
	}
	return ds
}

func deliverAll(t *testing.T, to *Target, ds []target.Dispatch) {
	t.Helper()
	if n, err := to.DeliverAll(t.Context(), ds); n != len(ds) || err != nil {
		t.Fatalf("%d of %d records were accepted: %v", n, len(ds), err)
	}
}

// A log is the same, byte for byte, whether its records came one by one or together,
// also when some of them are in it already.
func TestTogetherAsOneByOne(t *testing.T) {
	for _, opts := range []Options{{}, {Chain: true}, {Chain: true, Sync: true}} {
		for _, split := range []int{1, 2, maxLines - 1, maxLines, maxLines + 1, 50} {
			f := newFixture(t)
			f.opts.Chain, f.opts.Sync = opts.Chain, opts.Sync
			one, all := f.target(t, plan.File{Path: f.log}), f.target(t, plan.File{Path: f.log + ".all"})
			ds := records("a", 1, 50)
			for _, d := range ds {
				deliver(t, one, d)
			}
			for n := 0; n < len(ds); n += split {
				deliverAll(t, all, ds[max(0, n-3):min(n+split, len(ds))])
			}
			if a, b := read(t, f.log), read(t, f.log+".all"); a != b {
				t.Errorf("%+v, %d at once: the logs differ:\n%.2000s\n%.2000s", opts, split, a, b)
			}
			if a, b := one.journal.head, all.journal.head; a != b {
				t.Errorf("%+v, %d at once: the heads are %d and %d", opts, split, a.N, b.N)
			}
		}
	}
}

// Records that cannot be together come after each other.
func TestNotTogether(t *testing.T) {
	f := newFixture(t)
	unordered := Record("a", 9)
	unordered.Unordered = true
	nameless := Record("a", 10)
	nameless.ID = ""
	huge := Record("a", 4)
	huge.Body = redact.Plain(bytes.Replace(huge.Body.Bytes(), []byte("xxx"), bytes.Repeat([]byte("x"), 2*mostTogether), 1), redact.Envelope{Rule: "s/r", RuleSeq: 4})
	all := f.target(t, plan.File{Path: f.log})
	deliverAll(t, all, append(records("a", 1, 3), huge, Record("a", 5), Record("b", 2), Record("b", 1), unordered, unordered, nameless, Record("c", 7)))
	if got := count(t, f.log); got != "a1 a2 a3 a4 a5 b2 a9 a10 c7" { // b1 is behind b2: it counts as written
		t.Errorf("log: %s", got)
	}
	text := f.target(t, plan.File{Path: f.log + ".txt", Format: "text", Template: "{seq}\n{seq}"})
	deliverAll(t, text, records("a", 1, 3))
	if text.journal.intent.lines != nil {
		t.Error("entries of the text format were appended together")
	}
}

// A record that cannot be chained does not keep those in front of it back, and is
// refused by itself.
func TestOneOfThemIsRefused(t *testing.T) {
	f := newFixture(t)
	f.opts.Chain = true
	to := f.target(t, plan.File{Path: f.log})
	ds := append(records("a", 1, 3), dispatch(4, `{}`))
	ds[3].Session, ds[3].Body = "a", redact.Payload{}
	n, err := to.DeliverAll(t.Context(), ds)
	if n != 3 || target.KindOf(err) != target.Refused {
		t.Errorf("%d accepted, %v", n, err)
	}
	if got := count(t, f.log); got != "a1 a2 a3" {
		t.Errorf("log: %s", got)
	}
}

// A writer is killed when any part of several records is in the log: those that are
// whole stay where they are and are not written again, and the rest is, once.
func TestLengthsOfSeveralRecords(t *testing.T) {
	for _, row := range []struct {
		name         string
		chain, moved bool
		foreign      string
	}{
		{"plain", false, false, ""},
		{"chained", true, false, ""},
		{"behind a line that nobody ended", true, false, "foreign"},
		{"rotated meanwhile", true, true, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newFixture(t)
			f.opts.Chain = row.chain
			first := f.target(t, plan.File{Path: f.log})
			deliver(t, first, Record("a", 1))
			appendTo(t, f.log, row.foreign)
			ds := records("a", 2, 6)
			ds = append(ds, records("a", 1<<40, 1<<40+1)[1:]...) // a step that is too long for one append
			deliverAll(t, first, ds[:5])
			whole := read(t, f.log)
			begin := first.journal.intent.begin
			if got := len(first.journal.intent.lines); got != 5 {
				t.Fatalf("one append holds %d records", got)
			}
			place := first.place
			must(t, first.Close())
			journal, err := os.ReadFile(place)
			must(t, err)
			clear(journal[markAt:]) // nobody said that it was done
			for size := begin; size <= int64(len(whole)); size++ {
				if size%7 > 0 && !strings.Contains(whole[size-2:min(size+2, int64(len(whole)))], "\n") {
					continue // each length near the end of a line, and some others
				}
				must(t, os.WriteFile(place, journal, 0o600))
				must(t, os.WriteFile(f.log, []byte(whole[:size]), 0o600))
				must(t, os.RemoveAll(f.log+".1"))
				if row.moved {
					must(t, os.Rename(f.log, f.log+".1"))
				}
				// The file is another one than the journal knows, so it is told.
				retell(t, f, place, journal, row.moved)
				after := f.target(t, plan.File{Path: f.log})
				deliverAll(t, after, ds)
				must(t, after.Close())
				text := read(t, f.log)
				if row.moved {
					text = read(t, f.log+".1") + text
				}
				kept := whole[:begin] + whole[begin:begin+int64(lastWhole(whole[begin:size]))]
				if !strings.HasPrefix(text, kept) {
					t.Fatalf("%d of %d bytes: what was whole did not stay", size-begin, int64(len(whole))-begin)
				}
				check(t, fmt.Sprintf("%d of %d bytes", size-begin, int64(len(whole))-begin), text, row.chain, row.foreign)
			}
		})
	}
}

// lastWhole is where the last whole record in a piece of a log ends.
func lastWhole(text string) int {
	if i := strings.LastIndex(text, "}\n"); i >= 0 {
		return i + 2
	}
	return 0
}

// check checks that a log has the records 1 to 6 of a session, and one far behind,
// once each and in order.
func check(t *testing.T, what, text string, chained bool, foreign string) {
	t.Helper()
	var seqs []uint64
	var head chain.Head
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == foreign && foreign != "" {
			continue
		}
		_, _, seq, _ := recordOf([]byte(line))
		seqs = append(seqs, seq)
		if l, ok := chain.Parse([]byte(line)); chained && (!ok || !l.Follows(head)) {
			t.Fatalf("%s: line %q does not follow", what, line)
		} else if chained {
			head = l.Head()
		}
	}
	if got, want := fmt.Sprint(seqs), fmt.Sprint([]uint64{1, 2, 3, 4, 5, 6, 1<<40 + 1}); got != want {
		t.Fatalf("%s: the log has %s, want %s", what, got, want)
	}
}

// retell writes the journal anew for the file that the log is now.
func retell(t *testing.T, f *fixture, place string, journal []byte, moved bool) {
	t.Helper()
	path := f.log
	if moved {
		path += ".1"
	}
	st, err := realDisk{}.lstat(path)
	must(t, err)
	j := newJournal(realDisk{})
	var s state
	at := 0
	if slotGeneration(journal[slotSize:]) > slotGeneration(journal) {
		at = slotSize
	}
	if !s.decode(journal[at:at+slotSize], j.table) {
		t.Fatal("the journal cannot be read")
	}
	if s.chainLog == s.intent.log {
		s.chainLog = st.identity
	}
	s.intent.log = st.identity
	again := bytes.Clone(journal)
	s.encode(again[at:at+slotSize], j.table)
	must(t, os.WriteFile(filepath.Clean(place), again, 0o600))
}

// flushing is a disk on which something happens with each flush.
type flushing struct {
	realDisk
	then func(f *os.File)
}

func (d flushing) sync(f *os.File) error { d.then(f); return nil }

// The log is rotated, by renaming or by copying and truncating, between two appends
// of records that came together: what comes then begins the new log, and the journal
// says where its chain begins.
func TestRotatedBetweenAppends(t *testing.T) {
	for name, rotate := range map[string]func(t *testing.T, log string){
		"renamed": func(t *testing.T, log string) { must(t, os.Rename(log, log+".1")) },
		"copied and truncated": func(t *testing.T, log string) {
			write(t, log+".1", read(t, log))
			must(t, os.Truncate(log, 0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.opts.Chain, f.opts.Sync = true, true
			flushes := 0
			to, err := newTarget(plan.File{Path: f.log, Format: "jsonl"}, f.opts, flushing{then: func(log *os.File) {
				if log.Name() != f.log {
					return // a directory
				}
				if flushes++; flushes == 1 {
					rotate(t, f.log)
				}
			}})
			must(t, err)
			ds := records("a", 1, maxLines+3)
			deliverAll(t, to, ds)
			must(t, to.Close())
			var old, fresh strings.Builder
			for n := 1; n <= maxLines+3; n++ {
				into := &old
				if n > maxLines {
					into = &fresh
				}
				fmt.Fprintf(into, "a%d ", n)
			}
			if got := count(t, f.log+".1") + " "; got != old.String() {
				t.Errorf("the old log has %s, want %s", got, old.String())
			}
			if got := count(t, f.log) + " "; got != fresh.String() {
				t.Errorf("the new log has %s, want %s", got, fresh.String())
			}
			known, err := Inspect(t.Context(), f.opts.StateDir, f.log)
			must(t, err)
			if known.First != maxLines+1 || known.Offset != 0 || known.Begin != 0 || known.Size != known.End {
				t.Errorf("the journal knows %+v", known)
			}
		})
	}
}
