// Package figures turns what the measuring programs took into the numbers of
// docs/benchmarks.md.
package figures

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"
)

// Percentile is the smallest value that at least p of all do not exceed (nearest
// rank); p is above 0 and at most 1. It is zero for none.
func Percentile[T cmp.Ordered](values []T, p float64) T {
	if len(values) == 0 {
		var none T
		return none
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(math.Ceil(p*float64(len(sorted))))-1]
}

// Median is the Percentile in the middle.
func Median[T cmp.Ordered](values []T) T { return Percentile(values, 0.5) }

// Milliseconds is a duration as a number.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Thousands is a whole number with a comma before every third digit. What is no
// number, the rate of records that all came at the same time, is a dash.
func Thousands(f float64) string {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return "–"
	}
	digits := fmt.Sprintf("%.0f", f)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Machine says what the numbers were taken on, without naming it.
func Machine() string {
	return fmt.Sprintf("%s/%s, %d CPUs, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
}
