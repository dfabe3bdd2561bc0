// Package status is the verb `ways status`: what needs attention first, then
// what was delivered, then what runs.
package status

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"ways/actors/target/visible"
	"ways/cmd/internal/cli"
	"ways/cmd/internal/survey"
	"ways/config/compile"
	"ways/config/files"
	"ways/config/problem"
	"ways/config/wiring"
	"ways/hooks/dirs"
	"ways/hooks/front"
)

const usage = `Usage: ways status [--json] [--watch]

Shows first what needs attention: the wiring, refused files, rules that are
paused or off, records that wait, and why. Then which rules are on for this
project, what each rule was handed and what became of it since the first record,
where those that are on send to, and the dispatchers that run.`

// every is how often --watch looks again.
const every = 2 * time.Second

// Run is the verb.
func Run(env cli.Env, args []string) int {
	fs := cli.Flags("status")
	asJSON := fs.Bool("json", false, "print JSON; with --watch one object a line")
	watch := fs.Bool("watch", false, "show it again every two seconds, until Ctrl-C")
	if code, done := cli.Parse(env, fs, usage, args); done {
		return code
	}
	if fs.NArg() > 0 {
		return cli.WrongArgs(env, fs, "no arguments")
	}
	d, err := dirs.From(env.Getenv)
	if err != nil {
		return env.Fail("status", err)
	}
	if *watch {
		return follow(env, d, *asJSON)
	}
	v, err := Gather(env, d, time.Now())
	if err != nil {
		return env.Fail("status", err)
	}
	if !*asJSON {
		v.print(env.Stdout, func(p problem.Problem) string { return env.Line(env.Stdout, p) })
		return cli.OK
	}
	enc := json.NewEncoder(env.Stdout)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return env.Fail("status", err)
	}
	return cli.OK
}

// follow shows the status over and over: on a terminal in place, on its other
// screen, and else one after the other.
func follow(env cli.Env, d dirs.Dirs, asJSON bool) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	screen := !asJSON && cli.Terminal(env.Stdout)
	if screen {
		fmt.Fprint(env.Stdout, otherScreen)
		defer fmt.Fprint(env.Stdout, firstScreen)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		var out bytes.Buffer
		v, err := Gather(env, d, time.Now())
		switch {
		case err != nil && asJSON:
			return env.Fail("status", err)
		case err != nil:
			fmt.Fprintf(&out, "ways status: %s\n", visible.Line(err.Error()))
		case asJSON:
			if err := json.NewEncoder(&out).Encode(v); err != nil {
				return env.Fail("status", err)
			}
		default:
			v.print(&out, func(p problem.Problem) string { return env.Line(env.Stdout, p) })
		}
		text := out.String()
		switch {
		case screen:
			lines := strings.SplitAfter(text, "\n")
			if rows := cli.Rows(env.Stdout); rows > 0 && len(lines) > rows {
				lines = append(lines[:rows-1], "...")
			}
			text = home + strings.ReplaceAll(strings.Join(lines, ""), "\n", clearLine+"\n") + clearRest
		case !asJSON:
			text = clock(v.Time) + "\n" + text + "\n"
		}
		if _, err := io.WriteString(env.Stdout, text); err != nil {
			return cli.OK // nobody reads any more
		}
		select {
		case <-ctx.Done():
			return cli.OK
		case <-tick.C:
		}
	}
}

// What a terminal is told (ECMA-48, and xterm's private modes).
const (
	otherScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	firstScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K"
	clearRest   = "\x1b[J"
)

// Gather reads everything that status shows.
func Gather(env cli.Env, d dirs.Dirs, now time.Time) (View, error) {
	v := View{
		Wiring: inspect(env), Rules: map[string]Rule{}, Problems: []problem.Problem{}, Untrusted: []string{},
		Sessions: []Session{}, On: []string{}, Attention: []Attention{},
	}
	project := env.Getenv("CLAUDE_PROJECT_DIR")
	if project == "" {
		project, _ = os.Getwd()
	}
	res, err := compile.Compile(compile.Env{ConfigDir: d.Config, Home: d.Home, State: d.State, Reader: files.NewReader()}, project)
	if err != nil {
		return v, err
	}
	v.Problems = append(v.Problems, res.Problems...)
	v.Untrusted = append(v.Untrusted, res.Set.Untrusted...)
	for _, r := range res.Plan.Rules {
		v.On = append(v.On, r.ID)
	}
	s, err := survey.Take(d)
	if err != nil {
		return v, err
	}
	v.fill(s, now)
	return v, nil
}

func inspect(env cli.Env) Wiring {
	file, err := wiring.SettingsFile(env.Getenv)
	if err != nil {
		return Wiring{Problem: err.Error()}
	}
	w := Wiring{File: file}
	self, err := env.Executable()
	if err != nil {
		w.Problem = err.Error()
		return w
	}
	hook := wiring.Sensors(front.Sibling(self, "ways"))
	text, err := wiring.Read(file)
	if err != nil {
		w.Problem = file + ": " + err.Error()
		return w
	}
	found, err := wiring.Inspect(text, hook)
	if err != nil {
		w.Problem = file + ": " + err.Error()
		return w
	}
	w.Complete, w.Missing = found.Complete(), found.Missing
	switch {
	case found.Disabled:
		w.Complete, w.Problem = false, `"disableAllHooks" is set, so the client runs no hook; remove it from `+file
	case len(found.Stale) > 0:
		w.Problem = "an older entry is wired, " + found.Stale[0].Command + "; run: ways reconcile"
	}
	for _, c := range found.Commands {
		if err := wiring.CheckProgram(c); err != nil {
			w.Complete, w.Problem = false, err.Error()
		}
	}
	return w
}
