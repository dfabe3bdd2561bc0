package tally

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ways/hooks/dirs"
)

// The test binary runs itself as the processes of these tests: roleVar names
// what it is to do, stateVar in which state directory.
const (
	roleVar  = "WAYS_TALLY_TEST_ROLE"
	stateVar = "WAYS_TALLY_TEST_STATE"
)

func TestMain(m *testing.M) {
	d := dirs.Dirs{State: os.Getenv(stateVar)}
	switch os.Getenv(roleVar) {
	case "":
		os.Exit(m.Run())
	case "note":
		for i := range 20 {
			Note(d, time.Now(), Reasons()[i%3], "i", fmt.Sprint(i))
		}
	case "disk":
		os.Exit(roleDisk(d))
	}
}

func role(t *testing.T, name, state string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), roleVar+"="+name, stateVar+"="+state)
	return cmd
}

func checkCounts(t *testing.T, d dirs.Dirs, want map[Reason]uint64) {
	t.Helper()
	got, err := Counts(d)
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("counts %v, %v; want %v", got, err, want)
	}
}

func logLines(t *testing.T, path string) []map[string]string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var list []map[string]string
	for line := range bytes.Lines(raw) {
		var fields map[string]string
		if err := json.Unmarshal(line, &fields); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		list = append(list, fields)
	}
	return list
}

