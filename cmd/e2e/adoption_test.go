package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ways/hooks/dirs"
)

// leftBehind makes a site whose session has ended with n records undelivered,
// since its consumer is down; up makes the consumer take everything.
func leftBehind(t *testing.T, session string, n int) (s site, c *scripted, up func()) {
	t.Helper()
	isUp := false
	c = newScripted(t, "", nil)
	c.answer = func(posted, int) (int, string) {
		if isUp {
			return 200, ""
		}
		return 503, ""
	}
	s = hookSite(t, c.URL, "WAYS_DISPATCHER_IDLE=300ms")
	for i := range n {
		s.fire(t, call(session, fmt.Sprint("t", i), 10))
	}
	s.finish(t, session)
	return s, c, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		isUp = true
	}
}

// pendingMark is the file that says that a session has something to deliver.
func (s site) pendingMark(session string) string {
	return filepath.Join(s.dirs.State, "pending", dirs.SessionName(session))
}

// waiting is what ways status says of a session: how many records wait, and
// since when.
func (s site) waiting(t *testing.T, session string) (n int, since time.Time) {
	t.Helper()
	var v struct {
		Sessions []struct {
			Session string
			Spooled int
			Since   time.Time `json:"spooled_since"`
		}
	}
	if err := json.Unmarshal(s.run(t, "status", "--json"), &v); err != nil {
		t.Fatal(err)
	}
	for _, one := range v.Sessions {
		if one.Session == session {
			return one.Spooled, one.Since
		}
	}
	return 0, time.Time{}
}

func calls(n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprint("t", i))
	}
	return list
}

// TestLeftBehindIsShown: a dispatcher whose session ended leaves what it cannot
// deliver, within its idle time; ways status says how much that is, and how old.
func TestLeftBehindIsShown(t *testing.T) {
	began := time.Now()
	const n = 100 // more than wait in memory
	s, _, _ := leftBehind(t, "s", n)
	waiting, since := s.waiting(t, "s")
	if waiting != n || since.Before(began.Add(-time.Second)) || since.After(time.Now()) {
		t.Errorf("%d waiting since %v; want %d since a time behind %v", waiting, since, n, began)
	}
	if _, err := os.Stat(s.pendingMark("s")); err != nil {
		t.Error(err)
	}
	// A drain that finds the consumer down leaves everything where it is, and the
	// age is still the record's.
	out, code := s.verb(t, "sensors", "drain")
	if code != 1 || !strings.Contains(out, fmt.Sprintf("s: %d records still undelivered", n)) {
		t.Errorf("drain: %d, %s", code, out)
	}
	if waiting, again := s.waiting(t, "s"); waiting != n || !again.Equal(since) {
		t.Errorf("%d waiting since %v; want %d since %v", waiting, again, n, since)
	}
}

// TestDrain delivers what was left, in order, and leaves nothing behind.
func TestDrain(t *testing.T) {
	for _, session := range []string{"s", "an id/that is no file name"} {
		t.Run(session, func(t *testing.T) {
			t.Parallel()
			const n = 70
			s, c, up := leftBehind(t, session, n)
			up()
			if out, code := s.verb(t, "sensors", "drain", "--session", "another"); code != 1 {
				t.Errorf("drain of a session that is not there: %d, %s", code, out)
			}
			out, code := s.verb(t, "sensors", "drain", "--session", session)
			if code != 0 || !strings.Contains(out, ": drained") {
				t.Errorf("drain: %d, %s", code, out)
			}
			c.waitAccepted(t, s, calls(n)...)
			if out, code := s.verb(t, "sensors", "drain"); code != 0 || !strings.Contains(out, "nothing is left undelivered") {
				t.Errorf("drain again: %d, %s", code, out)
			}
			if waiting, _ := s.waiting(t, session); waiting != 0 {
				t.Errorf("%d still waiting", waiting)
			}
			if left, err := filepath.Glob(filepath.Join(s.dirs.Session(session), "*.seg")); err != nil || len(left) != 0 {
				t.Errorf("left %v, %v", left, err)
			}
			if _, err := os.Stat(s.pendingMark(session)); !os.IsNotExist(err) {
				t.Errorf("the mark: %v", err)
			}
			if out, code := s.verb(t, "sensors", "drain", "x"); code != 2 {
				t.Errorf("drain with an argument: %d, %s", code, out)
			}
		})
	}
}

// TestAdoption: the next dispatcher of any session delivers what another one
// left, whether it left orderly, was killed, lost its mark's text, or never was.
func TestAdoption(t *testing.T) {
	for _, row := range []struct {
		name string
		harm func(t *testing.T, s site)
	}{
		{"left", func(*testing.T, site) {}},
		{"its mark damaged", func(t *testing.T, s site) { writeFile(t, s.pendingMark("s"), []byte("x")) }},
		{"its mark empty", func(t *testing.T, s site) { writeFile(t, s.pendingMark("s"), nil) }},
		{"no mark: the hook died before it could start one", func(t *testing.T, s site) {
			old := time.Now().Add(-time.Hour)
			if err := os.Remove(s.pendingMark("s")); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(filepath.Join(s.dirs.Session("s"), "append.lock"), old, old); err != nil {
				t.Fatal(err)
			}
		}},
		{"a mark without a session beside it", func(t *testing.T, s site) { writeFile(t, s.pendingMark("ghost"), []byte("ghost")) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s, c, up := leftBehind(t, "s", 3)
			row.harm(t, s)
			up()
			s.fire(t, call("other", "o", 10))
			eventually(t, exitLimit, func() bool { return len(c.accepted()) == 4 }, s.story)
			seen := map[string]bool{}
			for _, p := range c.all() {
				if p.status == 200 {
					seen[p.id] = true
				}
			}
			for _, id := range []string{"s:hook/log:1", "s:hook/log:2", "s:hook/log:3", "other:hook/log:1"} {
				if !seen[id] {
					t.Errorf("%s did not arrive", id)
				}
			}
			eventually(t, exitLimit, func() bool { _, err := os.Stat(s.pendingMark("ghost")); return os.IsNotExist(err) }, s.story)
		})
	}
}

