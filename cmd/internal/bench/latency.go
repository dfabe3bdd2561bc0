package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

const (
	// lookEvery is how often the log is looked at for a line.
	lookEvery = 50 * time.Microsecond
	// lineTime bounds the wait for one.
	lineTime = 10 * time.Second
	// lineRuns is added to the number of a run, so that no event is the same as one
	// that was timed before.
	lineRuns = 1_000_000_000
)

// arrivals fires runs selected events, one after another, each when the line of
// the one before is there. It returns how long each took from the hook's start
// to its line in the rule's log, and from the hook's end: nothing, for a line
// that was there first.
func (l *lab) arrivals(ctx context.Context, runs int) (fromStart, fromEnd timing, err error) {
	fromStart.name, fromEnd.name = "from the hook's start to the line", "from the hook's end to the line"
	hook := program{argv: []string{l.ways, "hook", "sensors"}, env: l.selected.env(), stdin: toolCall}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	size, err := l.settled(ctx)
	for n := 0; n < runs && err == nil; n++ {
		start := time.Now()
		var took time.Duration
		if took, err = hook.time(lineRuns + n); err != nil {
			break
		}
		end := start.Add(took)
		for {
			var info os.FileInfo
			if info, err = os.Stat(l.selected.log()); err != nil {
				break
			}
			now := time.Now()
			if info.Size() > size {
				size = info.Size()
				fromStart.runs = append(fromStart.runs, now.Sub(start))
				fromEnd.runs = append(fromEnd.runs, max(now.Sub(end), 0))
				break
			}
			if now.Sub(end) > lineTime {
				err = fmt.Errorf("event %d: no line in the log for %s", n, lineTime)
				break
			}
			select {
			case <-ctx.Done():
				return fromStart, fromEnd, ctx.Err()
			case <-tick.C:
			}
		}
	}
	return fromStart, fromEnd, err
}

// settled waits until the log stops growing, and returns its size.
func (l *lab) settled(ctx context.Context) (int64, error) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	last := int64(-1)
	for {
		info, err := os.Stat(l.selected.log())
		switch {
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return 0, err
		case err == nil && info.Size() == last:
			return last, nil
		case err == nil:
			last = info.Size()
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-tick.C:
		}
	}
}

// arrivalTable renders arrivals as Markdown.
func arrivalTable(timings ...timing) string {
	var b strings.Builder
	b.WriteString("| one async rule at a file | median, ms | p99, ms |\n| --- | ---: | ---: |\n")
	for _, t := range timings {
		fmt.Fprintf(&b, "| %s | %.2f | %.2f |\n", t.name, milliseconds(t.percentile(0.5)), milliseconds(t.percentile(0.99)))
	}
	return b.String()
}
