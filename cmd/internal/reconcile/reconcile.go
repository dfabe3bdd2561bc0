// Package reconcile is the verb `ways reconcile`: it puts the one sensor hook
// entry into the client's settings, or takes it out (seed §2).
package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"github.com/spf13/pflag"

	"ways/actors/target/visible"
	"ways/cmd/internal/reconcile/unified"
	"ways/config/wiring"
	"ways/hooks/dirs"
)

// The exit codes.
const (
	Done    = 0
	Usage   = 2 // wrong flags, or an environment that names no settings file
	Refused = 3 // the settings file was not touched because of what it is or holds
	Failed  = 5 // a write failed, or the ways binary is not where it must be
)

// Env is what the verb sees of the world.
type Env struct {
	Getenv         func(string) string
	Executable     func() (string, error) // the running binary, as os.Executable
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

const help = `Usage: ways reconcile [flags]

Wires ways into the client: adds one hook entry, "ways hook sensors", to ten
hook events in its settings.json, and keeps every other byte of that file. What
is wired already is brought up to date; run twice, it does nothing the second
time.

The file is settings.json in $CLAUDE_CONFIG_DIR, else in ~/.claude. It is made
when it is missing.

Flags:
%s
Examples:
  ways reconcile --dry-run                              show the change, write nothing
  ways reconcile                                        make it
  ways reconcile --settings .claude/settings.local.json wire one project alone
  ways reconcile --remove                               take the entry out again

Exit codes: 0 done, 2 usage, 3 the file was refused and not touched, 5 write failed.
`

// options are the parsed flags.
type options struct {
	dryRun, remove, json, help bool
	settings                   string
}

func parse(args []string) (options, string, error) {
	var o options
	flags := pflag.NewFlagSet("reconcile", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.SetOutput(io.Discard)
	flags.BoolVar(&o.dryRun, "dry-run", false, "print the change as a unified diff and write nothing")
	flags.BoolVar(&o.remove, "remove", false, "take the entry out again")
	flags.StringVar(&o.settings, "settings", "", "change this `FILE` instead of the user's settings")
	flags.BoolVar(&o.json, "json", false, "print the outcome as one JSON object")
	flags.BoolVarP(&o.help, "help", "h", false, "show this text")
	err := flags.Parse(args)
	switch {
	case err != nil:
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case flags.Changed("settings") && o.settings == "":
		err = errors.New("--settings needs the name of a file")
	}
	return o, fmt.Sprintf(help, flagLines(flags)), err
}

// flagLines lists the flags without the =true|false that pflag adds to a switch.
func flagLines(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		name := "    --" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", --" + f.Name
		}
		value, text := pflag.UnquoteUsage(f)
		if f.Value.Type() != "bool" {
			name += " " + value
		}
		fmt.Fprintf(&b, "  %-20s %s\n", name, text)
	})
	return b.String()
}

// Run is the verb; args are what follows its name. It returns the exit code.
func Run(args []string, env Env) int {
	o, usage, err := parse(args)
	if err != nil {
		fmt.Fprintf(env.Stderr, "ways reconcile: %s\nRun `ways reconcile --help` for usage.\n", plain(err.Error()))
		return Usage
	}
	if o.help {
		fmt.Fprint(env.Stdout, usage)
		return Done
	}
	// A signal ends the wait for another reconcile; a write once begun is
	// finished, so that no temporary file stays in the client's directory.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	out, err := run(ctx, o, env)
	if err != nil {
		fmt.Fprintf(env.Stderr, "ways reconcile: %s\n", plain(err.Error()))
		return code(err)
	}
	return out
}

func code(err error) int {
	switch {
	case errors.Is(err, wiring.ErrRefused):
		return Refused
	case errors.Is(err, wiring.ErrNoClientDir), errors.Is(err, dirs.ErrNoHome):
		return Usage
	}
	return Failed
}

