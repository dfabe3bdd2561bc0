package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	"unicode/utf8"
)

// Roles of the test binary when it is started as a process under test.
const (
	roleEnv = "WAYS_EVENTS_TEST_ROLE"
	dirEnv  = "WAYS_EVENTS_TEST_DIR"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		if err := play(role, os.Getenv(dirEnv)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// small is a log that is compacted often.
func small(dir string) Log { return Log{filepath.Join(dir, Name), 32 << 10, 24 << 10, 8 << 10} }

func play(role, dir string) error {
	kind, id, _ := strings.Cut(role, ":")
	switch kind {
	case "write":
		for i := range 200 {
			err := small(dir).Append(time.Now(), Event{Event: Drop, Rule: id, Seq: strconv.Itoa(i)}, Event{Event: JudgeCall, Session: id})
			if err != nil {
				return err
			}
		}
		return nil
	case "limited": // as a full disk: the file can grow by a few bytes
		signal.Ignore(syscall.SIGXFSZ)
		info, err := os.Stat(small(dir).path)
		if err != nil {
			return err
		}
		limit := syscall.Rlimit{Cur: uint64(info.Size()) + 20, Max: uint64(info.Size()) + 20}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		if err := small(dir).Append(time.Now(), Event{Event: Kill}, Event{Event: Kill}); !errors.Is(err, syscall.EFBIG) {
			return fmt.Errorf("append to a full disk: %v", err)
		}
		return nil
	}
	return fmt.Errorf("no role %q", role)
}

func start(t *testing.T, role, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), roleEnv+"="+role, dirEnv+"="+dir)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func lines(t *testing.T, dir string) []Event {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, Name))
	if err != nil {
		t.Fatal(err)
	}
	var out []Event
	for line := range bytes.Lines(data) {
		var e Event
		if err := json.Unmarshal(line, &e); err != nil || line[len(line)-1] != '\n' {
			t.Fatalf("%q: %v", line, err)
		}
		out = append(out, e)
	}
	return out
}

// Many processes write at once while the log is compacted over and over: every
// line is whole, the order of each writer is kept, the newest are there, and no
// judge_call is forgotten.
func TestManyProcesses(t *testing.T) {
	dir := t.TempDir()
	var all []*exec.Cmd
	for i := range 8 {
		all = append(all, start(t, fmt.Sprintf("write:%d", i), dir))
	}
	for _, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	last, calls := map[string]int{}, 0
	for _, e := range lines(t, dir) {
		if e.Event == JudgeCall {
			n := 1
			if e.Count != "" {
				n, _ = strconv.Atoi(e.Count)
			}
			calls += n
			continue
		}
		n, err := strconv.Atoi(e.Seq)
		if err != nil || n < last[e.Rule] {
			t.Errorf("%+v behind %d", e, last[e.Rule])
		}
		last[e.Rule] = n
	}
	if calls != 8*200 {
		t.Errorf("%d judge calls, want %d", calls, 8*200)
	}
	newest := 0
	for _, n := range last {
		newest = max(newest, n)
	}
	if newest != 199 {
		t.Errorf("newest is %d", newest)
	}
	if info, err := os.Stat(filepath.Join(dir, Name)); err != nil || info.Size() > 32<<10 {
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
}

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := small(dir).Append(time.Now(), Event{Event: Drop}); err != nil {
		t.Fatal(err)
	}
	if err := start(t, "limited", dir).Wait(); err != nil {
		t.Fatal(err)
	}
	if got := lines(t, dir); len(got) != 1 || got[0].Event != Drop {
		t.Errorf("the log holds %+v", got)
	}
}

// What may stand in the log's place, and what then happens.
func TestHostileStates(t *testing.T) {
	for _, row := range []struct {
		name string
		make func(path string) error
		want error // nil: the event is written
	}{
		{"nothing", func(string) error { return nil }, nil},
		{"torn tail", func(p string) error { return os.WriteFile(p, []byte(`{"event":"sensor_dr`), 0o600) }, nil},
		{"binary", func(p string) error { return os.WriteFile(p, []byte("\x00\xff\n\n"), 0o600) }, nil},
		{"symlink", func(p string) error { return os.Symlink(p+".else", p) }, syscall.ELOOP},
		{"directory", func(p string) error { return os.Mkdir(p, 0o700) }, syscall.EISDIR},
		{"fifo", func(p string) error { return syscall.Mkfifo(p, 0o600) }, ErrNotRegular},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, Name)
			if err := row.make(path); err != nil {
				t.Fatal(err)
			}
			err := NewLog(dir).Append(time.Unix(1, 0), Event{Event: Kill})
			if !errors.Is(err, row.want) || (row.want != nil && !strings.Contains(err.Error(), path)) {
				t.Fatalf("error %v, want %v with the path", err, row.want)
			}
			if row.want != nil {
				return
			}
			data, err := os.ReadFile(path)
			if err != nil || !bytes.HasSuffix(data, []byte("\n"+`{"ts":"1970-01-01T00:00:01Z","event":"sensor_kill"}`+"\n")) &&
				string(data) != `{"ts":"1970-01-01T00:00:01Z","event":"sensor_kill"}`+"\n" {
				t.Errorf("%q, %v", data, err)
			}
		})
	}
}

// A log that may not be written says so; running as root, nothing is forbidden.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, Name)
	if err := os.WriteFile(path, nil, 0o000); err != nil {
		t.Fatal(err)
	}
	err := NewLog(dir).Append(time.Now(), Event{Event: Kill})
	if os.Geteuid() == 0 {
		if err != nil {
			t.Errorf("as root: %v", err)
		}
		return
	}
	if !errors.Is(err, os.ErrPermission) {
		t.Errorf("error %v", err)
	}
}

// A log that cannot be compacted goes on for a while, then refuses.
func TestCannotBeCompacted(t *testing.T) {
	dir := t.TempDir()
	l := small(dir)
	if err := os.MkdirAll(filepath.Join(l.path+".tmp", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	var err error
	for err == nil {
		err = l.Append(time.Now(), Event{Event: Kill, Detail: strings.Repeat("x", 1000)})
	}
	if !errors.Is(err, ErrFull) {
		t.Errorf("error %v", err)
	}
	if info, err := os.Stat(l.path); err != nil || info.Size() > l.most+l.room || info.Size() < l.most {
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
}

// A holder of the lock that does not go on holds nobody for ever.
func TestBusy(t *testing.T) {
	dir := t.TempDir()
	l := NewLog(dir)
	if err := l.Append(time.Now(), Event{Event: Kill}); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(l.path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := l.Append(time.Now(), Event{Event: Kill}); !errors.Is(err, ErrBusy) {
				t.Errorf("error %v", err)
			}
		})
	}
	wg.Wait()
}

func TestLongFields(t *testing.T) {
	dir := t.TempDir()
	err := NewLog(dir).Append(time.Now(), Event{Event: Kill, Detail: "x" + strings.Repeat("ü", MaxField), Session: strings.Repeat("\xff", 5000)})
	if err != nil {
		t.Fatal(err)
	}
	e := lines(t, dir)[0]
	if len(e.Detail) > MaxField+3 || !utf8.ValidString(e.Detail) || !strings.HasSuffix(e.Detail, "ü…") || strings.ContainsRune(e.Detail, utf8.RuneError) {
		t.Errorf("detail of %d bytes, end %q", len(e.Detail), e.Detail[len(e.Detail)-8:])
	}
}
