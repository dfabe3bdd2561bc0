// Package courier is the actor that takes chains' checkpoints to other rules'
// targets (docs/chain.md), so that they are where whoever can change a log
// cannot change them too.
//
// It holds up no rule: a checkpoint is handed over without waiting. Of one chain
// only the latest is kept, since a checkpoint covers all records before it; one
// that did not arrive is tried again until a later one takes its place. What is
// undelivered when the dispatcher ends is in the state directory alone.
package courier

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"ways/actors/target"
	"ways/config/plan"
	"ways/hooks/redact"
)

const (
	// mailbox is how many checkpoints wait to be looked at.
	mailbox = 64
	// pause is how long to wait before a checkpoint is tried again.
	pause = time.Minute
)

// Parcel is one checkpoint on its way.
type Parcel struct {
	// Chain is the chain's name; a later parcel of it replaces an earlier one.
	Chain string
	// To is the rule whose target gets it.
	To plan.Rule
	// ID is the same over all tries.
	ID      string
	Session string
	Record  []byte
}

// Options say what the actor works with.
type Options struct {
	// Make makes the way out of a rule.
	Make   func(plan.Rule) (target.Target, error)
	Masker *redact.Masker
	Log    zerolog.Logger
}

// Courier is the actor.
type Courier struct {
	Options
	mail chan Parcel
	// waiting, ways and tries belong to Serve, and outlive a restart of it.
	waiting map[string]Parcel
	tries   map[string]int
}

// New returns the actor.
func New(o Options) *Courier {
	return &Courier{Options: o, mail: make(chan Parcel, mailbox), waiting: map[string]Parcel{}, tries: map[string]int{}}
}

// String names the actor.
func (c *Courier) String() string { return "courier" }

// Post hands a checkpoint over; false when too many wait already. It never waits.
func (c *Courier) Post(p Parcel) bool {
	select {
	case c.mail <- p:
		return true
	default:
		return false
	}
}

// Serve delivers until ctx ends; then it tries each one that is left once.
func (c *Courier) Serve(ctx context.Context) error {
	// It runs only while something waits for another try.
	again := time.NewTimer(pause)
	defer again.Stop()
	if len(c.waiting) == 0 {
		again.Stop()
	}
	for {
		select {
		case <-ctx.Done():
			for {
				select {
				case p := <-c.mail:
					c.waiting[p.Chain] = p
					continue
				default:
				}
				c.deliver(ctx)
				return ctx.Err()
			}
		case p := <-c.mail:
			c.waiting[p.Chain] = p
			if len(c.mail) > 0 {
				continue
			}
			c.deliver(ctx)
		case <-again.C:
			c.deliver(ctx)
		}
		if len(c.waiting) > 0 {
			again.Reset(pause)
		}
	}
}

// deliver tries everything that waits.
func (c *Courier) deliver(ctx context.Context) {
	for name, p := range c.waiting {
		c.tries[name]++
		if err := c.send(ctx, p, c.tries[name]); err != nil {
			c.Log.Warn().Str("rule", p.To.ID).Str("chain", name).Int("attempt", c.tries[name]).Err(err).Msg("checkpoint not delivered")
			continue
		}
		delete(c.waiting, name)
		delete(c.tries, name)
	}
}

func (c *Courier) send(ctx context.Context, p Parcel, attempt int) (err error) {
	way, err := c.Make(p.To)
	if err != nil {
		return fmt.Errorf("its target: %w", err)
	}
	defer func() { err = errors.Join(err, way.Close()) }()
	seal := c.Masker.Seal
	if p.To.Redact == plan.RedactNone {
		seal = redact.Plain
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), p.To.Timeout, target.ErrExpired)
	defer cancel()
	return way.Deliver(ctx, target.Dispatch{
		ID: p.ID, Rule: p.To.ID, Session: p.Session, Attempt: attempt, Unordered: true,
		Body: seal(p.Record, redact.Envelope{Rule: p.To.ID}),
	})
}
