package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"ways/cmd/internal/figures"
)

// rules prints what many rules cost: none selects, or all do.
func rules(ctx context.Context, l *lab, out io.Writer) error {
	fmt.Fprintln(out, "| rules | record | records/s of one core | deliveries/s of one core | records/s | most memory, MB |")
	fmt.Fprintln(out, "| --- | --- | ---: | ---: | ---: | ---: |")
	for _, row := range []struct {
		name     string
		selects  bool
		sections string
		more     []string
	}{
		{"none selects the section", false, "session_end", nil},
		{"none has its condition met", false, "tool_result", []string{`where: {data.name: {equals: NoSuchTool}}`}},
		{"all select, a file each", true, "tool_result", nil},
	} {
		for _, count := range []int{1, 20, 200} {
			base, err := l.measureRules(ctx, row.sections, row.more, row.selects, count, 1, 100)
			if err != nil {
				return err
			}
			for _, size := range []int{0, 2} {
				n := sizes[size].records
				switch {
				case row.more == nil:
					n *= 3
				default:
					n /= map[int]int{1: 1, 20: 8, 200: 80}[count]
				}
				n = l.some(n)
				u, err := l.measureRules(ctx, row.sections, row.more, row.selects, count, n+1, sizes[size].bytes)
				if err != nil {
					return fmt.Errorf("%d rules, %s: %w", count, row.name, err)
				}
				r := rate{n, sizes[size].bytes, u.less(base)}
				deliveries := ""
				if row.selects {
					deliveries = figures.Thousands(r.perCore() * float64(count))
				}
				fmt.Fprintf(out, "| %d, %s | %s | %s | %s | %s | %.0f |\n", count, row.name, sizes[size].name,
					figures.Thousands(r.perCore()), deliveries, figures.Thousands(r.perSecond()), float64(u.peak)/1e6)
			}
		}
	}
	return nil
}

func (l *lab) measureRules(ctx context.Context, sections string, more []string, selects bool, count, n, size int) (usage, error) {
	h := l.next()
	var list []rule
	for i := range count {
		list = append(list, rule{sections, h.toFile(i), more})
	}
	h, err := l.newHome(list...)
	if err != nil {
		return usage{}, err
	}
	if err := h.fill("load", n, size); err != nil {
		return usage{}, err
	}
	u, err := l.drain(ctx, h, "load")
	if err != nil || !selects {
		return u, err
	}
	for i := range count {
		if err := arrived(h.log(i), n); err != nil {
			return u, err
		}
	}
	return u, os.RemoveAll(filepath.Dir(h.log(0)))
}

// makeLogs makes the directory of the logs, for a consumer that does not.
func (h home) makeLogs() error { return os.MkdirAll(filepath.Dir(h.log(0)), 0o700) }
