package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"ways/actors/target"
	"ways/actors/target/audit"
	"ways/actors/target/checkpoint"
	"ways/actors/target/file"
	"ways/config/plan"
	"ways/hooks/chain"
	"ways/hooks/redact"
)

// lab is a chained log with its journal, its key and its checkpoints.
type lab struct {
	dir, log, state, keyFile string
	every                    uint64
}

func newLab(t *testing.T) lab {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	return lab{dir, filepath.Join(dir, "log"), filepath.Join(dir, "state"), checkpoint.KeyFile(dir), 3}
}

func (l lab) name() string { return file.JournalName(l.log) }

func (l lab) target(t *testing.T) target.Target {
	t.Helper()
	keeper := checkpoint.New(l.state, l.keyFile)
	to, err := file.New(plan.File{Path: l.log, Format: "jsonl"}, file.Options{
		StateDir: l.state, Getenv: func(string) string { return "" }, Chain: true,
		Checkpoints: file.Checkpoints{Every: l.every, AtClose: true, Write: func(name string, h chain.Head) error {
			_, err := keeper.Write(name, h)
			return err
		}},
	})
	must(t, err)
	return to
}

// fill writes records from to to, by one session.
func (l lab) fill(t *testing.T, from, to int) {
	t.Helper()
	way := l.target(t)
	for n := from; n <= to; n++ {
		must(t, way.Deliver(t.Context(), dispatch("session", n)))
	}
	must(t, way.Close())
}

func dispatch(session string, n int) target.Dispatch {
	record := fmt.Sprintf(`{"v":1,"ts":"2026-01-02T03:04:05Z","session":%q,"seq":%d,"data":{"n":%d}}`, session, n, n)
	return target.Dispatch{
		ID: fmt.Sprintf("%s:%d", session, n), Rule: "s/r", Session: session, Seq: uint64(n), Attempt: 1,
		Body: redact.Plain([]byte(record), redact.Envelope{Rule: "s/r", RuleSeq: uint64(n)}),
	}
}

