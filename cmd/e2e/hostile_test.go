package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ways/hooks/launch"
	"ways/hooks/spool"
	"ways/hooks/tally"
)

// hang is a guard: how long a hook may take that should take milliseconds.
const hang = 10 * time.Second

// TestHostileStdin: whatever arrives, the hook exits with 0, prints nothing,
// counts it, and says in its log what it was.
func TestHostileStdin(t *testing.T) {
	deep := event("s", "Stop", `,"x":`+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000))
	for _, row := range []struct {
		name, in string
		want     tally.Reason
	}{
		{"empty", "", tally.Empty},
		{"blank", "\n\n", tally.Empty},
		{"null", "null", tally.NotObject},
		{"list", "[]", tally.NotObject},
		{"number", "12", tally.NotObject},
		{"random", "\x8f\x1b\xe2\x28\xa1\x00\x00", tally.NotObject},
		{"byte order mark", "\ufeff" + event("s", "Stop", ""), tally.NotObject},
		{"truncated", event("s", "Stop", "")[:30], tally.Truncated},
		{"nested", deep, tally.InvalidJSON},
		{"raw newline", event("s", "Stop", ",\"x\":\"a\nb\""), tally.InvalidJSON},
		{"no session", `{"hook_event_name":"Stop"}`, tally.NoSession},
		{"session of another kind", `{"session_id":5,"hook_event_name":"Stop"}`, tally.NoSession},
		{"no event", `{"session_id":"s"}`, tally.NoEvent},
		{"unknown event", `{"session_id":"s","hook_event_name":"Wor\u001b[31mld\u0000"}`, tally.UnknownEvent},
		{"too large", event("s", "Stop", `,"x":"`+strings.Repeat("x", 65<<20)+`"`), tally.TooLarge},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newSite(t, shortIdle)
			s.fire(t, row.in)
			if got := s.counts(t); got[row.want] != 1 || len(got) != 1 {
				t.Errorf("counted %v, want one %s", got, row.want)
			}
			raw, err := os.ReadFile(tally.LogPath(s.dirs))
			if err != nil || !bytes.Contains(raw, []byte(`"reason":"`+string(row.want)+`"`)) || !json.Valid(raw) || bytes.ContainsAny(raw, "\x1b\x00") {
				t.Errorf("hook.log: %q, %v", raw, err)
			}
			// And the next event is handed on as ever.
			s.fire(t, call("s", "t", 10))
			s.waitLines(t, 1)
		})
	}
}

// TestHostileButAccepted: odd payloads that are records all the same.
func TestHostileButAccepted(t *testing.T) {
	s := newSite(t, shortIdle)
	for i, in := range []string{
		"\n\n" + call("s", "t0", 10) + "\n",
		strings.ReplaceAll(call("s", "t1", 10), ",", ",\r\n"),
		call("s", "t2", 10) + `{"session_id":"other"`,
		strings.ReplaceAll(call("s", "t3", 10), "word", "\xff\xfe"),
		strings.ReplaceAll(call("s", "t4", 10), "word", `\ud99c\u0000`),
		strings.Replace(call("x", "t5", 10), `"cwd":"/"`, `"session_id":"s"`, 1),
		call("s", "t6", 4<<20),
	} {
		s.fire(t, in)
		if list := s.waitLines(t, i+1); list[i].Data.ID != fmt.Sprint("t", i) || list[i].Session != "s" {
			t.Errorf("record %d: %+v", i, list[i].Data.ID)
		}
	}
	for i, id := range []string{"../../../etc/x", "a/b", "..", "-rf", strings.Repeat("i", 1000), "ü \n"} {
		quoted, err := json.Marshal(id)
		if err != nil {
			t.Fatal(err)
		}
		s.fire(t, strings.Replace(call("SESSION", "u", 10), `"SESSION"`, string(quoted), 1))
		if list := s.waitLines(t, 8+i); list[7+i].Session != id || list[7+i].Seq != 1 {
			t.Errorf("session %q: %q, %d", id, list[7+i].Session, list[7+i].Seq)
		}
	}
	// No session got out of the directory of sessions.
	entries, err := os.ReadDir(s.dirs.Sessions())
	if err != nil || len(entries) != 7 {
		t.Errorf("%d sessions, %v", len(entries), err)
	}
	if got := s.counts(t); len(got) != 0 {
		t.Errorf("refused: %v", got)
	}
}

