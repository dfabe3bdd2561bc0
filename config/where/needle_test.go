package where

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestNeedles(t *testing.T) {
	for _, row := range []struct {
		condition string
		any       bool
		want      string
	}{
		{`{"data.name":"Bash"}`, false, "[[Bash]]"},
		{`{"data.name":{"not":"Bash"}}`, false, "[]"},
		{`{"data.name":{"in":["Bash","mcp__*"]}}`, false, "[[Bash mcp__]]"},
		{`{"data.name":{"in":["Bash",3]}}`, false, "[]"},
		{`{"data.name":"*"}`, false, "[]"},
		{`{"data.name":{"like":"mcp__*__read?file"}}`, false, "[[__read]]"},
		{`{"data.path":"/etc/passwd"}`, false, "[]"},
		{`{"data.path":"/etc/pass*"}`, false, "[[pass]]"},
		{`{"data.text":{"contains":"é"}}`, false, "[]"},
		{`{"data.text":{"contains":""}}`, false, "[]"},
		{`{"data.text":{"contains":"fail","matches":"x"}}`, false, "[[fail]]"},
		{`{"data.text":{"matches":"fail"}}`, false, "[]"},
		{`{"data.n":{"above":3}}`, false, "[]"},
		{`{"data.n":12}`, false, "[]"},
		{`{"data.name":"Bash","data.status":"ok","data.n":1}`, false, "[[Bash] [ok]]"},
		{`{"data.name":"Bash","data.status":"ok"}`, true, "[[Bash ok]]"},
		{`{"data.name":"Bash","data.n":1}`, true, "[]"},
		{`{"data.name":{"in":["a","b","c","d","e","f","g","h","i"]}}`, false, "[]"},
	} {
		c, err := Compile([]byte(row.condition), row.any)
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, n := range c.needs {
			list = append(list, fmt.Sprintf("%s", n))
		}
		if got := fmt.Sprintf("%s", list); got != row.want {
			t.Errorf("%s (any: %v): %s, want %s", row.condition, row.any, got, row.want)
		}
	}
}

// A record may spell a letter as a number, and holds no needle then.
func TestNeedleSpelledOtherwise(t *testing.T) {
	c, err := Compile([]byte(`{"data.name":"Bash"}`), false)
	if err != nil {
		t.Fatal(err)
	}
	for record, want := range map[string]bool{
		`{"data":{"name":"Bash"}}`:                                     true,
		`{"data":{"name":"\u0042ash"}}`:                                true,
		`{"data":{"name":"\u0062ash"}}`:                                false,
		`{"data":{"name":"Bas\u0068"}}`:                                true,
		`{"data":{"name":"\u001b[1mBas\u0068"}}`:                       false,
		`{"data":{"name":"\u001b","name":"\u0042\u0061\u0073\u0068"}}`: true,
		`{"data":{"name":"Read"}}`:                                     false,
		`{"data":{"name":"Read","input":"Bash"}}`:                      false,
		`{"d\u0061ta":{"name":"B\u0061\u0073\u0068"}}`:                 true,
	} {
		if got := c.Match([]byte(record)); got != want {
			t.Errorf("%s: %v", record, got)
		}
	}
}

func BenchmarkNeedles(b *testing.B) {
	text := strings.Repeat("\tif err := f(\\\"name\\\"); err != nil {\n\t\treturn err\n\t}\n", 150)
	quoted, err := json.Marshal(text)
	if err != nil {
		b.Fatal(err)
	}
	record := []byte(`{"v":1,"section":"tool_result","event":"PostToolUse","data":{"id":"toolu_1","name":"Read","status":"ok","output":{"stdout":` + string(quoted) + `}}}`)
	for name, condition := range map[string]string{"met": `{"data.name":"Read"}`, "not met": `{"data.name":"Bash"}`} {
		c, err := Compile([]byte(condition), false)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(record)))
			for b.Loop() {
				c.Match(record)
			}
		})
	}
}
