// Command load measures the dispatcher: what it passes on in a second of one
// core's time, what it costs while nothing happens, how soon a record is with its
// consumer, and a hundred of them at once. It prints the tables of
// docs/benchmarks.md.
//
// What is measured is the built waysctl, and the built ways where hooks fire, in
// homes below a temporary directory; nothing outside it is touched. A row whose
// records did not all arrive, once each, ends the command with an error.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"ways/cmd/internal/figures"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == discardRole {
		if err := discard(ctx, os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "load:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// part is one group of tables.
type part struct {
	name string
	run  func(ctx context.Context, l *lab, out io.Writer) error
}

// parts are in the order in which they are printed.
func parts() []part {
	return []part{
		{"targets", targets},
		{"rules", rules},
		{"idle", idle},
		{"lag", lag},
		{"sessions", sessions},
		{"calls", calls},
		{"team", func(_ context.Context, _ *lab, out io.Writer) error {
			_, err := io.WriteString(out, Thousand().Table())
			return err
		}},
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	flags := pflag.NewFlagSet("load", pflag.ContinueOnError)
	bin := flags.String("bin", "bin", "directory with the built ways and waysctl")
	only := flags.StringSlice("only", names, "which `PARTS` to measure: "+strings.Join(names, ", "))
	share := flags.Float64("share", 1, "how much of the usual number of records to use; below 1 for a quick look")
	switch err := flags.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return nil
	case err != nil:
		return err
	case *share <= 0:
		return errors.New("--share must be above 0")
	}
	for _, name := range *only {
		if !slices.Contains(names, name) {
			return fmt.Errorf("--only: no part is called %q; there are %s", name, strings.Join(names, ", "))
		}
	}
	dir, err := os.MkdirTemp("", "load-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// A path free of symlinks, as the targets will see it.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	l, err := newLab(dir, *bin, *share)
	if err != nil {
		return err
	}
	defer l.close()
	for _, p := range parts() {
		if !slices.Contains(*only, p.name) {
			continue
		}
		if err := p.run(ctx, l, out); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out, figures.Machine()+".")
	return nil
}
