package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"ways/cmd/internal/figures"
)

// sizes are those of the records, in bytes, as the tables name them.
var sizes = []struct {
	name  string
	bytes int
	// records is how many of them a row is measured with.
	records int
}{
	{"0.3 KB", 300, 20_000},
	{"2 KB", 2_000, 12_000},
	{"10 KB", 10_000, 4_000},
	{"100 KB", 100_000, 500},
}

// way is a row of the first table.
type way struct {
	name string
	// rule is its only rule in a home; nil for a row without a consumer.
	rule func(l *lab, h home) rule
	// part of the usual number of records is enough for a slow one.
	part float64
	// to is how its records are counted.
	to counting
}

type counting int

const (
	nobody counting = iota
	theFile
	theServer
)

func ways() []way {
	const all = "tool_result"
	file := func(more ...string) func(*lab, home) rule {
		return func(_ *lab, h home) rule { return rule{all, h.toFile(0), more} }
	}
	http := func(more ...string) func(*lab, home) rule {
		return func(l *lab, _ home) rule { return rule{all, fmt.Sprintf("http: {url: %q}", l.consumer.url), more} }
	}
	return []way{
		{"selection alone: a condition that nothing meets", file(`where: {data.name: {equals: NoSuchTool}}`), 1, nobody},
		{"selection and masking, a target that does nothing", nil, 1, nobody},
		{"file", file(), 1, theFile},
		{"file, `redact: none`", file("redact: none"), 1, theFile},
		{"file, `delivery: at_least_once`", file("delivery: at_least_once"), 0.5, theFile},
		{"file, `chain: true`", file("chain: true"), 1, theFile},
		{"http", http(), 0.3, theServer},
		{"http, `delivery: at_least_once`", http("delivery: at_least_once"), 0.3, theServer},
		{"command, `input: stdin`", func(_ *lab, h home) rule {
			return rule{all, fmt.Sprintf(`command: {argv: [/bin/sh, -c, "cat >> %s"], input: stdin}`, h.log(0)), nil}
		}, 0.02, theFile},
	}
}

// rate is how fast n records went.
type rate struct {
	n, size int
	usage
}

// perCore is records in a second of processor time, of the dispatcher alone.
func (r rate) perCore() float64 { return float64(r.n) / r.cpu.Seconds() }

// perSecond is records in a second.
func (r rate) perSecond() float64 { return float64(r.n) / r.wall.Seconds() }

func (r rate) megabytesPerCore() float64 { return r.perCore() * float64(r.size) / 1e6 }

// less takes off what a dispatcher costs that finds nothing to do, so that a
// rate does not hang on how many records it was measured with.
func (u usage) less(base usage) usage {
	const least = time.Millisecond
	u.wall, u.cpu = max(u.wall-base.wall, least), max(u.cpu-base.cpu, least)
	return u
}

// targets prints what one rule passes on, by target and by record size.
func targets(ctx context.Context, l *lab, out io.Writer) error {
	fmt.Fprintln(out, "| one rule | record | records/s of one core | MB/s of one core | records/s | most memory, MB |")
	fmt.Fprintln(out, "| --- | --- | ---: | ---: | ---: | ---: |")
	for _, w := range ways() {
		base, err := l.measure(ctx, w, 1, 100)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		for _, size := range sizes {
			n := l.some(int(w.part * float64(size.records)))
			u, err := l.measure(ctx, w, n+1, size.bytes)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", w.name, size.name, err)
			}
			r := rate{n, size.bytes, u.less(base)}
			fmt.Fprintf(out, "| %s | %s | %s | %.1f | %s | %.0f |\n", w.name, size.name,
				figures.Thousands(r.perCore()), r.megabytesPerCore(), figures.Thousands(r.perSecond()), float64(u.peak)/1e6)
		}
	}
	return nil
}

// measure makes a home with the row's rule, fills a spool and drains it.
func (l *lab) measure(ctx context.Context, w way, n, size int) (usage, error) {
	h := l.next()
	one := rule{"tool_result", h.toFile(0), nil}
	if w.rule != nil {
		one = w.rule(l, h)
	}
	h, err := l.newHome(one)
	if err != nil {
		return usage{}, err
	}
	if err := h.makeLogs(); err != nil { // a command does not
		return usage{}, err
	}
	if err := h.fill("load", n, size); err != nil {
		return usage{}, err
	}
	before := l.consumer.taken.Load()
	var u usage
	if w.rule == nil {
		u, err = l.drainNowhere(ctx, h, "load")
	} else {
		u, err = l.drain(ctx, h, "load")
	}
	if err != nil {
		return u, err
	}
	switch w.to {
	case theFile:
		err = arrived(h.log(0), n)
	case theServer:
		if got := int(l.consumer.taken.Load() - before); got != n {
			err = fmt.Errorf("%w: %d of %d came over http", errLost, got, n)
		}
	}
	return u, err
}
