// Package rule is the actor of one rule: a bounded queue, and one record at a
// time through masking to the rule's target, in order (design §7). Where a target
// takes several at once, those that wait already go together.
package rule

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"ways/actors/deadletter"
	"ways/actors/delivery"
	"ways/actors/target"
	"ways/config/plan"
	"ways/hooks/dirs"
	"ways/hooks/failpoint"
	"ways/hooks/record"
	"ways/hooks/redact"
)

// maxPanics is how often one record may bring its rule's actor down before it is
// given up.
const maxPanics = 3

// mostTogether is how many records a target is given at once. It is little, since
// they share one deadline, and a rule that is stopped finishes them first.
const mostTogether = 32

// bytesTogether is how many bytes of records are given at once before no more are:
// they are in memory twice, for each of what may be hundreds of rules.
const bytesTogether = 64 << 10

// Seal makes the payload from a record: masked, or as it is.
type Seal func(record *redact.Shared, add redact.Envelope) redact.Payload

// Watchdog gives a dispatch its deadline; the watchdog actor is one.
type Watchdog interface {
	Watch(ctx context.Context, label string, timeout time.Duration) (context.Context, func())
}

// Meter counts what becomes of records; the meter actor is one.
type Meter interface {
	Delivered(ctx context.Context, rule string, a delivery.Arrival)
	Lost(ctx context.Context, rule string, loss delivery.Loss)
	// Retrying is a try that failed and will be repeated after wait.
	Retrying(ctx context.Context, rule string, loss delivery.Loss, wait time.Duration)
	// Dead is a record that was put aside.
	Dead(ctx context.Context, rule string, loss delivery.Loss)
}

// DeadLetters keeps what is given up; deadletter.Store is one.
type DeadLetters interface {
	Put(deadletter.Letter) error
}

// Options say what the actor works with.
type Options struct {
	ID      string
	Timeout time.Duration
	// Delivery is what the rule promises.
	Delivery plan.Delivery
	// MaxAge is how old a record of an at-least-once rule may grow; 0 for ever.
	MaxAge time.Duration
	// Dead keeps what an at-least-once rule gives up.
	Dead DeadLetters
	// Window is how many records wait in memory.
	Window int
	// Unordered says that the rule's records of one session come in no order.
	Unordered bool
	// Dir is the session's directory, for a rule whose records the hook's own
	// process may have handed out already; empty for an async rule.
	Dir string
	// Orphans, when set, ends what hooks' processes that died had started.
	Orphans func(ctx context.Context)
	Target  target.Target
	Seal    Seal
	// Quiet masks secrets in words that a consumer, or an error of the system, may
	// have put there; nil for none. It masks for a rule with `redact: none` too: what
	// the words go to is a log.
	Quiet    func(string) string
	Watchdog Watchdog
	Meter    Meter
	Acks     delivery.Acks
	Log      zerolog.Logger
}

// Rule is the actor.
type Rule struct {
	Options
	queue chan delivery.Item
	// hand are the records being dispatched, oldest first, and panics how often the
	// first has brought the actor down. They outlive a panic, which is why they are
	// not local to Serve; only Serve touches them.
	hand   []delivery.Item
	panics int
	// alone is how many of those in hand go one by one, since together they failed.
	alone int
	// sealed is the payload of the first record in hand; nil until it is made.
	sealed *redact.Payload
	// said is the reason last logged, and unsaid how often it came again.
	said   string
	unsaid int
}

// New returns the actor of one rule.
func New(o Options) *Rule {
	return &Rule{Options: o, queue: make(chan delivery.Item, max(o.Window, 1))}
}

// String names the actor.
func (r *Rule) String() string { return "rule/" + r.ID }

// TryOffer puts a record in the queue; false when it is full.
func (r *Rule) TryOffer(it delivery.Item) bool {
	select {
	case r.queue <- it:
		return true
	default:
		return false
	}
}

