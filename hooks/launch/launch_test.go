package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ways/hooks/dirs"
)

// The test binary runs itself as the program that is started.
const roleVar = "WAYS_LAUNCH_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "":
		os.Exit(m.Run())
	case "started":
		os.Exit(roleStarted(os.Args[1]))
	case "exit":
		code, _ := strconv.Atoi(os.Args[1])
		os.Exit(code)
	case "killed":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// self is how a started program is what a dispatcher is.
type self struct {
	Args, Env       []string
	Cwd             string
	Pid, Sid, Group int
	Open            []int // descriptors above the standard ones
	Standard        [3]string
	Adopted         string // an error
	CloseOnExec     bool
	Locked          bool // somebody else could take the lock
}

// roleStarted reports what it sees to a file in dir, and stays until it is woken.
func roleStarted(dir string) int {
	listen, err := Listen(dir)
	if err != nil {
		return 3
	}
	var s self
	s.Args, s.Env = os.Args, os.Environ()
	s.Cwd, _ = os.Getwd()
	s.Pid, s.Group = os.Getpid(), syscall.Getpgrp()
	sid, _, _ := syscall.RawSyscall(syscall.SYS_GETSID, 0, 0, 0)
	s.Sid = int(sid)
	for fd := 3; fd < 64; fd++ {
		var st syscall.Stat_t
		if fd != int(listen.Fd()) && syscall.Fstat(fd, &st) == nil && st.Mode&syscall.S_IFMT != 0 {
			s.Open = append(s.Open, fd)
		}
	}
	var null syscall.Stat_t
	if err := syscall.Stat(os.DevNull, &null); err != nil {
		return 3
	}
	for fd := range s.Standard {
		var st syscall.Stat_t
		if syscall.Fstat(fd, &st) == nil && st.Rdev == null.Rdev && st.Ino == null.Ino {
			s.Standard[fd] = os.DevNull
		}
	}
	lock, err := Adopt(dir, LockFD)
	if err != nil {
		s.Adopted = err.Error()
	} else {
		flags, _, _ := syscall.Syscall(syscall.SYS_FCNTL, lock.Fd(), syscall.F_GETFD, 0)
		s.CloseOnExec = flags&syscall.FD_CLOEXEC != 0
	}
	_, err = TryLock(dir)
	s.Locked = errors.Is(err, ErrRunning)
	out, err := json.Marshal(s)
	if err != nil {
		return 3
	}
	if err := os.WriteFile(filepath.Join(dir, "self.tmp"), out, 0o600); err != nil {
		return 3
	}
	if err := os.Rename(filepath.Join(dir, "self.tmp"), filepath.Join(dir, "self")); err != nil {
		return 3
	}
	var b [1]byte
	for {
		if n, err := listen.Read(b[:]); err != nil || n == 1 && b[0] == Ended {
			return 0
		}
	}
}

func program(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	limit := time.After(20 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("not in time: %s", what)
		}
	}
}

func free(dir string) bool {
	lock, err := TryLock(dir)
	if err != nil {
		return false
	}
	lock.Close()
	return true
}

