package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// replayProject is the project directory of the recorded sessions.
const replayProject = "/home/dev/proj"

// idleEnv ends the dispatcher of a session that was recorded without its end. A
// dispatcher that leaves in the middle of a replay is started again by the next
// hook, and the log may not show it.
const idleEnv = "WAYS_DISPATCHER_IDLE=2s"

// TestRecordedSessions replays every recorded session through the built hook,
// one process a payload in the order they came, and compares the log of a rule
// that takes all sections with a golden file. Only the time of a record differs
// from run to run. -update writes the golden files anew.
func TestRecordedSessions(t *testing.T) {
	scenarios, err := filepath.Glob(filepath.Join(repoRoot, "testdata", "claude-code", "*", "*"))
	if err != nil || len(scenarios) == 0 {
		t.Fatalf("no recorded sessions: %v", err)
	}
	update := flag.Lookup(updateFlag).Value.String() == "true"
	for _, dir := range scenarios {
		name := filepath.Base(filepath.Dir(dir)) + "-" + filepath.Base(dir)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replay(t, dir, filepath.Join("testdata", "golden", name+".jsonl"), update)
		})
	}
}

func replay(t *testing.T, dir, golden string, update bool) {
	home := t.TempDir()
	in := newInstall(t, home, []string{"HOME=" + home, "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", idleEnv})
	log := filepath.Join(home, "audit", "all.jsonl")
	in.copySensor(t, "everything", "all", log)

	payloads, err := filepath.Glob(filepath.Join(dir, "[0-9]*.json"))
	if err != nil || len(payloads) == 0 {
		t.Fatalf("no payloads in %s: %v", dir, err)
	}
	slices.Sort(payloads)
	var sessions []string
	said := map[string]int{} // what the payloads carry, each value with its key
	for _, path := range payloads {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		session := field(t, raw, "session_id")
		if !slices.Contains(sessions, session) {
			sessions = append(sessions, session)
		}
		for _, key := range whatWasSaid(t, raw) {
			said[key]++
		}
		in.hook(t, raw, replayProject)
	}
	for _, session := range sessions {
		in.waitGone(t, session) // at the session's end, or at the idle exit
	}

	// Sessions share the log, and their lines may lie in any order to each other.
	list := readLog(t, log)
	checkNumbers(t, list)
	for _, r := range list {
		for field, value := range map[string]json.RawMessage{
			"prompt": r.Data.Prompt, "text": r.Data.Text, "input": r.Data.Input, "output": r.Data.Output, "error": r.Data.Error,
		} {
			if value == nil {
				continue
			}
			if key := saidKey(r.Event, r.Data.ID, value); said[key] > 0 {
				said[key]--
			} else {
				t.Errorf("seq %d: %s is in no payload as it is here: %.300s", r.Seq, field, value)
			}
		}
	}
	for key, n := range said {
		if n != 0 {
			t.Errorf("%d times in a payload and in no record: %.300s", n, key)
		}
	}
	got := normalise(t, log, sessions)
	if update {
		if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v (run with -update to make it)", err)
	}
	gotLines, wantLines := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range max(len(gotLines), len(wantLines)) {
		var g, w []byte
		if i < len(gotLines) {
			g = gotLines[i]
		}
		if i < len(wantLines) {
			w = wantLines[i]
		}
		if !bytes.Equal(g, w) {
			t.Errorf("%s, line %d:\n got %.2000s\nwant %.2000s", golden, i+1, g, w)
		}
	}
}

// whatWasSaid lists the texts and values of a payload that a record must carry
// byte for byte.
func whatWasSaid(t *testing.T, raw []byte) []string {
	t.Helper()
	var p struct {
		Event    string          `json:"hook_event_name"`
		ID       string          `json:"tool_use_id"`
		Prompt   json.RawMessage `json:"prompt"`
		Input    json.RawMessage `json:"tool_input"`
		Response json.RawMessage `json:"tool_response"`
		Error    json.RawMessage `json:"error"`
		Reply    json.RawMessage `json:"last_assistant_message"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	values := []json.RawMessage{p.Prompt, p.Response, p.Error, p.Reply}
	if p.Event == "PreToolUse" {
		values = append(values, p.Input) // the result's payload repeats it
	}
	var list []string
	for _, v := range values {
		if v != nil {
			list = append(list, saidKey(p.Event, p.ID, v))
		}
	}
	return list
}

func saidKey(event, id string, value json.RawMessage) string {
	return event + " " + id + " " + string(value)
}

// normalise is the log with the records' times blanked, session after session.
func normalise(t *testing.T, log string, sessions []string) []byte {
	t.Helper()
	raw, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	ts := regexp.MustCompile(`"ts":"([^"]*)"`)
	var out bytes.Buffer
	for _, session := range sessions {
		var last time.Time
		for line := range bytes.Lines(raw) {
			if field(t, line, "session") != session {
				continue
			}
			at := ts.FindSubmatchIndex(line) // the envelope's comes first, before what was said
			if at == nil {
				t.Fatalf("no time in %.200s", line)
			}
			stamp := string(line[at[2]:at[3]])
			when, err := time.Parse(time.RFC3339Nano, stamp)
			if err != nil || !strings.HasSuffix(stamp, "Z") || when.Before(last) {
				t.Errorf("time %q after %v: %v", stamp, last, err)
			}
			last = when
			out.Write(line[:at[2]])
			out.WriteString("TIME")
			out.Write(line[at[3]:])
		}
	}
	return out.Bytes()
}