func TestNote(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	d := dirs.Dirs{State: filepath.Join(t.TempDir(), "x", "state")}
	checkCounts(t, d, nil)
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 7200))
	Note(d, now, Panic, "detail", "a \"quoted\"\n\xff text")
	Note(d, now, Empty)
	Note(d, now, Empty, "odd")
	Note(d, now, Duplicate)
	checkCounts(t, d, map[Reason]uint64{Panic: 1, Empty: 2, Duplicate: 1})
	lines := logLines(t, LogPath(d))
	if len(lines) != 3 { // a duplicate is no news
		t.Fatalf("%d lines", len(lines))
	}
	want := map[string]string{
		"time": "2026-01-02T01:04:05.000000006Z", "level": "warn", "message": "hook refused", "reason": "panic",
		"detail": "a \"quoted\"\n\ufffd text",
	}
	if !maps.Equal(lines[0], want) {
		t.Errorf("logged %v, want %v", lines[0], want)
	}
	for _, name := range []string{countsName, logName} {
		if info, err := os.Stat(filepath.Join(d.State, name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// TestEveryReasonHasItsSlot: a name that is too long would shift all behind it.
func TestEveryReasonHasItsSlot(t *testing.T) {
	d := dirs.Dirs{State: t.TempDir()}
	want := map[Reason]uint64{}
	for i, r := range Reasons() {
		if len(formatSlot(r, 1<<63)) != slotBytes {
			t.Errorf("%s takes %d bytes", r, len(formatSlot(r, 1<<63)))
		}
		for range i + 1 {
			Note(d, time.Now(), r)
		}
		want[r] = uint64(i + 1)
	}
	checkCounts(t, d, want)
}

// TestCountsOfAnOlderFile: fewer slots than there are reasons now.
func TestCountsOfAnOlderFile(t *testing.T) {
	d := dirs.Dirs{State: t.TempDir()}
	Note(d, time.Now(), Empty)
	path := filepath.Join(d.State, countsName)
	for _, size := range []int64{slotBytes * 3, slotBytes*2 + 7, 0} {
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		Note(d, time.Now(), Panic)
	}
	checkCounts(t, d, map[Reason]uint64{Panic: 1})
	if err := os.WriteFile(path, bytes.Repeat([]byte("?"), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	Note(d, time.Now(), Empty)
	if got, err := Counts(d); err != nil || got[Empty] != 1 {
		t.Errorf("behind garbage: %v, %v", got, err)
	}
}

// TestManyProcesses counts exactly, whoever counts at the same time.
func TestManyProcesses(t *testing.T) {
	d := dirs.Dirs{State: t.TempDir()}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if out, err := role(t, "note", d.State).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	checkCounts(t, d, map[Reason]uint64{Empty: 350, NotObject: 350, Truncated: 300})
	if n := len(logLines(t, LogPath(d))); n != 1000 {
		t.Errorf("%d lines in the log", n)
	}
}

func TestLogIsBounded(t *testing.T) {
	d := dirs.Dirs{State: t.TempDir()}
	long := strings.Repeat("x", 50_000)
	for range 100 {
		Note(d, time.Now(), Empty, "detail", long)
	}
	entries, err := os.ReadDir(d.State)
	if err != nil || len(entries) != 3 {
		t.Fatalf("%v, %v; want the counts and two logs", entries, err)
	}
	for _, name := range []string{logName, logName + ".1"} {
		info, err := os.Stat(filepath.Join(d.State, name))
		if err != nil || info.Size() > maxLog+60_000 {
			t.Errorf("%s: %d bytes, %v", name, info.Size(), err)
		}
	}
	checkCounts(t, d, map[Reason]uint64{Empty: 100})
}

// TestNowhereToWrite: nothing is lost but the count, and nothing waits.
func TestNowhereToWrite(t *testing.T) {
	base := t.TempDir()
	file, real := filepath.Join(base, "file"), filepath.Join(base, "real")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(real, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{file, filepath.Join(file, "x"), link} {
		Note(dirs.Dirs{State: state}, time.Now(), Empty)
	}
	if left, _ := os.ReadDir(real); len(left) != 0 {
		t.Errorf("written through a symlink: %v", left)
	}
	// A symlink in the place of a file leads nowhere either.
	elsewhere := filepath.Join(base, "elsewhere")
	for _, name := range []string{countsName, logName} {
		if err := os.Symlink(elsewhere, filepath.Join(real, name)); err != nil {
			t.Fatal(err)
		}
	}
	Note(dirs.Dirs{State: real}, time.Now(), Empty)
	if _, err := os.Lstat(elsewhere); !os.IsNotExist(err) {
		t.Errorf("written through a symlink: %v", err)
	}
}

// TestHeldLock: somebody who holds the counters' lock costs a hook little.
func TestHeldLock(t *testing.T) {
	d := dirs.Dirs{State: t.TempDir()}
	Note(d, time.Now(), Empty)
	f, err := os.Open(filepath.Join(d.State, countsName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	Note(d, time.Now(), Empty)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
	if n := len(logLines(t, LogPath(d))); n != 2 {
		t.Errorf("%d lines in the log, want 2", n)
	}
}

// roleDisk counts on when the disk is full: its slots are there already.
func roleDisk(d dirs.Dirs) int {
	signal.Ignore(syscall.SIGXFSZ)
	Note(d, time.Now(), Empty)
	info, err := os.Stat(filepath.Join(d.State, countsName))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	limit := syscall.Rlimit{Cur: uint64(info.Size()), Max: uint64(info.Size())}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		fmt.Println(err)
		return 1
	}
	for range 20 {
		Note(d, time.Now(), Unwritten, "detail", "no space left on device")
	}
	return 0
}

func TestFullDisk(t *testing.T) {
	d := dirs.Dirs{State: t.TempDir()}
	if out, err := role(t, "disk", d.State).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	checkCounts(t, d, map[Reason]uint64{Empty: 1, Unwritten: 20})
	// The log has what fitted, and goes on at a line of its own.
	Note(d, time.Now(), Panic)
	lines := logLines(t, LogPath(d))
	if len(lines) < 2 || len(lines) > 10 || lines[len(lines)-1]["reason"] != "panic" {
		t.Errorf("%v", lines)
	}
}

// TestHardLinks: what has another name elsewhere is left as it is there. The
// numbers go on in a copy, the log in a new file, which says so.
func TestHardLinks(t *testing.T) {
	d := dirs.Dirs{State: t.TempDir()}
	elsewhere := t.TempDir()
	Note(d, time.Now(), Empty)
	was := map[string]string{}
	for _, name := range []string{countsName, logName} {
		if err := os.Link(filepath.Join(d.State, name), filepath.Join(elsewhere, name)); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(elsewhere, name))
		if err != nil {
			t.Fatal(err)
		}
		was[name] = string(text)
	}
	for range 2 {
		Note(d, time.Now(), Empty)
	}
	checkCounts(t, d, map[Reason]uint64{Empty: 3})
	for name, want := range was {
		if got, err := os.ReadFile(filepath.Join(elsewhere, name)); string(got) != want || err != nil {
			t.Errorf("%s elsewhere: %q, %v; want %q", name, got, err, want)
		}
	}
	var said []string
	for _, line := range logLines(t, LogPath(d)) {
		said = append(said, line["message"])
	}
	want := []string{
		"the log had another name elsewhere, a hard link, which keeps it; here begins a new one",
		"hook-counts had another name elsewhere, a hard link; it is a copy now",
		"hook refused", "hook refused",
	}
	if !slices.Equal(said, want) {
		t.Errorf("the log says %q, want %q", said, want)
	}
}
