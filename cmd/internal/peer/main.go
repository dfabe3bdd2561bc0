// Command peer measures ways beside the OpenTelemetry Collector: the same records,
// on the same machine, in the same run, the two in turn. It prints the tables of
// docs/benchmarks.md ("Beside the OpenTelemetry Collector").
//
// Both get a session's records as JSON lines, ways in the session's spool, the
// Collector in a file that it follows or, where a table says so, by OTLP. Both hand
// them to a file, or to one http consumer that runs in a process of its own. What
// arrives is compared with what was handed over, record by record: a throughput
// says nothing where records are missing.
//
// It needs Linux, for what /proc tells of a process, and the Collector that
// .ci/collector builds. Nothing outside a temporary directory is touched.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"ways/cmd/internal/figures"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	bin, collector, configs, payloads, lock, sink string
	records, rounds, lags, kills                  int
	only                                          []string
}

// parts are the tables, in the order in which they are made.
func parts() []string { return []string{"backlog", "rest", "lag", "kills"} }

func parse(args []string) (options, error) {
	var o options
	flags := pflag.NewFlagSet("peer", pflag.ContinueOnError)
	flags.StringVar(&o.bin, "bin", "bin", "directory with the built waysctl")
	flags.StringVar(&o.collector, "collector", ".task/collector", "the built Collector")
	flags.StringVar(&o.configs, "configs", ".ci/collector", "directory with the Collector's configuration files")
	flags.StringVar(&o.payloads, "payloads", "testdata/claude-code", "directory with recorded payloads")
	flags.StringVar(&o.lock, "lock", "", "hold this `FILE`'s lock (flock) while something is measured, on a machine that several people measure on")
	flags.IntVar(&o.records, "records", 20_000, "records of a backlog")
	flags.IntVar(&o.rounds, "rounds", 3, "runs of each side")
	flags.IntVar(&o.lags, "lags", 800, "records that come one by one, 100 a second")
	flags.IntVar(&o.kills, "kills", 10, "runs with a kill -9 of each side")
	flags.StringSliceVar(&o.only, "only", parts(), "the `PARTS` to measure")
	flags.StringVar(&o.sink, "sink", "", "be the http consumer for the records in `FILE`")
	if err := errors.Join(flags.MarkHidden("sink"), flags.Parse(args)); err != nil {
		return o, err
	}
	for _, part := range o.only {
		if !slices.Contains(parts(), part) {
			return o, fmt.Errorf("--only %s: the parts are %s", part, strings.Join(parts(), ", "))
		}
	}
	if o.records < 2 || o.rounds < 1 || o.lags < 1 || o.kills < 1 {
		return o, errors.New("--records must be at least 2, the other numbers at least 1")
	}
	return o, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return nil
	case err != nil:
		return err
	case o.sink != "":
		return serveSink(o.sink, os.Stdin, os.Stdout)
	}
	for _, path := range []*string{&o.bin, &o.collector, &o.configs} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	for _, path := range []string{filepath.Join(o.bin, "waysctl"), o.collector} {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%w (go tool task bench:collector builds it)", err)
		}
	}
	dir, err := os.MkdirTemp("", "ways-peer-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l := &lab{dir: dir, bin: o.bin, collector: o.collector, configs: o.configs, lines: filepath.Join(dir, "records.jsonl"), lock: o.lock}
	most := max(o.records, o.lags+1, killRecords)
	if l.stream, err = newStream(o.payloads, l.project(), most); err != nil {
		return err
	}
	if err := os.WriteFile(l.lines, l.stream.text(1, most), 0o600); err != nil {
		return err
	}
	return l.measure(ctx, o)
}

const (
	// lagEvery and killEvery are between two records that come one by one.
	lagEvery  = 10 * time.Millisecond
	killEvery = 2 * time.Millisecond
	// killRecords come in a run with a kill.
	killRecords = 2000
	// holdTime is how long others who wait for the lock may have to.
	holdTime = 70 * time.Second
	// seed makes the kills come at the same records in each run.
	seed = 8
)

// measure makes the tables and prints each when it is whole.
func (l *lab) measure(ctx context.Context, o options) error {
	least, middle, most, mean := l.stream.sizes()
	fmt.Printf("%s. Records of %d to %d bytes, median %d, mean %d.\n", figures.Machine(), least, most, middle, mean)
	lives := map[string][]started{}
	for _, part := range parts() {
		if !slices.Contains(o.only, part) {
			continue
		}
		var text string
		var err error
		switch part {
		case "backlog":
			text, err = l.measureBacklog(ctx, o, lives)
		case "rest":
			text, err = l.measureRest(ctx, o, lives)
		case "lag":
			text, err = l.measureLag(ctx, o)
		case "kills":
			text, err = l.measureKills(ctx, o)
		}
		if err != nil {
			return err
		}
		fmt.Printf("\n%s\n%s", caption(part, o), text)
	}
	return nil
}

