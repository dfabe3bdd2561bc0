package supervisor

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"
	"github.com/thejerf/suture/v4"

	"ways/actors/clerk"
	"ways/actors/delivery"
	"ways/actors/rule"
	"ways/actors/target"
	"ways/actors/watchdog"
	"ways/config/plan"
	"ways/hooks/redact"
	"ways/hooks/spool"
	"ways/hooks/ticket"
)

// BlockingCap is the longest that blocking rules hold one hook event (seed §5).
const BlockingCap = 10 * time.Second

// Claimed is a record that this process answers for.
type Claimed struct {
	Frame  spool.Frame
	Ticket ticket.Ticket
}

// Blocking hands one hook event's records to the blocking rules that want them,
// all rules at once, and waits (design §8).
type Blocking struct {
	Dir, Session string
	Plan         plan.Plan
	Records      []Claimed
	Targets      Targets
	Masker       *redact.Masker
	Log          zerolog.Logger
}

// Run returns when every rule is finished with every record it wants, at the
// latest when the longest of these rules' timeouts has passed, and never later
// than BlockingCap: what is unfinished then has been ended. When ctx ends it ends
// all at once.
func (b Blocking) Run(ctx context.Context) error {
	deadline, rules := b.choose()
	if len(rules) == 0 {
		return nil
	}
	dog := watchdog.New()
	guard := newStage("guard", b.Log, stopSlack, service{dog, b.report})
	defer guard.stop(b.Log)
	shared := sharedDeadline{ctx, dog, time.Now().Add(deadline)}
	book := clerk.New()
	base := newStage("clerk", b.Log, stopSlack, service{book, b.report})
	defer base.stop(b.Log)
	var services []suture.Service
	var errs []error
	for _, w := range rules {
		a, err := b.start(w, shared, book)
		errs = append(errs, err)
		if err == nil {
			services = append(services, service{a, b.report})
		}
	}
	stage := newStage("blocking", b.Log, stopSlack, services...)
	defer stage.stop(b.Log)
	late, cancel := context.WithDeadlineCause(context.Background(), shared.at.Add(stopSlack), errLate)
	defer cancel()
	return errors.Join(append(errs, book.Wait(late))...)
}

// errLate is the error of a target that outlasted its context.
var errLate = errors.New("a blocking rule's target did not end in time")

// report logs a rule's actor that failed.
func (b Blocking) report(e Exit) {
	if e.Panic != "" {
		b.Log.Error().Str("actor", e.Actor).Str("panic", e.Panic).Bytes("stack", e.Stack).Msg("actor panicked")
	}
}

// wanted is a blocking rule and the records it wants.
type wanted struct {
	rule    plan.Rule
	records []Claimed
}

// choose finds the blocking rules that want some record, and how long they may
// hold the event together.
func (b Blocking) choose() (time.Duration, []wanted) {
	var longest time.Duration
	var rules []wanted
	for _, rl := range b.Plan.Rules {
		if rl.Mode != plan.Blocking {
			continue
		}
		match, err := condition(rl)
		if err != nil {
			b.Log.Error().Str("rule", rl.ID).Err(err).Msg("rule cannot run")
			continue
		}
		w := wanted{rule: rl}
		for _, c := range b.Records {
			if rl.Sections.Has(delivery.SectionOf(c.Frame.JSON)) && (match == nil || match(c.Frame.JSON)) {
				w.records = append(w.records, c)
			}
		}
		if len(w.records) > 0 {
			longest = max(longest, rl.Timeout)
			rules = append(rules, w)
		}
	}
	return min(longest, BlockingCap), rules
}

// start makes the actor of a rule, with the records it wants in its queue.
func (b Blocking) start(w wanted, shared sharedDeadline, book *clerk.Clerk) (*rule.Rule, error) {
	way, err := b.Targets(w.rule)
	if err != nil {
		return nil, err
	}
	a := rule.New(rule.Options{
		// One try, whatever the rule promises: the dispatcher keeps the promise.
		ID: w.rule.ID, Timeout: w.rule.Timeout, Delivery: plan.BestEffort, Window: len(w.records), Target: way, Seal: sealOf(w.rule, b.Masker), Quiet: quietly(b.Masker),
		Watchdog: shared, Meter: book, Acks: book, Log: b.Log,
		Unordered: true, // hooks of one session run at once
	})
	for _, c := range w.records {
		number, err := ticket.Number(b.Dir, w.rule.ID)
		if err != nil {
			return nil, err
		}
		if err := book.Begin(delivery.Outcome{Rule: w.rule.ID, RuleSeq: number}, c.Frame.Seq, c.Ticket); err != nil {
			return nil, err
		}
		a.TryOffer(delivery.NewItem(b.Dir, b.Session, c.Frame, number, c.Frame.JSON))
	}
	return a, nil
}

// sharedDeadline is a watchdog under which no dispatch outlasts the event's own
// deadline, or the hook.
type sharedDeadline struct {
	hook context.Context
	dog  *watchdog.Watchdog
	at   time.Time
}

// Watch implements rule.Watchdog.
func (s sharedDeadline) Watch(ctx context.Context, label string, timeout time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.hook, func() { cancel(context.Cause(s.hook)) })
	left := time.Until(s.at)
	if left <= 0 {
		// At once, and not by a message: nothing must start that is over already.
		cancel(target.ErrExpired)
	}
	guarded, release := s.dog.Watch(ctx, label, max(min(timeout, left), 0))
	return guarded, func() { release(); stop(); cancel(nil) }
}
