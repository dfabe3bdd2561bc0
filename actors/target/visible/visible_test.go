package visible

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestAppend(t *testing.T) {
	for _, row := range []struct{ name, in, want string }{
		{"empty", "", ""},
		{"plain", "a b\tc", "a b\tc"},
		{"other scripts", "žluť 日本 👩\u200d🚀", "žluť 日本 👩\u200d🚀"},
		{"clipboard", "\x1b]52;c;aGk=\x07", `\x1b]52;c;aGk=\x07`},
		{"link", "\x1b]8;;http://x\x1b\\y", `\x1b]8;;http://x\x1b\y`},
		{"C1 control", "a\u009b31m", `a\x9b31m`},
		{"raw C1 byte", "a\x9b31m", `a\x9b31m`},
		{"carriage return", "safe\rX", `safe\rX`},
		{"NUL and DEL", "\x00\x7f", `\x00\x7f`},
		{"bidi", "a\u202eb\u2066c\u200fd", `a\u202eb\u2066c\u200fd`},
		{"separators", "a\u2028b\u2029c", `a\u2028b\u2029c`},
		{"BOM", "\ufeffa", `\ufeffa`},
		{"tag", "a\U000e0041", `a\U000e0041`},
		{"replacement character itself", "\ufffd", "\ufffd"},
		{"lines", "a\nb\n", "a\n  b\n  "},
	} {
		if got := string(Append(nil, row.in, "  ")); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
	if got := string(Append([]byte("x="), "\x1by", "")); got != `x=\x1by` {
		t.Errorf("appended: %q", got)
	}
}

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"":         "",
		"a\nb\r\n": `a\nb\r\n`,
		"\n\n":     `\n\n`,
	} {
		if got := Line(in); got != want {
			t.Errorf("Line(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add("a\x1b[2J\u202e\xff\n")
	f.Fuzz(func(t *testing.T, s string) {
		got := Line(s)
		if !utf8.ValidString(got) {
			t.Fatalf("%q: not UTF-8", got)
		}
		if i := strings.IndexFunc(got, func(r rune) bool {
			return r != '\t' && unicode.IsControl(r) ||
				unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
		}); i >= 0 {
			t.Fatalf("%q: a control at %d", got, i)
		}
	})
}
