package reconcile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMain lets a copy of the test binary that is called ways be the product:
// the tests run it as a process, in homes of their own.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "ways" && len(os.Args) > 1 && os.Args[1] == "reconcile" {
		os.Exit(Run(os.Args[2:], Env{
			Getenv: os.Getenv, Executable: os.Executable,
			Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		}))
	}
	os.Exit(m.Run())
}

// home is one user's machine: a HOME, and the product in a directory of its own.
type home struct {
	t    *testing.T
	dir  string
	ways string
	env  []string
}

func newHome(t *testing.T) *home {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &home{t: t, dir: filepath.Join(dir, "home"), ways: filepath.Join(dir, "bin", "ways")}
	for _, d := range []string{h.dir, filepath.Dir(h.ways)} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h.installAt(h.ways)
	// A race-built process would sleep a second at its end, and one built for
	// coverage would warn on stderr.
	h.env = []string{"GORACE=atexit_sleep_ms=0", "GOCOVERDIR=" + t.TempDir(), "HOME=" + h.dir, "PATH=" + filepath.Dir(h.ways) + ":/usr/bin:/bin"}
	return h
}

// installAt puts the product at a path. A link would do, were os.Executable
// not to see through a symlink and the test binary not perhaps on another disk.
func (h *home) installAt(path string) {
	h.t.Helper()
	self, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	if os.Link(self, path) == nil {
		return
	}
	text, err := os.ReadFile(self)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o755); err != nil {
		h.t.Fatal(err)
	}
}

type result struct {
	code        int
	out, errors string
}

func (h *home) run(args ...string) result {
	h.t.Helper()
	return h.start(h.ways, append([]string{"reconcile"}, args...)...)
}

func (h *home) start(program string, args ...string) result {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), program, args...)
	cmd.Env, cmd.Dir = h.env, h.dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		h.t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

func (h *home) path(parts ...string) string {
	return filepath.Join(append([]string{h.dir}, parts...)...)
}

func (h *home) write(text string, parts ...string) string {
	h.t.Helper()
	path := h.path(parts...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		h.t.Fatal(err)
	}
	return path
}

func (h *home) read(path string) string {
	h.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(text)
}

// commands counts the programs that a settings file runs, by event.
func (h *home) commands(path string) map[string][]string {
	h.t.Helper()
	var settings struct {
		Hooks map[string][]struct {
			Hooks []struct {
				Command string
				Args    []string
			}
		}
	}
	if err := json.Unmarshal([]byte(h.read(path)), &settings); err != nil {
		h.t.Fatal(err)
	}
	found := map[string][]string{}
	for event, groups := range settings.Hooks {
		for _, g := range groups {
			for _, e := range g.Hooks {
				found[event] = append(found[event], strings.Join(append([]string{e.Command}, e.Args...), " "))
			}
		}
	}
	return found
}

const foreign = "{\n  \"model\": \"x\",\n  \"hooks\": {\n    \"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"a && b\"}]}]\n  }\n}"

func TestInstallTwiceAndRemove(t *testing.T) {
	h := newHome(t)
	file := h.write(foreign, ".claude", "settings.json")

	first := h.run()
	if first.code != Done || first.errors != "" {
		t.Fatalf("%+v", first)
	}
	backup := ""
	for line := range strings.Lines(first.out) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "backup "); ok {
			backup = strings.TrimSpace(rest)
		}
	}
	want := fmt.Sprintf(`Wired ways in %s.
  added    PreToolUse, PostToolUse, PostToolUseFailure, UserPromptSubmit, Stop, SubagentStart, SubagentStop, SessionStart, SessionEnd, PreCompact
  runs     %s hook sensors
  backup   %s
Takes effect in sessions that start from now on. Undo with: ways reconcile --remove
`, file, h.ways, backup)
	if first.out != want {
		t.Errorf("got\n%s\nwant\n%s", first.out, want)
	}
	if !strings.HasPrefix(backup, h.path(".local", "state", "agent-ways", "wiring")+"/") || h.read(backup) != foreign {
		t.Errorf("backup %s", backup)
	}
	found := h.commands(file)
	if len(found) != 10 || !slices.Equal(found["Stop"], []string{"a && b", h.ways + " hook sensors"}) ||
		!slices.Equal(found["PreToolUse"], []string{h.ways + " hook sensors"}) {
		t.Errorf("%v", found)
	}

	wired := h.read(file)
	second := h.run()
	if want := fmt.Sprintf("Nothing to do: ways is wired in %s.\n  runs     %s hook sensors\n", file, h.ways); second != (result{Done, want, ""}) {
		t.Errorf("%+v, want %s", second, want)
	}
	if h.read(file) != wired {
		t.Error("the second run changed the file")
	}

	gone := h.run("--remove")
	if gone.code != Done || !strings.HasPrefix(gone.out, "Took ways out of "+file+", which is then, to the byte, what it was before.\n") {
		t.Errorf("%+v", gone)
	}
	if got := h.read(file); got != foreign {
		t.Errorf("left %s", got)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o640 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if again := h.run("--remove"); again != (result{Done, "Nothing to do: there is no entry of ways in " + file + ".\n", ""}) {
		t.Errorf("%+v", again)
	}
}

