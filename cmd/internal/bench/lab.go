package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"ways/hooks/dirs"
	"ways/hooks/launch"
)

// session is the id in every payload.
const session = "5f0c1e52-8d7a-4a58-9a51-2f8c60d3b1aa"

// sensorFiles is the number of sensor files in the seed's budget (§2).
const sensorFiles = 20

// drainTime bounds the wait for the dispatcher to deliver what is left and end.
const drainTime = 30 * time.Second

// program is one row: what is run, over and over.
type program struct {
	name string
	argv []string
	env  []string
	// stdin returns what the n-th run reads; nil for none. No two runs of a hook
	// get the same event, since the second would be dropped as a duplicate.
	stdin func(n int) []byte
}

// lab is the programs to time, and the home whose dispatcher runs meanwhile.
type lab struct {
	programs []program
	selected home
	ways     string
}

// newLab builds the programs below dir. bin holds ways and waysctl.
func newLab(ctx context.Context, dir, bin string) (*lab, error) {
	for _, name := range []string{"ways", "waysctl"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return nil, fmt.Errorf("%w (go tool task build)", err)
		}
	}
	bare, err := buildGo(ctx, dir, "bare", "package main\n\nfunc main() {}\n")
	if err != nil {
		return nil, err
	}
	hello, err := buildGo(ctx, dir, "hello", "package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(\"hello\\n\") }\n")
	if err != nil {
		return nil, err
	}
	none, err := newHome(filepath.Join(dir, "none"), 0, "")
	if err != nil {
		return nil, err
	}
	unselected, err := newHome(filepath.Join(dir, "unselected"), sensorFiles, "session_end")
	if err != nil {
		return nil, err
	}
	selected, err := newHome(filepath.Join(dir, "selected"), sensorFiles, "tool_call")
	if err != nil {
		return nil, err
	}
	l := &lab{selected: selected, ways: filepath.Join(bin, "ways")}
	hook := []string{l.ways, "hook", "sensors"}
	l.programs = []program{
		{name: "Go, `func main() {}`", argv: []string{bare}, env: none.env()},
		{name: "Go, hello", argv: []string{hello}, env: none.env()},
		{name: "`ways --version`", argv: []string{l.ways, "--version"}, env: none.env()},
		{name: "`ways hook sensors`, no sensor file", argv: hook, env: none.env(), stdin: toolCall},
		{name: "`ways hook sensors`, 20 sensor files, none selects the event", argv: hook, env: unselected.env(), stdin: toolCall},
		{name: "`ways hook sensors`, 20 sensor files, one async rule selects it", argv: hook, env: selected.env(), stdin: toolCall},
	}
	scripts, err := scriptHooks(ctx, dir, none)
	l.programs = append(l.programs, scripts...)
	return l, err
}

// close ends the session, waits until its dispatcher has delivered everything
// and is gone, and returns how many records the selecting rule's log has.
func (l *lab) close(ctx context.Context) (int, error) {
	end := program{argv: []string{l.ways, "hook", "sensors"}, env: l.selected.env(), stdin: sessionEnd}
	if _, err := end.time(0); err != nil {
		return 0, fmt.Errorf("ending the session: %w", err)
	}
	if err := l.selected.waitIdle(ctx); err != nil {
		return 0, err
	}
	log, err := os.ReadFile(l.selected.log())
	if err != nil {
		return 0, err
	}
	return bytes.Count(log, []byte("\n")), nil
}

