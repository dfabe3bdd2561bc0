package sensors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"ways/actors/target/audit"
	"ways/actors/target/chained"
	"ways/actors/target/checkpoint"
	"ways/actors/target/expand"
	"ways/actors/target/file"
	"ways/actors/target/visible"
	"ways/cmd/internal/cli"
	"ways/config/plan"
	"ways/config/schema"
	"ways/hooks/dirs"
)

// partly is the exit code for a log that is consistent, and not known to be whole.
const partly = 3

// lockWait is how long verify waits for the lock of a log that is written to.
const lockWait = 5 * time.Second

const verifyUsage = `Usage: ways sensors verify FILE... [--json]
       ways sensors verify SENSOR/RULE [--json]

Verifies a chained log: names the first line that was edited, removed, inserted,
reordered, duplicated or torn, and compares the log's end with what is known
outside it: the head of the chain, and the signed checkpoints. Of a rotated log
give all files, in any order; of a rule they are found.

Exits 0 when the log is what was written, 1 when it was tampered with, 3 when a
killed writer left something that the next record mends, or when what is here is
consistent and not known to be all.`

func verify(env cli.Env, args []string) int {
	flags := cli.Flags("sensors verify")
	project := projectFlag(flags, env)
	rule := flags.String("rule", "", "the files are what a receiver kept of the records of `SENSOR/RULE`")
	notes := flags.StringArray("checkpoints", nil, "compare with the checkpoints in `FILE` too, such as those another rule's target got")
	key := flags.String("key", "", "the public key for checkpoints, in `FILE` (default keys/checkpoint in the configuration directory)")
	asJSON := flags.Bool("json", false, "print JSON")
	if code, done := cli.Parse(env, flags, verifyUsage, args); done {
		return code
	}
	if flags.NArg() == 0 {
		return cli.WrongArgs(env, flags, "one FILE or more, or SENSOR/RULE")
	}
	d, err := dirs.From(env.Getenv)
	if err != nil {
		return env.Fail("sensors verify", err)
	}
	v := verification{env: env, dirs: d, project: project()}
	in, err := v.input(flags.Args(), *rule)
	if err == nil {
		err = v.checkpoints(&in, *notes, *key)
	}
	var report audit.Report
	if err == nil {
		report, err = audit.Verify(in)
	}
	err = errors.Join(err, v.close())
	if err != nil {
		env.Fail("sensors verify", err)
		return cli.Usage // 1 says that a log was tampered with
	}
	if *asJSON {
		if code := printJSON(env, report); code != cli.OK {
			return cli.Usage
		}
	} else {
		printReport(env, report)
	}
	switch report.Status {
	case audit.OK:
		return cli.OK
	case audit.Tampered:
		return cli.Failed
	}
	return partly
}

// verification gathers what a log is compared with.
type verification struct {
	env     cli.Env
	dirs    dirs.Dirs
	project string
	opened  []io.Closer
}