func TestANewHome(t *testing.T) {
	h := newHome(t)
	if got := h.run(); got.code != Done || !strings.HasPrefix(got.out, "Wired ways in "+h.path(".claude", "settings.json")+", a new file.\n") {
		t.Fatalf("%+v", got)
	}
	if got := h.run("--remove"); got.code != Done || !strings.Contains(got.out, "so it is removed.") {
		t.Errorf("%+v", got)
	}
	if _, err := os.Lstat(h.path(".claude")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left the directory: %v", err)
	}
}

func TestConfigDirAndXDG(t *testing.T) {
	h := newHome(t)
	h.env = append(h.env, "CLAUDE_CONFIG_DIR="+h.path("cfg"), "XDG_STATE_HOME="+h.path("xdg"))
	if got := h.run(); got.code != Done {
		t.Fatalf("%+v", got)
	}
	if len(h.commands(h.path("cfg", "settings.json"))) != 10 {
		t.Error("not wired")
	}
	if _, err := os.Stat(h.path("xdg", "agent-ways", "wiring")); err != nil {
		t.Error(err)
	}
	for _, other := range []string{".claude", ".local"} {
		if _, err := os.Lstat(h.path(other)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("made %s", other)
		}
	}
}

// The diff is one that patch takes, and it leads to what reconcile writes.
func TestDryRun(t *testing.T) {
	h := newHome(t)
	file := h.write(foreign, ".claude", "settings.json")
	dry := h.run("--dry-run")
	if dry.code != Done || !strings.HasPrefix(dry.out, "--- "+file+"\n+++ "+file+"\n@@ -1,6 +1,") {
		t.Fatalf("%+v", dry)
	}
	if !strings.HasPrefix(dry.errors, "Would wire ways in "+file+".\n") || !strings.HasSuffix(dry.errors, "Nothing was written.\n") {
		t.Errorf("%s", dry.errors)
	}
	if h.read(file) != foreign {
		t.Error("the file was written")
	}
	if _, err := os.Lstat(h.path(".local")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("made a state directory")
	}
	if got := h.run(); got.code != Done {
		t.Fatalf("%+v", got)
	}
	// Removing is the inverse: its diff has the signs turned.
	back := h.run("--remove", "--dry-run")
	in, out := signs(dry.out)
	backIn, backOut := signs(back.out)
	if back.code != Done || backIn != out || backOut != in || in < 100 {
		t.Errorf("%d lines in and %d out, back %d in and %d out", in, out, backIn, backOut)
	}
	if !strings.HasPrefix(back.errors, "Would take ways out of "+file) {
		t.Errorf("%s", back.errors)
	}
	if got := h.run("--dry-run"); got.code != Done || got.out != "" || !strings.HasPrefix(got.errors, "Nothing to do") {
		t.Errorf("%+v", got)
	}

	fresh := newHome(t)
	if got := fresh.run("--dry-run"); !strings.HasPrefix(got.out, "--- /dev/null\n+++ "+fresh.path(".claude", "settings.json")+"\n@@ -0,0 +1,") {
		t.Errorf("%+v", got)
	}
	if left, err := os.ReadDir(fresh.dir); err != nil || len(left) != 0 {
		t.Errorf("made %v %v", left, err)
	}
}

// signs counts the lines that a diff adds and takes away.
func signs(diff string) (in, out int) {
	_, body, _ := strings.Cut(diff, "\n@@")
	return strings.Count(body, "\n+"), strings.Count(body, "\n-")
}

func TestSettingsFlagAndUndoLine(t *testing.T) {
	h := newHome(t)
	file := h.write("{}", "my project", ".claude", "settings.local.json")
	got := h.run("--settings", "my project/.claude/settings.local.json")
	if got.code != Done || !strings.Contains(got.out, "Undo with: ways reconcile --remove --settings 'my project/.claude/settings.local.json'\n") {
		t.Errorf("%+v", got)
	}
	if len(h.commands(file)) != 10 {
		t.Error("not wired")
	}
	if got := h.run("--remove", "--settings="+file); got.code != Done || h.read(file) != "{}" {
		t.Errorf("%+v, left %s", got, h.read(file))
	}
}

