package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ways/hooks/redact/quality"
)

// planted is what the leak tests put everywhere: secrets of every family in the
// texts they stand in, and tokens for fields that hold one word.
type planted struct {
	texts  []quality.Planted
	tokens []string
}

func plant() planted {
	p := planted{texts: quality.Corpus(4711, 40)}
	for _, one := range p.texts {
		if one.Family == "token" && !strings.ContainsAny(one.Parts[0], "/.= ") {
			p.tokens = append(p.tokens, one.Parts[0])
		}
	}
	return p
}

// text is all of them in one text.
func (p planted) text() string {
	var b strings.Builder
	for _, one := range p.texts {
		b.WriteString(one.Text + "\n\n")
	}
	return b.String()
}

func (p planted) token(i int) string { return p.tokens[i%len(p.tokens)] }

// leaks returns the secrets of which a piece is left in data.
func (p planted) leaks(data []byte) []string {
	var found []string
	for _, one := range p.texts {
		if piece := quality.Leaks(data, one.Parts); piece != "" {
			found = append(found, fmt.Sprintf("%s %s: %q", one.Family, one.Service, piece))
		}
	}
	return found
}

// payloads is one payload of every event, with secrets in every field of it.
func (p planted) payloads(session string) []string {
	text := p.text()
	tool := func(event string, more map[string]any) map[string]any {
		input := map[string]any{
			"command": "echo '" + text + "'", "file_path": "/srv/" + p.token(1) + "/x", "nested": map[string]any{"json": jsonText(map[string]string{"env": text})},
			"list": strings.Split(text, "\n"), p.token(2): "a key",
		}
		m := map[string]any{"hook_event_name": event, "tool_name": "mcp__" + p.token(3), "tool_use_id": "toolu_" + event + "_" + p.token(4), "tool_input": input}
		for k, v := range more {
			m[k] = v
		}
		return m
	}
	var out []string
	for i, m := range []map[string]any{
		{"hook_event_name": "SessionStart", "source": p.token(5), "model": p.token(6)},
		{"hook_event_name": "UserPromptSubmit", "prompt": text},
		tool("PreToolUse", nil),
		tool("PostToolUse", map[string]any{"tool_response": map[string]any{"stdout": text, "stderr": text, p.token(7): true}}),
		tool("PostToolUseFailure", map[string]any{"error": text}),
		{"hook_event_name": "SubagentStart"},
		{"hook_event_name": "SubagentStop", "last_assistant_message": text},
		{"hook_event_name": "Stop", "last_assistant_message": text},
		{"hook_event_name": "PreCompact", "trigger": p.token(8), "custom_instructions": text},
		{"hook_event_name": "Event_" + p.token(9), "prompt": text},
		{"hook_event_name": "SessionEnd", "reason": p.token(10)},
	} {
		m["session_id"], m["cwd"] = session, "/srv/"+p.token(11)
		m["transcript_path"] = "/srv/" + p.token(12) + "/t.jsonl"
		m["agent_id"], m["agent_type"] = "agent_"+p.token(13), "type-"+p.token(14)
		m["prompt_id"], m["permission_mode"] = fmt.Sprint("prompt", i, ":", p.token(15)), p.token(16)
		out = append(out, jsonText(m))
	}
	return append(out,
		out[1][:len(out[1])/2],                           // cut off
		strings.Replace(out[1], `"prompt"`, `prompt`, 1), // no JSON
		`["`+p.token(17)+`"]`,
	)
}