// piped starts a hook on a pipe and returns the end to write to, raw.
func piped(t *testing.T, cmd *exec.Cmd) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = r
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.Close()
	t.Cleanup(func() {
		w.Close()
		if out.Len() != 0 {
			t.Errorf("the hook said %q", out.String())
		}
	})
	return w
}

// TestNoBrokenPipe: the client writes 2 MB and never meets a closed pipe,
// whatever keeps the hook from doing its work (hard case BR-05).
func TestNoBrokenPipe(t *testing.T) {
	big := call("s", "t", 2<<20)
	mangled := "[" + big + "]"
	for _, row := range []struct {
		name    string
		in      string
		prepare func(t *testing.T, s site, cmd *exec.Cmd)
	}{
		{"no rule", big, func(t *testing.T, s site, _ *exec.Cmd) { remove(t, filepath.Join(s.config, "sensors")) }},
		{"no rule, refused", mangled, func(t *testing.T, s site, _ *exec.Cmd) { remove(t, filepath.Join(s.config, "sensors")) }},
		{"unreadable config", big, func(t *testing.T, s site, _ *exec.Cmd) {
			if err := os.MkdirAll(s.dirs.Settings(), 0o700); err != nil {
				t.Fatal(err)
			}
		}},
		{"no config at all", big, func(t *testing.T, s site, _ *exec.Cmd) {
			remove(t, s.config)
			writeFile(t, s.config, []byte("not a directory"))
		}},
		{"state is a file", big, func(t *testing.T, s site, _ *exec.Cmd) { writeFile(t, s.dirs.State, nil) }},
		{"state is a file, refused", mangled, func(t *testing.T, s site, _ *exec.Cmd) { writeFile(t, s.dirs.State, nil) }},
		{"cache is a file", big, func(t *testing.T, s site, _ *exec.Cmd) { writeFile(t, s.dirs.Cache, nil) }},
		{"no waysctl", big, func(t *testing.T, s site, _ *exec.Cmd) { remove(t, s.waysctl) }},
		{"no home", big, func(_ *testing.T, _ site, cmd *exec.Cmd) { cmd.Env = []string{"PATH=/bin"} }},
		{"no home, refused", mangled, func(_ *testing.T, _ site, cmd *exec.Cmd) { cmd.Env = []string{"PATH=/bin"} }},
		{"inside a consumer", big, func(_ *testing.T, _ site, cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "WAYS_CONSUMER=1") }},
		{"full disk", big, func(t *testing.T, s site, cmd *exec.Cmd) { limitFiles(t, cmd, 8) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newSite(t, shortIdle)
			cmd := s.command(t, "")
			row.prepare(t, s, cmd)
			w := piped(t, cmd)
			for rest := []byte(row.in); len(rest) > 0; {
				n, err := syscall.Write(int(w.Fd()), rest[:min(len(rest), 60_000)])
				if errors.Is(err, syscall.EINTR) {
					continue
				}
				if err != nil {
					t.Fatalf("with %d bytes left: %v", len(rest), err)
				}
				rest = rest[n:]
			}
			w.Close()
			if err := cmd.Wait(); err != nil {
				t.Errorf("the hook ended with %v", err)
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// limitFiles makes a command run where no file can grow beyond that many
// kilobytes, as on a full disk.
func limitFiles(t *testing.T, cmd *exec.Cmd, kilobytes int) {
	t.Helper()
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Args = append([]string{shell, "-c", fmt.Sprintf(`ulimit -f %d; exec "$@"`, kilobytes), "hook"}, cmd.Args...)
	cmd.Path = shell
}

// TestFullDisk: while nothing can be stored, hooks exit with 0 and count; what
// comes behind is whole.
func TestFullDisk(t *testing.T) {
	s := newSite(t, shortIdle)
	s.fire(t, call("s", "t0", 6000))
	s.waitLines(t, 1)
	for i := range 5 {
		cmd := s.command(t, call("s", fmt.Sprint("full", i), 100_000))
		limitFiles(t, cmd, 12)
		quiet(t, cmd)
	}
	if got := s.counts(t); got[tally.Unwritten] != 5 {
		t.Errorf("counted %v, want 5 unwritten", got)
	}
	s.fire(t, call("s", "t1", 6000))
	list := s.waitLines(t, 2)
	var ids []string
	for _, r := range list {
		if r.Section == "tool_call" {
			ids = append(ids, fmt.Sprintf("%d %s", r.Seq, r.Data.ID))
		}
	}
	if strings.Join(ids, ", ") != "1 t0, 2 t1" {
		t.Errorf("in the log: %v", ids)
	}
}

// TestPipeLeftOpen: the client writes a whole object and never closes the pipe
// (hard case BR-04). The hook leaves at the end of the object; also where it has
// nothing to do.
func TestPipeLeftOpen(t *testing.T) {
	for name, env := range map[string][]string{
		"ordinary": nil, "inside a consumer": {"WAYS_CONSUMER=1"}, "no home": {"HOME="},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, "WAYS_DISPATCHER_IDLE=20s")
			s.fire(t, call("s", "first", 10))
			quickest := time.Hour
			for i := range 5 {
				cmd := s.command(t, "", env...)
				began := time.Now()
				w := piped(t, cmd)
				if _, err := w.WriteString(call("s", fmt.Sprint("t", i), 1000)); err != nil {
					t.Fatal(err)
				}
				if err := cmd.Wait(); err != nil {
					t.Errorf("the hook ended with %v", err)
				}
				quickest = min(quickest, time.Since(began))
			}
			t.Logf("the quickest took %v", quickest)
			if quickest > 200*time.Millisecond {
				t.Errorf("the quickest took %v", quickest)
			}
		})
	}
}

// TestEndlessInput: a writer that never ends, or falls silent, holds nobody for
// long.
func TestEndlessInput(t *testing.T) {
	t.Parallel() // it waits for timeouts
	s := newSite(t, shortIdle)
	t.Run("silent inside the object", func(t *testing.T) {
		cmd := s.command(t, "")
		w := piped(t, cmd)
		if _, err := w.WriteString(`{"session_id":"s"`); err != nil {
			t.Fatal(err)
		}
		waitExit(t, cmd)
		if got := s.counts(t); got[tally.Stalled] != 1 {
			t.Errorf("counted %v, want one stalled", got)
		}
	})
	t.Run("never ends", func(t *testing.T) {
		cmd := s.command(t, "")
		w := piped(t, cmd)
		go io.Copy(w, endless{})
		waitExit(t, cmd)
		if got := s.counts(t); got[tally.NotObject] != 1 {
			t.Errorf("counted %v, want one that is no object", got)
		}
	})
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, "yes\nyes\nyes\nyes\n"), nil }

