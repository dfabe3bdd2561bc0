package supervisor

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/rs/zerolog"

	"ways/actors/actor"
	"ways/actors/doorbell"
	"ways/actors/intake"
	"ways/actors/meter"
	"ways/actors/rule"
	"ways/actors/transcript"
	"ways/actors/watchdog"
	"ways/config/plan"
	"ways/hooks/dirs"
	"ways/hooks/index"
	"ways/hooks/redact"
	"ways/metrics/events"
)

// stopSlack is what stopping takes beyond the dispatches in flight.
const stopSlack = 2 * time.Second

// MaxTimeout is the longest timeout a rule can have; a stop waits that long for
// what is in flight.
const MaxTimeout = time.Hour

// Dispatcher is one session's tree (design §7).
type Dispatcher struct {
	// Dir is the session's directory, Session its id.
	Dir, Session string
	// Lock is the session's dispatcher lock, held.
	Lock *os.File
	// Idle is how long the spool stays empty before the dispatcher leaves.
	Idle time.Duration
	// Linger is how long it stays for rules that only wait to try again, in a
	// session that goes on; what they have left is adopted later.
	Linger time.Duration
	// Drained, when set, is called when it leaves nothing behind.
	Drained func()
	// Load returns the plan for a project, and its generation.
	Load func(project string) (plan.Plan, uint64, error)
	// Index returns the header of a project's index, as it is now.
	Index func(project string) (index.Header, error)
	// Settle is how long a hook may be late behind its turn's end; 0 for
	// transcript.DefaultSettle.
	Settle time.Duration
	// Targets makes the ways out.
	Targets Targets
	// Courier, when set, takes checkpoints to other rules' targets. It ends after
	// all rules.
	Courier actor.Actor
	// Orphans, when set, ends what processes of this session that died had started.
	Orphans func(ctx context.Context)
	// Masker masks by the built-in rules; a plan's own come on top of them.
	Masker *redact.Masker
	// Dead keeps what at-least-once rules give up, MaxAge is when they do so for
	// age alone.
	Dead   rule.DeadLetters
	MaxAge time.Duration
	// Events is the log that outlives the session.
	Events events.Log
	Log    zerolog.Logger
}

// Run dispatches until the session's spool has been empty for Idle, or ctx ends:
// then what is in flight is finished within its rule's timeout, and the
// positions are saved. An error means that the tree could not go on.
func (d Dispatcher) Run(ctx context.Context) error {
	count := meter.New(d.Dir, dirs.SessionLabel(d.Session), d.Events, d.Log)
	dog := watchdog.New()
	over := make(chan error, 1)
	observe := func(e Exit) {
		d.report(e)
		if actor.IsDone(e.Err) || actor.IsFatal(e.Err) {
			select {
			case over <- e.Err:
			default:
			}
		}
	}

	base := newStage("base", d.Log, stopSlack, service{count, d.report})
	defer base.stop(d.Log)
	count.Happened(context.Background(), events.DispatcherStart, "")
	guard := newStage("guard", d.Log, stopSlack, service{dog, d.report})
	defer guard.stop(d.Log)
	if d.Courier != nil {
		courier := newStage("courier", d.Log, MaxTimeout+stopSlack, service{d.Courier, d.report})
		defer courier.stop(d.Log)
	}
	rules := newStage("rules", d.Log, MaxTimeout+2*stopSlack)
	rulesStopped := false
	stopRules := func() {
		if !rulesStopped {
			rulesStopped = true
			rules.stop(d.Log)
		}
	}
	defer stopRules()

	list := &roster{
		dir: d.Dir, orphans: d.Orphans, maxAge: d.MaxAge, dead: d.Dead, load: d.Load, targets: d.Targets, masker: d.Masker, watchdog: dog, meter: count,
		log: d.Log, stage: rules, running: map[string]*running{},
	}
	spool := intake.New(intake.Options{
		Dir: d.Dir, Session: d.Session, Lock: d.Lock, Idle: d.Idle, Linger: d.Linger, Drained: d.Drained, Roster: list, Meter: quietMeter{count, d.Masker}, Log: d.Log,
	})
	if d.Index != nil {
		spool.Generation = func(project string) (uint64, error) {
			h, err := d.Index(project)
			return h.Generation, err
		}
	}
	list.acks = spool
	// The transcript actor and the spool actor know each other by their mailboxes.
	follow := transcript.New(transcript.Options{
		Dir: d.Dir, Session: d.Session, Index: d.Index, Spool: spool, Settle: d.Settle, Log: d.Log,
	})
	spool.Follower = follow
	in := newStage("spool", d.Log, 2*stopSlack,
		service{spool, observe}, service{doorbell.New(d.Dir, both{spool, follow}), d.report})
	defer in.stop(d.Log)
	followed := newStage("transcript", d.Log, stopSlack, service{follow, d.report})
	defer followed.stop(d.Log)

	select {
	case err := <-over:
		if actor.IsFatal(err) {
			count.Happened(context.Background(), events.DispatcherEnd, "failed")
			return fmt.Errorf("dispatcher of session %s: %w", d.Session, err)
		}
		d.Log.Info().Str("reason", actor.WhyDone(err)).Msg("dispatcher leaves")
		return nil
	case <-ctx.Done():
		d.Log.Info().Msg("dispatcher is told to stop")
		// Nothing new goes out; what is out is finished and its position taken.
		// The bound is for a spool actor that is waiting to be restarted.
		pausing, cancel := context.WithTimeout(context.Background(), stopSlack)
		spool.Pause(pausing)
		cancel()
		stopRules()
		count.Happened(context.Background(), events.DispatcherEnd, "told to stop")
		return nil
	}
}

// both hands a wake-up to two listeners.
type both struct{ one, two doorbell.Listener }

// Appended implements doorbell.Listener.
func (b both) Appended() { b.one.Appended(); b.two.Appended() }

// Ended implements doorbell.Listener.
func (b both) Ended() { b.one.Ended(); b.two.Ended() }

// report logs how an actor ended.
func (d Dispatcher) report(e Exit) {
	switch {
	case e.Panic != "":
		d.Log.Error().Str("actor", e.Actor).Str("panic", e.Panic).Bytes("stack", e.Stack).Msg("actor panicked")
	case actor.IsDone(e.Err):
	case e.Stopping:
		d.Log.Debug().Str("actor", e.Actor).AnErr("error", e.Err).Msg("actor stopped")
	default:
		d.Log.Error().Str("actor", e.Actor).AnErr("error", e.Err).Msg("actor failed")
	}
}