// scriptHooks are the hooks that people write: append the payload to a file.
// Those whose interpreter is not installed are left out.
func scriptHooks(ctx context.Context, dir string, h home) ([]program, error) {
	var found []program
	if python, err := exec.LookPath("python3"); err == nil {
		// The interpreter itself: a version manager's wrapper would be timed too.
		out, err := exec.CommandContext(ctx, python, "-c", "import sys; print(sys.executable)").Output()
		if err != nil {
			return nil, fmt.Errorf("asking %s for its path: %w", python, err)
		}
		script := filepath.Join(dir, "append.py")
		text := "import sys\nwith open(sys.argv[1], \"ab\") as log:\n    log.write(sys.stdin.buffer.read() + b\"\\n\")\n"
		if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
			return nil, err
		}
		found = append(found, program{
			name:  "python3 script that appends the payload to a file",
			argv:  []string{strings.TrimSpace(string(out)), script, filepath.Join(dir, "python.jsonl")},
			env:   h.env(),
			stdin: toolCall,
		})
	}
	if _, err := exec.LookPath("jq"); err == nil {
		found = append(found, program{
			name:  "`sh -c 'jq -c . >> FILE'`",
			argv:  []string{"/bin/sh", "-c", `jq -c . >> "$0"`, filepath.Join(dir, "jq.jsonl")},
			env:   h.env(),
			stdin: toolCall,
		})
	}
	return found, nil
}

// buildGo builds a one-file program as the product is built.
func buildGo(ctx context.Context, dir, name, source string) (string, error) {
	file := filepath.Join(dir, name+".go")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		return "", err
	}
	binary := filepath.Join(dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, file)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", name, err, out)
	}
	return binary, nil
}

// home is a user's home with sensor files in it.
type home struct {
	root string
	dirs dirs.Dirs
}

// newHome makes a home with n sensor files below root. The first one's rule
// selects section, the others session_end.
func newHome(root string, n int, section string) (home, error) {
	h := home{root: root}
	d, err := dirs.From(func(name string) string {
		if name == "HOME" {
			return root
		}
		return ""
	})
	if err != nil {
		return home{}, err
	}
	h.dirs = d
	for _, dir := range []string{d.Sensors(), h.project()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return home{}, err
		}
	}
	for i := range n {
		log := h.log()
		if i > 0 {
			section = "session_end"
			log = filepath.Join(root, fmt.Sprintf("other-%02d.jsonl", i))
		}
		name := fmt.Sprintf("bench-%02d", i)
		text := fmt.Sprintf(`spec: 1
kind: ways
name: %s
description: One of the sensor files of a benchmark.
enabled: true
rules:
  - name: log
    enabled: true
    sections: [%s]
    dispatch:
      file: {path: %q, format: jsonl}
    mode: async
`, name, section, log)
		if err := os.WriteFile(filepath.Join(d.Sensors(), name+".yaml"), []byte(text), 0o600); err != nil {
			return home{}, err
		}
	}
	return h, nil
}

func (h home) project() string { return filepath.Join(h.root, "project") }

// log is the file of the rule that selects.
func (h home) log() string { return filepath.Join(h.root, "selected.jsonl") }

func (h home) env() []string {
	return []string{"HOME=" + h.root, "PATH=" + os.Getenv("PATH"), "CLAUDE_PROJECT_DIR=" + h.project()}
}

// waitIdle returns once no dispatcher runs for the session.
func (h home) waitIdle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		lock, err := launch.TryLock(h.dirs.Session(session))
		if err == nil {
			return lock.Close()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return errors.New("no hook made a spool: the index was not compiled, or selects nothing (ways sensors compile says why)")
		}
		if !errors.Is(err, launch.ErrRunning) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the dispatcher still runs %s after the session's end", drainTime)
		case <-tick.C:
		}
	}
}

// toolCall is the payload of one Bash call, as the client writes it.
func toolCall(n int) []byte {
	return fmt.Appendf(nil, `{"session_id":%q,"transcript_path":"/nonexistent/transcript.jsonl","cwd":"/nonexistent",`+
		`"prompt_id":"8f4a5f0e-6a3c-4f0e-9a4e-0f7f6f1f2a11","permission_mode":"default","effort":{"level":"high"},`+
		`"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"go test ./... 2>&1 | tail -40","description":"Run the tests"},`+
		`"tool_use_id":"toolu_%020d"}`, session, n)
}

func sessionEnd(int) []byte {
	return fmt.Appendf(nil, `{"session_id":%q,"transcript_path":"/nonexistent/transcript.jsonl","cwd":"/nonexistent",`+
		`"hook_event_name":"SessionEnd","reason":"other"}`, session)
}