// waitExit waits for a hook that must end by itself, with 0.
func waitExit(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	timer := time.AfterFunc(2*hang, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the hook ended with %v", err)
	}
}

// TestInheritedPipes: descriptors that the client left open in the hook reach
// their end when the hook exits, though the dispatcher lives (hard case BR-26).
func TestInheritedPipes(t *testing.T) {
	s := newSite(t, "WAYS_DISPATCHER_IDLE=30s")
	cmd := s.command(t, call("s", "t", 1000))
	var ends []*os.File
	for range 7 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		ends = append(ends, r)
		cmd.ExtraFiles = append(cmd.ExtraFiles, w) // 3 to 9
	}
	quiet(t, cmd)
	for _, w := range cmd.ExtraFiles {
		w.Close()
	}
	for i, r := range ends {
		if err := r.SetReadDeadline(time.Now().Add(hang)); err != nil {
			t.Fatal(err)
		}
		if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("descriptor %d: %d bytes, %v; want its end", i+3, n, err)
		}
	}
	if len(s.dispatchers(t, "s")) != 1 {
		t.Error("no dispatcher lives")
	}
	s.waitLines(t, 1)
}

// TestLockHeldForever: somebody sits on the spool's lock. The hook gives up in
// time, and the record is delivered once the lock is free (hard case BR-27).
func TestLockHeldForever(t *testing.T) {
	s := newSite(t, "WAYS_DISPATCHER_IDLE=20s")
	s.fire(t, call("s", "t0", 10))
	s.waitLines(t, 1)
	held, err := spool.Lock(s.dirs.Session("s"), hang)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	atOnce(5, func(i int) { s.fire(t, call("s", fmt.Sprint("t", i+1), 10)) })
	if took := time.Since(began); took > hang {
		t.Errorf("the hooks took %v", took)
	}
	if got := s.counts(t); got[tally.Inbox] != 5 {
		t.Errorf("counted %v, want 5 in the inbox", got)
	}
	held.Release()
	numbered(t, s.waitLines(t, 6), "s", 6)
}

