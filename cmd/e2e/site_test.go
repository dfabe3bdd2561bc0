package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ways/hooks/dirs"
	"ways/hooks/tally"
)

// site is an installation with one rule that writes every section to one log.
type site struct {
	install
	home, log string
	dirs      dirs.Dirs
}

// allSections is the everything sensor's selection.
const allSections = "[user_prompt, queued_message, assistant_response, tool_call, tool_result, subagent, compaction, session_start, session_end, way_event]"

// newSite makes a site. env is added to the environment of its commands.
func newSite(t *testing.T, env ...string) site {
	t.Helper()
	s := bareSite(t, env...)
	s.sensor(t, "all", allSections, "file: {path: "+s.log+", format: jsonl}")
	return s
}

// bareSite is a site without a sensor.
func bareSite(t *testing.T, env ...string) site {
	t.Helper()
	home := t.TempDir()
	in := newInstall(t, home, append([]string{"HOME=" + home, "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}, env...))
	s := site{install: in, home: home, log: filepath.Join(home, "audit", "all.jsonl")}
	d, err := dirs.From(func(name string) string {
		if name == "HOME" {
			return home
		}
		return ""
	})
	if err != nil {
		t.Fatal(err)
	}
	s.dirs = d
	t.Cleanup(func() {
		s.killAll(t)
		s.checkEvents(t)
	})
	return s
}

// sensor writes a user's sensor of one rule.
func (s site) sensor(t *testing.T, name, sections, dispatch string, more ...string) {
	t.Helper()
	text := fmt.Sprintf("spec: 1\nkind: ways\nname: %s\ndescription: A test.\nenabled: true\nrules:\n  - name: log\n    sections: %s\n    dispatch:\n      %s\n",
		name, sections, dispatch)
	for _, m := range more {
		text += "    " + m + "\n"
	}
	writeFile(t, filepath.Join(s.config, "sensors", name+".yaml"), []byte(text))
}

// waitGone waits until no dispatcher of the session is left, and none that was
// killed still holds its lock: a dying process has no command line any more, but
// hooks take it for alive.
func (s site) waitGone(t *testing.T, session string) {
	t.Helper()
	s.install.waitGone(t, session)
	f, err := os.Open(filepath.Join(s.dirs.Session(session), "dispatcher.lock"))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	eventually(t, exitLimit, func() bool { return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil },
		func() string { return "a process that is no more holds the lock; " + s.story() })
}

// killAll ends every process of this installation that a test left.
func (s site) killAll(t *testing.T) {
	t.Helper()
	out, err := exec.Command("ps", "-axww", "-o", "pid=,command=").Output()
	if err != nil {
		t.Errorf("listing processes: %v", err)
		return
	}
	for line := range strings.Lines(string(out)) {
		var pid int
		if strings.Contains(line, s.home) && !strings.Contains(line, "ps -axww") {
			if _, err := fmt.Sscan(line, &pid); err == nil && pid != os.Getpid() {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// command is the hook's, not started.
func (s site) command(t *testing.T, stdin string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.ways, "hook", "sensors")
	cmd.Env = append(append(append([]string(nil), s.env...), "CLAUDE_PROJECT_DIR="+s.home), env...)
	cmd.Dir = s.home
	cmd.Stdin = strings.NewReader(stdin)
	return cmd
}

// fire runs the hook, which must exit with 0 and print nothing.
func (s site) fire(t *testing.T, stdin string, env ...string) {
	t.Helper()
	quiet(t, s.command(t, stdin, env...))
}

func quiet(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil || len(out) != 0 {
		t.Errorf("the hook said %.300q and ended with %v", out, err)
	}
}

// call is a tool call's payload of about that size.
func call(session, id string, size int) string {
	return fmt.Sprintf(`{"session_id":%q,"hook_event_name":"PreToolUse","cwd":"/","tool_name":"Bash","tool_use_id":%q,"tool_input":{"command":"%s"}}`,
		session, id, strings.Repeat("word ", size/5))
}

// event is any other payload.
func event(session, name, fields string) string {
	return fmt.Sprintf(`{"session_id":%q,"hook_event_name":%q,"cwd":"/"%s}`, session, name, fields)
}

// lines reads a log, whose every line must be a whole record.
func lines(t *testing.T, log string) []record {
	t.Helper()
	raw, err := os.ReadFile(log)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var list []record
	for line := range bytes.Lines(raw) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // being written
		}
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("line %d of %s: %v: %.200q", len(list)+1, log, err, line)
		}
		list = append(list, r)
	}
	return list
}

// waitLines waits until the log holds that many records.
func (s site) waitLines(t *testing.T, n int) []record {
	t.Helper()
	var list []record
	eventually(t, exitLimit, func() bool { list = lines(t, s.log); return len(list) >= n },
		func() string { return fmt.Sprintf("%d records of %d; %s", len(list), n, s.story()) })
	return list
}

// waitCalls waits until the log holds a record of each tool call.
func (s site) waitCalls(t *testing.T, ids map[string]bool) {
	t.Helper()
	missing := []string{}
	eventually(t, exitLimit, func() bool {
		seen := map[string]bool{}
		for _, r := range lines(t, s.log) {
			seen[r.Data.ID] = true
		}
		missing = missing[:0]
		for id := range ids {
			if !seen[id] {
				missing = append(missing, id)
			}
		}
		return len(missing) == 0
	}, func() string { return fmt.Sprintf("missing %v; %s", missing, s.story()) })
}

// story is what the site's logs say, for a test that failed.
func (s site) story() string {
	var out strings.Builder
	logs, _ := filepath.Glob(filepath.Join(s.dirs.Sessions(), "*", "dispatcher.log"))
	for _, path := range append(logs, tally.LogPath(s.dirs)) {
		raw, _ := os.ReadFile(path)
		fmt.Fprintf(&out, "\n%s:\n%s", path, raw[max(0, len(raw)-3000):])
	}
	return out.String()
}

// counts is what hooks refused.
func (s site) counts(t *testing.T) map[tally.Reason]uint64 {
	t.Helper()
	got, err := tally.Counts(s.dirs)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// atOnce runs n functions at once.
func atOnce(n int, f func(i int)) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			<-start
			f(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}

// numbered checks that a session's records are 1..n in file order, none twice.
func numbered(t *testing.T, list []record, session string, n int) {
	t.Helper()
	at := 0
	for _, r := range list {
		if r.Session != session {
			continue
		}
		at++
		if r.Seq != at || r.RuleSeq != at {
			t.Errorf("record %d of session %s has seq %d and rule_seq %d", at, session, r.Seq, r.RuleSeq)
		}
	}
	if at != n {
		t.Errorf("%d records of session %s, want %d", at, session, n)
	}
}

// after waits that long, or until the test is over.
func after(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}
