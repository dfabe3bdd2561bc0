//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ways/cmd/e2e/internal/mcpserver"
)

// olderClient is another version that the completeness of the record stream is
// shown with: its hooks tell less.
const olderClient = "2.1.197"

// auditAll installs the product with one sensor that takes everything.
func auditAll(t *testing.T, r rig) (in install, log string) {
	t.Helper()
	in = newInstall(t, r.client.Home, append(r.client.Environ(), "WAYS_DISPATCHER_IDLE=20s"))
	in.run(t, "reconcile")
	log = filepath.Join(r.client.Home, "audit", "all.jsonl")
	writeFile(t, filepath.Join(in.config, "sensors", "all.yaml"), []byte(`spec: 1
kind: ways
name: all
rules:
  - name: log
    sections: [user_prompt, queued_message, assistant_response, tool_call, tool_result, subagent, compaction, session_start, session_end]
    dispatch:
      file: {path: `+log+`, format: jsonl}
    redact: none
`))
	return in, log
}

// block is what the tests read of one line of a transcript.
type transcriptLine struct {
	Type       string
	Source     string `json:"promptSource"`
	Attachment struct {
		Type, CommandMode string
		Prompt            json.RawMessage
	}
	Message struct{ Content json.RawMessage }
}

// shownBy counts what all transcripts of a session show: calls, results, texts
// and queued messages.
func shownBy(t *testing.T, home, session string) map[string]int {
	t.Helper()
	main, err := filepath.Glob(filepath.Join(home, ".claude", "projects", "*", session+".jsonl"))
	if err != nil || len(main) != 1 {
		t.Fatalf("transcripts %v, %v", main, err)
	}
	subs, err := filepath.Glob(filepath.Join(strings.TrimSuffix(main[0], ".jsonl"), "subagents", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{}
	for _, path := range append(main, subs...) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for l := range bytes.Lines(raw) {
			var v transcriptLine
			if json.Unmarshal(l, &v) != nil {
				continue // the torn end of a killed client
			}
			var prompt string
			if v.Type == "user" && v.Source != "" && json.Unmarshal(v.Message.Content, &prompt) == nil {
				want["said "+prompt]++
			}
			if v.Attachment.Type == "queued_command" && v.Attachment.CommandMode == "prompt" && json.Unmarshal(v.Attachment.Prompt, &prompt) == nil {
				want["said "+prompt]++
			}
			if v.Type != "assistant" && v.Type != "user" {
				continue
			}
			var blocks []struct {
				Type, ID, Text string
				ToolUseID      string `json:"tool_use_id"`
			}
			if json.Unmarshal(v.Message.Content, &blocks) != nil {
				continue
			}
			for _, b := range blocks {
				switch {
				case b.Type == "tool_use":
					want["tool_call "+b.ID]++
				case b.Type == "tool_result":
					want["tool_result "+b.ToolUseID]++
				case b.Type == "text" && v.Type == "assistant":
					want["assistant_response "+strings.TrimSpace(b.Text)]++
				}
			}
		}
	}
	return want
}

// hasTranscript reports whether an agent has a transcript.
func hasTranscript(t *testing.T, home, session, agent string) bool {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(home, ".claude", "projects", "*", session, "subagents", "agent-"+agent+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return len(found) > 0
}

// checkComplete shows that everything that the transcripts of these sessions
// show is in the log once, and that nothing else is: prompts and queued messages
// by their text, texts, calls and results.
func checkComplete(t *testing.T, home string, list []record, sessions ...string) {
	t.Helper()
	for _, session := range sessions {
		want, got := shownBy(t, home, session), map[string]int{}
		for _, r := range list {
			if r.Session != session {
				continue
			}
			var text string
			_ = json.Unmarshal(r.Data.Text, &text)
			if r.AgentID != "main" && !hasTranscript(t, home, session, r.AgentID) {
				continue // the client's own agent that compacts: only hooks tell of it
			}
			switch r.Section {
			case "tool_call", "tool_result":
				got[r.Section+" "+r.Data.ID]++
			case "assistant_response":
				got[r.Section+" "+strings.TrimSpace(text)]++
			case "queued_message":
				got["said "+text]++
			case "user_prompt":
				if json.Unmarshal(r.Data.Prompt, &text) == nil && !strings.HasPrefix(text, "<task-notification>") {
					got["said "+text]++
				}
			}
		}
		if maps.Equal(got, want) {
			continue
		}
		for _, k := range slices.Sorted(maps.Keys(want)) {
			if got[k] != want[k] {
				t.Errorf("%d records of %q, want %d", got[k], k, want[k])
			}
		}
		for _, k := range slices.Sorted(maps.Keys(got)) {
			if want[k] == 0 {
				t.Errorf("%d records of %q, of which no transcript tells", got[k], k)
			}
		}
	}
	for _, r := range list {
		if strings.Contains(string(r.Data.Text)+string(r.Data.Output)+string(r.Data.Input), "a thought that no log may hold") && !strings.Contains(string(r.Data.Prompt), "SCRIPT") {
			t.Errorf("a thought in record %d: %s", r.Seq, r.Section)
		}
	}
}

// summary is a record in a few words, for messages.
func summary(list []record) string {
	var b strings.Builder
	for _, r := range list {
		fmt.Fprintf(&b, "%s %d %s %s %s %s %.60s %.60s\n", r.Session[:8], r.Seq, r.Source, r.Section, r.AgentID, r.Data.Status, r.Data.Text, r.Data.Prompt)
	}
	return b.String()
}

// TestCompletePrint: print mode, with parallel tools, failing ones, and three
// subagents, on both clients.
func TestCompletePrint(t *testing.T) {
	for _, row := range []struct {
		version string
		mode    subagentMode
	}{{"", background}, {"", foreground}, {olderClient, foreground}} {
		t.Run(row.version+string(row.mode), func(t *testing.T) {
			t.Parallel()
			r := newRigOf(t, row.mode, row.version)
			in, log := auditAll(t, r)
			prompt, _ := busySession(t, r.client.Project, row.mode)
			session, res := r.run(t, prompt)
			if res.ExitCode != 0 {
				t.Fatalf("exit %d: %s", res.ExitCode, res.Stderr)
			}
			in.waitGone(t, session)
			list := readLog(t, log)
			checkNumbers(t, list)
			checkComplete(t, r.client.Home, list, session)
			for _, r := range list {
				if r.Section == "session_end" && r.Source != "hook" {
					t.Errorf("the session's end was inferred")
				}
			}
			if t.Failed() {
				t.Log(summary(list))
			}
		})
	}
}

// TestCompleteTerminal: what a person does in a terminal, on both clients.
func TestCompleteTerminal(t *testing.T) {
	for _, version := range []string{"", olderClient} {
		t.Run("client "+version, func(t *testing.T) {
			t.Parallel()
			completeTerminal(t, version)
		})
	}
}

func completeTerminal(t *testing.T, version string) {
	r := newRigOf(t, background, version)
	in, log := auditAll(t, r)
	session := newSession()
	term := inTerminal(t, r, "--session-id", session)
	records := func() []record {
		if _, err := os.Stat(log); err != nil {
			return nil
		}
		return readLog(t, log)
	}
	// until waits until the log has n records of a section.
	until := func(section string, n int) {
		t.Helper()
		eventually(t, screenLimit, func() bool {
			got := 0
			for _, rec := range records() {
				if rec.Section == section {
					got++
				}
			}
			return got >= n
		}, func() string {
			return fmt.Sprintf("not %d of %s:\n%s\n%s", n, section, summary(records()), term.screen())
		})
	}

	// A reply that is stopped.
	term.enter(`a SCRIPT: [{"text":"one two three\n\nfour five six\n\nseven eight nine\n\nten eleven","delay_s":20}]`)
	until("user_prompt", 1)
	term.reply("one two three")
	term.keys("Escape")
	term.see("nterrupted")
	until("assistant_response", 1) // no hook tells of it

	// A message that is typed while a tool runs, twice the same.
	term.enter(`b SCRIPT: [{"text":"I start","tool":"Bash","input":{"command":"sleep 5; echo slept"}},{"text":"after the queue"}]`)
	until("tool_call", 1)
	term.enter("look at the docs")
	term.enter("look at the docs")
	until("tool_result", 1)
	until("assistant_response", 3)

	// A message that is typed while the reply streams, and a call that is refused.
	term.enter(`c SCRIPT: [{"tool":"NoSuchTool","input":{"x":1}},{"text":"slow words\n\nhere and more of them","delay_s":8}]`)
	term.reply("slow words")
	term.enter("typed during the reply")
	until("tool_call", 2)

	// A tool that is stopped.
	term.reply("done")
	term.enter(`d SCRIPT: [{"text":"I run it","tool":"Bash","input":{"command":"tail -f a.txt"}},{"text":"never"}]`)
	until("tool_call", 3)
	term.reply("tail -f")
	term.keys("Escape")
	until("tool_result", 3)

	term.enter("/compact")
	until("compaction", 2)
	term.enter(`e SCRIPT: [{"text":"two at once","tools":[{"tool":"Bash","input":{"command":"echo x1"}},{"tool":"Bash","input":{"command":"echo x2"}}]},{"text":"both done"}]`)
	term.reply("both done")
	term.enter("/exit")
	term.gone()
	in.waitGone(t, session)

	// Taken up again, cleared, and killed in the middle of a tool.
	term = inTerminal(t, r, "--resume", session)
	term.enter(`f SCRIPT: [{"text":"here again"}]`)
	term.reply("here again")
	term.enter("/clear")
	until("session_end", 2)
	term.enter(`g SCRIPT: [{"text":"last words","tool":"Bash","input":{"command":"tail -f a.txt"}},{"text":"never"}]`)
	until("user_prompt", 6)
	eventually(t, screenLimit, func() bool { // the tool runs
		list := records()
		last := list[len(list)-1]
		return last.Section == "tool_call" && last.Session != session
	}, func() string { return summary(records()) })
	// What the client has not written yet when it is killed, no transcript shows.
	eventually(t, screenLimit, func() bool {
		list := records()
		last := list[len(list)-1]
		found, err := filepath.Glob(filepath.Join(r.client.Home, ".claude", "projects", "*", last.Session+".jsonl"))
		if err != nil || len(found) != 1 {
			return false
		}
		raw, err := os.ReadFile(found[0])
		return err == nil && bytes.Contains(raw, []byte(last.Data.ID))
	}, func() string { return "the transcript does not hold the last call:\n" + summary(records()) })
	if err := syscall.Kill(term.pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until("session_end", 3)

	list := records()
	second := list[len(list)-1].Session
	in.waitGone(t, session)
	in.waitGone(t, second)
	list = records()
	checkNumbers(t, list)
	checkComplete(t, r.client.Home, list, session, second)
	ends := []string{}
	for _, rec := range list {
		if rec.Section == "session_end" {
			ends = append(ends, rec.Source)
		}
	}
	if !slices.Equal(ends, []string{"hook", "hook", "transcript"}) {
		t.Errorf("ends of sessions from %v", ends)
	}
	if t.Failed() {
		t.Log(summary(list))
	}
}

// TestTwoWirings (hard case BR-22): with the hook wired in the user's settings and
// in the project's, in another way, every event is fired twice and told once.
func TestTwoWirings(t *testing.T) {
	t.Parallel()
	r := newRig(t, foreground)
	in, log := auditAll(t, r)
	elsewhere := t.TempDir()
	wireHook(t, elsewhere, `exec "$1" hook sensors`, in.ways)
	settings, err := os.ReadFile(filepath.Join(elsewhere, ".claude", "settings.json"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(r.client.Project, ".claude", "settings.json"), settings)
	prompt, _ := busySession(t, r.client.Project, foreground)
	session, res := r.run(t, prompt)
	if res.ExitCode != 0 {
		t.Fatalf("exit %d: %s", res.ExitCode, res.Stderr)
	}
	in.waitGone(t, session)
	list := readLog(t, log)
	checkNumbers(t, list)
	checkComplete(t, r.client.Home, list, session)
	seen := map[string]int{}
	for _, rec := range list {
		if rec.Section == "session_start" || rec.Section == "session_end" || rec.Section == "user_prompt" {
			seen[rec.Section]++
		}
	}
	if seen["session_start"] != 1 || seen["session_end"] != 1 || seen["user_prompt"] != 1 {
		t.Errorf("%v", seen)
	}
	var status struct {
		Refusals map[string]int `json:"hook_refusals"`
	}
	raw := in.run(t, "status", "--json")
	if err := json.Unmarshal(raw, &status); err != nil {
		t.Fatalf("status: %v: %s", err, raw)
	}
	if status.Refusals["duplicate"] < len(list)/2 {
		t.Errorf("%d duplicates were dropped beside %d records: was the hook fired twice at all?", status.Refusals["duplicate"], len(list))
	}
	if t.Failed() {
		t.Log(summary(list))
	}
}

// TestCompleteBlocks: a reply of several text blocks, as the last of its turn and
// before a tool call. A hook may tell the last message's blocks as one text.
func TestCompleteBlocks(t *testing.T) {
	for _, version := range []string{"", olderClient} {
		t.Run("client "+version, func(t *testing.T) {
			t.Parallel()
			r := newRigOf(t, foreground, version)
			in, log := auditAll(t, r)
			session, res := r.run(t, `SCRIPT: [{"text":"first part","more":["second part"],"tool":"Bash","input":{"command":"echo hi"}},`+
				`{"thinking":"hm","text":"third part","more":["fourth part","fifth part"]}]`)
			if res.ExitCode != 0 {
				t.Fatalf("exit %d: %s", res.ExitCode, res.Stderr)
			}
			in.waitGone(t, session)
			texts := map[string]int{}
			for _, rec := range readLog(t, log) {
				var text string
				if rec.Section != "assistant_response" {
					continue
				}
				if err := json.Unmarshal(rec.Data.Text, &text); err != nil {
					t.Fatal(err)
				}
				for _, part := range []string{"first", "second", "third", "fourth", "fifth"} {
					texts[part] += strings.Count(text, part)
				}
			}
			if want := (map[string]int{"first": 1, "second": 1, "third": 1, "fourth": 1, "fifth": 1}); !maps.Equal(texts, want) {
				t.Errorf("%v, want each part once:\n%s", texts, summary(readLog(t, log)))
			}
		})
	}
}

// TestMCPServerIsKept: a newer client says which MCP server a tool is of, and the
// records of the call and of its result say it as well; an older one does not.
func TestMCPServerIsKept(t *testing.T) {
	for version, want := range map[string]string{"": mcpserver.Name, olderClient: ""} {
		t.Run("client "+version, func(t *testing.T) {
			t.Parallel()
			r := newRigOf(t, foreground, version)
			in, log := auditAll(t, r)
			const tool = "mcp__" + mcpserver.Name + "__" + mcpserver.Tool
			session, res := r.run(t, `SCRIPT: [{"text":"a","tool":"`+tool+`","input":{"q":"zebra"}},{"text":"b","tool":"`+tool+`","input":{"q":"fail"}},{"text":"c"}]`)
			if res.ExitCode != 0 {
				t.Fatalf("exit %d: %s", res.ExitCode, res.Stderr)
			}
			in.waitGone(t, session)
			raw, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]int{}
			for line := range bytes.Lines(raw) {
				var rec struct {
					Section string
					Data    struct {
						Name      string
						MCPServer struct{ Name string } `json:"mcp_server"`
					}
				}
				if err := json.Unmarshal(line, &rec); err != nil {
					t.Fatal(err)
				}
				if rec.Data.Name == tool {
					seen[rec.Section+" "+rec.Data.MCPServer.Name]++
				}
			}
			if w := map[string]int{"tool_call " + want: 2, "tool_result " + want: 2}; !maps.Equal(seen, w) {
				t.Errorf("%v, want %v", seen, w)
			}
		})
	}
}
