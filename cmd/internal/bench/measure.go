package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"time"
)

// timing is what one program took, a duration a run.
type timing struct {
	name string
	runs []time.Duration
}

// percentile is the smallest run that at least p of all runs do not exceed
// (nearest rank); p is above 0 and at most 1.
func (t timing) percentile(p float64) time.Duration {
	sorted := slices.Sorted(slices.Values(t.runs))
	return sorted[int(math.Ceil(p*float64(len(sorted))))-1]
}

// measure runs every program warmup times untimed and then runs times, one of
// each in turn. A run that exits with anything but 0 ends it.
func measure(ctx context.Context, programs []program, warmup, runs int) ([]timing, error) {
	timings := make([]timing, len(programs))
	for n := range warmup + runs {
		for i, p := range programs {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			took, err := p.time(n)
			if err != nil {
				return nil, fmt.Errorf("%s, run %d: %w", p.name, n, err)
			}
			timings[i].name = p.name
			if n >= warmup {
				timings[i].runs = append(timings[i].runs, took)
			}
		}
	}
	return timings, nil
}

// time runs the program once, from before its start to after its end. Its stdin
// is a pipe that already holds the payload and is closed behind it; a payload
// must fit a pipe (64 KiB). What it prints goes to the null device.
func (p program) time(n int) (time.Duration, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	stdin := null
	if p.stdin != nil {
		r, w, err := os.Pipe()
		if err != nil {
			return 0, err
		}
		defer r.Close()
		_, err = w.Write(p.stdin(n))
		if closeErr := w.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return 0, err
		}
		stdin = r
	}
	// os.StartProcess and not os/exec, whose goroutines would be timed too.
	start := time.Now()
	process, err := os.StartProcess(p.argv[0], p.argv, &os.ProcAttr{Env: p.env, Files: []*os.File{stdin, null, null}})
	if err != nil {
		return 0, err
	}
	state, err := process.Wait()
	took := time.Since(start)
	if err != nil {
		return 0, err
	}
	if !state.Success() {
		return 0, fmt.Errorf("%s: %v", p.argv[0], state)
	}
	return took, nil
}
