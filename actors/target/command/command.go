// Package command is the target that runs a program for each record (design §5).
//
// The program is run directly, with no shell, in a process group of its own, with
// a cleared environment, and with the record on its stdin or in its arguments.
// Exit 0 accepts the record. Whatever else a program does (never reads, closes
// early, writes without end, forks, stops itself), the dispatch ends with its
// context, and nothing that it started is left then:
//
//   - The whole group is killed at the deadline, and also when the program has
//     exited: a consumer is done when it exits, and may leave nothing behind.
//   - The group is killed while its leader is dead but not reaped, so that the
//     number still means that group and no other.
//   - Descendants that left the group (setsid, a double fork) come back to this
//     process on Linux if it called BecomeSubreaper, and are killed and reaped;
//     they are known by the environment they inherited, or, where they cleared it,
//     by having been seen below the program.
//   - On Linux the program dies with this process (PR_SET_PDEATHSIG); what it had
//     started itself is left for KillOrphans.
//
// On macOS there is the group, and nothing to find those who left it with.
package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"ways/actors/target"
	"ways/actors/target/expand"
	"ways/actors/target/placeholder"
	"ways/config/plan"
)

// argumentLimit is the longest argument that can be passed, in bytes: Linux
// allows 32 pages with the NUL that ends it (MAX_ARG_STRLEN). All systems get the
// same limit, so that a rule does not depend on where it runs.
const argumentLimit = 128<<10 - 1

// defaultPath is the PATH of consumers when the dispatcher has none.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// Markers in a consumer's environment. Marker makes hooks fired from inside a
// consumer do nothing.
const (
	Marker        = "WAYS_CONSUMER"
	markerRule    = "WAYS_RULE"
	markerSession = "WAYS_SESSION"
	markerSeq     = "WAYS_SEQ"
	markerID      = "WAYS_DELIVERY_ID"
	markerOwner   = "WAYS_OWNER"
)

// Options are what a dispatcher knows and a rule does not.
type Options struct {
	// Home is what ~/ stands for.
	Home string
	// Getenv reads the dispatcher's environment: for ${NAME} and for the few
	// variables that a consumer gets.
	Getenv func(string) string
	// Mask masks secrets in what a program wrote; nil for none.
	Mask func([]byte) []byte
}

// Target runs one program. It is used by one goroutine at a time.
type Target struct {
	cfg    plan.Command
	opts   Options
	args   []placeholder.Template // of argv[1:], with input: args
	output Output
}

var _ target.Target = (*Target)(nil)

// Output is the end of what a program wrote, for the log: masked as Options say,
// and harmless on a terminal.
type Output struct {
	Stdout, Stderr string
}

// New returns the target of a command rule. It starts nothing; an error means an
// argv or input that no sensor file may hold.
func New(cfg plan.Command, opts Options) (target.Target, error) {
	if len(cfg.Argv) == 0 || cfg.Argv[0] == "" {
		return nil, errors.New("command: argv names no program")
	}
	t := &Target{cfg: cfg, opts: opts}
	switch cfg.Input {
	case "stdin":
	case "args":
		// argv[0] is never filled: a record does not choose the program.
		for i, arg := range cfg.Argv[1:] {
			parsed, err := placeholder.Parse(arg)
			if err != nil {
				return nil, fmt.Errorf("command: argv[%d]: %w", i+1, err)
			}
			t.args = append(t.args, parsed)
		}
	default:
		return nil, fmt.Errorf("command: input %q is neither stdin nor args", cfg.Input)
	}
	return t, nil
}

// Describe returns the program as the rule names it.
func (t *Target) Describe() string { return t.cfg.Argv[0] }

// Close does nothing: no dispatch leaves anything behind.
func (t *Target) Close() error { return nil }

// LastOutput returns the end of what the last dispatch's program wrote. It is
// called by the goroutine that calls Deliver.
func (t *Target) LastOutput() Output { return t.output }

// Deliver runs the program and returns nil if it exits with 0. It returns soon
// after ctx ends, with the program killed.
//
// Reasons: not_found, not_executable, bad_cwd, bad_env, argument_too_long,
// missing_variable (refused); exit_<code>, signal_<NAME>, start, cancelled
// (failed); timeout (killed); start (timed out: ctx was over before).
func (t *Target) Deliver(ctx context.Context, d target.Dispatch) error {
	t.output = Output{}
	if ctx.Err() != nil {
		if expired(ctx) {
			return t.fail(target.TimedOut, "start", target.ErrExpired)
		}
		return t.fail(target.Failed, target.Cancelled, context.Cause(ctx))
	}
	env, err := t.environment(d)
	if err != nil {
		return err
	}
	dir, err := t.directory()
	if err != nil {
		return err
	}
	path, err := t.program(dir, env.value("PATH"))
	if err != nil {
		return err
	}
	record := d.Body.Bytes()
	argv, err := t.argv(record)
	if err != nil {
		return err
	}
	r := run{path: path, argv: argv, env: env.list(), dir: dir, delivery: env.value(markerID)}
	if t.cfg.Input == "stdin" {
		r.stdin = record
	}
	var status syscall.WaitStatus
	onThreadOfItsOwn(func() { status, err = r.do(ctx) })
	t.output = Output{Stdout: r.stdout.words(t.opts.Mask), Stderr: r.stderr.words(t.opts.Mask)}
	return t.outcome(ctx, status, err)
}