// caption says what a table is of.
func caption(part string, o options) string {
	switch part {
	case "backlog":
		return fmt.Sprintf("A backlog of %s records, median of %d runs each, the sides in turn:\n", figures.Thousands(float64(o.records)), o.rounds)
	case "rest":
		return fmt.Sprintf("Starting, and doing nothing, median of %d runs each, the sides in turn:\n", o.rounds)
	case "lag":
		return fmt.Sprintf("From before the append to the arrival, %d records a run, 100 a second, %d runs each, the sides in turn:\n", o.lags, o.rounds)
	}
	return fmt.Sprintf("%s records, %.0f a second, and one kill -9 somewhere in the middle half, the process started again at once:\n",
		figures.Thousands(killRecords), float64(time.Second/killEvery))
}

// inTurn measures every side once a round, as many together as it is told, under a
// lock as in take, which is given back at a round's end, and within one when it was
// held for holdTime.
func inTurn[T any](l *lab, what string, sides []side, rounds, together, how int, measure func(side) (T, error)) (map[string][]T, error) {
	results := map[string][]T{}
	for round := range rounds {
		release, err := l.take(how)
		if err != nil {
			return nil, err
		}
		taken := time.Now()
		for some := range slices.Chunk(sides, together) {
			if time.Since(taken) > holdTime {
				release()
				if release, err = l.take(how); err != nil {
					return nil, err
				}
				taken = time.Now()
			}
			found, failed := make([]T, len(some)), make([]error, len(some))
			var wg sync.WaitGroup
			for i, s := range some {
				wg.Go(func() { found[i], failed[i] = measure(s) })
			}
			wg.Wait()
			for i, s := range some {
				if failed[i] != nil {
					release()
					return nil, fmt.Errorf("%s, %s, round %d: %w", what, s.what(), round+1, failed[i])
				}
				results[s.what()] = append(results[s.what()], found[i])
				fmt.Fprintf(os.Stderr, "%s, round %d of %d, %s\n", what, round+1, rounds, s.what())
			}
		}
		release()
	}
	return results, nil
}

func (l *lab) measureStarts(ctx context.Context, o options, sides []side, lives map[string][]started) error {
	found, err := inTurn(l, "start", sides, o.rounds, 1, syscall.LOCK_EX, func(s side) (started, error) { return l.startUp(ctx, s) })
	for name, list := range found {
		lives[name] = list
	}
	return err
}

func (l *lab) measureBacklog(ctx context.Context, o options, lives map[string][]started) (string, error) {
	sides := throughputSides()
	if err := l.measureStarts(ctx, o, sides, lives); err != nil {
		return "", err
	}
	rounds, err := inTurn(l, "backlog", sides, o.rounds, 1, syscall.LOCK_EX, func(s side) (worked, error) { return l.backlog(ctx, s, o.records) })
	return workedTable(sides, o.records, rounds, lives), err
}

func (l *lab) measureRest(ctx context.Context, o options, lives map[string][]started) (string, error) {
	sides := restSides()
	if err := l.measureStarts(ctx, o, sides, lives); err != nil {
		return "", err
	}
	// A life's own processor time and memory, whatever others do.
	idle, err := inTurn(l, "idle", sides, o.rounds, 1, syscall.LOCK_UN, func(s side) (idled, error) { return l.idle(ctx, s) })
	if err != nil {
		return "", err
	}
	size := map[bool]int64{}
	for ways, path := range map[bool]string{true: filepath.Join(l.bin, "waysctl"), false: l.collector} {
		info, err := os.Stat(path)
		if err != nil {
			return "", err
		}
		size[ways] = info.Size()
	}
	return restTable(sides, lives, idle, func(s side) int64 { return size[s.ways()] }), nil
}

func (l *lab) measureLag(ctx context.Context, o options) (string, error) {
	sides := lagSides()
	rounds, err := inTurn(l, "lag", sides, o.rounds, 1, syscall.LOCK_EX, func(s side) (lagged, error) { return l.lag(ctx, s, o.lags, lagEvery) })
	return lagTable(sides, rounds), err
}

func (l *lab) measureKills(ctx context.Context, o options) (string, error) {
	sides := killSides()
	random := map[string]*rand.Rand{}
	for i, s := range sides {
		random[s.what()] = rand.New(rand.NewPCG(seed, uint64(i)))
	}
	// No times are taken here, so three run at once.
	runs, err := inTurn(l, "kill", sides, o.kills, 3, syscall.LOCK_SH, func(s side) (verdict, error) {
		at := killRecords/4 + random[s.what()].IntN(killRecords/2)
		return l.killed(ctx, s, killRecords, killEvery, at)
	})
	return killTable(sides, runs), err
}
