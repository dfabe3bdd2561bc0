package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

// versionRow is the row that the seed's budget is measured against (§2), in the
// order of newLab.
const versionRow = 2

// table renders the timings as Markdown. The first row is the bare program that
// the ratios are to.
func table(timings []timing) string {
	var b strings.Builder
	b.WriteString("| program | median, ms | p99, ms | to bare Go | over `ways --version`, ms |\n")
	b.WriteString("| --- | ---: | ---: | ---: | ---: |\n")
	bare := timings[0].percentile(0.5)
	version := timings[versionRow].percentile(0.5)
	for i, t := range timings {
		median := t.percentile(0.5)
		over := ""
		if i > versionRow {
			over = fmt.Sprintf("%+.2f", milliseconds(median-version))
		}
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %.2f | %s |\n", t.name,
			milliseconds(median), milliseconds(t.percentile(0.99)), float64(median)/float64(bare), over)
	}
	return b.String()
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// machine says what the numbers were taken on, without naming it.
func machine() string {
	return fmt.Sprintf("%s/%s, %d CPUs, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
}