func TestSymlinkIsNamed(t *testing.T) {
	h := newHome(t)
	real := h.write("{}", "dotfiles", "settings.json")
	if err := os.Mkdir(h.path(".claude"), 0o755); err != nil {
		t.Fatal(err)
	}
	link := h.path(".claude", "settings.json")
	if err := os.Symlink("../dotfiles/settings.json", link); err != nil {
		t.Fatal(err)
	}
	got := h.run()
	if got.code != Done || !strings.HasPrefix(got.out, "Wired ways in "+link+" (the file is "+real+").\n") {
		t.Errorf("%+v", got)
	}
	if to, err := os.Readlink(link); err != nil || to != "../dotfiles/settings.json" {
		t.Errorf("%s %v", to, err)
	}
}

// Upgraded or moved binaries: the entry follows.
func TestAMovedBinaryIsFollowed(t *testing.T) {
	h := newHome(t)
	file := h.write(foreign, ".claude", "settings.json")
	h.run()
	moved := filepath.Join(filepath.Dir(filepath.Dir(h.ways)), "new place")
	if err := os.Mkdir(moved, 0o755); err != nil {
		t.Fatal(err)
	}
	ways := filepath.Join(moved, "ways")
	h.installAt(ways)
	got := h.start(ways, "reconcile")
	if got.code != Done || !strings.Contains(got.out, "\n  updated  PreToolUse, ") || strings.Contains(got.out, "  added") {
		t.Errorf("%+v", got)
	}
	for event, commands := range h.commands(file) {
		if commands[len(commands)-1] != ways+" hook sensors" || len(commands) > 2 {
			t.Errorf("%s runs %v", event, commands)
		}
	}
	h.run("--remove")
	if got := h.read(file); got != foreign {
		t.Errorf("left %s", got)
	}
}

func TestFrontBinary(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"real", "linked", "alone"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"real/ways", "real/waysctl", "alone/waysctl"} {
		if err := os.WriteFile(filepath.Join(dir, f), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../real/waysctl", filepath.Join(dir, "linked", "waysctl")); err != nil {
		t.Fatal(err)
	}
	for running, want := range map[string]string{
		"real/waysctl":   "real/ways",
		"linked/waysctl": "real/ways",
		"alone/waysctl":  "",
	} {
		got, err := frontBinary(func() (string, error) { return filepath.Join(dir, running), nil })
		switch {
		case want == "" && (err == nil || code(err) != Failed || !strings.Contains(err.Error(), filepath.Join(dir, "alone", "ways"))):
			t.Errorf("%s: %q %v", running, got, err)
		case want != "" && (err != nil || got != filepath.Join(dir, want)):
			t.Errorf("%s: %q %v, want %s", running, got, err, want)
		}
	}
}

func TestExitCodes(t *testing.T) {
	h := newHome(t)
	comment := h.write("{\n  // mine\n}\n", "comment.json")
	blocked := h.write("{}", "blocked", "settings.json")
	stateFile := h.write("", "state-is-a-file")
	for _, row := range []struct {
		name string
		args []string
		env  []string
		code int
		says string
	}{
		{"unknown flag", []string{"--dryrun"}, nil, Usage, "unknown flag: --dryrun\nRun `ways reconcile --help` for usage.\n"},
		{"argument", []string{"settings.json"}, nil, Usage, `unexpected argument "settings.json"`},
		{"empty file name", []string{"--settings", ""}, nil, Usage, "--settings needs the name of a file"},
		{"no home", nil, []string{"HOME="}, Usage, "neither CLAUDE_CONFIG_DIR nor HOME is set"},
		{"no home for our state", nil, []string{"HOME=", "CLAUDE_CONFIG_DIR=/nowhere"}, Usage, "no home directory"},
		{"relative", nil, []string{"CLAUDE_CONFIG_DIR=cfg"}, Usage, "not an absolute path"},
		{"refused", []string{"--settings", comment}, nil, Refused, comment + ": line 2, column 3: there is a comment; remove it"},
		{"refused on removal", []string{"--remove", "--settings", comment}, nil, Refused, "line 2, column 3"},
		{"refused in a dry run", []string{"--dry-run", "--settings", comment}, nil, Refused, "line 2, column 3"},
		{"write fails", []string{"--settings", blocked}, []string{"XDG_STATE_HOME=" + stateFile}, Failed, "write failed"},
	} {
		t.Run(row.name, func(t *testing.T) {
			one := *h
			one.t = t
			one.env = append(slices.Clone(h.env), row.env...)
			got := one.run(row.args...)
			if got.code != row.code || got.out != "" || !strings.HasPrefix(got.errors, "ways reconcile: ") || !strings.Contains(got.errors, row.says) {
				t.Errorf("%+v, want %d %q", got, row.code, row.says)
			}
		})
	}
	if h.read(comment) != "{\n  // mine\n}\n" || h.read(blocked) != "{}" {
		t.Error("a file was touched")
	}
}

