package where

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const sample = `{"v":1,"section":"tool_call","ts":"2026-01-02T03:04:05.000000006Z","seq":9007199254740993,` +
	`"data":{"id":"t1","name":"Bash","input":{"command":"git push origin a/b","timeout":120.50,"background":false,` +
	`"note":null,"empty":"","path":"C:\\x\n\u00e9","big":123456789012345678901234567890,"edits":[{"old":"a","new":"b"},` +
	`{"old":"c","new":"secret"}],"tags":["one","two",3,null,["four"]],"nested":{"deep":{"command":"rm -rf"}},"odd.name":"x","star*":"y"}}}`

func TestMatch(t *testing.T) {
	for _, row := range []struct {
		where string
		want  bool
	}{
		{``, true},
		{`{}`, true},
		// Bare values.
		{`{"data.name":"Bash"}`, true},
		{`{"data.name":"bash"}`, false},
		{`{"data.name":"Bas"}`, false},
		{`{"data.name":"B*"}`, true},
		{`{"data.name":"[A-C]???"}`, true},
		{`{"data.name":"[!A-C]*"}`, false},
		{`{"v":1}`, true},
		{`{"v":1.0}`, true},
		{`{"v":"1"}`, false},
		{`{"v":"*"}`, false}, // a glob asks for a string
		{`{"data.input.background":false}`, true},
		{`{"data.input.background":true}`, false},
		{`{"data.input.background":"false"}`, false},
		{`{"data.input.note":null}`, true},
		{`{"data.input.empty":null}`, false},
		{`{"data.input.empty":""}`, true},
		{`{"data.input.empty":"*"}`, true},
		{`{"data.input.missing":null}`, false},
		{`{"data.input.missing":"*"}`, false},
		// equals.
		{`{"data.name":{"equals":"Bash"}}`, true},
		{`{"data.name":{"equals":"B*"}}`, false},
		{`{"data.input.star*":"y"}`, true},
		{`{"data.input.star\\*":"y"}`, true},
		{`{"data.input['star*']":{"equals":"y"}}`, true},
		{`{"data.input.command":{"equals":"git push origin a/b"}}`, true},
		{`{"data.input.path":{"equals":"C:\\x\né"}}`, true},
		{`{"seq":{"equals":9007199254740993}}`, true},
		{`{"seq":{"equals":9007199254740992}}`, false},
		{`{"seq":9007199254740993.0}`, true},
		{`{"data.input.timeout":120.5}`, true},
		{`{"data.input.timeout":1205e-1}`, true},
		{`{"data.input":{"equals":null}}`, false},
		// not.
		{`{"data.name":{"not":"Read"}}`, true},
		{`{"data.name":{"not":"Bash"}}`, false},
		{`{"data.name":{"not":"B*"}}`, false},
		{`{"data.name":{"not":["Read","Bash"]}}`, false},
		{`{"data.name":{"not":["Read","Edit","mcp__*"]}}`, true},
		{`{"data.missing":{"not":"Read"}}`, false},
		{`{"data.input.note":{"not":null}}`, false},
		{`{"data.input.note":{"not":"x"}}`, true},
		{`{"data.input":{"not":"x"}}`, true},
		{`{"data.input.background":{"not":0}}`, true}, // false is not the number 0
		{`{"data.input.edits[*].new":{"not":"secret"}}`, false},
		{`{"data.input.edits[*].new":{"not":"other"}}`, true},
		{`{"data.input.edits[*].none":{"not":"other"}}`, false},
		{`{"data.input.edits[9].new":{"not":"x"}}`, false},
		// in.
		{`{"data.name":{"in":["Read","Bash"]}}`, true},
		{`{"data.name":{"in":["Read","Edit"]}}`, false},
		{`{"data.name":{"in":["R*","B*"]}}`, true},
		{`{"v":{"in":["1",2,null]}}`, false},
		{`{"v":{"in":["1",1.00]}}`, true},
		// contains.
		{`{"data.input.command":{"contains":"push"}}`, true},
		{`{"data.input.command":{"contains":"p*h"}}`, false}, // no glob
		{`{"data.input.command":{"contains":""}}`, true},
		{`{"data.input.path":{"contains":"x\n"}}`, true},
		{`{"data.input.tags":{"contains":"two"}}`, true},
		{`{"data.input.tags":{"contains":"tw"}}`, false}, // an element, not a part of one
		{`{"data.input.tags":{"contains":3}}`, true},
		{`{"data.input.tags":{"contains":null}}`, true},
		{`{"data.input.tags":{"contains":"four"}}`, false}, // one level only
		{`{"data.input.tags[4]":{"contains":"four"}}`, true},
		{`{"data.input.timeout":{"contains":"120"}}`, false},
		{`{"data.input":{"contains":"git"}}`, false},
		{`{"data.input.tags":{"contains":"two","not":"x"}}`, true},
		// like and matches.
		{`{"data.input.command":{"like":"git push*"}}`, true},
		{`{"data.input.command":{"like":"push"}}`, false},
		{`{"data.name":{"like":"Bash"}}`, true},
		{`{"v":{"like":"1"}}`, false},
		{`{"data.input.command":{"matches":"^git (push|pull)\\b"}}`, true},
		{`{"data.input.command":{"matches":"PUSH"}}`, false},
		{`{"data.input.command":{"matches":"(?i)PUSH"}}`, true},
		{`{"data.input.path":{"matches":"\\né$"}}`, true},
		{`{"v":{"matches":"1"}}`, false},
		// above and below.
		{`{"data.input.timeout":{"above":120}}`, true},
		{`{"data.input.timeout":{"above":120.5}}`, false},
		{`{"data.input.timeout":{"below":120.5}}`, false},
		{`{"data.input.timeout":{"above":100,"below":121}}`, true},
		{`{"seq":{"above":9007199254740992}}`, true},
		{`{"seq":{"below":9007199254740993}}`, false},
		{`{"data.input.big":{"above":123456789012345678901234567889}}`, true},
		{`{"data.id":{"above":0}}`, false},
		{`{"data.input.note":{"below":1}}`, false},
		// Several operators ask of one value.
		{`{"data.input.command":{"like":"git*","not":"*force*"}}`, true},
		{`{"data.input.command":{"like":"git*","not":"*push*"}}`, false},
		{`{"data.input.edits[*].new":{"like":"s*","contains":"b"}}`, false},
		{`{"data.input.edits[*].new":{"like":"s*","contains":"ecr"}}`, true},
		// Wildcards in paths.
		{`{"data.input.*":"git *"}`, true},
		{`{"data.input.c*":"git *"}`, true},
		{`{"data.input.?ommand":"git *"}`, true},
		{`{"data.input.x*":"git *"}`, false},
		{`{"data.*.command":"git *"}`, true},
		{`{"data.input.edits[*].new":"secret"}`, true},
		{`{"data.input.edits[0].new":"secret"}`, false},
		{`{"data.input.edits[1].new":"secret"}`, true},
		{`{"data.input.edits.*":{"not":"zzz"}}`, false}, // * is names, [*] elements
		{`{"data.input[*]":{"not":"zzz"}}`, false},
		{`{"$..command":"rm*"}`, true},
		{`{"$..command":"git*"}`, true},
		{`{"$..command":{"not":"rm*"}}`, false},
		{`{"data.input.nested..command":"git*"}`, false},
		{`{"$..new":"secret"}`, true},
		{`{"$..[1].old":"c"}`, true},
		{`{"$..*":"Bash"}`, true},
		{`{"$..[*]":"four"}`, true},
		{`{"data.input['odd.name']":"x"}`, true},
		{`{"data.input.odd\\.name":"x"}`, true},
		{`{"data.input.odd.name":"x"}`, false},
		// Several paths.
		{`{"data.name":"Bash","v":1}`, true},
		{`{"data.name":"Bash","v":2}`, false},
		{`{"data.name":"Bash","data.none":"x"}`, false},
	} {
		c, err := Compile([]byte(row.where), false)
		if err != nil {
			t.Errorf("%s: %v", row.where, err)
			continue
		}
		if got := c.Match([]byte(sample)); got != row.want {
			t.Errorf("%s: %v", row.where, got)
		}
	}
}

