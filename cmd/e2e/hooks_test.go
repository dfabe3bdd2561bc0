package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sections "ways/hooks/record"
	"ways/hooks/tally"
)

const shortIdle = "WAYS_DISPATCHER_IDLE=1s"

// TestManyHooksAtOnce: 50 hooks of one session at once, with payloads longer
// than a pipe holds. Each record is in the log once, whole, in order of number.
func TestManyHooksAtOnce(t *testing.T) {
	s := newSite(t, shortIdle)
	const n = 50
	ids := map[string]bool{}
	for i := range n {
		ids[fmt.Sprint("t", i)] = true
	}
	atOnce(n, func(i int) { s.fire(t, call("s", fmt.Sprint("t", i), 200_000)) })
	list := s.waitLines(t, n)
	numbered(t, list, "s", n)
	for _, r := range list {
		if len(r.Data.Input) < 190_000 || !ids[r.Data.ID] {
			t.Errorf("%s: %d bytes", r.Data.ID, len(r.Data.Input))
		}
		delete(ids, r.Data.ID)
	}
	if len(ids) != 0 {
		t.Errorf("missing %v", ids)
	}
	if got := s.counts(t); len(got) != 0 {
		t.Errorf("refused: %v", got)
	}
}

// TestTwoSessionsOneLog: their lines may lie in any order, and are whole.
func TestTwoSessionsOneLog(t *testing.T) {
	s := newSite(t, shortIdle)
	const n = 30
	atOnce(n, func(i int) {
		s.fire(t, call([]string{"one", "two"}[i%2], fmt.Sprint("t", i), 200_000))
	})
	list := s.waitLines(t, n)
	numbered(t, list, "one", n/2)
	numbered(t, list, "two", n/2)
}

// TestOneDispatcher: however many hooks find that none runs.
func TestOneDispatcher(t *testing.T) {
	s := newSite(t, "WAYS_DISPATCHER_IDLE=20s")
	atOnce(20, func(i int) { s.fire(t, call("s", fmt.Sprint("t", i), 10)) })
	if list := s.dispatchers(t, "s"); len(list) != 1 {
		t.Errorf("dispatchers: %v", list)
	}
	numbered(t, s.waitLines(t, 20), "s", 20)
	log, err := os.ReadFile(filepath.Join(s.dirs.Session("s"), "dispatcher.log"))
	if err != nil || bytes.Count(log, []byte(`"dispatcher starts"`)) != 1 {
		t.Errorf("%v: %s", err, log)
	}
}

// TestEveryEventIsSilent: whatever the event, the hook prints nothing and exits
// with 0, and the record is there; also when it is fired twice.
func TestEveryEventIsSilent(t *testing.T) {
	s := newSite(t, shortIdle)
	const fields = `,"prompt":"p","last_assistant_message":"m","tool_name":"Read","tool_input":{},"tool_response":{},"error":"e","source":"compact","reason":"other","trigger":"auto","agent_id":"a","agent_type":"b"`
	want := map[string]int{}
	for i, name := range sections.Events() {
		payload := event("s", name, fields+fmt.Sprintf(`,"tool_use_id":"t%d","prompt_id":"p%d"`, i, i))
		s.fire(t, payload)
		s.fire(t, payload) // a second wiring
		want[name] = 1
		if name == "SubagentStop" || name == "SessionStart" {
			want[name] = 2
		}
	}
	for _, name := range []string{"Notification", "WorktreeCreate", "PermissionRequest"} {
		s.fire(t, event("s", name, fields))
	}
	total := 0
	for _, n := range want {
		total += n
	}
	list := s.waitLines(t, total)
	numbered(t, list, "s", total)
	got := map[string]int{}
	for _, r := range list {
		got[r.Event]++
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("records by event %v, want %v", got, want)
	}
	if got := s.counts(t); got[tally.Duplicate] != uint64(len(sections.Events())) || got[tally.UnknownEvent] != 3 || len(got) != 2 {
		t.Errorf("refused: %v", got)
	}
}

