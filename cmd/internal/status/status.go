// Package status is the verb `ways status`: what needs attention first, then
// what was delivered, then what runs.
package status

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ways/actors/target/visible"
	"ways/cmd/internal/cli"
	"ways/cmd/internal/dispatch"
	"ways/config/compile"
	"ways/config/files"
	"ways/config/problem"
	"ways/config/wiring"
	"ways/hooks/dirs"
	"ways/hooks/front"
	"ways/hooks/launch"
	"ways/hooks/spool"
	"ways/hooks/tally"
	"ways/metrics/counters"
)

const usage = `Usage: ways status [--json]

Shows whether the client is wired, what was refused, which rules are on for this
project, what each rule was handed and what became of it since the first record,
and the sessions that have a dispatcher or something waiting.`

// View is the status as JSON. Its shape is stable: fields are added, never
// renamed or removed.
type View struct {
	Wiring    Wiring                  `json:"wiring"`
	Problems  []problem.Problem       `json:"problems"`
	Untrusted []string                `json:"untrusted"`
	Refused   map[tally.Reason]uint64 `json:"hook_refusals"`
	// On lists the rules that run for this project.
	On       []string                 `json:"rules_on"`
	Rules    map[string]counters.Rule `json:"rules"`
	Sessions []Session                `json:"sessions"`
	// Past counts the sessions without a dispatcher and without anything waiting.
	Past int `json:"past_sessions"`
}

// Wiring says how far the client's settings have our hook.
type Wiring struct {
	File     string   `json:"file"`
	Complete bool     `json:"complete"`
	Missing  []string `json:"missing,omitempty"`
	Problem  string   `json:"problem,omitempty"`
}

// Session is one session with a dispatcher, or with something waiting.
type Session struct {
	Session    string    `json:"session"`
	Project    string    `json:"project,omitempty"`
	Running    bool      `json:"running"`
	PID        int       `json:"pid,omitempty"`
	Started    time.Time `json:"started,omitzero"`
	Records    uint64    `json:"records"`
	Damaged    uint64    `json:"damaged,omitempty"`
	SpoolBytes int64     `json:"spool_bytes"`
	Waiting    uint64    `json:"spooled"`
	Since      time.Time `json:"spooled_since,omitzero"`
}

// Run is the verb.
func Run(env cli.Env, args []string) int {
	fs := cli.Flags("status")
	asJSON := fs.Bool("json", false, "print JSON")
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
	v, err := Gather(env, d)
	if err != nil {
		return env.Fail("status", err)
	}
	if *asJSON {
		enc := json.NewEncoder(env.Stdout)
		enc.SetIndent("", "  ")
		if err := enc.Encode(v); err != nil {
			return env.Fail("status", err)
		}
		return cli.OK
	}
	v.print(env)
	return cli.OK
}

// Gather reads everything that status shows.
func Gather(env cli.Env, d dirs.Dirs) (View, error) {
	v := View{Wiring: inspect(env), Rules: map[string]counters.Rule{}, Problems: []problem.Problem{}, Untrusted: []string{}, Sessions: []Session{}, On: []string{}}
	project := env.Getenv("CLAUDE_PROJECT_DIR")
	if project == "" {
		project, _ = os.Getwd()
	}
	res, err := compile.Compile(compile.Env{ConfigDir: d.Config, Home: d.Home, Reader: files.NewReader()}, project)
	if err != nil {
		return v, err
	}
	v.Problems = append(v.Problems, res.Problems...)
	v.Untrusted = append(v.Untrusted, res.Set.Untrusted...)
	for _, r := range res.Plan.Rules {
		v.On = append(v.On, r.ID)
	}
	if v.Refused, err = tally.Counts(d); err != nil {
		return v, err
	}
	sum, err := counters.NewStore(d.State).Sum()
	if err != nil {
		return v, err
	}
	for id, r := range sum.Rules {
		v.addRule(id, *r)
	}
	entries, err := os.ReadDir(d.Sessions())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return v, err
	}
	for _, e := range entries {
		if e.IsDir() {
			v.addSession(filepath.Join(d.Sessions(), e.Name()), e.Name(), sum.Files)
		}
	}
	slices.SortFunc(v.Sessions, func(a, b Session) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Session, b.Session))
	})
	return v, nil
}

func (v *View) addSession(dir, name string, files []counters.File) {
	s := Session{Session: name, Running: launch.Running(dir)}
	s.SpoolBytes, _ = spool.Bytes(dir)
	for _, c := range files {
		if dirs.SessionName(c.Session.Session) == name {
			s.Session, s.Project, s.Records, s.Damaged = c.Session.Session, c.Project, c.Records, c.Damaged
			s.Waiting, s.Since = c.Waiting()
		}
	}
	if !s.Running && s.Waiting == 0 && s.SpoolBytes == 0 {
		v.Past++
		return
	}
	if s.Running {
		var info dispatch.Info
		if data, err := os.ReadFile(filepath.Join(dir, dispatch.InfoName)); err == nil && json.Unmarshal(data, &info) == nil {
			s.PID, s.Started = info.PID, info.Started
		}
	}
	v.Sessions = append(v.Sessions, s)
}

