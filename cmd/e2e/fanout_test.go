package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ways/metrics/events"
)

// ruleText is one rule of a sensor file. Its dispatch is one line of YAML.
type ruleText struct {
	name, sections, dispatch string
	more                     []string
}

// sensors writes a user's sensor of several rules.
func (s site) sensors(t *testing.T, name string, rules ...ruleText) {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "spec: 1\nkind: ways\nname: %s\ndescription: A test.\nenabled: true\nrules:\n", name)
	for _, r := range rules {
		fmt.Fprintf(&text, "  - name: %s\n    sections: %s\n    dispatch:\n      %s\n", r.name, r.sections, r.dispatch)
		for _, line := range r.more {
			fmt.Fprintf(&text, "    %s\n", line)
		}
	}
	writeFile(t, filepath.Join(s.config, "sensors", name+".yaml"), []byte(text.String()))
}

// to is the dispatch to a file of that name below the site's home.
func (s site) to(name string) string {
	return fmt.Sprintf("file: {path: %q, format: jsonl}", filepath.Join(s.home, name))
}

// shell is the dispatch to a shell script.
func shell(script string) string {
	argv, _ := json.Marshal([]string{"/bin/sh", "-c", script}) // a string is always JSON, and JSON is YAML
	return "command: {argv: " + string(argv) + "}"
}

// counted is what `ways status --json` says of a rule.
type counted struct {
	Matched   uint64            `json:"matched"`
	Delivered uint64            `json:"delivered"`
	Failed    uint64            `json:"failed"`
	Refused   uint64            `json:"refused"`
	TimedOut  uint64            `json:"timed_out"`
	Killed    uint64            `json:"killed"`
	Dropped   uint64            `json:"dropped"`
	Spooled   uint64            `json:"spooled"`
	Dead      uint64            `json:"dead"`
	Retried   uint64            `json:"retried"`
	Panics    uint64            `json:"panics"`
	Reasons   map[string]uint64 `json:"reasons"`
}

// status is what `ways status --json` says of each rule.
func (s site) status(t *testing.T) map[string]counted {
	t.Helper()
	var view struct {
		Rules map[string]counted `json:"rules"`
	}
	out := s.run(t, "status", "--json")
	if err := json.Unmarshal(out, &view); err != nil {
		t.Fatalf("status: %v: %.500s", err, out)
	}
	return view.Rules
}

// wantStatus compares the counters of rules; those that are not named are not
// looked at.
func (s site) wantStatus(t *testing.T, want map[string]counted) {
	t.Helper()
	got := s.status(t)
	for _, rule := range slices.Sorted(maps.Keys(want)) {
		if fmt.Sprintf("%+v", got[rule]) != fmt.Sprintf("%+v", want[rule]) {
			t.Errorf("%s:\ncounted %+v,\nwant    %+v", rule, got[rule], want[rule])
		}
	}
}

// eventLog is every event of one kind about a rule, oldest first.
func (s site) eventLog(t *testing.T, kind, rule string) []events.Event {
	t.Helper()
	var list []events.Event
	for _, line := range logLines(t, filepath.Join(s.dirs.State, events.Name)) {
		var e events.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("the event log: %v: %.200s", err, line)
		}
		if e.Event == kind && e.Sensor+"/"+e.Rule == rule {
			list = append(list, e)
		}
	}
	return list
}

// logLines are the whole lines of a log; none when there is no log.
func logLines(t *testing.T, path string) [][]byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	list := bytes.Split(raw, []byte("\n"))
	return list[:len(list)-1]
}

// ids are the tool calls in a log, in its order.
func ids(t *testing.T, log string) []string {
	t.Helper()
	var list []string
	for _, r := range lines(t, log) {
		list = append(list, r.Data.ID)
	}
	return list
}

// end fires the session's last event, and waits until its dispatcher is gone.
func (s site) end(t *testing.T, session string) {
	t.Helper()
	s.fire(t, event(session, "SessionEnd", `,"reason":"other"`))
	s.waitGone(t, session)
}

// TestFanOut: every rule that matches a record delivers it, whatever becomes of
// it with the others.
func TestFanOut(t *testing.T) {
	for _, row := range []struct {
		name, second string
		want         counted
		lines        int
	}{
		{"all deliver", "", counted{Matched: 1, Delivered: 1}, 1},
		{"one fails", shell("exit 3"), counted{Matched: 1, Failed: 1, Reasons: map[string]uint64{"exit_3": 1}}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := bareSite(t, shortIdle)
			if row.second == "" {
				row.second = s.to("second")
			}
			s.sensors(t, "three",
				ruleText{name: "first", sections: "[tool_call]", dispatch: s.to("first")},
				ruleText{name: "second", sections: "[tool_call]", dispatch: row.second},
				ruleText{name: "third", sections: "[tool_call]", dispatch: s.to("third")},
			)
			s.fire(t, call("s", "t1", 10))
			s.end(t, "s")
			for log, n := range map[string]int{"first": 1, "second": row.lines, "third": 1} {
				if got := ids(t, filepath.Join(s.home, log)); !slices.Equal(got, []string{"t1"}[:n]) {
					t.Errorf("%s holds %v, want %d record", log, got, n)
				}
			}
			fine := counted{Matched: 1, Delivered: 1}
			s.wantStatus(t, map[string]counted{"three/first": fine, "three/second": row.want, "three/third": fine})
		})
	}
}

