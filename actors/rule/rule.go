// Package rule is the actor of one rule: a bounded queue, and one record at a
// time through masking to the rule's target, in order (design §7).
package rule

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"ways/actors/delivery"
	"ways/actors/target"
	"ways/hooks/dirs"
	"ways/hooks/redact"
)

// maxPanics is how often one record may bring its rule's actor down before it is
// given up.
const maxPanics = 3

// Seal makes the payload from a record: masked, or as it is.
type Seal func(record []byte, add redact.Envelope) redact.Payload

// Watchdog gives a dispatch its deadline; the watchdog actor is one.
type Watchdog interface {
	Watch(ctx context.Context, label string, timeout time.Duration) (context.Context, func())
}

// Meter counts what becomes of records; the meter actor is one.
type Meter interface {
	Delivered(ctx context.Context, rule string, masked map[string]int)
	Lost(ctx context.Context, rule string, loss delivery.Loss)
}

// Options say what the actor works with.
type Options struct {
	ID      string
	Timeout time.Duration
	// Window is how many records wait in memory.
	Window int
	// Dir is the session's directory, for a rule whose records the hook's own
	// process may have handed out already; empty for an async rule.
	Dir      string
	Target   target.Target
	Seal     Seal
	Watchdog Watchdog
	Meter    Meter
	Acks     delivery.Acks
	Log      zerolog.Logger
}

// Rule is the actor.
type Rule struct {
	Options
	queue chan delivery.Item
	// hand is the record being dispatched and tries how often it was begun. They
	// outlive a panic, which is why they are not local to Serve; only Serve
	// touches them.
	hand  *delivery.Item
	tries int
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
		if r.hand == nil {
			if err := ctx.Err(); err != nil {
				return errors.Join(err, r.Target.Close()) // select would pick either
			}
			select {
			case <-ctx.Done():
				return errors.Join(ctx.Err(), r.Target.Close())
			case it := <-r.queue:
				r.hand, r.tries = &it, 0
			}
		}
		r.tries++
		if r.tries > maxPanics {
			r.Meter.Lost(ctx, r.ID, delivery.Loss{
				Kind: target.Refused, Reason: "panic", Seq: r.hand.Seq,
				Words: fmt.Sprintf("record %d brought the rule down %d times and was given up", r.hand.Seq, maxPanics),
			})
		} else if err := r.dispatch(ctx); err != nil {
			return errors.Join(err, r.Target.Close())
		}
		r.Acks.Done(context.WithoutCancel(ctx), delivery.Done{Rule: r.ID, Seq: r.hand.Seq})
		r.hand = nil
	}
}

// dispatch sends the record in hand once, unless the hook's own process is known
// to be finished with it. An error: ctx ended before that was known.
func (r *Rule) dispatch(ctx context.Context) error {
	it := *r.hand
	if r.Dir != "" {
		finished, err := r.takeOver(ctx, &it)
		if finished || err != nil {
			return err
		}
	}
	// Once begun it is finished, within the rule's timeout.
	ctx = context.WithoutCancel(ctx)
	record, err := it.Record()
	if err != nil {
		r.lost(ctx, it, 0, &target.Error{Kind: target.Refused, Reason: "spool", Err: err})
		return nil
	}
	body := r.Seal(record, redact.Envelope{Rule: r.ID, RuleSeq: it.RuleSeq})
	began := time.Now()
	guarded, release := r.Watchdog.Watch(ctx, r.String(), r.Timeout)
	err = r.Target.Deliver(guarded, target.Dispatch{
		ID: DeliveryID(it.Session, r.ID, it.Seq), Rule: r.ID, Session: it.Session, Seq: it.Seq, Attempt: 1, Body: body,
	})
	release()
	if err != nil {
		r.lost(ctx, it, time.Since(began), err)
		return nil
	}
	r.delivered(ctx, it, body.Counts())
	return nil
}

func (r *Rule) delivered(ctx context.Context, it delivery.Item, masked map[string]int) {
	r.Meter.Delivered(ctx, r.ID, masked)
	if r.said != "" {
		r.Log.Info().Str("rule", r.ID).Uint64("seq", it.Seq).Int("failed_before", r.unsaid+1).Msg("delivered again")
		r.said, r.unsaid = "", 0
	}
}

// lost counts a record that did not arrive, and logs it unless the one before it
// went the same way.
func (r *Rule) lost(ctx context.Context, it delivery.Item, took time.Duration, err error) {
	kind, reason := target.KindOf(err), "unclassified"
	var te *target.Error
	if errors.As(err, &te) {
		reason = te.Reason
	}
	r.Meter.Lost(ctx, r.ID, delivery.Loss{Kind: kind, Reason: reason, Words: err.Error(), Seq: it.Seq, Took: took})
	if reason == r.said {
		r.unsaid++
		return
	}
	r.said, r.unsaid = reason, 0
	r.Log.Warn().Str("rule", r.ID).Uint64("seq", it.Seq).Str("kind", string(kind)).Str("reason", reason).
		Err(err).Msg("record not delivered")
}

// DeliveryID is the idempotency key of one record to one rule (design §9). It
// holds no character that a header or a file name would have to escape.
func DeliveryID(session, rule string, seq uint64) string {
	return dirs.SessionName(session) + ":" + rule + ":" + strconv.FormatUint(seq, 10)
}
