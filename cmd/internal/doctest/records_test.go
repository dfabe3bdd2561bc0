package doctest

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"ways/hooks/record"
)

// recordSchema is docs/records.schema.json.
func recordSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile(filepath.Join(root, "docs", "records.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// goldenRecords are the records that the recorded sessions yield. The golden
// logs have a word in place of each time.
func goldenRecords(t *testing.T) []map[string]any {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(root, "cmd", "e2e", "testdata", "golden", "*.jsonl"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no golden logs: %v", err)
	}
	var all []map[string]any
	for _, log := range logs {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var r map[string]any
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatalf("%s: %v", log, err)
			}
			if r["ts"] != "TIME" {
				t.Fatalf("%s: the time is %v", log, r["ts"])
			}
			r["ts"] = "2026-11-30T21:00:04.688661938Z"
			all = append(all, r)
		}
	}
	return all
}

func TestRecordedSessionsValidate(t *testing.T) {
	schema := recordSchema(t)
	for _, r := range goldenRecords(t) {
		if err := schema.Validate(r); err != nil {
			t.Errorf("%v\n%v", r, err)
		}
	}
}

// The schema knows every section, and the page documents each.
func TestSchemaKnowsEverySection(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "records.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Properties struct {
			Section struct{ Enum []string }
		}
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	var want []string
	p := readPage(t, "docs/records.md")
	for _, section := range record.Sections() {
		want = append(want, section.String())
		if _, ok := p.section(section.String()); !ok {
			t.Errorf("docs/records.md has no section on %s", section)
		}
	}
	// No rule selects checkpoints: a rule with a chain sends them to another.
	want = append(want, "checkpoint")
	if _, ok := p.section("checkpoint"); !ok {
		t.Error("docs/records.md has no section on checkpoint")
	}
	if !slices.Equal(s.Properties.Section.Enum, want) {
		t.Errorf("the schema has %q, the sections are %q", s.Properties.Section.Enum, want)
	}
}

// Every record in docs/records.md is one of a recorded session, but for its time
// and for what a rule adds.
func TestExamplesAreReal(t *testing.T) {
	p := readPage(t, "docs/records.md")
	strip := func(r map[string]any) map[string]any {
		r = maps.Clone(r)
		for _, key := range []string{"ts", "rule", "rule_seq"} {
			delete(r, key)
		}
		return r
	}
	seen := map[string]bool{}
	// No recorded session lost anything.
	gap := record.FromGap(record.Gap{Reason: "queue_full", Rule: "team-audit/collector"}, 3,
		"abe0a10f-62cb-40c8-bc3f-b36f53ea1f62", "/home/dev/proj", time.Now())
	var lost map[string]any
	if err := json.Unmarshal(gap.Append(nil, 22), &lost); err != nil {
		t.Fatal(err)
	}
	golden := append(goldenRecords(t), lost)
	for _, b := range p.blocks {
		var r map[string]any
		if b.lang != "json" || json.Unmarshal([]byte(p.text(b)), &r) != nil || r["section"] == nil {
			continue
		}
		seen[r["section"].(string)] = true
		if !slices.ContainsFunc(golden, func(g map[string]any) bool { return reflect.DeepEqual(strip(g), strip(r)) }) {
			t.Errorf("%s:%d: no recorded session yields this record", p.path, b.from+1)
		}
	}
	for _, s := range record.Sections() {
		// Nothing yields a way_event yet, which the page says.
		if s != record.WayEvent && !seen[s.String()] {
			t.Errorf("docs/records.md has no example of %s", s)
		}
	}
}

