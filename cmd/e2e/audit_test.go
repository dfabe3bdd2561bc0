//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"ways/cmd/e2e/internal/transcript"
)

// TestRealSessionBecomesAuditLog is the main job: with the product wired by
// `ways reconcile` alone and one shipped sensor copied, one file holds every tool
// call and every result of the main agent and its subagents, each exactly once,
// and the client notices nothing.
func TestRealSessionBecomesAuditLog(t *testing.T) {
	for _, mode := range []subagentMode{background, foreground} {
		t.Run(string(mode), func(t *testing.T) { audited(t, mode) })
	}
}

func audited(t *testing.T, mode subagentMode) {
	without := newRig(t, mode)
	prompt, _ := busySession(t, without.client.Project, mode)
	_, bare := without.run(t, prompt)

	r := newRig(t, mode)
	in := newInstall(t, r.client.Home, r.client.Environ())
	in.run(t, "reconcile")
	log := filepath.Join(r.client.Home, "audit", "tools.jsonl")
	in.copySensor(t, "tool-audit", "my-audit", log)
	prompt, _ = busySession(t, r.client.Project, mode)
	session, res := r.run(t, prompt)

	in.waitGone(t, session)
	list := readLog(t, log)
	checkNumbers(t, list)
	checkAgainstTranscripts(t, list, transcripts(t, res))
	for i, rec := range list {
		if rec.Session != session || rec.Project != r.client.Project || rec.Rule != "my-audit/log" || rec.V != 1 || rec.Source != "hook" {
			t.Errorf("line %d: %+v", i+1, rec)
		}
	}

	checkStatus(t, in, "my-audit/log", len(list))

	if res.ExitCode != bare.ExitCode || !bytes.Equal(res.Stdout, bare.Stdout) || !bytes.Equal(res.Stderr, bare.Stderr) {
		t.Errorf("with hooks: exit %d, stdout %q, stderr %q; without: exit %d, stdout %q, stderr %q",
			res.ExitCode, res.Stdout, res.Stderr, bare.ExitCode, bare.Stdout, bare.Stderr)
	}
	for _, tr := range transcripts(t, res) {
		for _, line := range hookTraces(t, tr, in.ways) {
			t.Errorf("%s: a hook left a trace: %.1000s", tr.Path, line)
		}
	}
}

// checkStatus shows that the counters tell the same story: every record of the
// rule was delivered, and no hook had to refuse anything.
func checkStatus(t *testing.T, in install, rule string, records int) {
	t.Helper()
	var status struct {
		Refusals json.RawMessage                       `json:"hook_refusals"`
		Rules    map[string]map[string]json.RawMessage `json:"rules"`
	}
	raw := in.run(t, "status", "--json")
	if err := json.Unmarshal(raw, &status); err != nil {
		t.Fatalf("status: %v: %s", err, raw)
	}
	for name, want := range map[string]int{
		"matched": records, "delivered": records,
		"failed": 0, "refused": 0, "timed_out": 0, "killed": 0, "dropped": 0, "spooled": 0,
	} {
		if got := string(status.Rules[rule][name]); got != strconv.Itoa(want) {
			t.Errorf("status: %s is %q for %s, want %d", name, got, rule, want)
		}
	}
	if refusals := string(status.Refusals); refusals != "null" && refusals != "{}" {
		t.Errorf("status: hooks refused %s", refusals)
	}
}

// checkAgainstTranscripts compares a log of tool calls and results with what the
// client wrote down itself: the same calls and results, each once, with the
// same input and outcome, by the same agent.
func checkAgainstTranscripts(t *testing.T, list []record, all []transcript.Transcript) {
	t.Helper()
	type entry struct{ section, id, name, agent, status string }
	got, want := map[entry]int{}, map[entry]int{}
	inputs := map[string]json.RawMessage{}
	for _, r := range list {
		got[entry{r.Section, r.Data.ID, r.Data.Name, r.AgentID, r.Data.Status}]++
		if r.Section == "tool_call" {
			inputs[r.Data.ID] = r.Data.Input
		}
	}
	for i, tr := range all {
		agent := "main"
		if i > 0 {
			agent = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(tr.Path), "agent-"), ".jsonl")
		}
		names := map[string]string{}
		for _, c := range tr.Calls {
			names[c.ID] = c.Name
			want[entry{"tool_call", c.ID, c.Name, agent, ""}]++
			if !sameJSON(t, inputs[c.ID], c.Input) {
				t.Errorf("%s %s: input %s, want %s", c.Name, c.ID, inputs[c.ID], c.Input)
			}
		}
		for _, r := range tr.Results {
			status := "ok"
			if r.Failed {
				status = "error"
			}
			want[entry{"tool_result", r.ID, names[r.ID], agent, status}]++
		}
	}
	if len(want) == 0 {
		t.Error("the transcripts hold no tool calls")
	}
	for e := range want {
		if want[e] != 1 {
			t.Errorf("the transcripts hold %+v %d times", e, want[e])
		}
	}
	if !maps.Equal(got, want) {
		for e := range want {
			if got[e] != want[e] {
				t.Errorf("%+v is in the log %d times, want %d", e, got[e], want[e])
			}
		}
		for e := range got {
			if want[e] == 0 {
				t.Errorf("%+v is in the log and in no transcript", e)
			}
		}
	}
}

// sameJSON compares values, not spellings: the client writes both itself.
func sameJSON(t *testing.T, a, b json.RawMessage) bool {
	t.Helper()
	decode := func(raw json.RawMessage) (v any) {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		if err := dec.Decode(&v); err != nil {
			return fmt.Errorf("%w: %s", err, raw)
		}
		return v
	}
	return reflect.DeepEqual(decode(a), decode(b))
}
