package wiring

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const waysPath = "/opt/ways/bin/ways"

func eventNames() []string {
	var names []string
	for _, e := range Events() {
		names = append(names, e.Name)
	}
	return names
}

// originals are settings files as people and tools leave them, none with an
// entry of ours. Each is wired, wired again, and unwired.
func originals() map[string]string {
	foreignHooks := `{
  "$schema": "https://json.schemastore.org/claude-code-settings.json",
  "env": {"A": "<b> & \u003c \/ \ud83d\ude00 é", "N": "1"},
  "zz": 1e3, "aa": 1.0, "big": 12345678901234567890.00,
  "hooks": {
    "Notification": [{"hooks": [{"type": "command", "command": "notify-send hi"}]}],
    "PreToolUse": [
      {
        "matcher": "Bash",
        "hooks": [
          {
            "type": "command",
            "command": "guard.sh && echo '<ok>'",
            "timeout": 5
          }
        ]
      }
    ],
    "SessionStart": [{"hooks": [{"type": "command", "command": "other hook sensors"}]}],
    "FutureEvent": {"not": "an array"}
  },
  "permissions": {
    "allow": [
      "Bash(ls:*)"
    ]
  }
}
`
	return map[string]string{
		"missing or empty":         "",
		"one newline":              "\n",
		"blank, CRLF":              " \r\n\t\r\n",
		"empty object":             "{}",
		"empty object, newline":    "{}\n",
		"empty object, CRLF":       "{}\r\n",
		"empty object, spaced":     "  { \n }  \n\n",
		"minified":                 `{"a":1,"b":[1,2]}`,
		"minified, one member":     `{"a":1}`,
		"one line, spaces":         `{ "a": 1, "b": 2 }`,
		"one line, space at colon": `{"a" : 1}`,
		"hooks empty":              `{"hooks":{}}`,
		"hooks empty, spaced":      "{\n  \"hooks\": {\n  },\n  \"x\": 1\n}",
		"event empty":              `{"hooks":{"PreToolUse":[]}}`,
		"event empty, spaced":      "{\n\t\"hooks\": {\n\t\t\"Stop\": [ ],\n\t\t\"PreCompact\": [\n\t\t]\n\t}\n}\n",
		"all events empty": `{"hooks":{"PreToolUse":[],"PostToolUse":[],"PostToolUseFailure":[ ],"UserPromptSubmit":[],"Stop":[],` +
			`"SubagentStart":[],"SubagentStop":[],"SessionStart":[],"SessionEnd":[],"PreCompact":[]}}`,
		"unwatched event, empty": `{"hooks": {"Notification": []}}`,
		"tabs":                   "{\n\t\"model\": \"x\",\n\t\"hooks\": {\n\t\t\"Stop\": [\n\t\t\t{\n\t\t\t\t\"hooks\": []\n\t\t\t}\n\t\t]\n\t}\n}",
		"four spaces, CRLF":      "{\r\n    \"a\": {\r\n        \"b\": 1\r\n    }\r\n}\r\n",
		"no indentation":         "{\n\"a\": 1,\n\"b\": 2\n}\n",
		"braces indented":        "  {\n    \"a\": 1\n  }\n",
		"comma first":            "{\n  \"a\": 1\n, \"b\": 2\n}\n",
		"space before comma":     "{\"a\": 1 ,\"b\": 2 }",
		"mixed lines":            "{ \"hooks\": {\n  \"Stop\": [{\"hooks\":[{\"type\":\"command\",\"command\":\"x\"}]}] } }",
		"foreign hooks":          foreignHooks,
		"foreign hooks, no end":  strings.TrimSuffix(foreignHooks, "\n"),
		"foreign, CRLF":          strings.ReplaceAll(foreignHooks, "\n", "\r\n"),
		"escaped names":          `{"ho\u006fks":{"Pre\u0054oolUse":[{"hooks":[{"type":"command","command":"a"}]}]}}`,
		"names twice elsewhere":  `{"a":1,"a":2,"env":{"x":1,"x":2}}`,
		"unpaired surrogate":     `{"a":"\ud800","\udfff":1}`,
		"line separators":        "{\"a\":\"\u2028\u2029\"}",
		"group with more keys":   `{"hooks":{"Stop":[{"hooks":[],"note":"mine"}]}}`,
		"only ways by name":      `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"/opt/sideways hook sensors"},{"type":"command","command":"ways hook scan"},{"type":"prompt","command":"ways hook sensors"},{"type":"command","command":"/x/ways","args":["hook","scan"]}]}]}}`,
		"deep":                   `{"x":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`,
		"bigger than a buffer":   `{"x":"` + strings.Repeat("é", 300_000) + `","hooks":{"Stop":[]}}`,
	}
}

