package spool

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The test binary runs itself as the processes of these tests: roleVar names
// what it is to do, dirVar in which session directory, nameVar who it is.
const (
	roleVar = "WAYS_SPOOL_TEST_ROLE"
	dirVar  = "WAYS_SPOOL_TEST_DIR"
	nameVar = "WAYS_SPOOL_TEST_NAME"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "":
		os.Exit(m.Run())
	case "append":
		os.Exit(roleAppend(os.Getenv(dirVar), os.Getenv(nameVar)))
	case "inbox":
		os.Exit(roleInbox(os.Getenv(dirVar)))
	case "disk":
		os.Exit(roleDisk(os.Getenv(dirVar)))
	}
	os.Exit(2)
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

// roleAppend appends until it is killed, and says each time what is stored.
func roleAppend(dir, name string) int {
	for i := 0; ; i++ {
		what := fmt.Sprintf("%s.%d %s", name, i, strings.Repeat("x", i*37%3000))
		res, err := Append(dir, one(what))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if res.First != 0 {
			fmt.Printf("%s.%d\n", name, i)
		}
	}
}

// TestKilledProcesses lets processes append to one spool and kills them at any
// instant. What a writer was told is stored is read, once; the numbers are 1, 2,
// 3, ... without a hole.
func TestKilledProcesses(t *testing.T) {
	dir := session(t)
	const lives, atOnce = 60, 6
	var mu sync.Mutex
	stored := map[string]bool{}
	turns := make(chan int, lives)
	for i := range lives {
		turns <- i
	}
	close(turns)
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for i := range turns {
				cmd := role(t, "append", dir, "w"+strconv.Itoa(i))
				out, err := cmd.StdoutPipe()
				if err == nil {
					err = cmd.Start()
				}
				if err != nil {
					t.Error(err)
					return
				}
				// Killed behind a random number of appends, and then at a random
				// point of the next.
				lines, left := bufio.NewScanner(out), 1+rand.IntN(60)
				for lines.Scan() {
					mu.Lock()
					stored[lines.Text()] = true
					mu.Unlock()
					if left--; left == 0 {
						cmd.Process.Signal(syscall.SIGKILL)
					}
				}
				cmd.Wait()
			}
		})
	}

	// A reader that follows while they write, and gives space back.
	over := make(chan struct{})
	go func() { wg.Wait(); close(over) }()
	r := NewReader(dir, Position{})
	defer r.Close()
	got := map[string]bool{}
	next, done := uint64(1), false
	for {
		f, err := r.Next()
		var d *Damage
		switch {
		case errors.As(err, &d):
			continue
		case errors.Is(err, ErrWait) && done:
			for name := range stored {
				if !got[name] {
					t.Errorf("%s was stored and is not read", name)
				}
			}
			if len(stored) < lives {
				t.Errorf("only %d records were stored", len(stored))
			}
			if last, err := LastSeq(dir, time.Second); last != next-1 || err != nil {
				t.Errorf("last number %d, %v; read up to %d", last, err, next-1)
			}
			return
		case errors.Is(err, ErrWait):
			select {
			case <-over:
				done = true
				appendOne(t, dir, "end") // ends a torn frame
			case <-time.After(time.Millisecond):
			}
			continue
		case err != nil:
			t.Fatal(err)
		}
		var rec struct {
			Seq  uint64
			What string
		}
		if err := json.Unmarshal(f.JSON, &rec); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(rec.What, " ")
		if f.Seq != next || rec.Seq != next || got[name] {
			t.Fatalf("frame %d holds %d, %s (seen before: %v); want %d", f.Seq, rec.Seq, name, got[name], next)
		}
		got[name] = true
		next++
	}
}

// unwritten is the state's count of what could not be written.
func unwritten(dir string) (uint64, bool) {
	f, err := disk{}.lockAppend(dir, time.Second)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	s, ok := readState(f)
	return s.unwritten, ok
}

// roleDisk runs into the end of the disk, as a limit on the size of files plays
// it: a write then succeeds in part, and the next one not at all.
func roleDisk(dir string) int {
	signal.Ignore(syscall.SIGXFSZ)
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		fmt.Println(err)
		return 1
	}
	say := func(what string, req Request) {
		res, err := Append(dir, req)
		n, ok := unwritten(dir)
		fmt.Println(what, res.First, res.Last, errors.Is(err, ErrUnwritten), n, ok)
	}
	two := one("")
	two.Build = func(bool) []Draft {
		return []Draft{
			draft{`{"seq":`, `,"what":"small"}`},
			draft{`{"seq":`, `,"what":"` + strings.Repeat("y", 9000) + `"}`},
		}
	}
	say("fits", one(strings.Repeat("x", 5000))) // longer than the lock file, which is under the limit too
	low := old
	low.Cur = 9000
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &low); err != nil {
		fmt.Println(err)
		return 1
	}
	say("too much", one(strings.Repeat("x", 9000)))
	say("again", one(strings.Repeat("x", 9000)))
	say("fits still", one("b"))
	say("one of two", two)
	say("behind it", one("c"))
	// All but the newline at its end.
	info, err := os.Stat(segmentPath(dir, 1))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	frame := appendFrame(nil, 5, 7, one("d").Build(false)[0].Append(nil, 5))
	low.Cur = uint64(info.Size()) + uint64(len(frame)) - 1
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &low); err != nil {
		fmt.Println(err)
		return 1
	}
	say("but the newline", one("d"))
	say("nothing at all", one("e"))
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		fmt.Println(err)
		return 1
	}
	say("room again", one("f"))
	return 0
}

