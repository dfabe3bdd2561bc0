package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

const (
	// lookEvery is how often the log is looked at for a line.
	lookEvery = 50 * time.Microsecond
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
	log := l.selected.log()
	hook := program{argv: l.hook(), env: l.selected.env(), stdin: l.call.numbered}
	info, err := os.Stat(log)
	if err != nil {
		return fromStart, fromEnd, err
	}
	size := info.Size()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for n := range runs {
		start := time.Now()
		took, err := hook.time(lineRuns + n)
		if err != nil {
			return fromStart, fromEnd, err
		}
		end := start.Add(took)
		for arrived := false; !arrived; {
			info, err := os.Stat(log)
			if err != nil {
				return fromStart, fromEnd, err
			}
			now := time.Now()
			if arrived = info.Size() > size; arrived {
				size = info.Size()
				fromStart.runs = append(fromStart.runs, now.Sub(start))
				fromEnd.runs = append(fromEnd.runs, max(now.Sub(end), 0))
				continue
			}
			if now.Sub(end) > lineTime {
				return fromStart, fromEnd, fmt.Errorf("event %d: no line in the log for %s", n, lineTime)
			}
			select {
			case <-ctx.Done():
				return fromStart, fromEnd, ctx.Err()
			case <-tick.C:
			}
		}
	}
	l.want[log] += runs
	return fromStart, fromEnd, nil
}
