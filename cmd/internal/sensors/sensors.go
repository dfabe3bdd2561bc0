// Package sensors is the verb family `ways sensors`: it lists, shows, checks and
// copies sensor files, and compiles them for the hook.
package sensors

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"ways/actors/target/visible"
	"ways/cmd/internal/cli"
	"ways/config/compile"
	"ways/config/files"
	"ways/config/problem"
	"ways/config/publish"
	"ways/config/schema"
	"ways/config/sensors"
	"ways/config/trust"
	"ways/hooks/dirs"
)

// About heads the family's help.
const About = `A sensor is a YAML file of rules; each rule selects records and sends them
somewhere. Sensors come with ways (shipped), from your configuration directory
(user), and from a project that you trust (project); later ones win.`

// Verbs lists the family.
func Verbs() []cli.Verb {
	return []cli.Verb{
		{Name: "list", Short: "every sensor and rule, and whether it runs", Run: list},
		{Name: "show", Short: "one sensor's values, and which file set each", Run: show},
		{Name: "lint", Short: "what is wrong with sensor files, or worth knowing", Run: lint},
		{Name: "redact", Short: "what masking would do to a text", Run: redactText},
		{Name: "copy", Short: "make a sensor of your own from another", Run: copySensor},
		{Name: "verify", Short: "whether a chained log is what was written", Run: verify},
		{Name: "enable", Short: "turn a sensor of yours on", Run: func(e cli.Env, a []string) int { return toggle(e, a, true) }},
		{Name: "disable", Short: "turn a sensor of yours off", Run: func(e cli.Env, a []string) int { return toggle(e, a, false) }},
		{Name: "trust", Short: "let a project's own sensors run, or stop them", Run: trustProject},
		{Name: "compile", Run: compileIndex},
	}
}

// projectFlag adds --project, the project whose sensors count. What it returns
// is to be asked once the flags are parsed.
func projectFlag(fs *pflag.FlagSet, env cli.Env) func() string {
	given := fs.String("project", "", "the project `DIR` whose own sensors count (default $CLAUDE_PROJECT_DIR, else the current directory)")
	return func() string {
		if fs.Changed("project") {
			return *given
		}
		if dir := env.Getenv("CLAUDE_PROJECT_DIR"); dir != "" {
			return dir
		}
		dir, _ := os.Getwd() // without one, no project counts
		return dir
	}
}

// load compiles what applies to a project.
func load(env cli.Env, project string) (dirs.Dirs, compile.Result, error) {
	d, err := dirs.From(env.Getenv)
	if err == nil && project != "" {
		project, err = filepath.Abs(project)
	}
	if err != nil {
		return d, compile.Result{}, err
	}
	res, err := compile.Compile(compile.Env{ConfigDir: d.Config, Home: d.Home, State: d.State, Reader: files.NewReader()}, project)
	return d, res, err
}

// compileIndex is what a hook runs when a sensor file changed.
func compileIndex(env cli.Env, args []string) int {
	fs := cli.Flags("sensors compile")
	project := projectFlag(fs, env)
	if code, done := cli.Parse(env, fs, "Usage: ways sensors compile [--project DIR]\n\nCompiles sensor files to the index that hooks read. Hooks run it by themselves.", args); done {
		return code
	}
	d, err := dirs.From(env.Getenv)
	if err != nil {
		return env.Fail("sensors compile", err)
	}
	res, err := publish.Publish(d, files.NewReader(), project())
	if err != nil {
		return env.Fail("sensors compile", err)
	}
	for _, p := range problem.Errors(res.Problems) {
		fmt.Fprintln(env.Stderr, env.Line(env.Stderr, p))
	}
	return cli.OK
}

// ruleView is a rule in list's JSON. Its shape is stable.
type ruleView struct {
	Rule      string   `json:"rule"`
	State     string   `json:"state"`
	Layers    []string `json:"layers"`
	Sections  []string `json:"sections"`
	Mode      string   `json:"mode"`
	Delivery  string   `json:"delivery"`
	Redact    string   `json:"redact"`
	Target    string   `json:"target"`
	LeavesTo  string   `json:"leaves_machine_to,omitempty"`
	LeavesFar bool     `json:"leaves_machine"`
	// program says that the target is one: only it knows where it sends.
	program bool
}

