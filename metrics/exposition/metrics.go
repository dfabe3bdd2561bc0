package exposition

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"ways/metrics/counters"
)

// Metric describes one metric.
type Metric struct {
	Name string
	Type Type
	// Labels beside sensor and rule come behind them.
	Labels []string
	Help   string
}

// Type is a metric's type, as the exposition format names it.
type Type string

// The types.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// numbered is a metric that is one number of a rule.
type numbered struct {
	Metric
	value func(r *counters.Rule) float64
}

// split is a metric that is a rule's numbers by a word.
type split struct {
	Metric
	values func(r *counters.Rule) map[string]uint64
}

func ofRule(more ...string) []string { return append([]string{"sensor", "rule"}, more...) }

func count(f func(r *counters.Rule) uint64) func(*counters.Rule) float64 {
	return func(r *counters.Rule) float64 { return float64(f(r)) }
}

func numbers() []numbered {
	return []numbered{
		{
			Metric{"ways_records_matched_total", Counter, ofRule(), "Records selected for the rule."},
			count(func(r *counters.Rule) uint64 { return r.Matched }),
		},
		{
			Metric{"ways_records_delivered_total", Counter, ofRule(), "Records the rule's consumer accepted."},
			count(func(r *counters.Rule) uint64 { return r.Delivered }),
		},
		{
			Metric{"ways_records_timed_out_total", Counter, ofRule(), "Records lost to the rule because its timeout passed."},
			count(func(r *counters.Rule) uint64 { return r.TimedOut }),
		},
		{
			Metric{"ways_records_killed_total", Counter, ofRule(), "Records lost to the rule because its command was killed at its timeout."},
			count(func(r *counters.Rule) uint64 { return r.Killed }),
		},
		{
			Metric{"ways_rule_falls_behind_total", Counter, ofRule(), "How often the rule fell behind, so that records waited for it on disk."},
			count(func(r *counters.Rule) uint64 { return r.Spooled }),
		},
		{
			Metric{"ways_rule_panics_total", Counter, ofRule(), "How often the rule's actor failed and was started again."},
			count(func(r *counters.Rule) uint64 { return r.Panics }),
		},
		{
			Metric{"ways_queue_records", Gauge, ofRule(), "Records that wait for the rule, in memory and on disk."},
			count(func(r *counters.Rule) uint64 { return r.Waiting }),
		},
		{
			Metric{"ways_rule_paused", Gauge, ofRule(), "1 while the rule waits because its consumer does not know us (401, 403), else 0."},
			func(r *counters.Rule) float64 {
				if r.PausedSince.IsZero() {
					return 0
				}
				return 1
			},
		},
	}
}

func splits() []split {
	by := func(o counters.Outcome) func(*counters.Rule) map[string]uint64 {
		return func(r *counters.Rule) map[string]uint64 { return classes(r.By[o]) }
	}
	return []split{
		{Metric{"ways_records_failed_total", Counter, ofRule("reason"), "Records lost to the rule because the dispatch failed."}, by(counters.Failed)},
		{Metric{"ways_records_refused_total", Counter, ofRule("reason"), "Records lost to the rule because its consumer or its configuration will never take them."}, by(counters.Refused)},
		{Metric{"ways_records_dropped_total", Counter, ofRule("reason"), "Records lost to the rule because its queue was full or it was stopped."}, by(counters.Dropped)},
		{Metric{"ways_records_dead_total", Counter, ofRule("reason"), "Records of an at-least-once rule that were put aside."}, by(counters.Dead)},
		{Metric{"ways_dispatch_retries_total", Counter, ofRule("reason"), "Tries of an at-least-once rule that failed and were repeated."}, by(counters.Retried)},
		{
			Metric{"ways_secrets_redacted_total", Counter, ofRule("kind"), "Secrets masked in delivered records."},
			func(r *counters.Rule) map[string]uint64 { return words(r.Redacted) },
		},
	}
}

