package yamlfile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
)

func TestParseFaults(t *testing.T) {
	for _, row := range []struct {
		name, text    string
		line, col     int
		message, hint string
	}{
		{"tab", "a:\n\tb: 1\n", 2, 1, "a tab in front of the line", "replace it by spaces"},
		{"tab after spaces", "a:\n  \tb: 1\n  c: {", 2, 3, "a tab in front", "spaces"},
		{"two documents", "a: 1\n---\nb: 2\n", 2, 1, "a second document", "remove the --- line"},
		{"broken second document", "a: 1\n---\n{", 0, 0, "is not YAML", ""},
		{"UTF-16", "\xff\xfea\x00", 1, 1, "is UTF-16", "UTF-8"},
		{"UTF-16 the other way", "\xfe\xff\x00a", 1, 1, "is UTF-16", "UTF-8"},
		{"Latin-1", "a: é\nb: x\xe9y\n", 2, 5, "holds the byte 0xe9", "UTF-8"},
		{"NUL", "a: 1\nb\x00: 2\n", 2, 2, "holds a NUL byte", "no text file"},
		{"tab in a list", "- a\n\t- b\n", 2, 1, "a tab in front of the line", "spaces"},
		{"tab elsewhere", "a: |\n  x\n  \ty\n\nb: @c\n", 5, 1, "cannot start any token", "in quotes"},
		{"control character", "a: 1\nb: c\x01\n", 2, 5, "control characters are not allowed", ""},
		{"unclosed", "a: [1, 2\n", 1, 1, "is not YAML", "not closed"},
		{"open quote", "x: \"abc\ny: 1\n", 3, 1, "unexpected end of stream", "not closed"},
		{"colon in a text", "a: b: c\n", 1, 1, "mapping values are not allowed", "in quotes"},
		{"colon in a later text", "z: 1\na: b: c\n", 2, 1, "mapping values are not allowed", "in quotes"},
		{"glob without quotes", "z: 1\na: *.go\n", 2, 1, "alphabetic or numeric", "begins with * or & in quotes"},
		{"name like an alias", "z: 1\na: *go\n", 2, 4, "unknown anchor 'go'", "in quotes"},
	} {
		_, fault := Parse([]byte(row.text))
		if fault == nil {
			t.Errorf("%s: taken", row.name)
			continue
		}
		if !strings.Contains(fault.Message, row.message) || !strings.Contains(fault.Hint, row.hint) {
			t.Errorf("%s: %+v", row.name, *fault)
		}
		if row.line > 0 && (fault.Line != row.line || fault.Col != row.col) {
			t.Errorf("%s: at %d:%d, want %d:%d", row.name, fault.Line, fault.Col, row.line, row.col)
		}
	}
}

func TestParseNothing(t *testing.T) {
	for _, text := range []string{"", "\n", "# only a comment\n", "---\n", "\xef\xbb\xbf", "  \n\n"} {
		root, fault := Parse([]byte(text))
		if root != nil || fault != nil {
			t.Errorf("%q: %v, %v", text, root, fault)
		}
	}
}

func TestParseTakes(t *testing.T) {
	for _, text := range []string{
		"a: 1\n", "\xef\xbb\xbfa: 1\n", "a: 1\r\n", "---\na: 1\n", "a: 1\n...\n", "{a: 1}", "%YAML 1.1\n---\na: 1\n", "a: 1",
	} {
		root, fault := Parse([]byte(text))
		if fault != nil || root == nil || root.Kind != yaml.MappingNode || root.Content[0].Value != "a" || root.Content[1].Value != "1" {
			t.Errorf("%q: %+v, %+v", text, root, fault)
		}
	}
}

