package redact_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"ways/hooks/redact"
)

// A key that came in two records, cut wherever: of its first part everything from
// BEGIN on is masked, of its second everything up to END. What is left of either is
// less than a line.
func TestKeyOverTwoRecords(t *testing.T) {
	m := masker(t, redact.Options{})
	r := rand.New(rand.NewPCG(1, 2))
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	var body strings.Builder
	for i := range 24*64 + 20 {
		if i > 0 && i%64 == 0 {
			body.WriteByte('\n')
		}
		body.WriteByte(alphabet[r.IntN(64)])
	}
	lines := strings.Split(body.String(), "\n")
	key := "-----BEGIN RSA PRIVATE KEY-----\n" + body.String() + "==\n-----END RSA PRIVATE KEY-----\n"
	for cut := 40; cut < len(key)-40; cut += 13 {
		masked := ""
		for _, part := range []string{"here is the key:\n" + key[:cut], key[cut:] + "that was it\n"} {
			rec, err := json.Marshal(map[string]any{"v": 1, "data": map[string]string{"text": part}})
			if err != nil {
				t.Fatal(err)
			}
			masked += string(m.Seal(rec, redact.Envelope{Rule: "a/b"}).Bytes())
		}
		for _, line := range lines {
			for i := 0; i+20 <= len(line); i += 10 {
				if strings.Contains(masked, line[i:i+20]) {
					t.Fatalf("cut at %d: %q is left in %s", cut, line[i:i+20], masked)
				}
			}
		}
		if !strings.Contains(masked, "here is the key:") || !strings.Contains(masked, "that was it") {
			t.Fatalf("cut at %d: more was masked than the key: %s", cut, masked)
		}
	}
}
