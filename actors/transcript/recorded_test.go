package transcript_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// updateFlag makes the tests write their golden files instead of comparing.
const updateFlag = "update"

func TestMain(m *testing.M) {
	flag.Bool(updateFlag, false, "write the golden files anew")
	os.Exit(m.Run())
}

// TestRecordedSessions replays each recorded session, hooks and transcripts, and
// shows that together they tell of everything once.
func TestRecordedSessions(t *testing.T) {
	paths, err := filepath.Glob(fixtures + "/*/*/transcript.jsonl")
	if err != nil || len(paths) < 6 {
		t.Fatalf("%d transcripts, %v", len(paths), err)
	}
	var got bytes.Buffer
	for _, path := range paths {
		name := strings.TrimPrefix(filepath.Dir(path), fixtures+"/")
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := replayed(t, filepath.Dir(path))
				defer r.stop()
				fmt.Fprintf(&got, "# %s\n", name)
				for _, rec := range r.records() {
					if rec.Source == "transcript" {
						fmt.Fprintf(&got, "%s\n", rec.raw)
					}
				}
				complete(t, r)
			})
		})
	}
	const golden = "testdata/recorded.jsonl"
	if flag.Lookup(updateFlag).Value.String() == "true" {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v (run with -update to make it)", err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("got\n%s\nwant\n%s", got.Bytes(), want)
	}
}

// replayed fires a recorded session's hooks, with its transcripts in place, and
// waits until all is told. A hook's time is not recorded: the first came before
// the transcript's first line, the others are taken to have come after its last.
func replayed(t *testing.T, dir string) *rig {
	t.Helper()
	r := newRig(t)
	hooks, err := filepath.Glob(filepath.Join(dir, "[0-9]*.json"))
	if err != nil {
		t.Fatal(err)
	}
	session := ""
	for i, path := range hooks {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var p struct {
			Session string `json:"session_id"`
		}
		if err := json.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
		if session == "" {
			session = p.Session
		}
		if p.Session != session {
			continue // after a /clear
		}
		if i == 1 {
			r.now = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
			main, err := os.ReadFile(filepath.Join(dir, "transcript.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			r.raw(r.path, main)
			if sub, err := os.ReadFile(filepath.Join(dir, "subagent-transcript.jsonl")); err == nil {
				var l struct {
					AgentID string `json:"agentId"`
				}
				first, _, _ := bytes.Cut(sub, []byte{'\n'})
				if err := json.Unmarshal(first, &l); err != nil {
					t.Fatal(err)
				}
				r.raw(filepath.Join(strings.TrimSuffix(r.path, ".jsonl"), "subagents", "agent-"+l.AgentID+".jsonl"), sub)
			}
		}
		r.fire(raw)
	}
	r.rest()
	return r
}

// complete compares what the transcripts hold with the records: each tool call,
// result and text is there once, and nothing else is.
func complete(t *testing.T, r *rig) {
	t.Helper()
	paths, err := filepath.Glob(strings.TrimSuffix(r.path, ".jsonl") + "/subagents/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{}
	for _, path := range append(paths, r.path) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for l := range bytes.Lines(raw) {
			var v struct {
				Type       string
				Attachment struct{ Type, Prompt, CommandMode string }
				Message    struct{ Content json.RawMessage }
			}
			if err := json.Unmarshal(l, &v); err != nil {
				t.Fatal(err)
			}
			if v.Attachment.Type == "queued_command" && v.Attachment.CommandMode == "prompt" {
				want["queued_message "+v.Attachment.Prompt]++
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
					want["assistant_response "+b.Text]++
				}
			}
		}
	}
	got := map[string]int{}
	for _, rec := range r.records() {
		var d struct{ ID, Text string }
		if err := json.Unmarshal(rec.Data, &d); err != nil {
			t.Fatal(err)
		}
		switch rec.Section {
		case "tool_call", "tool_result":
			if rec.AgentType == "unknown" {
				continue // the client's own, while it compacts: in no transcript
			}
			got[rec.Section+" "+d.ID]++
		case "assistant_response", "queued_message":
			got[rec.Section+" "+d.Text]++
		}
	}
	if !maps.Equal(got, want) {
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
}