// TestLockHeldFromTheStart is the same where no dispatcher runs yet.
func TestLockHeldFromTheStart(t *testing.T) {
	s := newSite(t, "WAYS_DISPATCHER_IDLE=20s")
	held, err := spool.Lock(s.dirs.Session("s"), hang)
	if err != nil {
		t.Fatal(err)
	}
	s.fire(t, call("s", "t0", 10))
	held.Release()
	numbered(t, s.waitLines(t, 1), "s", 1)
}

// TestPlaces: homes and state directories that are not as they should be.
func TestPlaces(t *testing.T) {
	for _, row := range []struct {
		name    string
		prepare func(t *testing.T, s site) []string // what to set
		stored  bool
	}{
		{"HOME empty", func(*testing.T, site) []string { return []string{"HOME="} }, false},
		{"HOME relative", func(*testing.T, site) []string { return []string{"HOME=here"} }, false},
		{"HOME absent", func(_ *testing.T, s site) []string { return []string{"HOME=" + s.home + "/none/yet"} }, false},
		{"HOME in /proc", func(*testing.T, site) []string { return []string{"HOME=/proc/1/none"} }, false},
		{"state is a file", func(t *testing.T, s site) []string { writeFile(t, s.dirs.State, []byte("x")); return nil }, false},
		{"sessions is a file", func(t *testing.T, s site) []string { writeFile(t, s.dirs.Sessions(), []byte("x")); return nil }, false},
		{"session is a file", func(t *testing.T, s site) []string { writeFile(t, s.dirs.Session("s"), []byte("x")); return nil }, false},
		{"session is a FIFO", func(t *testing.T, s site) []string {
			fifo(t, s.dirs.Session("s"))
			return nil
		}, false},
		{"the lock is a FIFO", func(t *testing.T, s site) []string {
			fifo(t, filepath.Join(s.dirs.Session("s"), "append.lock"))
			return nil
		}, false},
		{"the index is a FIFO", func(t *testing.T, s site) []string {
			fifo(t, s.dirs.Index(s.home))
			return nil
		}, true},
		{"state is a symlink", func(t *testing.T, s site) []string {
			link(t, t.TempDir(), s.dirs.State)
			return nil
		}, false},
		{"the lock is a symlink", func(t *testing.T, s site) []string {
			link(t, "/dev/null", filepath.Join(s.dirs.Session("s"), "append.lock"))
			return nil
		}, false},
		{"others may enter the state", func(t *testing.T, s site) []string {
			if err := os.MkdirAll(s.dirs.State, 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(s.dirs.State, 0o777); err != nil {
				t.Fatal(err)
			}
			return nil
		}, true},
		{"no waysctl", func(t *testing.T, s site) []string { remove(t, s.waysctl); return nil }, false},
		{"a sensor is a FIFO", func(t *testing.T, s site) []string {
			fifo(t, filepath.Join(s.config, "sensors", "pipe.yaml"))
			return nil
		}, true},
		{"inside a consumer", func(*testing.T, site) []string { return []string{"WAYS_CONSUMER=x"} }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newSite(t, shortIdle)
			env := row.prepare(t, s)
			began := time.Now()
			s.fire(t, call("s", "t", 10), env...)
			if took := time.Since(began); took > hang {
				t.Errorf("the hook took %v", took)
			}
			if row.stored {
				s.waitLines(t, 1)
				if info, err := os.Stat(s.dirs.State); err != nil || info.Mode().Perm() != 0o700 {
					t.Errorf("state: %v, %v", info.Mode(), err)
				}
				return
			}
			if list := lines(t, s.log); len(list) != 0 {
				t.Errorf("delivered %d records", len(list))
			}
		})
	}
}

