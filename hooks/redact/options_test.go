package redact_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"ways/hooks/redact"
)

func TestUserRules(t *testing.T) {
	m := masker(t, redact.Options{
		Rules: []redact.Rule{
			{Name: "badge", Regex: `\bEMP-(\d{6})\b`, Keywords: []string{"EMP-"}},
			{Name: "ticket", Regex: `tick_[a-z0-9]{12}`, Keywords: []string{"TICK_"}, MinEntropy: 2.5},
		},
		Allow: []redact.Allow{{Literal: "hunter2"}, {Regex: `ghp_0{4}\w+`}},
	})
	for in, want := range map[string]string{
		"badge EMP-123456, EMP-654321":                            "badge EMP-[REDACTED:badge], EMP-[REDACTED:badge]",
		"EMP-12345":                                               "EMP-12345",
		"tick_a8s7d6f5g4h3":                                       "[REDACTED:ticket]",
		"tick_aaaaaaaaaaab":                                       "tick_aaaaaaaaaaab",
		"password = hunter2":                                      "password = hunter2",
		"password = hunter3":                                      "password = [REDACTED:password]",
		"password = hunter23":                                     "password = [REDACTED:password]",
		"ghp_0000456789abcdefghijABCDEFGHIJ012345":                "ghp_0000456789abcdefghijABCDEFGHIJ012345",
		"ghp_1000456789abcdefghijABCDEFGHIJ012345":                "[REDACTED:github-pat]",
		"ghp_1000456789abcdefghijABCDEFGHIJ012345 gitleaks:allow": "[REDACTED:github-pat] gitleaks:allow",
		"password = [REDACTED:password]":                          "password = [REDACTED:password]",
		"password = [REDACTED:password]s3cret":                    "password = [REDACTED:password][REDACTED:password]",
	} {
		if got, _ := m.Text([]byte(in)); string(got) != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestBadOptions(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts redact.Options
		want string
	}{
		{"no name", redact.Options{Rules: []redact.Rule{{Regex: "a", Keywords: []string{"aa"}}}}, `rule 1 (""): name: want`},
		{"name in capitals", redact.Options{Rules: []redact.Rule{{Name: "Badge", Regex: "a", Keywords: []string{"aa"}}}}, `rule 1 ("Badge"): name: want`},
		{"no regex", redact.Options{Rules: []redact.Rule{{Name: "a", Keywords: []string{"aa"}}}}, `regex: missing`},
		{"bad regex", redact.Options{Rules: []redact.Rule{{Name: "a", Regex: "(", Keywords: []string{"aa"}}}}, `regex: error parsing`},
		{"no keyword", redact.Options{Rules: []redact.Rule{{Name: "a", Regex: "a"}}}, `keywords: give`},
		{"short keyword", redact.Options{Rules: []redact.Rule{{Name: "a", Regex: "a", Keywords: []string{"a"}}}}, `keyword "a": want`},
		{"second rule", redact.Options{Rules: []redact.Rule{{Name: "a", Regex: "aa", Keywords: []string{"aa"}}, {Name: "b"}}}, `rule 2 ("b")`},
		{"empty allow", redact.Options{Allow: []redact.Allow{{}}}, `allow entry 1: give`},
		{"both in allow", redact.Options{Allow: []redact.Allow{{Literal: "a", Regex: "b"}}}, `allow entry 1: give`},
		{"bad allow", redact.Options{Allow: []redact.Allow{{Regex: "["}}}, `allow entry 1: regex: error parsing`},
	} {
		_, err := redact.New(tt.opts)
		if !errors.Is(err, redact.ErrBadRule) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestFindings(t *testing.T) {
	m := masker(t, redact.Options{})
	text := "a ghp_0123456789abcdefghijABCDEFGHIJ012345 b\npassword = hunter2\n"
	_, found := m.Text([]byte(text))
	want := []redact.Finding{
		{Kind: "github-pat", Rule: "github-pat", Start: 2, End: 42},
		{Kind: "password", Rule: "assignment", Start: 56, End: 63},
	}
	if len(found) != 2 || found[0] != want[0] || found[1] != want[1] {
		t.Errorf("got %+v, want %+v", found, want)
	}
	out, found := m.Text([]byte("nothing here"))
	if string(out) != "nothing here" || found != nil {
		t.Errorf("got %q %v", out, found)
	}
}

// One masker serves many rule actors at once.
func TestConcurrentUse(t *testing.T) {
	m := masker(t, redact.Options{})
	rec := []byte(`{"a":"password = hunter2 and https://u:hunter3@h/ {\"token\":\"abc123def456ghi789\"}"}`)
	want := string(m.Seal(rec, redact.Envelope{Rule: "a/b", RuleSeq: 1}).Bytes())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				if got := string(m.Seal(rec, redact.Envelope{Rule: "a/b", RuleSeq: 1}).Bytes()); got != want {
					t.Errorf("got %s, want %s", got, want)
					return
				}
			}
		})
	}
	wg.Wait()
}