// decode reads a settings text as a program would.
func decode(t *testing.T, text []byte) map[string]any {
	t.Helper()
	if isBlank(text) {
		return map[string]any{}
	}
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, text)
	}
	return v
}

func TestApplyAndRemoveGiveBackTheVeryBytes(t *testing.T) {
	h := Sensors(waysPath)
	for name, original := range originals() {
		t.Run(name, func(t *testing.T) {
			applied, err := Apply([]byte(original), h)
			if err != nil {
				t.Fatal(err)
			}
			if !applied.Changed || !slices.Equal(applied.Added, eventNames()) || applied.Updated != nil {
				t.Fatalf("changed %v, added %v, updated %v", applied.Changed, applied.Added, applied.Updated)
			}
			decode(t, applied.Settings)

			again, err := Apply(applied.Settings, h)
			if err != nil || again.Changed || string(again.Settings) != string(applied.Settings) {
				t.Fatalf("the second Apply changed something: %v %v", again.Changed, err)
			}

			// The Undo goes through a file, as it does in a ledger.
			kept, err := json.Marshal(applied.Undo)
			if err != nil {
				t.Fatal(err)
			}
			var undo Undo
			if err := json.Unmarshal(kept, &undo); err != nil {
				t.Fatal(err)
			}
			removed, err := Remove(applied.Settings, undo)
			if err != nil {
				t.Fatal(err)
			}
			if string(removed.Settings) != original {
				t.Errorf("after Remove:\n%q\nwant\n%q\nwas wired as\n%s", removed.Settings, original, applied.Settings)
			}
			if len(removed.Removed) != len(Events()) {
				t.Errorf("removed from %v", removed.Removed)
			}

			twice, err := Remove(removed.Settings, Undo{})
			if err != nil || twice.Changed || string(twice.Settings) != original {
				t.Errorf("the second Remove changed something: %v", err)
			}
		})
	}
}

// What a program reads of the file differs in our entries alone.
func TestApplyAddsTheEntryAndNothingElse(t *testing.T) {
	entry := map[string]any{"type": "command", "command": waysPath, "args": []any{"hook", "sensors"}, "timeout": 15.0}
	for name, original := range originals() {
		t.Run(name, func(t *testing.T) {
			applied, err := Apply([]byte(original), Sensors(waysPath))
			if err != nil {
				t.Fatal(err)
			}
			want := decode(t, []byte(original))
			hooks, _ := want["hooks"].(map[string]any)
			if hooks == nil {
				hooks = map[string]any{}
				want["hooks"] = hooks
			}
			for _, e := range Events() {
				group := map[string]any{"hooks": []any{entry}}
				if e.Matcher != "" {
					group["matcher"] = e.Matcher
				}
				groups, _ := hooks[e.Name].([]any)
				hooks[e.Name] = append(groups, group)
			}
			if got := decode(t, applied.Settings); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		})
	}
}

func TestApplyWritesInTheFilesOwnStyle(t *testing.T) {
	for _, row := range []struct{ name, original, golden string }{
		{"new file", "", "new.json"},
		{"tabs", "{\n\t\"model\": \"x\"\n}\n", "tabs.json"},
		{"minified", `{"a":1}`, "minified.json"},
		{"one line", `{ "a": 1, "b": 2 }`, "oneline.json"},
		{"groups of others", "{\n    \"hooks\": {\n        \"Stop\": [\n            {\"hooks\": [{\"type\": \"command\", \"command\": \"x\"}]}\n        ],\n        \"PreCompact\": []\n    }\n}\n", "groups.json"},
	} {
		t.Run(row.name, func(t *testing.T) {
			want, err := os.ReadFile(filepath.Join("testdata", row.golden))
			if err != nil {
				t.Fatal(err)
			}
			got, err := Apply([]byte(row.original), Sensors(waysPath))
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Settings) != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got.Settings, want)
			}
		})
	}
}

