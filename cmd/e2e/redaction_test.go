package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOwnRulesAndAllowedTexts: what config.yaml adds to masking holds for async
// and blocking rules and for dead letters sent again, from the next event on, in a
// running dispatcher too; a broken entry turns nothing off.
func TestOwnRulesAndAllowedTexts(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }))
	defer srv.Close()
	s := bareSite(t, "WAYS_DISPATCHER_IDLE=20s")
	log, blocked := filepath.Join(s.home, "audit", "async.jsonl"), filepath.Join(s.home, "audit", "blocking.jsonl")
	s.sensor(t, "async", "[user_prompt]", "file: {path: "+log+"}")
	s.sensor(t, "blocking", "[user_prompt]", "file: {path: "+blocked+"}", "mode: blocking")
	s.sensor(t, "dead", "[user_prompt]", "http: {url: "+srv.URL+"}", "delivery: at_least_once")
	conf := filepath.Join(s.config, "config.yaml")
	const prompt = "EMP-123456 password = hunter2 password = hunter3"
	for i, row := range []struct{ name, config, want string }{
		{"built-in", "", "EMP-123456 password = [REDACTED:password] password = [REDACTED:password]"},
		{"a rule", `redaction: {rules: [{name: badge, regex: 'EMP-(\d{6})', keywords: ["EMP-"]}]}`, "EMP-[REDACTED:badge] password = [REDACTED:password] password = [REDACTED:password]"},
		{"an allowed text", `redaction: {allow: [hunter2]}`, "EMP-123456 password = hunter2 password = [REDACTED:password]"},
		{"a broken rule", `redaction: {rules: [{name: badge, regex: '(', keywords: ["EMP-"]}], allow: [hunter3]}`, "EMP-123456 password = [REDACTED:password] password = hunter3"},
		{"a broken allowed text", `redaction: {allow: [{regex: '.*'}]}`, "EMP-123456 password = [REDACTED:password] password = [REDACTED:password]"},
		{"no YAML", "redaction: {allow: [hunter2", "EMP-123456 password = [REDACTED:password] password = [REDACTED:password]"},
	} {
		writeFile(t, conf, []byte(row.config+"\n"))
		s.fire(t, event("s", "UserPromptSubmit", `,"prompt":"`+prompt+`","prompt_id":"p`+string(rune('0'+i))+`"`))
		for _, file := range []string{log, blocked} {
			eventually(t, exitLimit, func() bool { return len(lines(t, file)) == i+1 }, s.story)
			if raw, err := os.ReadFile(file); err != nil || !strings.HasSuffix(lastLine(raw, `"prompt":"`, `"`), row.want) {
				t.Errorf("%s: %s has %s, want %s", row.name, filepath.Base(file), lastLine(raw, `"prompt":"`, `"`), row.want)
			}
		}
		broken := strings.Contains(row.name, "broken") || row.name == "no YAML"
		for _, verb := range [][]string{{"sensors", "lint"}, {"status"}} {
			out, _ := s.operate(t, verb...)
			if strings.Contains(out, "config.yaml:1:") != broken {
				t.Errorf("%s: %v says %s", row.name, verb, out)
			}
		}
	}
	if list := s.dispatchers(t, "s"); len(list) != 1 {
		t.Errorf("dispatchers: %v", list)
	}

	// Put aside under one set of rules, sent again under another.
	writeFile(t, conf, []byte(`redaction: {rules: [{name: badge, regex: 'EMP-(\d{6})', keywords: ["EMP-"]}]}`+"\n"))
	again := filepath.Join(s.home, "audit", "again.jsonl")
	s.sensor(t, "dead", "[user_prompt]", "file: {path: "+again+"}", "delivery: at_least_once")
	out := s.must(t, "sensors", "dead", "retry")
	raw, err := os.ReadFile(again)
	if err != nil || strings.Contains(string(raw), "EMP-1") || !strings.Contains(string(raw), "EMP-[REDACTED:badge]") {
		t.Errorf("%s: sent again: %v: %s", out, err, raw)
	}
}

// lastLine returns what stands between two texts in a file's last line.
func lastLine(raw []byte, from, to string) string {
	all := strings.Split(strings.TrimSpace(string(raw)), "\n")
	_, rest, _ := strings.Cut(all[len(all)-1], from)
	text, _, _ := strings.Cut(rest, to)
	return text
}
