//go:build e2e

package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ways/cmd/e2e/internal/transcript"
)

// payload is what a hook was given on stdin.
type payload struct {
	Event     string `json:"hook_event_name"`
	Session   string `json:"session_id"`
	AgentID   string `json:"agent_id"`
	ToolUseID string `json:"tool_use_id"`
}

// wireHook wires a shell script, with one argument, on the events that the
// product is wired on, and returns the script's path.
func wireHook(t *testing.T, home, body, arg string) string {
	t.Helper()
	script := filepath.Join(t.TempDir(), "hook")
	writeFile(t, script, []byte("#!/bin/sh\n"+body+"\n"))
	if err := os.Chmod(script, 0o700); err != nil {
		t.Fatal(err)
	}
	hooks := map[string]any{}
	for _, event := range []string{
		"PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop",
		"SubagentStart", "SubagentStop", "SessionStart", "SessionEnd", "PreCompact",
	} {
		hooks[event] = []any{map[string]any{"matcher": "*", "hooks": []any{
			map[string]any{"type": "command", "command": script, "args": []string{arg}, "timeout": 15},
		}}}
	}
	settings, err := json.Marshal(map[string]any{"hooks": hooks})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(home, ".claude", "settings.json"), settings)
	return script
}

// recordHooks wires a hook that saves its stdin, and returns a function that
// reads what was saved.
func recordHooks(t *testing.T, home string) func() []payload {
	t.Helper()
	dir := t.TempDir()
	wireHook(t, home, `exec cat >"$1/$(date +%s%N)-$$.json"`, dir)
	return func() []payload {
		entries, err := os.ReadDir(dir) // in order of name, which is the time
		if err != nil {
			t.Fatal(err)
		}
		var list []payload
		for _, entry := range entries {
			raw, err := os.ReadFile(filepath.Join(dir, entry.Name()))
			if err != nil {
				t.Fatal(err)
			}
			var p payload
			if err := json.Unmarshal(raw, &p); err != nil {
				t.Fatalf("%s: %v", entry.Name(), err)
			}
			list = append(list, p)
		}
		return list
	}
}

// TestRealClientIsDriven shows that the harness drives what the product tests
// stand on: every scripted tool call runs in the real client, fires the hooks it
// should, and is in a transcript.
func TestRealClientIsDriven(t *testing.T) {
	for _, mode := range []subagentMode{background, foreground} {
		t.Run(string(mode), func(t *testing.T) { driven(t, mode) })
	}
}

func driven(t *testing.T, mode subagentMode) {
	r := newRig(t, mode)
	saved := recordHooks(t, r.client.Home)
	prompt, want := busySession(t, r.client.Project, mode)
	session, res := r.run(t, prompt)

	if res.ExitCode != 0 || string(res.Stdout) != lastWords+"\n" {
		t.Fatalf("exit %d, stdout %q, stderr %q", res.ExitCode, res.Stdout, res.Stderr)
	}
	all := transcripts(t, res)
	if len(all) != 4 {
		t.Fatalf("%d transcripts, want the main agent's and three subagents'", len(all))
	}
	got, failed := map[string]int{}, 0
	for _, tr := range all {
		for _, c := range tr.Calls {
			if !strings.Contains(string(c.Input), pollCommand+`"`) {
				got[c.Name]++
			}
		}
		for _, r := range tr.Results {
			if r.Failed {
				failed++
			}
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("tool calls in the transcripts %v, want %v", got, want)
	}
	// ls, the missing file, the MCP error, and the second subagent's exit 3.
	if failed != 4 {
		t.Errorf("%d failed results, want 4", failed)
	}

	pre, post, agents := map[string]int{}, map[string]int{}, map[string]int{}
	events := map[string]int{}
	for _, p := range saved() {
		events[p.Event]++
		if p.Session != session {
			t.Errorf("%s of session %q, want %q", p.Event, p.Session, session)
		}
		switch p.Event {
		case "PreToolUse":
			pre[p.ToolUseID]++
			agents[p.AgentID]++
		case "PostToolUse", "PostToolUseFailure":
			post[p.ToolUseID]++
		}
	}
	if len(agents) != 4 {
		t.Errorf("PreToolUse of %d agents, want 4: %v", len(agents), agents)
	}
	for _, tr := range all {
		for _, c := range tr.Calls {
			if pre[c.ID] != 1 || post[c.ID] != 1 {
				t.Errorf("%s %s: %d PreToolUse and %d Post hooks, want one of each", c.Name, c.ID, pre[c.ID], post[c.ID])
			}
		}
	}
	prompts := map[subagentMode]int{background: 4, foreground: 1}[mode] // with one notification for each subagent
	for event, n := range map[string]int{
		"SessionStart": 1, "UserPromptSubmit": prompts, "SubagentStart": 3, "SubagentStop": 3,
		"Stop": 1, "SessionEnd": 1, "PostToolUseFailure": failed, "PreCompact": 0,
	} {
		if events[event] != n {
			t.Errorf("%d %s hooks, want %d", events[event], event, n)
		}
	}
	if t.Failed() {
		for _, e := range r.model.Exchanges() {
			t.Logf("%s %s %d %.100q %v", e.Method, e.Path, e.Status, e.Prompt, e.Err)
		}
	}
}

// TestNoisyHookLeavesTraces shows that the check for a hook's traces sees them:
// one that prints, one that fails, and none from one that is silent.
func TestNoisyHookLeavesTraces(t *testing.T) {
	for _, row := range []struct {
		name, body string
		want       bool
	}{
		{"prints", "cat >/dev/null; echo noise", true},
		{"fails", "cat >/dev/null; exit 1", true},
		{"is silent", "cat >/dev/null", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, background)
			script := wireHook(t, r.client.Home, row.body, "x")
			_, res := r.run(t, `SCRIPT: [{"tool":"Bash","input":{"command":"echo hi"}},{"text":"over"}]`)
			tr, err := transcript.Read(res.Transcript)
			if err != nil {
				t.Fatal(err)
			}
			if got := hookTraces(t, tr, script); (len(got) > 0) != row.want {
				t.Errorf("traces %q, want some: %v", got, row.want)
			}
		})
	}
}
