package record_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ways/config/wiring"
	"ways/hooks/payload"
	"ways/hooks/record"
)

// updateFlag makes the tests write their golden files instead of comparing.
const updateFlag = "update"

func TestMain(m *testing.M) {
	flag.Bool(updateFlag, false, "write the golden files anew")
	os.Exit(m.Run())
}

func all() record.Set { return record.SetOf(record.Sections()...) }

// from makes the records of a payload, numbered from 7 on.
func from(t testing.TB, raw string, want record.Set, inTurn bool) []string {
	t.Helper()
	ev, err := payload.Parse([]byte(raw))
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	c := record.Context{
		Time: time.Date(2026, 3, 4, 5, 6, 7, 80, time.FixedZone("", 3600)), Project: "/home/dev/proj", InTurn: inTurn,
	}
	var list []string
	for i, d := range record.FromEvent(ev, c, want) {
		rec := d.Append(nil, uint64(7+i))
		if len(rec) != d.Size()+1 {
			t.Errorf("a record of %d bytes says it has %d and a number", len(rec), d.Size())
		}
		if !json.Valid(rec) || bytes.ContainsAny(rec, "\r\n") {
			t.Errorf("no JSON on one line: %q", rec)
		}
		list = append(list, string(rec))
	}
	return list
}

// TestGolden makes every record of every recorded session and compares them with
// a golden file: the wire contract, as real clients fill it.
func TestGolden(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/claude-code/*/*/[0-9]*.json")
	if err != nil || len(paths) < 50 {
		t.Fatalf("%d recorded payloads, %v", len(paths), err)
	}
	var got bytes.Buffer
	seen := map[string]bool{}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range from(t, string(raw), all(), false) {
			var r struct{ Section string }
			if err := json.Unmarshal([]byte(rec), &r); err != nil {
				t.Fatal(err)
			}
			seen[r.Section] = true
			fmt.Fprintf(&got, "%s\n", rec)
		}
	}
	for _, s := range record.Sections() {
		// A message is queued where a prompt arrives inside a turn, which this test
		// does not play; the others are not a hook's.
		if !seen[s.String()] && s != record.QueuedMessage && s != record.WayEvent && s != record.SectionGap {
			t.Errorf("no recorded session yields a %s", s)
		}
	}
	const golden = "testdata/records.jsonl"
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
	g, w := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
	if len(g) != len(w) {
		t.Fatalf("%d records, want %d", len(g)-1, len(w)-1)
	}
	for i := range g {
		if g[i] != w[i] {
			t.Errorf("line %d:\n got %.2000s\nwant %.2000s", i+1, g[i], w[i])
		}
	}
}

const envelope = `"source":"hook","ts":"2026-03-04T04:06:07.000000080Z","session":"s","seq":%d,"agent_id":"main","agent_type":"main","project":"/home/dev/proj","cwd":"","data":`