// TestConditionsThroughTheProduct runs every operator and every wildcard once,
// each as a rule of its own over the same calls.
func TestConditionsThroughTheProduct(t *testing.T) {
	s := bareSite(t, shortIdle)
	calls := []struct{ id, tool, input string }{
		{"ls", "Bash", `{"command":"ls -l /tmp","timeout":1000}`},
		{"rm", "Bash", `{"command":"rm -rf build","timeout":600000}`},
		{"read", "Read", `{"file_path":"/home/dev/notes.md"}`},
		{"edit", "MultiEdit", `{"file_path":"/home/dev/main.go","edits":[{"old_string":"a"},{"old_string":"secret plan"}]}`},
		{"mcp", "mcp__db__query", `{"sql":"select 1","deep":{"deeper":{"limit":7}}}`},
	}
	rows := []struct {
		name, where, match string
		want               []string
	}{
		{"plain", "data.name: Bash", "", []string{"ls", "rm"}},
		{"glob", "data.name: 'mcp__*'", "", []string{"mcp"}},
		{"glob-one", "data.name: 'Rea?'", "", []string{"read"}},
		{"glob-set", "data.name: '[BR]*'", "", []string{"ls", "rm", "read"}},
		{"equals", "data.name: {equals: 'mcp__*'}", "", nil},
		{"equals-it", "data.name: {equals: Read}", "", []string{"read"}},
		{"not", "data.name: {not: Bash}", "", []string{"read", "edit", "mcp"}},
		{"not-missing", "data.input.command: {not: x}", "", []string{"ls", "rm"}},
		{"in", "data.name: {in: [Read, MultiEdit]}", "", []string{"read", "edit"}},
		{"contains", "data.input.command: {contains: '-rf'}", "", []string{"rm"}},
		{"like", "data.input.file_path: {like: '*.go'}", "", []string{"edit"}},
		{"matches", "data.input.command: {matches: '^(ls|cat) '}", "", []string{"ls"}},
		{"above", "data.input.timeout: {above: 1000}", "", []string{"rm"}},
		{"below", "data.input.timeout: {below: 600000}", "", []string{"ls"}},
		{"between", "data.input.timeout: {above: 999, below: 600000}", "", []string{"ls"}},
		{"property", "'data.input.*': {contains: notes}", "", []string{"read"}},
		{"element", "'data.input.edits[1].old_string': 'secret*'", "", []string{"edit"}},
		{"elements", "'data.input.edits[*].old_string': a", "", []string{"edit"}},
		{"descend", "'data..limit': {equals: 7}", "", []string{"mcp"}},
		{"root", "'$.data.name': Read", "", []string{"read"}},
		{"any", "{data.name: Read, data.input.sql: '*'}", "any", []string{"read", "mcp"}},
		{"all", "{data.name: Bash, data.input.timeout: {above: 1000}}", "all", []string{"rm"}},
	}
	var rules []ruleText
	for _, row := range rows {
		where := row.where
		if !strings.HasPrefix(where, "{") {
			where = "{" + where + "}"
		}
		more := []string{"where: " + where}
		if row.match != "" {
			more = append(more, "match: "+row.match)
		}
		rules = append(rules, ruleText{name: row.name, sections: "[tool_call]", dispatch: s.to(row.name), more: more})
	}
	s.sensors(t, "where", rules...)
	for _, c := range calls {
		s.fire(t, fmt.Sprintf(`{"session_id":"s","hook_event_name":"PreToolUse","cwd":"/","tool_name":%q,"tool_use_id":%q,"tool_input":%s}`, c.tool, c.id, c.input))
	}
	s.end(t, "s")
	for _, row := range rows {
		if got := ids(t, filepath.Join(s.home, row.name)); !slices.Equal(got, row.want) {
			t.Errorf("%s, %s: took %v, want %v", row.name, row.where, got, row.want)
		}
		n := uint64(len(row.want))
		if got := s.status(t)["where/"+row.name]; got.Matched != n || got.Delivered != n {
			t.Errorf("%s: matched %d and delivered %d, want %d", row.name, got.Matched, got.Delivered, n)
		}
	}
}
