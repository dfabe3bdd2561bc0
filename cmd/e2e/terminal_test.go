//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// terminal is the client in a terminal that a test types into.
type terminal struct {
	t    *testing.T
	sock string
}

// screenLimit is how long something may take to appear.
const screenLimit = time.Minute

// inTerminal starts the client of a rig in a terminal. What a person would be
// asked at the first start is answered beforehand.
func inTerminal(t *testing.T, r rig, args ...string) terminal {
	t.Helper()
	const key = "sk-not-a-key-0123456789abcdef"
	config, err := json.Marshal(map[string]any{
		"hasCompletedOnboarding": true, "theme": "dark", "bypassPermissionsModeAccepted": true,
		"customApiKeyResponses": map[string]any{"approved": []string{key[len(key)-20:]}},
		"projects":              map[string]any{r.client.Project: map[string]any{"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(r.client.Home, ".claude.json")
	if _, err := os.Stat(path); err != nil {
		writeFile(t, path, config)
	}
	term := terminal{t, filepath.Join(t.TempDir(), "tmux")}
	argv := append([]string{
		"-S", term.sock, "-f", "/dev/null", "new-session", "-d", "-x", "180", "-y", "50", "-c", r.client.Project, "--",
		r.client.Binary, "--dangerously-skip-permissions",
	}, args...)
	cmd := exec.CommandContext(t.Context(), "tmux", argv...)
	cmd.Env, cmd.Dir = r.client.Environ(), r.client.Project
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("tmux: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", term.sock, "kill-server").Run() }) // it ends with its client
	eventually(t, screenLimit, func() bool {
		screen := term.screen()
		if strings.Contains(screen, "Yes, I accept") {
			term.keys("Down", "Enter")
		}
		return strings.Contains(screen, "bypass permissions on")
	}, term.screen)
	return term
}

func (term terminal) tmux(args ...string) (string, error) {
	out, err := exec.CommandContext(term.t.Context(), "tmux", append([]string{"-S", term.sock}, args...)...).CombinedOutput()
	return string(out), err
}

// screen is what the terminal shows; empty when it is gone.
func (term terminal) screen() string {
	out, _ := term.tmux("capture-pane", "-p", "-J")
	return out
}

func (term terminal) keys(keys ...string) {
	term.t.Helper()
	if out, err := term.tmux(append([]string{"send-keys"}, keys...)...); err != nil {
		term.t.Fatalf("typing %q: %v: %s", keys, err, out)
	}
}

// enter types a line and sends it once it is on the screen.
func (term terminal) enter(text string) {
	term.t.Helper()
	if out, err := term.tmux("send-keys", "-l", text); err != nil {
		term.t.Fatalf("typing: %v: %s", err, out)
	}
	tail := text[max(0, len(text)-12):]
	term.see(tail)
	term.keys("Enter")
}

// see waits until the screen shows something. The terminal breaks long lines.
func (term terminal) see(text string) {
	term.t.Helper()
	eventually(term.t, screenLimit, func() bool {
		flat := strings.NewReplacer("\n", "", " ", "", "│", "").Replace(term.screen())
		return strings.Contains(flat, strings.ReplaceAll(text, " ", "")) || strings.Contains(flat, "[Pastedtext")
	}, func() string { return fmt.Sprintf("no %q on the screen:\n%s", text, term.screen()) })
}

// reply waits until the screen shows something that the agent said or did. What
// was typed holds it too, in quotes.
func (term terminal) reply(text string) {
	term.t.Helper()
	want := strings.ReplaceAll(text, " ", "")
	eventually(term.t, screenLimit, func() bool {
		flat := strings.NewReplacer("\n", "", " ", "", "│", "").Replace(term.screen())
		return strings.Count(flat, want) > strings.Count(flat, `"`+want)
	}, func() string { return fmt.Sprintf("no %q on the screen:\n%s", text, term.screen()) })
}

// pid is the client's process.
func (term terminal) pid() int {
	term.t.Helper()
	out, err := term.tmux("list-panes", "-F", "#{pane_pid}")
	pid, convErr := strconv.Atoi(strings.TrimSpace(out))
	if err != nil || convErr != nil {
		term.t.Fatalf("the client's process: %q, %v", out, err)
	}
	return pid
}

// gone waits until the client has ended.
func (term terminal) gone() {
	term.t.Helper()
	eventually(term.t, screenLimit, func() bool {
		_, err := term.tmux("list-panes")
		return err != nil
	}, term.screen)
}