// Serve dispatches until ctx ends. What is in flight then is finished, within
// the rule's timeout.
func (r *Rule) Serve(ctx context.Context) error {
	for {
		if len(r.hand) == 0 {
			if err := ctx.Err(); err != nil {
				return errors.Join(err, r.Target.Close()) // select would pick either
			}
			select {
			case <-ctx.Done():
				return errors.Join(ctx.Err(), r.Target.Close())
			case it := <-r.queue:
				r.take(it)
			}
		}
		if way, ok := r.Target.(target.Batch); ok && len(r.hand) > 1 && r.alone == 0 {
			r.together(context.WithoutCancel(ctx), way)
		} else {
			// Every time Serve begins with a record in hand, that record brought the
			// actor down, or was with one that did.
			r.panics++
			lost, err := r.finish(ctx, r.hand[0])
			if err != nil {
				return errors.Join(err, r.Target.Close())
			}
			r.done(ctx, lost)
			r.alone = max(r.alone-1, 0)
		}
		if err := ctx.Err(); err != nil {
			return errors.Join(err, r.Target.Close())
		}
	}
}

// take begins with a record, and with what else waits if the target takes several
// at once.
func (r *Rule) take(it delivery.Item) {
	r.hand, r.alone, r.panics, r.sealed = append(r.hand[:0], it), 0, -1, nil
	if _, ok := r.Target.(target.Batch); !ok || r.Unordered || r.Dir != "" {
		return
	}
	for len(r.hand) < mostTogether {
		select {
		case it := <-r.queue:
			r.hand = append(r.hand, it)
		default:
			return
		}
	}
}

// done says that the first record in hand is finished with.
func (r *Rule) done(ctx context.Context, lost string) {
	r.Acks.Done(context.WithoutCancel(ctx), delivery.Done{Rule: r.ID, Seq: r.hand[0].Seq, Lost: lost})
	r.hand[0] = delivery.Item{}
	r.hand, r.panics, r.sealed = r.hand[1:], -1, nil
}

// together sends what is in hand at once. What is not accepted is left in hand, to
// go one by one: then a failure is one record's, and told and retried as ever.
func (r *Rule) together(ctx context.Context, way target.Batch) {
	r.alone = len(r.hand) // also should this panic
	if r.said != "" {
		return // the consumer has just failed
	}
	var ds []target.Dispatch
	for size, n := 0, 0; n < len(r.hand) && size < bytesTogether; n++ {
		it := r.hand[n]
		rec, err := it.Shared()
		if err != nil {
			break
		}
		d := r.dispatch(it, r.Seal(rec, redact.Envelope{Rule: r.ID, RuleSeq: it.RuleSeq}), 1)
		size += len(d.Body.Bytes())
		ds = append(ds, d)
	}
	if len(ds) < 2 {
		return
	}
	began := time.Now()
	guarded, release := r.Watchdog.Watch(ctx, r.String(), r.Timeout)
	accepted, err := way.DeliverAll(guarded, ds)
	release()
	failpoint.Here("rule.sent")
	took := time.Since(began)
	for _, d := range ds[:accepted] {
		it := r.hand[0]
		r.delivered(ctx, it, delivery.Arrival{Masked: d.Body.Counts(), Took: took, Lag: max(time.Since(it.Time()), 0)})
		r.done(ctx, "")
	}
	r.alone = len(r.hand)
	if err == nil {
		r.alone = 0
	}
}

// finish does with a record what the rule promises: one try for best effort, and
// for at-least-once as many as it takes. lost is the reason for which the record
// is lost to its consumer. An error: ctx ended first, and the record is still to
// be delivered.
func (r *Rule) finish(ctx context.Context, it delivery.Item) (lost string, err error) {
	tries, rests := 0, 0
	if r.Dir != "" {
		finished, lost, err := r.takeOver(ctx, &it)
		if finished || err != nil {
			return lost, err
		}
	}
	for {
		body, failed := r.try(context.WithoutCancel(ctx), it, tries+1)
		if failed == nil || !failed.untried {
			tries++
		}
		switch {
		case failed == nil:
			return "", nil
		case r.Delivery == plan.BestEffort:
			return r.lost(ctx, it, *failed), nil
		case !final(*failed) && r.expired(it):
			r.say(it, failed.Loss, 0)
			failed = r.tooOld(it, *failed)
		}
		if final(*failed) && r.bury(ctx, it, body, *failed, tries) {
			return "", nil
		}
		rests++
		if err := r.rest(ctx, it, *failed, rests); err != nil {
			return "", err
		}
	}
}