func TestMatchAny(t *testing.T) {
	for _, row := range []struct {
		where string
		want  bool
	}{
		{`{}`, true},
		{`{"data.name":"Bash","v":2}`, true},
		{`{"data.name":"Read","v":2}`, false},
		{`{"data.none":{"not":"x"},"v":2}`, false},
		{`{"data.name":{"not":"Bash"},"v":1}`, true},
	} {
		c, err := Compile([]byte(row.where), true)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Match([]byte(sample)); got != row.want {
			t.Errorf("%s: %v", row.where, got)
		}
	}
}

func TestMatchAwkwardRecords(t *testing.T) {
	many := `{"a":{`
	for i := range 200 {
		many += fmt.Sprintf(`"k%d":"x","k%d":"y",`, i, i)
	}
	many += `"end":1}}`
	for _, row := range []struct {
		where, record string
		want          bool
	}{
		// The last of a repeated name counts, wherever the repetition is.
		{`{"a":1}`, `{"a":1,"a":2}`, false},
		{`{"a":2}`, `{"a":1,"a":2}`, true},
		{`{"a":{"not":1}}`, `{"a":1,"a":2}`, true},
		{`{"a.b":1}`, `{"a":{"b":1},"a":{"c":1}}`, false},
		{`{"a.b":1}`, `{"a":{"b":1},"a":7}`, false},
		{`{"a":1}`, `{"a":1,"\u0061":2}`, false}, // the same name in another spelling
		{`{"$..b":1}`, `{"a":{"b":1},"x":0,"a":{}}`, false},
		{`{"a.*":"x"}`, many, false},
		{`{"a.*":"y"}`, many, true},
		// Invalid UTF-8 and lone surrogates are U+FFFD.
		{`{"a":"x?y"}`, "{\"a\":\"x\xffy\"}", true},
		{`{"a":{"equals":"x\ufffdy"}}`, "{\"a\":\"x\xffy\"}", true},
		{`{"a":{"equals":"x\ufffdy"}}`, `{"a":"x\ud800y"}`, true},
		{`{"a":"*y"}`, `{"a":"x\ud800y"}`, true},
		{`{"a":"😀"}`, `{"a":"\ud83d\ude00"}`, true},
		{`{"\ufffd":1}`, "{\"\xff\":1}", true},
		// What is no record matches nothing.
		{`{"a":1}`, ``, false},
		{`{"a":1}`, `null`, false},
		{`{"a":1}`, `[]`, false},
		{`{"a":1}`, `{"a":1`, false},
		{`{"a":1}`, `{"a":1}{`, false},
		{`{"a":1}`, `{"a":1} x`, false},
		{`{"a":1}`, `{"a":1,}`, false},
		{`{"a":1}`, `{"a":01}`, false},
		{`{"a":{"not":2}}`, `{"a":1,"b":tru}`, false},
		{`{"a":1}`, " \n{ \"a\" : 1 }\n", true},
		{`{"$..a":{"not":"zz"}}`, strings.Repeat(`{"a":`, 9000) + `1` + strings.Repeat(`}`, 9000), true},
		{`{"$..a":1}`, strings.Repeat(`{"a":`, 9000) + `1` + strings.Repeat(`}`, 9000), true},
		{`{"$..a":1}`, strings.Repeat(`{"a":`, 20000) + `1` + strings.Repeat(`}`, 20000), false}, // deeper than any parser goes
		{`{"$..a..a..a..a..a..a..a":1}`, strings.Repeat(`{"a":`, 3000) + `1` + strings.Repeat(`}`, 3000), true},
	} {
		c, err := Compile([]byte(row.where), false)
		if err != nil {
			t.Errorf("%s: %v", row.where, err)
			continue
		}
		if got := c.Match([]byte(row.record)); got != row.want {
			t.Errorf("%s on %.60s: %v", row.where, row.record, got)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	var many strings.Builder
	for i := range MaxEntries + 1 {
		fmt.Fprintf(&many, `,"p%d":1`, i)
	}
	for _, row := range []struct{ where, path, operator, reason string }{
		{`[]`, "", "", "not an object of paths"},
		{`null`, "", "", "not an object of paths"},
		{`{`, "", "", "not valid JSON"},
		{`{}x`, "", "", "something follows"},
		{`{"a":1,}`, "", "", "not valid JSON"},
		{`{"a":{"equals":}}`, "", "", "not valid JSON"},
		{`{"a":1,"a":2}`, "a", "", "named twice"},
		{`{"":1}`, "", "", "the path is empty"},
		{`{"a[":1}`, "a[", "", "a [ without its ]"},
		{`{"a":[1]}`, "a", "", "write in: [..]"},
		{`{"a":{}}`, "a", "", "no operator"},
		{`{"a":"[x*"}`, "a", "", "a [ without its ]"},
		{`{"a":{"equal":1}}`, "a", "equal", "no such operator; the operators are equals, not, in"},
		{`{"a":{"equals":1,"equals":1}}`, "a", "equals", "named twice"},
		{`{"a":{"equals":{}}}`, "a", "equals", "takes one text, number"},
		{`{"a":{"equals":[1]}}`, "a", "equals", "takes one text, number"},
		{`{"a":{"not":{"like":"x"}}}`, "a", "not", "takes one text, number"},
		{`{"a":{"not":[]}}`, "a", "not", "the list is empty"},
		{`{"a":{"not":[[1]]}}`, "a", "not", "takes one text, number"},
		{`{"a":{"in":"x"}}`, "a", "in", "takes a list"},
		{`{"a":{"in":[]}}`, "a", "in", "the list is empty"},
		{`{"a":{"in":["[*"]}}`, "a", "in", "a [ without its ]"},
		{`{"a":{"in":[` + strings.Repeat("1,", MaxList) + `1]}}`, "a", "in", "more than 1000 items"},
		{`{"a":{"contains":["x"]}}`, "a", "contains", "takes one text, number"},
		{`{"a":{"like":1}}`, "a", "like", "takes a glob in quotes"},
		{`{"a":{"like":"["}}`, "a", "like", "a [ without its ]"},
		{`{"a":{"matches":true}}`, "a", "matches", "takes a regular expression"},
		{`{"a":{"matches":"("}}`, "a", "matches", "missing closing )"},
		{`{"a":{"matches":"(?=x)"}}`, "a", "matches", "RE2 has no lookahead"},
		{`{"a":{"matches":"(?!x)"}}`, "a", "matches", "RE2 has no negative lookahead"},
		{`{"a":{"matches":"(?<=x)y"}}`, "a", "matches", "RE2 has no lookbehind"},
		{`{"a":{"matches":"(?<!x)y"}}`, "a", "matches", "RE2 has no negative lookbehind"},
		{`{"a":{"matches":"(?>x)"}}`, "a", "matches", "RE2 has no atomic group"},
		{`{"a":{"matches":"(x)\\1"}}`, "a", "matches", "RE2 has no backreference"},
		{`{"a":{"matches":"(?P=x)"}}`, "a", "matches", "RE2 has no named backreference"},
		{`{"a":{"matches":"a++"}}`, "a", "matches", "RE2 has no possessive quantifier"},
		{`{"a":{"matches":"x\\Z"}}`, "a", "matches", `RE2 has no \Z`},
		{`{"a":{"matches":"[z-a]"}}`, "a", "matches", "invalid character class range"},
		{`{"a":{"matches":"a{2000}"}}`, "a", "matches", "invalid repeat count"},
		{`{"a":{"matches":"((a{100}){100}){100}"}}`, "a", "matches", "not a regular expression"},
		{`{"a":{"matches":"` + strings.Repeat("a", MaxRegexp+1) + `"}}`, "a", "matches", "longer than 1024 bytes"},
		{`{"a":{"above":"5"}}`, "a", "above", "takes a number, written without quotes"},
		{`{"a":{"below":null}}`, "a", "below", "takes a number"},
		{`{"a":{"above":[1]}}`, "a", "above", "takes one text, number"},
		{`{"a":"` + strings.Repeat("x", MaxBytes) + `"}`, "", "", "longer than 65536 bytes"},
		{"{" + many.String()[1:] + "}", "p64", "", "more than 64 paths"},
		{"{\"a\":\"\xff\"}", "", "", "not valid JSON"},
	} {
		_, err := Compile([]byte(row.where), false)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%.60s: %v", row.where, err)
			continue
		}
		if e.Path != row.path || e.Operator != row.operator || !strings.Contains(e.Reason, row.reason) {
			t.Errorf("%.60s: %+v", row.where, e)
		}
	}
}

func TestErrorText(t *testing.T) {
	for _, row := range []struct {
		err  Error
		want string
	}{
		{Error{Reason: "r"}, "where: r"},
		{Error{Path: "a.b", Reason: "r"}, `where "a.b": r`},
		{Error{Path: "a.b", Operator: "in", Reason: "r"}, `where "a.b": in: r`},
	} {
		if got := row.err.Error(); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
}

// The limit on entries is a machine word: the last bit must work.
func TestMatchSixtyFourPaths(t *testing.T) {
	var paths, fields []string
	for i := range MaxEntries {
		paths = append(paths, fmt.Sprintf(`"p%d":%d`, i, i))
		fields = append(fields, fmt.Sprintf(`"p%d":%d`, i, i))
	}
	c, err := Compile([]byte("{"+strings.Join(paths, ",")+"}"), false)
	if err != nil {
		t.Fatal(err)
	}
	if !c.Match([]byte("{" + strings.Join(fields, ",") + "}")) {
		t.Error("all paths hold, and the condition does not")
	}
	fields[63] = `"p63":0`
	if c.Match([]byte("{" + strings.Join(fields, ",") + "}")) {
		t.Error("the last path does not hold, and the condition does")
	}
}

func BenchmarkMatch(b *testing.B) {
	record := []byte(strings.Replace(sample, `"command":"git`, `"command":"`+strings.Repeat("x", 100_000)+`git`, 1))
	c, err := Compile([]byte(`{"data.name":"Bash","data.input.timeout":{"above":100}}`), false)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(record)))
	b.ReportAllocs()
	for b.Loop() {
		if !c.Match(record) {
			b.Fatal("no match")
		}
	}
}
