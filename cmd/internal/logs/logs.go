// Package logs is the verb `ways logs`: the logs of all sessions, merged in the
// order of time.
package logs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"ways/cmd/internal/cli"
	"ways/hooks/dirs"
)

const usage = `Usage: ways logs [-f] [--session ID] [--rule R] [--level L] [--since D] [--json]

Shows the logs of all sessions' dispatchers and blocking rules, and of what hooks
refused, merged in the order of time: readable text on a terminal, JSON lines
elsewhere (ways logs -f | jq). The logs hold no text of a session.`

// Run is the verb.
func Run(env cli.Env, args []string) int {
	fs := cli.Flags("logs")
	follow := fs.BoolP("follow", "f", false, "go on with what is added, until Ctrl-C; -f for short")
	session := fs.String("session", "", "lines of this session's `ID` alone")
	rule := fs.String("rule", "", "lines about `RULE` alone: a sensor/rule, or a sensor for all of its rules")
	level := fs.String("level", "trace", "lines of this `LEVEL` and above: trace, debug, info, warn, error")
	since := fs.String("since", "", "lines since then alone: a duration such as 2h back from now, or a time such as 2026-11-30T21:00:00Z (`WHEN`)")
	asJSON := fs.Bool("json", false, "JSON lines on a terminal too")
	if code, done := cli.Parse(env, fs, usage, args); done {
		return code
	}
	if fs.NArg() > 0 {
		return cli.WrongArgs(env, fs, "no arguments")
	}
	filter := Filter{Session: *session, Rule: *rule}
	var err error
	if filter.Level, err = zerolog.ParseLevel(strings.ToLower(*level)); err != nil || filter.Level > zerolog.ErrorLevel {
		return cli.WrongArgs(env, fs, "--level trace, debug, info, warn or error")
	}
	if filter.Since, err = moment(*since, time.Now()); err != nil {
		return cli.WrongArgs(env, fs, "--since 2h, or a time as RFC 3339 has it")
	}
	d, err := dirs.From(env.Getenv)
	if err != nil {
		return env.Fail("logs", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// A reader that has gone is no failure.
	signal.Ignore(syscall.SIGPIPE)
	v := view{env: env, d: d, filter: filter, text: !*asJSON && cli.Terminal(env.Stdout), out: bufio.NewWriter(env.Stdout)}
	err = v.show(ctx, *follow)
	if err == nil {
		err = v.out.Flush()
	}
	if err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, context.Canceled) {
		return env.Fail("logs", err)
	}
	return cli.OK
}

func moment(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(-d), nil
	}
	return time.Parse(time.RFC3339Nano, text)
}

type view struct {
	env    cli.Env
	d      dirs.Dirs
	filter Filter
	text   bool
	out    *bufio.Writer
}

// emit prints a line if it is wanted.
func (v *view) emit(l Line) error {
	if !v.filter.Wants(l) {
		return nil
	}
	if v.text {
		_, err := fmt.Fprintln(v.out, l.Text())
		return err
	}
	_, err := v.out.Write(append(l.Raw, '\n'))
	return err
}

// show prints what there is, and goes on with what comes when follow says so.
func (v *view) show(ctx context.Context, follow bool) error {
	f := &follower{
		d: v.d, only: v.filter.Session, tails: map[string]*tail{}, warm: map[string]time.Time{}, known: map[string]bool{}, swept: time.Now(),
	}
	// Listed before anything is read: a session that is new after this is new to
	// the follower too.
	if info, err := os.Stat(v.d.Sessions()); err == nil {
		f.changed = info.ModTime()
	}
	dirs, err := sessionDirs(v.d, v.filter.Session)
	if err != nil {
		return err
	}
	paths := hookLogs(v.d)
	for _, dir := range dirs {
		f.known[dir] = true
		logs, err := sessionLogs(dir)
		if err != nil {
			fmt.Fprintf(v.env.Stderr, "ways logs: %v\n", err)
		}
		paths = append(paths, logs...)
	}
	var sources []*source
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if follow {
			f.tails[path] = &tail{path: path, info: info}
		}
		if info.ModTime().Before(v.filter.Since) {
			if follow {
				f.tails[path].at = info.Size()
			}
			continue
		}
		first, err := firstTime(path)
		if err != nil {
			fmt.Fprintf(v.env.Stderr, "ways logs: %v\n", err)
			continue
		}
		sources = append(sources, &source{path: path, first: first})
	}
	emit := v.emit
	if ctx.Err() != nil {
		return nil
	}
	if err := merge(sources, func(l Line) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return emit(l)
	}); err != nil {
		return err
	}
	for _, s := range sources {
		if s.err != nil && !errors.Is(s.err, io.EOF) {
			fmt.Fprintf(v.env.Stderr, "ways logs: %s: %v\n", s.path, s.err)
		}
		if t := f.tails[s.path]; t != nil {
			t.at, t.last = s.read, s.last
			if s.info != nil {
				t.info = s.info
			}
		}
	}
	if !follow {
		return nil
	}
	if err := v.out.Flush(); err != nil {
		return err
	}
	return f.run(ctx, func() bool { return cli.Closed(v.env.Stdout) }, func(l Line) error {
		if err := v.emit(l); err != nil {
			return err
		}
		return v.out.Flush()
	})
}
