package redact

import (
	"os"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

// What the engine takes for granted of every rule: it compiles, an anchored
// rule is anchored and its window holds its longest match, keywords are there,
// and names can stand in a placeholder.
func TestRulesAreSound(t *testing.T) {
	m, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	seen := map[string]bool{}
	for i, r := range m.rules {
		if !name.MatchString(r.id) || len(r.id) > 64 {
			t.Errorf("rule %q: bad name", r.id)
		}
		if seen[r.id] {
			t.Errorf("rule %q is there twice", r.id)
		}
		seen[r.id] = true
		if len(r.keywords) == 0 {
			t.Errorf("rule %q has no keyword", r.id)
		}
		re, err := regexp.Compile(r.regex)
		if err != nil {
			t.Errorf("rule %q: %v", r.id, err)
			continue
		}
		if got := m.compile(i).re.String(); got != re.String() {
			t.Errorf("rule %q: compiled %s", r.id, got)
		}
		if r.mode == modePrefix || r.mode == modeAssign {
			if !strings.HasPrefix(r.regex, "^") {
				t.Errorf("rule %q is not anchored", r.id)
			}
			if r.after < r.minLen {
				t.Errorf("rule %q: window %d, least match %d", r.id, r.after, r.minLen)
			}
		}
		if r.minLen > 0 {
			tree, err := syntax.Parse(r.regex, syntax.Perl)
			if err != nil {
				t.Fatal(err)
			}
			if least := leastLen(tree); r.minLen > least && r.mode != modeNear {
				t.Errorf("rule %q: says its least match is %d, which is %d", r.id, r.minLen, least)
			}
		}
		if r.group > re.NumSubexp() {
			t.Errorf("rule %q: no group %d", r.id, r.group)
		}
	}
	for _, k := range matcherKinds() {
		if !name.MatchString(k.Name) || k.Text == "" {
			t.Errorf("kind %q: bad name or no text", k.Name)
		}
		if seen[k.Name] {
			t.Errorf("kind %q is also a rule's", k.Name)
		}
	}
}

func leastLen(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpCapture:
		return leastLen(re.Sub[0])
	case syntax.OpPlus:
		return leastLen(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min * leastLen(re.Sub[0])
	case syntax.OpConcat:
		n := 0
		for _, s := range re.Sub {
			n += leastLen(s)
		}
		return n
	case syntax.OpAlternate:
		n := leastLen(re.Sub[0])
		for _, s := range re.Sub[1:] {
			n = min(n, leastLen(s))
		}
		return n
	}
	return 0
}

// The kinds in docs/redaction.md are the kinds there are.
func TestKindsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/redaction.md")
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- kinds: begin -->\n", "<!-- kinds: end -->"
	_, rest, ok := strings.Cut(string(doc), begin)
	got, _, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("docs/redaction.md has no %q ... %q", begin, end)
	}
	if want := kindTable(); got != want {
		t.Errorf("the kinds in docs/redaction.md are out of date; put this between the two marks:\n%s", want)
	}
}

func kindTable() string {
	var b strings.Builder
	b.WriteString("\n| kind | what it is |\n| --- | --- |\n")
	for _, k := range matcherKinds() {
		b.WriteString("| `" + k.Name + "` | " + k.Text + " |\n")
	}
	list := func(rules []rule) string {
		var ids []string
		for _, r := range rules {
			ids = append(ids, "`"+r.id+"`")
		}
		slices.Sort(ids)
		return strings.Join(ids, ", ")
	}
	b.WriteString("\nFrom our own rules:\n" + list(ownRules()) + ".\n")
	b.WriteString("\nFrom gitleaks' rules:\n" + list(gitleaksRules()) + ".\n\n")
	return b.String()
}
