package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"

	"ways/cmd/internal/figures"
)

// runHook is `bench hook`.
func runHook(ctx context.Context, args []string) error {
	flags := pflag.NewFlagSet("bench hook", pflag.ContinueOnError)
	bin := flags.String("bin", "bin", "directory with the built ways and waysctl")
	fixtures := flags.String("fixtures", "testdata/claude-code", "directory of recorded payloads")
	lines := flags.Int("lines", 1000, "selected events whose way to the rule's log is timed behind the table")
	spooled := flags.Int("spooled", 1_000_000, "records in the spool that nobody works off")
	var c counts
	c.add(flags, 200, 20)
	if done, err := parse(flags, args, c); done || err != nil {
		return err
	}
	if *lines < 1 || *spooled < 1 {
		return errors.New("--lines and --spooled must be at least 1")
	}
	binaries, err := filepath.Abs(*bin)
	if err != nil {
		return err
	}
	call, err := readCall(*fixtures)
	if err != nil {
		return err
	}
	return inTemp(func(dir string) error {
		l := &lab{dir: dir, bin: binaries, call: call}
		err := l.furnish(ctx, *spooled)
		var timings []timing
		if err == nil {
			timings, err = measure(ctx, l.programs, c.warmup, c.runs)
		}
		var fromStart, fromEnd timing
		if err == nil {
			fromStart, fromEnd, err = l.arrivals(ctx, *lines)
		}
		var work []timing
		if err == nil {
			work, err = apart(filepath.Join(dir, "apart"), l.selected, call)
		}
		// The dispatchers are ended whatever happened: they work below dir.
		total, closeErr := l.close(context.WithoutCancel(ctx))
		if err := errors.Join(err, closeErr); err != nil {
			return err
		}
		fmt.Print(table(timings))
		for _, note := range l.notes {
			fmt.Printf("\n%s\n", note)
		}
		fmt.Println()
		fmt.Print(arrivalTable(fromStart, fromEnd))
		fmt.Println()
		fmt.Print(workTable(work))
		fmt.Printf("\n%d runs each, the programs interleaved in an order drawn anew each round, after %d to warm up; %d events from hook to line. %s. "+
			"All %d selected events are where they belong.\n", c.runs, c.warmup, *lines, figures.Machine(), total)
		return nil
	})
}
