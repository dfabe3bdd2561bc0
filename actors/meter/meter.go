// Package meter is the actor that counts: it owns a session's counters and
// keeps them on disk.
package meter

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"ways/actors/target"
	"ways/metrics/counters"
)

// saveEvery bounds how often the counters are written while they change.
const saveEvery = time.Second

// Meter is the actor. Its methods may be called from any goroutine.
type Meter struct {
	dir     string
	log     zerolog.Logger
	mailbox chan func(*counters.Session)
	flushes chan chan error
	// counts survives a restart of Serve; only Serve touches it.
	counts *counters.Session
}

// New returns the meter of a session directory, going on from the counters that
// an earlier dispatcher left there.
func New(dir, session string, log zerolog.Logger) *Meter {
	counts, err := counters.Load(dir)
	if err != nil {
		counts = counters.New(session, time.Now())
	}
	return &Meter{
		dir: dir, log: log, counts: counts,
		mailbox: make(chan func(*counters.Session), 1024),
		flushes: make(chan chan error),
	}
}

// String names the actor.
func (m *Meter) String() string { return "meter" }

// Serve counts until ctx ends, and writes what is left then.
func (m *Meter) Serve(ctx context.Context) error {
	dirty := false
	var timer <-chan time.Time
	save := func() error {
		timer = nil
		if !dirty {
			return nil
		}
		err := counters.Save(m.dir, m.counts, time.Now())
		if err != nil {
			m.log.Error().Err(err).Msg("counters not saved")
			return err
		}
		dirty = false
		return nil
	}
	apply := func(change func(*counters.Session)) {
		change(m.counts)
		dirty = true
		if timer == nil {
			timer = time.After(saveEvery)
		}
	}
	drain := func() {
		for {
			select {
			case change := <-m.mailbox:
				apply(change)
			default:
				return
			}
		}
	}
	for {
		select {
		case change := <-m.mailbox:
			apply(change)
		case reply := <-m.flushes:
			drain()
			reply <- save()
		case <-timer:
			_ = save()
		case <-ctx.Done():
			drain()
			_ = save()
			return ctx.Err()
		}
	}
}

// Flush writes everything counted so far to disk.
func (m *Meter) Flush(ctx context.Context) error {
	reply := make(chan error, 1)
	select {
	case m.flushes <- reply:
		return <-reply
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send hands a change over. The meter always takes it soon; after the tree has
// stopped nobody does, and the change is lost with the process.
func (m *Meter) send(ctx context.Context, change func(*counters.Session)) {
	select {
	case m.mailbox <- change: // also when ctx has ended: the meter stops last
		return
	default:
	}
	select {
	case m.mailbox <- change:
	case <-ctx.Done():
	}
}

// Matched counts a record handed to a rule.
func (m *Meter) Matched(ctx context.Context, rule string) {
	m.send(ctx, func(s *counters.Session) {
		r := s.Rule(rule)
		r.Matched++
		if r.Since.IsZero() {
			r.Since = time.Now().UTC()
		}
	})
}

// Read counts records and damage seen in the spool.
func (m *Meter) Read(ctx context.Context, records, damaged uint64) {
	m.send(ctx, func(s *counters.Session) {
		s.Records += records
		s.Damaged += damaged
	})
}

// Delivered counts a record that a rule's consumer accepted, and what was masked
// in it.
func (m *Meter) Delivered(ctx context.Context, rule string, masked map[string]int) {
	m.send(ctx, func(s *counters.Session) {
		r := s.Rule(rule)
		r.Delivered++
		for kind, n := range masked {
			if r.Redacted == nil {
				r.Redacted = map[string]uint64{}
			}
			r.Redacted[kind] += uint64(n)
		}
	})
}

// Lost counts a record that a rule's consumer did not get.
func (m *Meter) Lost(ctx context.Context, rule string, kind target.Kind, reason, words string) {
	m.send(ctx, func(s *counters.Session) {
		r := s.Rule(rule)
		switch kind {
		case target.Refused, target.Unauthorized:
			r.Refused++
		case target.TimedOut:
			r.TimedOut++
		case target.Killed:
			r.Killed++
		default:
			r.Failed++
		}
		note(r, reason, words)
	})
}

// Dropped counts records that a rule had no room for.
func (m *Meter) Dropped(ctx context.Context, rule, reason string, n uint64) {
	m.send(ctx, func(s *counters.Session) {
		r := s.Rule(rule)
		r.Dropped += n
		if r.Reasons == nil {
			r.Reasons = map[string]uint64{}
		}
		r.Reasons[reason] += n
	})
}

// Panicked counts a restart of a rule's actor.
func (m *Meter) Panicked(ctx context.Context, rule, words string) {
	m.send(ctx, func(s *counters.Session) {
		r := s.Rule(rule)
		r.Panics++
		note(r, "panic", words)
	})
}

// maxReasons bounds the reasons kept for one rule: they are words of our own,
// and exit codes.
const maxReasons = 64

func note(r *counters.Rule, reason, words string) {
	if r.Reasons == nil {
		r.Reasons = map[string]uint64{}
	}
	if _, known := r.Reasons[reason]; !known && len(r.Reasons) >= maxReasons {
		reason = "other"
	}
	r.Reasons[reason]++
	r.LastError, r.LastErrorAt = words, time.Now().UTC()
}

// Waiting sets how many records wait for a rule and since when.
func (m *Meter) Waiting(ctx context.Context, rule string, n uint64, since time.Time) {
	m.send(ctx, func(s *counters.Session) {
		r := s.Rule(rule)
		r.Waiting, r.WaitingSince = n, since.UTC()
		if n == 0 {
			r.WaitingSince = time.Time{}
		}
	})
}

// Describe notes where rules send and for which project.
func (m *Meter) Describe(ctx context.Context, project string, targets map[string]string) {
	targets = maps.Clone(targets)
	m.send(ctx, func(s *counters.Session) {
		s.Project = project
		for _, id := range slices.Sorted(maps.Keys(targets)) {
			s.Rule(id).Target = targets[id]
		}
	})
}
