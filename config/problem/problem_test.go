package problem

import (
	"slices"
	"testing"
)

func TestString(t *testing.T) {
	for _, row := range []struct {
		p    Problem
		want string
	}{
		{Problem{Severity: Error, Message: "m"}, "error: m"},
		{Problem{Severity: Warning, File: "f", Message: "m"}, "f: warning: m"},
		{Problem{Severity: Error, File: "f", Line: 3, Col: 5, Key: "spec", Sensor: "s", Message: "m", Suggestion: "do"}, "f:3:5: error: s: spec: m; do"},
		{Problem{Severity: Notice, Sensor: "s", Rule: "r", Key: "rules[].mode", Message: "m"}, "notice: s/r: rules[].mode: m"},
		{Problem{Severity: Error, File: "a\nb", Key: "\x1b]52;c;x\a", Message: "é\u202e\ufeff\xff\ufffd\U000e0001"}, `a\u000ab: error: \u001b]52;c;x\u0007: é\u202e\ufeff\xff` + "\ufffd" + `\U000e0001`},
	} {
		if got := row.p.String(); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
}

func TestSortAndErrors(t *testing.T) {
	problems := []Problem{
		{File: "b", Line: 1, Severity: Error, Message: "5"},
		{File: "a", Line: 10, Severity: Notice, Message: "3"},
		{File: "a", Line: 2, Col: 9, Severity: Error, Message: "2"},
		{File: "a", Line: 2, Col: 1, Severity: Warning, Message: "1"},
		{File: "a", Line: 10, Sensor: "z", Severity: Error, Message: "4"},
		{Severity: Error, Message: "0"},
	}
	Sort(problems)
	order := ""
	for _, p := range problems {
		order += p.Message
	}
	if order != "012345" {
		t.Errorf("order %s", order)
	}
	var errs []string
	for _, p := range Errors(problems) {
		errs = append(errs, p.Message)
	}
	if !slices.Equal(errs, []string{"0", "2", "4", "5"}) {
		t.Errorf("errors %v", errs)
	}
}
