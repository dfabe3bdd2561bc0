package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// gate is a server that takes requests and answers none before it is opened. It
// keeps the sequence numbers that it has answered.
type gate struct {
	*httptest.Server
	opened chan struct{}
	mu     sync.Mutex
	seqs   []int
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{opened: make(chan struct{})}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		select {
		case <-g.opened:
		case <-r.Context().Done():
			return
		case <-t.Context().Done():
			return
		}
		var rec record
		_ = json.Unmarshal(body, &rec)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.seqs = append(g.seqs, rec.Seq)
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(g.Close)
	return g
}

func (g *gate) answered() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.seqs)
}

// latencies fires n hooks, one after another, and returns how long each record
// took from the hook's end to its line in the log, in order of length.
func (s site) latencies(t *testing.T, prefix string, n int) []time.Duration {
	t.Helper()
	size := func() int64 {
		info, err := os.Stat(s.log)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	tick := time.NewTicker(200 * time.Microsecond)
	defer tick.Stop()
	var list []time.Duration
	for i := range n {
		before := size()
		s.fire(t, call("s", fmt.Sprint(prefix, i), 100))
		began := time.Now()
		for size() == before {
			<-tick.C
			if time.Since(began) > exitLimit {
				t.Fatalf("no line for %s%d; %s", prefix, i, s.story())
			}
		}
		list = append(list, time.Since(began))
	}
	slices.Sort(list)
	return list
}

// burst fires n hooks and returns how long it took until all their records were
// in the log.
func (s site) burst(t *testing.T, prefix string, n int) time.Duration {
	t.Helper()
	began := time.Now()
	want := map[string]bool{}
	for i := range n {
		id := fmt.Sprint(prefix, i)
		want[id] = true
		s.fire(t, call("s", id, 100))
	}
	s.waitCalls(t, want)
	return time.Since(began)
}

// TestDeadConsumerHoldsNobody: beside a rule whose consumer takes connections and
// never answers, a rule at a file is as quick as without it and loses nothing
// (hard case BR-54). The first rule loses its oldest waiting records past its
// cap, counted, and a rule that selects gaps is told of them.
func TestDeadConsumerHoldsNobody(t *testing.T) {
	s := newSite(t, "WAYS_DISPATCHER_IDLE=30s")
	const some, many = 20, 60
	const limit, window = 100, 65 // in memory: 64 in the queue, one on its way
	s.fire(t, call("s", "first", 10))
	s.waitLines(t, 1)
	alone, aloneBurst := s.latencies(t, "a", some), s.burst(t, "b", many)

	dead := newGate(t)
	s.sensors(t, "dead",
		ruleText{"http", "[tool_call]", "http: {url: '" + dead.URL + "/'}", []string{"timeout: 10m", fmt.Sprint("queue: ", limit)}},
		ruleText{"gaps", "[gap]", s.to("gaps"), nil},
	)
	s.run(t, "sensors", "compile")
	beside, besideBurst := s.latencies(t, "c", some), s.burst(t, "d", many)
	t.Logf("hook's end to line, median: %v alone, %v beside a dead consumer; %d records: %v and %v",
		alone[some/2], beside[some/2], many, aloneBurst, besideBurst)
	if most := 5*alone[some/2] + 50*time.Millisecond; beside[some/2] > most {
		t.Errorf("a line takes %v beside a dead consumer, %v without", beside[some/2], alone[some/2])
	}
	if most := 5*aloneBurst + time.Second; besideBurst > most {
		t.Errorf("%d records take %v beside a dead consumer, %v without", many, besideBurst, aloneBurst)
	}
	s.burst(t, "e", many)

	const total = some + 2*many
	got := counted{}
	eventually(t, exitLimit, func() bool { got = s.status(t)["dead/http"]; return got.Dropped >= total-limit && got.Spooled == limit },
		func() string { return fmt.Sprintf("%+v", got) })
	close(dead.opened)
	eventually(t, exitLimit, func() bool { return len(dead.answered()) >= limit },
		func() string { return fmt.Sprintf("%d answered", len(dead.answered())) })
	s.end(t, "s")

	s.wantStatus(t, map[string]counted{
		"all/log":   {Matched: 1 + some + many + total + 1, Delivered: 1 + some + many + total + 1},
		"dead/http": {Matched: total, Delivered: limit, Dropped: total - limit, Reasons: map[string]uint64{"queue_full": total - limit}},
	})
	// Which ones: what was in memory, then the newest. The log says what numbers
	// those have, since gap records have numbers too.
	var calls []int
	for _, r := range lines(t, s.log) {
		if strings.Trim(r.Data.ID[:min(1, len(r.Data.ID))], "cde") == "" && r.Section == "tool_call" {
			calls = append(calls, r.Seq)
		}
	}
	want := append(slices.Clone(calls[:window]), calls[len(calls)-(limit-window):]...)
	if answered := dead.answered(); !slices.Equal(answered, want) {
		t.Errorf("the dead consumer came to life and was handed\n%v,\nwant\n%v", answered, want)
	}
	var told struct {
		Data struct {
			Reason string `json:"reason"`
			Rule   string `json:"rule"`
			Count  int    `json:"count"`
		} `json:"data"`
	}
	sum := 0
	for _, line := range logLines(t, filepath.Join(s.home, "gaps")) {
		if err := json.Unmarshal(line, &told); err != nil || told.Data.Reason != "queue_full" || told.Data.Rule != "dead/http" {
			t.Errorf("told %s, %v", line, err)
		}
		sum += told.Data.Count
	}
	if sum != total-limit {
		t.Errorf("gap records tell of %d records, want %d", sum, total-limit)
	}
}

// TestFiveHundredKilledCommands: no zombie, no child, no descriptor is left
// (hard case BR-28).
func TestFiveHundredKilledCommands(t *testing.T) {
	s := bareSite(t, "WAYS_DISPATCHER_IDLE=5m")
	const side, events = 10, 51
	var rules []ruleText
	want := map[string]counted{}
	for i := range side {
		script := "exec sleep 120"
		if i%2 == 1 {
			script = "sleep 120 & sleep 120"
		}
		name := fmt.Sprint("r", i)
		// Long enough for the shell to start, which would be another outcome.
		rules = append(rules, ruleText{name, "[tool_call]", shell(script), []string{"timeout: 250ms"}})
		want["kill/"+name] = counted{Matched: events, Killed: events, Reasons: map[string]uint64{"timeout": events}}
	}
	s.sensors(t, "kill", rules...)
	killed := func(n uint64) {
		t.Helper()
		var sum, waiting uint64
		eventually(t, 3*exitLimit, func() bool {
			sum, waiting = 0, 0
			for _, c := range s.status(t) {
				sum += c.Killed
				waiting += c.Spooled
			}
			return sum == n && waiting == 0
		}, func() string { return fmt.Sprintf("%d killed, want %d, and %d wait; %s", sum, n, waiting, s.story()) })
	}
	s.fire(t, call("s", "first", 10))
	killed(side)
	running := s.dispatchers(t, "s")
	if len(running) != 1 {
		t.Fatalf("dispatchers: %v", running)
	}
	before := descriptors(t, running[0].pid)
	for i := range events - 1 {
		s.fire(t, call("s", fmt.Sprint("t", i), 10))
	}
	killed(side * events)
	s.wantStatus(t, want)
	if after := descriptors(t, running[0].pid); !slices.Equal(before, after) {
		t.Errorf("descriptors before\n%v\nand after\n%v", before, after)
	}
	if left := s.leftBehind(t, running[0].pid); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestCommandsOfAKilledDispatcher: a command does not outlive its dispatcher; what
// it had started itself does not outlive the next one's start. Its record is
// handed out again.
func TestCommandsOfAKilledDispatcher(t *testing.T) {
	s := bareSite(t, "WAYS_DISPATCHER_IDLE=1s")
	s.sensors(t, "stuck", ruleText{"log", "[tool_call]", withTests(t, onceStuck(s.home)), []string{"timeout: 1m"}})
	s.fire(t, call("s", "t1", 10))
	self := pidIn(t, filepath.Join(s.home, "self"))
	child, leader := pidIn(t, filepath.Join(s.home, "child")), pidIn(t, filepath.Join(s.home, "leader"))
	running := s.dispatchers(t, "s")
	if len(running) != 1 {
		t.Fatalf("dispatchers: %v", running)
	}
	if err := syscall.Kill(running[0].pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if diesWithParent() {
		waitDead(t, self, "the command")
	} else {
		_ = syscall.Kill(self, syscall.SIGKILL)
	}
	s.waitGone(t, "s")
	s.fire(t, call("s", "t2", 10))
	if diesWithParent() {
		waitDead(t, child, "its child")
		waitDead(t, leader, "its child in another session")
	}
	s.end(t, "s")
	if got := ids(t, filepath.Join(s.home, "got")); !slices.Equal(got, []string{"t1", "t2"}) {
		t.Errorf("the consumer has %v; %s", got, s.story())
	}
	s.wantStatus(t, map[string]counted{"stuck/log": {Matched: 2, Delivered: 2}})
}

// TestConsumerThatRunsTheClient: hooks fired from inside a consumer do nothing, so
// that a consumer which runs the client starts no loop (hard case BR-33).
func TestConsumerThatRunsTheClient(t *testing.T) {
	for _, mode := range []string{"async", "blocking"} {
		t.Run(mode, func(t *testing.T) {
			s := newSite(t, shortIdle)
			inner := filepath.Join(s.home, "payload")
			writeFile(t, inner, []byte(call("inner", "loop", 10)))
			claude := filepath.Join(s.home, "claude")
			writeFile(t, claude, []byte(fmt.Sprintf("#!/bin/sh\nexport CLAUDE_PROJECT_DIR=%q\n%q hook sensors <%q && echo ran >>%q\n",
				s.home, s.ways, inner, filepath.Join(s.home, "ran"))))
			if err := os.Chmod(claude, 0o700); err != nil {
				t.Fatal(err)
			}
			s.sensors(t, "client", ruleText{"log", "[tool_call]", "command: {argv: [" + claude + "]}", []string{"mode: " + mode}})
			s.fire(t, call("s", "t1", 10))
			s.end(t, "s")
			if ran, err := os.ReadFile(filepath.Join(s.home, "ran")); err != nil || string(ran) != "ran\n" {
				t.Errorf("the client ran: %q, %v", ran, err)
			}
			if got := ids(t, s.log); !slices.Equal(got, []string{"t1", ""}) { // the session's end has no id
				t.Errorf("the log has %v", got)
			}
			if entries, err := os.ReadDir(s.dirs.Sessions()); err != nil || len(entries) != 1 {
				t.Errorf("sessions: %v, %v", entries, err)
			}
			s.wantStatus(t, map[string]counted{"client/log": {Matched: 1, Delivered: 1}})
		})
	}
}
