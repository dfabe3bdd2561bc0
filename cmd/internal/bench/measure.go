package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"ways/cmd/internal/figures"
)

// program is one row: what is run, over and over.
type program struct {
	name string
	argv []string
	env  []string
	// stdin returns what the n-th run reads; nil for none. No two runs of a hook
	// get the same event, since the second would be dropped as a duplicate.
	stdin func(n int) []byte
	// after, untimed, ends what the n-th run began: it waits until the record is
	// delivered, so that no program is timed while a dispatcher works.
	after func(ctx context.Context, n int) error
}

// timing is what one program took, a duration a run.
type timing struct {
	name string
	runs []time.Duration
}

func (t timing) percentile(p float64) time.Duration { return figures.Percentile(t.runs, p) }

func (t timing) median() time.Duration { return t.percentile(0.5) }

// measure runs every program warmup times untimed and then runs times, one of
// each a round, in an order drawn for the round: a program that is always run
// behind the same one would always meet what that one left in the caches. A run
// that exits with anything but 0 ends it.
func measure(ctx context.Context, programs []program, warmup, runs int) ([]timing, error) {
	timings := make([]timing, len(programs))
	for i, p := range programs {
		timings[i].name = p.name
	}
	order := rand.New(rand.NewPCG(1, 2)) // the same in every measurement
	for n := range warmup + runs {
		for _, i := range order.Perm(len(programs)) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			p := programs[i]
			took, err := p.time(n)
			if err == nil && p.after != nil {
				err = p.after(ctx, n)
			}
			if err != nil {
				return nil, fmt.Errorf("%s, run %d: %w", p.name, n, err)
			}
			if n >= warmup {
				timings[i].runs = append(timings[i].runs, took)
			}
		}
	}
	return timings, nil
}

// pipeHolds is what goes into an empty pipe without a reader, on every system.
const pipeHolds = 16 << 10

// time runs the program once, from before its start to after its end. Its stdin
// is a pipe that already holds the payload and is closed behind it; a payload that
// is too long for that is written as the program reads. What it prints goes to the
// null device.
func (p program) time(n int) (time.Duration, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	stdin := null
	feed := func() error { return nil }
	if p.stdin != nil {
		r, w, err := os.Pipe()
		if err != nil {
			return 0, err
		}
		defer r.Close()
		defer w.Close() // also closed in feed, where it matters when
		payload := p.stdin(n)
		feed = func() error {
			_, err := w.Write(payload)
			if closeErr := w.Close(); err == nil {
				err = closeErr
			}
			return err
		}
		if len(payload) <= pipeHolds {
			if err := feed(); err != nil {
				return 0, err
			}
			feed = func() error { return nil }
		}
		stdin = r
	}
	// os.StartProcess and not os/exec, whose goroutines would be timed too.
	start := time.Now()
	process, err := os.StartProcess(p.argv[0], p.argv, &os.ProcAttr{Env: p.env, Files: []*os.File{stdin, null, null}})
	if err != nil {
		return 0, err
	}
	fed := feed()
	state, err := process.Wait()
	took := time.Since(start)
	switch {
	case err != nil:
		return 0, err
	case !state.Success():
		return 0, fmt.Errorf("%s: %v", p.argv[0], state)
	case fed != nil:
		return 0, fmt.Errorf("%s did not take its input: %w", p.argv[0], fed)
	}
	return took, nil
}