// TestFullDisk: what does not fit is refused, counted and leaves no trace; what
// was whole when the disk was full stays, with its number.
func TestFullDisk(t *testing.T) {
	dir := session(t)
	out, err := role(t, "disk", dir, "").Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := `fits 1 1 false 0 true
too much 0 0 true 1 true
again 0 0 true 2 true
fits still 2 2 false 2 true
one of two 3 3 true 3 true
behind it 4 4 false 3 true
but the newline 5 5 false 3 true
nothing at all 0 0 true 4 true
room again 6 6 false 4 true
`
	if string(out) != want {
		t.Errorf("got\n%swant\n%s", out, want)
	}
	got, damaged := readAll(t, dir)
	equal(t, got, []string{rec(1, strings.Repeat("x", 5000)), rec(2, "b"), rec(3, "small"), rec(4, "c"), rec(5, "d"), rec(6, "f")})
	if damaged != 0 {
		t.Errorf("%d damaged stretches", damaged)
	}
}

// TestTooLong: no reader takes a line longer than a frame for one, so it is
// refused before it takes a number; also where it would wait in the inbox.
func TestTooLong(t *testing.T) {
	dir := session(t)
	huge := one("")
	huge.Build = func(bool) []Draft { return []Draft{fakeSize(MaxFrame)} }
	if res, err := Append(dir, huge); !errors.Is(err, ErrUnwritten) || res.First != 0 {
		t.Errorf("%+v, %v", res, err)
	}
	held, err := Lock(dir, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	huge.Wait = 0
	if _, err := Append(dir, huge); !errors.Is(err, ErrUnwritten) || InboxWaiting(dir) {
		t.Errorf("into the inbox: %v", err)
	}
	held.Release()
	if res := appendOne(t, dir, "a"); res.First != 1 {
		t.Errorf("the next one has number %d", res.First)
	}
}

// fakeSize is a draft that says it is that long.
type fakeSize int

func (fakeSize) Append(dst []byte, _ uint64) []byte { return append(dst, "{}"...) }
func (n fakeSize) Size() int                        { return int(n) }

// roleInbox leaves a record in the inbox, and stops itself just before the file
// gets its name.
func roleInbox(dir string) int {
	d := disk{fault: func(op, _ string) error {
		if op == "rename" {
			fmt.Println("begun")
			return syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		}
		return nil
	}}
	if err := d.leaveInInbox(dir, one("late")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestUnfinishedInboxFiles of hooks that were killed are removed by whoever takes
// the inbox in; that of a hook which was stopped is left to it, and is taken in.
func TestUnfinishedInboxFiles(t *testing.T) {
	dir := session(t)
	appendOne(t, dir, "a")
	hook := func() *exec.Cmd {
		cmd := role(t, "inbox", dir, "")
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if !bufio.NewScanner(out).Scan() {
			t.Fatal("it has not begun")
		}
		return cmd
	}
	stopped, killed := hook(), hook()
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	if n, err := TakeInbox(dir, time.Second); n != 0 || err != nil {
		t.Fatalf("took %d, %v", n, err)
	}
	box := filepath.Join(dir, inboxName)
	if entries, err := os.ReadDir(box); err != nil || len(entries) != 1 || InboxWaiting(dir) {
		t.Errorf("%v, %v, waiting %v; want the stopped hook's file alone", entries, err, InboxWaiting(dir))
	}
	// It may stop itself only now: there is no other moment to wait for.
	for gone := false; !gone; gone = stopped.ProcessState != nil {
		if err := stopped.Process.Signal(syscall.SIGCONT); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		if InboxWaiting(dir) {
			if err := stopped.Wait(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n, err := TakeInbox(dir, time.Second); n != 1 || err != nil {
		t.Fatalf("took %d, %v", n, err)
	}
	got, _ := readAll(t, dir)
	equal(t, got, []string{rec(1, "a"), rec(2, "late")})
	if entries, err := os.ReadDir(box); err != nil || len(entries) != 0 {
		t.Errorf("left in the inbox: %v, %v", entries, err)
	}
}