func TestApplyKeepsLineEnds(t *testing.T) {
	for name, original := range originals() {
		if !strings.Contains(original, "\n") || strings.Contains(original, "\r") {
			continue
		}
		lf, err := Apply([]byte(original), Sensors(waysPath))
		if err != nil {
			t.Fatal(err)
		}
		crlf, err := Apply([]byte(strings.ReplaceAll(original, "\n", "\r\n")), Sensors(waysPath))
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.ReplaceAll(string(lf.Settings), "\n", "\r\n"); string(crlf.Settings) != want {
			t.Errorf("%s: got\n%q\nwant\n%q", name, crlf.Settings, want)
		}
	}
}

// The client saves its settings with JSON.stringify(…, null, 2), which Go's
// indenting equals here; a save by the client must not look like a change.
func TestNewFileIsWrittenAsTheClientWouldSaveIt(t *testing.T) {
	got, err := Apply(nil, Sensors(waysPath))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSuffix(string(got.Settings), "\n")
	var again strings.Builder
	enc := json.NewEncoder(&again)
	enc.SetIndent("", "  ")
	if err := enc.Encode(json.RawMessage(text)); err != nil {
		t.Fatal(err)
	}
	if again.String() != string(got.Settings) {
		t.Errorf("got\n%s\nwant\n%s", got.Settings, again.String())
	}
}

func TestEventsNeverWired(t *testing.T) {
	want := []Event{
		{"PreToolUse", "*"},
		{"PostToolUse", "*"},
		{"PostToolUseFailure", "*"},
		{"UserPromptSubmit", ""},
		{"Stop", ""},
		{"SubagentStart", ""},
		{"SubagentStop", ""},
		{"SessionStart", ""},
		{"SessionEnd", ""},
		{"PreCompact", ""},
	}
	if got := Events(); !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	for name, original := range originals() {
		applied, err := Apply([]byte(original), Sensors(waysPath))
		if err != nil {
			t.Fatal(err)
		}
		for _, never := range []string{"WorktreeCreate", "MessageDisplay"} {
			if strings.Contains(string(applied.Settings), never) {
				t.Errorf("%s: wired on %s", name, never)
			}
		}
	}
}

