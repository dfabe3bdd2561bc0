package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i) // 100 down to 1
	}
	tests := []struct {
		name string
		runs []time.Duration
		p    float64
		want time.Duration
	}{
		{"one run", []time.Duration{7}, 0.99, 7},
		{"the median of two is the lower", []time.Duration{9, 3}, 0.5, 3},
		{"the median of three", []time.Duration{9, 1, 3}, 0.5, 3},
		{"the median of a hundred", hundred, 0.5, 50},
		{"p99 of a hundred", hundred, 0.99, 99},
		{"all of a hundred", hundred, 1, 100},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := (timing{runs: tt.runs}).percentile(tt.p); got != tt.want {
				t.Errorf("percentile(%v) = %d, want %d", tt.p, got, tt.want)
			}
		})
	}
}

func TestTable(t *testing.T) {
	got := table([]timing{
		{"C", ms(0.5)}, {bareRow, ms(1)}, {"hello", ms(1.1)}, {versionRow, ms(1.5)}, {"hook", ms(2)}, {"quick", ms(1.25)},
	})
	want := "| program | median, ms | p99, ms | to bare Go | over `ways --version`, ms |\n" +
		"| --- | ---: | ---: | ---: | ---: |\n" +
		"| C | 0.50 | 0.50 | 0.50 |  |\n" +
		"| Go, `func main() {}` | 1.00 | 1.00 | 1.00 |  |\n" +
		"| hello | 1.10 | 1.10 | 1.10 |  |\n" +
		"| `ways --version` | 1.50 | 1.50 | 1.50 |  |\n" +
		"| hook | 2.00 | 2.00 | 2.00 | +0.50 |\n" +
		"| quick | 1.25 | 1.25 | 1.25 | -0.25 |\n"
	if got != want {
		t.Errorf("table:\n%swant\n%s", got, want)
	}
}

func ms(n ...float64) []time.Duration {
	var list []time.Duration
	for _, m := range n {
		list = append(list, time.Duration(m*float64(time.Millisecond)))
	}
	return list
}

// TestMeasure runs real programs: each once a round, with the payload of its run,
// also one that no pipe holds, and each followed by what it is to be followed by.
func TestMeasure(t *testing.T) {
	dir := t.TempDir()
	sizes := map[string]int{"a": 1, "b": pipeHolds, "c": megabyte}
	var after []string
	var programs []program
	for _, name := range []string{"a", "b", "c"} {
		programs = append(programs, program{
			name: name, argv: []string{"/bin/sh", "-c", `cat >> "$0"`, filepath.Join(dir, name)}, env: []string{"PATH=" + os.Getenv("PATH")},
			stdin: func(n int) []byte { return bytes.Repeat([]byte{byte('0' + n)}, sizes[name]) },
			after: func(_ context.Context, n int) error {
				after = append(after, name+strconv.Itoa(n))
				return nil
			},
		})
	}
	timings, err := measure(t.Context(), programs, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range programs {
		text, err := os.ReadFile(filepath.Join(dir, p.name))
		if err != nil {
			t.Fatal(err)
		}
		want := slices.Concat(p.stdin(0), p.stdin(1), p.stdin(2))
		if !bytes.Equal(text, want) {
			t.Errorf("%s was given %d bytes, want %d: 0s, 1s and 2s", p.name, len(text), len(want))
		}
		if got := timings[i]; got.name != p.name || len(got.runs) != 2 || slices.Min(got.runs) <= 0 {
			t.Errorf("timing %d is %+v, want two runs of %s", i, got, p.name)
		}
	}
	for n := range 3 {
		round := slices.Sorted(slices.Values(after[3*n : 3*n+3]))
		digit := strconv.Itoa(n)
		if want := []string{"a" + digit, "b" + digit, "c" + digit}; !slices.Equal(round, want) {
			t.Errorf("round %d ran %v, want %v in some order", n, round, want)
		}
	}
}

func TestMeasureStops(t *testing.T) {
	failing := program{name: "failing", argv: []string{"/bin/sh", "-c", "exit 3"}}
	if _, err := measure(t.Context(), []program{failing}, 0, 1); err == nil || !strings.Contains(err.Error(), "failing, run 0: /bin/sh: exit status 3") {
		t.Errorf("measure of a program that exits 3: %v", err)
	}
	missing := program{name: "missing", argv: []string{filepath.Join(t.TempDir(), "none")}}
	if _, err := measure(t.Context(), []program{missing}, 0, 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("measure of a program that is not there: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := measure(ctx, []program{failing}, 0, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("measure under a cancelled context: %v", err)
	}
}

func TestNewHome(t *testing.T) {
	root := t.TempDir()
	h, err := newHome(root, sensorFiles, "tool_call")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, ".config", "agent-ways", "sensors", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	selecting := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("sections: [tool_call]")) {
			selecting++
		}
	}
	if len(files) != sensorFiles || selecting != 1 {
		t.Errorf("%d sensor files of which %d select, want %d and 1", len(files), selecting, sensorFiles)
	}
	for _, variable := range h.env() {
		if strings.HasPrefix(variable, "XDG_") {
			t.Errorf("the home's environment has %s, which could lead out of it", variable)
		}
	}
}

