package redact_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"ways/hooks/redact"
)

func masker(t testing.TB, opts redact.Options) *redact.Masker {
	t.Helper()
	m, err := redact.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// What a record looks like when it leaves: only the secret changed, whatever
// it was wrapped in.
func TestSeal(t *testing.T) {
	m := masker(t, redact.Options{})
	for _, tt := range []struct {
		name, rec, want string
	}{
		{"header in a command", `{"a":"curl -H \"Authorization: Bearer abcdef0123456789abcd\" \"http://x\""}`, `{"a":"curl -H \"Authorization: Bearer [REDACTED:bearer-token]\" \"http://x\""}`},
		{"member, quote in the value, large number", `{"a":{"password":"hunter2"},"password":"pa\"ss","n":9007199254740993}`, `{"a":{"password":"[REDACTED:password]"},"password":"[REDACTED:password]","n":9007199254740993}`},
		{"number as a password", `{"password":12345678, "max_tokens": 4096}`, `{"password":"[REDACTED:password]", "max_tokens": 4096}`},
		{"number as a password in JSON in a string", `{"o":"{\"password\":12345678,\"n\":12345678901}","p":"{\"a\":\"{\\\"pwd\\\":87654321}\"}"}`, `{"o":"{\"password\":\"[REDACTED:password]\",\"n\":12345678901}","p":"{\"a\":\"{\\\"pwd\\\":\\\"[REDACTED:password]\\\"}\"}"}`},
		{"header in JSON in JSON in a string", `{"o":"{\"b\":\"curl -H \\\"Authorization: Bearer abcdef0123456789abcd\\\" x\"}"}`, `{"o":"{\"b\":\"curl -H \\\"Authorization: Bearer [REDACTED:bearer-token]\\\" x\"}"}`},
		{"arguments and an environment file", `{"argv":["--password","hunter2"],"e":"DB_PASSWORD=hunter2\nFOO=bar"}`, `{"argv":["--password","[REDACTED:password]"],"e":"DB_PASSWORD=[REDACTED:password]\nFOO=bar"}`},
		{"key block", `{"k":"-----BEGIN PRIVATE KEY-----\nMIIEvgIBADANBgkqhkiG9w0BAQEFAASC\nabcdefghijklmnop\n-----END PRIVATE KEY-----\n"}`, `{"k":"[REDACTED:private-key]\n"}`},
		{"key block in JSON in a string", `{"k":"{\"k\":\"-----BEGIN PRIVATE KEY-----\\nMIIEvgIBADANBgkqhkiG9w0BAQEFAASC\\nabcdefghijklmnop\\n-----END PRIVATE KEY-----\\n\"}"}`, `{"k":"{\"k\":\"[REDACTED:private-key]\\n\"}"}`},
		{"key block in a list of lines", `{"lines":["+-----BEGIN RSA PRIVATE KEY-----","+MIIEvgIBADANBgkqhkiG9w0BAQEFAASC","+abcdefghijklmnopqrstuvwx","+-----END RSA PRIVATE KEY-----"," x"]}`, `{"lines":["+[REDACTED:private-key]","[REDACTED:private-key]","[REDACTED:private-key]","[REDACTED:private-key]"," x"]}`},
		{"JSON two levels deep", `{"k":"{\"access-key\":\"A8sdf76asdf876asdf\"}","z":"{\"a\":\"{\\\"access-key\\\":\\\"B9tdf76asdf876asdg\\\"}\"}"}`, `{"k":"{\"access-key\":\"[REDACTED:api-key]\"}","z":"{\"a\":\"{\\\"access-key\\\":\\\"[REDACTED:api-key]\\\"}\"}"}`},
		{"connection string", `{"u":"postgres://user:hunter2@host/db"}`, `{"u":"postgres://user:[REDACTED:url-password]@host/db"}`},
		{"plain assignment", `{"u":"password = hunter2"}`, `{"u":"password = [REDACTED:password]"}`},
		{"token formats", `{"u":"ghp_0123456789abcdefghijABCDEFGHIJ012345 and sk-or-v1-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef."}`, `{"u":"[REDACTED:github-pat] and [REDACTED:openrouter-api-key]."}`},
		{"cookie", `{"u":"Cookie: a=b1; session=abcdef"}`, `{"u":"Cookie: a=[REDACTED:cookie]; session=[REDACTED:cookie]"}`},
		{"placeholders", `{"u":"password = os.environ['X'] token=${TOKEN} api_key: <your-key> secret=xxxx"}`, ``},
		{"ids", `{"session":"a78d8549-8442-40b5-8a32-8ba87b02955d","prompt_id":"8833aeb6-079d-420d-b682-cdbace07b4a8","data":{"id":"toolu_58a6ae0d418b47a4bf79428a","cache_key":"0123456789abcdef0123456789abcdef","sha":"3f786850e387550fdab836ed7e6dc881de23001b"}}`, ``},
		{"base64 of an environment file", `{"u":"echo REJfSE9TVD14CkRCX1BBU1NXT1JEPWh1bnRlcjIK | base64 -d"}`, `{"u":"echo [REDACTED:password] | base64 -d"}`},
		{"base64 of prose about passwords", `{"u":"VGhlIHBhc3N3b3JkIGZpZWxkIGlzIHJlcXVpcmVkLgo="}`, ``},
		{"object key", `{"ghp_0123456789abcdefghijABCDEFGHIJ012345":1}`, `{"[REDACTED:github-pat]":1}`},
		{"repeated elsewhere", `{"u":"password = s3cr3t-Horse","v":"then s3cr3t-Horse, again"}`, `{"u":"password = [REDACTED:password]","v":"then [REDACTED:password], again"}`},
		{"lone surrogate kept", `{"u":"\ud800 password = hunter2 \udfff"}`, `{"u":"\ud800 password = [REDACTED:password] \udfff"}`},
		{"white space kept", `{ "u" : "password = hunter2" , "v":1 }`, `{ "u" : "password = [REDACTED:password]" , "v":1 }`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := tt.want
			if want == "" {
				want = tt.rec
			}
			p := m.Seal([]byte(tt.rec), redact.Envelope{Rule: "s/r", RuleSeq: 7})
			if !json.Valid(p.Bytes()) {
				t.Fatalf("no JSON: %s", p.Bytes())
			}
			body, envelope, _ := strings.Cut(string(p.Bytes()), `,"rule":"s/r","rule_seq":7`)
			want = strings.TrimRight(strings.TrimSuffix(want, "}"), " ")
			if strings.TrimRight(body, " ") != want {
				t.Errorf("got  %s\nwant %s", body, want)
			}
			if (envelope == "}") != (tt.want == "") {
				t.Errorf("envelope %s", envelope)
			}
		})
	}
}

