package cli

import (
	"bytes"
	"testing"

	"ways/config/problem"
)

// Colour is for a loud line, on a terminal, to a user who has not said no.
func TestPaint(t *testing.T) {
	loud := problem.Problem{Message: "A\x1b[0m", Severity: problem.Warning, Loud: true}
	quiet := problem.Problem{Message: "a", Severity: problem.Warning}
	for _, row := range []struct {
		name     string
		terminal bool
		problem  problem.Problem
		env      map[string]string
		want     string
	}{
		{"terminal", true, loud, nil, "\x1b[1;31mWARNING: A\\u001b[0m\x1b[0m"},
		{"pipe", false, loud, nil, `WARNING: A\u001b[0m`},
		{"NO_COLOR", true, loud, map[string]string{"NO_COLOR": "1"}, `WARNING: A\u001b[0m`},
		{"NO_COLOR empty", true, loud, map[string]string{"NO_COLOR": ""}, "\x1b[1;31mWARNING: A\\u001b[0m\x1b[0m"},
		{"dumb", true, loud, map[string]string{"TERM": "dumb"}, `WARNING: A\u001b[0m`},
		{"quiet", true, quiet, nil, "warning: a"},
	} {
		e := Env{Getenv: func(name string) string { return row.env[name] }}
		if got := e.paint(row.terminal, row.problem); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
	if got := (Env{Getenv: func(string) string { return "" }}).Line(&bytes.Buffer{}, loud); got != `WARNING: A\u001b[0m` {
		t.Errorf("a buffer is no terminal: %q", got)
	}
}
