// Package client runs the real coding-agent client against a scripted model on
// loopback: where its binary comes from, the environment in which it can do no
// harm, and what it left behind.
package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// killAfter is how long a client that was told to end may take, its children
// and their pipes included.
const killAfter = 5 * time.Second

// Client is a client with a home and a project of its own.
type Client struct {
	// Binary is the client's path.
	Binary string
	// Home is the HOME it runs with; its settings and transcripts are below.
	Home string
	// Project is the directory it works in.
	Project string
	// Temp is its TMPDIR.
	Temp string
	// Model is the base URL of the scripted model, on loopback.
	Model string
	// Env is added to the cleared environment, as NAME=value.
	Env []string
}

// Run is one session in print mode.
type Run struct {
	// Session is the session's id, a UUID.
	Session string
	Prompt  string
	// Args are further flags of the client.
	Args []string
}

// Result is what a session left.
type Result struct {
	// ExitCode is the client's; -1 when a signal ended it.
	ExitCode       int
	Stdout, Stderr []byte
	// Transcript is the main agent's, and Subagents the others' in order of path.
	Transcript string
	Subagents  []string
}

// New makes a home and a project directory below dir.
func New(binary, dir, model string) (Client, error) {
	c := Client{Binary: binary, Home: filepath.Join(dir, "home"), Project: filepath.Join(dir, "project"), Temp: filepath.Join(dir, "tmp"), Model: model}
	for _, d := range []string{c.Home, c.Project, c.Temp} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return Client{}, fmt.Errorf("a directory for the client: %w", err)
		}
	}
	return c, nil
}

// Environ is the whole environment the client runs in. Nothing of the caller's
// own is in it. The model is also the proxy for every other host, so that
// whatever the client asks outside is refused on loopback.
func (c Client) Environ() []string {
	return append([]string{
		"HOME=" + c.Home,
		"PATH=/usr/local/bin:/usr/bin:/bin",
		"LANG=C.UTF-8",
		"TMPDIR=" + c.Temp, "CLAUDE_CODE_TMPDIR=" + c.Temp,
		"TERM=xterm-256color",
		"ANTHROPIC_BASE_URL=" + c.Model,
		"ANTHROPIC_API_KEY=sk-not-a-key-0123456789abcdef",
		"DISABLE_TELEMETRY=1",
		"DISABLE_ERROR_REPORTING=1",
		"DISABLE_AUTOUPDATER=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"IS_SANDBOX=1",
		"HTTP_PROXY=" + c.Model, "HTTPS_PROXY=" + c.Model, "NO_PROXY=127.0.0.1",
	}, c.Env...)
}

// Print runs one session in print mode to its end. A client that exits with
// another code than 0 is a Result, not an error; an error is a client that
// could not be run, or that ctx ended.
func (c Client) Print(ctx context.Context, run Run) (Result, error) {
	args := append([]string{
		"-p", run.Prompt, "--session-id", run.Session, "--dangerously-skip-permissions",
	}, run.Args...)
	cmd := exec.CommandContext(ctx, c.Binary, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = c.Project, c.Environ(), killAfter
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()

	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return Result{}, fmt.Errorf("the client did not end: %w\nstdout: %s\nstderr: %s",
			context.Cause(ctx), stdout.Bytes(), stderr.Bytes())
	case err != nil && !errors.As(err, &exit):
		return Result{}, fmt.Errorf("running the client: %w", err)
	}
	res := Result{ExitCode: cmd.ProcessState.ExitCode(), Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}
	if err := c.findTranscripts(run.Session, &res); err != nil {
		return res, err
	}
	return res, nil
}

// findTranscripts looks below every project: the client makes a directory name
// of the project's path by rules of its own.
func (c Client) findTranscripts(session string, res *Result) error {
	projects := filepath.Join(c.Home, ".claude", "projects")
	found, err := filepath.Glob(filepath.Join(projects, "*", session+".jsonl"))
	if err != nil {
		return fmt.Errorf("looking for transcripts: %w", err)
	}
	if len(found) != 1 {
		return fmt.Errorf("session %s has %d transcripts below %s, not one\nstderr: %s",
			session, len(found), projects, res.Stderr)
	}
	res.Transcript = found[0]
	res.Subagents, err = filepath.Glob(filepath.Join(strings.TrimSuffix(found[0], ".jsonl"), "subagents", "*.jsonl"))
	if err != nil {
		return fmt.Errorf("looking for transcripts: %w", err)
	}
	sort.Strings(res.Subagents)
	return nil
}
