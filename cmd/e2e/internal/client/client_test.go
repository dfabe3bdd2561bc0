package client

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// cacheIn gives the test a cache directory and a PATH of its own.
func cacheIn(t *testing.T, path string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(home, "cache"))
	t.Setenv("PATH", path)
	t.Setenv(BinaryEnv, "")
}

func script(t *testing.T, name, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLocateTakesTheNamedBinary(t *testing.T) {
	cacheIn(t, "")
	binary := script(t, "claude", "exit 0")
	t.Setenv(BinaryEnv, binary)
	if got, err := Locate(t.Context()); err != nil || got != binary {
		t.Errorf("%q, %v; want %q", got, err, binary)
	}
	t.Setenv(BinaryEnv, binary+"-missing")
	if _, err := Locate(t.Context()); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), BinaryEnv) {
		t.Errorf("a missing binary: %v", err)
	}
}

// Many at once install once: a second install would find the first one's
// directory in its way, and a count of npm's runs shows it.
func TestLocateInstallsOnce(t *testing.T) {
	pkg, err := packageFor(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	runs := filepath.Join(t.TempDir(), "runs")
	npm := script(t, "npm", `
echo "$@" >>"`+runs+`"
while [ "$1" != --prefix ]; do shift; done
mkdir -p "$2/node_modules/`+pkg+`"
: >"$2/node_modules/`+pkg+`/claude"`)
	cacheIn(t, filepath.Dir(npm)+":/usr/bin:/bin")

	const callers = 8
	type outcome struct {
		path string
		err  error
	}
	found := make(chan outcome)
	for range callers {
		go func() {
			path, err := Locate(t.Context())
			found <- outcome{path, err}
		}()
	}
	for range callers {
		got := <-found
		if got.err != nil {
			t.Error(got.err)
		} else if _, err := os.Stat(got.path); err != nil {
			t.Errorf("located nothing: %v", err)
		}
	}
	calls, err := os.ReadFile(runs)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(calls), "\n"); n != 1 {
		t.Errorf("npm ran %d times:\n%s", n, calls)
	}
	for _, want := range []string{"install --ignore-scripts --no-save --prefix", pkg + "@" + Version} {
		if !strings.Contains(string(calls), want) {
			t.Errorf("npm was run as %q, want %q in it", calls, want)
		}
	}
}

func TestLocateSaysWhy(t *testing.T) {
	for _, row := range []struct{ name, npm, want string }{
		{"no npm", "", "installed with npm"},
		{"a failing npm", "echo the registry is away >&2; exit 7", "the registry is away"},
		{"an empty package", `while [ "$1" != --prefix ]; do shift; done; mkdir -p "$2"`, "without a binary"},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := t.TempDir()
			if row.npm != "" {
				path = filepath.Dir(script(t, "npm", row.npm)) + ":/usr/bin:/bin"
			}
			cacheIn(t, path)
			if _, err := Locate(t.Context()); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("error %v, want %q in it", err, row.want)
			}
		})
	}
}

func TestPackageFor(t *testing.T) {
	for _, row := range []struct{ goos, goarch, want string }{
		{"linux", "amd64", "@anthropic-ai/claude-code-linux-x64"},
		{"linux", "arm64", "@anthropic-ai/claude-code-linux-arm64"},
		{"darwin", "arm64", "@anthropic-ai/claude-code-darwin-arm64"},
		{"linux", "riscv64", ""},
		{"plan9", "amd64", ""},
	} {
		got, err := packageFor(row.goos, row.goarch)
		if got != row.want || (err == nil) != (row.want != "") {
			t.Errorf("%s/%s: %q, %v; want %q", row.goos, row.goarch, got, err, row.want)
		}
	}
}

// fake is a client that leaves transcripts as the real one does, says what it
// was given, and exits 3.
const fake = `
while [ "$1" != --session-id ]; do shift; done
dir="$HOME/.claude/projects/-some-project"
mkdir -p "$dir/$2/subagents"
: >"$dir/$2.jsonl"; : >"$dir/$2/subagents/agent-b.jsonl"; : >"$dir/$2/subagents/agent-a.jsonl"
pwd; env; echo complaint >&2
exit 3`

func TestPrint(t *testing.T) {
	t.Setenv("A_SECRET_OF_THE_CALLER", "x")
	c, err := New(script(t, "claude", fake), t.TempDir(), "http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	c.Env = []string{"EXTRA=1"}
	res, err := c.Print(t.Context(), Run{Session: "s1", Prompt: "p", Args: []string{"--more"}})
	if err != nil {
		t.Fatal(err)
	}
	out := string(res.Stdout)
	if res.ExitCode != 3 || string(res.Stderr) != "complaint\n" {
		t.Errorf("exit %d, stderr %q", res.ExitCode, res.Stderr)
	}
	for _, want := range []string{
		"HOME=" + c.Home, "ANTHROPIC_BASE_URL=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1",
		"TMPDIR=" + c.Temp, "EXTRA=1", c.Project,
	} {
		if !strings.Contains(out, want+"\n") {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "A_SECRET_OF_THE_CALLER") {
		t.Error("the caller's environment reached the client")
	}
	dir := filepath.Join(c.Home, ".claude", "projects", "-some-project")
	if res.Transcript != filepath.Join(dir, "s1.jsonl") {
		t.Errorf("transcript %q", res.Transcript)
	}
	want := []string{filepath.Join(dir, "s1", "subagents", "agent-a.jsonl"), filepath.Join(dir, "s1", "subagents", "agent-b.jsonl")}
	if len(res.Subagents) != 2 || res.Subagents[0] != want[0] || res.Subagents[1] != want[1] {
		t.Errorf("subagents %q, want %q", res.Subagents, want)
	}
}

func TestPrintReportsWhatDidNotRun(t *testing.T) {
	c, err := New(script(t, "claude", "exit 0"), t.TempDir(), "http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Print(t.Context(), Run{Session: "s1"}); err == nil || !strings.Contains(err.Error(), "0 transcripts") {
		t.Errorf("a client that left no transcript: %v", err)
	}
	c.Binary += "-missing"
	if _, err := c.Print(t.Context(), Run{Session: "s1"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing client: %v", err)
	}
	c.Binary = script(t, "claude", "exec sleep 60")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Print(ctx, Run{Session: "s1"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a client that hangs: %v", err)
	}
}
