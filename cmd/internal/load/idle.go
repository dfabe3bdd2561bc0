package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"ways/hooks/launch"
)

const (
	// settleTime is how long a dispatcher is left alone before it counts as idle: it
	// saves its counters and cursors a second after the last record, and the runtime
	// gives memory back some seconds after that.
	settleTime = 10 * time.Second
	// idleTime is how long it is watched then.
	idleTime = 20 * time.Second
	// startTime and endTime bound the waits for a dispatcher's start and end.
	startTime, endTime = 10 * time.Second, 30 * time.Second
)

// idle prints what a dispatcher takes while nothing happens, and what it had taken
// before.
func idle(ctx context.Context, l *lab, out io.Writer) error {
	h := l.next()
	const all = "user_prompt, assistant_response, tool_call, tool_result, session_start"
	h, err := l.newHome(
		rule{all, h.toFile(0), nil},
		rule{all, h.toFile(1), []string{"delivery: at_least_once", "chain: true"}},
		rule{all, fmt.Sprintf("http: {url: %q}", l.consumer.url), []string{"delivery: at_least_once"}},
		rule{all, "command: {argv: [/bin/cat], input: stdin}", nil},
	)
	if err != nil {
		return err
	}
	const session = "idle"
	transcript := filepath.Join(h.root, "transcript.jsonl")
	if err := os.WriteFile(transcript, []byte("{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"hello\"}}\n"), 0o600); err != nil {
		return err
	}
	for n, event := range []string{"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"} {
		payload := fmt.Sprintf(`{"session_id":%q,"transcript_path":%q,"cwd":"/nonexistent","hook_event_name":%q,"source":"startup","prompt":"hello",`+
			`"tool_name":"Bash","tool_input":{"command":"true"},"tool_response":{"stdout":"","stderr":""},"tool_use_id":"toolu_%024d","last_assistant_message":"done"}`,
			session, transcript, event, n)
		if err := l.fire(ctx, h, payload); err != nil {
			return err
		}
	}
	pid, err := h.dispatcher(ctx, session)
	if err != nil {
		return err
	}
	if err := wait(ctx, settleTime); err != nil {
		return err
	}
	first, err := watch(pid)
	if errors.Is(err, errors.ErrUnsupported) {
		_, err := fmt.Fprintln(out, err)
		return err
	}
	if err != nil {
		return err
	}
	if err := wait(ctx, idleTime); err != nil {
		return err
	}
	last, err := watch(pid)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "| a dispatcher with four rules, in %s with nothing to do | |\n| --- | ---: |\n", idleTime)
	fmt.Fprintf(out, "| processor time, ms | %.3f |\n", float64(last.cpu-first.cpu)/1e6)
	fmt.Fprintf(out, "| times one of its threads was woken | %d |\n", last.sleeps-first.sleeps)
	fmt.Fprintf(out, "| write calls | %d |\n", last.writes-first.writes)
	fmt.Fprintf(out, "| memory, MB: resident | %.1f |\n", float64(last.resident)/1e6)
	fmt.Fprintf(out, "| memory, MB: its proportional share | %.1f |\n", float64(last.proportional)/1e6)
	fmt.Fprintf(out, "| memory, MB: most so far | %.1f |\n", float64(last.peak)/1e6)
	if err := l.fire(ctx, h, fmt.Sprintf(`{"session_id":%q,"hook_event_name":"SessionEnd","cwd":"/nonexistent","reason":"other"}`, session)); err != nil {
		return err
	}
	return h.terminate(ctx, session)
}

// fire runs the hook on a payload.
func (l *lab) fire(ctx context.Context, h home, payload string) error {
	cmd := h.command(ctx, l.ways, "hook", "sensors")
	cmd.Stdin = strings.NewReader(payload)
	if said, err := cmd.CombinedOutput(); err != nil || len(said) > 0 {
		return fmt.Errorf("the hook said %q and ended with %w", said, err)
	}
	return nil
}

// dispatcher waits until a session's dispatcher has said which process it is.
func (h home) dispatcher(ctx context.Context, session string) (int, error) {
	var info struct{ PID int }
	err := until(ctx, startTime, "the dispatcher says its process id", func() (bool, error) {
		text, err := os.ReadFile(filepath.Join(h.dirs.Session(session), "dispatcher.json"))
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return err == nil && json.Unmarshal(text, &info) == nil && info.PID > 0, err
	})
	return info.PID, err
}

// terminate stops a session's dispatcher and waits until it is gone.
func (h home) terminate(ctx context.Context, session string) error {
	pid, err := h.dispatcher(ctx, session)
	if err != nil {
		return err
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	if !launch.Running(h.dirs.Session(session)) {
		return nil
	}
	if err := process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return until(ctx, endTime, "the dispatcher ends", func() (bool, error) {
		return !launch.Running(h.dirs.Session(session)), nil
	})
}

// errLate is wrapped when something did not happen in its time.
var errLate = errors.New("not in time")

// until asks every 5 ms until it is so.
func until(ctx context.Context, most time.Duration, what string, so func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("%w: %s within %s", errLate, what, most))
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if done, err := so(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// wait waits.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// look finds a program; empty when it is not installed.
func look(name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// fillAndWake appends one more record and tells the dispatcher.
func (h home) fillAndWake(session string) error {
	if err := h.fill(session, 1, 2000); err != nil {
		return err
	}
	launch.Wake(h.dirs.Session(session), launch.Appended)
	return nil
}