// try makes the record's payload and sends it once.
func (r *Rule) try(ctx context.Context, it delivery.Item, attempt int) (redact.Payload, *failure) {
	body, failed := r.seal(it)
	switch {
	case failed != nil:
	case r.said != "" && r.expired(it):
		// Its consumer has just failed, so it is not asked again.
		failed = r.tooOld(it, failure{})
		failed.untried = true
	default:
		failed = r.send(ctx, it, body, attempt)
	}
	return body, failed
}

// expired reports whether a record has waited for longer than the rule keeps one.
func (r *Rule) expired(it delivery.Item) bool {
	return r.MaxAge > 0 && r.Delivery == plan.AtLeastOnce && time.Since(it.Time()) > r.MaxAge
}

// tooOld is the failure of a record that has expired. It has been tried, or its
// consumer has failed just before: age alone gives nothing up, since a clock
// that was set forward makes everything old.
func (r *Rule) tooOld(it delivery.Item, last failure) *failure {
	words := fmt.Sprintf("not delivered within %s", r.MaxAge)
	if last.Words != "" {
		words += "; last: " + last.Words
	}
	return &failure{Loss: delivery.Loss{Kind: target.Refused, Reason: reasonExpired, Seq: it.Seq, Words: words, Took: last.Took}}
}

// Reasons of this package's own.
const (
	reasonExpired = "expired"
	reasonPanic   = "panic"
	reasonSpool   = "spool"
)

// final reports whether a failure means that this record will never be accepted.
// A refusal that is about the rule, not about the record, is none: the record is
// fine, and the rule waits for somebody to mend it.
func final(f failure) bool {
	if f.Kind != target.Refused {
		return false
	}
	switch f.Reason {
	case "missing_variable", "redirect",
		"bad_url", "bad_header", "bad_secret", "bad_path", "bad_cwd", "bad_env", "not_found", "not_executable",
		target.RuleOff,
		"is_symlink", "is_directory", "not_regular", "hard_linked", "not_directory", "permission", "name_too_long":
		return false
	}
	return true
}

