package http

import (
	"errors"
	"strings"
	"testing"
)

// Words are cut between two of them, never within one.
func TestRepeat(t *testing.T) {
	const token = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	for _, row := range []struct{ in, want string }{
		{"short", "short"},
		{strings.Repeat("x", wordsCap), strings.Repeat("x", wordsCap)},
		{strings.Repeat("x", wordsCap) + " y", strings.Repeat("x", wordsCap) + " ..."},
		{strings.Repeat("x", wordsCap-10) + " " + token, strings.Repeat("x", wordsCap-10) + " ..."},
		{strings.Repeat("x", wordsCap+1), "..."},
		{"a\x1b[31m\nb", `a\x1b[31m\nb`},
	} {
		if got := repeat(errors.New(row.in)); got != row.want {
			t.Errorf("%.20q...: %q, want %q", row.in, got, row.want)
		}
	}
}
