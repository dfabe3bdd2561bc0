package counters

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Schema is the resolution of histograms, as Prometheus' native histograms number
// it: bucket i holds (2^((i-1)/8), 2^(i/8)] seconds, so that a bucket is 9 % wide.
const Schema = 3

// perOctave is how many buckets lie between a number and its double.
const perOctave = 1 << Schema

// Buckets reach from a microsecond to some twelve days; what lies outside is
// counted in the last one.
const (
	lowest  = -20 * perOctave
	highest = 20 * perOctave
)

// Histogram counts durations. It is kept as a native histogram; classic buckets
// with bounds at powers of two are read off it exactly.
type Histogram struct {
	Count uint64 `json:"count"`
	// Sum is in seconds.
	Sum     float64        `json:"sum"`
	Buckets map[int]uint64 `json:"buckets"`
}

// Observe counts one duration; a negative one, from a clock that was set, is 0.
func (h *Histogram) Observe(d time.Duration) {
	seconds := max(d, 0).Seconds()
	i := lowest
	if seconds > 0 {
		i = min(max(int(math.Ceil(math.Log2(seconds)*perOctave)), lowest), highest)
	}
	if h.Buckets == nil {
		h.Buckets = map[int]uint64{}
	}
	h.Buckets[i]++
	h.Count++
	h.Sum += seconds
}

// Add adds what another histogram counted.
func (h *Histogram) Add(o Histogram) {
	if o.Count == 0 {
		return
	}
	if h.Buckets == nil {
		h.Buckets = map[int]uint64{}
	}
	for i, n := range o.Buckets {
		h.Buckets[i] += n
	}
	h.Count += o.Count
	h.Sum += o.Sum
}

func (h *Histogram) subtract(o Histogram) {
	for i, n := range o.Buckets {
		if h.Buckets[i] <= n {
			delete(h.Buckets, i)
		} else {
			h.Buckets[i] -= n
		}
	}
	h.Count -= min(o.Count, h.Count)
	h.Sum = max(h.Sum-o.Sum, 0)
	if h.Count == 0 {
		*h = Histogram{}
	}
}

// UpTo is how many durations were at most 2^power seconds.
func (h Histogram) UpTo(power int) uint64 {
	var n uint64
	for i, c := range h.Buckets {
		if i <= power*perOctave {
			n += c
		}
	}
	return n
}

// Quantile is the duration below which a share q of all lie, to within a bucket's
// width; 0 when nothing was counted.
func (h Histogram) Quantile(q float64) time.Duration {
	var n uint64
	for _, i := range slices.Sorted(maps.Keys(h.Buckets)) {
		n += h.Buckets[i]
		if float64(n) >= q*float64(h.Count) {
			return time.Duration(math.Exp2(float64(i)/perOctave) * float64(time.Second))
		}
	}
	return 0
}

// IsZero reports whether nothing was counted.
func (h Histogram) IsZero() bool { return h.Count == 0 }
