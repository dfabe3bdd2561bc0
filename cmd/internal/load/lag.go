package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"ways/cmd/internal/figures"
)

// lag prints how soon a record is with its consumer, counted from the hook's end.
func lag(ctx context.Context, l *lab, out io.Writer) error {
	fmt.Fprintln(out, "| from a hook's end to its record | events | p50, ms | p99, ms | p99.9, ms | there before the hook had ended | processor time of an event, ms: hook, dispatcher |")
	fmt.Fprintln(out, "| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, row := range []struct {
		name   string
		events int
		// gap is between two events' starts; 0 for none.
		gap time.Duration
		// at once is how many hooks run at once.
		atOnce int
	}{
		{"one every 10 ms", 2500, 10 * time.Millisecond, 1},
		{"as fast as one hook follows another", 3000, 0, 1},
		{"four hooks at once, without a pause", 4000, 0, 4},
	} {
		n := l.some(row.events)
		got, err := l.lags(ctx, n, row.gap, row.atOnce)
		if err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
		for _, to := range []struct {
			name string
			lags []time.Duration
		}{{"in a file", got.inFile}, {"over http", got.overHTTP}} {
			first := 0
			for _, d := range to.lags {
				if d <= 0 {
					first++
				}
			}
			fmt.Fprintf(out, "| %s, %s | %s | %.2f | %.2f | %.2f | %.0f %% | %.2f, %.2f |\n", to.name, row.name, figures.Thousands(float64(n)),
				percentile(to.lags, 0.5), percentile(to.lags, 0.99), percentile(to.lags, 0.999), 100*float64(first)/float64(len(to.lags)),
				float64(got.hooks)/float64(n)/1e6, float64(got.dispatcher)/float64(n)/1e6)
		}
	}
	return nil
}

// percentile is figures.Percentile in milliseconds, and 0 for what is below 0.
func percentile(list []time.Duration, p float64) float64 {
	return max(0, figures.Milliseconds(figures.Percentile(list, p)))
}

// lags are how long after its hook's end each event was in the file, and over http,
// and how much processor time all of them took.
type lags struct {
	inFile, overHTTP  []time.Duration
	hooks, dispatcher time.Duration
}

// lags fires n events.
func (l *lab) lags(ctx context.Context, n int, gap time.Duration, atOnce int) (got lags, err error) {
	const session = "lag"
	h := l.next()
	h, err = l.newHome(
		// On a machine that is slow enough more wait than the usual queue holds.
		rule{"tool_call", h.toFile(0), []string{"queue: 10000"}},
		rule{"tool_call", fmt.Sprintf("http: {url: %q}", l.consumer.url), []string{"queue: 10000"}},
	)
	if err != nil {
		return got, err
	}
	if err := h.makeLogs(); err != nil {
		return got, err
	}
	log, err := os.OpenFile(h.log(0), os.O_RDONLY|os.O_CREATE, 0o600)
	if err != nil {
		return got, err
	}
	defer log.Close()
	// Some first, so that the dispatcher runs and its paths are warm.
	const warm = 20
	shots := make([]shot, warm+n)
	seen := make(chan map[string]time.Time, 1)
	following, stop := context.WithCancel(ctx)
	defer stop()
	over := l.consumer.watch()
	go func() { seen <- follow(following, log, warm+n) }()
	if err := l.shoot(ctx, h, session, 0, warm, 0, 1, shots); err != nil {
		return got, err
	}
	pid, err := h.dispatcher(ctx, session)
	if err != nil {
		return got, err
	}
	before, err := watch(pid)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return got, err
	}
	if err := l.shoot(ctx, h, session, warm, warm+n, gap, atOnce, shots); err != nil {
		return got, err
	}
	var inLog map[string]time.Time
	select {
	case inLog = <-seen:
	case <-time.After(endTime):
		stop()
		inLog = <-seen
	}
	err = until(ctx, endTime, "all records came over http", func() (bool, error) {
		l.consumer.mu.Lock()
		defer l.consumer.mu.Unlock()
		return len(l.consumer.times) >= warm+n, nil
	})
	inHTTP := over()
	if err == nil && len(inLog) < warm+n {
		err = fmt.Errorf("%w: %d of %d are in the log", errLost, len(inLog), warm+n)
	}
	if err != nil {
		return got, err
	}
	for i := warm; i < warm+n; i++ {
		got.inFile = append(got.inFile, inLog[callID(i)].Sub(shots[i].ended))
		got.overHTTP = append(got.overHTTP, inHTTP[callID(i)].Sub(shots[i].ended))
		got.hooks += shots[i].cpu
	}
	spent, err := watch(pid)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return got, err
	}
	got.dispatcher = spent.cpu - before.cpu
	return got, h.terminate(ctx, session)
}

