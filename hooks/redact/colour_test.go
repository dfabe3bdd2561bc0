package redact_test

import (
	"testing"

	"ways/hooks/redact"
)

// Coloured output: a terminal's sequences stand in front of, within and behind
// names and secrets. What is not masked stays byte for byte.
func TestColours(t *testing.T) {
	const token = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	m := masker(t, redact.Options{})
	for in, want := range map[string]string{
		"\x1b[31m" + token + "\x1b[0m x":                        "\x1b[31m[REDACTED:github-pat]\x1b[0m x",
		"\x1b[1;31m" + token[:10] + "\x1b[m\x1b[K" + token[10:]: "\x1b[1;31m[REDACTED:github-pat]",
		"\x1b[32mDB_PASSWORD\x1b[0m=\x1b[33mhunter3\x1b[0m\n":   "\x1b[32mDB_PASSWORD\x1b[0m=\x1b[33m[REDACTED:password]\x1b[0m\n",
		"\x1b[01;31m\x1b[KAPI_KEY\x1b[m\x1b[K=" + token:         "\x1b[01;31m\x1b[KAPI_KEY\x1b[m\x1b[K=[REDACTED:github-pat]",
		"mcp__" + token:     "mcp__[REDACTED:github-pat]",
		"type-" + token:     "type-[REDACTED:github-pat]",
		"\x1b[31mno secret": "\x1b[31mno secret",
		"\x1b[ \x1b \x1b[":  "\x1b[ \x1b \x1b[",
		"cache_key-d41d8cd98f00b204e9800998ecf8427e": "cache_key-d41d8cd98f00b204e9800998ecf8427e",
	} {
		if got, _ := m.Text([]byte(in)); string(got) != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	rec := `{"out":"\u001b[32mpassword\u001b[0m: \u001b[33mhunter3\u001b[0m\n"}`
	want := `{"out":"\u001b[32mpassword\u001b[0m: \u001b[33m[REDACTED:password]\u001b[0m\n","rule":"a/b","rule_seq":1,"redacted":{"password":1}}`
	if got := string(m.Seal([]byte(rec), redact.Envelope{Rule: "a/b", RuleSeq: 1}).Bytes()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