func TestEnvelope(t *testing.T) {
	m := masker(t, redact.Options{})
	p := m.Seal([]byte(`{"a":"password = hunter2","b":"https://u:hunter3@h/","c":"password = hunter4"}`), redact.Envelope{Rule: `a/"b`, RuleSeq: 18446744073709551615, Test: true})
	want := `{"a":"password = [REDACTED:password]","b":"https://u:[REDACTED:url-password]@h/","c":"password = [REDACTED:password]","rule":"a/\"b","rule_seq":18446744073709551615,"test":true,"redacted":{"password":2,"url-password":1}}`
	if string(p.Bytes()) != want {
		t.Errorf("got  %s\nwant %s", p.Bytes(), want)
	}
	if !maps.Equal(p.Counts(), map[string]int{"password": 2, "url-password": 1}) {
		t.Errorf("counts %v", p.Counts())
	}
	rec := []byte(`{"a":"password = hunter2"}`)
	plain := redact.Plain(rec, redact.Envelope{Rule: "a/b", RuleSeq: 1})
	if got, want := string(plain.Bytes()), `{"a":"password = hunter2","rule":"a/b","rule_seq":1}`; got != want || plain.Counts() != nil {
		t.Errorf("got  %s %v\nwant %s", got, plain.Counts(), want)
	}
	if string(rec) != `{"a":"password = hunter2"}` {
		t.Errorf("the record was changed: %s", rec)
	}
	if got, want := string(redact.Plain([]byte(`{}`), redact.Envelope{Rule: "a/b"}).Bytes()), `{"rule":"a/b","rule_seq":0}`; got != want {
		t.Errorf("got %s want %s", got, want)
	}
}

// What cannot be read cannot be masked, so it is not sent.
func TestSealRefusesWhatIsNoObject(t *testing.T) {
	m := masker(t, redact.Options{})
	for _, rec := range []string{``, `{`, `[]`, `"password = hunter2"`, `{"a":"password = hunter2}`, `{"a":"password = hunter2"} {}`, `{"a":"\u12"}`} {
		p := m.Seal([]byte(rec), redact.Envelope{Rule: "a/b", RuleSeq: 1})
		if got, want := string(p.Bytes()), `{"rule":"a/b","rule_seq":1,"redacted":{"unscanned":1}}`; got != want {
			t.Errorf("%q: got %s, want %s", rec, got, want)
		}
	}
}
