//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ways/cmd/e2e/internal/client"
	"ways/cmd/e2e/internal/fakemodel"
	"ways/cmd/e2e/internal/mcpserver"
	"ways/cmd/e2e/internal/transcript"
)

// sessionLimit is how long one session of the real client may take. It needs a
// few seconds; the rest is for a busy machine.
const sessionLimit = 2 * time.Minute

// lastWords end the busy session: what the client prints.
const lastWords = "that is all"

// pollCommand is how the main agent passes the time while its subagents run in
// the background. How often it does differs from run to run.
const pollCommand = "sleep 0.3"

// subagentMode says how the client runs subagents. Since 2.1.332 they run in the
// background unless that is switched off; before, the main agent waited for each.
type subagentMode string

const (
	background subagentMode = "background"
	foreground subagentMode = "foreground"
)

// environ is what sets the mode.
func (m subagentMode) environ() []string {
	if m == foreground {
		return []string{"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1"}
	}
	return nil
}

// rig is a client with a model, a project and an MCP server.
type rig struct {
	client client.Client
	model  *fakemodel.Server
	mcp    string // the MCP configuration file
}

func newRig(t *testing.T, mode subagentMode) rig {
	t.Helper()
	return newRigOf(t, mode, "")
}

// newRigOf is newRig with a version of the client; the one the tests are written
// against, or the environment names, when it is empty.
func newRigOf(t *testing.T, mode subagentMode, version string) rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	locate := client.Locate
	if version != "" {
		locate = func(ctx context.Context) (string, error) { return client.LocateVersion(ctx, version) }
	}
	binary, err := locate(ctx)
	if err != nil {
		t.Fatalf("these tests drive the real client: %v", err)
	}
	model, err := fakemodel.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := model.Close(); err != nil {
			t.Errorf("closing the model: %v", err)
		}
	})
	dir := t.TempDir()
	c, err := client.New(binary, dir, model.URL())
	if err != nil {
		t.Fatal(err)
	}
	c.Env = mode.environ()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config, err := mcpserver.Config([]string{self}, map[string]string{asMCPServer: "1"})
	if err != nil {
		t.Fatal(err)
	}
	r := rig{client: c, model: model, mcp: filepath.Join(dir, "mcp.json")}
	writeFile(t, r.mcp, config)
	writeFile(t, filepath.Join(c.Project, "a.txt"), []byte("some content\n"))
	return r
}