func fifo(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

// TestReadOnlyHome: a file system that nobody can write to is what a directory
// without permissions is to all but root, and what a file in the way is to root.
func TestReadOnlyHome(t *testing.T) {
	s := newSite(t, shortIdle)
	for _, dir := range []string{filepath.Join(s.home, ".local"), filepath.Join(s.home, ".cache")} {
		writeFile(t, dir, []byte("in the way"))
	}
	s.fire(t, call("s", "t", 10))
	s.fire(t, "null")
	if list := lines(t, s.log); len(list) != 0 {
		t.Errorf("delivered %d records", len(list))
	}
}

// TestWaysctlComesBack: what was spooled while no dispatcher could be started is
// delivered with the next event.
func TestWaysctlComesBack(t *testing.T) {
	s := newSite(t, shortIdle)
	s.fire(t, call("s", "t0", 10))
	s.waitLines(t, 1)
	s.waitGone(t, "s")
	if err := os.Rename(s.waysctl, s.waysctl+".off"); err != nil {
		t.Fatal(err)
	}
	s.fire(t, call("s", "t1", 10))
	if got := s.counts(t); got[tally.LaunchFailed] != 1 {
		t.Errorf("counted %v, want one failed launch", got)
	}
	if err := os.Rename(s.waysctl+".off", s.waysctl); err != nil {
		t.Fatal(err)
	}
	s.fire(t, call("s", "t2", 10))
	numbered(t, s.waitLines(t, 3), "s", 3)
}

// TestBareWays: a client that ignores "args" runs the binary alone.
func TestBareWays(t *testing.T) {
	s := newSite(t, shortIdle)
	cmd := s.command(t, call("s", "t", 10))
	cmd.Args = cmd.Args[:1]
	quiet(t, cmd)
	s.waitLines(t, 1)
	cmd = s.command(t, "null")
	cmd.Args = cmd.Args[:1]
	quiet(t, cmd)
}

// TestClosedStandardStreams: a hook whose streams were closed by its parent.
func TestClosedStandardStreams(t *testing.T) {
	s := newSite(t, shortIdle)
	for _, redirect := range []string{"<&-", ">&-", "2>&-", "<&- >&- 2>&-"} {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `exec "$0" hook sensors `+redirect, s.ways)
		cmd.Env = append(s.env, "CLAUDE_PROJECT_DIR="+s.home)
		cmd.Stdin = strings.NewReader(call("s", "t"+redirect, 10))
		quiet(t, cmd)
	}
	if list := s.waitLines(t, 2); len(list) != 2 {
		t.Errorf("%d records", len(list))
	}
	for _, path := range []string{filepath.Join(s.dirs.Session("s"), "append.lock"), s.log} {
		if raw, err := os.ReadFile(path); err != nil || bytes.Contains(raw, []byte("panic")) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestSessionEndHookKilled: the hook dies behind the append, before it could say
// so to anybody. The dispatcher that runs looks once more before it leaves.
func TestSessionEndHookKilled(t *testing.T) {
	s := newSite(t, shortIdle)
	s.fire(t, call("s", "t", 10))
	s.waitLines(t, 1)
	// As the hook does it, up to where it is killed.
	line := `,"section":"session_end","event":"SessionEnd","source":"hook","ts":"2026-01-01T00:00:00Z","session":"s","agent_id":"main","agent_type":"main","project":"` + s.home + `","cwd":"/","data":{"reason":"other"}}`
	_, err := spool.Append(s.dirs.Session("s"), spool.Request{
		Now: time.Now(), Wait: hang,
		Build: func(bool) []spool.Draft { return []spool.Draft{rawDraft(line)} },
	})
	if err != nil {
		t.Fatal(err)
	}
	if list := s.waitLines(t, 2); list[1].Section != "session_end" {
		t.Errorf("%+v", list[1])
	}
	s.waitGone(t, "s")
}

type rawDraft string

func (d rawDraft) Append(dst []byte, seq uint64) []byte {
	return fmt.Appendf(dst, `{"v":1,"seq":%d%s`, seq, string(d))
}
func (d rawDraft) Size() int { return len(`{"v":1,"seq":`) + len(d) }

// TestPermissions: whatever the umask, nobody else can read what a session left.
func TestPermissions(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	s := newSite(t, shortIdle)
	s.fire(t, "null")
	s.fire(t, call("s", "t0", 10))
	s.waitLines(t, 1)
	held, err := spool.Lock(s.dirs.Session("s"), hang)
	if err != nil {
		t.Fatal(err)
	}
	s.fire(t, call("s", "t1", 10))
	look := func() {
		for _, root := range []string{s.dirs.State, s.dirs.Cache, filepath.Dir(s.log)} {
			err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				info, err := d.Info()
				if errors.Is(err, fs.ErrNotExist) {
					return nil // on its way to another name
				}
				if err != nil {
					return err
				}
				want := fs.FileMode(0o600)
				if d.IsDir() {
					want = 0o700
				}
				if info.Mode().Perm() != want {
					t.Errorf("%s: %v", path, info.Mode())
				}
				return nil
			})
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		}
	}
	look() // with something in the inbox
	held.Release()
	s.waitLines(t, 2)
	look()
	s.fire(t, event("s", "SessionEnd", ""))
	s.waitGone(t, "s")
	look()
	if launch.Running(s.dirs.Session("s")) {
		t.Error("still running")
	}
}