func histograms() []struct {
	Metric
	value func(r *counters.Rule) counters.Histogram
} {
	return []struct {
		Metric
		value func(r *counters.Rule) counters.Histogram
	}{
		{
			Metric{"ways_dispatch_duration_seconds", Histogram, ofRule(), "How long dispatches took, whatever became of them."},
			func(r *counters.Rule) counters.Histogram { return r.Duration },
		},
		{
			Metric{"ways_delivery_lag_seconds", Histogram, ofRule(), "From the moment a hook saw a record until its consumer had accepted it."},
			func(r *counters.Rule) counters.Histogram { return r.Lag },
		},
	}
}

// The metrics that are not one number of a rule.
func hookEvents() Metric {
	return Metric{"ways_hook_events_total", Counter, []string{"section"}, "Records that hooks made and a dispatcher read, by section."}
}

func transcriptRecords() Metric {
	return Metric{"ways_other_records_total", Counter, []string{"section"}, "Records that no hook made (found in a transcript, or telling of a gap) and a dispatcher read, by section."}
}

func hookRefusals() Metric {
	return Metric{"ways_hook_refusals_total", Counter, []string{"reason"}, "Hook events that were not taken, or with which something else went wrong in the hook."}
}

func damaged() Metric {
	return Metric{"ways_spool_damaged_total", Counter, nil, "Stretches of spools that held no whole record and were passed over."}
}

func unwritten() Metric {
	return Metric{"ways_records_unwritten_total", Counter, nil, "Records that hooks could not write because the disk was full."}
}

func oldest() Metric {
	return Metric{"ways_oldest_unsent_age_seconds", Gauge, ofRule(), "Age of the oldest record that waits for the rule; 0 when none does."}
}

func deadLetters() Metric {
	return Metric{"ways_dead_letters", Gauge, ofRule(), "Records put aside and still there."}
}

func spoolBytes() Metric {
	return Metric{"ways_spool_bytes", Gauge, nil, "Size of the spools of all sessions."}
}

func dispatchers() Metric {
	return Metric{"ways_dispatchers_running", Gauge, nil, "Dispatchers that run; one for each active session."}
}

func unreadable() Metric {
	return Metric{"ways_unreadable_files", Gauge, nil, "Files with counters that cannot be read; what they counted is missing."}
}

func build() Metric {
	return Metric{"ways_build_info", Gauge, []string{"version"}, "1, with the version that was asked."}
}

// Metrics lists every metric, by name.
func Metrics() []Metric {
	all := []Metric{
		hookEvents(), transcriptRecords(), hookRefusals(), damaged(), unwritten(), oldest(), deadLetters(), spoolBytes(),
		dispatchers(), unreadable(), build(),
	}
	for _, m := range numbers() {
		all = append(all, m.Metric)
	}
	for _, m := range splits() {
		all = append(all, m.Metric)
	}
	for _, m := range histograms() {
		all = append(all, m.Metric)
	}
	slices.SortFunc(all, func(a, b Metric) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (m Metric) desc() *prometheus.Desc { return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil) }

func (m Metric) value(v float64, labels ...string) prometheus.Metric {
	t := prometheus.CounterValue
	if m.Type == Gauge {
		t = prometheus.GaugeValue
	}
	out, err := prometheus.NewConstMetric(m.desc(), t, v, labels...)
	if err != nil {
		return prometheus.NewInvalidMetric(m.desc(), err)
	}
	return out
}

// collector collects one snapshot.
type collector struct{ Snapshot }

// Describe implements prometheus.Collector.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range Metrics() {
		to <- m.desc()
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) {
	for word, n := range words(c.Sum.Hooks) {
		to <- hookEvents().value(float64(n), word)
	}
	for word, n := range words(c.Sum.Transcript) {
		to <- transcriptRecords().value(float64(n), word)
	}
	for word, n := range words(c.HookRefusals) {
		to <- hookRefusals().value(float64(n), word)
	}
	to <- damaged().value(float64(c.Sum.Damaged))
	to <- unwritten().value(float64(c.Sum.Unwritten))
	to <- spoolBytes().value(float64(c.SpoolBytes))
	to <- dispatchers().value(float64(c.Dispatchers))
	to <- unreadable().value(float64(len(c.Sum.Unreadable)))
	to <- build().value(1, c.Version)
	// Ids that are no plain names meet in one series.
	rules := map[[2]string]*counters.Rule{}
	for id, r := range c.Sum.Rules {
		if rules[idOf(id)] == nil {
			rules[idOf(id)] = &counters.Rule{}
		}
		rules[idOf(id)].Add(r)
	}
	for id, r := range rules {
		c.rule(to, r, id)
	}
	dead := map[[2]string]int{}
	for id, n := range c.DeadLetters {
		dead[idOf(id)] += n
	}
	for id := range rules {
		if _, some := dead[id]; !some {
			dead[id] = 0
		}
	}
	for id, n := range dead {
		to <- deadLetters().value(float64(n), id[:]...)
	}
}