func run(ctx context.Context, o options, env Env) (int, error) {
	file := o.settings
	if file == "" {
		var err error
		if file, err = wiring.SettingsFile(env.Getenv); err != nil {
			return 0, err
		}
	}
	ours, err := dirs.From(env.Getenv)
	if err != nil {
		return 0, err
	}
	store := wiring.NewStore(ours.State)
	var hook wiring.Hook
	var out wiring.Outcome
	if o.remove {
		out, err = store.Uninstall(ctx, file, o.dryRun)
	} else {
		var front string
		if front, err = frontBinary(env.Executable); err != nil {
			return 0, err
		}
		hook = wiring.Sensors(front)
		out, err = store.Install(ctx, file, hook, o.dryRun)
	}
	if err != nil {
		return 0, err
	}
	state, err := wiring.Inspect(out.After, hook)
	if err != nil {
		return 0, err
	}
	r := report{options: o, outcome: out, hook: hook, state: state}
	if o.json {
		err = r.json(env.Stdout)
	} else {
		r.text(env.Stdout, env.Stderr)
	}
	if err != nil {
		return 0, fmt.Errorf("print the outcome: %w", err)
	}
	return Done, nil
}

// frontBinary is the path of ways, which stands beside the running binary, or
// beside the file that a symlink to the running binary leads to.
func frontBinary(executable func() (string, error)) (string, error) {
	running, err := executable()
	if err != nil {
		return "", fmt.Errorf("find the running binary: %w", err)
	}
	if running, err = filepath.Abs(running); err != nil {
		return "", fmt.Errorf("find the running binary: %w", err)
	}
	front := filepath.Join(filepath.Dir(running), "ways")
	problem := wiring.CheckProgram(front)
	if problem == nil {
		return front, nil
	}
	if real, err := filepath.EvalSymlinks(running); err == nil {
		if beside := filepath.Join(filepath.Dir(real), "ways"); wiring.CheckProgram(beside) == nil {
			return beside, nil
		}
	}
	return "", fmt.Errorf("ways is not beside %s: %w", show(running), problem)
}

// report is what there is to tell.
type report struct {
	options
	outcome wiring.Outcome
	hook    wiring.Hook
	state   wiring.Wiring // of the file afterwards
}

func (r report) diff() string {
	from, to := show(r.outcome.Real), show(r.outcome.Real)
	if r.outcome.Before == nil {
		from = "/dev/null"
	}
	if r.outcome.After == nil {
		to = "/dev/null"
	}
	return unified.Diff(from, to, r.outcome.Before, r.outcome.After)
}

// plain makes a text harmless on a terminal; its lines stay lines.
func plain(text string) string { return string(visible.Append(nil, text, "")) }

// text tells a person. With --dry-run stdout holds the diff alone.
func (r report) text(stdout, stderr io.Writer) {
	to := stdout
	if r.dryRun {
		fmt.Fprint(stdout, plain(r.diff()))
		to = stderr
	}
	fmt.Fprintln(to, plain(r.headline()))
	for _, l := range []struct{ name, text string }{
		{"added", strings.Join(r.outcome.Added, ", ")},
		{"updated", strings.Join(r.outcome.Updated, ", ")},
		{"removed", strings.Join(r.outcome.Removed, ", ")},
		{"runs", r.runs()},
		{"backup", show(r.outcome.Backup)},
	} {
		if l.text != "" {
			fmt.Fprintf(to, "  %-8s %s\n", l.name, plain(l.text))
		}
	}
	switch {
	case r.dryRun:
		fmt.Fprintln(to, "Nothing was written.")
	case r.remove && r.outcome.Changed:
		fmt.Fprintf(to, "Sessions that are running may call ways until they end. Wire it again with: %s\n", plain(r.command("")))
	case r.outcome.Changed:
		fmt.Fprintf(to, "Takes effect in sessions that start from now on. Undo with: %s\n", plain(r.command(" --remove")))
	}
	for _, w := range r.warnings() {
		fmt.Fprintf(stderr, "warning: %s\n", plain(w))
	}
}

