package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// terminalBytes are what a terminal would act on: a clipboard written (OSC 52), a link (OSC 8),
// a line cleared, a C1 control, a line turned round.
const terminalBytes = "\x1b]52;c;aGk=\x07\x1b]8;;http://x\x1b\\\x1b[2K\r\u009b31m\u202e\u2066\u200f"

// acts returns the first character of a text that a terminal would act on.
func acts(text string) string {
	i := strings.IndexFunc(text, func(r rune) bool {
		return r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
	})
	if i < 0 {
		return ""
	}
	return text[max(0, i-40):min(len(text), i+20)]
}

// TestNoVerbActsOnTheTerminal: escapes, clipboards, links and turned lines in names of
// files and directories, in sensor files and settings, in session ids, error texts and
// arguments are shown by every verb, and done by none. JSON is JSON.
func TestNoVerbActsOnTheTerminal(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }))
	defer srv.Close()
	s := bareSite(t, shortIdle)
	project := filepath.Join(s.home, "app"+terminalBytes)
	text, err := json.Marshal(terminalBytes)
	if err != nil {
		t.Fatal(err)
	}
	quoted := string(text) // YAML reads it the same
	writeFile(t, filepath.Join(s.config, "sensors", "bad.yaml"), []byte("spec: 1\nkind: ways\nname: bad\ndescription: "+quoted+"\n"+
		"rules:\n  - name: "+quoted+"\n  - name: a\n    "+quoted+": 1\n    sections: ["+quoted+"]\n    where: {"+quoted+": "+quoted+"}\n    dispatch: {http: {url: "+quoted+"}}\n"+
		"  - name: b\n    sections: [tool_call]\n    where: {data.x: "+quoted+"}\n    dispatch: {command: {argv: ["+quoted+"], cwd: "+quoted+"}}\n"+
		"  - name: c\n    sections: [tool_call]\n    dispatch: {file: {path: \"/x"+quoted[1:]+"}}\n    redact: none\n"))
	writeFile(t, filepath.Join(s.config, "sensors", "x"+terminalBytes+".yaml"), nil)
	writeFile(t, filepath.Join(s.config, "sensors", "y"+terminalBytes+".yml"), nil)
	writeFile(t, filepath.Join(s.config, "config.yaml"), []byte("spool: {"+quoted+": 1}\n"))
	writeFile(t, filepath.Join(project, ".claude", "ways-sensors", "theirs.yaml"), []byte("x"))
	s.sensor(t, "runs", allSections, "command: {argv: [sh, -c, \"printf '%b' '\\\\033[2K\\\\033]52;c;aGk=\\\\007' | tee /dev/stderr; exit 3\"]}")
	s.sensor(t, "dead", allSections, "http: {url: "+srv.URL+"}", "delivery: at_least_once")
	s.sensor(t, "log", allSections, "file: {path: "+filepath.Join(s.home, "log.txt")+", format: text}")
	for _, session := range []string{"s" + terminalBytes, "t"} {
		s.fire(t, jsonText(map[string]any{
			"session_id": session, "hook_event_name": "UserPromptSubmit", "cwd": "/" + terminalBytes, "prompt": terminalBytes, "agent_type": terminalBytes, "prompt_id": terminalBytes,
		}), "CLAUDE_PROJECT_DIR="+project)
	}
	eventually(t, exitLimit, func() bool {
		return strings.Contains(s.must(t, "sensors", "dead", "list"), "dead/log:2") || strings.Count(s.must(t, "sensors", "dead", "list"), "dead/log") == 2
	}, s.story)
	for _, verb := range [][]string{
		{"status"},
		{"sensors", "list"},
		{"sensors", "lint"},
		{"sensors", "show", "bad"},
		{"sensors", "show", "bad/b"},
		{"sensors", "show", terminalBytes},
		{"sensors", "show", "bad/" + terminalBytes},
		{"sensors", "lint", filepath.Join(s.config, "sensors", "bad.yaml")},
		{"sensors", "lint", "/" + terminalBytes},
		{"sensors", "copy", terminalBytes, "x"},
		{"sensors", "copy", "bad", terminalBytes},
		{"sensors", "enable", terminalBytes},
		{"sensors", "disable", terminalBytes},
		{"sensors", "dead", "list"},
		{"sensors", "dead", "list", terminalBytes},
		{"sensors", "dead", "show", terminalBytes},
		{"sensors", "dead", "retry"},
		{"sensors", "dead", "drop", terminalBytes},
		{"sensors", "trust"},
		{"sensors", "trust", "--project", project},
		{"sensors", "trust", "--remove", "--project", "/" + terminalBytes},
		{"sensors", "list", "--project", project},
		{"sensors", "lint", "--project", project},
		{"sensors", "dispatch", "--session", terminalBytes},
		{"sensors", "drain", "--session", terminalBytes},
		{"sensors", "drain"},
		{"sensors", "compile", "--project", project},
		{"sensors", terminalBytes},
		{terminalBytes},
		{"status", "--" + terminalBytes},
		{"sensors", "list", "--" + terminalBytes},
		{"status", terminalBytes},
		{"logs", "--level", terminalBytes},
		{"metrics"},
		{"metrics", terminalBytes},
		{"reconcile", "--settings", "/" + terminalBytes},
		{"reconcile", "--dry-run", terminalBytes},
		{"sensors", "verify", "/" + terminalBytes},
		{"hook", terminalBytes},
		{"version"},
	} {
		out, _ := s.operate(t, verb...)
		if at := acts(out); at != "" {
			t.Errorf("ways %.60q prints %q", verb, at)
		}
	}
	for _, verb := range [][]string{
		{"status", "--json"}, {"sensors", "list", "--json"}, {"sensors", "lint", "--json"}, {"sensors", "show", "bad", "--json"}, {"sensors", "dead", "list", "--json"}, {"logs"},
	} {
		out, _ := s.operate(t, verb...)
		for dec := json.NewDecoder(strings.NewReader(out)); dec.More(); {
			var v any
			if err := dec.Decode(&v); err != nil {
				t.Errorf("ways %v: %v: %.300q", verb, err, out)
				break
			}
		}
	}
	cmd := s.command(t, terminalBytes)
	cmd.Args = []string{s.ways, "sensors", "redact"} // the text is on stdin
	if out, err := cmd.CombinedOutput(); err != nil || acts(string(out)) != "" {
		t.Errorf("redact: %v: %q", err, out)
	}
	if raw, err := os.ReadFile(filepath.Join(s.home, "log.txt")); err != nil || acts(string(raw)) != "" {
		t.Errorf("the text log: %v: %q", err, raw)
	}
}
