package main

import (
	"fmt"
	"strings"
	"time"

	"ways/cmd/internal/figures"
)

// The rows that others are compared to, by their names.
const (
	bareRow    = "Go, `func main() {}`"
	versionRow = "`ways --version`"
)

// table renders the timings as Markdown, with the ratio to the bare Go program
// and, behind the row of --version, the difference to it.
func table(timings []timing) string {
	var b strings.Builder
	b.WriteString("| program | median, ms | p99, ms | to bare Go | over `ways --version`, ms |\n")
	b.WriteString("| --- | ---: | ---: | ---: | ---: |\n")
	var bare, version time.Duration
	for _, t := range timings {
		switch t.name {
		case bareRow:
			bare = t.median()
		case versionRow:
			version = t.median()
		}
	}
	behind := false
	for _, t := range timings {
		over := ""
		if behind {
			over = fmt.Sprintf("%+.2f", figures.Milliseconds(t.median()-version))
		}
		behind = behind || t.name == versionRow
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %.2f | %s |\n", t.name,
			figures.Milliseconds(t.median()), figures.Milliseconds(t.percentile(0.99)), float64(t.median())/float64(bare), over)
	}
	return b.String()
}

// arrivalTable renders arrivals as Markdown.
func arrivalTable(timings ...timing) string {
	var b strings.Builder
	b.WriteString("| one async rule at a file | median, ms | p99, ms | p99.9, ms |\n| --- | ---: | ---: | ---: |\n")
	for _, t := range timings {
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %.2f |\n", t.name,
			figures.Milliseconds(t.median()), figures.Milliseconds(t.percentile(0.99)), figures.Milliseconds(t.percentile(0.999)))
	}
	return b.String()
}

// workTable renders what the parts of a hook take, as Markdown.
func workTable(work []timing) string {
	var b strings.Builder
	b.WriteString("| the work itself, in one process that runs already | µs |\n| --- | ---: |\n")
	for _, t := range work {
		fmt.Fprintf(&b, "| %s | %.1f |\n", t.name, float64(t.median())/float64(time.Microsecond))
	}
	return b.String()
}
