package schema

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"ways/config/plan"
	"ways/hooks/record"
)

func both() []Key { return slices.Concat(Sensor(), Settings()) }

// Every row of the tables must say what the code that reads it relies on.
func TestTablesAreWhole(t *testing.T) {
	for _, keys := range [][]Key{Sensor(), Settings()} {
		seen := map[string]Key{}
		for _, k := range keys {
			if _, twice := seen[k.Name]; twice {
				t.Errorf("%s stands twice", k.Name)
			}
			seen[k.Name] = k
			if k.Short == "" || !strings.HasSuffix(k.Short, ".") || strings.Contains(k.Short, "\n") {
				t.Errorf("%s: its short text must be one sentence: %q", k.Name, k.Short)
			}
			if len(k.Scope) == 0 {
				t.Errorf("%s: no layer may set it", k.Name)
			}
			if parent := strings.TrimSuffix(k.Parent(), "[]"); parent != "" {
				if p, ok := seen[parent]; !ok || p.Type != Group && p.Type != Rules && p.Type != Masks && p.Type != Allows {
					t.Errorf("%s: its parent does not stand before it", k.Name)
				}
			}
			if (k.Type == Choice) != (len(k.Choices) > 0) {
				t.Errorf("%s: a choice and only a choice has choices", k.Name)
			}
			if (k.Type == Int || k.Type == Number || k.Type == Duration) && (k.Max == 0 || k.Min > k.Max) {
				t.Errorf("%s: range %d to %d", k.Name, k.Min, k.Max)
			}
			if k.Default != "" {
				if _, err := k.Parse(k.Default); err != nil {
					t.Errorf("%s: its default: %v", k.Name, err)
				}
				if k.Required {
					t.Errorf("%s: required, and has a default", k.Name)
				}
			}
		}
	}
}

// What design §5, §10 of the seed and the plan say the values are.
func TestOwnedValues(t *testing.T) {
	table := NewTable(Sensor())
	for name, want := range map[string]string{
		"enabled": "true", "rules[].enabled": "true", "rules[].match": "all", "rules[].mode": string(plan.Async),
		"rules[].timeout": "5s", "rules[].queue": "1000", "rules[].delivery": string(plan.BestEffort),
		"rules[].chain": "false", "rules[].redact": string(plan.RedactSecrets),
		"rules[].dispatch.file.format": "jsonl", "rules[].dispatch.command.input": "stdin",
	} {
		k, ok := table.Key(name)
		if !ok || k.Default != want {
			t.Errorf("%s: default %q, want %q", name, k.Default, want)
		}
	}
	for name, want := range map[string][]string{
		"rules[].mode":     {string(plan.Async), string(plan.Blocking)},
		"rules[].delivery": {string(plan.BestEffort), string(plan.AtLeastOnce)},
		"rules[].redact":   {string(plan.RedactSecrets), string(plan.RedactNone)},
	} {
		if k, _ := table.Key(name); !slices.Equal(k.Choices, want) {
			t.Errorf("%s: %v, want %v", name, k.Choices, want)
		}
	}
	sections, _ := table.Key("rules[].sections")
	for _, s := range record.Sections() {
		if !strings.Contains(sections.Long, "`"+s.String()+"`") {
			t.Errorf("the text on sections leaves out %s", s)
		}
	}
}

// Only the user may say whom the user trusts.
func TestSettingsScope(t *testing.T) {
	for _, k := range Settings() {
		if !slices.Equal(k.Scope, []plan.Layer{plan.User}) {
			t.Errorf("%s may be set by %v", k.Name, k.Scope)
		}
	}
}

func TestTable(t *testing.T) {
	table := NewTable(Sensor())
	if got := table.Children("rules[].dispatch"); !slices.Equal(got, []string{"file", "http", "command"}) {
		t.Errorf("children: %v", got)
	}
	if got := table.Children(""); !slices.Equal(got, []string{"spec", "kind", "name", "description", "enabled", "rules"}) {
		t.Errorf("top: %v", got)
	}
	if _, ok := table.Key("rules[].dispatch.file.pat"); ok {
		t.Error("a key that is none was found")
	}
	if got := len(table.Under("rules[].dispatch.http")); got != 3 {
		t.Errorf("%d keys below http", got)
	}
}

