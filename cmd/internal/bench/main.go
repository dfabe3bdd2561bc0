// Command bench times what a hook costs the session: `ways hook sensors` in the
// cases that matter, beside bare programs, which nothing written in their language
// can beat, and beside the hooks that people write as scripts. It prints the
// tables of docs/benchmarks.md.
//
//	bench hook     the product of --bin
//	bench compare  the work tree and the main branch, in ratios
//
// Every program runs once a round, in an order that is drawn anew, so that whatever
// else the machine does falls on all of them. Nothing outside a temporary directory
// is touched.
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
	if len(args) == 0 {
		return errors.New("say what to time: hook or compare")
	}
	switch args[0] {
	case "hook":
		return runHook(ctx, args[1:])
	case "compare":
		return runCompare(ctx, args[1:])
	}
	return fmt.Errorf("%q is nothing to time: hook or compare", args[0])
}

// counts are the flags that both verbs have.
type counts struct{ runs, warmup int }

func (c *counts) add(flags *pflag.FlagSet, runs, warmup int) {
	flags.IntVar(&c.runs, "runs", runs, "timed runs of each program")
	flags.IntVar(&c.warmup, "warmup", warmup, "runs of each program before those")
}

// parse reads the flags; done says that help was asked for, and given.
func parse(flags *pflag.FlagSet, args []string, c counts) (done bool, err error) {
	switch err := flags.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return true, nil
	case err != nil:
		return false, err
	case flags.NArg() > 0:
		return false, fmt.Errorf("%q is one argument too many", flags.Arg(0))
	}
	for _, name := range []string{"runs", "warmup"} {
		if n, err := flags.GetInt(name); err != nil || n < 1 {
			return false, fmt.Errorf("--%s must be at least 1", name)
		}
	}
	return false, nil
}

// inTemp calls do with a temporary directory and removes it afterwards.
func inTemp(do func(dir string) error) (err error) {
	dir, err := os.MkdirTemp("", "ways-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	// The real path: a hook's project is compared as it is spelled.
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	return do(real)
}
