package figures

import (
	"math"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	for _, row := range []struct {
		values []float64
		p      float64
		want   float64
	}{
		{nil, 0.5, 0},
		{[]float64{3}, 0.99, 3},
		{[]float64{3, 1, 2}, 0.5, 2},
		{[]float64{4, 1, 3, 2}, 0.5, 2},
		{[]float64{4, 1, 3, 2}, 1, 4},
	} {
		if got := Percentile(row.values, row.p); got != row.want {
			t.Errorf("Percentile(%v, %v) = %v, want %v", row.values, row.p, got, row.want)
		}
	}
	if got := Median([]time.Duration{9, 3}); got != 3 {
		t.Errorf("the median of two is %v, want the lower", got)
	}
}

func TestThousands(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0", 999: "999", 999.6: "1,000", 1000: "1,000", 12_345: "12,345", 1_000_000: "1,000,000", 12_345_678: "12,345,678",
		math.Inf(1): "–", math.Inf(-1): "–",
	} {
		if got := Thousands(f); got != want {
			t.Errorf("Thousands(%v) = %q, want %q", f, got, want)
		}
	}
	if got := Thousands(math.NaN()); got != "–" {
		t.Errorf("no number is %q", got)
	}
}

func TestMilliseconds(t *testing.T) {
	if got := Milliseconds(1500 * time.Microsecond); got != 1.5 {
		t.Errorf("%v, want 1.5", got)
	}
}
