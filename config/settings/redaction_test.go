package settings

import (
	"reflect"
	"strings"
	"testing"

	"ways/config/plan"
	"ways/config/problem"
)

func TestRedaction(t *testing.T) {
	s, problems := Parse("c", "/h", []byte(`redaction:
  rules:
    - {name: badge, regex: 'EMP-(\d{6})', keywords: ["EMP-", emp_]}
    - name: ticket
      regex: tick_[a-z0-9]{12}
      keywords: [tick_]
      min_entropy: 2.5
  allow:
    - hunter2
    - {regex: 'ghp_0{4}\w+'}
`))
	want := plan.Masking{
		Rules: []plan.MaskRule{
			{Name: "badge", Regex: `EMP-(\d{6})`, Keywords: []string{"EMP-", "emp_"}},
			{Name: "ticket", Regex: "tick_[a-z0-9]{12}", Keywords: []string{"tick_"}, MinEntropy: 2.5},
		},
		Allow: []plan.MaskAllow{{Literal: "hunter2"}, {Regex: `ghp_0{4}\w+`}},
	}
	if len(problems) != 0 || !reflect.DeepEqual(s.Masking, want) {
		t.Errorf("%+v, %v", s.Masking, problems)
	}
}

// A broken entry masks nothing and allows nothing, is said with its place, and
// takes no neighbour along.
func TestBrokenRedaction(t *testing.T) {
	rule := "redaction:\n  rules:\n    - {name: good, regex: ab, keywords: [ab]}\n    - "
	allow := "redaction:\n  allow:\n    - good\n    - "
	good := plan.Masking{Rules: []plan.MaskRule{{Name: "good", Regex: "ab", Keywords: []string{"ab"}}}}
	goodAllow := plan.Masking{Allow: []plan.MaskAllow{{Literal: "good"}}}
	for _, row := range []struct {
		name, text    string
		line, col     int
		key           string
		message, hint string
		left          plan.Masking
	}{
		{"regex", rule + "{name: b, regex: '(', keywords: [ab]}", 4, 24, "redaction.rules[]", "missing closing )", "masks nothing until", good},
		{"regex of the empty text", rule + "{name: b, regex: 'a*', keywords: [ab]}", 4, 24, "redaction.rules[]", "matches nothing at all", "", good},
		{"no regex", rule + "{name: b, keywords: [ab]}", 4, 7, "redaction.rules[].regex", "the rule has no regex", "add one", good},
		{"no keywords", rule + "{name: b, regex: a}", 4, 7, "redaction.rules[].keywords", "has no keywords", "", good},
		{"no name", rule + "{regex: a, keywords: [ab]}", 4, 7, "redaction.rules[].name", "has no name", "", good},
		{"name", rule + "{name: B, regex: a, keywords: [ab]}", 4, 14, "redaction.rules[].name", `"B" is no name`, "", good},
		{"name again", rule + "{name: good, regex: a, keywords: [ab]}", 4, 7, "redaction.rules[].name", "the first is on line 3", "rename", good},
		{"misspelt", rule + "{name: b, regx: a, keywords: [ab]}", 4, 17, "redaction.rules[].regx", `"regx" is no key`, `did you mean "regex"?`, good},
		{"key twice", rule + "{name: b, name: c, regex: a, keywords: [ab]}", 4, 17, "redaction.rules[].name", "a second time", "", good},
		{"short keyword", rule + "{name: b, regex: a, keywords: [a]}", 4, 24, "redaction.rules[]", "want 2 to 64 bytes", "", good},
		{"keywords as text", rule + "{name: b, regex: a, keywords: ab}", 4, 37, "redaction.rules[].keywords", "must be a list of texts", "", good},
		{"keyword that is a truth value", rule + "{name: b, regex: a, keywords: [yes]}", 4, 38, "redaction.rules[].keywords", "truth value", "", good},
		{"entropy", rule + "{name: b, regex: a, keywords: [ab], min_entropy: high}", 4, 56, "redaction.rules[].min_entropy", "is no decimal number", "3.5", good},
		{"entropy beyond a byte's", rule + "{name: b, regex: a, keywords: [ab], min_entropy: 8.1}", 4, 56, "redaction.rules[].min_entropy", "must be 0 to 8, not 8.1", "", good},
		{"entropy NaN", rule + "{name: b, regex: a, keywords: [ab], min_entropy: .nan}", 4, 56, "redaction.rules[].min_entropy", "is no decimal number", "", good},
		{"a word", rule + "b", 4, 7, "redaction.rules[]", "must be a group of keys", "name, regex, keywords", good},
		{"long regex", rule + "{name: b, regex: '" + strings.Repeat("a", 1001) + "', keywords: [ab]}", 4, 24, "redaction.rules[].regex", "longer than 1000 bytes", "", good},
		{"rules as text", "redaction: {rules: x}", 1, 20, "redaction.rules", "must be a list of rules", "EMP-", plan.Masking{}},
		{"group misspelt", "redaction: {rule: []}", 1, 13, "redaction.rule", `"rule" is no key of redaction`, `did you mean "rules"?`, plan.Masking{}},

		{"allow regex", allow + "{regex: '['}", 4, 7, "redaction.allow", "missing closing ]", "allows nothing until", goodAllow},
		{"allow everything", allow + "{regex: '.*'}", 4, 7, "redaction.allow", "allows whatever there is", "", goodAllow},
		{"allow everything in disguise", allow + "{regex: 'a)|(?:.*'}", 4, 7, "redaction.allow", "unexpected )", "", goodAllow},
		{"allow empty", allow + `""`, 4, 7, "redaction.allow", "give a literal or a regex", "", goodAllow},
		{"allow misspelt", allow + "{regx: a}", 4, 8, "redaction.allow[].regx", "is no key", `did you mean "regex"?`, goodAllow},
		{"allow a list", allow + "[a]", 4, 7, "redaction.allow", "is a list where one value is wanted", "", goodAllow},
		{"allow as text", "redaction: {allow: x}", 1, 20, "redaction.allow", "must be a list", "", plan.Masking{}},
	} {
		s, problems := Parse("c", "/h", []byte(row.text+"\n"))
		if len(problems) != 1 {
			t.Errorf("%s: %v", row.name, problems)
			continue
		}
		p := problems[0]
		if p.Severity != problem.Error || p.Line != row.line || p.Col != row.col || p.Key != row.key ||
			!strings.Contains(p.Message, row.message) || !strings.Contains(p.Message+p.Suggestion, row.hint) {
			t.Errorf("%s: %s", row.name, p)
		}
		if !reflect.DeepEqual(s.Masking, row.left) {
			t.Errorf("%s: left %+v", row.name, s.Masking)
		}
	}
}

func TestRedactionBounds(t *testing.T) {
	s, problems := Parse("c", "/h", []byte("redaction:\n  allow:\n"+strings.Repeat("    - xx\n", 257)))
	if len(problems) != 1 || problems[0].Line != 259 || len(s.Masking.Allow) != 256 {
		t.Errorf("%d entries, %v", len(s.Masking.Allow), problems)
	}
}