func (t *Target) fail(kind target.Kind, reason string, err error) error {
	return &target.Error{Kind: kind, Reason: reason, Err: fmt.Errorf("command: %s: %w", t.Describe(), err)}
}

// expired reports whether ctx ended because time was up.
func expired(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, target.ErrExpired) || errors.Is(cause, context.DeadlineExceeded)
}

// outcome says what the end of a run means for the record.
func (t *Target) outcome(ctx context.Context, status syscall.WaitStatus, err error) error {
	switch {
	case errors.Is(err, errEnded) && expired(ctx):
		return t.fail(target.Killed, "timeout", target.ErrExpired)
	case errors.Is(err, errEnded):
		return t.fail(target.Failed, target.Cancelled, context.Cause(ctx))
	case errors.Is(err, unix.E2BIG):
		return t.fail(target.Refused, "argument_too_long", errors.New("the arguments together are longer than the system allows; use input: stdin"))
	case errors.Is(err, fs.ErrNotExist):
		// The program was there; the interpreter its first line names is not.
		return t.fail(target.Refused, "not_executable", errors.New("it cannot be run: the interpreter it names does not exist"))
	case errors.Is(err, unix.ENOEXEC), errors.Is(err, fs.ErrPermission):
		return t.fail(target.Refused, "not_executable", err)
	case err != nil:
		return t.fail(target.Failed, "start", err)
	case status.Signaled():
		name := strings.TrimPrefix(unix.SignalName(status.Signal()), "SIG")
		if name == "" {
			name = strconv.Itoa(int(status.Signal()))
		}
		return t.fail(target.Failed, "signal_"+name, fmt.Errorf("it was ended by signal %s", name))
	case status.ExitStatus() != 0:
		return t.fail(target.Failed, "exit_"+strconv.Itoa(status.ExitStatus()), fmt.Errorf("it exited with %d", status.ExitStatus()))
	}
	return nil
}

func (t *Target) directory() (string, error) {
	if t.cfg.Cwd == "" {
		return "/", nil
	}
	dir, err := expand.Path(t.cfg.Cwd, t.opts.Home, t.opts.Getenv)
	if errors.Is(err, expand.ErrMissing) {
		return "", t.fail(target.Refused, "missing_variable", fmt.Errorf("cwd: %w", err))
	}
	if err != nil {
		return "", t.fail(target.Refused, "bad_cwd", fmt.Errorf("cwd: %w", err))
	}
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return "", t.fail(target.Refused, "bad_cwd", fmt.Errorf("cwd %q is no directory that can be entered", t.cfg.Cwd))
	}
	return dir, nil
}

// program finds argv[0]: with a slash in it, where it says, from the working
// directory, ~/ being the home directory; without one, in the absolute entries
// of the consumer's PATH.
func (t *Target) program(dir, search string) (string, error) {
	name := t.cfg.Argv[0]
	if under, ok := strings.CutPrefix(name, "~/"); ok && t.opts.Home != "" {
		name = filepath.Join(t.opts.Home, under)
	}
	var candidates []string
	switch {
	case filepath.IsAbs(name):
		candidates = []string{name}
	case strings.Contains(name, "/"):
		candidates = []string{filepath.Join(dir, name)}
	default:
		for _, entry := range filepath.SplitList(search) {
			if filepath.IsAbs(entry) {
				candidates = append(candidates, filepath.Join(entry, name))
			}
		}
	}
	there := false
	for _, path := range candidates {
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		there = true
		if info.Mode().IsRegular() && unix.Access(path, unix.X_OK) == nil {
			return path, nil
		}
	}
	if there {
		return "", t.fail(target.Refused, "not_executable", errors.New("it is there, but is no file that may be executed"))
	}
	return "", t.fail(target.Refused, "not_found", errors.New("there is no such program; name it with its whole path, or add its directory to PATH in the rule's env"))
}

// argv returns the arguments, filled from the record with input: args. A NUL
// byte, which no argument can hold, becomes U+FFFD.
func (t *Target) argv(record []byte) ([]string, error) {
	if t.cfg.Input != "args" {
		return t.cfg.Argv, nil
	}
	argv := []string{t.cfg.Argv[0]}
	for i, template := range t.args {
		filled := template.Append(nil, record, func(dst []byte, v string) []byte {
			return append(dst, strings.ReplaceAll(v, "\x00", "\uFFFD")...)
		})
		if len(filled) > argumentLimit {
			return nil, t.fail(target.Refused, "argument_too_long", fmt.Errorf(
				"argv[%d] would be %d bytes of at most %d; use input: stdin", i+1, len(filled), argumentLimit))
		}
		argv = append(argv, string(filled))
	}
	return argv, nil
}