// shoot fires the events from to to, and notes when each hook had ended.
func (l *lab) shoot(ctx context.Context, h home, session string, from, to int, gap time.Duration, atOnce int, shots []shot) error {
	var group sync.WaitGroup
	errs := make(chan error, atOnce)
	began := time.Now()
	for worker := range atOnce {
		group.Go(func() {
			for i := from + worker; i < to; i += atOnce {
				if late := time.Until(began.Add(time.Duration(i-from) * gap)); late > 0 && wait(ctx, late) != nil {
					return
				}
				shot, err := h.hook(l.ways, call(session, i))
				if err != nil {
					errs <- err
					return
				}
				shots[i] = shot
			}
		})
	}
	group.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return ctx.Err()
	}
}

func callID(n int) string { return fmt.Sprintf("toolu_%024d", n) }

// call is the payload of a tool call of 0.5 KB.
func call(session string, n int) []byte {
	return fmt.Appendf(nil, `{"session_id":%q,"transcript_path":"/nonexistent/transcript.jsonl","cwd":"/nonexistent",`+
		`"prompt_id":"8f4a5f0e-6a3c-4f0e-9a4e-0f7f6f1f2a11","permission_mode":"default","effort":{"level":"high"},`+
		`"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"go test ./... 2>&1 | tail -40","description":"Run the tests"},`+
		`"tool_use_id":%q}`, session, callID(n))
}

// shot is one run of the hook.
type shot struct {
	ended time.Time
	cpu   time.Duration
}

// hook runs the hook on a payload that fits a pipe, and returns when it had ended.
func (h home) hook(ways string, payload []byte) (shot, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return shot{}, err
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return shot{}, err
	}
	defer r.Close()
	if _, err := w.Write(payload); err != nil {
		return shot{}, err
	}
	if err := w.Close(); err != nil {
		return shot{}, err
	}
	// os.StartProcess and not os/exec, whose goroutines would take time too.
	process, err := os.StartProcess(ways, []string{ways, "hook", "sensors"}, &os.ProcAttr{Env: h.env(), Files: []*os.File{r, null, null}})
	if err != nil {
		return shot{}, err
	}
	state, err := process.Wait()
	ended := time.Now()
	if err == nil && !state.Success() {
		err = fmt.Errorf("the hook: %v", state)
	}
	if err != nil {
		return shot{}, err
	}
	return shot{ended, state.UserTime() + state.SystemTime()}, nil
}

// follow reads a log as it grows, until n calls are in it or ctx ends, and
// returns when each was seen first.
func follow(ctx context.Context, log *os.File, n int) map[string]time.Time {
	seen := make(map[string]time.Time, n)
	grown, stop, err := growth(log.Name())
	if err != nil {
		return seen
	}
	defer stop()
	lines := bufio.NewReaderSize(log, 1<<20)
	var line []byte
	for len(seen) < n {
		part, err := lines.ReadSlice('\n')
		line = append(line, part...)
		if err == nil {
			note(seen, line, time.Now())
			line = line[:0]
			continue
		}
		select {
		case <-ctx.Done():
			return seen
		case <-grown:
		}
	}
	return seen
}
