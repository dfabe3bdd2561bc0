package deadletter

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ways/hooks/dirs"
)

// The test binary runs itself as other processes.
const (
	roleVar = "WAYS_DEADLETTER_TEST_ROLE"
	dirVar  = "WAYS_DEADLETTER_TEST_DIR"
	nameVar = "WAYS_DEADLETTER_TEST_NAME"
)

func TestMain(m *testing.M) {
	store := NewStore(os.Getenv(dirVar))
	switch os.Getenv(roleVar) {
	case "":
		os.Exit(m.Run())
	case "put": // until it is killed, saying each time what the disk has
		for i := 0; ; i++ {
			l := letter(fmt.Sprint(os.Getenv(nameVar), ".", i))
			if err := store.Put(l); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			fmt.Println(l.ID)
		}
	case "full":
		os.Exit(roleFull(store))
	}
	os.Exit(2)
}

func letter(id string) Letter {
	return Letter{
		ID: id, Rule: "a/b", Session: "s", Seq: 7, At: time.Unix(1000, 0).UTC(), Reason: "status_400", Words: "w", Attempts: 1,
		Body: json.RawMessage(`{"id":` + strconv.Quote(id) + `,"pad":"` + strings.Repeat("x", len(id)*50) + `"}`),
	}
}

func put(t *testing.T, s Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := s.Put(letter(id)); err != nil {
			t.Fatal(err)
		}
	}
}

func list(t *testing.T, s Store, damaged int, want ...string) {
	t.Helper()
	letters, n, err := s.List("a/b")
	var got []string
	for _, l := range letters {
		got = append(got, l.ID)
		if w := letter(l.ID); string(l.Body) != string(w.Body) {
			t.Errorf("the body of %s is %s", l.ID, l.Body)
		}
	}
	if err != nil || n != damaged || !slices.Equal(got, want) {
		t.Errorf("%v, %d damaged, %v; want %v, %d", got, n, err, want, damaged)
	}
}

func role(t *testing.T, name, dir, who string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), roleVar+"="+name, dirVar+"="+dir, nameVar+"="+who)
	cmd.Stderr = os.Stderr
	return cmd
}

func TestPutListRemove(t *testing.T) {
	dir := t.TempDir()
	s := NewStore(dir)
	list(t, s, 0)
	if n, err := s.Remove("a/b", []string{"1"}); n != 0 || err != nil {
		t.Errorf("removed %d, %v", n, err)
	}
	put(t, s, "1", "2", "3")
	other := letter("other")
	other.Rule = "a/c-d"
	if err := s.Put(other); err != nil {
		t.Fatal(err)
	}
	list(t, s, 0, "1", "2", "3")
	if rules, err := s.Rules(); err != nil || !slices.Equal(rules, []string{"a/b", "a/c-d"}) {
		t.Errorf("%v, %v", rules, err)
	}
	if n, err := s.Remove("a/b", []string{"2", "nothing"}); n != 1 || err != nil {
		t.Errorf("removed %d, %v", n, err)
	}
	list(t, s, 0, "1", "3")
	if n, err := s.Remove("a/b", []string{"1", "3"}); n != 2 || err != nil {
		t.Errorf("removed %d, %v", n, err)
	}
	list(t, s, 0)
	if rules, err := s.Rules(); err != nil || !slices.Equal(rules, []string{"a/c-d"}) {
		t.Errorf("%v, %v", rules, err)
	}
	if rules, err := NewStore(filepath.Join(dir, "absent")).Rules(); err != nil || rules != nil {
		t.Errorf("%v, %v", rules, err)
	}
}

// TestPutTwice: a dispatcher that died between putting a record aside and its own
// bookkeeping does it again. The letter is there once, and goes at once.
func TestPutTwice(t *testing.T) {
	s := NewStore(t.TempDir())
	put(t, s, "1", "2", "1")
	list(t, s, 0, "1", "2")
	if n, err := s.Remove("a/b", []string{"1"}); n != 1 || err != nil {
		t.Errorf("removed %d, %v", n, err)
	}
	list(t, s, 0, "2")
}

// TestDamage cuts the file at every length, and flips every byte: only what is
// touched is lost, the rest is there, and what comes next is too.
func TestDamage(t *testing.T) {
	s := NewStore(t.TempDir())
	put(t, s, "1", "2")
	path := s.path("a/b")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ids := func() []string {
		letters, _, err := s.List("a/b")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range letters {
			got = append(got, l.ID)
		}
		return got
	}
	second := strings.Index(string(whole), "\n\n") + 1
	for n := range len(whole) {
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		put(t, s, "3")
		got := ids()
		if (n >= second && !slices.Contains(got, "1")) || got[len(got)-1] != "3" {
			t.Fatalf("cut at %d of %d: %v", n, len(whole), got)
		}
	}
	for n := range len(whole) {
		bad := slices.Clone(whole)
		bad[n] ^= 0x80
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		got := ids()
		if (n < second && !slices.Contains(got, "2")) || (n > second && !slices.Contains(got, "1")) {
			t.Fatalf("byte %d of %d: %v", n, len(whole), got)
		}
	}
}