func (v *verification) close() error {
	var errs []error
	for _, f := range v.opened {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

func (v *verification) input(args []string, rule string) (audit.Input, error) {
	if rule != "" {
		r, err := v.rule(rule)
		if err != nil {
			return audit.Input{}, err
		}
		if r.Target.File == nil {
			return v.delivered(r, args)
		}
	}
	if len(args) == 1 && rule == "" && isRule(args[0]) {
		r, err := v.rule(args[0])
		if err != nil {
			return audit.Input{}, err
		}
		if args, err = v.logsOf(r); err != nil {
			return audit.Input{}, err
		}
	}
	var files []string
	for _, name := range args {
		path, err := resolved(name)
		if err != nil {
			return audit.Input{}, err
		}
		files = append(files, path)
	}
	in := audit.Input{}
	var err error
	if in.Files, err = inOrder(files); err != nil {
		return in, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	// The log that is written to now is among the files, or they are what it was
	// rotated to.
	for _, path := range candidates(files) {
		known, err := file.Inspect(ctx, v.dirs.State, path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return in, err
		}
		in.Known, in.Chain = &known, known.Name
		if slices.Contains(files, path) {
			in.Current = path
		}
		break
	}
	if in.Chain == "" {
		in.Chain = v.chainName(files)
	}
	return in, nil
}

// chainName is the name of the chain whose journal is gone, by its checkpoints.
func (v *verification) chainName(files []string) string {
	for _, path := range candidates(files) {
		name := file.JournalName(path)
		if _, err := os.Stat(checkpoint.File(v.dirs.State, name)); err == nil {
			return name
		}
	}
	return file.JournalName(files[len(files)-1])
}

// delivered is the input for records that a receiver kept.
func (v *verification) delivered(r plan.Rule, files []string) (audit.Input, error) {
	in := audit.Input{Files: files, Chain: chained.Name(r.ID), Delivered: true}
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	head, err := chained.Head(ctx, v.dirs.State, r.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return in, nil
	}
	if err != nil {
		return in, err
	}
	in.Known = &file.Known{Name: in.Chain, Head: head, Size: -1}
	return in, nil
}

func (v *verification) rule(id string) (plan.Rule, error) {
	name, short, _ := strings.Cut(id, "/")
	_, res, err := load(v.env, v.project)
	if err != nil {
		return plan.Rule{}, err
	}
	s, ok := res.Set.Find(name)
	if !ok {
		return plan.Rule{}, unknown("sensor", name, sensorNames(res.Set))
	}
	r, ok := s.Find(short)
	if !ok {
		return plan.Rule{}, unknown("rule", short, ruleNames(s))
	}
	return r.Rule, nil
}

// logsOf finds a rule's log and what it was rotated to.
func (v *verification) logsOf(r plan.Rule) ([]string, error) {
	if r.Target.File == nil {
		return nil, fmt.Errorf("the records of %s go to %s; verify what was kept there: ways sensors verify --rule %s FILE",
			r.ID, visible.Line(r.Target.String()), r.ID)
	}
	path, err := expand.Path(r.Target.File.Path, v.dirs.Home, v.env.Getenv)
	if err != nil {
		return nil, fmt.Errorf("the file of %s: %w", r.ID, err)
	}
	if path, err = resolved(path); err != nil {
		return nil, err
	}
	logs := []string{path}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if other := filepath.Join(filepath.Dir(path), e.Name()); e.Type().IsRegular() && other != path && unrotated(other) == path {
			logs = append(logs, other)
		}
	}
	return logs, nil
}

// isRule reports whether an argument names a rule and no file.
func isRule(arg string) bool {
	sensor, rule, ok := strings.Cut(arg, "/")
	if !ok || !schema.IsName(sensor) || !schema.IsName(rule) {
		return false
	}
	_, err := os.Lstat(arg)
	return err != nil
}

// resolved is a path as a journal knows it.
func resolved(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.Base(path)), nil
}

// unrotated takes off what rotation put behind a log's name: .1, -20261130 and
// the like.
func unrotated(path string) string {
	short := strings.TrimRight(path, "0123456789")
	if short == path || !strings.HasSuffix(short, ".") && !strings.HasSuffix(short, "-") {
		return path
	}
	return short[:len(short)-1]
}

// candidates are the paths at which the log itself may be.
func candidates(files []string) []string {
	list := slices.Clone(files)
	for _, path := range files {
		if short := unrotated(path); !slices.Contains(list, short) {
			list = append(list, short)
		}
	}
	return list
}

// inOrder sorts the parts of a log by the number of their first record. A file
// without one is the newest: nothing was written to it yet.
func inOrder(files []string) ([]string, error) {
	firsts := map[string]uint64{}
	for _, name := range files {
		n, err := audit.First(name)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			n = ^uint64(0)
		}
		firsts[name] = n
	}
	sorted := slices.Clone(files)
	slices.SortStableFunc(sorted, func(a, b string) int {
		switch {
		case firsts[a] < firsts[b]:
			return -1
		case firsts[a] > firsts[b]:
			return 1
		}
		return 0
	})
	return sorted, nil
}

// checkpoints opens the chain's own checkpoints, and those of the user.
func (v *verification) checkpoints(in *audit.Input, more []string, key string) error {
	if key == "" {
		key = checkpoint.KeyFile(v.dirs.Config)
	}
	var keys []note.Verifier
	verifier, err := checkpoint.Verifier(key)
	switch {
	case err == nil:
		keys = append(keys, verifier)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	own := checkpoint.File(v.dirs.State, in.Chain)
	for _, name := range append([]string{own}, more...) {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) && name == own {
			continue
		}
		if err != nil {
			return err
		}
		v.opened = append(v.opened, f)
		in.Checkpoints = append(in.Checkpoints, checkpoint.NewReader(f, keys...))
	}
	return nil
}

func printReport(env cli.Env, r audit.Report) {
	name := visible.Line(r.Files[len(r.Files)-1])
	fmt.Fprintf(env.Stdout, "%s: %s\n", name, r.Status)
	for _, f := range r.Findings {
		where := ""
		if f.File != "" {
			where = visible.Line(f.File) + ":"
			if f.Line > 0 {
				where += fmt.Sprintf("%d:", f.Line)
			}
			where += " "
		}
		fmt.Fprintf(env.Stdout, "  %s%s: %s\n", where, f.Kind, visible.Line(f.Words))
	}
	if r.Records > 0 {
		fmt.Fprintf(env.Stdout, "  records read: %d, numbers %d to %d\n", r.Records, r.First, r.Last)
		fmt.Fprintf(env.Stdout, "  signed checkpoints that agree: %d\n", r.Checkpoints)
	}
}