// An entry of ours that is there is brought up to date where it stands.
func TestApplyUpdatesInPlace(t *testing.T) {
	base, err := Apply([]byte("{}"), Sensors(waysPath))
	if err != nil {
		t.Fatal(err)
	}
	stop := "\"Stop\": [\n      {\n        \"hooks\": [\n          {\n            \"type\": \"command\",\n            \"command\": \"/opt/ways/bin/ways\",\n            \"args\": [\n              \"hook\",\n              \"sensors\"\n            ],\n            \"timeout\": 15\n          }\n        ]\n      }\n    ]"
	if !strings.Contains(string(base.Settings), stop) {
		t.Fatalf("the Stop event is not written as this test thinks:\n%s", base.Settings)
	}
	entry := func(s string) string { return `"Stop": [{"hooks": [` + s + `]}]` }
	for _, row := range []struct{ name, before, after string }{
		{
			"older path",
			entry(`{"type": "command", "command": "/old/ways", "args": ["hook", "sensors"], "timeout": 15}`),
			entry(`{"type": "command", "command": "/opt/ways/bin/ways", "args": ["hook", "sensors"], "timeout": 15}`),
		},
		{
			"bare name",
			entry(`{"type":"command","command":"ways","args":["hook","sensors"],"timeout":15}`),
			entry(`{"type":"command","command":"/opt/ways/bin/ways","args":["hook","sensors"],"timeout":15}`),
		},
		{
			"older timeout, own keys kept",
			entry(`{"timeout": 60, "async": true, "type": "command", "command": "/opt/ways/bin/ways", "args": ["hook", "sensors"]}`),
			entry(`{"timeout": 15, "async": true, "type": "command", "command": "/opt/ways/bin/ways", "args": ["hook", "sensors"]}`),
		},
		{
			"no timeout",
			entry(`{"type": "command", "command": "/opt/ways/bin/ways", "args": ["hook", "sensors"]}`),
			entry(`{"type": "command", "command": "/opt/ways/bin/ways", "args": ["hook", "sensors"], "timeout": 15}`),
		},
		{
			"shell form",
			entry(`{"type": "command", "command": "/old/ways hook sensors", "timeout": 15}`),
			entry(`{"type": "command", "command": "/opt/ways/bin/ways", "args": ["hook", "sensors"], "timeout": 15}`),
		},
		{
			"shell form, command last, no timeout",
			entry(`{"type":"command","command":"ways hook sensors"}`),
			entry(`{"type":"command","command":"/opt/ways/bin/ways","args":["hook","sensors"],"timeout":15}`),
		},
		{
			"shell form, quoted",
			entry(`{"type": "command", "command": "\"/my dir/ways\" hook  sensors ", "timeout": 15}`),
			entry(`{"type": "command", "command": "/opt/ways/bin/ways", "args": ["hook", "sensors"], "timeout": 15}`),
		},
		{
			"shell form, single quotes",
			entry(`{"type": "command", "command": "'/my dir/ways' hook sensors", "timeout": 15}`),
			entry(`{"type": "command", "command": "/opt/ways/bin/ways", "args": ["hook", "sensors"], "timeout": 15}`),
		},
		{
			"shell form, escaped space",
			entry(`{"type": "command", "command": "/my\\ dir/ways hook sensors", "timeout": 15}`),
			entry(`{"type": "command", "command": "/opt/ways/bin/ways", "args": ["hook", "sensors"], "timeout": 15}`),
		},
		{
			"lines",
			"\"Stop\": [\n      {\n        \"hooks\": [\n          {\n            \"type\": \"command\",\n            \"command\": \"ways hook sensors\"\n          }\n        ]\n      }\n    ]",
			stop,
		},
		{
			"in a group of the user's own, behind another entry",
			`"Stop": [{"matcher": "Bash|Edit", "hooks": [{"type": "command", "command": "x"}, {"type": "command", "command": "/old/ways", "args": ["hook", "sensors"], "timeout": 15}]}]`,
			`"Stop": [{"matcher": "Bash|Edit", "hooks": [{"type": "command", "command": "x"}, {"type": "command", "command": "/opt/ways/bin/ways", "args": ["hook", "sensors"], "timeout": 15}]}]`,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := strings.Replace(string(base.Settings), stop, row.before, 1)
			want := strings.Replace(string(base.Settings), stop, row.after, 1)
			got, err := Apply([]byte(before), Sensors(waysPath))
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Settings) != want {
				t.Errorf("got\n%s\nwant\n%s", got.Settings, want)
			}
			if !got.Changed || got.Added != nil || !slices.Equal(got.Updated, []string{"Stop"}) {
				t.Errorf("changed %v, added %v, updated %v", got.Changed, got.Added, got.Updated)
			}
			again, err := Apply(got.Settings, Sensors(waysPath))
			if err != nil || again.Changed {
				t.Errorf("twice is not once: %v", err)
			}
			removed, err := Remove(got.Settings, base.Undo)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(removed.Settings), "ways") {
				t.Errorf("left behind:\n%s", removed.Settings)
			}
		})
	}
}

// A longer command line of the user's that ends in ours is his: it counts as
// wired and stays.
func TestAUsersOwnCommandLineStays(t *testing.T) {
	for _, line := range []string{
		"A=1 ways hook sensors",
		"exec /x/ways hook sensors",
		"log.sh; ways hook sensors",
		"cd /x && '/my dir/ways' hook sensors",
	} {
		quotedLine := string(quoted(line))
		original := `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":` + quotedLine + `}]}]}}`
		got, err := Apply([]byte(original), Sensors(waysPath))
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(got.Added, "Stop") || got.Updated != nil {
			t.Errorf("%s: added %v, updated %v", line, got.Added, got.Updated)
		}
		w, err := Inspect(got.Settings, Sensors(waysPath))
		if err != nil || !w.Complete() || !slices.Equal(w.Wrapped, []string{"Stop"}) {
			t.Errorf("%s: %+v %v", line, w, err)
		}
		removed, err := Remove(got.Settings, got.Undo)
		if err != nil || string(removed.Settings) != original {
			t.Errorf("%s: after Remove %s, %v", line, removed.Settings, err)
		}
	}
}

