package where

import (
	"strings"
	"testing"
)

// spell writes parsed steps in one plain form.
func spell(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		if s.descend {
			b.WriteString("~")
		}
		switch s.kind {
		case stepName:
			b.WriteString("<" + s.name + ">")
		case stepGlob:
			b.WriteString("glob")
		case stepIndex:
			b.WriteString("#" + string(rune('0'+s.index)))
		case stepEach:
			b.WriteString("#*")
		}
	}
	return b.String()
}

func TestParsePath(t *testing.T) {
	for _, row := range []struct{ path, want string }{
		{"data", "<data>"},
		{"data.name", "<data><name>"},
		{"$.data.name", "<data><name>"},
		{"$data", "<$data>"}, // $ is the record only in front of . or [
		{"$.$x", "<$x>"},
		{".data", "<data>"},
		{"data.input.*", "<data><input>glob"},
		{"data.file_*", "<data>glob"},
		{"data.a?", "<data>glob"},
		{"*", "glob"},
		{"data.edits[0].text", "<data><edits>#0<text>"},
		{"data.edits[*].text", "<data><edits>#*<text>"},
		{"$[0]", "#0"},
		{"data..command", "<data>~<command>"},
		{"$..command", "~<command>"},
		{"..command", "~<command>"},
		{"$..*", "~glob"},
		{"$..[0]", "~#0"},
		{"$..[*]", "~#*"},
		{"$..['a.b']", "~<a.b>"},
		{"data['odd.name'].x", "<data><odd.name><x>"},
		{`data["odd'name"]`, "<data><odd'name>"},
		{`data['it\'s']`, "<data><it's>"},
		{"data['']", "<data><>"},
		{"data['*']", "<data><*>"}, // quoted: no glob
		{`data.odd\.name`, "<data><odd.name>"},
		{`data.a\*`, "<data><a*>"},
		{`data.a\[0\]`, "<data><a[0]>"},
		{"data.naïve.日本", "<data><naïve><日本>"},
		{`data.\日`, "<data><日>"},
		{"data.has space", "<data><has space>"},
	} {
		steps, err := parsePath(row.path)
		if err != nil {
			t.Errorf("%q: %v", row.path, err)
			continue
		}
		if got := spell(steps); got != row.want {
			t.Errorf("%q: %s, want %s", row.path, got, row.want)
		}
	}
}

func TestParsePathErrors(t *testing.T) {
	for _, row := range []struct{ path, want string }{
		{"", "the path is empty"},
		{"$", "names the whole record"},
		{"$.", "a name is missing after a dot"},
		{"data.", "a name is missing after a dot"},
		{"data..", "a name is missing after a dot"},
		{"a...b", "`...` is no step"},
		{"a[", "a [ without its ]"},
		{"a[]", "[] is empty"},
		{"a[-1]", "never from the end"},
		{"a[1:2]", "ranges and lists"},
		{"a[1,2]", "ranges and lists"},
		{"a[?(@.x)]", "filters"},
		{"a[01]", "is no element"},
		{"a[+1]", "is no element"},
		{"a[x]", "a name in quotes: ['x']"},
		{"a[99999999999999999999]", "is no element"},
		{"a[0]b", "after a ] comes a . or a ["},
		{"a]", "a ] without its ["},
		{"a['b", "no closing '"},
		{"a['b'", "must be followed by ]"},
		{"a['b'x]", "must be followed by ]"},
		{`a\`, `ends in a \`},
		{"a\x00", "holds a NUL"},
		{strings.Repeat("a", maxPath+1), "longer than 1024 bytes"},
		{strings.Repeat("a.", maxSteps) + "a", "more than 32 steps"},
	} {
		_, err := parsePath(row.path)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%q: %v, want %q", row.path, err, row.want)
		}
	}
}

func TestFirstName(t *testing.T) {
	for path, want := range map[string]string{
		"data.name": "data", "$.ts": "ts", "['x.y']": "x.y", "*": "", "$..x": "", "[0]": "", "": "", "a[": "",
	} {
		got, ok := FirstName(path)
		if got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", path, got, ok)
		}
	}
}
