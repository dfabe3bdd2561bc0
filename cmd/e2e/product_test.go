package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// repoRoot is the repository, from this package's directory.
const repoRoot = "../.."

// install is the product as a user has it: binaries in a directory of their
// own, and a home. The directory is also what tells its processes from those of
// other tests on the machine, which may replay the same session ids.
type install struct {
	binaries
	// env is the whole environment of every command.
	env []string
	// config is $XDG_CONFIG_HOME/agent-ways of that home.
	config string
}

// newInstall puts the binaries below home/bin and changes nothing else there.
// env is the environment of every command; HOME in it is home.
func newInstall(t *testing.T, home string, env []string) install {
	t.Helper()
	built, dir := buildBinaries(t), filepath.Join(home, "bin")
	in := install{
		binaries: binaries{ways: filepath.Join(dir, "ways"), waysctl: filepath.Join(dir, "waysctl")},
		env:      env,
		config:   filepath.Join(home, ".config", "agent-ways"),
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{built.ways: in.ways, built.waysctl: in.waysctl} {
		if err := os.Link(from, to); err != nil {
			t.Fatalf("installing: %v", err)
		}
	}
	return in
}

// run runs a verb of the front binary and returns its stdout.
func (in install) run(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), in.ways, args...)
	cmd.Env, cmd.Dir = in.env, t.TempDir()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("ways %s: %v\nstdout: %s\nstderr: %s", strings.Join(args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.Bytes()
}

// copySensor copies a shipped sensor, switches the copy on, and points its one
// rule at a log, as a user does in an editor.
func (in install) copySensor(t *testing.T, shipped, name, log string) {
	t.Helper()
	in.run(t, "sensors", "copy", shipped, name)
	path := filepath.Join(in.config, "sensors", name+".yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("the copied sensor: %v", err)
	}
	edited := regexp.MustCompile(`(?m)^(\s*-?\s*enabled:) false`).ReplaceAll(text, []byte("$1 true"))
	edited = regexp.MustCompile(`\bpath: [^,}\s]+`).ReplaceAllLiteral(edited, []byte("path: "+log))
	if !bytes.Contains(edited, []byte("path: "+log)) || bytes.Contains(edited, []byte("enabled: false")) {
		t.Fatalf("%s cannot be edited as expected:\n%s", path, text)
	}
	writeFile(t, path, edited)
}

// hook fires one hook event, as the client does, in the project directory
// that the client names. It must exit 0 and print nothing.
func (in install) hook(t *testing.T, payload []byte, project string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), in.ways, "hook", "sensors")
	cmd.Env = append(append([]string(nil), in.env...), "CLAUDE_PROJECT_DIR="+project)
	cmd.Stdin = bytes.NewReader(payload)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) != 0 {
		t.Fatalf("the hook said %q and ended with %v on %.200s", out, err, payload)
	}
}

// dispatchers lists this installation's running dispatchers of a session.
func (in install) dispatchers(t *testing.T, session string) []dispatcher {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ps", "-axww", "-o", "pid=,command=").Output()
	if err != nil {
		t.Fatalf("listing processes: %v", err)
	}
	var list []dispatcher
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, in.waysctl+" ") || !strings.Contains(line, "dispatch") || !strings.Contains(line, session) {
			continue
		}
		var d dispatcher
		if _, err := fmt.Sscan(line, &d.pid); err != nil {
			t.Fatalf("listing processes: %q: %v", line, err)
		}
		d.command = strings.TrimSpace(line)
		list = append(list, d)
	}
	return list
}

type dispatcher struct {
	pid     int
	command string
}

// exitLimit is how long a dispatcher may take to end: it drains first.
const exitLimit = 30 * time.Second

// waitGone waits until no dispatcher of the session is left.
func (in install) waitGone(t *testing.T, session string) {
	t.Helper()
	eventually(t, exitLimit,
		func() bool { return len(in.dispatchers(t, session)) == 0 },
		func() string { return fmt.Sprintf("still running: %v", in.dispatchers(t, session)) })
}

// record is what the tests read of a line in a log.
type record struct {
	V         int       `json:"v"`
	Section   string    `json:"section"`
	Event     string    `json:"event"`
	Source    string    `json:"source"`
	TS        time.Time `json:"ts"`
	Session   string    `json:"session"`
	Seq       int       `json:"seq"`
	AgentID   string    `json:"agent_id"`
	AgentType string    `json:"agent_type"`
	Project   string    `json:"project"`
	Rule      string    `json:"rule"`
	RuleSeq   int       `json:"rule_seq"`
	Data      struct {
		ID     string          `json:"id"`
		Name   string          `json:"name"`
		Input  json.RawMessage `json:"input"`
		Status string          `json:"status"`
		Output json.RawMessage `json:"output"`
		Error  json.RawMessage `json:"error"`
		Prompt json.RawMessage `json:"prompt"`
		Text   json.RawMessage `json:"text"`
	} `json:"data"`
}

// readLog parses every line of a log and checks it against the schema that the
// documentation publishes. The log ends with a newline.
func readLog(t *testing.T, path string) []record {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("the log: %v", err)
	}
	if !bytes.HasSuffix(raw, []byte("\n")) {
		t.Errorf("%s does not end with a newline", path)
	}
	schema := recordSchema(t)
	var list []record
	n := 0
	for line := range bytes.Lines(raw) {
		n++
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
		if err != nil {
			t.Fatalf("%s, line %d: %v: %.300q", path, n, err, line)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s, line %d: %v: %.300s", path, n, err, line)
		}
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%s, line %d: %v: %.300s", path, n, err, line)
		}
		list = append(list, r)
	}
	return list
}

// recordSchema is the published schema of a record.
func recordSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(repoRoot, "docs", "records.schema.json"))
	if err != nil {
		t.Fatalf("the records' schema: %v", err)
	}
	return schema
}

// checkNumbers shows that nothing is missing: in file order, each session's seq
// and each rule's own number count from 1 without a hole.
func checkNumbers(t *testing.T, list []record) {
	t.Helper()
	seq, ruleSeq := map[string]int{}, map[string]int{}
	for i, r := range list {
		rule := r.Session + " " + r.Rule
		seq[r.Session]++
		ruleSeq[rule]++
		if r.Seq != seq[r.Session] || r.RuleSeq != ruleSeq[rule] {
			t.Errorf("line %d: seq %d and rule_seq %d, want %d and %d", i+1, r.Seq, r.RuleSeq, seq[r.Session], ruleSeq[rule])
		}
	}
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// field returns one string field of a JSON object.
func field(t *testing.T, object []byte, name string) string {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(object, &fields); err != nil {
		t.Fatalf("%v: %.300s", err, object)
	}
	var value string
	if err := json.Unmarshal(fields[name], &value); err != nil {
		t.Fatalf("field %s: %v: %.300s", name, err, object)
	}
	return value
}