// verify verifies the log with everything that is kept outside of it.
func (l lab) verify(t testing.TB, files ...string) audit.Report {
	t.Helper()
	r, err := audit.Verify(l.input(t, files...))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (l lab) input(t testing.TB, files ...string) audit.Input {
	t.Helper()
	if len(files) == 0 {
		files = []string{l.log}
	}
	in := audit.Input{Files: files, Chain: l.name()}
	if slices.Contains(files, l.log) {
		in.Current = l.log
	}
	known, err := file.Inspect(context.Background(), l.state, l.log)
	if err == nil {
		in.Known = &known
	} else if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if notes, err := os.ReadFile(checkpoint.File(l.state, l.name())); err == nil {
		key, err := checkpoint.Verifier(l.keyFile)
		if err != nil {
			t.Fatal(err)
		}
		in.Checkpoints = []*checkpoint.Reader{checkpoint.NewReader(bytes.NewReader(notes), key)}
	}
	return in
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return b
}

func first(r audit.Report) string {
	if len(r.Findings) == 0 {
		return string(r.Status)
	}
	f := r.Findings[0]
	return fmt.Sprintf("%s %s line %d n %d", r.Status, f.Kind, f.Line, f.N)
}

func TestAWholeLog(t *testing.T) {
	l := newLab(t)
	l.fill(t, 1, 8)
	l.fill(t, 9, 10)
	r := l.verify(t)
	if r.Status != audit.OK || len(r.Findings) != 0 || r.Records != 10 || r.First != 1 || r.Last != 10 || r.Checkpoints != 4 {
		t.Errorf("report = %+v", r)
	}
}

// Each row changes the lines of a log of ten records.
func TestTheFirstBadLineIsNamed(t *testing.T) {
	l := newLab(t)
	l.every = 100
	l.fill(t, 1, 10)
	whole := read(t, l.log)
	relink := func(lines []string, from int) []string {
		for i := from; i < len(lines); i++ {
			record, _, _ := strings.Cut(lines[i], `,"chain_n":`)
			head := chain.Head{}
			if i > 0 {
				before, _ := chain.Parse([]byte(lines[i-1]))
				head = before.Head()
			}
			line, _, err := chain.Append(nil, []byte(record+"}"), head)
			must(t, err)
			lines[i] = string(line)
		}
		return lines
	}
	for _, row := range []struct {
		name   string
		change func(lines []string) []string
		want   string
	}{
		{"nothing", func(l []string) []string { return l }, "ok"},
		{"edited", func(l []string) []string { l[3] = strings.Replace(l[3], `"n":4`, `"n":5`, 1); return l }, "tampered edited line 4 n 4"},
		{"first edited", func(l []string) []string { l[0] = strings.Replace(l[0], `"n":1`, `"n":5`, 1); return l }, "tampered edited line 1 n 1"},
		{"last edited", func(l []string) []string { l[9] = strings.Replace(l[9], `"n":10`, `"n":5`, 1); return l }, "tampered edited line 10 n 10"},
		{"edited and given a new hash", func(l []string) []string {
			l[3] = strings.Replace(l[3], `"n":4`, `"n":5`, 1)
			return append(relink(l[:4:4], 3), l[4:]...)
		}, "tampered edited line 4 n 4"},
		{"replaced by another text", func(l []string) []string { l[3] = "{}"; return l }, "tampered edited line 4 n 4"},
		{"removed", func(l []string) []string { return slices.Delete(l, 3, 4) }, "tampered removed line 4 n 4"},
		{"three removed", func(l []string) []string { return slices.Delete(l, 3, 6) }, "tampered removed line 4 n 4"},
		{"first removed", func(l []string) []string { return l[1:] }, "tampered removed line 1 n 1"},
		{"last removed", func(l []string) []string { return l[:9] }, "tampered cut line 0 n 10"},
		{"last two removed", func(l []string) []string { return l[:8] }, "tampered cut line 0 n 9"},
		{"all removed", func(l []string) []string { return nil }, "tampered cut line 0 n 1"},
		{"inserted", func(l []string) []string { return slices.Insert(l, 3, `{"x":1}`) }, "tampered inserted line 4 n 0"},
		{"two inserted", func(l []string) []string { return slices.Insert(l, 3, `{"x":1}`, "") }, "tampered inserted line 4 n 0"},
		{"inserted in front", func(l []string) []string { return slices.Insert(l, 0, `{"x":1}`) }, "tampered inserted line 1 n 0"},
		{"inserted behind", func(l []string) []string { return append(l, `{"x":1}`) }, "tampered inserted line 11 n 0"},
		{"inserted with a link", func(l []string) []string {
			return slices.Insert(l, 4, relink(slices.Insert(slices.Clone(l[:4]), 3, `{"x":1}`), 3)[3])
		}, "tampered inserted line 5 n 4"},
		{"swapped", func(l []string) []string { l[3], l[4] = l[4], l[3]; return l }, "tampered reordered line 4 n 5"},
		{"moved to the end", func(l []string) []string { return append(slices.Delete(slices.Clone(l), 3, 4), l[3]) }, "tampered reordered line 4 n 5"},
		{"moved to the front", func(l []string) []string {
			return slices.Insert(slices.Delete(slices.Clone(l), 6, 7), 0, l[6])
		}, "tampered removed line 1 n 1"},
		{"duplicated", func(l []string) []string { return slices.Insert(l, 4, l[3]) }, "tampered duplicated line 5 n 4"},
		{"first duplicated at the end", func(l []string) []string { return append(l, l[0]) }, "tampered duplicated line 11 n 1"},
		{"rebuilt from the fourth on", func(l []string) []string {
			l[3] = strings.Replace(l[3], `"n":4`, `"n":5`, 1)
			return relink(l, 3)
		}, "tampered rebuilt line 10 n 10"},
		{"rebuilt with one less", func(l []string) []string { return relink(slices.Delete(l, 3, 4), 3) }, "tampered cut line 0 n 10"},
		{"one more, by the rule", func(l []string) []string { return relink(append(l, `{"x":1}`), 10) }, "recoverable unknown_records line 0 n 11"},
	} {
		var text strings.Builder
		for _, line := range row.change(strings.Split(strings.TrimSuffix(string(whole), "\n"), "\n")) {
			text.WriteString(line + "\n")
		}
		must(t, os.WriteFile(l.log, []byte(text.String()), 0o600))
		if got := first(l.verify(t)); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

// Every flip of every bit of a log, and every length it can be cut to, is noticed
// (BR-63).
func TestEveryFlipAndEveryCutIsNoticed(t *testing.T) {
	l := newLab(t)
	l.every = 100
	l.fill(t, 1, 4)
	whole := read(t, l.log)
	known := *l.input(t).Known
	known.Size = -1
	f, err := os.OpenFile(l.log, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	check := func(what string, text []byte) {
		t.Helper()
		_, err := f.WriteAt(text, 0)
		must(t, errors.Join(err, f.Truncate(int64(len(text)))))
		r, err := audit.Verify(audit.Input{Files: []string{l.log}, Current: l.log, Known: &known, Chain: l.name()})
		must(t, err)
		if r.Status != audit.Tampered {
			t.Errorf("%s: %+v", what, r)
		}
	}
	for i := range whole {
		for _, mask := range []byte{1, 4, 0x20, 0x80} {
			text := bytes.Clone(whole)
			text[i] ^= mask
			check(fmt.Sprintf("byte %d ^ %#x", i, mask), text)
		}
	}
	for n := range whole {
		check(fmt.Sprintf("cut to %d bytes", n), whole[:n])
	}
	check("a newline more", append(bytes.Clone(whole), '\n'))
	must(t, os.Remove(l.log))
	if r := l.verify(t); first(r) != "tampered gone line 0 n 0" {
		t.Errorf("deleted: %+v", r)
	}
}

// With the journal gone too, the signed checkpoints are left.
func TestCheckpointsAlone(t *testing.T) {
	l := newLab(t)
	l.fill(t, 1, 7)
	whole := read(t, l.log)
	must(t, os.RemoveAll(filepath.Join(l.state, "targets")))
	lines := bytes.SplitAfter(whole, []byte{'\n'})
	for _, row := range []struct {
		name, text, want string
	}{
		{"whole", string(whole), "incomplete no_head_known line 0 n 7"},
		{"cut", string(bytes.Join(lines[:5], nil)), "tampered"},
		{"empty", "", "tampered"},
		{"another log", func() string {
			other := newLab(t)
			other.fill(t, 1, 2)
			other.fill(t, 4, 10)
			return string(read(t, other.log))
		}(), "tampered rebuilt line 3 n 3"},
	} {
		must(t, os.WriteFile(l.log, []byte(row.text), 0o600))
		if r := l.verify(t); !strings.HasPrefix(first(r), row.want) && string(r.Status) != row.want {
			t.Errorf("%s: %+v, want %s", row.name, r, row.want)
		}
	}
	// Rolled back, the journal with it: the checkpoints know better.
	l2 := newLab(t)
	l2.fill(t, 1, 4)
	journal := filepath.Join(l2.state, "targets", l2.name())
	oldLog, oldJournal := read(t, l2.log), read(t, journal)
	l2.fill(t, 5, 8)
	must(t, os.WriteFile(l2.log, oldLog, 0o600))
	must(t, os.WriteFile(journal, oldJournal, 0o600))
	if r := l2.verify(t); first(r) != "tampered cut line 0 n 5" {
		t.Errorf("rolled back: %+v", r)
	}
	// And when the chain goes on from there, the old checkpoints contradict it.
	l2.fill(t, 9, 12)
	if r := l2.verify(t); r.Status != audit.Tampered {
		t.Errorf("rolled back and gone on: %+v", r)
	}
}

func TestForgedAndForeignCheckpoints(t *testing.T) {
	l := newLab(t)
	l.fill(t, 1, 6)
	path := checkpoint.File(l.state, l.name())
	notes := read(t, path)
	must(t, os.WriteFile(path, bytes.Replace(notes, []byte("\n6\n"), []byte("\n7\n"), 1), 0o600))
	if r := l.verify(t); first(r) != "tampered forged_checkpoint line 0 n 7" {
		t.Errorf("forged: %+v", r)
	}
	must(t, os.WriteFile(path, notes, 0o600))
	must(t, os.Remove(l.keyFile))
	other := newLab(t)
	other.fill(t, 1, 1)
	must(t, os.Rename(other.keyFile, l.keyFile))
	if r := l.verify(t); first(r) != "incomplete checkpoints_by_another_key line 0 n 0" {
		t.Errorf("another key: %+v", r)
	}
}

func TestRotatedFiles(t *testing.T) {
	l := newLab(t)
	l.fill(t, 1, 4)
	must(t, os.Rename(l.log, l.log+".2"))
	l.fill(t, 5, 8)
	must(t, os.Rename(l.log, l.log+".1"))
	if r := l.verify(t, l.log+".2", l.log+".1", l.log); r.Status != audit.OK || r.Records != 8 {
		t.Errorf("before the next record: %+v", r)
	}
	l.fill(t, 9, 9)
	for _, row := range []struct {
		files []string
		want  string
	}{
		{[]string{l.log + ".2", l.log + ".1", l.log}, "ok"},
		{[]string{l.log + ".1", l.log}, "incomplete earlier_records_not_here line 1 n 5"},
		{[]string{l.log}, "incomplete earlier_records_not_here line 1 n 9"},
		{[]string{l.log + ".2", l.log + ".1"}, "incomplete later_records_not_here line 0 n 8"},
		{[]string{l.log + ".2"}, "incomplete later_records_not_here line 0 n 4"},
		{[]string{l.log + ".2", l.log}, "tampered removed line 1 n 5"},
		{[]string{l.log + ".1", l.log + ".2", l.log}, "tampered reordered"},
	} {
		if r := l.verify(t, row.files...); !slices.ContainsFunc(r.Findings, func(f audit.Finding) bool {
			return strings.HasPrefix(fmt.Sprintf("%s %s line %d n %d", r.Status, f.Kind, f.Line, f.N), row.want)
		}) && string(r.Status) != row.want {
			t.Errorf("%v: %+v, want %s", row.files, r, row.want)
		}
	}
	// The first lines of the current file are removed: no rotation does that.
	l.fill(t, 10, 12)
	lines := bytes.SplitAfter(read(t, l.log), []byte{'\n'})
	must(t, os.WriteFile(l.log, bytes.Join(lines[2:], nil), 0o600))
	if got := first(l.verify(t)); got != "tampered removed line 1 n 9" {
		t.Errorf("first lines removed: %s", got)
	}
}

// A log that was written without a chain before is no forgery.
func TestAChainThatBeginsInAnOldLog(t *testing.T) {
	l := newLab(t)
	must(t, os.WriteFile(l.log, []byte("{\"old\":1}\n{\"old\":2}\n"), 0o600))
	l.fill(t, 1, 3)
	if r := l.verify(t); r.Status != audit.OK || len(r.Findings) != 1 || r.Findings[0].Kind != audit.Unchained {
		t.Errorf("report = %+v", r)
	}
	must(t, os.WriteFile(l.log, append([]byte("{\"new\":1}\n"), read(t, l.log)...), 0o600))
	if got := first(l.verify(t)); got != "tampered inserted line 1 n 0" {
		t.Errorf("a line in front: %s", got)
	}
}

// Twenty dispatchers write one log at once: one linear chain (BR-64), and no
// checkpoint that contradicts it.
func TestTwentyWritersMakeOneChain(t *testing.T) {
	l := newLab(t)
	l.every = 10
	var wait sync.WaitGroup
	for w := range 20 {
		wait.Go(func() {
			way := l.target(t)
			for n := 1; n <= 25; n++ {
				if err := way.Deliver(t.Context(), dispatch(fmt.Sprint("session", w), n)); err != nil {
					t.Error(err)
				}
			}
			if err := way.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	r := l.verify(t)
	if r.Status != audit.OK || r.Records != 500 || r.Last != 500 || r.Checkpoints < 50 {
		t.Errorf("report = %+v", r)
	}
	seen := map[string]int{}
	for line := range bytes.Lines(read(t, l.log)) {
		record, _, _ := bytes.Cut(line, []byte(`,"rule"`))
		seen[string(record)]++
	}
	if len(seen) != 500 {
		t.Errorf("%d different records, want 500", len(seen))
	}
}

func TestNothingIsKnown(t *testing.T) {
	l := newLab(t)
	must(t, os.WriteFile(l.log, []byte("x\n"), 0o600))
	if got := first(l.verify(t)); got != "incomplete unchained_lines line 0 n 0" {
		t.Errorf("a plain log: %s", got)
	}
	must(t, os.Remove(l.log))
	if _, err := audit.Verify(l.input(t)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no log: %v", err)
	}
}

// A log that ways itself writes without a chain is not called ok.
func TestUnchainedLog(t *testing.T) {
	l := newLab(t)
	to, err := file.New(plan.File{Path: l.log, Format: "jsonl"}, file.Options{StateDir: l.state, Getenv: func(string) string { return "" }})
	must(t, err)
	must(t, to.Deliver(t.Context(), dispatch("session", 1)))
	must(t, to.Close())
	if in := l.input(t); in.Known == nil {
		t.Fatal("the log has no journal")
	}
	if got := first(l.verify(t)); got != "incomplete unchained_lines line 0 n 0" {
		t.Errorf("a log without a chain: %s", got)
	}
	l.fill(t, 2, 3)
	if r := l.verify(t); r.Status != audit.OK {
		t.Errorf("with a chain from record 2 on: %s", first(r))
	}
}

// Whatever is in a log, verifying it ends, and only what was written is ok.
func FuzzVerify(f *testing.F) {
	line, head, _ := chain.Append(nil, []byte(`{"a":1}`), chain.Head{})
	two, _, _ := chain.Append(nil, []byte(`{"a":2}`), head)
	whole := string(line) + "\n" + string(two) + "\n"
	known := file.Known{Name: "c", Head: chain.Head{N: 2}, First: 1, Size: -1}
	l, _ := chain.Parse(two)
	known.Head = l.Head()
	f.Add([]byte(whole))
	f.Add([]byte(whole[:40]))
	f.Add([]byte("{}\n\n" + whole))
	path := filepath.Join(f.TempDir(), "log")
	log, err := os.Create(path)
	must(f, err)
	defer log.Close()
	f.Fuzz(func(t *testing.T, text []byte) {
		_, err := log.WriteAt(text, 0)
		must(t, errors.Join(err, log.Truncate(int64(len(text)))))
		k := known
		r, err := audit.Verify(audit.Input{Files: []string{path}, Current: path, Known: &k, Chain: "c"})
		must(t, err)
		if (r.Status == audit.OK) != (string(text) == whole) {
			t.Errorf("%q: %+v", text, r)
		}
	})
}