// TestEverySection spells each section's data out, also where fields are missing
// or of another kind than they should be.
func TestEverySection(t *testing.T) {
	for _, row := range []struct {
		event, fields string
		inTurn        bool
		want          []string // section and data
	}{
		{"UserPromptSubmit", `"prompt":"hi"`, false, []string{`user_prompt {"prompt":"hi","origin":"human"}`}},
		{"UserPromptSubmit", `"prompt":"hi"`, true, []string{`queued_message {"text":"hi"}`}},
		{"UserPromptSubmit", `"prompt":"<task-notification>x"`, true, []string{`user_prompt {"prompt":"<task-notification>x","origin":"task_notification"}`}},
		{"UserPromptSubmit", `"x":1`, false, []string{`user_prompt {"prompt":null,"origin":"human"}`}},
		{"UserPromptSubmit", `"prompt":{"a":[1]}`, false, []string{`user_prompt {"prompt":{"a":[1]},"origin":"human"}`}},
		{"PreToolUse", `"tool_use_id":"t","tool_name":"Bash","tool_input":{"b":1,"a":2,"b":3}`, false, []string{`tool_call {"id":"t","name":"Bash","input":{"b":1,"a":2,"b":3}}`}},
		{"PreToolUse", `"tool_use_id":5`, false, []string{`tool_call {"id":5,"name":null,"input":null}`}},
		{"PostToolUse", `"tool_use_id":"t","tool_name":"Bash","tool_response":[1e400,-0,9007199254740993],"duration_ms":12`, false, []string{`tool_result {"id":"t","name":"Bash","status":"ok","output":[1e400,-0,9007199254740993],"duration_ms":12}`}},
		{"PostToolUse", `"tool_use_id":"t","tool_name":"Bash","tool_response":null`, false, []string{`tool_result {"id":"t","name":"Bash","status":"ok","output":null}`}},
		{"PostToolUseFailure", `"tool_use_id":"t","tool_name":"Bash","error":"no","is_interrupt":false`, false, []string{`tool_result {"id":"t","name":"Bash","status":"error","error":"no"}`}},
		{"PreToolUse", `"tool_use_id":"t","tool_name":"mcp__demo__lookup","tool_input":{"q":1.0},"mcp_server":{"name":"demo", "source":"dynamic"}`, false, []string{`tool_call {"id":"t","name":"mcp__demo__lookup","input":{"q":1.0},"mcp_server":{"name":"demo", "source":"dynamic"}}`}},
		{"PostToolUse", `"tool_use_id":"t","tool_name":"mcp__demo__lookup","tool_response":"x","duration_ms":7,"mcp_server":{"name":"demo"}`, false, []string{`tool_result {"id":"t","name":"mcp__demo__lookup","status":"ok","output":"x","duration_ms":7,"mcp_server":{"name":"demo"}}`}},
		{"PostToolUseFailure", `"tool_use_id":"t","tool_name":"mcp__demo__lookup","error":"no","mcp_server":null`, false, []string{`tool_result {"id":"t","name":"mcp__demo__lookup","status":"error","error":"no","mcp_server":null}`}},
		{"PostToolUseFailure", `"tool_use_id":"t","tool_name":"Bash","error":"no","is_interrupt":true,"duration_ms":3`, false, []string{`tool_result {"id":"t","name":"Bash","status":"interrupted","error":"no","duration_ms":3}`}},
		{"PostToolUseFailure", `"is_interrupt":"true"`, false, []string{`tool_result {"id":null,"name":null,"status":"error","error":null}`}},
		{"Stop", `"last_assistant_message":"a \u003c<&>\ud99c"`, false, []string{`assistant_response {"text":"a \u003c<&>\ud99c","final":true,"interrupted":false}`}},
		{"Stop", `"last_assistant_message":""`, false, nil},
		{"Stop", `"last_assistant_message":null`, false, nil},
		{"Stop", `"x":1`, false, nil},
		{"SubagentStart", `"x":1`, false, []string{`subagent {"phase":"start","id":"","type":""}`}},
		{"SubagentStop", `"last_assistant_message":"done"`, false, []string{
			`assistant_response {"text":"done","final":true,"interrupted":false}`, `subagent {"phase":"stop","id":"","type":""}`,
		}},
		{"PreCompact", `"trigger":"manual","custom_instructions":""`, false, []string{`compaction {"phase":"before","trigger":"manual","custom_instructions":""}`}},
		{"PreCompact", `"trigger":"auto"`, false, []string{`compaction {"phase":"before","trigger":"auto"}`}},
		{"SessionStart", `"source":"startup","model":"m"`, false, []string{`session_start {"source":"startup","model":"m"}`}},
		{"SessionStart", `"source":"compact"`, false, []string{`compaction {"phase":"after"}`, `session_start {"source":"compact"}`}},
		{"SessionEnd", `"reason":"clear"`, false, []string{`session_end {"reason":"clear"}`}},
		{"SessionEnd", `"x":1`, false, []string{`session_end {"reason":null}`}},
		{"Notification", `"message":"x"`, false, nil},
	} {
		t.Run(row.event+" "+row.fields, func(t *testing.T) {
			got := from(t, `{"session_id":"s","hook_event_name":"`+row.event+`",`+row.fields+`}`, all(), row.inTurn)
			var want []string
			for i, w := range row.want {
				section, data, _ := strings.Cut(w, " ")
				want = append(want, fmt.Sprintf(`{"v":1,"section":"%s","event":"%s",`+envelope+"%s}", section, row.event, 7+i, data))
			}
			if !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// TestOnlyWanted: an event's records that no rule selects are not made.
func TestOnlyWanted(t *testing.T) {
	const stop = `{"session_id":"s","hook_event_name":"SubagentStop","last_assistant_message":"x","agent_id":"a","agent_type":"t"}`
	for _, row := range []struct {
		want record.Set
		n    int
	}{
		{0, 0},
		{record.SetOf(record.Subagent), 1},
		{record.SetOf(record.AssistantResponse), 1},
		{record.SetOf(record.ToolCall), 0},
		{all(), 2},
	} {
		if got := from(t, stop, row.want, false); len(got) != row.n {
			t.Errorf("%v: %d records, want %d", row.want.List(), len(got), row.n)
		}
	}
}

// TestEnvelope: what the envelope makes of ids and paths from outside.
func TestEnvelope(t *testing.T) {
	got := from(t, `{"session_id":"a\"\u0000\ud800/../ü","hook_event_name":"SessionEnd","cwd":"/x\u000ay<","agent_id":"a1","prompt_id":"p\\","reason":"`+"\xff"+`"}`, all(), false)
	want := `{"v":1,"section":"session_end","event":"SessionEnd","source":"hook","ts":"2026-03-04T04:06:07.000000080Z",` +
		`"session":"a\"\u0000` + "\ufffd" + `/../ü","seq":7,"agent_id":"a1","agent_type":"unknown","project":"/home/dev/proj",` +
		`"cwd":"/x\ny<","prompt_id":"p\\","repaired":1,"data":{"reason":"` + "\ufffd" + `"}}`
	if len(got) != 1 || got[0] != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

// TestOrigin tells the client's own prompts from a person's, however spelled.
func TestOrigin(t *testing.T) {
	escaped := ""
	for _, c := range "<task-notification>" {
		escaped += fmt.Sprintf(`\u%04X`, c)
	}
	for prompt, want := range map[string]string{
		`"<task-notification>\n<task-id>1"`:              "task_notification",
		`"` + escaped + `"`:                              "task_notification",
		`"\u003ctask-notification\u003e"`:                "task_notification",
		`" \n\t<task-notification>"`:                     "task_notification",
		`"\u0020\u000a<task-notification>` + "\u00fc\"":  "task_notification",
		`"<task-notification"`:                           "human",
		`"<task-notificatio\u006e"`:                      "human",
		`"x <task-notification>"`:                        "human",
		`"\\u003ctask-notification>"`:                    "human",
		`"\"<task-notification>"`:                        "human",
		`""`:                                             "human",
		`"\\"`:                                           "human",
		`"` + strings.Repeat(`\u00fc`, 200) + `"`:        "human",
		`"` + strings.Repeat(`\\`, 200) + `"`:            "human",
		`"` + strings.Repeat(`x`, 160) + `\ud83d\ude00"`: "human",
		`["<task-notification>"]`:                        "human",
		`null`:                                           "human",
	} {
		got := from(t, `{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":`+prompt+`}`, all(), false)
		if len(got) != 1 || !strings.HasSuffix(got[0], `,"origin":"`+want+`"}}`) {
			t.Errorf("%s: %s", prompt, got)
		}
	}
}

// TestVocabulary: the events that are wired are those that yield something, and
// every section has its name.
func TestVocabulary(t *testing.T) {
	var wired []string
	for _, e := range wiring.Events() {
		wired = append(wired, e.Name)
	}
	if !slices.Equal(wired, record.Events()) {
		t.Errorf("wired on %v, known are %v", wired, record.Events())
	}
	var reached record.Set
	for _, e := range record.Events() {
		if record.Yields(e) == 0 {
			t.Errorf("%s yields nothing", e)
		}
		reached |= record.Yields(e)
		// What an event yields is what it says it can.
		for _, source := range []string{"startup", "compact"} {
			for _, inTurn := range []bool{false, true} {
				raw := `{"session_id":"s","hook_event_name":"` + e + `","prompt":"p","last_assistant_message":"m","source":"` + source + `"}`
				for _, rec := range from(t, raw, all(), inTurn) {
					var r struct{ Section string }
					if err := json.Unmarshal([]byte(rec), &r); err != nil {
						t.Fatal(err)
					}
					s, ok := record.ParseSection(r.Section)
					if !ok || !record.Yields(e).Has(s) {
						t.Errorf("%s yields a %s", e, r.Section)
					}
				}
			}
		}
	}
	for _, e := range []string{"", "WorktreeCreate", "Notification", "pretooluse"} {
		if record.Yields(e) != 0 {
			t.Errorf("%q yields %v", e, record.Yields(e).List())
		}
	}
	for _, s := range record.Sections() {
		back, ok := record.ParseSection(s.String())
		if !ok || back != s || s.String() == "unknown" {
			t.Errorf("%d is %q, read back as %d, %v", s, s, back, ok)
		}
		if !reached.Has(s) && s != record.WayEvent && s != record.SectionGap {
			t.Errorf("no event yields a %s", s)
		}
	}
	if _, ok := record.ParseSection("unknown"); ok || all().Has(record.Unknown) || record.Unknown.String() != "unknown" {
		t.Error("unknown counts as a section")
	}
}