func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// TestNothingLeaks: secrets of every kind in every field of every event, through
// every kind of target, accepting, failing, refusing, too slow, blocking, tried
// again and put aside. No byte under the state, cache and configuration
// directories, of what a target got, and of what any verb prints, holds a piece of
// one; the spool does, and the target of the rule with `redact: none`.
func TestNothingLeaks(t *testing.T) {
	p := plant()
	if len(p.tokens) < 8 {
		t.Fatalf("%d tokens", len(p.tokens))
	}
	var mu sync.Mutex
	var posted bytes.Buffer
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(&posted, "%v\n%s\n", r.Header, body)
		var status int
		if n, _ := fmt.Sscanf(r.URL.Path, "/%d", &status); n == 1 {
			w.Header().Set("X-Echo", "password="+p.token(0))
			w.WriteHeader(status)
		}
		_, _ = w.Write(body)
	}))
	defer srv.Close()

	s := bareSite(t, "WAYS_DISPATCHER_IDLE=2s")
	out := filepath.Join(s.home, "audit")
	script := func(name, body string) string {
		path := filepath.Join(s.home, "bin", name)
		writeFile(t, path, []byte("#!/bin/sh\n"+body+"\n"))
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	writeFile(t, filepath.Join(out, "dir", "x"), nil)
	plain := filepath.Join(t.TempDir(), "unmasked.jsonl")
	echo := script("echo", `tee -a "$1/echo.out" >&2; env >>"$1/echo.env"; exit "$2"`)
	slow := script("slow", `cat >&2; echo; sleep 60`)
	for name, dispatch := range map[string][]string{
		"file":      {"file: {path: " + out + "/all.jsonl}"},
		"chained":   {"file: {path: " + out + "/chain.jsonl}", "chain: true"},
		"text":      {"file: {path: " + out + "/all.txt, format: text, template: \"{session} {cwd} {agent_type} {data.prompt|data}\"}"},
		"dir":       {"file: {path: " + out + "/dir}"},
		"dir2":      {"file: {path: " + out + "/dir}", "delivery: at_least_once"},
		"ok":        {"http: {url: " + srv.URL + "/200}"},
		"down":      {"http: {url: " + srv.URL + "/503}"},
		"retried":   {"http: {url: " + srv.URL + "/503}", "delivery: at_least_once"},
		"dead":      {"http: {url: " + srv.URL + "/400}", "delivery: at_least_once"},
		"blockhttp": {"http: {url: " + srv.URL + "/500}", "mode: blocking"},
		"command":   {"command: {argv: [" + echo + ", " + out + ", \"0\"]}"},
		"fails":     {"command: {argv: [" + echo + ", " + out + ", \"7\"]}"},
		"args":      {"command: {argv: [sh, -c, \"printf %s \\\"$1\\\" >>\\\"$2\\\"; exit 3\", x, \"{session} {data}\", " + out + "/args.out], input: args}"},
		"slow":      {"command: {argv: [" + slow + "]}", "timeout: 50ms"},
		"block":     {"command: {argv: [" + echo + ", " + out + ", \"9\"]}", "mode: blocking", "timeout: 2s"},
		"unmasked":  {"file: {path: " + plain + "}", "redact: none"},
	} {
		s.sensor(t, name, allSections, dispatch[0], dispatch[1:]...)
	}
	// A token in the place of the session's id, an id that is no plain word, a UUID.
	sessions := []string{p.token(3), "a/" + p.token(5), "3f2c9f44-5a52-4f3e-9a37-0c6f8a1d2b11"}
	fired := 0
	for _, session := range sessions {
		for _, payload := range p.payloads(session) {
			s.fire(t, payload)
			fired++
		}
	}
	eventually(t, 2*exitLimit, func() bool {
		for _, session := range sessions {
			if len(s.dispatchers(t, session)) > 0 {
				return false
			}
		}
		return true
	}, s.story)

	said := map[string]string{}
	for _, verb := range [][]string{
		{"status"},
		{"status", "--json"},
		{"sensors", "list"},
		{"sensors", "list", "--json"},
		{"sensors", "lint"},
		{"sensors", "lint", "--json"},
		{"sensors", "show", "fails"},
		{"sensors", "show", "fails", "--json"},
		{"sensors", "dead", "list"},
		{"sensors", "dead", "list", "--json"},
		{"sensors", "dead", "retry"},
		{"sensors", "drain"},
		{"sensors", "trust"},
		{"logs"},
		{"logs", "--json"},
		{"metrics"},
		{"sensors", "compile"},
		{"sensors", "show", p.token(2)},
		{"sensors", "dispatch", "--session", "none"},
	} {
		said[strings.Join(verb, " ")], _ = s.operate(t, verb...)
	}
	if !strings.Contains(said["status"], "fails/log") || !strings.Contains(said["sensors dead list --json"], "REDACTED") {
		t.Errorf("the verbs saw nothing:\n%s\n%s", said["status"], said["sensors dead list --json"])
	}
	for verb, text := range said {
		if found := p.leaks([]byte(text)); len(found) > 0 && verb != "sensors show "+p.token(2) {
			t.Errorf("ways %s prints %v", verb, found)
		}
	}
	mu.Lock()
	if posted.Len() == 0 {
		t.Error("nothing was posted")
	}
	if found := p.leaks(posted.Bytes()); len(found) > 0 {
		t.Errorf("posted: %v", found)
	}
	mu.Unlock()
	searched := 0
	for _, root := range []string{s.dirs.State, s.dirs.Cache, s.dirs.Config, out} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name := strings.TrimPrefix(path, s.home)
			if found := p.leaks([]byte(name)); len(found) > 0 {
				t.Errorf("the path %s: %v", name, found)
			}
			// What came in and is still to be told, as it came in.
			spool := strings.HasSuffix(path, ".seg") || strings.Contains(path, "/inbox/") || filepath.Base(path) == "transcripts.json"
			if filepath.Base(path) == "transcripts.json" {
				raw, err := os.ReadFile(path)
				if found := p.leaks(raw); err != nil || len(found) > len(p.tokens) {
					t.Errorf("%s holds text, not only ids and paths: %v, %v", name, found, err)
				}
			}
			if !d.Type().IsRegular() || spool {
				return nil
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			searched++
			if found := p.leaks(data); len(found) > 0 {
				t.Errorf("%s: %v", name, found)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	if found := p.leaks(raw); len(found) != len(p.texts) {
		t.Errorf("the unmasked target has %d of %d secrets", len(found), len(p.texts))
	}
	t.Logf("%d payloads with %d secrets each, %d files searched", fired, len(p.texts), searched)
}