// Each row is a change of a good record that must not pass, or must.
func TestSchemaRefuses(t *testing.T) {
	schema := recordSchema(t)
	const call = `{"v":1,"section":"tool_call","event":"PreToolUse","source":"hook","ts":"2026-11-30T21:00:04.688661938Z",` +
		`"session":"s","seq":1,"agent_id":"main","agent_type":"main","project":"/p","cwd":"/p",` +
		`"data":{"id":"t","name":"Bash","input":{"command":"ls"}},"rule":"a/b","rule_seq":1}`
	result := strings.NewReplacer(`"tool_call"`, `"tool_result"`, `"PreToolUse"`, `"PostToolUse"`,
		`"input":{"command":"ls"}`, `"status":"ok","output":"x"`).Replace(call)
	prompt := strings.NewReplacer(`"tool_call"`, `"user_prompt"`, `"PreToolUse"`, `"UserPromptSubmit"`,
		`{"id":"t","name":"Bash","input":{"command":"ls"}}`, `{"prompt":"x","origin":"human"}`).Replace(call)
	gap := strings.NewReplacer(`"tool_call"`, `"gap"`, `"PreToolUse"`, `"Gap"`, `"hook"`, `"dispatcher"`,
		`{"id":"t","name":"Bash","input":{"command":"ls"}}`, `{"reason":"damaged","count":1}`).Replace(call)
	for _, c := range []struct {
		name, record, from, to string
		ok                     bool
	}{
		{"a call", call, "", "", true},
		{"a result", result, "", "", true},
		{"a prompt", prompt, "", "", true},
		{"a gap", gap, "", "", true},
		{"a gap of a rule", gap, `"count":1`, `"count":1,"rule":"a/b"`, true},
		{"a gap of nothing", gap, `"count":1`, `"count":0`, false},
		{"a gap without reason", gap, `"reason":"damaged",`, ``, false},
		{"an unknown field", call, `"seq":1`, `"seq":1,"later":[1]`, true},
		{"an unknown field of the data", call, `"id":"t"`, `"id":"t","later":{}`, true},
		{"masked", call, `"rule_seq":1`, `"rule_seq":1,"redacted":{"aws-access-token":2}`, true},
		{"repaired", call, `"seq":1`, `"seq":1,"repaired":3`, true},
		{"a test record", call, `"rule_seq":1`, `"rule_seq":1,"test":true`, true},
		{"what a client left out is null", call, `"id":"t"`, `"id":null`, true},
		{"no version", call, `"v":1,`, ``, false},
		{"another version", call, `"v":1`, `"v":2`, false},
		{"version as text", call, `"v":1`, `"v":"1"`, false},
		{"no section", call, `"section":"tool_call",`, ``, false},
		{"an unknown section", call, `"tool_call"`, `"tool"`, false},
		{"no session", call, `"session":"s",`, ``, false},
		{"a session that is a number", call, `"session":"s"`, `"session":1`, false},
		{"no number", call, `"seq":1,`, ``, false},
		{"number zero", call, `"seq":1`, `"seq":0`, false},
		{"half a number", call, `"seq":1`, `"seq":1.5`, false},
		{"a number as text", call, `"seq":1`, `"seq":"1"`, false},
		{"no time", call, `"ts":"2026-11-30T21:00:04.688661938Z",`, ``, false},
		{"a time not in UTC", call, `938Z`, `938+01:00`, false},
		{"a time that is none", call, `2026-11-30T`, `2026-13-30T`, false},
		{"an unknown source", call, `"source":"hook"`, `"source":"guess"`, false},
		{"no agent", call, `"agent_id":"main",`, ``, false},
		{"a project that is null", call, `"project":"/p"`, `"project":null`, false},
		{"no data", call, `"data":`, `"date":`, false},
		{"data that is a list", call, `{"id":"t","name":"Bash","input":{"command":"ls"}}`, `[]`, false},
		{"a call without a name", call, `"name":"Bash",`, ``, false},
		{"a call without input", call, `,"input":{"command":"ls"}`, ``, false},
		{"an unknown status", result, `"status":"ok"`, `"status":"fine"`, false},
		{"an ok result without output", result, `,"output":"x"`, ``, false},
		{"an error without its text", result, `"ok","output"`, `"error","output"`, false},
		{"a duration as text", result, `"output":"x"`, `"output":"x","duration_ms":"1"`, false},
		{"a prompt without origin", prompt, `,"origin":"human"`, ``, false},
		{"a rule without its sensor", call, `"rule":"a/b"`, `"rule":"b"`, false},
		{"a count of nothing", call, `"rule_seq":1`, `"rule_seq":1,"redacted":{"jwt":0}`, false},
		{"nothing masked", call, `"rule_seq":1`, `"rule_seq":1,"redacted":{}`, false},
		{"test false", call, `"rule_seq":1`, `"rule_seq":1,"test":false`, false},
		{"repaired nothing", call, `"seq":1`, `"seq":1,"repaired":0`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(c.record, c.from) {
				t.Fatalf("the record does not hold %s", c.from)
			}
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(c.record, c.from, c.to, 1)))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(v); (err == nil) != c.ok {
				t.Errorf("error %v, want valid: %v", err, c.ok)
			}
		})
	}
}