func (r report) headline() string {
	file := show(r.outcome.File)
	if r.outcome.File != r.outcome.Real {
		if abs, err := filepath.Abs(r.outcome.File); err != nil || abs != r.outcome.Real {
			file += " (the file is " + show(r.outcome.Real) + ")"
		}
	}
	wire, unwire, remove := "Wired ways in ", "Took ways out of ", "removed"
	if r.dryRun {
		wire, unwire, remove = "Would wire ways in ", "Would take ways out of ", "to be removed"
	}
	switch {
	case !r.outcome.Changed && r.remove:
		return "Nothing to do: there is no entry of ways in " + file + "."
	case !r.outcome.Changed:
		return "Nothing to do: ways is wired in " + file + "."
	case r.remove && r.outcome.After == nil:
		return unwire + file + "; ways had made the file and nothing else is in it, so it is " + remove + "."
	case r.remove && r.outcome.Restored:
		return unwire + file + ", which is then, to the byte, what it was before."
	case r.remove:
		return unwire + file + "; everything else there stays."
	case r.outcome.Before == nil:
		return wire + file + ", a new file."
	}
	return wire + file + "."
}

func (r report) runs() string {
	if r.remove {
		return ""
	}
	return show(r.hook.Command) + " " + strings.Join(r.hook.Args, " ")
}

// command is the command line that undoes this one.
func (r report) command(flag string) string {
	line := "ways reconcile" + flag
	if r.settings != "" {
		line += " --settings " + shellQuote(r.settings)
	}
	return line
}

// warnings name what stands in the way of being wired, or of being unwired.
func (r report) warnings() []string {
	var list []string
	if r.state.Disabled && !r.remove {
		list = append(list, `the file sets "disableAllHooks": true, so the client runs no hook at all; remove that to use ways`)
	}
	for _, n := range r.state.Narrowed {
		if !r.remove {
			list = append(list, fmt.Sprintf("%s is wired for the matcher %q alone, as its group says; what that does not match is not seen", n.Event, n.Matcher))
		}
	}
	if len(r.state.Wrapped) > 0 {
		what := "it counts as wired and was left as it is"
		if r.remove {
			what = "it was left in; remove it by hand"
		}
		list = append(list, fmt.Sprintf("a command line of your own runs ways on %s; %s", strings.Join(r.state.Wrapped, ", "), what))
	}
	for _, e := range r.state.Extra {
		list = append(list, fmt.Sprintf("the entry stands on %s too, where ways does not belong; remove it there", e))
	}
	for _, e := range r.state.Repeated {
		list = append(list, fmt.Sprintf("%s runs ways more than once; the copies are dropped but cost time; keep one", e))
	}
	return list
}

// outcomeJSON is the form of --json. Fields may be added.
type outcomeJSON struct {
	File     string   `json:"file"`
	Real     string   `json:"real"`
	Action   string   `json:"action"` // "install" or "remove"
	DryRun   bool     `json:"dry_run"`
	Changed  bool     `json:"changed"`
	Exists   bool     `json:"exists"` // whether the file exists afterwards
	Restored bool     `json:"restored"`
	Command  string   `json:"command,omitempty"`
	Args     []string `json:"args,omitempty"`
	Added    []string `json:"added"`
	Updated  []string `json:"updated"`
	Removed  []string `json:"removed"`
	Backup   string   `json:"backup,omitempty"`
	Diff     string   `json:"diff,omitempty"`
	Warnings []string `json:"warnings"`
}

func (r report) json(to io.Writer) error {
	o := outcomeJSON{
		File: r.outcome.File, Real: r.outcome.Real, Action: "install", DryRun: r.dryRun,
		Changed: r.outcome.Changed, Exists: r.outcome.After != nil, Restored: r.outcome.Restored,
		Command: r.hook.Command, Args: r.hook.Args,
		Added: list(r.outcome.Added), Updated: list(r.outcome.Updated), Removed: list(r.outcome.Removed),
		Backup: r.outcome.Backup, Warnings: list(r.warnings()),
	}
	if r.remove {
		o.Action = "remove"
	}
	if r.dryRun {
		o.Diff = r.diff()
	}
	enc := json.NewEncoder(to)
	enc.SetEscapeHTML(false)
	return enc.Encode(o)
}

// list makes a nil slice an empty array in JSON.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// show keeps a strange path from steering the terminal.
func show(path string) string {
	for _, r := range path {
		if !unicode.IsPrint(r) {
			return strconv.Quote(path)
		}
	}
	return path
}

// shellQuote makes a path one word for a shell.
func shellQuote(path string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("/._-+:@", r)
	}
	for _, r := range path {
		if !plain(r) {
			return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
		}
	}
	return path
}