// TestTwoNeverDrainOneSession: 50 drains at once, beside a dispatcher that
// adopts. Each record is sent once.
func TestTwoNeverDrainOneSession(t *testing.T) {
	const n = 40
	s, c, up := leftBehind(t, "s", n)
	before := len(c.all())
	up()
	var mu sync.Mutex
	codes := map[int]int{}
	atOnce(50, func(i int) {
		if i == 25 {
			s.fire(t, call("other", "o", 10))
		}
		cmd := exec.CommandContext(t.Context(), s.ways, "sensors", "drain")
		cmd.Env = s.env
		_ = cmd.Run()
		mu.Lock()
		defer mu.Unlock()
		codes[cmd.ProcessState.ExitCode()]++
	})
	s.verb(t, "sensors", "drain")
	eventually(t, exitLimit, func() bool { return len(c.accepted()) >= n+1 }, s.story)
	s.waitUnlocked(t, "other")
	times := map[string]int{}
	for _, p := range c.all()[before:] {
		times[p.id]++
	}
	for id, k := range times {
		if k != 1 {
			t.Errorf("%s was sent %d times", id, k)
		}
	}
	if len(times) != n+1 || codes[0]+codes[1] != 50 {
		t.Errorf("%d records, exit codes %v", len(times), codes)
	}
}

// TestDrainIsToldToStop: it ends, with what is left undelivered left.
func TestDrainIsToldToStop(t *testing.T) {
	s, c, _ := leftBehind(t, "s", 3)
	hanging := make(chan struct{})
	c.mu.Lock()
	c.answer = func(posted, int) (int, string) {
		select {
		case <-hanging:
		default:
			close(hanging)
		}
		return 503, "1"
	}
	c.mu.Unlock()
	cmd := exec.CommandContext(t.Context(), s.ways, "sensors", "drain")
	cmd.Env = s.env
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-hanging
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err == nil {
		t.Error("it says that all was delivered")
	}
	if waiting, _ := s.waiting(t, "s"); waiting != 3 {
		t.Errorf("%d waiting", waiting)
	}
}

// peak is the most memory that an ended process had, in bytes.
func peak(t *testing.T, state *os.ProcessState) int64 {
	t.Helper()
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		t.Fatalf("no usage of the process: %T", state.SysUsage())
	}
	if runtime.GOOS == "darwin" {
		return usage.Maxrss
	}
	return usage.Maxrss << 10
}

// TestBacklog drains a backlog to a file and to a server, in memory that has
// nothing to do with its size: the bound is the same for the gigabyte of
//
//	go test -run TestBacklog ./cmd/e2e -backlog 1024
func TestBacklog(t *testing.T) {
	const size, bound = 256 << 10, 160 << 20
	records := intFlag(backlogFlag) << 20 / size
	for _, row := range []struct{ name, dispatch string }{
		{"file", "file: {path: %s, format: jsonl}"}, {"http", "http: {url: \"%s\"}"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var mu sync.Mutex
			taken := map[int]bool{}
			c := newScripted(t, "", nil)
			c.Config.Handler = counting(func(seq int) { mu.Lock(); taken[seq] = true; mu.Unlock() })
			s := bareSite(t)
			to := s.log
			if row.name == "http" {
				to = c.URL
			}
			s.sensor(t, "all", "[tool_call]", fmt.Sprintf(row.dispatch, to), "delivery: at_least_once", "redact: none")
			backlog(t, s, "s", records, size, time.Now())
			cmd := exec.CommandContext(t.Context(), s.ways, "sensors", "drain")
			cmd.Env = s.env
			began := time.Now()
			out, err := cmd.CombinedOutput()
			took := time.Since(began)
			if err != nil || !strings.Contains(string(out), "s: drained") {
				t.Fatalf("%v, %s; %s", err, out, s.story())
			}
			most := peak(t, cmd.ProcessState)
			t.Logf("%d MB drained in %v; at most %d MB of memory", records*size>>20, took.Round(time.Millisecond), most>>20)
			if most > bound {
				t.Errorf("%d MB of memory for a backlog of %d MB", most>>20, records*size>>20)
			}
			if row.name == "file" {
				mu.Lock()
				for seq := range countLines(t, s.log) {
					taken[seq] = true
				}
				mu.Unlock()
			}
			if len(taken) != records {
				t.Errorf("%d records arrived, want %d", len(taken), records)
			}
		})
	}
}

// counting is a consumer that only takes the number out of each body.
func counting(take func(seq int)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := make([]byte, 400)
		n, _ := io.ReadFull(r.Body, head)
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			take(seqIn(head[:n]))
		}
	})
}

// seqIn is the number of a record, from its first bytes; 0 for none.
func seqIn(head []byte) (seq int) {
	_, rest, _ := bytes.Cut(head, []byte(`"seq":`))
	_, _ = fmt.Sscan(string(rest[:min(len(rest), 12)]), &seq)
	return seq
}

// countLines returns the numbers of the records in a large log.
func countLines(t *testing.T, path string) map[int]bool {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen := map[int]bool{}
	in := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 {
			seen[seqIn(line[:min(len(line), 400)])] = true
		}
		if errors.Is(err, io.EOF) {
			return seen
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
