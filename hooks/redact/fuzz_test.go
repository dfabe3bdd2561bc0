package redact_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"ways/hooks/redact"
	"ways/hooks/redact/quality"
)

// What holds for every record: the output is JSON, what was not masked is
// still there byte for byte and in order, and masking again finds nothing more.
func FuzzSeal(f *testing.F) {
	m := masker(f, redact.Options{})
	for _, rec := range []string{
		`{"a":"curl -H \"Authorization: Bearer abcdef0123456789abcd\" \"http://x\""}`,
		`{"a":{"password":"hunter2"},"n":9007199254740993,"password":12345678}`,
		`{"argv":["--password","hunter2"],"e":"DB_PASSWORD=hunter2\nFOO=bar"}`,
		`{"k":"{\"k\":\"-----BEGIN PRIVATE KEY-----\\nMIIEvgIBADANBgkqhkiG9w0BAQEFAASC\\nabcdefghijklmnop\\n-----END PRIVATE KEY-----\\n\"}"}`,
		`{"lines":["+-----BEGIN RSA PRIVATE KEY-----","+MIIEvgIBADANBgkqhkiG9w0BAQEFAASC"],"x":"s3cr3t-Horse","password":"s3cr3t-Horse"}`,
		`{"u":"postgres://user:hunter2@host/db Cookie: a=b1; c=d2\r\nSet-Cookie: x=yzzy; Path=/"}`,
		`{"u":"ghp_0123456789abcdefghijABCDEFGHIJ012345 \ud800 \u0041\/ [REDACTED:password]x"}`,
		"{\"u\":\"token: \xff\xfeabc123def456\", \"password\" : \"\\u0068unter\\u0032\"}",
		`{"u":"kind: Secret\ndata:\n  a: aGVsbG8gd29ybGQ=\n"}`,
		`{"out":"{\"pin\":1,\"password\":12345678,\"h\":\"{\\\"Authorization\\\":\\\"Bearer abcdef0123456789abcd\\\"}\"}"}`,
		`{"u":"mysql -pfoobar1 && curl -u a:b12 -b 'x=y1' http://h"}`,
	} {
		f.Add([]byte(rec))
	}
	placeholder := regexp.MustCompile(`\\*"?\[REDACTED:[a-z0-9-]+\]\\*"?`)
	f.Fuzz(func(t *testing.T, rec []byte) {
		rec = bytes.TrimSpace(rec)
		if len(rec) == 0 || rec[0] != '{' || !json.Valid(rec) {
			p := m.Seal(rec, redact.Envelope{Rule: "a/b", RuleSeq: 1})
			if len(rec) > 0 && rec[0] == '{' || bytes.ContainsAny(rec, "\x00") {
				return // malformed in a way that only a parser sees
			}
			if want := `{"rule":"a/b","rule_seq":1,"redacted":{"unscanned":1}}`; string(p.Bytes()) != want {
				t.Fatalf("got %s", p.Bytes())
			}
			return
		}
		p := m.Seal(rec, redact.Envelope{Rule: "a/b", RuleSeq: 1})
		if !json.Valid(p.Bytes()) {
			t.Fatalf("no JSON\nin  %s\nout %s", rec, p.Bytes())
		}
		if bad := quality.BrokenJSON(rec, p.Bytes()); bad != "" && utf8.Valid(rec) {
			t.Fatalf("JSON in a string was broken: %s\nin  %s\nout %s", bad, rec, p.Bytes())
		}
		end := strings.LastIndex(string(p.Bytes()), `"rule":"a/b","rule_seq":1`)
		body := strings.TrimSuffix(string(p.Bytes())[:end], ",")
		rest := string(rec[:len(rec)-1])
		for i, part := range placeholder.Split(body, -1) {
			part = strings.Trim(part, `\"`)
			k := strings.Index(rest, part)
			if k < 0 || i == 0 && strings.Trim(rest[:k], `\"`) != "" {
				t.Fatalf("%q is not in its place\nin  %s\nout %s", part, rec, p.Bytes())
			}
			rest = rest[k+len(part):]
		}
		again := m.Seal([]byte(body+"}"), redact.Envelope{Rule: "a/b", RuleSeq: 1})
		if again.Counts() != nil {
			t.Fatalf("masked again\nin   %s\nout  %s\nthen %s", rec, p.Bytes(), again.Bytes())
		}
	})
}

func FuzzText(f *testing.F) {
	m := masker(f, redact.Options{})
	f.Add([]byte("password = hunter2\nAuthorization: Bearer abcdef0123456789abcd"))
	f.Add([]byte(`{"a":"{\"token\":\"abc123def456ghi789\"}"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		out, found := m.Text(text)
		at := 0
		var want []byte
		for _, x := range found {
			if x.Start < at || x.End <= x.Start || x.End > len(text) {
				t.Fatalf("finding %+v of %d bytes, last ended at %d", x, len(text), at)
			}
			want = append(append(append(want, text[at:x.Start]...), "[REDACTED:"+x.Kind...), ']')
			at = x.End
		}
		want = append(want, text[at:]...)
		if !bytes.Equal(out, want) {
			t.Fatalf("out %q, want %q", out, want)
		}
	})
}
