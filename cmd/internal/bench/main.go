// Command bench times what a hook costs the session: `ways hook sensors` in the
// cases that matter, beside bare Go programs, which nothing written in Go can
// beat, and beside the hooks that people write as scripts. It prints the table
// of docs/benchmarks.md. Behind it comes how soon a selected event's line is in
// the rule's log.
//
// Every program runs once a round, so that whatever else the machine does falls
// on all of them. Nothing outside a temporary directory is touched.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/pflag"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	bin := flags.String("bin", "bin", "directory with the built ways and waysctl")
	runs := flags.Int("runs", 200, "timed runs of each program")
	warmup := flags.Int("warmup", 20, "runs of each program before those")
	switch err := flags.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return nil
	case err != nil:
		return err
	case *runs < 1 || *warmup < 1:
		return errors.New("--runs and --warmup must be at least 1")
	}
	binaries, err := filepath.Abs(*bin)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ways-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	l, err := newLab(ctx, dir, binaries)
	if err != nil {
		return err
	}
	timings, measureErr := measure(ctx, l.programs, *warmup, *runs)
	var fromStart, fromEnd timing
	if measureErr == nil {
		fromStart, fromEnd, measureErr = l.arrivals(ctx, *runs)
	}
	// The dispatcher is ended whatever happened: it works below dir.
	delivered, err := l.close(context.WithoutCancel(ctx))
	if err := errors.Join(measureErr, err); err != nil {
		return err
	}
	if want := *warmup + 2**runs; delivered != want {
		return fmt.Errorf("the log of the selected events has %d records, not %d: the timings of a hook that loses records mean nothing", delivered, want)
	}
	fmt.Print(table(timings))
	fmt.Println()
	fmt.Print(arrivalTable(fromStart, fromEnd))
	fmt.Printf("\n%d runs each, the programs interleaved, after %d to warm up. %s. All %d selected events are in the rule's log.\n",
		*runs, *warmup, machine(), delivered)
	return nil
}
