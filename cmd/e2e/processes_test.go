package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ways/metrics/counters"
)

// one is the dispatcher of a session, which must be the only one. A command that
// it starts looks like a second one, until it is another program.
func (s site) one(t *testing.T, session string) int {
	t.Helper()
	var list []dispatcher
	eventually(t, exitLimit, func() bool { list = s.dispatchers(t, session); return len(list) == 1 },
		func() string { return fmt.Sprintf("dispatchers: %v; %s", list, s.story()) })
	return list[0].pid
}

// TestDispatcherIsDetached: it has a session of its own, starts from /, keeps
// nothing of the hook's but the lock, and none of the client's control variables;
// a consumer gets none of the dispatcher's.
func TestDispatcherIsDetached(t *testing.T) {
	s := newSite(t, "WAYS_DISPATCHER_IDLE=30s")
	env := filepath.Join(s.home, "consumer-env")
	s.sensor(t, "env", "[tool_call]", "command: {argv: [/bin/sh, -c, 'env >"+env+".new; ls -l /dev/fd/ >"+env+".fds; mv "+env+".new "+env+"'], input: stdin}")
	s.fire(t, call("s", "t", 10), "CLAUDECODE=1", "CLAUDE_CODE_ENTRYPOINT=cli", "CLAUDE_ENV_FILE=/e", "ANTHROPIC_API_KEY=topsecret", "KEPT=yes")
	s.waitLines(t, 1)
	pid := s.one(t, "s")
	out, err := exec.CommandContext(t.Context(), "ps", "-o", "pid=,pgid=,sess=,ppid=", "-p", fmt.Sprint(pid)).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got [4]int
	if _, err := fmt.Sscan(string(out), &got[0], &got[1], &got[2], &got[3]); err != nil {
		t.Fatal(err)
	}
	if got[1] != pid || got[3] == os.Getpid() {
		t.Errorf("pid, group, session, parent: %v", got)
	}
	inspect(t, s, pid)

	// What is told to the terminal's group, or to the hook's, is not told to it.
	s.fire(t, call("s", "u", 10))
	s.waitLines(t, 2)
	if s.one(t, "s") != pid {
		t.Error("another dispatcher")
	}
	eventually(t, exitLimit, func() bool { _, err := os.Stat(env); return err == nil }, s.story)
	raw, err := os.ReadFile(env)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"CLAUDE", "topsecret", "KEPT"} {
		if strings.Contains(string(raw), bad) {
			t.Errorf("a consumer is given %s:\n%s", bad, raw)
		}
	}
	if !strings.Contains(string(raw), "WAYS_CONSUMER=") {
		t.Errorf("a consumer is not told that it is one:\n%s", raw)
	}
	fds, err := os.ReadFile(env + ".fds")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(fds), s.dirs.State) {
		t.Errorf("a consumer has the dispatcher's files open:\n%s", fds)
	}
}

