package e2e

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ways/metrics/events"
)

// tcpServer serves each connection in a goroutine of its own until the test is
// over, and returns its address.
func tcpServer(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return listener.Addr().String()
}

// silent reads and never answers, until the other end has gone.
func silent(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// deaf is a script that ignores SIGTERM and prints, before it goes on for longer
// than any test.
const deaf = `trap "" TERM HUP INT; echo NOISE; echo NOISE >&2; while :; do sleep 120; done`

// runHook runs a hook to its end and returns how long that took, seen from
// outside. It must exit with 0 and print nothing.
func runHook(t *testing.T, s site, stdin string) time.Duration {
	t.Helper()
	began := time.Now()
	s.fire(t, stdin)
	return time.Since(began)
}

// TestBlockingDeadlines: blocking rules of 3, 8 and 30 s at endpoints that never
// answer hold one hook event for 10 s (seed section 5).
func TestBlockingDeadlines(t *testing.T) {
	s := newSite(t, shortIdle)
	hole := tcpServer(t, silent)
	blocking := func(timeout string) []string { return []string{"mode: blocking", "timeout: " + timeout} }
	s.sensors(t, "gate",
		ruleText{"three", "[tool_call]", "http: {url: 'http://" + hole + "/'}", blocking("3s")},
		ruleText{"eight", "[tool_call]", shell(deaf), blocking("8s")},
		ruleText{"thirty", "[tool_call]", shell(deaf), blocking("30s")},
	)
	s.run(t, "sensors", "compile") // not timed: an edit costs the next hook this once
	began := time.Now()
	took := make(chan time.Duration)
	go func() { took <- runHook(t, s, call("s", "t1", 10)) }()

	s.waitLines(t, 1)
	if async := time.Since(began); async > 3*time.Second {
		t.Errorf("the async rule's record took %v while the blocking rules wait", async)
	}
	if held := <-took; held < 9900*time.Millisecond || held > 10500*time.Millisecond {
		t.Errorf("the hook took %v, want 10 s", held)
	}
	s.end(t, "s")
	killed := counted{Matched: 1, Killed: 1, Reasons: map[string]uint64{"timeout": 1}}
	s.wantStatus(t, map[string]counted{
		"gate/three":  {Matched: 1, TimedOut: 1, Reasons: map[string]uint64{"headers": 1}},
		"gate/eight":  killed,
		"gate/thirty": killed,
		"all/log":     {Matched: 2, Delivered: 2},
	})
	for rule, want := range map[string]struct {
		kind    string
		seconds float64
	}{"gate/three": {events.Timeout, 3}, "gate/eight": {events.Kill, 8}, "gate/thirty": {events.Kill, 10}} {
		list := s.eventLog(t, want.kind, rule)
		if len(list) != 1 {
			t.Errorf("%s: %s events %v, want one", rule, want.kind, list)
			continue
		}
		ms, err := strconv.ParseFloat(list[0].Duration, 64)
		if err != nil || math.Abs(ms/1000-want.seconds) > 0.4 {
			t.Errorf("%s ended after %s ms, want %v s", rule, list[0].Duration, want.seconds)
		}
	}
}

// TestBlockingSharesOneDeadline: the records of one event do not add up their
// waits.
func TestBlockingSharesOneDeadline(t *testing.T) {
	s := bareSite(t, shortIdle)
	s.sensors(t, "gate", ruleText{"log", "[subagent, assistant_response]", shell(deaf), []string{"mode: blocking", "timeout: 1s"}})
	s.run(t, "sensors", "compile")
	took := runHook(t, s, event("s", "SubagentStop", `,"agent_id":"a1","agent_type":"general-purpose","last_assistant_message":"done"`))
	if took < 990*time.Millisecond || took > 1700*time.Millisecond {
		t.Errorf("the hook took %v, want 1 s for two records of 1 s each", took)
	}
	s.end(t, "s")
	s.wantStatus(t, map[string]counted{"gate/log": {
		Matched: 2, Killed: 1, TimedOut: 1, Reasons: map[string]uint64{"timeout": 1, "start": 1},
	}})
}

// TestBlockingIsQuickWhenItCan: a blocking rule holds the hook as long as its
// consumer takes, not as long as its timeout allows.
func TestBlockingIsQuickWhenItCan(t *testing.T) {
	s := bareSite(t, shortIdle)
	got := filepath.Join(s.home, "got")
	s.sensors(t, "gate", ruleText{"log", "[tool_call]", shell("cat >>" + got + "; echo NOISE"), []string{"mode: blocking", "timeout: 10s"}})
	s.run(t, "sensors", "compile")
	if took := runHook(t, s, call("s", "t1", 10)); took > 3*time.Second {
		t.Errorf("the hook took %v", took)
	}
	// The consumer was done before the hook was.
	if list := ids(t, got); !slices.Equal(list, []string{"t1"}) {
		t.Errorf("behind the hook the consumer has %v", list)
	}
	s.end(t, "s")
	s.wantStatus(t, map[string]counted{"gate/log": {Matched: 1, Delivered: 1}})
	if list := ids(t, got); !slices.Equal(list, []string{"t1"}) {
		t.Errorf("behind the session the consumer has %v", list)
	}
}

// onceStuck is a script that never ends the first time, with a child in its group
// and one in a session of its own, and takes its record the second time.
func onceStuck(home string) string {
	return fmt.Sprintf(`cd %q
if mkdir once 2>/dev/null; then
	trap "" TERM HUP INT
	sleep 120 &
	echo $! >child
	"$TESTS" consume session-leader sleep 120 >leader
	echo $$ >self.new
	mv self.new self
	while :; do sleep 120; done
fi
cat >>got
`, home)
}

// withTests is a command's dispatch with the test binary's path in TESTS.
func withTests(t *testing.T, script string) string {
	t.Helper()
	return strings.TrimSuffix(shell(script), "}") + fmt.Sprintf(", env: {TESTS: %q}}", testBinary(t))
}

func testBinary(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// pidIn waits for a file with a process id in it.
func pidIn(t *testing.T, path string) int {
	t.Helper()
	pid := 0
	eventually(t, exitLimit, func() bool {
		raw, err := os.ReadFile(path)
		if err == nil {
			pid, err = strconv.Atoi(string(bytes.TrimSpace(raw)))
		}
		return err == nil
	}, func() string { return path + " holds no process id" })
	return pid
}

// alive reports whether a process runs: one that is dead and not reaped does not.
func alive(t *testing.T, pid int) bool {
	t.Helper()
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && len(bytes.TrimSpace(out)) > 0 && !bytes.HasPrefix(bytes.TrimSpace(out), []byte("Z"))
}

// waitDead waits until a process no longer runs.
func waitDead(t *testing.T, pid int, what string) {
	t.Helper()
	eventually(t, 10*time.Second, func() bool { return !alive(t, pid) },
		func() string { return fmt.Sprintf("%s, process %d, still runs", what, pid) })
}

// TestHookTakenBack: a client that kills a hook in its wait loses nothing. The
// dispatcher takes the record over, and what the hook had started is gone.
func TestHookTakenBack(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			s := bareSite(t, shortIdle)
			s.sensors(t, "gate", ruleText{"log", "[tool_call]", withTests(t, onceStuck(s.home)), []string{"mode: blocking", "timeout: 10s"}})
			cmd := s.command(t, call("s", "t1", 10))
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			self := pidIn(t, filepath.Join(s.home, "self"))
			child, leader := pidIn(t, filepath.Join(s.home, "child")), pidIn(t, filepath.Join(s.home, "leader"))
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			_ = cmd.Wait()
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("the hook took %v to end", took)
			}
			if out.Len() > 0 {
				t.Errorf("the hook said %q", out.Bytes())
			}
			if diesWithParent() || sig != syscall.SIGKILL {
				waitDead(t, self, "the consumer")
				waitDead(t, child, "its child")
			}
			if diesWithParent() {
				waitDead(t, leader, "its child in another session")
			}
			s.end(t, "s")
			if list := ids(t, filepath.Join(s.home, "got")); !slices.Equal(list, []string{"t1"}) {
				t.Errorf("the consumer has %v; %s", list, s.story())
			}
			s.wantStatus(t, map[string]counted{"gate/log": {Matched: 1, Delivered: 1}})
		})
	}
}