// TestDamagedLinesStay when letters are removed around them: somebody may still
// read something in them.
func TestDamagedLinesStay(t *testing.T) {
	s := NewStore(t.TempDir())
	put(t, s, "1")
	f, err := os.OpenFile(s.path("a/b"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"id":"torn","rule":`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	put(t, s, "2")
	list(t, s, 1, "1", "2")
	if n, err := s.Remove("a/b", []string{"1", "2"}); n != 2 || err != nil {
		t.Errorf("removed %d, %v", n, err)
	}
	list(t, s, 1)
	raw, err := os.ReadFile(s.path("a/b"))
	if err != nil || string(raw) != `{"id":"torn","rule":`+"\n" {
		t.Errorf("%q, %v", raw, err)
	}
}

// TestKilledProcesses put letters aside at once, and are killed at any instant;
// meanwhile others are taken out. What was said to be on the disk is there.
func TestKilledProcesses(t *testing.T) {
	dir := t.TempDir()
	s := NewStore(dir)
	var mu sync.Mutex
	kept := map[string]bool{}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for life := range 5 {
				cmd := role(t, "put", dir, fmt.Sprintf("w%d-%d", w, life))
				out, err := cmd.StdoutPipe()
				if err == nil {
					err = cmd.Start()
				}
				if err != nil {
					t.Error(err)
					return
				}
				left := 3 + w + life
				var id string
				for ; left > 0; left-- {
					if _, err := fmt.Fscanln(out, &id); err != nil {
						break
					}
					mu.Lock()
					kept[id] = true
					mu.Unlock()
				}
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}
		})
	}
	put(t, s, "mine")
	for range 20 {
		if _, err := s.Remove("a/b", []string{"mine"}); err != nil {
			t.Error(err)
		}
		put(t, s, "mine")
	}
	wg.Wait()
	put(t, s, "end")
	letters, _, err := s.List("a/b")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, l := range letters {
		there[l.ID] = true
	}
	if len(kept) < 60 {
		t.Errorf("only %d letters", len(kept))
	}
	for id := range kept {
		if !there[id] {
			t.Errorf("%s is gone", id)
		}
	}
	if !there["mine"] || !there["end"] {
		t.Error("what this process put is gone")
	}
}

// roleFull runs into the end of the disk, as a limit on the size of files plays
// it.
func roleFull(s Store) int {
	signal.Ignore(syscall.SIGXFSZ)
	limit := syscall.Rlimit{Cur: 1000, Max: 1000}
	if err := s.Put(letter("1")); err != nil {
		fmt.Println(err)
		return 1
	}
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return 1
	}
	limit.Max = old.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return 1
	}
	for i := range 3 {
		err := s.Put(letter(strings.Repeat("2", 50+i)))
		fmt.Println(errors.Is(err, syscall.EFBIG), err != nil && strings.Contains(err.Error(), "a/b"))
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return 1
	}
	fmt.Println(s.Put(letter("3")))
	return 0
}

// TestFullDisk: what does not fit is an error and leaves no trace.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	out, err := role(t, "full", dir, "").Output()
	if want := "true true\ntrue true\ntrue true\n<nil>\n"; err != nil || string(out) != want {
		t.Errorf("%v: got\n%swant\n%s", err, out, want)
	}
	list(t, NewStore(dir), 0, "1", "3")
}

// TestPrivate: nobody else can read what may be unmasked, and what is somebody
// else's is not written to.
func TestPrivate(t *testing.T) {
	dir := t.TempDir()
	s := NewStore(dir)
	put(t, s, "1")
	for path, want := range map[string]fs.FileMode{
		filepath.Join(dir, "dead"): fs.ModeDir | 0o700, s.path("a/b"): 0o600, s.path("a/b") + ".lock": 0o600,
	} {
		if info, err := os.Lstat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
	elsewhere := filepath.Join(dir, "elsewhere")
	if err := os.WriteFile(elsewhere, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(s.path("a/b")), os.Symlink(elsewhere, s.path("a/b"))); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(letter("2")); err == nil {
		t.Error("a symlink was followed")
	}
	if info, err := os.Stat(elsewhere); err != nil || info.Size() != 0 {
		t.Errorf("%v, %v", info, err)
	}
	file := NewStore(filepath.Join(dir, "file"))
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "file"), 0o700), os.WriteFile(file.dir, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := file.Put(letter("1")); err == nil || !strings.Contains(err.Error(), file.dir) {
		t.Errorf("a file in the directory's place: %v", err)
	}
	if err := file.Put(letter("1")); errors.Is(err, dirs.ErrNotPrivate) == errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a file in the directory's place: %v", err)
	}
}

// A copy of letters that a killed process had begun goes with the next letter.
func TestUnfinishedFilesGo(t *testing.T) {
	s := NewStore(t.TempDir())
	put(t, s, "1")
	left := s.path("a/b") + ".tmp"
	if err := os.WriteFile(left, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, s, "2")
	if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", left, err)
	}
}

// TestLockIsAFile: nothing else in its place is locked, or waited for.
func TestLockIsAFile(t *testing.T) {
	s := NewStore(t.TempDir())
	if err := errors.Join(os.Mkdir(s.dir, 0o700), syscall.Mkfifo(s.path("a/b")+".lock", 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(letter("1")); !errors.Is(err, dirs.ErrNotFile) {
		t.Errorf("put: %v", err)
	}
}