// run drives one session to its end. A client that asked for a host outside
// fails the test.
func (r rig) run(t *testing.T, prompt string) (string, client.Result) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), sessionLimit)
	defer cancel()
	session := newSession()
	res, err := r.client.Print(ctx, client.Run{
		Session: session, Prompt: prompt, Args: []string{"--mcp-config", r.mcp},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range r.model.Outside() {
		t.Errorf("the client asked for %s %s, outside loopback", e.Method, e.Path)
	}
	return session, res
}

// busySession is a prompt for a session that does everything at once: parallel
// tools, three subagents of which two start together, tools that fail (also in
// a subagent), and an MCP tool. It counts its own tool calls, without the polls.
// In the background mode the main agent ends only once it was told of all three
// subagents' ends; what it prints would depend on their speed otherwise.
func busySession(t *testing.T, project string, mode subagentMode) (prompt string, calls map[string]int) {
	t.Helper()
	calls = map[string]int{}
	call := func(tool string, input any) fakemodel.Call {
		calls[tool]++
		raw, err := json.Marshal(input)
		if err != nil {
			t.Fatal(err)
		}
		return fakemodel.Call{Tool: tool, Input: raw}
	}
	bash := func(command string) fakemodel.Call {
		return call("Bash", map[string]string{"command": command, "description": "runs a test command"})
	}
	read := func(name string) fakemodel.Call {
		return call("Read", map[string]string{"file_path": filepath.Join(project, name)})
	}
	lookup := func(q string) fakemodel.Call {
		return call("mcp__"+mcpserver.Name+"__"+mcpserver.Tool, map[string]string{"q": q})
	}
	agent := func(name string, steps ...fakemodel.Step) fakemodel.Call {
		p, err := fakemodel.Prompt("the work of "+name, steps...)
		if err != nil {
			t.Fatal(err)
		}
		return call("Agent", map[string]string{
			"description": name, "prompt": p, "subagent_type": "general-purpose",
		})
	}
	together := func(text string, list ...fakemodel.Call) fakemodel.Step {
		return fakemodel.Step{Text: text, Tools: list}
	}

	steps := []fakemodel.Step{
		together("several at once",
			agent("first subagent",
				together("", read("a.txt"), bash("echo from the first subagent")),
				fakemodel.Step{Text: "the first subagent is done"}),
			agent("second subagent",
				together("looking", bash("echo out; echo err >&2; exit 3")),
				together("", lookup("subagent")),
				fakemodel.Step{Text: "the second subagent is done"}),
			bash("sleep 0.2; echo parallel one"),
			bash("sleep 0.2; echo parallel two"),
			read("a.txt"),
		),
		together("now a failure", bash("ls /nonexistent-directory")),
		together("", read("no-such-file.txt"), lookup("zebra"), lookup("fail")),
		{
			Thinking: "a thought that no log may hold",
			Tools: []fakemodel.Call{call("Write", map[string]string{
				"file_path": filepath.Join(project, "b.txt"), "content": "line1 <&> ü \"quoted\"\nline2\n",
			})},
		},
		together("", agent("third subagent",
			together("", bash("echo from the third subagent"), bash("echo again")),
			fakemodel.Step{Text: "the third subagent is done"})),
		together("", bash("seq 1 20000")),
	}
	if mode == background {
		poll := bash(pollCommand)
		calls["Bash"]--
		steps = append(steps, fakemodel.Step{
			Text: "not all are back yet", Tool: poll.Tool, Input: poll.Input,
			Until: &fakemodel.Until{Text: "<status>completed</status>", Count: 3},
		})
	}
	steps = append(steps, fakemodel.Step{Text: lastWords})
	prompt, err := fakemodel.Prompt("the busy session", steps...)
	if err != nil {
		t.Fatal(err)
	}
	return prompt, calls
}

// transcripts reads the main agent's and every subagent's.
func transcripts(t *testing.T, res client.Result) []transcript.Transcript {
	t.Helper()
	var all []transcript.Transcript
	for _, path := range append([]string{res.Transcript}, res.Subagents...) {
		tr, err := transcript.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tr)
	}
	return all
}

// hookTraces lists the lines of a transcript that would not be there without a
// hook: what it printed, how it failed, what it made the client do, its command.
// The client's own line at the end of a turn, which names each hook that ran, is
// none as long as it says that they were silent.
func hookTraces(t *testing.T, tr transcript.Transcript, command string) []string {
	t.Helper()
	var traces []string
	for line := range bytes.Lines(tr.Raw) {
		var l struct {
			Type       string `json:"type"`
			Subtype    string `json:"subtype"`
			Attachment struct {
				Type string `json:"type"`
			} `json:"attachment"`
			HasOutput  bool              `json:"hasOutput"`
			Errors     []json.RawMessage `json:"hookErrors"`
			Prevented  bool              `json:"preventedContinuation"`
			StopReason string            `json:"stopReason"`
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatalf("%s: %v", tr.Path, err)
		}
		if l.Subtype == "stop_hook_summary" && !l.HasOutput && len(l.Errors) == 0 && !l.Prevented && l.StopReason == "" {
			continue
		}
		kind := l.Type + " " + l.Subtype + " " + l.Attachment.Type
		if strings.Contains(kind, "hook") || bytes.Contains(line, []byte(command)) {
			traces = append(traces, string(line))
		}
	}
	return traces
}

// newSession returns a random UUID of version 4.
func newSession() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}
