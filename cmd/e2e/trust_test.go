package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// operate runs a verb of an installation, and returns what it said on both streams.
func (s site) operate(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.ways, args...)
	cmd.Env = append([]string(nil), s.env...)
	cmd.Dir = s.home
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// must is operate for a verb that has to succeed.
func (s site) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.operate(t, args...)
	if err != nil {
		t.Fatalf("ways %v: %v\n%s", args, err, out)
	}
	return out
}

// projectSensor writes a sensor file of the project, which is the home directory.
func (s site) projectSensor(t *testing.T, dispatch string) string {
	t.Helper()
	path := filepath.Join(s.home, ".claude", "ways-sensors", "theirs.yaml")
	writeFile(t, path, []byte("spec: 1\nkind: ways\nname: theirs\nrules:\n  - name: log\n    sections: [tool_call]\n    delivery: at_least_once\n    dispatch:\n      "+dispatch+"\n"))
	return path
}

// TestUntrustedIsRefusedWithTheCommand: an untrusted file is named with what
// would trust it; that command works, and a change afterwards is in force and
// shows until it is acknowledged.
func TestUntrustedIsRefusedWithTheCommand(t *testing.T) {
	s := bareSite(t, shortIdle)
	log := filepath.Join(s.home, "audit", "theirs.jsonl")
	path := s.projectSensor(t, "file: {path: "+log+"}")
	var command string
	for _, verb := range [][]string{{"sensors", "lint"}, {"sensors", "list"}, {"status"}} {
		out := s.must(t, verb...)
		if !strings.Contains(out, path) || !strings.Contains(out, "not trusted") && verb[1] != "list" {
			t.Errorf("%v: %s", verb, out)
		}
		if _, after, ok := strings.Cut(out, "ways sensors trust"); ok {
			command = strings.FieldsFunc(after, func(r rune) bool { return r == ';' || r == '\n' })[0]
		} else {
			t.Errorf("%v names no command: %s", verb, out)
		}
	}
	out := s.must(t, append([]string{"sensors", "trust"}, strings.Fields(command)...)...)
	if !strings.Contains(out, "theirs/log is on; sends to "+log) {
		t.Error(out)
	}
	s.fire(t, call("s", "t1", 10))
	eventually(t, exitLimit, func() bool { return len(lines(t, log)) == 1 }, s.story)
	changed := func() string {
		return s.must(t, "sensors", "lint") + s.must(t, "status")
	}
	if out := changed(); strings.Contains(out, "has changed") {
		t.Error(out)
	}
	s.projectSensor(t, "file: {path: "+log+".new}")
	s.fire(t, call("s", "t2", 10))
	eventually(t, exitLimit, func() bool { return len(lines(t, log+".new")) == 1 }, s.story)
	if out := changed(); strings.Count(out, "has changed since") != 2 || !strings.Contains(out, "ways sensors trust --project "+s.home) {
		t.Error(out)
	}
	s.must(t, "sensors", "trust")
	if out := changed(); strings.Contains(out, "has changed") {
		t.Error(out)
	}
	s.projectSensor(t, "file: {path: "+log+"}")
	s.must(t, "sensors", "trust", "--remove")
	if out, err := s.operate(t, "sensors", "list"); err != nil || !strings.Contains(out, "not trusted, not read: "+path) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestTrustEndsInARunningDispatcher: a project is taken off the list while its
// rule's consumer is down and records wait; the next event is one that no rule
// wants. The rule is off in the dispatcher, what waited is kept, and the
// consumer, up again, gets nothing.
func TestTrustEndsInARunningDispatcher(t *testing.T) {
	for _, row := range []struct {
		name, next string
		wanted     bool // by another rule
	}{
		{"an event that nobody wants", event("s", "UserPromptSubmit", `,"prompt":"p","prompt_id":"p1"`), false},
		{"an event of another rule", call("s", "t9", 10), true},
	} {
		t.Run(row.name, func(t *testing.T) {
			var up atomic.Bool
			var tries, took atomic.Int64
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				tries.Add(1)
				if !up.Load() {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				took.Add(1)
			}))
			defer srv.Close()
			s := bareSite(t, "WAYS_DISPATCHER_IDLE=20s")
			s.projectSensor(t, "http: {url: "+srv.URL+"}")
			if row.wanted {
				s.sensor(t, "all", "[tool_call]", "file: {path: "+s.log+", format: jsonl}")
			}
			s.must(t, "sensors", "trust")
			for i := range 5 {
				s.fire(t, call("s", fmt.Sprint("t", i), 10))
			}
			eventually(t, exitLimit, func() bool { return tries.Load() > 0 }, s.story)
			s.must(t, "sensors", "trust", "--remove")
			up.Store(true)
			before := took.Load()
			s.fire(t, row.next)
			gone := func() bool {
				raw, err := os.ReadFile(filepath.Join(s.dirs.State, "events.jsonl"))
				return err == nil && strings.Contains(string(raw), "rule_off")
			}
			eventually(t, exitLimit, gone, s.story)
			if len(s.dispatchers(t, "s")) != 1 {
				t.Error("the dispatcher did not stay")
			}
			// Its next try would have been a second away, or two.
			after(t, 2500*time.Millisecond)
			if n := took.Load() - before; n != 0 {
				t.Errorf("%d records were sent after the trust had ended", n)
			}
		})
	}
}

// TestOffMachineIsSaidFirst: whatever verb shows rules begins with those that send
// unmasked content off the machine, and names the destination of each rule that
// may send something off it.
func TestOffMachineIsSaidFirst(t *testing.T) {
	s := bareSite(t)
	s.sensor(t, "a", "[tool_call]", "http: {url: \"https://collector.example/in?key=x\"}")
	s.sensor(t, "b", "[tool_call]", "command: {argv: [/usr/bin/logger]}")
	s.sensor(t, "c", "[tool_call]", "http: {url: \"http://127.0.0.1:9/\"}")
	s.sensor(t, "z", "[tool_call]", "http: {url: \"https://far.example/all\"}", "redact: none")
	const loud = "SENDS UNMASKED SESSION CONTENT, SECRETS INCLUDED, OFF THIS MACHINE: TO https://far.example/all\n"
	for _, verb := range [][]string{{"status"}, {"sensors", "lint"}, {"sensors", "list"}, {"sensors", "show", "z"}} {
		out := s.must(t, verb...)
		first, rest, _ := strings.Cut(out, "\n")
		if !strings.HasSuffix(first+"\n", loud) || !strings.Contains(first, ": WARNING: z/log: ") || strings.Contains(rest, loud) || strings.Contains(out, "key=x") {
			t.Errorf("%v begins with %s", verb, out)
		}
		if verb[1%len(verb)] == "show" {
			continue
		}
		for _, to := range []string{"https://collector.example/in", "/usr/bin/logger", "http://127.0.0.1:9/", "https://far.example/all"} {
			if !strings.Contains(rest, to) {
				t.Errorf("%v does not name %s:\n%s", verb, to, out)
			}
		}
	}
}