// TestHooksBlockAtOnce: the waits of hooks that run at once do not add up, and
// no number is given twice.
func TestHooksBlockAtOnce(t *testing.T) {
	s := bareSite(t, shortIdle)
	got := filepath.Join(s.home, "got")
	s.sensors(t, "gate", ruleText{"log", "[tool_call]", shell("sleep 1; cat >>" + got), []string{"mode: blocking", "timeout: 10s"}})
	s.run(t, "sensors", "compile")
	const hooks = 6
	began := time.Now()
	atOnce(hooks, func(i int) { s.fire(t, call("s", fmt.Sprint("t", i), 10)) })
	if took := time.Since(began); took < time.Second || took > 4*time.Second {
		t.Errorf("%d hooks of 1 s each took %v", hooks, took)
	}
	s.fire(t, call("s", "last", 10))
	s.end(t, "s")
	var seqs, ruleSeqs []int
	for _, r := range lines(t, got) {
		seqs, ruleSeqs = append(seqs, r.Seq), append(ruleSeqs, r.RuleSeq)
	}
	slices.Sort(seqs)
	slices.Sort(ruleSeqs)
	if want := []int{1, 2, 3, 4, 5, 6, 7}; !slices.Equal(seqs, want) || !slices.Equal(ruleSeqs, want) {
		t.Errorf("seq %v and rule_seq %v, want 1 to 7 each", seqs, ruleSeqs)
	}
	s.wantStatus(t, map[string]counted{"gate/log": {Matched: 7, Delivered: 7}})
}

// TestBlockingAtLeastOnce: what a blocking rule that promises delivery did not
// get rid of, the dispatcher does.
func TestBlockingAtLeastOnce(t *testing.T) {
	s := bareSite(t, shortIdle)
	script := fmt.Sprintf(`cd %q; echo "$WAYS_DELIVERY_ID" >>tries; mkdir once 2>/dev/null && exit 1; cat >>got`, s.home)
	s.sensors(t, "gate", ruleText{"log", "[tool_call]", shell(script), []string{"mode: blocking", "delivery: at_least_once"}})
	s.fire(t, call("s", "t1", 10))
	s.end(t, "s")
	list := lines(t, filepath.Join(s.home, "got"))
	if len(list) != 1 || list[0].Data.ID != "t1" || list[0].RuleSeq != 1 {
		t.Errorf("the consumer has %+v; %s", list, s.story())
	}
	tries, err := os.ReadFile(filepath.Join(s.home, "tries"))
	if err != nil || string(tries) != "s:gate/log:1\ns:gate/log:1\n" {
		t.Errorf("tries %q, %v; want two with one id", tries, err)
	}
	s.wantStatus(t, map[string]counted{"gate/log": {Matched: 1, Delivered: 1, Retried: 1, Reasons: map[string]uint64{"exit_1": 1}}})
}
