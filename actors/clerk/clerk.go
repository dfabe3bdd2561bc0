// Package clerk is the actor that writes down, on the tickets of a hook event's
// records, what became of each with each blocking rule. Rules take it for their
// meter and for the spool actor.
package clerk

import (
	"context"
	"time"

	"ways/actors/delivery"
	"ways/actors/target"
	"ways/hooks/ticket"
)

// Clerk is the actor.
type Clerk struct {
	mailbox chan func(*book)
}

// book is the clerk's own state.
type book struct {
	// said is what each rule has said of the record it is at.
	said map[string]delivery.Outcome
	open map[delivery.Done]entry
	// waiting is told when nothing is open.
	waiting []chan<- struct{}
}

type entry struct {
	begun  delivery.Outcome
	ticket ticket.Ticket
}

// New returns a clerk with nothing open.
func New() *Clerk { return &Clerk{mailbox: make(chan func(*book), 16)} }

// String names the actor.
func (c *Clerk) String() string { return "clerk" }

// Serve writes until ctx ends.
func (c *Clerk) Serve(ctx context.Context) error {
	b := &book{said: map[string]delivery.Outcome{}, open: map[delivery.Done]entry{}}
	for {
		select {
		case do := <-c.mailbox:
			do(b)
			if len(b.open) == 0 {
				for _, w := range b.waiting {
					close(w)
				}
				b.waiting = nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *Clerk) send(ctx context.Context, do func(*book)) {
	select {
	case c.mailbox <- do:
	case <-ctx.Done():
	}
}

// Begin writes down that a rule is about to be handed a record. An error is the
// ticket's: nothing was written, and the record is not to be handed out.
func (c *Clerk) Begin(begun delivery.Outcome, seq uint64, t ticket.Ticket) error {
	if err := begun.Note(t); err != nil {
		return err
	}
	c.mailbox <- func(b *book) {
		b.open[delivery.Done{Rule: begun.Rule, Seq: seq}] = entry{begun, t}
	}
	return nil
}

// Wait returns when every record begun is finished; ctx's cause when that is not
// so in time.
func (c *Clerk) Wait(ctx context.Context) error {
	all := make(chan struct{})
	c.send(ctx, func(b *book) { b.waiting = append(b.waiting, all) })
	select {
	case <-all:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Delivered is what a rule says when its consumer accepted the record.
func (c *Clerk) Delivered(ctx context.Context, rule string, a delivery.Arrival) {
	c.send(ctx, func(b *book) { b.said[rule] = delivery.Outcome{Redacted: a.Masked, Took: a.Took, Lag: a.Lag} })
}

// Lost is what a rule says when its consumer did not.
func (c *Clerk) Lost(ctx context.Context, rule string, loss delivery.Loss) {
	c.send(ctx, func(b *book) {
		b.said[rule] = delivery.Outcome{Kind: string(loss.Kind), Reason: loss.Reason, Words: loss.Words, Took: loss.Took}
	})
}

// Retrying is what an at-least-once rule says of a try that failed. Here there is
// one try: blocking rules run as best effort, and the dispatcher tries on.
func (c *Clerk) Retrying(context.Context, string, delivery.Loss, time.Duration) {}

// Dead is never said here, for the same reason.
func (c *Clerk) Dead(context.Context, string, delivery.Loss) {}

// Resting is never said here, for the same reason.
func (c *Clerk) Resting(context.Context, string) {}

// Done writes what the rule said last on the record's ticket.
func (c *Clerk) Done(ctx context.Context, d delivery.Done) {
	c.send(ctx, func(b *book) {
		d.Lost = ""
		e, ok := b.open[d]
		if !ok {
			return
		}
		delete(b.open, d)
		o := b.said[d.Rule]
		if o.Reason == target.Cancelled {
			return // the hook was taken back, so the record is the dispatcher's
		}
		o.Rule, o.RuleSeq, o.Finished = d.Rule, e.begun.RuleSeq, true
		// A note that cannot be written leaves the record to the dispatcher: it is
		// handed out twice rather than not at all.
		_ = o.Note(e.ticket)
	})
}
