package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ways/cmd/internal/figures"
)

// tally is what one program asked of the kernel.
type tally struct {
	calls map[string]int
	// written is what went to files, pipes and sockets, in bytes.
	written int
}

func (t tally) all() int {
	n := 0
	for _, count := range t.calls {
		n += count
	}
	return n
}

func (t tally) of(names ...string) int {
	n := 0
	for _, name := range names {
		n += t.calls[name]
	}
	return n
}

// calls prints what one event costs in system calls, bytes written and flushes.
func calls(ctx context.Context, l *lab, out io.Writer) error {
	strace := look("strace")
	if strace == "" {
		_, err := fmt.Fprintln(out, "System calls are not counted: strace is not installed.")
		return err
	}
	fmt.Fprintln(out, "| one event of 2 KB | system calls | of these writes | bytes written | flushes | the most frequent |")
	fmt.Fprintln(out, "| --- | ---: | ---: | ---: | ---: | --- |")
	if err := l.hookCalls(ctx, strace, out); err != nil {
		return err
	}
	for _, w := range ways() {
		switch w.name {
		case "file", "file, `delivery: at_least_once`", "file, `chain: true`", "http", "command, `input: stdin`":
		default:
			continue
		}
		for _, waiting := range []bool{false, true} {
			if waiting && w.to != theFile || waiting && w.part < 0.1 {
				continue
			}
			few, many := 20, 120
			name := "dispatcher, " + w.name + ", one record at a time"
			if waiting {
				few, many, name = 240, 2640, "dispatcher, "+w.name+", from a backlog"
			}
			var got [2]tally
			for i, n := range []int{few, many} {
				var err error
				if got[i], err = l.dispatcherCalls(ctx, strace, w, n, !waiting); err != nil {
					return fmt.Errorf("%s: %w", w.name, err)
				}
			}
			printCalls(out, name, got[1], got[0], many-few)
		}
	}
	return nil
}

// printCalls prints what n more records cost.
func printCalls(out io.Writer, name string, with, without tally, n int) {
	each := func(a, b int) float64 { return max(0, float64(a-b)/float64(n)) }
	writes := []string{"write", "pwrite64", "writev", "sendto"}
	flushes := []string{"fsync", "fdatasync"}
	names := slices.SortedFunc(maps.Keys(with.calls), func(a, b string) int {
		if d := (with.calls[b] - without.calls[b]) - (with.calls[a] - without.calls[a]); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var top []string
	for _, name := range names[:min(6, len(names))] {
		if f := each(with.calls[name], without.calls[name]); f >= 0.05 {
			top = append(top, fmt.Sprintf("%s %.1f", name, f))
		}
	}
	fmt.Fprintf(out, "| %s | %.1f | %.1f | %s | %.2f | %s |\n", name, each(with.all(), without.all()),
		each(with.of(writes...), without.of(writes...)), figures.Thousands(each(with.written, without.written)),
		each(with.of(flushes...), without.of(flushes...)), strings.Join(top, ", "))
}

// traced runs a program under strace and counts its calls.
func (h home) traced(ctx context.Context, strace, stdin string, argv ...string) (tally, error) {
	trace := filepath.Join(h.root, "trace")
	cmd := h.command(ctx, append([]string{strace, "-f", "-qq", "-s", "0", "-o", trace}, argv...)...)
	cmd.Stdin = strings.NewReader(stdin)
	if said, err := cmd.CombinedOutput(); err != nil {
		return tally{}, fmt.Errorf("strace: %w: %s", err, said)
	}
	f, err := os.Open(trace)
	if err != nil {
		return tally{}, err
	}
	defer f.Close()
	return count(f)
}

// count reads strace's lines, "<pid> name(arguments) = result"; a call that
// another thread's line falls into has two, of which the second says "resumed".
func count(trace io.Reader) (tally, error) {
	call := regexp.MustCompile(`^\d+ +(?:<\.\.\. )?(\w+)(?:\(| resumed>)`)
	result := regexp.MustCompile(`= (\d+)\s*$`)
	t := tally{calls: map[string]int{}}
	lines := bufio.NewScanner(trace)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		m := call.FindStringSubmatch(line)
		if m == nil {
			continue // a signal, an exit
		}
		if !strings.Contains(line, " resumed>") {
			t.calls[m[1]]++
		}
		switch m[1] {
		case "write", "pwrite64", "writev", "sendto":
			if r := result.FindStringSubmatch(line); r != nil {
				n, err := strconv.Atoi(r[1])
				if err != nil {
					return t, err
				}
				t.written += n
			}
		}
	}
	return t, lines.Err()
}

// hookCalls prints what a hook costs that hands an event to a dispatcher that
// runs, and one whose event nothing selects.
func (l *lab) hookCalls(ctx context.Context, strace string, out io.Writer) error {
	const session = "calls"
	h := l.next()
	h, err := l.newHome(rule{"tool_call", h.toFile(0), nil})
	if err != nil {
		return err
	}
	payload := func(n int) string {
		return strings.Replace(string(call(session, n)), "Run the tests", "Run the tests"+strings.Repeat(" and more", 160), 1)
	}
	if err := l.fire(ctx, h, payload(0)); err != nil {
		return err
	}
	if _, err := h.dispatcher(ctx, session); err != nil {
		return err
	}
	for _, row := range []struct{ name, payload string }{
		{"hook, an async rule selects it", payload(1)},
		{"hook, no rule selects it", strings.Replace(payload(2), "PreToolUse", "PostToolUse", 1)},
	} {
		got, err := h.traced(ctx, strace, row.payload, l.ways, "hook", "sensors")
		if err != nil {
			return err
		}
		printCalls(out, row.name, got, tally{}, 1)
	}
	return h.terminate(ctx, session)
}

// dispatcherCalls counts the calls of a dispatcher that works off n records. For
// one record at a time its consumer's file is looked at before the next is there.
func (l *lab) dispatcherCalls(ctx context.Context, strace string, w way, n int, single bool) (tally, error) {
	h := l.next()
	h, err := l.newHome(w.rule(l, h))
	if err != nil {
		return tally{}, err
	}
	if err := h.makeLogs(); err != nil {
		return tally{}, err
	}
	const session = "calls"
	first := n
	if single {
		first = 1
	}
	if err := h.fill(session, first, 2000); err != nil {
		return tally{}, err
	}
	feeding := make(chan error, 1)
	fed, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		before := l.consumer.taken.Load()
		for i := 1; single && i < n; i++ {
			err := until(fed, endTime, "a record arrives", func() (bool, error) {
				if w.to == theServer {
					return int(l.consumer.taken.Load()-before) >= i, nil
				}
				got, err := lines(h.log(0))
				return got >= i, err
			})
			if err == nil {
				err = h.fillAndWake(session)
			}
			if err != nil {
				feeding <- err
				return
			}
		}
		feeding <- nil
	}()
	got, err := h.traced(ctx, strace, "", l.waysctl, "sensors", "dispatch", "--session", session, "--idle", "400ms")
	if err != nil {
		return got, err
	}
	if err := <-feeding; err != nil {
		return got, err
	}
	if w.to == theFile {
		err = arrived(h.log(0), n)
	}
	return got, err
}