// TestDispatcherStops: told to stop, it finishes what is in flight, saves where
// it is, and leaves. What it had not begun is the next one's.
func TestDispatcherStops(t *testing.T) {
	s := bareSite(t, "WAYS_DISPATCHER_IDLE=30s")
	// It says what it begins and what it finished.
	slow := filepath.Join(s.home, "slow")
	s.sensor(t, "slow", "[tool_call]", "command: {argv: [/bin/sh, -c, 'echo begin >>"+slow+"; sleep 0.7; echo end >>"+slow+"'], input: stdin}")
	for i := range 4 {
		s.fire(t, call("s", fmt.Sprint("t", i), 10))
	}
	read := func() string { raw, _ := os.ReadFile(slow); return strings.ReplaceAll(string(raw), "\n", " ") }
	eventually(t, exitLimit, func() bool { return read() != "" }, s.story)
	if err := syscall.Kill(s.one(t, "s"), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.waitGone(t, "s")
	if got := read(); got != "begin end " {
		t.Errorf("once it is gone: %q", got)
	}
	s.fire(t, call("s", "t4", 10))
	eventually(t, exitLimit, func() bool { return strings.Count(read(), "end") >= 5 }, s.story)
	if got, want := read(), strings.Repeat("begin end ", 5); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// Two dispatchers' counts, the first one's perhaps in the totals already.
	var got counters.Rule
	eventually(t, exitLimit, func() bool {
		sum, err := counters.NewStore(s.dirs.State).Sum()
		if r := sum.Rules["slow/log"]; err == nil && r != nil {
			got = *r
		}
		return got.Delivered == 5
	}, func() string { return fmt.Sprintf("counted %+v; %s", got, s.story()) })
	if got.Matched != 5 || got.Failed+got.Killed+got.TimedOut+got.Dropped != 0 {
		t.Errorf("counted %+v", got)
	}
}

// TestDispatcherLeaves: after the idle time with nothing to do; at the session's
// end at once, also where the hook of the session's end is what started it. It
// leaves no record behind in the spool.
func TestDispatcherLeaves(t *testing.T) {
	for _, row := range []struct {
		name, idle string
		fire       func(t *testing.T, s site)
	}{
		{"idle", "300ms", func(t *testing.T, s site) { s.fire(t, call("s", "t", 10)) }},
		{"session end", "10m", func(t *testing.T, s site) {
			s.fire(t, call("s", "t", 10))
			s.waitLines(t, 1)
			s.fire(t, event("s", "SessionEnd", ""))
		}},
		{"session end alone", "10m", func(t *testing.T, s site) { s.fire(t, event("s", "SessionEnd", "")) }},
		{"session end in a hurry", "10m", func(t *testing.T, s site) {
			s.fire(t, call("s", "t", 10))
			s.fire(t, event("s", "SessionEnd", ""))
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newSite(t, "WAYS_DISPATCHER_IDLE="+row.idle)
			row.fire(t, s)
			s.waitGone(t, "s")
			if len(lines(t, s.log)) == 0 {
				t.Error("nothing was delivered")
			}
			left, err := filepath.Glob(filepath.Join(s.dirs.Session("s"), "*.seg"))
			if err != nil || len(left) != 0 {
				t.Errorf("left in the spool: %v, %v", left, err)
			}
			// The session goes on: numbers too.
			n := len(lines(t, s.log))
			s.fire(t, call("s", "again", 10))
			list := s.waitLines(t, n+1)
			numbered(t, list, "s", n+1)
		})
	}
}

// TestEndedSessionWithoutARecord: no rule selects the session's end, so that only
// the wake-up tells of it.
func TestEndedSessionWithoutARecord(t *testing.T) {
	s := bareSite(t, "WAYS_DISPATCHER_IDLE=10m")
	s.sensor(t, "all", "[tool_call]", "file: {path: "+s.log+", format: jsonl}")
	s.fire(t, call("s", "t", 10))
	s.waitLines(t, 1)
	s.one(t, "s")
	s.fire(t, event("s", "SessionEnd", ""))
	s.waitGone(t, "s")
}

// TestSlowConsumerHoldsNobody: one rule's consumer hangs; another rule has its
// records at once, and hooks are as quick as ever.
func TestSlowConsumerHoldsNobody(t *testing.T) {
	s := newSite(t, "WAYS_DISPATCHER_IDLE=30s")
	s.sensor(t, "hang", "[tool_call]", "command: {argv: [/bin/sh, -c, 'sleep 600'], input: stdin}", "timeout: 600s")
	const n = 100
	began := time.Now()
	var took []time.Duration
	for i := range n {
		from := time.Now()
		s.fire(t, call("s", fmt.Sprint("t", i), 100))
		took = append(took, time.Since(from))
	}
	numbered(t, s.waitLines(t, n), "s", n)
	slices.Sort(took)
	t.Logf("%d records in %v; hooks: median %v, slowest %v", n, time.Since(began), took[n/2], took[n-1])
	if took[n/2] > 200*time.Millisecond {
		t.Errorf("the median hook took %v", took[n/2])
	}
}
