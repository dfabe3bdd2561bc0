package delivery

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"ways/hooks/record"
)

const envelope = `{"v":1,"section":"tool_call","event":"PreToolUse","source":"hook","ts":"2026-11-30T21:01:18.749763504Z",` +
	`"session":"0f0c1e52-8d7a-4a58-9a51-2f8c60d3b1aa","seq":17,"agent_id":"main","agent_type":"main","project":"/home/dev/proj","cwd":"/home/dev/proj",` +
	`"data":{"id":"toolu_1","section":"gap","name":"Read"}}`

func TestStringField(t *testing.T) {
	for _, row := range []struct{ record, name, want string }{
		{envelope, "section", "tool_call"},
		{envelope, "project", "/home/dev/proj"},
		{envelope, "seq", ""},
		{envelope, "id", ""},
		{envelope, "missing", ""},
		{`{"section":"tool_call","data":{}}`, "section", "tool_call"},
		{`{"data":{},"section":"gap"}`, "section", ""},
		{`{"section":1,"section":"gap","data":1}`, "section", "gap"},
		{`{"section":"a","section":"gap","data":1}`, "section", "a"},
		{` { "v" : 1 , "section" : "gap" } `, "section", "gap"},
		{`{"\u0073ection":"gap"}`, "section", "gap"},
		{`{"section":"g\u0061p"}`, "section", "gap"},
		{`{"project":"/h\u00f6me","section":"gap"}`, "project", "/h\u00f6me"},
		{"{\"project\":\"/\xff\",\"section\":\"gap\"}", "project", "/\uFFFD"},
		{`{"section":"gap"`, "section", "gap"},
		{`{"v":01,"section":"gap"}`, "section", ""},
		{`{"v":-1.5e3,"section":"gap"}`, "section", "gap"},
		{`{"v":true,"section":"gap"}`, "section", "gap"},
		{`{"section":"gap`, "section", ""},
		{`[]`, "section", ""},
		{``, "section", ""},
		{`{`, "section", ""},
		{`{}`, "section", ""},
	} {
		if got := StringField([]byte(row.record), row.name); got != row.want {
			t.Errorf("%s of %s: %q, want %q", row.name, row.record, got, row.want)
		}
	}
	if got := SectionOf([]byte(envelope)); got != record.ToolCall {
		t.Errorf("section %v", got)
	}
}

// FuzzStringField compares the quick way with the one that knows all of JSON.
func FuzzStringField(f *testing.F) {
	for _, name := range []string{"section", "seq", "ts", "data", ""} {
		f.Add([]byte(envelope), name)
	}
	f.Add([]byte(`{"v":0,"section":"","data":{}}`), "section")
	f.Add([]byte(`{"v":1 ,"section":"x"}`), "section")
	f.Fuzz(func(t *testing.T, rec []byte, name string) {
		if !jsontext.Value(rec).IsValid(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) {
			StringField(rec, name) // it may say anything, and ends
			return
		}
		if got, want := StringField(rec, name), anyField(rec, name); got != want {
			t.Errorf("%q of %s: %q, want %q", name, rec, got, want)
		}
	})
}

func BenchmarkStringField(b *testing.B) {
	rec := []byte(envelope)
	for _, way := range []struct {
		name string
		f    func([]byte, string) string
	}{{"quick", StringField}, {"any", anyField}} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				way.f(rec, "project")
			}
		})
	}
}