func TestHelp(t *testing.T) {
	h := newHome(t)
	got := h.run("--help")
	if got.code != Done || got.errors != "" {
		t.Fatalf("%+v", got)
	}
	for _, part := range []string{"Usage: ways reconcile", "--dry-run", "--remove", "--settings FILE", "--json", "\n  -h, --help           show this text\n", "Examples:\n", "Exit codes: 0 done"} {
		if !strings.Contains(got.out, part) {
			t.Errorf("the help lacks %q:\n%s", part, got.out)
		}
	}
}

func TestJSON(t *testing.T) {
	h := newHome(t)
	file := h.write("{\"disableAllHooks\":true}", ".claude", "settings.json")
	read := func(args ...string) map[string]any {
		t.Helper()
		got := h.run(append(args, "--json")...)
		var v map[string]any
		if err := json.Unmarshal([]byte(got.out), &v); err != nil || got.code != Done || got.errors != "" {
			t.Fatalf("%+v %v", got, err)
		}
		return v
	}
	dry := read("--dry-run")
	if dry["dry_run"] != true || dry["changed"] != true || !strings.HasPrefix(dry["diff"].(string), "--- "+file) {
		t.Errorf("%v", dry)
	}
	done := read()
	for key, want := range map[string]any{
		"file": file, "real": file, "action": "install", "dry_run": false, "changed": true, "exists": true,
		"restored": false, "command": h.ways,
	} {
		if done[key] != want {
			t.Errorf("%s is %v, want %v", key, done[key], want)
		}
	}
	if len(done["added"].([]any)) != 10 || len(done["updated"].([]any)) != 0 || len(done["warnings"].([]any)) != 1 {
		t.Errorf("%v", done)
	}
	gone := read("--remove")
	if gone["action"] != "remove" || gone["restored"] != true || len(gone["removed"].([]any)) != 10 {
		t.Errorf("%v", gone)
	}
}

func TestWarnings(t *testing.T) {
	h := newHome(t)
	h.write(`{"disableAllHooks":true,"hooks":{
		"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"/old/ways","args":["hook","sensors"]}]}],
		"Stop":[{"hooks":[{"type":"command","command":"A=1 ways hook sensors"}]}],
		"WorktreeCreate":[{"hooks":[{"type":"command","command":"ways hook sensors"}]}],
		"PreCompact":[{"hooks":[{"type":"command","command":"ways hook sensors"},{"type":"command","command":"ways hook sensors"}]}]}}`,
		".claude", "settings.json")
	got := h.run()
	want := `warning: the file sets "disableAllHooks": true, so the client runs no hook at all; remove that to use ways
warning: PreToolUse is wired for the matcher "Bash" alone, as its group says; what that does not match is not seen
warning: a command line of your own runs ways on Stop; it counts as wired and was left as it is
warning: the entry stands on WorktreeCreate too, where ways does not belong; remove it there
warning: PreCompact runs ways more than once; the copies are dropped but cost time; keep one
`
	if got.code != Done || got.errors != want {
		t.Errorf("%d, got\n%s\nwant\n%s", got.code, got.errors, want)
	}
	gone := h.run("--remove")
	if want := "warning: a command line of your own runs ways on Stop; it was left in; remove it by hand\n"; gone.code != Done || gone.errors != want {
		t.Errorf("%d, got\n%s\nwant\n%s", gone.code, gone.errors, want)
	}
}

// Many reconciles at once, as processes: one entry per event, and a way back.
func TestProcessesAtOnce(t *testing.T) {
	h := newHome(t)
	file := h.write(foreign, ".claude", "settings.json")
	var running []*exec.Cmd
	for range 8 {
		cmd := exec.CommandContext(t.Context(), h.ways, "reconcile")
		cmd.Env, cmd.Dir = h.env, h.dir
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	for event, commands := range h.commands(file) {
		if event != "Stop" && len(commands) != 1 || len(commands) > 2 {
			t.Errorf("%s runs %v", event, commands)
		}
	}
	h.run("--remove")
	if got := h.read(file); got != foreign {
		t.Errorf("left %s", got)
	}
}
