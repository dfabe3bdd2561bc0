// Package meter is the actor that counts: it owns a session's counters and
// keeps them on disk.
package meter

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"ways/actors/delivery"
	"ways/actors/target"
	"ways/hooks/spool"
	"ways/metrics/counters"
	"ways/metrics/events"
)

// saveEvery bounds how often the counters are written while they change.
const saveEvery = time.Second

// heartbeat is how often the counters are written while nothing changes, so that
// a file that was taken for a dead dispatcher's comes back.
const heartbeat = time.Minute

// Meter is the actor. Its methods may be called from any goroutine.
type Meter struct {
	log     zerolog.Logger
	record  events.Log
	mailbox chan func(*book)
	flushes chan chan error
	// counts and unwritten survive a restart of Serve; only Serve touches them.
	counts    *counters.Life
	unwritten []events.Event
}

// New returns the meter of a session directory, <state>/sessions/<name>. What goes
// wrong is told to the event log too.
func New(dir, session string, record events.Log, log zerolog.Logger) *Meter {
	state := filepath.Dir(filepath.Dir(dir))
	if filepath.Base(filepath.Dir(dir)) != "sessions" {
		state = dir // a directory by itself
	}
	counts := counters.NewStore(state).Open(filepath.Base(dir), session, time.Now())
	// What the cursors are past was counted, if by a dispatcher that has left.
	if done, err := spool.LoadCursors(dir); err == nil {
		counts.Seq = done.Read.Seq
		for rule, c := range done.Rules {
			counts.Mark(rule, c.RuleSeq)
		}
	}
	if err := counts.Begin(time.Now()); err != nil {
		log.Error().Err(err).Msg("counters of earlier dispatchers not added to the totals yet")
	}
	return &Meter{
		log: log, record: record, counts: counts,
		mailbox: make(chan func(*book), 1024),
		flushes: make(chan chan error),
	}
}

// book is what one life of Serve works on.
type book struct {
	*counters.Life
	// happened are the events since the last save. Equal ones are one, with a
	// count, so that a consumer that is down writes a line a second and no more.
	happened map[events.Event]*happening
}

type happening struct {
	at    time.Time
	seq   uint64
	count uint64
	took  time.Duration
	words string
}

// note adds one event, or n more of one that is there.
func (b *book) note(e events.Event, seq, n uint64, took time.Duration, words string) {
	h := b.happened[e]
	if h == nil {
		h = &happening{at: time.Now().UTC(), seq: seq}
		b.happened[e] = h
	}
	h.count += n
	h.took, h.words = took, words
}

// take returns the events since the last time, in a stable order.
func (b *book) take() []events.Event {
	var out []events.Event
	for e, h := range b.happened {
		e.TS = h.at.Format(time.RFC3339Nano)
		e.Session, e.Project, e.Detail = b.Session.Session, b.Project, h.words
		e.Count = strconv.FormatUint(h.count, 10)
		if h.seq > 0 {
			e.Seq = strconv.FormatUint(h.seq, 10)
		}
		if h.took > 0 {
			e.Duration = strconv.FormatFloat(float64(h.took)/float64(time.Millisecond), 'f', 3, 64)
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b events.Event) int {
		return cmp.Or(cmp.Compare(a.TS, b.TS), cmp.Compare(a.Sensor, b.Sensor), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Event, b.Event), cmp.Compare(a.Reason, b.Reason))
	})
	clear(b.happened)
	return out
}

// about is an event of a rule.
func about(kind, rule, reason string) events.Event {
	sensor, name, _ := strings.Cut(rule, "/")
	return events.Event{Event: kind, Sensor: sensor, Rule: name, Reason: reason}
}

// String names the actor.
func (m *Meter) String() string { return "meter" }

// maxUnwritten bounds the events that are kept while the log cannot be written.
const maxUnwritten = 1000

// tell writes the events since the last time; what cannot be written is tried
// again with the next ones.
func (m *Meter) tell(b *book) {
	m.unwritten = append(m.unwritten, b.take()...)
	err := m.record.Append(time.Now(), m.unwritten...)
	if err == nil {
		m.unwritten = nil
		return
	}
	m.log.Error().Err(err).Int("events", len(m.unwritten)).Msg("events not written yet")
	if over := len(m.unwritten) - maxUnwritten; over > 0 {
		m.log.Error().Int("events", over).Msg("events given up")
		m.unwritten = m.unwritten[over:]
	}
}

