package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"ways/cmd/internal/figures"
)

// runCompare is `bench compare`: the base's programs and benchmarks and the work
// tree's, in turn, and how they relate. Machines differ and are never quiet, so no
// ratio is an error; a program or a benchmark that fails is.
func runCompare(ctx context.Context, args []string) error {
	flags := pflag.NewFlagSet("bench compare", pflag.ContinueOnError)
	ref := flags.String("base", "", "commit to compare with (default: where this branch left the main branch; on it, the commit before)")
	fixtures := flags.String("fixtures", "testdata/claude-code", "directory of recorded payloads")
	times := flags.Int("times", 5, "runs of each Go benchmark")
	var c counts
	c.add(flags, 100, 10)
	if done, err := parse(flags, args, c); done || err != nil {
		return err
	}
	if *times < 1 {
		return errors.New("--times must be at least 1")
	}
	call, err := readCall(*fixtures)
	if err != nil {
		return err
	}
	base, why, err := findBase(ctx, ".", *ref)
	if err != nil {
		return err
	}
	if base == "" {
		fmt.Printf("Nothing is compared: %s.\n", why)
		return nil
	}
	return inTemp(func(dir string) error {
		root, err := git(ctx, ".", "rev-parse", "--show-toplevel")
		if err != nil {
			return err
		}
		tree := filepath.Join(dir, "tree")
		if _, err := git(ctx, root, "worktree", "add", "--quiet", "--detach", tree, base); err != nil {
			return err
		}
		rows, err := compareTrees(ctx, dir, []string{tree, root}, call, c, *times)
		// Also when interrupted: git keeps a list of its work trees.
		_, removeErr := git(context.WithoutCancel(ctx), root, "worktree", "remove", "--force", tree)
		if errors.Is(err, errBase) {
			fmt.Printf("Nothing is compared: %v.\n", err)
			err = nil
		}
		if err := errors.Join(err, removeErr); err != nil {
			return err
		}
		if len(rows) > 0 {
			fmt.Print(ratioTable(base[:min(len(base), 12)], rows))
			fmt.Printf("\nMedians of %d runs of each program and %d of each benchmark, base and new in turn. %s.\n", c.runs, *times, figures.Machine())
		}
		return nil
	})
}

// findBase names the commit to compare with; none, and why, when there is none.
// A commit that was asked for and is not there is an error.
func findBase(ctx context.Context, dir, ref string) (commit, why string, err error) {
	if ref != "" {
		commit, err := git(ctx, dir, "rev-parse", "--verify", "--quiet", ref+"^{commit}")
		if err != nil {
			return "", "", fmt.Errorf("--base %s is no commit here", ref)
		}
		return commit, "", nil
	}
	head, err := git(ctx, dir, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil {
		return "", "there is no git history here", nil
	}
	for _, main := range []string{"origin/main", "main"} {
		base, err := git(ctx, dir, "merge-base", "HEAD", main)
		switch {
		case err != nil:
			continue
		case base != head:
			return base, "", nil
		}
		base, err = git(ctx, dir, "rev-parse", "--verify", "--quiet", "HEAD~1^{commit}")
		if err != nil {
			return "", "the commit before this one is not here (a shallow clone?)", nil
		}
		return base, "", nil
	}
	return "", "the main branch is not here (a shallow clone?)", nil
}

// git runs git in dir and returns what it printed.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	return output(ctx, dir, "git", args...)
}

// output runs a program in dir and returns what it printed. Its error holds what
// it said on stderr.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()+string(out)))
	}
	return strings.TrimSpace(string(out)), nil
}

// errBase is the error of a base that cannot be built: not this work tree's fault.
var errBase = errors.New("the base does not build")

// side is one of the two trees.
type side struct {
	name, tree string
	lab        *lab
	// tests are the built test binaries, by package; "" for a package that the tree
	// does not have.
	tests map[string]string
}

// compareTrees builds both trees, the base first, and times them in turn.
func compareTrees(ctx context.Context, dir string, trees []string, call call, c counts, times int) ([]ratioRow, error) {
	var sides []*side
	for i, tree := range trees {
		s := &side{name: []string{"base", "new"}[i], tree: tree, tests: map[string]string{}}
		s.lab = &lab{dir: filepath.Join(dir, s.name), bin: filepath.Join(dir, s.name, "bin"), call: call, want: map[string]int{}}
		if err := s.build(ctx); err != nil {
			if i == 0 {
				err = fmt.Errorf("%w: %w", errBase, err)
			}
			return nil, err
		}
		sides = append(sides, s)
	}
	bare, err := buildGo(ctx, dir, "bare", bareSource)
	if err != nil {
		return nil, err
	}
	rows, err := compareHooks(ctx, sides, bare, c)
	if err != nil {
		return nil, err
	}
	more, err := compareBenchmarks(ctx, sides, times)
	return append(rows, more...), err
}

// benchmark is a Go benchmark that is compared.
type benchmark struct{ pkg, name, time string }

// benchmarks are those of a record's way: into the spool, through masking, and
// from the spool to a file.
func benchmarks() []benchmark {
	return []benchmark{
		{"./hooks/spool", "BenchmarkAppend/600B", "2000x"},
		{"./hooks/redact/quality", "BenchmarkSeal/output_1_KB", "2000x"},
		{"./supervisor", "BenchmarkDispatch/file/1rule/300B", "4000x"},
	}
}

