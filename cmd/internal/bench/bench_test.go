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
	ms := func(n float64) []time.Duration { return []time.Duration{time.Duration(n * float64(time.Millisecond))} }
	got := table([]timing{{"bare", ms(1)}, {"hello", ms(1.1)}, {"version", ms(1.5)}, {"hook", ms(2)}, {"quick", ms(1.25)}})
	want := "| program | median, ms | p99, ms | to bare Go | over `ways --version`, ms |\n" +
		"| --- | ---: | ---: | ---: | ---: |\n" +
		"| bare | 1.00 | 1.00 | 1.00 |  |\n" +
		"| hello | 1.10 | 1.10 | 1.10 |  |\n" +
		"| version | 1.50 | 1.50 | 1.50 |  |\n" +
		"| hook | 2.00 | 2.00 | 2.00 | +0.50 |\n" +
		"| quick | 1.25 | 1.25 | 1.25 | -0.25 |\n"
	if got != want {
		t.Errorf("table:\n%swant\n%s", got, want)
	}
}

// TestMeasure runs real programs: in turn, each with the payload of its run.
func TestMeasure(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	shell := func(name string) program {
		return program{
			name: name, argv: []string{"/bin/sh", "-c", `cat >> "$0"`, log}, env: []string{"PATH=" + os.Getenv("PATH")},
			stdin: func(n int) []byte { return []byte(name + strconv.Itoa(n) + " ") },
		}
	}
	timings, err := measure(t.Context(), []program{shell("a"), shell("b")}, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(text), "a0 b0 a1 b1 a2 b2 "; got != want {
		t.Errorf("the programs ran as %q, want %q", got, want)
	}
	for i, name := range []string{"a", "b"} {
		if got := timings[i]; got.name != name || len(got.runs) != 2 || slices.Min(got.runs) <= 0 {
			t.Errorf("timing %d is %+v, want two runs of %s", i, got, name)
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
	for _, payload := range [][]byte{toolCall(1), toolCall(2), sessionEnd(1)} {
		if !json.Valid(payload) {
			t.Errorf("not JSON: %s", payload)
		}
	}
	if bytes.Equal(toolCall(1), toolCall(2)) {
		t.Error("two tool calls are the same event")
	}
}

func TestRunRefuses(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"no binaries", []string{"--bin", t.TempDir()}, "go tool task build"},
		{"no runs", []string{"--runs", "0"}, "at least 1"},
		{"an unknown flag", []string{"--rnus", "3"}, "unknown flag"},
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
	ms := func(n ...float64) []time.Duration {
		var list []time.Duration
		for _, m := range n {
			list = append(list, time.Duration(m*float64(time.Millisecond)))
		}
		return list
	}
	got := arrivalTable(timing{"from a", ms(3, 1, 2)}, timing{"from b", ms(0)})
	want := "| one async rule at a file | median, ms | p99, ms |\n| --- | ---: | ---: |\n| from a | 2.00 | 3.00 |\n| from b | 0.00 | 0.00 |\n"
	if got != want {
		t.Errorf("table:\n%swant\n%s", got, want)
	}
}