// Serve counts until ctx ends, and writes what is left then.
func (m *Meter) Serve(ctx context.Context) error {
	b := &book{m.counts, map[events.Event]*happening{}}
	dirty := false
	var timer <-chan time.Time
	save := func() error {
		timer = nil
		if !dirty && len(m.unwritten) == 0 {
			return nil
		}
		m.tell(b)
		err := m.counts.Save(time.Now())
		if err != nil {
			m.log.Error().Err(err).Msg("counters not saved yet")
			timer = time.After(saveEvery)
			return err
		}
		dirty = false
		if len(m.unwritten) > 0 {
			timer = time.After(saveEvery)
		}
		return nil
	}
	apply := func(change func(*book)) {
		change(b)
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
	dirty = true
	_ = save() // so that the dispatcher is seen from its first second on
	heart := time.NewTicker(heartbeat)
	defer heart.Stop()
	for {
		select {
		case change := <-m.mailbox:
			apply(change)
		case reply := <-m.flushes:
			drain()
			reply <- save()
		case <-timer:
			_ = save()
		case <-heart.C:
			dirty = true
			_ = save()
		case <-ctx.Done():
			drain()
			if dirty || len(m.unwritten) > 0 {
				m.tell(b)
			}
			if err := m.counts.End(time.Now()); err != nil {
				m.log.Error().Err(err).Msg("counters not added to the totals yet")
			}
			return ctx.Err()
		}
	}
}

// Flush writes everything counted so far to disk.
func (m *Meter) Flush(ctx context.Context) error {
	reply := make(chan error, 1)
	select {
	case m.flushes <- reply:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send hands a change over. The meter always takes it soon; after the tree has
// stopped nobody does, and the change is lost with the process.
func (m *Meter) send(ctx context.Context, change func(*book)) {
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

// Matched says that a rule was handed its record number ruleSeq. A record that is
// handed out again, after a restart, has the number it had.
func (m *Meter) Matched(ctx context.Context, rule string, ruleSeq uint64) {
	m.send(ctx, func(s *book) { s.CountMatched(rule, ruleSeq, time.Now()) })
}

// Read says that the spool was read up to record seq, which is of that section,
// and came from a hook or from elsewhere.
func (m *Meter) Read(ctx context.Context, seq uint64, section, source string) {
	m.send(ctx, func(s *book) { s.CountRead(seq, section, source) })
}

// Damaged counts a stretch of the spool that held no whole record.
func (m *Meter) Damaged(ctx context.Context) {
	m.send(ctx, func(s *book) {
		s.Damaged++
		s.note(events.Event{Event: events.Damage}, 0, 1, 0, "")
	})
}

// Unwritten counts records that hooks could not write to the spool.
func (m *Meter) Unwritten(ctx context.Context, n uint64) {
	m.send(ctx, func(s *book) {
		s.Counts.Unwritten += n
		s.note(events.Event{Event: events.Gap, Reason: "unwritten"}, 0, n, 0, "")
	})
}

// Delivered counts a record that a rule's consumer accepted, what was masked in
// it, and how long it took.
func (m *Meter) Delivered(ctx context.Context, rule string, a delivery.Arrival) {
	m.send(ctx, func(s *book) {
		r := s.Rule(rule)
		r.Delivered++
		r.LastDelivered = time.Now().UTC()
		r.Duration.Observe(a.Took)
		r.Lag.Observe(a.Lag)
		r.PausedSince, r.NextTry, r.OffSince = time.Time{}, time.Time{}, time.Time{}
		for kind, n := range a.Masked {
			if r.Redacted == nil {
				r.Redacted = map[string]uint64{}
			}
			r.Redacted[kind] += uint64(n)
		}
	})
}

// Lost counts a record that a rule's consumer did not get.
func (m *Meter) Lost(ctx context.Context, rule string, loss delivery.Loss) {
	m.send(ctx, func(s *book) {
		r := s.Rule(rule)
		kind := events.Failure
		switch loss.Kind {
		case target.Refused, target.Unauthorized:
			r.Refused++
			r.Count(counters.Refused, loss.Reason, 1)
			kind = events.Refusal
		case target.TimedOut:
			r.TimedOut++
			kind = events.Timeout
		case target.Killed:
			r.Killed++
			kind = events.Kill
		default:
			r.Failed++
			r.Count(counters.Failed, loss.Reason, 1)
		}
		note(r, loss)
		s.note(about(kind, rule, loss.Reason), loss.Seq, 1, loss.Took, loss.Words)
	})
}

// Retrying counts a try that failed and will be repeated.
func (m *Meter) Retrying(ctx context.Context, rule string, loss delivery.Loss, wait time.Duration) {
	m.send(ctx, func(s *book) {
		r := s.Rule(rule)
		r.Retried++
		r.Count(counters.Retried, loss.Reason, 1)
		kind := events.Retry
		since := (*time.Time)(nil)
		switch {
		case loss.Reason == target.RuleOff:
			kind, since = events.Pause, &r.OffSince
			r.PausedSince = time.Time{}
		case loss.Kind == target.Unauthorized, loss.Kind == target.Refused:
			// Somebody has to mend a credential, or the rule.
			kind, since = events.Pause, &r.PausedSince
			r.OffSince = time.Time{}
		default:
			r.OffSince = time.Time{}
		}
		if since != nil && since.IsZero() {
			*since = time.Now().UTC()
		}
		r.NextTry = time.Now().Add(wait).UTC()
		note(r, loss)
		s.note(about(kind, rule, loss.Reason), loss.Seq, 1, loss.Took, loss.Words)
	})
}

// Dead counts a record that was put aside.
func (m *Meter) Dead(ctx context.Context, rule string, loss delivery.Loss) {
	m.send(ctx, func(s *book) {
		r := s.Rule(rule)
		r.Dead++
		r.Count(counters.Dead, loss.Reason, 1)
		note(r, loss)
		s.note(about(events.DeadLetter, rule, loss.Reason), loss.Seq, 1, loss.Took, loss.Words)
	})
}

// Dropped counts records that a rule had no room for.
func (m *Meter) Dropped(ctx context.Context, rule, reason string, n uint64) {
	m.send(ctx, func(s *book) {
		s.note(about(events.Drop, rule, reason), 0, n, 0, "")
		r := s.Rule(rule)
		r.Dropped += n
		r.Count(counters.Dropped, reason, n)
		if r.Reasons == nil {
			r.Reasons = map[string]uint64{}
		}
		r.Reasons[reason] += n
	})
}

// Panicked counts a restart of a rule's actor.
func (m *Meter) Panicked(ctx context.Context, rule, words string) {
	m.send(ctx, func(s *book) {
		r := s.Rule(rule)
		r.Panics++
		note(r, delivery.Loss{Reason: "panic", Words: words})
		s.note(about(events.Panic, rule, "panic"), 0, 1, 0, words)
	})
}

func note(r *counters.Rule, loss delivery.Loss) {
	if r.Reasons == nil {
		r.Reasons = map[string]uint64{}
	}
	r.Reasons[loss.Reason]++
	r.LastError, r.LastErrorAt = loss.Words, time.Now().UTC()
	if loss.Took > 0 {
		r.Duration.Observe(loss.Took)
	}
}

// Spooled counts that a rule fell behind: records wait for it on disk from seq on.
func (m *Meter) Spooled(ctx context.Context, rule string, seq uint64) {
	m.send(ctx, func(s *book) {
		s.Rule(rule).Spooled++
		s.note(about(events.Spool, rule, "behind"), seq, 1, 0, "")
	})
}

// Waiting sets how many records wait for a rule and since when.
func (m *Meter) Waiting(ctx context.Context, rule string, n uint64, since time.Time) {
	m.send(ctx, func(s *book) {
		r := s.Rule(rule)
		r.Waiting, r.WaitingSince = n, since.UTC()
		if n == 0 {
			r.WaitingSince, r.OffSince = time.Time{}, time.Time{}
		}
	})
}

// Happened notes an event of the dispatcher itself.
func (m *Meter) Happened(ctx context.Context, kind, reason string) {
	m.send(ctx, func(s *book) { s.note(events.Event{Event: kind, Reason: reason}, 0, 1, 0, "") })
}

// Describe notes where rules send and for which project.
func (m *Meter) Describe(ctx context.Context, project string, targets map[string]string) {
	targets = maps.Clone(targets)
	m.send(ctx, func(s *book) {
		s.Project = project
		for _, id := range slices.Sorted(maps.Keys(targets)) {
			s.Rule(id).Target = targets[id]
		}
	})
}