// build builds the two binaries and the test binaries.
func (s *side) build(ctx context.Context) error {
	if err := os.MkdirAll(s.lab.bin, 0o700); err != nil {
		return err
	}
	// As the product is built, so that the cache has most of it.
	_, err := output(ctx, s.tree, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", s.lab.bin+"/", "./cmd/ways", "./cmd/waysctl")
	if err != nil {
		return err
	}
	for i, b := range benchmarks() {
		if _, err := os.Stat(filepath.Join(s.tree, b.pkg)); err != nil {
			continue
		}
		binary := filepath.Join(s.lab.dir, fmt.Sprintf("%d.test", i))
		if _, err := output(ctx, s.tree, "go", "test", "-trimpath", "-ldflags", "-s -w", "-c", "-o", binary, b.pkg); err != nil {
			return err
		}
		s.tests[b.pkg] = binary
	}
	return nil
}

// compareHooks times the hooks of both sides in one measurement.
func compareHooks(ctx context.Context, sides []*side, bare string, c counts) ([]ratioRow, error) {
	programs := []program{{name: bareRow, argv: []string{bare}, env: []string{"PATH=" + os.Getenv("PATH")}}}
	for _, s := range sides {
		none, err := s.lab.home("none", 0, "")
		if err != nil {
			return nil, err
		}
		few, err := s.lab.home("unselected", sensorFiles, "session_end")
		if err != nil {
			return nil, err
		}
		selected, err := s.lab.home("selected", sensorFiles, "tool_call")
		if err != nil {
			return nil, err
		}
		s.lab.add(program{name: versionRow, argv: []string{s.lab.ways(), "--version"}, env: none.env()})
		for _, row := range []struct {
			name string
			home home
		}{{"nothing selected: no sensor file", none}, {"nothing selected: 20 sensor files", few}} {
			s.lab.add(program{name: row.name, argv: s.lab.hook(), env: row.home.env(), stdin: s.lab.call.numbered})
		}
		s.lab.handOff("hand-off: 20 sensor files", selected, s.lab.call.numbered)
		programs = append(programs, s.lab.programs...)
	}
	timings, err := measure(ctx, programs, c.warmup, c.runs)
	for _, s := range sides {
		_, closeErr := s.lab.close(context.WithoutCancel(ctx))
		err = errors.Join(err, closeErr)
	}
	if err != nil {
		return nil, err
	}
	bareTiming, timings := timings[0], timings[1:]
	n := len(timings) / 2
	rows := []ratioRow{{what: bareTiming.name, values: [2][]time.Duration{nil, bareTiming.runs}}}
	for i := range n {
		rows = append(rows, ratioRow{what: timings[i].name, values: [2][]time.Duration{timings[i].runs, timings[n+i].runs}})
	}
	return rows, nil
}

// compareBenchmarks runs the Go benchmarks of both sides in turn.
func compareBenchmarks(ctx context.Context, sides []*side, times int) ([]ratioRow, error) {
	var rows []ratioRow
	for _, b := range benchmarks() {
		row := ratioRow{what: "`" + b.name + "`"}
		for range times {
			for i, s := range sides {
				if s.tests[b.pkg] == "" {
					continue
				}
				out, err := output(ctx, filepath.Join(s.tree, b.pkg), s.tests[b.pkg],
					"-test.run=^$", "-test.bench="+anchored(b.name), "-test.benchtime="+b.time)
				if err != nil {
					return nil, err
				}
				if took, ok := perOperation(out, b.name); ok {
					row.values[i] = append(row.values[i], took)
				}
			}
		}
		if len(row.values[1]) == 0 {
			return nil, fmt.Errorf("there is no %s in %s any more: compare another one", b.name, b.pkg)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// anchored is the pattern that selects one benchmark: each part of its name as a
// whole.
func anchored(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + p + "$"
	}
	return strings.Join(parts, "/")
}

// perOperation finds what one operation of a benchmark took in the output of a
// test binary. ok is false when the benchmark is not in it.
func perOperation(out, name string) (took time.Duration, ok bool) {
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if len(words) < 4 || words[3] != "ns/op" {
			continue
		}
		// Behind the name stands the number of processors, when it is not 1.
		procs, ours := strings.CutPrefix(words[0], name)
		if !ours || procs != "" && (procs[0] != '-' || strings.Trim(procs[1:], "0123456789") != "") {
			continue
		}
		if d, err := time.ParseDuration(words[2] + "ns"); err == nil {
			return d, true
		}
	}
	return 0, false
}

// ratioRow is what the base and the work tree took. The base has no values when
// there is no such program or benchmark in it.
type ratioRow struct {
	what   string
	values [2][]time.Duration
}

// ratioTable renders the comparison as Markdown.
func ratioTable(base string, rows []ratioRow) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| | %s, ms | new, ms | new to base |\n| --- | ---: | ---: | ---: |\n", base)
	for _, r := range rows {
		now := timing{runs: r.values[1]}.median()
		was, ratio := "", ""
		if len(r.values[0]) > 0 {
			old := timing{runs: r.values[0]}.median()
			was = fmt.Sprintf("%.3f", figures.Milliseconds(old))
			ratio = fmt.Sprintf("%.2f", float64(now)/float64(old))
		}
		fmt.Fprintf(&b, "| %s | %s | %.3f | %s |\n", r.what, was, figures.Milliseconds(now), ratio)
	}
	return b.String()
}