// TestNextEventSeesEveryEdit changes a sensor file as fast as it can, one way
// after another, and fires one event behind each change. A second sensor, which
// nobody changes, shows when the dispatcher has read the event: a rule that is
// taken away is not given what is still in the spool.
func TestNextEventSeesEveryEdit(t *testing.T) {
	s := newSite(t, "WAYS_DISPATCHER_IDLE=5s")
	path := filepath.Join(s.config, "sensors", "edited.yaml")
	to := func(name string) string { return filepath.Join(s.home, "audit", name) }
	text := func(log string) {
		s.sensor(t, "edited", "[tool_call]", "file: {path: "+to(log)+", format: jsonl}")
	}
	move := func(from, into string) {
		if err := os.Rename(from, into); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string][]string{}
	const edits = 64
	for i := range edits {
		id, log := fmt.Sprint("t", i), fmt.Sprintf("%c.jsonl", 'a'+i%2) // names of one length
		switch i % 8 {
		case 0, 1, 2, 3:
			text(log)
		case 4:
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			log = ""
		case 5:
			text(log)
			move(path, path+".off")
			log = ""
		case 6:
			text("never.jsonl")
			move(path+".off", path) // over it, with the log of the step before
			log = "b.jsonl"
		case 7:
			s.sensor(t, "second", "[tool_call]", "file: {path: "+to("second.jsonl")+", format: jsonl}")
			log = "b.jsonl"
			want["second.jsonl"] = append(want["second.jsonl"], id)
		}
		if log != "" {
			want[log] = append(want[log], id)
		}
		s.fire(t, call("s", id, 10))
		s.waitLines(t, i+1)
		if i%8 == 7 {
			if err := os.Remove(filepath.Join(s.config, "sensors", "second.yaml")); err != nil {
				t.Fatal(err)
			}
		}
	}
	for log, ids := range want {
		var got []string
		eventually(t, exitLimit, func() bool {
			got = nil
			for _, r := range lines(t, to(log)) {
				got = append(got, r.Data.ID)
			}
			return len(got) >= len(ids)
		}, func() string { return fmt.Sprintf("%s holds %v, want %v; %s", log, got, ids, s.story()) })
		if fmt.Sprint(got) != fmt.Sprint(ids) {
			t.Errorf("%s holds %v, want %v", log, got, ids)
		}
	}
	if list := lines(t, to("never.jsonl")); len(list) != 0 {
		t.Errorf("a sensor that was replaced before the event took %v", list)
	}
}

// TestTrustIsSeenAtOnce: a project's sensor runs from the first event behind the
// change of config.yaml on, and not one event longer than it is trusted.
func TestTrustIsSeenAtOnce(t *testing.T) {
	s := newSite(t, "WAYS_DISPATCHER_IDLE=5s")
	theirs := filepath.Join(s.home, "audit", "theirs.jsonl")
	writeFile(t, filepath.Join(s.home, ".claude", "ways-sensors", "p.yaml"), []byte(
		"spec: 1\nkind: ways\nname: p\ndescription: d\nenabled: true\nrules:\n  - name: log\n    sections: [tool_call]\n    dispatch:\n      file: {path: "+theirs+", format: jsonl}\n"))
	settings := filepath.Join(s.config, "config.yaml")
	var want []string
	for i := range 12 {
		switch i % 4 {
		case 1:
			writeFile(t, settings, []byte("ways:\n  project_sensors:\n    - "+s.home+"\n"))
		case 2: // as long as before
			writeFile(t, settings, []byte("ways:\n  project_sensors:\n    - "+strings.Repeat("/", len(s.home))+"\n"))
		case 3:
			if err := os.Remove(settings); err != nil {
				t.Fatal(err)
			}
		}
		id := fmt.Sprint("t", i)
		s.fire(t, call("s", id, 10))
		if i%4 == 1 {
			want = append(want, id)
		}
		s.waitLines(t, i+1)
	}
	eventually(t, exitLimit, func() bool { return len(lines(t, theirs)) >= len(want) },
		func() string { return s.story() })
	var got []string
	for _, r := range lines(t, theirs) {
		got = append(got, r.Data.ID)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the project's sensor took %v, want %v", got, want)
	}
}

// TestNoSensorNothingLeft: with no rule that wants the event, the hook leaves
// nothing in the state directory and starts nothing.
func TestNoSensorNothingLeft(t *testing.T) {
	s := bareSite(t)
	for _, name := range sections.Events() {
		s.fire(t, event("s", name, ""))
	}
	if _, err := os.Stat(s.dirs.State); !os.IsNotExist(err) {
		t.Errorf("the state directory: %v", err)
	}
	if list := s.dispatchers(t, "s"); len(list) != 0 {
		t.Errorf("dispatchers: %v", list)
	}
}

// TestVerbatimThroughTheProduct: with nothing masked, what the session said
// arrives as the client spelled it.
func TestVerbatimThroughTheProduct(t *testing.T) {
	s := bareSite(t, shortIdle)
	s.sensor(t, "all", "[tool_call]", "file: {path: "+s.log+", format: jsonl}", "redact: none")
	const input = `{ "id":9007199254740993,"b":1e400,"a":-0,"b":0.10,"s":"\u003cA\u0026\/\ud83d\ude00\ud99c <&> \u0000" }`
	s.fire(t, event("s", "PreToolUse", `,"tool_use_id":"t","tool_name":"X","tool_input":`+input))
	s.waitLines(t, 1)
	raw, err := os.ReadFile(s.log)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(raw, []byte(`"input":`+input+`}`)) || !json.Valid(raw) {
		t.Errorf("%s", raw)
	}
}

// TestHookIsQuick is a guard against a hook that waits for something; what it
// costs is measured elsewhere (cmd/internal/bench).
func TestHookIsQuick(t *testing.T) {
	s := newSite(t, "WAYS_DISPATCHER_IDLE=20s")
	s.fire(t, call("s", "t0", 10))
	quickest := time.Hour
	for i := range 20 {
		began := time.Now()
		s.fire(t, call("s", fmt.Sprint("u", i), 10))
		quickest = min(quickest, time.Since(began))
	}
	t.Logf("the quickest of 20 hooks took %v", quickest)
	if quickest > 200*time.Millisecond {
		t.Errorf("the quickest of 20 hooks took %v", quickest)
	}
}