// What a user did between install and removal stays.
func TestRemoveAfterEdits(t *testing.T) {
	ours := `{"type":"command","command":"/opt/ways/bin/ways","args":["hook","sensors"],"timeout":15}`
	other := `{"type":"command","command":"x"}`
	for _, row := range []struct {
		name, before, after string
		undo                Undo
	}{
		{"entry behind ours", `{"hooks":{"Stop":[{"hooks":[` + ours + `,` + other + `]}]}}`, `{"hooks":{"Stop":[{"hooks":[` + other + `]}]}}`, Undo{}},
		{"entries around ours", `{"hooks":{"Stop":[{"hooks":[` + other + `, ` + ours + ` , ` + other + `]}]}}`, `{"hooks":{"Stop":[{"hooks":[` + other + ` , ` + other + `]}]}}`, Undo{}},
		{"twice in a group", `{"hooks":{"Stop":[{"hooks":[` + ours + `,` + ours + `,` + other + `]}]}}`, `{"hooks":{"Stop":[{"hooks":[` + other + `]}]}}`, Undo{}},
		{"group behind ours", `{"hooks":{"Stop":[{"hooks":[` + ours + `]},{"hooks":[` + other + `]}]}}`, `{"hooks":{"Stop":[{"hooks":[` + other + `]}]}}`, Undo{}},
		{"event behind ours", `{"hooks":{"Stop":[{"hooks":[` + ours + `]}], "Other":[]}}`, `{"hooks":{"Other":[]}}`, Undo{}},
		{"moved and alone", `{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[` + ours + `]}]},"a":1}`, `{"a":1}`, Undo{}},
		{"group with a note", `{"hooks":{"Stop":[{"note":1,"hooks":[ ` + ours + ` ]}]}}`, `{"hooks":{"Stop":[{"note":1,"hooks":[]}]}}`, Undo{}},
		{"on an event we never wire", `{"hooks":{"WorktreeCreate":[{"hooks":[` + ours + `]}]}}`, `{}`, Undo{}},
		{"member behind hooks", `{"hooks":{"Stop":[{"hooks":[` + ours + `]}]},"a":1}`, `{"a":1}`, Undo{Document: new(string)}},
		{"hooks were there, empty", `{"a":1,"hooks":{"Stop":[{"hooks":[` + ours + `]}]}}`, `{"a":1,"hooks":{ }}`, Undo{Empty: map[string]string{"hooks": " "}}},
		{"event was there, empty", `{"hooks":{"Stop":[{"hooks":[` + ours + `]}],"PreCompact":[{"hooks":[` + ours + `]}]}}`, `{"hooks":{"Stop":[ ]}}`, Undo{Empty: map[string]string{"hooks/Stop": " "}}},
		{"malformed event of a newer client", `{"hooks":{"New":7,"Stop":[{"hooks":[` + ours + `]}]}}`, `{"hooks":{"New":7}}`, Undo{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := Remove([]byte(row.before), row.undo)
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Settings) != row.after || !got.Changed {
				t.Errorf("got  %s\nwant %s", got.Settings, row.after)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for _, row := range []struct {
		name, text   string
		line, column int
		says         string
	}{
		{"line comment", "{\n  // mine\n  \"a\": 1\n}", 2, 3, "comment"},
		{"block comment", "{\"a\": 1 /* x */}", 1, 9, "comment"},
		{"comment at the top", "/* x */ {}", 1, 1, "comment"},
		{"comment at the end", "{}\n// x", 2, 1, "comment"},
		{"comment after a comma", "{\"a\": 1, // x\n \"b\": 2}", 1, 10, "comment"},
		{"BOM", "\ufeff{}", 1, 1, "byte order mark"},
		{"UTF-16", "\xff\xfe{\x00}\x00", 1, 1, "UTF-16"},
		{"trailing comma in object", "{\n  \"é\": 1,\n}", 2, 9, "trailing comma"},
		{"trailing comma in array", `{"a": [1, 2, ]}`, 1, 12, "trailing comma"},
		{"cut off", `{"a": {"b": 1`, 1, 14, "ends too early"},
		{"cut off in a string", "{\n\"a", 2, 3, "ends too early"},
		{"single quotes", `{'a': 1}`, 1, 2, "broken"},
		{"no colon", `{"a" 1}`, 1, 6, "broken"},
		{"two objects", "{}\n{}", 2, 1, "more after the end"},
		{"array", `[]`, 1, 1, "an array, not an object"},
		{"null", "\nnull", 2, 1, "null, not an object"},
		{"string", `"x"`, 1, 1, "a string, not an object"},
		{"hooks twice", `{"hooks": {}, "hooks": {}}`, 1, 15, `"hooks" stands here a second time`},
		{"hooks twice, escaped", `{"hooks": {}, "\u0068ooks": {}}`, 1, 15, `"hooks" stands here a second time`},
		{"event twice", "{\"hooks\": {\"Stop\": [],\n\"Stop\": []}}", 2, 1, `"Stop" stands here a second time`},
		{"list twice", `{"hooks":{"Stop":[{"hooks":[],"hooks":[]}]}}`, 1, 31, `"hooks" stands here a second time`},
		{"command twice", `{"hooks":{"Stop":[{"hooks":[{"command":"a","command":"b"}]}]}}`, 1, 44, `"command" stands here a second time`},
		{"hooks is an array", `{"hooks": []}`, 1, 11, `"hooks" is an array, not an object`},
		{"hooks is null", `{"hooks": null}`, 1, 11, `"hooks" is null, not an object`},
		{"event is an object", `{"hooks": {"Stop": {}}}`, 1, 20, `hooks."Stop" is an object, not an array`},
		{"group is a string", `{"hooks": {"Stop": ["x"]}}`, 1, 21, `hooks."Stop"[0] is a string, not an object`},
		{"group without hooks", `{"hooks": {"Stop": [{"matcher": "*"}]}}`, 1, 21, `has no "hooks" array`},
		{"list is an object", `{"hooks": {"Stop": [{"hooks": {}}]}}`, 1, 31, `hooks."Stop"[0].hooks is an object, not an array`},
		{"entry is a number", `{"hooks": {"Stop": [{"hooks": [1]}]}}`, 1, 32, `hooks."Stop"[0].hooks[0] is a number, not an object`},
		{"NUL", "{\"a\": \"\x00\"}", 1, 8, "NUL"},
		{"file of NULs", "\x00\x00\x00", 1, 1, "NUL"},
		{"invalid UTF-8", "{\"a\": \"é\xff\"}", 1, 9, "0xff is not valid UTF-8"},
		{"too large", `{"a":"` + strings.Repeat("x", MaxSize) + `"}`, 0, 0, "larger than 10 MiB"},
		{"too deep", `{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, 1, 10_005, "depth"},
	} {
		t.Run(row.name, func(t *testing.T) {
			check := func(verb string, err error) {
				t.Helper()
				refusal, ok := errors.AsType[*Refusal](err)
				if !ok || !errors.Is(err, ErrRefused) {
					t.Fatalf("%s: %v is no refusal", verb, err)
				}
				if refusal.Line != row.line || refusal.Column != row.column || !strings.Contains(refusal.Problem, row.says) || refusal.Remedy == "" {
					t.Errorf("%s: %v, want %d:%d %s", verb, refusal, row.line, row.column, row.says)
				}
			}
			edit, err := Apply([]byte(row.text), Sensors(waysPath))
			check("Apply", err)
			if edit.Settings != nil {
				t.Error("a refused Apply gave a text")
			}
			_, err = Remove([]byte(row.text), Undo{})
			check("Remove", err)
			_, err = Inspect([]byte(row.text), Sensors(waysPath))
			check("Inspect", err)
		})
	}
}

func TestApplyRefusesAHookThatItCouldNotFindAgain(t *testing.T) {
	for _, h := range []Hook{
		Sensors("ways"),
		Sensors("bin/ways"),
		Sensors("/x/waysctl"),
		Sensors("/x\xff/ways"),
		Sensors("/x\x00/ways"),
		{Command: "/x/ways", Args: []string{"hook"}, Timeout: 15},
		{Command: "/x/ways", Args: []string{"hook", "sensors"}},
	} {
		if edit, err := Apply([]byte("{}"), h); err == nil || errors.Is(err, ErrRefused) || edit.Settings != nil {
			t.Errorf("%+v: %v", h, err)
		}
	}
}

func TestApplyEscapesThePath(t *testing.T) {
	path := "/a \"b\"\\c<d>&é\n/ways"
	got, err := Apply([]byte("{}"), Sensors(path))
	if err != nil {
		t.Fatal(err)
	}
	hooks := decode(t, got.Settings)["hooks"].(map[string]any)
	stop := hooks["Stop"].([]any)[0].(map[string]any)["hooks"].([]any)[0].(map[string]any)
	if stop["command"] != path {
		t.Errorf("command %q, want %q", stop["command"], path)
	}
}

func TestInspect(t *testing.T) {
	old := `{"type":"command","command":"/old/ways","args":["hook","sensors"],"timeout":15}`
	ours := `{"type":"command","command":"/opt/ways/bin/ways","args":["hook","sensors"],"timeout":15.0}`
	text := `{"disableAllHooks":true,"hooks":{
		"PreToolUse":[{"matcher":"Bash","hooks":[` + ours + `]}],
		"PostToolUse":[{"matcher":"*","hooks":[` + ours + `,` + old + `,{"type":"command","command":"x"}]}],
		"Stop":[{"hooks":[` + ours + `]},{"matcher":"Bash","hooks":[` + ours + `]}],
		"WorktreeCreate":[{"hooks":[` + ours + `]}],
		"Notification":[{"hooks":[{"type":"command","command":"y"}]}]}}`
	got, err := Inspect([]byte(text), Sensors(waysPath))
	if err != nil {
		t.Fatal(err)
	}
	want := Wiring{
		Wired:    []string{"PreToolUse", "Stop"},
		Missing:  []string{"PostToolUseFailure", "UserPromptSubmit", "SubagentStart", "SubagentStop", "SessionStart", "SessionEnd", "PreCompact"},
		Stale:    []Stale{{"PostToolUse", "/old/ways"}},
		Narrowed: []Narrowed{{"PreToolUse", "Bash"}},
		Extra:    []string{"WorktreeCreate"},
		Repeated: []string{"PostToolUse"},
		Commands: []string{waysPath, "/old/ways"},
		Foreign:  2,
		Disabled: true,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got.Complete() {
		t.Error("complete")
	}
	blank, err := Inspect(nil, Sensors(waysPath))
	if err != nil || !slices.Equal(blank.Missing, eventNames()) {
		t.Errorf("%+v %v", blank, err)
	}
}

func TestCheckProgram(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := CheckProgram(write("good", 0o755)); err != nil {
		t.Error(err)
	}
	for path, says := range map[string]string{
		write("plain", 0o644):        "not executable",
		dir:                          "not a file",
		filepath.Join(dir, "absent"): "no such file",
	} {
		if err := CheckProgram(path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", path, err, says)
		}
	}
}

func FuzzApplyRemove(f *testing.F) {
	for _, text := range originals() {
		if len(text) < 4096 {
			f.Add([]byte(text))
		}
	}
	ours := `{"type":"command","command":"/old/ways","args":["hook","sensors"],"timeout":1}`
	f.Add([]byte(`{"hooks":{"Stop":[{"hooks":[` + ours + `,{"type":"command","command":"ways hook sensors"}]}],"X":[{"hooks":[` + ours + `]}]}}`))
	f.Add([]byte("{\n// c\n}"))
	h := Sensors(waysPath)
	f.Fuzz(func(t *testing.T, text []byte) {
		given := string(text)
		applied, err := Apply(text, h)
		if string(text) != given {
			t.Fatal("Apply wrote into its argument")
		}
		if err != nil {
			if !errors.Is(err, ErrRefused) {
				t.Fatalf("%v is no refusal", err)
			}
			return
		}
		if !json.Valid(applied.Settings) {
			t.Fatalf("not JSON: %q", applied.Settings)
		}
		again, err := Apply(applied.Settings, h)
		if err != nil || again.Changed || string(again.Settings) != string(applied.Settings) {
			t.Fatalf("twice is not once: %v\n%q", err, applied.Settings)
		}
		removed, err := Remove(applied.Settings, applied.Undo)
		if err != nil {
			t.Fatal(err)
		}
		before, err := Inspect(text, h)
		if err != nil {
			t.Fatal(err)
		}
		if len(before.Commands) == 0 {
			if string(removed.Settings) != given {
				t.Fatalf("after Remove %q, want %q", removed.Settings, given)
			}
			return
		}
		// The text held entries of ours: with them gone from both, the rest is equal.
		clean, err := Remove(text, Undo{})
		if err != nil {
			t.Fatal(err)
		}
		rest, err := Remove(removed.Settings, Undo{})
		if err != nil || rest.Changed {
			t.Fatalf("Remove left something: %v", err)
		}
		wired, err := Apply(clean.Settings, h)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Remove(wired.Settings, wired.Undo)
		if err != nil || string(back.Settings) != string(clean.Settings) {
			t.Fatalf("after Remove %q, want %q, %v", back.Settings, clean.Settings, err)
		}
	})
}