func TestPayloads(t *testing.T) {
	c, err := readCall("../../../testdata/claude-code")
	if err != nil {
		t.Fatal(err)
	}
	type fields struct {
		Session    string `json:"session_id"`
		Event      string `json:"hook_event_name"`
		Transcript string `json:"transcript_path"`
		ID         string `json:"tool_use_id"`
	}
	for _, row := range []struct {
		name  string
		raw   []byte
		want  fields
		small bool
	}{
		{"plain", c.numbered(1), fields{session, "PreToolUse", "/nonexistent/transcript.jsonl", "toolu_000000000000000000000001"}, true},
		{"another", c.numbered(2), fields{session, "PreToolUse", "/nonexistent/transcript.jsonl", "toolu_000000000000000000000002"}, true},
		{"of a session", c.in("other", 1), fields{"other", "PreToolUse", "/nonexistent/transcript.jsonl", "toolu_000000000000000000000001"}, true},
		{"with a transcript", c.naming("/t.jsonl")(1), fields{session, "PreToolUse", "/t.jsonl", "toolu_000000000000000000000001"}, true},
		{"large", c.large(1), fields{session, "PreToolUse", "/nonexistent/transcript.jsonl", "toolu_000000000000000000000001"}, false},
		{"the end", sessionEnd("other"), fields{"other", "SessionEnd", "/nonexistent/transcript.jsonl", ""}, true},
	} {
		var got fields
		if err := json.Unmarshal(row.raw, &got); err != nil || got != row.want {
			t.Errorf("%s: %+v, %v; want %+v", row.name, got, err, row.want)
		}
		if small := len(row.raw) <= pipeHolds; small != row.small || !small && (len(row.raw) < megabyte || len(row.raw) > megabyte+4096) {
			t.Errorf("%s: %d bytes", row.name, len(row.raw))
		}
	}
}

func TestRunRefuses(t *testing.T) {
	fixtures := "--fixtures=../../../testdata/claude-code"
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"nothing", nil, "hook or compare"},
		{"an unknown verb", []string{"hok"}, "hook or compare"},
		{"no binaries", []string{"hook", fixtures, "--bin", t.TempDir()}, "go tool task build"},
		{"no payloads", []string{"hook", "--fixtures", t.TempDir()}, "--fixtures"},
		{"no runs", []string{"hook", "--runs", "0"}, "--runs must be at least 1"},
		{"no warm-up", []string{"hook", "--warmup", "0"}, "--warmup must be at least 1"},
		{"no lines", []string{"hook", "--lines", "0"}, "at least 1"},
		{"an unknown flag", []string{"hook", "--rnus", "3"}, "unknown flag"},
		{"an argument", []string{"hook", "3"}, "one argument too many"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := run(t.Context(), tt.args); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("run(%v) = %v, want an error that says %q", tt.args, err, tt.want)
			}
		})
	}
}

func TestArrivalTable(t *testing.T) {
	got := arrivalTable(timing{"from a", ms(3, 1, 2)}, timing{"from b", ms(0)})
	want := "| one async rule at a file | median, ms | p99, ms | p99.9, ms |\n| --- | ---: | ---: | ---: |\n" +
		"| from a | 2.00 | 3.00 | 3.00 |\n| from b | 0.00 | 0.00 | 0.00 |\n"
	if got != want {
		t.Errorf("table:\n%swant\n%s", got, want)
	}
}

// TestTail counts lines as they come, each once.
func TestTail(t *testing.T) {
	log := &tail{path: filepath.Join(t.TempDir(), "log")}
	for _, step := range []struct {
		add  string
		want int
	}{{"", 0}, {"one\n", 1}, {"", 1}, {"two\nthr", 2}, {"ee\n", 3}, {strings.Repeat("x\n", 300<<10), 3 + 300<<10}} {
		if step.add != "" {
			f, err := os.OpenFile(log.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString(step.add); err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
		if got, err := log.count(); err != nil || got != step.want {
			t.Errorf("%d lines, %v; want %d", got, err, step.want)
		}
	}
}

// TestHeld: what lies in the spool is counted, and a record that is missing is
// noticed.
func TestHeld(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sessions", "s")
	if err := fillSpool(dir, 25_000, 7); err != nil {
		t.Fatal(err)
	}
	if err := checkSpool(dir, 25_000); err != nil {
		t.Error(err)
	}
	if err := checkSpool(dir, 25_001); err == nil || !strings.Contains(err.Error(), "record 25001 of 25001") {
		t.Errorf("one more than there are: %v", err)
	}
}
