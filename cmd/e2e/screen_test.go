//go:build e2e

package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// shellIn starts a shell of a site's user in a terminal.
func shellIn(t *testing.T, s site) terminal {
	t.Helper()
	term := terminal{t, filepath.Join(t.TempDir(), "tmux")}
	cmd := exec.CommandContext(t.Context(), "tmux", "-S", term.sock, "-f", "/dev/null", "new-session", "-d", "-x", "150", "-y", "20", "--", "/bin/sh")
	cmd.Env, cmd.Dir = append(append([]string(nil), s.env...), "TERM=xterm"), s.home
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("tmux: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", term.sock, "kill-server").Run() })
	return term
}

// On a terminal, --watch takes the other screen, keeps to its size, and gives the
// first one back as it was; logs are readable, and JSON when asked for.
func TestOnATerminal(t *testing.T) {
	s := newSite(t, "WAYS_DISPATCHER_IDLE=200ms")
	for range 18 { // more rules than the screen has lines
		s.sensor(t, "r"+strings.Repeat("x", 1+len(s.rules(t))), "[tool_call]", s.to("x.jsonl"))
	}
	s.fire(t, call("one", "toolu_1", 50))
	s.waitGone(t, "one")
	term := shellIn(t, s)
	term.enter("echo before")
	term.enter(s.ways + " status --watch")
	term.see("NOT WIRED on 10 of 10 events")
	if screen := term.screen(); strings.Contains(screen, "before") || !strings.HasPrefix(screen, "NOT WIRED") || !strings.HasSuffix(strings.TrimSpace(screen), "\n...") {
		t.Errorf("the screen shows\n%s", screen)
	}
	term.keys("C-c")
	term.enter("echo code=$?")
	term.see("code=0")
	if screen := term.screen(); !strings.Contains(screen, "before") || strings.Contains(screen, "NOT WIRED") {
		t.Errorf("afterwards the screen shows\n%s", screen)
	}
	term.enter("clear; " + s.ways + " logs")
	term.see("INFO  one dispatcher starts pid=")
	if screen := term.screen(); strings.Contains(screen, `"level"`) {
		t.Errorf("the screen shows\n%s", screen)
	}
	term.enter("clear; " + s.ways + " logs --json --level info")
	term.see(`"message":"dispatcher starts"`)
}

// rules lists the sensor files of a site.
func (s site) rules(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.config, "sensors", "r*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}
