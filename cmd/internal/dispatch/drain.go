package dispatch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"ways/actors/target/visible"
	"ways/cmd/internal/cli"
	"ways/config/publish"
	"ways/hooks/dirs"
	"ways/hooks/launch"
	"ways/metrics/counters"
)

const drainUsage = `Usage: ways sensors drain [--session ID]

Delivers what sessions that ended have left undelivered. The first record that a
rule's consumer still does not accept stays for the next time, and so do the
rule's records behind it. A dispatcher of any session does the same when it
starts.

Exits 1 when something is left undelivered.`

// drainIdle is how long a drained spool has to stay empty before the next one.
const drainIdle = 100 * time.Millisecond

// DrainVerb is the entry of `ways sensors drain`.
func DrainVerb() cli.Verb {
	return cli.Verb{Name: "drain", Short: "deliver what ended sessions left undelivered", Run: Drain}
}

// Drain is the verb.
func Drain(env cli.Env, args []string) int {
	fs := cli.Flags("sensors drain")
	only := fs.String("session", "", "this session's `ID` alone")
	adopt := fs.Bool("adopt", false, "")
	if err := fs.MarkHidden("adopt"); err != nil {
		return env.Fail("sensors drain", err)
	}
	if code, done := cli.Parse(env, fs, drainUsage, args); done {
		return code
	}
	if fs.NArg() > 0 {
		return cli.WrongArgs(env, fs, "no arguments")
	}
	syscall.Umask(0o077)
	d, err := dirs.From(env.Getenv)
	if err != nil {
		return env.Fail("sensors drain", err)
	}
	one, err := oneDrain(d)
	if errors.Is(err, launch.ErrRunning) && *adopt {
		return cli.OK // another process is at it
	}
	if err != nil {
		return env.Fail("sensors drain", fmt.Errorf("another drain may be running: %w", err))
	}
	defer one.Close()
	names, err := leftovers(d, *only, *adopt)
	if err != nil {
		return env.Fail("sensors drain", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	code := cli.OK
	for _, name := range names {
		if ctx.Err() != nil {
			fmt.Fprintln(env.Stderr, "ways sensors drain: told to stop")
			return cli.Failed
		}
		left, err := drainOne(env, d, name)
		name = visible.Line(name)
		switch {
		case errors.Is(err, launch.ErrRunning):
			fmt.Fprintf(env.Stdout, "%s: its own dispatcher is running\n", name)
		case err != nil:
			fmt.Fprintf(env.Stderr, "ways sensors drain: %s: %s\n", name, visible.Line(err.Error()))
			code = cli.Failed
		case left > 0:
			fmt.Fprintf(env.Stdout, "%s: %d records still undelivered\n", name, left)
			code = cli.Failed
		default:
			fmt.Fprintf(env.Stdout, "%s: drained\n", name)
		}
	}
	if len(names) == 0 {
		fmt.Fprintln(env.Stdout, "nothing is left undelivered")
	}
	return code
}

// oneDrain takes the lock under which one process drains at a time.
func oneDrain(d dirs.Dirs) (*os.File, error) {
	if err := dirs.MakePrivate(d.State); err != nil {
		return nil, err
	}
	dir := filepath.Join(d.State, pendingName)
	if err := dirs.MakePrivate(dir); err != nil {
		return nil, err
	}
	return launch.TryLock(dir)
}

// settled is how long nothing was appended to a spool before it is taken for one
// whose hook died.
const settled = time.Minute

// leftovers lists the sessions to drain, by the names of their directories: the
// marked ones, and those whose hook died before it could start a dispatcher.
func leftovers(d dirs.Dirs, only string, adopt bool) ([]string, error) {
	if only != "" {
		return []string{dirs.SessionName(only)}, nil
	}
	marked, err := pending(d)
	if err != nil {
		return nil, err
	}
	var while time.Duration // a person who asks gets every spool
	if adopt {
		while = settled
	}
	more, err := forgotten(d, while, marked)
	return append(marked, more...), err
}

// drainOne runs a dispatcher over one session's spool in this process, until all
// is delivered or every rule that has something left has been refused once. It
// returns how many records are left.
func drainOne(env cli.Env, d dirs.Dirs, name string) (uint64, error) {
	dir := filepath.Join(d.Sessions(), name)
	if _, err := os.Stat(dir); err != nil {
		err = fmt.Errorf("no such session has a spool: %w", err)
		if gone := os.Remove(filepath.Join(d.State, pendingName, name)); gone != nil && !errors.Is(gone, os.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return 0, err
	}
	session, err := sessionOf(d, name)
	if err != nil {
		return 0, err
	}
	lock, err := launch.TryLock(dir)
	if err != nil {
		return 0, err
	}
	defer lock.Close() // released already, unless something failed
	if err := run(env, d, session, lock, timing{idle: drainIdle, load: publish.Fresh}, sessionLog(env, d, session)); err != nil {
		return 0, err
	}
	c, err := counters.NewStore(d.State).Of(name)
	if err != nil {
		return 0, err
	}
	left, _ := c.Waiting()
	return left, nil
}

// adopt starts a process that drains what other sessions have left, unless there
// is nothing.
func adopt(env cli.Env, d dirs.Dirs, own string) error {
	names, err := leftovers(d, "", true)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == dirs.SessionName(own) || launch.Running(filepath.Join(d.Sessions(), name)) {
			continue
		}
		self, err := env.Executable()
		if err != nil {
			return err
		}
		return launch.Detach(launch.Command{Path: self, Args: []string{"sensors", "drain", "--adopt"}, Env: env.Environ()})
	}
	return nil
}