// addRule sums a rule over sessions.
func (v *View) addRule(id string, r counters.Rule) {
	sum := v.Rules[id]
	sum.Matched += r.Matched
	sum.Delivered += r.Delivered
	sum.Failed += r.Failed
	sum.Refused += r.Refused
	sum.TimedOut += r.TimedOut
	sum.Killed += r.Killed
	sum.Dropped += r.Dropped
	sum.Waiting += r.Waiting
	sum.Panics += r.Panics
	sum.Reasons = add(sum.Reasons, r.Reasons)
	sum.Redacted = add(sum.Redacted, r.Redacted)
	sum.Since = earlier(sum.Since, r.Since)
	sum.WaitingSince = earlier(sum.WaitingSince, r.WaitingSince)
	if r.LastErrorAt.After(sum.LastErrorAt) {
		sum.LastError, sum.LastErrorAt = r.LastError, r.LastErrorAt
	}
	if r.Target != "" {
		sum.Target = r.Target
	}
	v.Rules[id] = sum
}

func add(to, from map[string]uint64) map[string]uint64 {
	if to == nil {
		return maps.Clone(from)
	}
	for k, n := range from {
		to[k] += n
	}
	return to
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
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
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.Problem = err.Error()
		return w
	}
	found, err := wiring.Inspect(text, hook)
	if err != nil {
		w.Problem = err.Error()
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

func (v View) print(env cli.Env) {
	out := env.Stdout
	switch {
	case v.Wiring.Complete:
		fmt.Fprintf(out, "wired in %s\n", visible.Line(v.Wiring.File))
	case v.Wiring.Problem != "":
		fmt.Fprintf(out, "NOT WIRED: %s\n", visible.Line(v.Wiring.Problem))
	default:
		fmt.Fprintf(out, "NOT WIRED on %d of %d events in %s; run: ways reconcile\n",
			len(v.Wiring.Missing), len(wiring.Events()), visible.Line(v.Wiring.File))
	}
	for _, p := range v.Problems {
		if p.Severity != problem.Notice {
			fmt.Fprintln(out, visible.Line(p.String()))
		}
	}
	for _, r := range slices.Sorted(maps.Keys(v.Refused)) {
		fmt.Fprintf(out, "hook events refused, %s: %d\n", r, v.Refused[r])
	}
	if len(v.On) == 0 {
		fmt.Fprintln(out, "no rule is on here; turn one on: ways sensors copy tool-audit my-audit --enable")
	} else {
		fmt.Fprintf(out, "on here: %s\n", visible.Line(strings.Join(v.On, ", ")))
	}
	fmt.Fprintln(out)
	if len(v.Rules) > 0 {
		v.printRules(env)
		fmt.Fprintln(out)
	}
	v.printSessions(env)
}

func (v View) printRules(env cli.Env) {
	ids := slices.Sorted(maps.Keys(v.Rules))
	width := len("RULE")
	for _, id := range ids {
		width = max(width, len(visible.Line(id)))
	}
	fmt.Fprintf(env.Stdout, "%-*s  MATCHED  DELIVERED  FAILED  TIMED OUT  KILLED  REFUSED  DROPPED  SPOOLED  SINCE\n", width, "RULE")
	for _, id := range ids {
		r := v.Rules[id]
		fmt.Fprintf(env.Stdout, "%-*s  %7d  %9d  %6d  %9d  %6d  %7d  %7d  %7d  %s\n", width, visible.Line(id), r.Matched, r.Delivered,
			r.Failed, r.TimedOut, r.Killed, r.Refused, r.Dropped, r.Waiting, clock(r.Since))
	}
	for _, id := range ids {
		if r := v.Rules[id]; r.LastError != "" {
			fmt.Fprintf(env.Stdout, "%s: %s (%s)\n", visible.Line(id), visible.Line(r.LastError), clock(r.LastErrorAt))
		}
	}
}

func (v View) printSessions(env cli.Env) {
	for _, s := range v.Sessions {
		state := "no dispatcher"
		if s.Running {
			state = fmt.Sprintf("dispatcher %d since %s", s.PID, clock(s.Started))
		}
		fmt.Fprintf(env.Stdout, "session %s: %s, %d records", visible.Line(s.Session), state, s.Records)
		if s.Waiting > 0 {
			fmt.Fprintf(env.Stdout, ", %d waiting since %s", s.Waiting, clock(s.Since))
		}
		if s.Damaged > 0 {
			fmt.Fprintf(env.Stdout, ", %d damaged stretches", s.Damaged)
		}
		fmt.Fprintln(env.Stdout)
	}
	fmt.Fprintf(env.Stdout, "sessions that ended, with nothing waiting: %d\n", v.Past)
}

func clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}
