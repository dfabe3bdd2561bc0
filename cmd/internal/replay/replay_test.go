package replay_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ways/cmd/internal/cli"
	"ways/cmd/internal/replay"
)

const fixtures = "../../../testdata/claude-code/"

// home is a user's home with a sensor that writes to a log and one that posts.
type home struct {
	dir, log string
	out, err bytes.Buffer
}

func newHome(t *testing.T, url string) *home {
	t.Helper()
	h := &home{dir: t.TempDir()}
	h.log = filepath.Join(h.dir, "history.jsonl")
	write(t, filepath.Join(h.dir, ".config", "agent-ways", "sensors", "history.yaml"), []byte(`spec: 1
kind: ways
name: history
rules:
  - name: log
    sections: [user_prompt, queued_message, assistant_response, tool_call, tool_result, subagent]
    dispatch:
      file: {path: `+h.log+`, format: jsonl}
    redact: none
  - name: bash
    sections: [tool_call]
    where:
      data.name: Bash
    dispatch:
      http: {url: "`+url+`"}
`))
	return h
}

func (h *home) run(args ...string) int {
	h.out.Reset()
	h.err.Reset()
	return replay.Run(cli.Env{
		Getenv: func(name string) string {
			if name == "HOME" {
				return h.dir
			}
			return ""
		},
		Stdin: strings.NewReader(""), Stdout: &h.out, Stderr: &h.err, Version: "test",
	}, args)
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// lay puts a recorded session where the client keeps its transcripts.
func (h *home) lay(t *testing.T, scenario, session, agent string) string {
	t.Helper()
	base := filepath.Join(h.dir, ".claude", "projects", "-home-dev-proj", session)
	raw, err := os.ReadFile(fixtures + scenario + "/transcript.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	write(t, base+".jsonl", raw)
	if agent != "" {
		raw, err := os.ReadFile(fixtures + scenario + "/subagent-transcript.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(base, "subagents", "agent-"+agent+".jsonl"), raw)
	}
	return base + ".jsonl"
}

// record is a line of the log.
type record struct {
	Section  string
	Source   string
	TS       string
	Session  string
	Replayed bool
	Seq      int
	RuleSeq  int    `json:"rule_seq"`
	AgentID  string `json:"agent_id"`
}

func (h *home) records(t *testing.T) []record {
	t.Helper()
	raw, err := os.ReadFile(h.log)
	if err != nil {
		t.Fatal(err)
	}
	var list []record
	for l := range bytes.Lines(raw) {
		var r record
		if err := json.Unmarshal(l, &r); err != nil {
			t.Fatalf("%v: %s", err, l)
		}
		list = append(list, r)
	}
	return list
}

// TestReplay sends a recorded session, its subagent included, to both rules.
func TestReplay(t *testing.T) {
	posted := 0
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { posted++ }))
	defer srv.Close()
	h := newHome(t, srv.URL)
	const session = "31c02f60-dad9-4c1d-9493-4505c63fd62d"
	path := h.lay(t, "2.1.332/async-subagent", session, "a7e7a152bf539f1c7")

	if code := h.run("--session", session, "--dry-run"); code != cli.OK {
		t.Fatalf("exit %d: %s", code, h.err.String())
	}
	want := "session " + session + ", project /home/dev/proj: 13 records\nRULE         WOULD GET\nhistory/bash  1\nhistory/log   13\n"
	if got := strings.ReplaceAll(h.out.String(), "RULE          ", "RULE         "); got != want {
		t.Errorf("dry run: %q, want %q", got, want)
	}
	if _, err := os.Stat(h.log); err == nil || posted != 0 {
		t.Error("a dry run sent something")
	}

	if code := h.run("--transcript", path); code != cli.OK {
		t.Fatalf("exit %d: %s", code, h.err.String())
	}
	list, last := h.records(t), ""
	sections := map[string]int{}
	for i, r := range list {
		sections[r.Section]++
		if !r.Replayed || r.Source != "transcript" || r.Session != session || r.RuleSeq != i+1 || r.TS < last {
			t.Errorf("line %d: %+v", i+1, r)
		}
		last = r.TS
	}
	for section, n := range map[string]int{
		"user_prompt": 2, "assistant_response": 3, "tool_call": 3, "tool_result": 3, "subagent": 2, "queued_message": 0,
	} {
		if sections[section] != n {
			t.Errorf("%d of %s, want %d", sections[section], section, n)
		}
	}
	if posted != 1 {
		t.Errorf("%d posted, want 1", posted)
	}
	if code := h.run("--transcript", path, "--rule", "history/bash", "--json"); code != cli.OK || posted != 2 {
		t.Errorf("one rule: exit %d, %d posted: %s", code, posted, h.err.String())
	}
	var rep struct {
		Records int
		Rules   []struct{ Matched, Accepted int }
	}
	if err := json.Unmarshal(h.out.Bytes(), &rep); err != nil || len(rep.Rules) != 1 || rep.Rules[0].Accepted != 1 {
		t.Errorf("%+v, %v: %s", rep, err, h.out.String())
	}
}

// TestReplayFails: what a consumer does not take is counted, and the exit code
// says so.
func TestReplayFails(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer srv.Close()
	h := newHome(t, srv.URL)
	path := h.lay(t, "2.1.197/tools", "s", "")
	if code := h.run("--transcript", path, "--rule", "history/bash"); code != cli.Failed || !strings.Contains(h.err.String(), "418") {
		t.Errorf("exit %d: %s%s", code, h.out.String(), h.err.String())
	}
	for _, row := range []struct {
		args []string
		code int
		say  string
	}{
		{nil, cli.Usage, "one of --transcript"},
		{[]string{"--transcript", path, "--session", "s"}, cli.Usage, "one of --transcript"},
		{[]string{"--session", "nobody"}, cli.Failed, "no transcript of session nobody"},
		{[]string{"--session", "../x"}, cli.Failed, "no session id"},
		{[]string{"--transcript", filepath.Join(h.dir, "gone")}, cli.Failed, "no such file"},
		{[]string{"--transcript", path, "--rule", "no/such"}, cli.Failed, "does not run here"},
	} {
		if code := h.run(row.args...); code != row.code || !strings.Contains(h.err.String(), row.say) {
			t.Errorf("%q: exit %d, %q; want %d and %q", row.args, code, h.err.String(), row.code, row.say)
		}
	}
	empty := filepath.Join(h.dir, "empty.jsonl")
	write(t, empty, []byte("\n{}\n"))
	if code := h.run("--transcript", empty); code != cli.Failed || !strings.Contains(h.err.String(), "not a transcript") {
		t.Errorf("no transcript: exit %d: %s", code, h.err.String())
	}
}
