package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// owing makes a site whose rule hook/log has n records undelivered in session s,
// which has ended. Its consumer is up again; off takes the rule away, and on brings
// it back.
func owing(t *testing.T, n int, off func(t *testing.T, s site, path string)) (s site, c *scripted, on func()) {
	t.Helper()
	s, c, up := leftBehind(t, "s", n)
	path := filepath.Join(s.config, "sensors", "hook.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	up()
	off(t, s, path)
	return s, c, func() {
		if err := os.Chmod(path, 0o600); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		writeFile(t, path, text)
	}
}

// mistype makes the rule's file one that is refused.
func mistype(t *testing.T, _ site, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, []byte(strings.Replace(string(text), "delivery:", "deliverie:", 1)))
}

// TestOffRuleKeepsWhatWaits: a rule goes away, by a mistake in its file or on
// purpose, while records wait for it in a session that has ended. Nothing is sent,
// nothing is given up; drains end, and say what is left. When the rule is back, its
// consumer gets all of it, in order, and nothing that came meanwhile.
func TestOffRuleKeepsWhatWaits(t *testing.T) {
	const n = 70 // more than wait in memory
	for name, off := range map[string]func(t *testing.T, s site, path string){
		"a mistake in its file": mistype,
		"turned off":            func(t *testing.T, s site, _ string) { s.must(t, "sensors", "disable", "hook") },
		"its file is removed": func(t *testing.T, _ site, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
		"its file cannot be trusted": func(t *testing.T, _ site, path string) {
			if err := os.Chmod(path, 0o666); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c, on := owing(t, n, off)
			for range 2 {
				out, code := s.verb(t, "sensors", "drain")
				if code != 1 || !strings.Contains(out, fmt.Sprintf("s: %d records still undelivered", n)) {
					t.Errorf("drain: %d, %s", code, out)
				}
			}
			if waiting, _ := s.waiting(t, "s"); waiting != n {
				t.Errorf("%d wait, not %d", waiting, n)
			}
			if out := string(s.run(t, "status")); !strings.Contains(out, fmt.Sprintf("hook/log: it is off, and %d records wait", n)) {
				t.Error(out)
			}
			if _, err := os.Stat(s.pendingMark("s")); err != nil {
				t.Error(err)
			}
			// The session goes on for another rule, and ends.
			s.sensor(t, "all", "[tool_call]", "file: {path: "+s.log+", format: jsonl}")
			s.fire(t, call("s", "meanwhile", 10))
			s.waitLines(t, 1)
			s.finish(t, "s")
			if got := c.accepted(); len(got) != 0 {
				t.Errorf("sent while the rule was off: %v", got)
			}
			on()
			if out, code := s.verb(t, "sensors", "drain"); code != 0 || !strings.Contains(out, "s: drained") {
				t.Errorf("drain: %d, %s", code, out)
			}
			c.waitAccepted(t, s, calls(n)...)
			s.fire(t, call("s", "later", 10))
			c.waitAccepted(t, s, append(calls(n), "later")...)
			if dead, code := s.verb(t, "sensors", "dead", "list"); code != 0 || !strings.Contains(dead, "no dead letters") {
				t.Errorf("%d, %s", code, dead)
			}
		})
	}
}

// TestOffRuleInARunningDispatcher: the rule's file gets a mistake under a
// dispatcher, which another rule's event tells; mended, what waited is delivered.
func TestOffRuleInARunningDispatcher(t *testing.T) {
	up := make(chan struct{})
	c := newScripted(t, "", func(posted, int) (int, string) {
		select {
		case <-up:
			return 200, ""
		default:
			return 503, ""
		}
	})
	s := hookSite(t, c.URL, "WAYS_DISPATCHER_IDLE=20s")
	s.sensor(t, "all", "[tool_call]", "file: {path: "+s.log+", format: jsonl}")
	for i := range 3 {
		s.fire(t, call("s", fmt.Sprint("t", i), 10))
	}
	eventually(t, exitLimit, func() bool { return len(c.all()) > 0 }, s.story)
	path := filepath.Join(s.config, "sensors", "hook.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mistype(t, s, path)
	close(up)
	s.fire(t, call("s", "meanwhile", 10))
	s.waitLines(t, 4)
	eventually(t, exitLimit, func() bool {
		return strings.Contains(string(s.run(t, "status")), "hook/log: it is off, and 3 records wait")
	}, s.story)
	writeFile(t, path, text)
	s.fire(t, call("s", "later", 10))
	c.waitAccepted(t, s, "t0", "t1", "t2", "later")
	if dropped := s.must(t, "logs", "--json"); strings.Contains(dropped, "rule_stopped") {
		t.Error(dropped)
	}
}

// TestOffRuleGrowsOld: what waits for a rule that does not come back goes to the
// dead letters when it is older than spool.max_age; then
// nothing is left of it in the spool.
func TestOffRuleGrowsOld(t *testing.T) {
	c := newScripted(t, "", func(posted, int) (int, string) { return 503, "" })
	s := hookSite(t, c.URL, "WAYS_DISPATCHER_IDLE=300ms")
	backlog(t, s, "s", 3, 10, time.Now().Add(-3*time.Hour))
	if out, code := s.verb(t, "sensors", "drain"); code != 1 {
		t.Errorf("drain: %d, %s", code, out)
	}
	tried := len(c.all())
	if err := os.Remove(filepath.Join(s.config, "sensors", "hook.yaml")); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(s.config, "config.yaml"), []byte("spool:\n  max_age: 2h\n"))
	out, code := s.verb(t, "sensors", "drain")
	if code != 0 || !strings.Contains(out, "s: drained") {
		t.Errorf("drain: %d, %s", code, out)
	}
	if got, want := letters(t, s), []string{"s:hook/log:1 expired 1", "s:hook/log:2 expired 0", "s:hook/log:3 expired 0"}; !slices.Equal(got, want) {
		t.Errorf("dead letters %v, want %v", got, want)
	}
	if _, err := os.Stat(s.pendingMark("s")); !os.IsNotExist(err) {
		t.Errorf("the mark: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(s.dirs.Session("s"), "*.seg")); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if n := len(c.all()) - tried; n != 0 {
		t.Errorf("%d were sent", n)
	}
}