// TestStart: what is started holds the lock, has a session of its own, starts
// from /, and has nothing of its parent's but the lock.
func TestStart(t *testing.T) {
	dir := t.TempDir()
	lock, err := TryLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	// Descriptors as a client leaves them: open in its children, on pipes whose
	// end it waits for.
	var ends []*os.File
	for range 7 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		inherited, err := syscall.Dup(int(w.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
		t.Cleanup(func() { r.Close() })
		ends = append(ends, r, os.NewFile(uintptr(inherited), "inherited"))
	}
	err = Start(Command{Path: program(t), Args: []string{dir, "--two words"}, Env: []string{roleVar + "=started", "A=b"}}, lock)
	if err != nil {
		t.Fatal(err)
	}
	lock.Close()
	for i := 1; i < len(ends); i += 2 {
		ends[i].Close()
	}
	for i := 0; i < len(ends); i += 2 {
		if n, err := ends[i].Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("pipe %d: %d, %v; want its end", i/2, n, err)
		}
	}
	var got self
	eventually(t, "the report", func() bool {
		raw, err := os.ReadFile(filepath.Join(dir, "self"))
		return err == nil && json.Unmarshal(raw, &got) == nil
	})
	if !slices.Equal(got.Args, []string{program(t), dir, "--two words"}) || !slices.Equal(got.Env, []string{roleVar + "=started", "A=b"}) {
		t.Errorf("args %q, environment %q", got.Args, got.Env)
	}
	if got.Cwd != "/" || got.Sid != got.Pid || got.Group != got.Pid {
		t.Errorf("cwd %s, pid %d, session %d, group %d", got.Cwd, got.Pid, got.Sid, got.Group)
	}
	if got.Standard != [3]string{os.DevNull, os.DevNull, os.DevNull} {
		t.Errorf("standard streams %q", got.Standard)
	}
	if got.Adopted != "" || !got.CloseOnExec || !got.Locked {
		t.Errorf("adopted: %q, close-on-exec %v, locked %v", got.Adopted, got.CloseOnExec, got.Locked)
	}
	if !slices.Contains(got.Open, LockFD) {
		t.Errorf("open: %v", got.Open)
	}
	if free(dir) || !Running(dir) {
		t.Error("nobody runs")
	}
	Wake(dir, Appended)
	Wake(dir, Ended)
	eventually(t, "its end", func() bool { return free(dir) && !Running(dir) })
}

func TestStartFails(t *testing.T) {
	dir := t.TempDir()
	lock, err := TryLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []Command{{Path: filepath.Join(dir, "absent")}, {Path: dir}, {Path: program(t), Args: []string{"a\x00b"}}} {
		if err := Start(c, lock); err == nil || !strings.Contains(err.Error(), c.Path) {
			t.Errorf("%q: %v", c.Path, err)
		}
	}
	lock.Close()
	if !free(dir) {
		t.Error("the lock is not free")
	}
}

func TestRun(t *testing.T) {
	for _, row := range []struct {
		role, arg, want string
	}{
		{"exit", "0", ""}, {"exit", "3", "exit status 3"}, {"killed", "", "exit status -1"},
	} {
		err := Run(Command{Path: program(t), Args: []string{row.arg}, Env: []string{roleVar + "=" + row.role}})
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s %s: %v", row.role, row.arg, err)
		}
	}
	if err := Run(Command{Path: "/nonexistent/program"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an absent program: %v", err)
	}
}

func TestTryLock(t *testing.T) {
	dir := t.TempDir()
	lock, err := TryLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := TryLock(dir); !errors.Is(err, ErrRunning) {
			t.Errorf("a second time: %v", err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, lockName))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	lock.Close()
	if !free(dir) {
		t.Error("not free once closed")
	}
	if _, err := TryLock(filepath.Join(dir, "absent")); err == nil || errors.Is(err, ErrRunning) {
		t.Errorf("no directory: %v", err)
	}
	other := t.TempDir()
	if err := os.Symlink(filepath.Join(dir, lockName), filepath.Join(other, lockName)); err != nil {
		t.Fatal(err)
	}
	if _, err := TryLock(other); err == nil || errors.Is(err, ErrRunning) {
		t.Errorf("a symlink: %v", err)
	}
}

