//go:build e2e

package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// payload is what a hook was given on stdin.
type payload struct {
	Event     string `json:"hook_event_name"`
	Session   string `json:"session_id"`
	AgentID   string `json:"agent_id"`
	ToolUseID string `json:"tool_use_id"`
}

// recordHooks wires a hook that saves its stdin, on the events that the product is
// wired on, and returns a function that reads what was saved.
func recordHooks(t *testing.T, home string) func() []payload {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "saved")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "save")
	writeFile(t, script, []byte("#!/bin/sh\nexec cat >\"$1/$(date +%s%N)-$$.json\"\n"))
	if err := os.Chmod(script, 0o700); err != nil {
		t.Fatal(err)
	}
	hooks := map[string]any{}
	for _, event := range []string{
		"PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop",
		"SubagentStart", "SubagentStop", "SessionStart", "SessionEnd", "PreCompact",
	} {
		hooks[event] = []any{map[string]any{"matcher": "*", "hooks": []any{
			map[string]any{"type": "command", "command": script, "args": []string{dir}, "timeout": 15},
		}}}
	}
	settings, err := json.Marshal(map[string]any{"hooks": hooks})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(home, ".claude", "settings.json"), settings)

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