func (c collector) rule(to chan<- prometheus.Metric, r *counters.Rule, id [2]string) {
	for _, m := range numbers() {
		to <- m.Metric.value(m.value(r), id[:]...)
	}
	for _, m := range splits() {
		for word, n := range m.values(r) {
			to <- m.Metric.value(float64(n), id[0], id[1], word)
		}
	}
	for _, m := range histograms() {
		to <- histogram{m.Metric, m.value(r), id}
	}
	age := 0.0
	if !r.WaitingSince.IsZero() {
		age = max(c.Now.Sub(r.WaitingSince).Seconds(), 0)
	}
	to <- oldest().value(age, id[:]...)
}

// idOf splits a rule's id into the two labels.
func idOf(id string) [2]string {
	sensor, rule, _ := strings.Cut(id, "/")
	return [2]string{label(sensor), label(rule)}
}

// Classic buckets have their bounds at powers of two of a second, from 1/8192 s
// to 1024 s: there they can be read off the native ones exactly.
const (
	lowestBound  = -13
	highestBound = 10
)

// histogram is a native histogram with classic buckets beside it.
type histogram struct {
	Metric
	counters.Histogram
	id [2]string
}

// Desc implements prometheus.Metric.
func (h histogram) Desc() *prometheus.Desc { return h.desc() }

// Write implements prometheus.Metric.
func (h histogram) Write(to *dto.Metric) error {
	buckets := map[int]int64{}
	var n uint64
	for i, c := range h.Buckets {
		buckets[i] = int64(min(c, math.MaxInt64))
		n += c
	}
	native, err := prometheus.NewConstNativeHistogram(h.desc(), n, h.Sum, buckets, nil, 0, counters.Schema, prometheus.DefNativeHistogramZeroThreshold, time.Time{}, h.id[:]...)
	if err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	if err := native.Write(to); err != nil {
		return err
	}
	for power := lowestBound; power <= highestBound; power++ {
		bound, below := math.Ldexp(1, power), h.UpTo(power)
		to.Histogram.Bucket = append(to.Histogram.Bucket, &dto.Bucket{UpperBound: &bound, CumulativeCount: &below})
	}
	return nil
}

// words makes a counter's words fit for labels.
func words(counts map[string]uint64) map[string]uint64 {
	out := map[string]uint64{}
	for w, n := range counts {
		out[label(w)] += n
	}
	return out
}

// classes makes reasons fit for labels, and few: statuses by their first digit,
// exit codes and signals together.
func classes(counts map[string]uint64) map[string]uint64 {
	out := map[string]uint64{}
	for w, n := range counts {
		out[class(w)] += n
	}
	return out
}

func class(reason string) string {
	if digits, ok := strings.CutPrefix(reason, "status_"); ok {
		if len(digits) != 3 || digits[0] < '1' || digits[0] > '9' {
			return "other"
		}
		return "status_" + digits[:1] + "xx"
	}
	for _, many := range []string{"exit", "signal"} {
		if strings.HasPrefix(reason, many+"_") {
			return many
		}
	}
	return label(reason)
}

// maxLabel bounds a label's value, in bytes.
const maxLabel = 128

// label is s when it is a plain name, else "other".
func label(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.:", r)
	}
	if s == "" || len(s) > maxLabel || strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return "other"
	}
	return s
}