func TestParse(t *testing.T) {
	table := NewTable(both())
	for _, row := range []struct {
		key, text string
		want      Value
	}{
		{"enabled", "true", Value{Text: "true", Bool: true}},
		{"enabled", "false", Value{Text: "false"}},
		{"spec", "1", Value{Text: "1", Int: 1}},
		{"rules[].queue", "1", Value{Text: "1", Int: 1}},
		{"rules[].queue", "1000000", Value{Text: "1000000", Int: 1_000_000}},
		{"rules[].timeout", "1ms", Value{Text: "1ms", Duration: time.Millisecond}},
		{"rules[].timeout", "1h", Value{Text: "1h", Duration: time.Hour}},
		{"rules[].timeout", "1m30s", Value{Text: "1m30s", Duration: 90 * time.Second}},
		{"rules[].timeout", "0.5s", Value{Text: "0.5s", Duration: 500 * time.Millisecond}},
		{"rules[].mode", "blocking", Value{Text: "blocking"}},
		{"name", "a", Value{Text: "a"}},
		{"name", "0-9-", Value{Text: "0-9-"}},
		{"description", "", Value{}},
		{"rules[].dispatch.file.path", "~/x", Value{Text: "~/x"}},
		{"spool.sync", "always", Value{Text: "always"}},
	} {
		k, ok := table.Key(row.key)
		if !ok {
			t.Fatalf("no key %s", row.key)
		}
		if got, err := k.Parse(row.text); err != nil || got != row.want {
			t.Errorf("%s: %s: %+v, %v", row.key, row.text, got, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	table := NewTable(both())
	for _, row := range []struct{ key, text, reason, hint string }{
		{"enabled", "yes", `"yes" is neither true nor false`, "write true or false"},
		{"enabled", "True", `"True" is neither`, ""},
		{"enabled", "", `"" is neither`, ""},
		{"spec", "2", "must be 1, not 2", ""},
		{"spec", "1.0", `"1.0" is no whole number`, "digits only"},
		{"rules[].queue", "0", "must be 1 to 1000000, not 0", ""},
		{"rules[].queue", "1000001", "must be 1 to 1000000, not 1000001", ""},
		{"rules[].queue", "-1", "must be 1 to 1000000, not -1", ""},
		{"rules[].queue", "0x10", "no whole number", "such as 1000"},
		{"rules[].queue", "01", "no whole number", ""},
		{"rules[].queue", "1_000", "no whole number", ""},
		{"rules[].queue", "99999999999999999999", "no whole number", ""},
		{"rules[].timeout", "5", `"5" has no unit`, "write 5s for seconds or 5ms"},
		{"rules[].timeout", "0", `"0" has no unit`, ""},
		{"rules[].timeout", "0s", "must be 1ms to 1h, not 0s", ""},
		{"rules[].timeout", "-1s", "must be 1ms to 1h, not -1s", ""},
		{"rules[].timeout", "999us", "must be 1ms to 1h, not 999us", ""},
		{"rules[].timeout", "1h1ms", "must be 1ms to 1h, not 1h1ms", ""},
		{"rules[].timeout", "5 s", `"5 s" is no duration`, "250ms, 5s, 1m30s"},
		{"rules[].timeout", "5sec", "is no duration", ""},
		{"rules[].timeout", "", "is no duration", ""},
		{"rules[].timeout", "99999999999999999999h", "is no duration", ""},
		{"rules[].mode", "asynch", `must be async or blocking, not "asynch"`, `did you mean "async"?`},
		{"rules[].mode", "Async", `must be async or blocking, not "Async"`, `did you mean "async"?`},
		{"rules[].mode", "xyz", `must be async or blocking, not "xyz"`, ""},
		{"name", "", "is no name", "1 to 64 characters"},
		{"name", "-a", "is no name", ""},
		{"name", "A", "is no name", ""},
		{"name", "a.b", "is no name", ""},
		{"name", "a/b", "is no name", ""},
		{"name", "a_b", "is no name", ""},
		{"name", "é", "is no name", ""},
		{"name", strings.Repeat("a", 65), "is no name", ""},
		{"description", strings.Repeat("a", 1001), "longer than 1000 bytes", ""},
		{"description", "a\x00b", "holds a NUL", ""},
		{"description", "a\xffb", "is not UTF-8", ""},
		{"rules[].dispatch.file.path", "", "empty", ""},
		{"rules[].where", "x", "rules[].where is a condition", "cannot be set from one word"},
	} {
		k, ok := table.Key(row.key)
		if !ok {
			t.Fatalf("no key %s", row.key)
		}
		_, err := k.Parse(row.text)
		var e *ValueError
		if !errors.As(err, &e) || !strings.Contains(e.Reason, row.reason) || !strings.Contains(e.Hint, row.hint) {
			t.Errorf("%s: %q: %v", row.key, row.text, err)
		}
	}
}

func TestSuggest(t *testing.T) {
	keys := NewTable(Sensor()).Children("rules[]")
	for word, want := range map[string]string{
		"destinaton": "", "dispach": "dispatch", "Dispatch": "dispatch", "section": "sections", "sectoins": "sections",
		"tiemout": "timeout", "time-out": "timeout", "redcat": "redact", "wher": "where", "nmae": "name",
		"zzz": "", "": "", "x": "", "quue": "queue", strings.Repeat("dispatch", 20): "",
	} {
		if got := Suggest(word, keys); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	sections := SectionNames()
	for word, want := range map[string]string{
		"tool-call": "tool_call", "ToolCall": "tool_call", "toolcall": "tool_call", "tool_results": "tool_result",
		"prompt": "", "user-prompt": "user_prompt", "sesion_end": "session_end",
	} {
		if got := Suggest(word, sections); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

func TestEditDistance(t *testing.T) {
	for _, row := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"a", "", 1},
		{"", "abc", 3},
		{"abc", "abc", 0},
		{"abc", "acb", 1},
		{"ab", "ba", 1},
		{"kitten", "sitting", 3},
		{"abcd", "badc", 2},
		{strings.Repeat("a", 101), "a", 100},
	} {
		if got := editDistance(row.a, row.b); got != row.want {
			t.Errorf("%q, %q: %d, want %d", row.a, row.b, got, row.want)
		}
	}
}

func TestSettingKey(t *testing.T) {
	for _, row := range []struct{ sensor, rule, name, setting string }{
		{"tool-audit", "log", "rules[].timeout", "ways.sensors.tool-audit.rules.log.timeout"},
		{"tool-audit", "log", "rules[].dispatch.file.path", "ways.sensors.tool-audit.rules.log.dispatch.file.path"},
		{"tool-audit", "", "enabled", "ways.sensors.tool-audit.enabled"},
		{"rules", "rules", "rules[].enabled", "ways.sensors.rules.rules.rules.enabled"},
	} {
		if got := SettingKey(row.sensor, row.rule, row.name); got != row.setting {
			t.Errorf("%+v: %s", row, got)
		}
		sensor, rule, name, ok := ParseSettingKey(row.setting)
		if !ok || sensor != row.sensor || rule != row.rule || name != row.name {
			t.Errorf("%s: %q %q %q %v", row.setting, sensor, rule, name, ok)
		}
	}
	for _, bad := range []string{
		"", "ways", "ways.sensors", "ways.sensors.", "ways.sensors.a", "ways.sensors.a.", "ways.sensors.A.enabled",
		"ways.sensors.a.rules.", "ways.sensors.a.rules.b", "ways.sensors.a.rules.b.", "ways.sensors.a.rules.B.mode",
		"attend.sensors.a.enabled",
	} {
		if _, _, _, ok := ParseSettingKey(bad); ok {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestRange(t *testing.T) {
	table := NewTable(Sensor())
	for name, want := range map[string]string{
		"rules[].timeout": "1ms to 1h", "rules[].queue": "1 to 1000000", "spec": "1",
	} {
		if k, _ := table.Key(name); k.Range() != want {
			t.Errorf("%s: %s", name, k.Range())
		}
	}
	if got := shortDuration(int64(90 * time.Second)); got != "1m30s" {
		t.Error(got)
	}
	if got := shortDuration(int64(10 * time.Minute)); got != "10m" {
		t.Error(got)
	}
}
