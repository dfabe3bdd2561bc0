package where

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestGlob(t *testing.T) {
	for _, row := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true},
		{"", "a", false},
		{"a", "a", true},
		{"a", "A", false},
		{"a", "ab", false},
		{"*", "", true},
		{"*", "any\nthing/at all", true},
		{"git *", "git push origin a/b", true}, // * crosses /
		{"git *", "git", false},
		{"*.go", "a/b/c.go", true},
		{"*.go", "a/b/c.gox", false},
		{"a*b*c", "a-b-b-c", true},
		{"a*b*c", "a-c-b", false},
		{"***", "", true},
		{"?", "a", true},
		{"?", "", false},
		{"?", "é", true}, // one character, two bytes
		{"?", "ab", false},
		{"??", "日本", true},
		{"a?c", "abc", true},
		{"[abc]", "b", true},
		{"[abc]", "d", false},
		{"[a-c]*", "bz", true},
		{"[!a-c]*", "zz", true},
		{"[!a-c]*", "az", false},
		{"[^a-c]*", "zz", true},
		{"[^a-c]*", "az", false},
		{"[a^]", "^", true},
		{"[a!]", "!", true},
		{"[]a]", "]", true}, // ] right after [ is a member
		{"[]a]", "a", true},
		{"[!]]", "]", false},
		{"[!]]", "x", true},
		{"[a-]", "-", true}, // - at the end is plain
		{"[-a]", "-", true},
		{`[\]]`, "]", true},
		{`[\-a]`, "-", true},
		{"[à-ö]", "é", true},
		{"[a-cx-z]", "y", true},
		{`\*`, "*", true},
		{`\*`, "a", false},
		{`a\?`, "a?", true},
		{`\[x]`, "[x]", true},
		{`\\`, `\`, true},
		{`\a`, "a", true},
		{"]", "]", true}, // plain outside a class
		{"{a,b}", "{a,b}", true},
		{"*a", strings.Repeat("a", 100), true},
		{"a*", "a\xff", true},
		{"?", "\xff", true}, // a stray byte is one character
		{"mcp__*__read", "mcp__files__read", true},
		{"mcp__*__read", "mcp__files__read_all", false},
	} {
		g, err := CompileGlob(row.pattern)
		if err != nil {
			t.Errorf("%q: %v", row.pattern, err)
			continue
		}
		if got := g.Match([]byte(row.text)); got != row.want {
			t.Errorf("%q on %q: %v", row.pattern, row.text, got)
		}
	}
}

func TestGlobErrors(t *testing.T) {
	for _, row := range []struct {
		pattern string
		want    error
	}{
		{"[", errGlobOpen},
		{"[a", errGlobOpen},
		{"[]", errGlobOpen},
		{"[!", errGlobOpen},
		{"[!]", errGlobOpen},
		{`[\`, errGlobOpen},
		{`[a\]`, errGlobOpen},
		{`a[b-`, errGlobOpen},
		{`x\`, errGlobEscape},
		{"[z-a]", errGlobReverse},
		{strings.Repeat("a", maxGlob+1), errGlobLong},
	} {
		if _, err := CompileGlob(row.pattern); !errors.Is(err, row.want) {
			t.Errorf("%q: got %v, want %v", row.pattern, err, row.want)
		}
	}
}

// A backtracking matcher needs longer than the age of the universe here.
func TestGlobHostile(t *testing.T) {
	g, err := CompileGlob(strings.Repeat("*a", 500) + "b")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if g.Match([]byte(strings.Repeat("a", 20_000))) {
		t.Fatal("matched without a b")
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Fatalf("took %v", took)
	}
}

func TestIsGlob(t *testing.T) {
	for s, want := range map[string]bool{
		"": false, "plain": false, "a*": true, "?": true, "[ab]": true, "[a": false, "a]": false,
		"[]": false, "[]]": true, "x[": false, "]x[": false, `\*`: true, "a.b+c(d)": false, "[x] y": true,
	} {
		if got := isGlob(s); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}

// asRegexp writes a compiled glob as a regular expression, the slow but
// independent way to match it.
func asRegexp(g *Glob) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for _, p := range g.parts {
		switch p.kind {
		case globStar:
			b.WriteString(`.*`)
		case globAny:
			b.WriteString(`.`)
		case globChar:
			b.WriteString(regexp.QuoteMeta(string(p.char)))
		case globClass:
			b.WriteString("[")
			if p.negate {
				b.WriteString("^")
			}
			for _, r := range p.ranges {
				b.WriteString(`\x{` + hex(r.low) + `}-\x{` + hex(r.high) + `}`)
			}
			b.WriteString("]")
		}
	}
	b.WriteString(`\z`)
	return regexp.MustCompile(b.String())
}

func hex(r rune) string {
	const digits = "0123456789abcdef"
	s := ""
	for {
		s = string(digits[r&15]) + s
		if r >>= 4; r == 0 {
			return s
		}
	}
}

func FuzzGlob(f *testing.F) {
	for _, seed := range [][2]string{
		{"*a*b", "xaxb"}, {"[!a-c]?", "zz"}, {`\[*]`, "[x]"}, {"[]-a]", "^"}, {"", ""}, {"?é*", "éé"}, {"[\\]-z]", "a"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		g, err := CompileGlob(pattern)
		if err != nil {
			return
		}
		if !utf8.ValidString(pattern) || !utf8.ValidString(text) || len(text) > 200 {
			g.Match([]byte(text[:min(len(text), 1000)])) // must only not panic
			return
		}
		if got, want := g.Match([]byte(text)), asRegexp(g).MatchString(text); got != want {
			t.Fatalf("%q on %q: %v, as a regular expression %v", pattern, text, got, want)
		}
	})
}