// A file of aliases to aliases is small and means billions of values. Nothing
// is ever expanded, so it costs what it weighs.
func TestParseAliasBomb(t *testing.T) {
	var text strings.Builder
	text.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 30; i++ {
		fmt.Fprintf(&text, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	root := node(t, text.String())
	for _, p := range Pairs(root) {
		if p.Fault != nil || Plain(p.Value) == nil {
			t.Fatalf("%s: an anchor was taken", p.Name)
		}
	}
}

func TestParseDeep(t *testing.T) {
	start := time.Now()
	for _, text := range []string{
		strings.Repeat("[", 500_000),
		strings.Repeat("{a: ", 200_000),
		strings.Repeat("- ", 300_000) + "x",
		strings.Repeat("? ", 300_000),
	} {
		if root, fault := Parse([]byte(text)); fault == nil && root == nil {
			t.Errorf("%.10s: neither read nor refused", text)
		}
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}

func node(t *testing.T, text string) *yaml.Node {
	t.Helper()
	root, fault := Parse([]byte(text))
	if fault != nil {
		t.Fatalf("%q: %+v", text, *fault)
	}
	return root
}

func TestPairs(t *testing.T) {
	for _, row := range []struct{ text, fault string }{
		{"a: 1\na: 2\n", `"a" stands here a second time; the first is on line 1`},
		{"a: 1\n\"a\": 2\n", `"a" stands here a second time`},
		{"x: &x {a: 1}\ny: 2\n<<: *x\n", "the merge key << is not available"},
		{"? [a]\n: 1\n", "a name must be plain text"},
		{"? {a: 1}\n: 1\n", "a name must be plain text"},
		{"&k a: 1\n", "the anchor &k is not available"},
		{"!!str a: 1\n", "the tag !!str is not available"},
		{"b: &k 1\n*k : 2\n", "the alias *k is not available"},
	} {
		var said string
		for _, p := range Pairs(node(t, row.text)) {
			if p.Fault != nil {
				said = p.Fault.Message
			}
		}
		if !strings.Contains(said, row.fault) {
			t.Errorf("%q: %q", row.text, said)
		}
	}
	pairs := Pairs(node(t, "b: 1\na: 2\n\"<<\": 3\n"))
	if len(pairs) != 3 || pairs[0].Name != "b" || pairs[1].Name != "a" || pairs[2].Name != "<<" || pairs[2].Fault != nil {
		t.Errorf("pairs: %+v", pairs)
	}
}

func TestText(t *testing.T) {
	for _, row := range []struct{ yaml, want, fault string }{
		{"abc", "abc", ""},
		{`"no"`, "no", ""},
		{"'true'", "true", ""},
		{"5", "5", ""},
		{"0x10", "0x10", ""},
		{"1_000", "1_000", ""},
		{"2026-01-02", "2026-01-02", ""},
		{"norway", "norway", ""},
		{"|\n  no\n", "no\n", ""},
		{"no", "", "no without quotes is a truth value"},
		{"Yes", "", "Yes without quotes"},
		{"on", "", "on without quotes"},
		{"OFF", "", "OFF without quotes"},
		{"y", "", "y without quotes"},
		{"true", "", "true without quotes"},
		{"", "", "has no value"},
		{"~", "", "is null"},
		{"null", "", "is null"},
		{"[a]", "", "is a list where one value is wanted"},
		{"{a: b}", "", "is a group where one value is wanted"},
		{"!!str no", "", "the tag !!str"},
		{"!custom x", "", "the tag !custom"},
		{"&a x", "", "the anchor &a"},
	} {
		got, fault := Text(node(t, "v: "+row.yaml).Content[1])
		switch {
		case row.fault == "" && (fault != nil || got != row.want):
			t.Errorf("%q: %q, %+v", row.yaml, got, fault)
		case row.fault != "" && (fault == nil || !strings.Contains(fault.Message, row.fault)):
			t.Errorf("%q: %q, %+v", row.yaml, got, fault)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "a: 1\n", "a: [b, {c: d}]\n", "a: &x 1\nb: *x\n", "---\n---\n", "\ta", "? a\n: b\n", "a: |\n  x\n", "\xef\xbb\xbfa", "!!binary x",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		root, fault := Parse(data)
		if root != nil && fault != nil {
			t.Fatal("both read and refused")
		}
		if fault != nil && fault.Message == "" {
			t.Fatal("refused without a reason")
		}
		if root != nil && root.Kind == yaml.MappingNode {
			Pairs(root)
		}
	})
}
