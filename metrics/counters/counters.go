// Package counters holds what dispatchers counted, and keeps it on disk so that
// no number ever goes backwards, whichever process dies.
//
// A dispatcher counts in a file of its own, <state>/counters/<session>~<life>.json
// (Life). A file that nobody writes any more is folded: its numbers are added to
// <state>/totals.json, and it is removed, as one step (Store.Fold). The sum over
// the totals and the files that are there is everything counted since
// installation (Store.Sum); it costs one file for each dispatcher that runs or was
// killed, however many sessions there have been.
package counters

import (
	"maps"
	"time"
)

// Rule is what was counted for one rule.
type Rule struct {
	// Matched records were selected for the rule. Each ends in one of Delivered,
	// Failed, Refused, TimedOut, Killed, Dropped, Dead, or is waiting.
	Matched   uint64 `json:"matched"`
	Delivered uint64 `json:"delivered"`
	Failed    uint64 `json:"failed"`
	Refused   uint64 `json:"refused"`
	TimedOut  uint64 `json:"timed_out"`
	Killed    uint64 `json:"killed"`
	Dropped   uint64 `json:"dropped"`
	// Dead records were put aside by an at-least-once rule.
	Dead uint64 `json:"dead,omitempty"`
	// Retried counts tries that failed and were repeated.
	Retried uint64 `json:"retried,omitempty"`
	// Spooled counts how often the rule fell behind, so that records waited on
	// disk.
	Spooled uint64 `json:"fell_behind,omitempty"`
	// PausedSince is set while the consumer does not know us (401, 403).
	PausedSince time.Time `json:"paused_since,omitzero"`
	// OffSince is set while the rule is off and records wait for it.
	OffSince time.Time `json:"off_since,omitzero"`
	// NextTry is when a record that waits for another try gets it.
	NextTry time.Time `json:"next_try,omitzero"`
	// Waiting is a gauge: records handed over or on disk that the rule is not
	// done with.
	Waiting uint64 `json:"spooled"`
	// WaitingSince is the time of the oldest of them; zero when none waits.
	WaitingSince time.Time `json:"spooled_since,omitzero"`
	// Redacted counts masked secrets by kind.
	Redacted map[string]uint64 `json:"redacted,omitempty"`
	// Reasons counts what did not arrive, and tries that failed, by reason.
	Reasons map[string]uint64 `json:"reasons,omitempty"`
	// By splits the numbers above by reason: by[Outcome][reason].
	By map[Outcome]map[string]uint64 `json:"by,omitempty"`
	// Panics counts restarts of the rule's actor.
	Panics uint64 `json:"panics,omitempty"`
	// Duration is how long dispatches took, whatever became of them; Lag is the
	// time from the hook to the consumer's acceptance.
	Duration Histogram `json:"dispatch_seconds,omitzero"`
	Lag      Histogram `json:"lag_seconds,omitzero"`
	// LastError is the newest failure in words, without secrets, and when.
	LastError   string    `json:"last_error,omitempty"`
	LastErrorAt time.Time `json:"last_error_at,omitzero"`
	// LastDelivered is when a record was accepted last.
	LastDelivered time.Time `json:"last_delivered,omitzero"`
	// Since is when the first record matched.
	Since time.Time `json:"since,omitzero"`
	// Target says where the rule sends.
	Target string `json:"target,omitempty"`
}

// Outcome is a way in which a record, or a try, did not arrive.
type Outcome string

// The outcomes that are split by reason.
const (
	Failed  Outcome = "failed"
	Refused Outcome = "refused"
	Dropped Outcome = "dropped"
	Dead    Outcome = "dead"
	Retried Outcome = "retried"
)

// Count notes a reason under an outcome.
func (r *Rule) Count(o Outcome, reason string, n uint64) {
	if r.By == nil {
		r.By = map[Outcome]map[string]uint64{}
	}
	if r.By[o] == nil {
		r.By[o] = map[string]uint64{}
	}
	r.By[o][reason] += n
}

// numbers are the counters of a rule that only grow.
func (r *Rule) numbers() []*uint64 {
	return []*uint64{
		&r.Matched, &r.Delivered, &r.Failed, &r.Refused, &r.TimedOut, &r.Killed, &r.Dropped,
		&r.Dead, &r.Retried, &r.Spooled, &r.Panics,
	}
}

