package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"ways/cmd/internal/figures"
)

const (
	// manySessions is how many run at once.
	manySessions = 100
	// recordsEach is how many records wait for each when its dispatcher starts,
	// and hooksEach how many events each fires in the last row.
	recordsEach, hooksEach = 200, 20
	// allTime bounds the wait for all of them.
	allTime = 2 * time.Minute
)

// sessions prints what a hundred dispatchers at once take.
func sessions(ctx context.Context, l *lab, out io.Writer) error {
	fmt.Fprintf(out, "| %d sessions at once | records | until all had arrived, s | records/s | processor time of the dispatchers, s | resident, MB each | proportional share, MB each | all, MB |\n", manySessions)
	fmt.Fprintln(out, "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, row := range []struct {
		name string
		to   func(h home) rule
		got  func(h home) (int, error)
	}{
		{
			fmt.Sprintf("%d records of 2 KB each, one file for all", l.some(recordsEach)),
			func(h home) rule { return rule{"tool_result", h.toFile(0), nil} },
			func(h home) (int, error) { return lines(h.log(0)) },
		},
		{
			"the same, chained and at least once",
			func(h home) rule {
				return rule{"tool_result", h.toFile(0), []string{"chain: true", "delivery: at_least_once"}}
			},
			func(h home) (int, error) { return lines(h.log(0)) },
		},
		{
			"the same, over http",
			func(home) rule { return rule{"tool_result", fmt.Sprintf("http: {url: %q}", l.consumer.url), nil} },
			nil,
		},
	} {
		if err := l.many(ctx, out, row.name, row.to, row.got); err != nil {
			return fmt.Errorf("%s: %w", row.name, err)
		}
	}
	return l.manyHooks(ctx, out)
}

// many fills the sessions' spools and starts all dispatchers at once.
func (l *lab) many(ctx context.Context, out io.Writer, name string, to func(home) rule, got func(home) (int, error)) error {
	h := l.next()
	h, err := l.newHome(to(h))
	if err != nil {
		return err
	}
	each := l.some(recordsEach)
	for s := range manySessions {
		if err := h.fill(sessionName(s), each, 2000); err != nil {
			return err
		}
	}
	if got == nil {
		before := l.consumer.taken.Load()
		got = func(home) (int, error) { return int(l.consumer.taken.Load() - before), nil }
	}
	began := time.Now()
	var started []*exec.Cmd
	said := make([]strings.Builder, manySessions)
	end := func() error {
		var errs []error
		for i, cmd := range started {
			errs = append(errs, cmd.Process.Signal(syscall.SIGTERM))
			if err := cmd.Wait(); err != nil {
				errs = append(errs, fmt.Errorf("a dispatcher: %w: %s", err, said[i].String()))
			}
		}
		started = nil
		return errors.Join(errs...)
	}
	defer end()
	for s := range manySessions {
		cmd := h.command(ctx, l.waysctl, "sensors", "dispatch", "--session", sessionName(s), "--idle", "5m")
		cmd.Stderr = &said[s]
		if err := cmd.Start(); err != nil {
			return err
		}
		started = append(started, cmd)
	}
	want := manySessions * each
	if err := until(ctx, allTime, "all records arrive", func() (bool, error) { n, err := got(h); return n >= want, err }); err != nil {
		n, _ := got(h)
		return fmt.Errorf("%w: %d of %d", err, n, want)
	}
	took := time.Since(began)
	var memory watched
	for _, cmd := range started {
		w, err := watch(cmd.Process.Pid)
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		memory.resident += w.resident
		memory.proportional += w.proportional
	}
	all := started
	if err := end(); err != nil {
		return err
	}
	var cpu time.Duration
	for _, cmd := range all {
		cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	n, err := got(h)
	if err == nil && n != want {
		err = fmt.Errorf("%w: %d of %d", errLost, n, want)
	}
	if err != nil {
		return err
	}
	return printSessions(out, name, want, took, cpu, memory)
}

func printSessions(out io.Writer, name string, n int, took, cpu time.Duration, memory watched) error {
	_, err := fmt.Fprintf(out, "| %s | %s | %.1f | %s | %.1f | %.1f | %.1f | %.0f |\n", name, figures.Thousands(float64(n)), took.Seconds(), figures.Thousands(float64(n)/took.Seconds()),
		cpu.Seconds(), float64(memory.resident)/manySessions/1e6, float64(memory.proportional)/manySessions/1e6, float64(memory.proportional)/1e6)
	return err
}

func sessionName(s int) string { return fmt.Sprintf("session-%03d", s) }

// manyHooks fires the events of all sessions through the hook, which starts the
// dispatchers.
func (l *lab) manyHooks(ctx context.Context, out io.Writer) error {
	h := l.next()
	h, err := l.newHome(rule{"tool_call", h.toFile(0), nil})
	if err != nil {
		return err
	}
	each := l.some(hooksEach)
	began := time.Now()
	var group sync.WaitGroup
	errs := make(chan error, manySessions)
	for s := range manySessions {
		group.Go(func() {
			for n := range each {
				if _, err := h.hook(l.ways, call(sessionName(s), n)); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	group.Wait()
	select {
	case err := <-errs:
		return err
	default:
	}
	want := manySessions * each
	if err := until(ctx, allTime, "all records arrive", func() (bool, error) { n, err := lines(h.log(0)); return n >= want, err }); err != nil {
		return err
	}
	took := time.Since(began)
	var memory watched
	for s := range manySessions {
		pid, err := h.dispatcher(ctx, sessionName(s))
		if err != nil {
			return err
		}
		w, err := watch(pid)
		if err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		memory.resident += w.resident
		memory.proportional += w.proportional
		memory.cpu += w.cpu
	}
	for s := range manySessions {
		if err := h.terminate(ctx, sessionName(s)); err != nil {
			return err
		}
	}
	if err := arrived(h.log(0), want); err != nil {
		return err
	}
	return printSessions(out, fmt.Sprintf("%d events each, fired by hooks", each), want, took, memory.cpu, memory)
}