func views(set *sensors.Set) []ruleView {
	out := []ruleView{}
	for _, s := range set.Sensors {
		var layers []string
		for _, src := range s.Sources {
			layers = append(layers, string(src.Layer))
		}
		for _, r := range s.Rules {
			v := ruleView{
				Rule: s.Name + "/" + r.Name, State: stateOf(s, r), Layers: layers, Mode: string(r.Mode),
				Delivery: string(r.Delivery), Redact: string(r.Redact), Target: r.Destination(),
			}
			for _, sec := range r.Sections.List() {
				v.Sections = append(v.Sections, sec.String())
			}
			if to, local, off := r.OffMachine(); off {
				v.LeavesTo, v.LeavesFar, v.program = to, !local, r.Target.Command != nil
			}
			out = append(out, v)
		}
	}
	return out
}

func stateOf(s sensors.Sensor, r sensors.Rule) string {
	switch {
	case r.Refused:
		return "refused"
	case r.Active:
		return "on"
	case !s.Enabled:
		return "off (sensor)"
	}
	return "off (rule)"
}

func list(env cli.Env, args []string) int {
	fs := cli.Flags("sensors list")
	project := projectFlag(fs, env)
	asJSON := fs.Bool("json", false, "print JSON")
	if code, done := cli.Parse(env, fs, "Usage: ways sensors list [--json]\n\nLists every sensor and rule, and whether it runs.", args); done {
		return code
	}
	if fs.NArg() > 0 {
		return cli.WrongArgs(env, fs, "no arguments")
	}
	_, res, err := load(env, project())
	if err != nil {
		return env.Fail("sensors list", err)
	}
	rules := views(res.Set)
	if *asJSON {
		return printJSON(env, map[string]any{
			"rules": rules, "untrusted": orEmpty(res.Set.Untrusted), "problems": orEmpty(res.Problems),
		})
	}
	printLoud(env, res.Problems)
	w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RULE\tSTATE\tFROM\tMODE\tSECTIONS\tTARGET")
	for _, v := range rules {
		sections := strings.Join(v.Sections, ",")
		if len(v.Sections) > 4 {
			sections = fmt.Sprintf("%d sections", len(v.Sections))
		}
		target := v.Target
		switch {
		case v.program:
			target += "  MAY LEAVE THIS MACHINE"
		case v.LeavesFar:
			target += "  LEAVES THIS MACHINE"
		case v.LeavesTo != "":
			target += "  (loopback)"
		}
		if v.Redact == "none" {
			target += "  UNMASKED"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", visible.Line(v.Rule), v.State, strings.Join(v.Layers, "+"),
			v.Mode, sections, visible.Line(target))
	}
	w.Flush()
	for _, f := range res.Set.Untrusted {
		fmt.Fprintf(env.Stdout, "not trusted, not read: %s\n", visible.Line(f))
	}
	if res.Unlisted && len(res.Set.Untrusted) > 0 {
		fmt.Fprintf(env.Stdout, "to trust them: %s\n", visible.Line(trust.Command(res.Plan.Project)))
	}
	if n := len(problem.Errors(res.Problems)); n > 0 {
		fmt.Fprintf(env.Stdout, "\nfound wrong: %d; see: ways sensors lint\n", n)
	}
	return cli.OK
}