// TestRelease frees the lock though the hook that handed it down still has it
// open.
func TestRelease(t *testing.T) {
	dir := t.TempDir()
	hooks, err := TryLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer hooks.Close()
	fd, err := syscall.Dup(int(hooks.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	mine, err := Adopt(dir, fd)
	if err != nil {
		t.Fatal(err)
	}
	if free(dir) {
		t.Fatal("free while held")
	}
	if err := Release(mine); err != nil || !free(dir) {
		t.Errorf("released, %v; free: %v", err, free(dir))
	}
}

func TestAdoptRefuses(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	lock, err := TryLock(other)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := Adopt(dir, int(lock.Fd())); err == nil {
		t.Error("adopted where there is no lock")
	}
	mine, err := TryLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	if _, err := Adopt(dir, int(lock.Fd())); err == nil || !strings.Contains(err.Error(), "is not") {
		t.Errorf("another session's lock: %v", err)
	}
	if _, err := Adopt(dir, 999); err == nil || !strings.Contains(err.Error(), "not open") {
		t.Errorf("a closed descriptor: %v", err)
	}
}

func TestWakeAndListen(t *testing.T) {
	dir := t.TempDir()
	Wake(dir, Appended) // nobody there: nothing happens
	if Running(dir) {
		t.Error("running before anybody listens")
	}
	first, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if !Running(dir) {
		t.Error("not running while one listens")
	}
	read := func(f *os.File, want string) {
		t.Helper()
		got := make([]byte, 16)
		f.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, err := f.Read(got)
		if string(got[:n]) != want {
			t.Errorf("read %q, %v; want %q", got[:n], err, want)
		}
	}
	Wake(dir, Appended)
	Wake(dir, Ended)
	read(first, "ae")
	for range 100_000 { // more than the pipe holds; none waits
		Wake(dir, Appended)
	}
	read(first, strings.Repeat("a", 16))

	// The next dispatcher's wake-ups are its own, also while the last one has
	// not closed its end.
	second, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	Wake(dir, Ended)
	read(second, "e")
	second.Close()
	if Running(dir) {
		t.Error("running when the newer one has closed")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// TestListenMakesRoom for what lies in the FIFO's place.
func TestListenMakesRoom(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"a file":              func(p string) error { return os.WriteFile(p, []byte("x"), 0o600) },
		"an empty directory":  func(p string) error { return os.Mkdir(p, 0o700) },
		"a dangling symlink":  func(p string) error { return os.Symlink("/nonexistent", p) },
		"a fresh one's name":  func(p string) error { return os.WriteFile(p+".new", nil, 0o600) },
		"another FIFO":        func(p string) error { return syscall.Mkfifo(p, 0o666) },
		"a symlink elsewhere": func(p string) error { return os.Symlink(os.DevNull, p) },
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, wakeName)
		if err := put(path); err != nil {
			t.Fatal(err)
		}
		Wake(dir, Appended)
		if name == "a file" {
			if got, err := os.ReadFile(path); string(got) != "x" || Running(dir) {
				t.Errorf("%s: taken for the FIFO: %q, %v", name, got, err)
			}
		}
		f, err := Listen(dir)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if info, err := os.Lstat(path); err != nil || info.Mode() != os.ModeNamedPipe|0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
		f.Close()
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, wakeName, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(dir); err == nil {
		t.Error("listening in a directory's place")
	}
}

// TestEndNeverWaits for the other end of a FIFO in its file's place.
func TestEndNeverWaits(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, endName), 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		End(dir)
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("waits")
	}
	if !TakeEnd(dir) {
		t.Error("the end is not told")
	}
}

func TestEnvironment(t *testing.T) {
	in := []string{
		"HOME=/h", "CLAUDECODE=1", "CLAUDE_CODE_ENTRYPOINT=cli", "CLAUDE_PROJECT_DIR=/p", "CLAUDE_ENV_FILE=/e", "CLAUDE_=",
		"CLAUDETTE=kept", "MY_CLAUDE_KEY=kept", "WAYS_DISPATCHER_IDLE=1s", "EMPTY=", "odd", "X=CLAUDE_Y=z",
	}
	want := []string{"HOME=/h", "CLAUDETTE=kept", "MY_CLAUDE_KEY=kept", "WAYS_DISPATCHER_IDLE=1s", "EMPTY=", "odd", "X=CLAUDE_Y=z"}
	if got := Environment(in); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestLockIsAFile: nothing else in its place is locked, or waited for.
func TestLockIsAFile(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, lockName), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := TryLock(dir); !errors.Is(err, dirs.ErrNotFile) {
		t.Errorf("got %v", err)
	}
}
