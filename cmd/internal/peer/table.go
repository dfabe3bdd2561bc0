package main

import (
	"fmt"
	"strings"

	"ways/cmd/internal/figures"
)

// workedTable is the throughput of all sides, the median of their rounds. idle are
// lives that handed over one record, by the same names: what they took is the
// start's, and no record's.
func workedTable(sides []side, n int, rounds map[string][]worked, lives map[string][]started) string {
	var b strings.Builder
	b.WriteString("| side | records/s, with the start | records/s, first to last | CPU, µs a record | most memory, MB | requests a run | what arrived, all runs |\n")
	b.WriteString("| --- | ---: | ---: | ---: | ---: | ---: | --- |\n")
	for _, s := range sides {
		var whole, between, cpu, peak, requests, start []float64
		var total verdict
		for _, life := range lives[s.what()] {
			start = append(start, life.life.cpu.Seconds())
		}
		for _, r := range rounds[s.what()] {
			whole = append(whole, float64(n)/r.whole.Seconds())
			between = append(between, float64(n-1)/r.between.Seconds())
			cpu = append(cpu, r.life.cpu.Seconds())
			peak = append(peak, megabytes(r.life.peak))
			requests = append(requests, float64(r.requests))
			total = total.sum(r.verdict)
		}
		count := ""
		if s.http {
			count = figures.Thousands(figures.Median(requests))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %.1f | %.0f | %s | %s |\n", s.what(), figures.Thousands(figures.Median(whole)), figures.Thousands(figures.Median(between)),
			1e6*(figures.Median(cpu)-figures.Median(start))/float64(n-1), figures.Median(peak), count, total)
	}
	return b.String()
}

// restTable is what it costs to start a side, and to have it.
func restTable(sides []side, lives map[string][]started, idle map[string][]idled, size func(side) int64) string {
	var b strings.Builder
	b.WriteString("| side | start to the first record, ms | CPU to start and to stop, ms | memory, idle, MB | of that its own, MB | CPU, idle, ms/s | program, MB |\n")
	b.WriteString("| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, s := range sides {
		var first, cpu, memory, own, rest []float64
		for _, r := range lives[s.what()] {
			first = append(first, figures.Milliseconds(r.first))
			cpu = append(cpu, figures.Milliseconds(r.life.cpu))
		}
		for _, r := range idle[s.what()] {
			memory = append(memory, megabytes(r.memory))
			own = append(own, megabytes(r.own))
			rest = append(rest, 1000*r.cpu)
		}
		fmt.Fprintf(&b, "| %s | %.0f | %.0f | %.0f | %.0f | %.0f | %.1f |\n", s.what(), figures.Median(first), figures.Median(cpu), figures.Median(memory), figures.Median(own), figures.Median(rest), megabytes(size(s)))
	}
	return b.String()
}

// lagTable is how long single records take; all rounds of a side together.
func lagTable(sides []side, rounds map[string][]lagged) string {
	var b strings.Builder
	b.WriteString("| side | median, ms | p99, ms | longest, ms | CPU, ms/s | what arrived, all runs |\n")
	b.WriteString("| --- | ---: | ---: | ---: | ---: | --- |\n")
	for _, s := range sides {
		var lags, cpu []float64
		var total verdict
		for _, r := range rounds[s.what()] {
			lags = append(lags, r.lags...)
			cpu = append(cpu, 1000*r.cpu)
			total = total.sum(r.verdict)
		}
		fmt.Fprintf(&b, "| %s | %.1f | %.1f | %.1f | %.0f | %s |\n", s.what(), figures.Median(lags), figures.Percentile(lags, 0.99), figures.Percentile(lags, 1), figures.Median(cpu), total)
	}
	return b.String()
}

// killTable is what came in spite of kills.
func killTable(sides []side, runs map[string][]verdict) string {
	var b strings.Builder
	b.WriteString("| side | kills | lost | doubled | of those, under the id they had | out of order | torn lines | runs with each record once, in order |\n")
	b.WriteString("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, s := range sides {
		exact := 0
		var total verdict
		for _, v := range runs[s.what()] {
			total = total.sum(v)
			v.Torn = 0
			if v == (verdict{}) {
				exact++
			}
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s | %d | %d of %d |\n", s.what(), len(runs[s.what()]),
			figures.Thousands(float64(total.Missing)), figures.Thousands(float64(total.Doubled)), figures.Thousands(float64(total.Known)), figures.Thousands(float64(total.Misplaced)),
			total.Torn, exact, len(runs[s.what()]))
	}
	return b.String()
}

func megabytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }
