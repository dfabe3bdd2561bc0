package counters_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ways/metrics/counters"
)

func state(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func total(t *testing.T, s counters.Store) counters.Sum {
	t.Helper()
	sum, err := s.Sum()
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func files(t *testing.T, state string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(state, counters.Dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func count(l *counters.Life, n int) {
	r := l.Rule("a/b")
	for range n {
		r.Delivered++
		r.Count(counters.Failed, "status_503", 2)
		r.Failed += 2
		r.Duration.Observe(3 * time.Millisecond)
	}
}

func save(t *testing.T, l *counters.Life, at int64) {
	t.Helper()
	if err := l.Save(time.Unix(at, 0)); err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, s counters.Store, delivered uint64) {
	t.Helper()
	sum := total(t, s)
	r := sum.Rule("a/b")
	if r.Delivered != delivered || r.Failed != 2*delivered || r.By[counters.Failed]["status_503"] != 2*delivered || r.Duration.Count != delivered ||
		r.Duration.UpTo(-8) != delivered || r.Duration.UpTo(-9) != 0 {
		t.Errorf("sum is %+v, want %d delivered", r, delivered)
	}
}

// Every step of a fold leaves the sum as it was, also when the process that
// folds dies between two of them.
func TestFoldChangesNoSum(t *testing.T) {
	dir := state(t)
	s := counters.NewStore(dir)
	l := s.Open("one", "one", time.Unix(1, 0))
	count(l, 5)
	save(t, l, 2)
	check(t, s, 5)
	name := filepath.Base(files(t, dir)[0])
	held, err := os.ReadFile(filepath.Join(dir, counters.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Fold(time.Unix(3, 0), name); err != nil {
		t.Fatal(err)
	}
	check(t, s, 5)
	if left := files(t, dir); len(left) != 0 {
		t.Fatalf("left: %v", left)
	}

	// The folder died before it removed the file.
	if err := os.WriteFile(filepath.Join(dir, counters.Dir, name), held, 0o600); err != nil {
		t.Fatal(err)
	}
	check(t, s, 5)
	// Its dispatcher lives, and counts on.
	count(l, 2)
	save(t, l, 4)
	check(t, s, 7)
	// The file is folded again by one who does not know.
	if err := s.Fold(time.Unix(5, 0), name); err != nil {
		t.Fatal(err)
	}
	check(t, s, 7)
	if left := files(t, dir); len(left) != 1 {
		t.Fatalf("left: %v", left)
	}
	// Folded under a living dispatcher once more, and saved without news.
	if err := s.Fold(time.Unix(6, 0), filepath.Base(files(t, dir)[0])); err != nil {
		t.Fatal(err)
	}
	save(t, l, 7)
	check(t, s, 7)
	if err := l.End(time.Unix(8, 0)); err != nil {
		t.Fatal(err)
	}
	check(t, s, 7)
	if left := files(t, dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// What waits is on record for as long as it waits, and no longer.
func TestWaitingStaysUntilTheNextLife(t *testing.T) {
	dir := state(t)
	s := counters.NewStore(dir)
	l := s.Open("x~1f-3", "a b", time.Unix(1, 0))
	r := l.Rule("a/b")
	r.Waiting, r.WaitingSince = 3, time.Unix(1, 0).UTC()
	if err := l.End(time.Unix(2, 0)); err != nil {
		t.Fatal(err)
	}
	if sum := total(t, s); len(sum.Files) != 1 || sum.Rule("a/b").Waiting != 3 || sum.Files[0].Session.Session != "a b" {
		t.Errorf("sum is %+v", sum)
	}
	of, err := s.Of("x~1f-3")
	if n, since := of.Waiting(); err != nil || n != 3 || since.Unix() != 1 || of.Session != "a b" {
		t.Errorf("of the session: %d since %v, %v", n, since, err)
	}
	next := s.Open("x~1f-3", "a b", time.Unix(3, 0))
	if err := next.Begin(time.Unix(3, 0)); err != nil {
		t.Fatal(err)
	}
	if sum := total(t, s); len(sum.Files) != 0 || sum.Rule("a/b").Waiting != 0 {
		t.Errorf("sum is %+v", sum)
	}
}

// What a killed dispatcher had begun to write goes with the next life that begins
// or ends, of whatever session; the one that is being written stays.
func TestUnfinishedFilesGo(t *testing.T) {
	dir := state(t)
	s := counters.NewStore(dir)
	at := func(name string) string { return filepath.Join(dir, counters.Dir, name) }
	leave := func() {
		t.Helper()
		if err := os.MkdirAll(at(""), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"gone~1.1.json.tmp": `{"session":"go`, "mine~1.1.json.tmp": "", "notes.tmp": "a stranger's"} {
			if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	only := func(when string, want ...string) {
		t.Helper()
		var names []string
		for _, f := range files(t, dir) {
			names = append(names, filepath.Base(f))
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s: %q, want %q", when, names, want)
		}
	}
	leave()
	l := s.Open("mine", "mine", time.Unix(1, 0))
	if err := l.Begin(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	only("begun, with nothing to fold", "notes.tmp")
	count(l, 1)
	save(t, l, 2)
	leave()
	if err := l.End(time.Unix(3, 0)); err != nil {
		t.Fatal(err)
	}
	only("ended", "notes.tmp")
	check(t, s, 1)

	// Somebody writes: he holds the lock shared, and his file is left to him.
	leave()
	lock, err := os.Open(filepath.Join(dir, "totals.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	begun := make(chan error)
	go func() { begun <- s.Open("third", "third", time.Unix(4, 0)).Begin(time.Unix(4, 0)) }()
	select {
	case err := <-begun:
		t.Fatalf("begun under a writer: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	only("while a writer is at work", "gone~1.1.json.tmp", "mine~1.1.json.tmp", "notes.tmp")
	lock.Close()
	if err := <-begun; err != nil {
		t.Fatal(err)
	}
	only("begun after the writer", "notes.tmp")
}

// A record that comes again after a restart is counted once.
func TestMarks(t *testing.T) {
	s := counters.NewStore(state(t))
	l := s.Open("one", "one", time.Unix(1, 0))
	read := func(l *counters.Life, seqs ...uint64) {
		for _, n := range seqs {
			l.CountRead(n, "tool_call", "hook")
			l.CountMatched("a/b", n, time.Unix(1, 0))
		}
	}
	read(l, 1, 2, 3)
	save(t, l, 2)
	read(l, 4) // lost: the process is killed
	next := s.Open("one", "one", time.Unix(3, 0))
	if err := next.Begin(time.Unix(3, 0)); err != nil {
		t.Fatal(err)
	}
	read(next, 2, 3, 4, 5)
	next.CountRead(6, "gap", "transcript")
	save(t, next, 4)
	sum := total(t, s)
	if sum.Records != 6 || sum.Hooks["tool_call"] != 5 || sum.Transcript["gap"] != 1 || sum.Rule("a/b").Matched != 5 {
		t.Errorf("sum is %+v", sum.Counts)
	}
}

// Files that are not as they should be take nothing else along.
func TestHostileFiles(t *testing.T) {
	dir := state(t)
	s := counters.NewStore(dir)
	l := s.Open("good", "good", time.Unix(1, 0))
	count(l, 1)
	save(t, l, 1)
	bad := func(name string) string { return filepath.Join(dir, counters.Dir, name) }
	for name, text := range map[string]string{
		"torn~1.1.json": `{"rules":{"a/b":{"deliv`, "empty~1.1.json": "", "null~1.1.json": `{"rules":{"x/y":null}}`,
		"stranger.json": `{"rules":{"a/b":{"delivered":7}}}`, "tmp~1.1.json.tmp": "{", "list~1.1.json": "[]",
	} {
		if err := os.WriteFile(bad(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(files(t, dir)[0], bad("link~1.1.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(bad("dir~1.1.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	check(t, s, 1)
	if n := len(total(t, s).Unreadable); n != 5 {
		t.Errorf("%d unreadable files, want 5: %v", n, total(t, s).Unreadable)
	}
	if err := s.Fold(time.Unix(2, 0), "torn~1.1.json", "none~1.1.json", filepath.Base(l0(t, dir))); err == nil || !strings.Contains(err.Error(), "torn~1.1.json is damaged") {
		t.Errorf("fold: %v", err)
	}
	check(t, s, 1)
	if err := os.WriteFile(filepath.Join(dir, "totals.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sum(); err == nil || !strings.Contains(err.Error(), "totals.json is damaged") {
		t.Errorf("sum over damaged totals: %v", err)
	}
	count(l, 1)
	if err := l.Save(time.Unix(3, 0)); err != nil {
		t.Errorf("a dispatcher stops counting over damaged totals: %v", err)
	}
}

func l0(t *testing.T, dir string) string {
	t.Helper()
	for _, f := range files(t, dir) {
		if strings.HasPrefix(filepath.Base(f), "good~") {
			return f
		}
	}
	t.Fatal("no file")
	return ""
}

// Without an installation there is nothing, and nothing is made.
func TestNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	sum, err := counters.NewStore(dir).Sum()
	if err != nil || len(sum.Rules) != 0 || len(sum.Files) != 0 {
		t.Errorf("%+v, %v", sum, err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("made: %v", err)
	}
}

// A sum costs what is not folded, not what there has been.
func TestPastSessionsCostNothing(t *testing.T) {
	dir := state(t)
	s := counters.NewStore(dir)
	for i := range 200 {
		l := s.Open("s"+strconv.Itoa(i), "s", time.Unix(int64(i), 0))
		count(l, 1)
		if err := l.End(time.Unix(int64(i), 0)); err != nil {
			t.Fatal(err)
		}
	}
	if len(files(t, dir)) != 0 {
		t.Errorf("left: %v", files(t, dir))
	}
	check(t, s, 200)
}

func TestHistogramBuckets(t *testing.T) {
	for _, row := range []struct {
		d       time.Duration
		at, not int // powers of two: counted up to at, not up to not
	}{
		{time.Second, 0, -1},
		{time.Second + 1, 1, 0},
		{2 * time.Second, 1, 0},
		{500 * time.Millisecond, -1, -2},
		{-time.Hour, -20, -21},
		{0, -20, -21},
		{1000 * time.Hour, 20, 19},
		{1 << 62, 20, 19},
	} {
		var h counters.Histogram
		h.Observe(row.d)
		if h.UpTo(row.at) != 1 || h.UpTo(row.not) != 0 {
			t.Errorf("%v is in %v", row.d, h.Buckets)
		}
	}
}

// What lies in the place of a file that is being written holds nobody up.
func TestNoFileInTheWay(t *testing.T) {
	dir := state(t)
	s := counters.NewStore(dir)
	l := s.Open("one", "one", time.Unix(1, 0))
	count(l, 1)
	save(t, l, 1)
	tmp := files(t, dir)[0] + ".tmp"
	for name, put := range map[string]func() error{
		"a FIFO":      func() error { return syscall.Mkfifo(tmp, 0o600) },
		"a symlink":   func() error { return os.Symlink("/dev/null", tmp) },
		"a directory": func() error { return os.Mkdir(tmp, 0o700) },
	} {
		if err := put(); err != nil {
			t.Fatal(err)
		}
		if err := l.Save(time.Unix(2, 0)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	check(t, s, 1)
}