// Add adds what o counted: numbers and what waits are summed, of times the
// telling one stays.
func (r *Rule) Add(o *Rule) {
	to, from := r.numbers(), o.numbers()
	for i := range to {
		*to[i] += *from[i]
	}
	r.Redacted = sum(r.Redacted, o.Redacted)
	r.Reasons = sum(r.Reasons, o.Reasons)
	for outcome, reasons := range o.By {
		for reason, n := range reasons {
			r.Count(outcome, reason, n)
		}
	}
	r.Duration.Add(o.Duration)
	r.Lag.Add(o.Lag)
	r.Waiting += o.Waiting
	r.WaitingSince = earlier(r.WaitingSince, o.WaitingSince)
	r.PausedSince = earlier(r.PausedSince, o.PausedSince)
	r.OffSince = earlier(r.OffSince, o.OffSince)
	r.NextTry = earlier(r.NextTry, o.NextTry)
	r.Since = earlier(r.Since, o.Since)
	if o.LastErrorAt.After(r.LastErrorAt) {
		r.LastError, r.LastErrorAt = o.LastError, o.LastErrorAt
	}
	if o.LastDelivered.After(r.LastDelivered) {
		r.LastDelivered = o.LastDelivered
	}
	if o.Target != "" {
		r.Target = o.Target
	}
}

// subtract takes numbers back that are counted elsewhere now.
func (r *Rule) subtract(o *Rule) {
	from, what := r.numbers(), o.numbers()
	for i := range from {
		*from[i] -= min(*what[i], *from[i])
	}
	r.Redacted = less(r.Redacted, o.Redacted)
	r.Reasons = less(r.Reasons, o.Reasons)
	for outcome, reasons := range o.By {
		r.By[outcome] = less(r.By[outcome], reasons)
		if len(r.By[outcome]) == 0 {
			delete(r.By, outcome)
		}
	}
	r.Duration.subtract(o.Duration)
	r.Lag.subtract(o.Lag)
}

// settle drops what is true only while a dispatcher runs.
func (r *Rule) settle() {
	r.Waiting, r.WaitingSince = 0, time.Time{}
	r.PausedSince, r.NextTry, r.OffSince = time.Time{}, time.Time{}, time.Time{}
}

// Counts is a set of counters.
type Counts struct {
	// Started is when counting began, Updated when the file was written.
	Started time.Time `json:"started"`
	Updated time.Time `json:"updated"`
	// Records were read from spools; Damaged stretches of spools were passed over.
	Records uint64 `json:"records"`
	Damaged uint64 `json:"damaged,omitempty"`
	// Unwritten records were not taken into the spool: the disk was full.
	Unwritten uint64 `json:"unwritten,omitempty"`
	// Hooks splits the records that hooks wrote by section, Transcript those that
	// the transcript showed.
	Hooks      map[string]uint64 `json:"hook_events,omitempty"`
	Transcript map[string]uint64 `json:"transcript_records,omitempty"`
	Rules      map[string]*Rule  `json:"rules"`
}

// NewCounts returns empty counters.
func NewCounts(now time.Time) Counts {
	return Counts{Started: now.UTC(), Rules: map[string]*Rule{}}
}

// Rule returns the counters of a rule, making them when there are none.
func (c *Counts) Rule(id string) *Rule {
	r := c.Rules[id]
	if r == nil {
		r = &Rule{}
		c.Rules[id] = r
	}
	return r
}

// Add adds another set of counters.
func (c *Counts) Add(o Counts) {
	c.Records += o.Records
	c.Damaged += o.Damaged
	c.Unwritten += o.Unwritten
	c.Hooks = sum(c.Hooks, o.Hooks)
	c.Transcript = sum(c.Transcript, o.Transcript)
	c.Started = earlier(c.Started, o.Started)
	if o.Updated.After(c.Updated) {
		c.Updated = o.Updated
	}
	for id, r := range o.Rules {
		if r != nil {
			c.Rule(id).Add(r)
		}
	}
}

func (c *Counts) subtract(o Counts) {
	c.Records -= min(o.Records, c.Records)
	c.Damaged -= min(o.Damaged, c.Damaged)
	c.Unwritten -= min(o.Unwritten, c.Unwritten)
	c.Hooks = less(c.Hooks, o.Hooks)
	c.Transcript = less(c.Transcript, o.Transcript)
	for id, r := range o.Rules {
		if mine := c.Rules[id]; mine != nil && r != nil {
			mine.subtract(r)
		}
	}
}

// Waiting is how many records wait, for all rules together, and since when.
func (c *Counts) Waiting() (n uint64, since time.Time) {
	for _, r := range c.Rules {
		n += r.Waiting
		since = earlier(since, r.WaitingSince)
	}
	return n, since
}

// tidy makes decoded counters safe to work on.
func (c *Counts) tidy() {
	if c.Rules == nil {
		c.Rules = map[string]*Rule{}
	}
	maps.DeleteFunc(c.Rules, func(_ string, r *Rule) bool { return r == nil })
}

func sum(to, from map[string]uint64) map[string]uint64 {
	if to == nil {
		return maps.Clone(from)
	}
	for k, n := range from {
		to[k] += n
	}
	return to
}

// less is a without what is in b, and without zeros.
func less(a, b map[string]uint64) map[string]uint64 {
	for k, n := range b {
		if a[k] <= n {
			delete(a, k)
		} else {
			a[k] -= n
		}
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
