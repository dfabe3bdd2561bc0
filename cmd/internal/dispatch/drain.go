package dispatch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"ways/actors/target/visible"
	"ways/cmd/internal/cli"
	"ways/hooks/dirs"
	"ways/hooks/launch"
	"ways/hooks/spool"
	"ways/metrics/counters"
)

const drainUsage = `Usage: ways sensors drain [--session ID]

Delivers what sessions that ended have left undelivered. Each record is tried
once more; what its consumer still does not accept stays for the next time. A
dispatcher of any session does the same when it starts.

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
	sessions, err := leftovers(d, *only, *adopt)
	if err != nil {
		return env.Fail("sensors drain", err)
	}
	code := cli.OK
	for _, id := range sessions {
		left, err := drainOne(env, d, id)
		switch {
		case errors.Is(err, launch.ErrRunning):
			fmt.Fprintf(env.Stdout, "%s: its own dispatcher is running\n", visible.Line(id))
		case err != nil:
			fmt.Fprintf(env.Stderr, "ways sensors drain: %s: %s\n", visible.Line(id), visible.Line(err.Error()))
			code = cli.Failed
		case left > 0:
			fmt.Fprintf(env.Stdout, "%s: %d records still undelivered\n", visible.Line(id), left)
			code = cli.Failed
		default:
			fmt.Fprintf(env.Stdout, "%s: drained\n", visible.Line(id))
		}
	}
	if len(sessions) == 0 {
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

// leftovers lists the sessions to drain. For adoption the marked ones are
// enough; a person who asks gets every spool looked at, also one whose hook died
// before it could start a dispatcher.
func leftovers(d dirs.Dirs, only string, adopt bool) ([]string, error) {
	if only != "" {
		return []string{only}, nil
	}
	marked, err := pending(d)
	if err != nil || adopt {
		return marked, err
	}
	known := map[string]bool{}
	for _, id := range marked {
		known[dirs.SessionName(id)] = true
	}
	entries, err := os.ReadDir(d.Sessions())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		dir := filepath.Join(d.Sessions(), e.Name())
		n, err := spool.Bytes(dir)
		if err != nil || known[e.Name()] || (n == 0 && !spool.InboxWaiting(dir)) {
			continue
		}
		id := e.Name()
		if c, err := counters.NewStore(d.State).Of(e.Name()); err == nil && c.Session != "" {
			id = c.Session
		}
		marked = append(marked, id)
	}
	return marked, nil
}

// drainOne runs a dispatcher over one session's spool in this process, until all
// is delivered or every rule that has something left has been refused once. It
// returns how many records are left.
func drainOne(env cli.Env, d dirs.Dirs, session string) (uint64, error) {
	dir := d.Session(session)
	if _, err := os.Stat(dir); err != nil {
		return 0, errors.Join(fmt.Errorf("no such session has a spool: %w", err), clearPending(d, session))
	}
	lock, err := launch.TryLock(dir)
	if err != nil {
		return 0, err
	}
	if err := run(env, d, session, lock, timing{idle: drainIdle}, sessionLog(d, session)); err != nil {
		return 0, err
	}
	c, err := counters.NewStore(d.State).Of(dirs.SessionName(session))
	if err != nil {
		return 0, err
	}
	left, _ := c.Waiting()
	return left, nil
}

// adopt starts a process that drains what other sessions have left, unless there
// is nothing.
func adopt(env cli.Env, d dirs.Dirs, own string) error {
	ids, err := pending(d)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if id == own || launch.Running(d.Session(id)) {
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
