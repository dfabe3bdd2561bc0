package redact

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Texts made to be slow: each is repeated to 24 KiB. What counts is work, not
// time: bytes given to regular expressions, and bytes that matchers read.
func TestWorkIsBounded(t *testing.T) {
	m, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	const size = 24 << 10
	for _, unit := range []string{
		`curl -H "x" `,
		"-----BEGIN",
		"-----BEGIN PRIVATE KEY-----",
		"-----BEGIN PRIVATE KEY-----\nAAAA",
		"-----BEGIN PRIVATE KEY-----\nMIIEvgIBADANBgkqhkiG9w0BAQEFAASC\n",
		"-----END PRIVATE KEY-----",
		"MIIEvgIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n",
		"cGFzc3dvcmQ", "cGFzc3dvcmQ9aHVudGVyMgo ", "cGFzc3dvcmQ9aHVudGVyMgo", "cGFzc3dvcmQ=",
		"LS0tLS1CRUdJTi",
		"LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t",
		"key=", "key='", "key=\"", `key=\"`, "password=", "password: ", "token,", `"token","`, "secret.", "passpasspasspass", "-key ", "key value=",
		"EAAC", "EAAC ", "sk-", "sk-ant-", "s.", "eyJ", ".eyJ", "/eyJ", "eyJhbGciOiJub25lIn0.", "ghp_", "xapp-1-A-", "xoxb-",
		"a://", "a://a:b", "a://b:c@", "Authorization: ", "Authorization: Bearer ", "authorization=", "Cookie: a=b", "Cookie: ", "Set-Cookie: a", "Bearer ", "Basic ",
		"data:\n", "kind: Secret\ndata:\n", "kind: Secret\ndata:\n a: b\n", "curl -u a:b ", "curl -u ", "curl\n",
		"datadog=", "datadog = a", "new-relic: ", "atlasv1", "q~", "_mmk", "T3BlbkFJ", "webhook.office.com", "facebook", "https://a.webhook.office.com/", "hooks.slack.com", "discord.com/api/webhooks/",
		"mysql ", "mysql -p", "sshpass -p ", "mysql -u a ", "IDENTIFIED BY ", "fm2_", "jina_", "ya29.", "1//0", "sntrys_eyJpYXQiO", "ZXlK",
		`\`, `\"`, `\\`, `\u0041`, `\\\\\\\\n`, "\n", "\"", "é", "\xff", "AAAA", "aaaa", "0123456789abcdef", "[REDACTED:password] ", "password = [REDACTED:password]",
	} {
		text := strings.Repeat(unit, size/len(unit))
		sc := &scan{m: m}
		sc.doc.loadText([]byte(text))
		sc.run()
		if limit := baseWork + workPerByte*len(text); sc.work > limit {
			t.Errorf("%q: %d bytes of regular expressions, limit %d", unit, sc.work, limit)
		}
		if perByte := float64(sc.steps) / float64(len(text)); perByte > 220 {
			t.Errorf("%q: matchers read every byte %.0f times", unit, perByte)
		}
	}
}

// A text that uses the budget up loses more than its secrets, never less.
func TestBudgetFailsClosed(t *testing.T) {
	m, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	// Every unit starts a rule that needs a wide window and does not match.
	text := strings.Repeat("atlasv1 \n", 60000)
	for i := range 100 {
		text += fmt.Sprintf("key sk-or-v1-%04d456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n", i)
	}
	text += "plain end"
	rec, _ := json.Marshal(map[string]string{"text": text})
	p := m.Seal(rec, Envelope{Rule: "s/r", RuleSeq: 1})
	if c := p.Counts(); c[kindUnscanned] < 50 || c[kindUnscanned]+c["openrouter-api-key"] != 100 {
		t.Fatalf("counts %v, want 100 in all, most of them unscanned", c)
	}
	if strings.Contains(string(p.Bytes()), "456789abcdef") {
		t.Error("the key is still there")
	}
	if !strings.Contains(string(p.Bytes()), "plain end") {
		t.Error("ordinary text was lost")
	}
	if !json.Valid(p.Bytes()) {
		t.Error("no JSON")
	}
}
