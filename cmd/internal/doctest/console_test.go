package doctest

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestConsole runs what the pages show.
func TestConsole(t *testing.T) {
	for _, p := range pages(t) {
		if !slices.ContainsFunc(p.blocks, func(b block) bool { return b.lang == "console" }) {
			continue
		}
		t.Run(filepath.Base(p.path), func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			var edits []edit
			for _, s := range p.steps(t) {
				got := h.run(t, s.command)
				if matches(s.output, got) {
					continue
				}
				t.Errorf("%s:%d: $ %s\ngot:\n%s\nthe page shows:\n%s", p.path, s.line+1, s.command,
					strings.Join(got, "\n"), strings.Join(s.output, "\n"))
				edits = append(edits, edit{s.from, s.to, got})
			}
			h.validateLogs(t)
			if flag.Lookup(updateFlag).Value.String() == "true" {
				p.apply(t, edits)
			}
		})
	}
}

// validateLogs checks every record that the page's rules wrote.
func (h home) validateLogs(t *testing.T) {
	t.Helper()
	schema := recordSchema(t)
	logs, err := filepath.Glob(filepath.Join(h.dir, "ways-audit", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range logs {
		f, err := os.Open(log)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for d := json.NewDecoder(f); d.More(); {
			var r any
			if err := d.Decode(&r); err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(r); err != nil {
				t.Errorf("%v\n%v", r, err)
			}
		}
	}
}

// step is one command of a page, and lines[from:to], the output shown for it.
type step struct {
	command        string
	output         []string
	line, from, to int
}

func (p page) steps(t *testing.T) []step {
	t.Helper()
	var steps []step
	for _, b := range p.blocks {
		if b.lang != "console" {
			continue
		}
		for i := b.from; i < b.to; {
			command, ok := strings.CutPrefix(p.lines[i], "$ ")
			if !ok {
				t.Fatalf("%s:%d: output without a command", p.path, i+1)
			}
			s := step{command: command, line: i}
			for i++; i < b.to && strings.HasPrefix(p.lines[i], "> "); i++ {
				s.command += "\n" + p.lines[i][2:]
			}
			for s.from = i; i < b.to && !strings.HasPrefix(p.lines[i], "$ "); i++ {
			}
			s.to = i
			s.output = p.lines[s.from:s.to]
			steps = append(steps, s)
		}
	}
	return steps
}

// edit puts other lines in place of lines[from:to].
type edit struct {
	from, to int
	lines    []string
}

func (p page) apply(t *testing.T, edits []edit) {
	t.Helper()
	lines := slices.Clone(p.lines)
	for _, e := range slices.Backward(edits) {
		lines = slices.Replace(lines, e.from, e.to, e.lines...)
	}
	if err := os.WriteFile(p.file(), []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// home is a reader's home directory with ways installed.
type home struct{ dir, bin string }

// shownHome stands on the pages for the home directory.
const shownHome = "/home/you"

func newHome(t *testing.T) home {
	t.Helper()
	// Resolved, since the binaries name themselves by their resolved path.
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := home{dir: dir, bin: filepath.Join(dir, ".local", "bin")}
	if err := os.MkdirAll(h.bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ways", "waysctl"} {
		if err := os.Link(filepath.Join(os.Getenv(binDirEnv), name), filepath.Join(h.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// run runs a command line and returns what it printed, with the home directory
// as a reader would see his.
func (h home) run(t *testing.T, line string) []string {
	t.Helper()
	programs := os.Getenv(binDirEnv)
	// What the task does, but for the build, which is done.
	line = strings.ReplaceAll(line, "go tool task demo", "demo --bin "+h.bin)
	// Sensor files that a group may write are refused.
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "umask 022\n"+line)
	cmd.Dir = root
	cmd.Env = []string{
		"HOME=" + h.dir, "PATH=" + h.bin + ":" + programs + ":/usr/local/bin:/usr/bin:/bin",
		"LANG=C.UTF-8", "TZ=UTC", "WAYS_DISPATCHER_IDLE=300ms",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("$ %s\n%v\n%s", line, err, out)
	}
	h.settle(t)
	text := strings.ReplaceAll(strings.TrimRight(string(out), "\n"), h.dir, shownHome)
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// settle returns when no dispatcher of this home is left: all is delivered and
// counted then.
func (h home) settle(t *testing.T) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	for {
		list, err := exec.CommandContext(t.Context(), "ps", "-axww", "-o", "command=").Output()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(list), filepath.Join(h.bin, "waysctl")+" ") {
			return
		}
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatal("a dispatcher does not leave")
		}
	}
}

// matches compares output, but for times, process ids and hashes. A line of three
// dots in want stands for any lines.
func matches(want, got []string) bool {
	want, got = normal(want), normal(got)
	for len(want) > 0 {
		if want[0] == "..." {
			for n := range len(got) + 1 {
				if matches(want[1:], got[n:]) {
					return true
				}
			}
			return false
		}
		if len(got) == 0 || got[0] != want[0] {
			return false
		}
		want, got = want[1:], got[1:]
	}
	return len(got) == 0
}

func normal(lines []string) []string {
	var out []string
	for _, r := range lines {
		for _, v := range []struct{ pattern, to string }{
			{`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?`, "TIME"},
			{`\d\d:\d\d:\d\d\.\d{3}`, "TIME"},
			{`[0-9.]+m?s in all`, "DURATION in all"},
			{`("?pid"?:?|dispatcher) \d+`, "$1 PID"},
			{`[0-9a-f]{64}|[0-9a-f]{32}`, "HASH"},
		} {
			r = regexp.MustCompile(v.pattern).ReplaceAllString(r, v.to)
		}
		out = append(out, strings.TrimRight(r, " "))
	}
	return out
}

// The comparison is neither blind nor too sharp.
func TestMatches(t *testing.T) {
	split := func(s string) []string { return strings.Split(s, "|") }
	for _, c := range []struct {
		want, got string
		ok        bool
	}{
		{"a|b", "a|b", true},
		{"a|b", "a|c", false},
		{"a", "a|b", false},
		{"a|b", "a", false},
		{"...", "a|b", true},
		{"a|...|d", "a|b|c|d", true},
		{"a|...|d", "a|d", true},
		{"a|...|d", "a|b|c", false},
		{"a|...|b|...|c", "a|x|b|y|c", true},
		{"a|...|b|...|c", "a|x|y|c", false},
		{"since 2026-01-02 03:04:05", "since 2027-11-12 13:14:15", true},
		{`"ts":"2026-01-02T03:04:05.123456789Z"`, `"ts":"2027-11-12T13:14:15.000000000Z"`, true},
		{`"ts":"2026-01-02T03:04:05Z"`, `"ts":"TODAY"`, false},
		{"20 events, 85ms in all", "20 events, 1.2s in all", true},
		{"20 events, 85ms in all", "21 events, 85ms in all", false},
		{"timeout 5s", "timeout 6s", false},
	} {
		if got := matches(split(c.want), split(c.got)); got != c.ok {
			t.Errorf("%q against %q: %v, want %v", c.want, c.got, got, c.ok)
		}
	}
}