func show(env cli.Env, args []string) int {
	fs := cli.Flags("sensors show")
	project := projectFlag(fs, env)
	asJSON := fs.Bool("json", false, "print JSON")
	if code, done := cli.Parse(env, fs, "Usage: ways sensors show SENSOR[/RULE] [--json]\n\nShows every value that holds, and the file and line that set it.", args); done {
		return code
	}
	if fs.NArg() != 1 {
		return cli.WrongArgs(env, fs, "one SENSOR or SENSOR/RULE")
	}
	_, res, err := load(env, project())
	if err != nil {
		return env.Fail("sensors show", err)
	}
	name, rule, _ := strings.Cut(fs.Arg(0), "/")
	s, ok := res.Set.Find(name)
	if !ok {
		return env.Fail("sensors show", unknown("sensor", name, sensorNames(res.Set)))
	}
	rules := s.Rules
	if rule != "" {
		r, ok := s.Find(rule)
		if !ok {
			return env.Fail("sensors show", unknown("rule", rule, ruleNames(s)))
		}
		rules = []sensors.Rule{r}
	}
	table := schema.NewTable(schema.Sensor())
	quiet, err := newHush()
	if err != nil {
		return env.Fail("sensors show", err)
	}
	if *asJSON {
		type shown struct {
			Rule     string            `json:"rule"`
			State    string            `json:"state"`
			Settings []sensors.Setting `json:"settings"`
			Problems []problem.Problem `json:"problems,omitempty"`
		}
		out := []shown{}
		for _, r := range rules {
			out = append(out, shown{s.Name + "/" + r.Name, stateOf(s, r), quiet.settings(r.Settings(table)), r.Problems})
		}
		return printJSON(env, map[string]any{"sensor": s.Name, "description": s.Description, "enabled": s.Enabled, "sources": s.Sources, "rules": out})
	}
	for _, r := range rules {
		printLoud(env, r.Problems)
	}
	title := visible.Line(s.Name)
	if s.Description != "" {
		title += ": " + visible.Line(s.Description)
	}
	fmt.Fprintln(env.Stdout, title)
	for _, src := range s.Sources {
		where := src.File
		if where == "" {
			where = "comes with ways"
		}
		fmt.Fprintf(env.Stdout, "  %s: %s\n", src.Layer, visible.Line(where))
	}
	for _, r := range rules {
		to := ""
		if target := r.Destination(); target != "" { // a refused rule may have none
			to = "; sends to " + visible.Line(target)
		}
		fmt.Fprintf(env.Stdout, "\n%s/%s is %s%s\n", visible.Line(s.Name), visible.Line(r.Name), stateOf(s, r), to)
		w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
		for _, set := range quiet.settings(r.Settings(table)) {
			fmt.Fprintf(w, "  %s\t%s\t%s\n", set.Key, visible.Line(set.Text()), visible.Line(origin(set.Origin)))
		}
		w.Flush()
		for _, p := range r.Problems {
			if !p.Loud {
				fmt.Fprintln(env.Stdout, "  "+env.Line(env.Stdout, p))
			}
		}
	}
	return cli.OK
}

func origin(o sensors.Origin) string {
	if o.File == "" {
		return string(o.Layer)
	}
	return fmt.Sprintf("%s %s:%d", o.Layer, filepath.Base(o.File), o.Line)
}

func lint(env cli.Env, args []string) int {
	fs := cli.Flags("sensors lint")
	project := projectFlag(fs, env)
	asJSON := fs.Bool("json", false, "print JSON")
	usage := `Usage: ways sensors lint [FILE ...] [--json]

Checks the sensor files that apply here, or the files named. Exits 1 when a rule
or file is refused.`
	if code, done := cli.Parse(env, fs, usage, args); done {
		return code
	}
	var problems []problem.Problem
	if fs.NArg() > 0 {
		for _, file := range fs.Args() {
			f, err := files.NewReader().Read(file)
			if err != nil {
				problems = append(problems, problem.Problem{File: file, Message: files.About(file, err), Severity: problem.Error})
				continue
			}
			found := sensors.Check(strings.TrimSuffix(filepath.Base(file), sensors.Suffix), f.Data)
			for i := range found {
				found[i].File = file
			}
			problems = append(problems, found...)
		}
	} else {
		_, res, err := load(env, project())
		if err != nil {
			return env.Fail("sensors lint", err)
		}
		problems = res.Problems
	}
	refused := len(problem.Errors(problems))
	switch {
	case *asJSON:
		if code := printJSON(env, orEmpty(problems)); code != cli.OK {
			return code
		}
	case len(problems) == 0:
		fmt.Fprintln(env.Stdout, "nothing found: every sensor file that applies is valid")
	default:
		problem.Sort(problems)
		for _, p := range problems {
			fmt.Fprintln(env.Stdout, env.Line(env.Stdout, p))
		}
	}
	if refused > 0 {
		return cli.Failed
	}
	return cli.OK
}

// printLoud prints what the user must not miss.
func printLoud(env cli.Env, problems []problem.Problem) {
	for _, p := range problems {
		if p.Loud {
			fmt.Fprintln(env.Stdout, env.Line(env.Stdout, p))
		}
	}
}

// orEmpty makes a nil list an empty array in JSON.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func printJSON(env cli.Env, v any) int {
	enc := json.NewEncoder(env.Stdout)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return env.Fail("sensors", err)
	}
	return cli.OK
}

func unknown(what, name string, known []string) error {
	hint := "ways sensors list shows what there is"
	if s := schema.Suggest(name, known); s != "" {
		hint = "did you mean " + s + "?"
	}
	return fmt.Errorf("there is no %s %q; %s", what, visible.Line(name), hint)
}

func sensorNames(set *sensors.Set) []string {
	var names []string
	for _, s := range set.Sensors {
		names = append(names, s.Name)
	}
	return names
}

func ruleNames(s sensors.Sensor) []string {
	var names []string
	for _, r := range s.Rules {
		names = append(names, r.Name)
	}
	return names
}