// rest waits before the next try; n counts the rests of this record.
func (r *Rule) rest(ctx context.Context, it delivery.Item, f failure, n int) error {
	wait := backoff(n, f.retryAfter)
	if f.Kind == target.Unauthorized || (f.Kind == target.Refused && !final(f)) {
		wait = pause(n, f.retryAfter)
	}
	r.Meter.Retrying(ctx, r.ID, f.Loss, wait)
	r.say(it, f.Loss, wait)
	r.Acks.Resting(ctx, r.ID)
	timer := time.NewTimer(wait) // on the monotonic clock: a stepped one changes nothing
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// failure is a try that did not succeed.
type failure struct {
	delivery.Loss
	retryAfter time.Duration
	// untried: the record was not sent.
	untried bool
}

// seal makes the payload of the record in hand. A failure: there is none.
func (r *Rule) seal(it delivery.Item) (redact.Payload, *failure) {
	var body redact.Payload
	if r.sealed != nil {
		body = *r.sealed
	}
	if r.panics >= maxPanics {
		return body, &failure{Loss: delivery.Loss{
			Kind: target.Refused, Reason: reasonPanic, Seq: it.Seq,
			Words: fmt.Sprintf("record %d brought the rule down %d times and was given up", it.Seq, maxPanics),
		}}
	}
	if r.sealed == nil {
		rec, err := it.Shared()
		if err != nil {
			return body, &failure{Loss: delivery.Loss{Kind: target.Refused, Reason: reasonSpool, Seq: it.Seq, Words: err.Error()}, untried: true}
		}
		body = r.Seal(rec, redact.Envelope{Rule: r.ID, RuleSeq: it.RuleSeq})
		r.sealed = &body
	}
	return body, nil
}

// send hands the payload to the target once. It is finished within the rule's
// timeout.
func (r *Rule) send(ctx context.Context, it delivery.Item, body redact.Payload, attempt int) *failure {
	began := time.Now()
	guarded, release := r.Watchdog.Watch(ctx, r.String(), r.Timeout)
	err := r.Target.Deliver(guarded, r.dispatch(it, body, attempt))
	release()
	failpoint.Here("rule.sent")
	if err == nil {
		r.delivered(ctx, it, delivery.Arrival{Masked: body.Counts(), Took: time.Since(began), Lag: max(time.Since(it.Time()), 0)})
		return nil
	}
	f := failureOf(it, err, time.Since(began))
	if r.Quiet != nil {
		f.Words = r.Quiet(f.Words)
	}
	return &f
}

// dispatch is a record on its way to the target.
func (r *Rule) dispatch(it delivery.Item, body redact.Payload, attempt int) target.Dispatch {
	return target.Dispatch{
		ID: DeliveryID(it.Session, r.ID, it.Seq), Rule: r.ID, Session: dirs.SessionLabel(it.Session), Seq: it.Seq, Attempt: attempt,
		Unordered: r.Unordered, Body: body,
	}
}

// failureOf is what a target's error means for a record.
func failureOf(it delivery.Item, err error, took time.Duration) failure {
	f := failure{Loss: delivery.Loss{Kind: target.KindOf(err), Reason: "unclassified", Seq: it.Seq, Took: took}}
	if err != nil {
		f.Words = err.Error()
	}
	var te *target.Error
	if errors.As(err, &te) {
		f.Reason, f.retryAfter = te.Reason, te.RetryAfter
	}
	return f
}

// bury puts a record aside that will never be accepted. It reports whether that
// worked: what cannot be put aside is not given up.
func (r *Rule) bury(ctx context.Context, it delivery.Item, body redact.Payload, f failure, tries int) bool {
	err := r.Dead.Put(deadletter.Letter{
		ID: DeliveryID(it.Session, r.ID, it.Seq), Rule: r.ID, Session: dirs.SessionLabel(it.Session), Seq: it.Seq, At: time.Now().UTC(),
		Reason: f.Reason, Words: f.Words, Attempts: tries, Body: orNull(body.Bytes()),
	})
	if err != nil {
		r.Log.Error().Str("rule", r.ID).Uint64("seq", it.Seq).Err(err).Msg("dead letter not kept; trying on")
		return false
	}
	r.Meter.Dead(ctx, r.ID, f.Loss)
	r.Log.Error().Str("rule", r.ID).Uint64("seq", it.Seq).Str("reason", f.Reason).Str("words", f.Words).
		Msg("record put aside; ways sensors dead shows it")
	return true
}

func orNull(b []byte) []byte {
	if b == nil {
		return []byte("null")
	}
	return b
}

func (r *Rule) delivered(ctx context.Context, it delivery.Item, a delivery.Arrival) {
	r.Meter.Delivered(ctx, r.ID, a)
	if r.said != "" {
		r.Log.Info().Str("rule", r.ID).Uint64("seq", it.Seq).Int("failed_before", r.unsaid+1).Msg("delivered again")
		r.said, r.unsaid = "", 0
	}
}

// lost counts a record that did not arrive, and returns why. A lost gap record is
// not told of in turn: that would never end.
func (r *Rule) lost(ctx context.Context, it delivery.Item, f failure) string {
	r.Meter.Lost(ctx, r.ID, f.Loss)
	r.say(it, f.Loss, 0)
	if rec, err := it.Record(); err == nil && delivery.SectionOf(rec) == record.SectionGap {
		return ""
	}
	return f.Reason
}

// say logs a failure, unless the one before it was of the same kind.
func (r *Rule) say(it delivery.Item, l delivery.Loss, next time.Duration) {
	if l.Reason == r.said {
		r.unsaid++
		return
	}
	r.said, r.unsaid = l.Reason, 0
	line := r.Log.Warn().Str("rule", r.ID).Uint64("seq", it.Seq).Str("kind", string(l.Kind)).Str("reason", l.Reason).
		Str("error", l.Words)
	if next > 0 {
		line = line.Dur("next_try_ms", next)
	}
	line.Msg("record not delivered")
}

// DeliveryID is the idempotency key of one record to one rule (design §9). It
// holds no character that a header or a file name would have to escape.
func DeliveryID(session, rule string, seq uint64) string {
	return dirs.SessionName(session) + ":" + rule + ":" + strconv.FormatUint(seq, 10)
}
