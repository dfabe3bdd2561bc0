package expand

import (
	"errors"
	"strings"
	"testing"
)

func env(name string) string {
	return map[string]string{"A": "one", "B_2": "t${A}o", "ROOT": "/r", "NUL": "a\x00b"}[name]
}

func TestVars(t *testing.T) {
	for _, row := range []struct{ in, want string }{
		{"", ""},
		{"plain", "plain"},
		{"${A}", "one"},
		{"x${A}y${A}z", "xoneyonez"},
		{"${B_2}", "t${A}o"}, // not expanded again
		{"$A $ $$ {A}", "$A $ $$ {A}"},
		{"$${A}", "${A}"},
		{"$$${A}", "$${A}"},
		{"$${", "${"},
	} {
		got, err := Vars(row.in, env)
		if err != nil || got != row.want {
			t.Errorf("Vars(%q) = %q, %v; want %q", row.in, got, err, row.want)
		}
	}
	for _, row := range []struct {
		in   string
		is   error
		says string
	}{
		{"a${NONE}b", ErrMissing, "${NONE}"},
		{"${A}${NONE}", ErrMissing, "${NONE}"},
		{"${", ErrSyntax, "without its }"},
		{"${A", ErrSyntax, "without its }"},
		{"${}", ErrSyntax, "${}"},
		{"${1A}", ErrSyntax, "${1A}"},
		{"${A-b}", ErrSyntax, "${A-b}"},
		{"${ A}", ErrSyntax, "${ A}"},
		{"${${A}}", ErrSyntax, "${${A}"},
	} {
		got, err := Vars(row.in, env)
		if got != "" || !errors.Is(err, row.is) || !strings.Contains(err.Error(), row.says) {
			t.Errorf("Vars(%q) = %q, %v; want an error that is %v and says %q", row.in, got, err, row.is, row.says)
		}
		if strings.Contains(err.Error(), "one") {
			t.Errorf("Vars(%q): the error holds a value: %v", row.in, err)
		}
	}
}

func TestPath(t *testing.T) {
	for _, row := range []struct{ in, home, want string }{
		{"~/audit/x.jsonl", "/h", "/h/audit/x.jsonl"},
		{"~", "/h", "/h"},
		{"/a//b/../c/", "/h", "/a/c"},
		{"${ROOT}/x", "", "/r/x"},
		{"~/${A}", "/h", "/h/one"},
		{"/a/~/b", "/h", "/a/~/b"},
	} {
		got, err := Path(row.in, row.home, env)
		if err != nil || got != row.want {
			t.Errorf("Path(%q) = %q, %v; want %q", row.in, got, err, row.want)
		}
	}
	for _, row := range []struct {
		in, home string
		is       error
	}{
		{"relative/x", "/h", ErrSyntax},
		{"", "/h", ErrSyntax},
		{"~root/x", "/h", ErrSyntax},
		{"${A}/x", "/h", ErrSyntax},
		{"~/x", "", ErrMissing},
		{"~/x", "h", ErrSyntax},
		{"/${NONE}", "/h", ErrMissing},
		{"/${NUL}", "/h", ErrSyntax},
	} {
		if got, err := Path(row.in, row.home, env); got != "" || !errors.Is(err, row.is) {
			t.Errorf("Path(%q) = %q, %v; want %v", row.in, got, err, row.is)
		}
	}
}
