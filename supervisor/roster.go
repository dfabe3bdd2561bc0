package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/rs/zerolog"
	"github.com/thejerf/suture/v4"

	"ways/actors/delivery"
	"ways/actors/intake"
	"ways/actors/meter"
	"ways/actors/rule"
	"ways/actors/target"
	"ways/actors/target/off"
	"ways/actors/watchdog"
	"ways/config/plan"
	"ways/config/where"
	"ways/hooks/redact"
)

// Targets makes the way out of a rule.
type Targets func(r plan.Rule) (target.Target, error)

// roster turns plans into running rule actors. The spool actor owns it: its
// methods are called from there alone.
type roster struct {
	dir      string
	orphans  func(ctx context.Context)
	maxAge   time.Duration
	dead     rule.DeadLetters
	load     func(project string) (plan.Plan, uint64, error)
	targets  Targets
	masker   *redact.Masker
	masking  plan.Masking // what masker masks beyond the built-in rules
	watchdog *watchdog.Watchdog
	meter    *meter.Meter
	acks     delivery.Acks
	log      zerolog.Logger
	stage    *stage

	running map[string]*running
}

type running struct {
	key   []byte // the rule as it is in the plan
	token suture.ServiceToken
	stop  time.Duration
	actor intake.Selected
}

// Load implements intake.Roster.
func (r *roster) Load(project string) (plan.Plan, uint64, error) { return r.load(project) }

// Run implements intake.Roster.
func (r *roster) Run(ctx context.Context, p plan.Plan) ([]intake.Selected, []string) {
	r.followMasking(p.Masking)
	want := map[string][]byte{}
	for _, rl := range p.Rules {
		// A change of what is masked is a change of every rule.
		key, err := json.Marshal(struct {
			plan.Rule
			Masking plan.Masking
		}{rl, r.masking})
		if err == nil {
			want[rl.ID] = key
		}
	}
	var stopped []string
	for id, run := range r.running {
		if !bytes.Equal(want[id], run.key) {
			r.remove(id, run)
			stopped = append(stopped, id)
		}
	}
	var selected []intake.Selected
	for _, rl := range p.Rules {
		key := want[rl.ID]
		if key == nil {
			continue
		}
		run := r.running[rl.ID]
		if run == nil {
			var err error
			if run, err = r.start(ctx, rl, key); err != nil {
				r.log.Error().Str("rule", rl.ID).Err(err).Msg("rule cannot run")
				continue
			}
			r.running[rl.ID] = run
		}
		selected = append(selected, run.actor)
	}
	return selected, stopped
}

// followMasking makes the masker the one that a plan asks for.
func (r *roster) followMasking(m plan.Masking) {
	if reflect.DeepEqual(m, r.masking) {
		return
	}
	masker, err := NewMasker(m)
	if err != nil {
		// A plan is checked before it is written; this one was made by another build.
		r.log.Error().Err(err).Msg("redaction settings not usable; going on with those before")
		return
	}
	r.masker, r.masking = masker, m
}

// NewMasker makes a masker of the built-in rules and what a plan adds. It takes
// some milliseconds. The error is about a plan that was not checked.
func NewMasker(m plan.Masking) (*redact.Masker, error) {
	var opts redact.Options
	for _, r := range m.Rules {
		opts.Rules = append(opts.Rules, redact.Rule{Name: r.Name, Regex: r.Regex, Keywords: r.Keywords, MinEntropy: r.MinEntropy})
	}
	for _, a := range m.Allow {
		opts.Allow = append(opts.Allow, redact.Allow{Literal: a.Literal, Regex: a.Regex})
	}
	return redact.New(opts)
}

// start makes a rule's actor run under a supervisor of its own.
func (r *roster) start(ctx context.Context, rl plan.Rule, key []byte) (*running, error) {
	sel := intake.Selected{ID: rl.ID, Sections: rl.Sections}
	var err error
	if sel.Where, err = condition(rl); err != nil {
		return nil, err
	}
	if rl.Delivery == plan.BestEffort {
		sel.Cap = rl.Queue
	}
	way, err := r.way(rl)
	if err != nil {
		return nil, err
	}
	dir := ""
	if rl.Mode == plan.Blocking {
		dir = r.dir
	}
	a := rule.New(rule.Options{
		ID: rl.ID, Dir: dir, Orphans: r.orphans, Delivery: rl.Delivery, MaxAge: r.maxAge, Dead: r.dead, Timeout: rl.Timeout, Window: min(intake.Window, rl.Queue), Target: way, Seal: sealOf(rl, r.masker), Quiet: quietly(r.masker),
		Watchdog: r.watchdog, Meter: r.meter, Acks: r.acks, Log: r.log,
		Unordered: rl.Mode == plan.Blocking, // hooks hand such records out too
	})
	sel.Actor = a
	stop := rl.Timeout + stopSlack
	own := suture.New(a.String(), spec(r.log, stop))
	own.Add(service{a, func(e Exit) { r.observe(ctx, rl.ID, e) }})
	return &running{key: key, token: r.stage.sup.Add(own), stop: stop, actor: sel}, nil
}

// way is where a rule's records go. An at-least-once rule that has nowhere to send
// keeps them.
func (r *roster) way(rl plan.Rule) (target.Target, error) {
	nowhere := off.Target{To: rl.Target.String(), Why: off.ErrOff}
	if rl.Off {
		return nowhere, nil
	}
	way, err := r.targets(rl)
	if err == nil {
		return way, nil
	}
	err = fmt.Errorf("its target: %w", err)
	if rl.Delivery != plan.AtLeastOnce {
		return nil, err
	}
	r.log.Error().Str("rule", rl.ID).Err(err).Msg("rule cannot run; what comes for it is kept")
	nowhere.Why = err
	return nowhere, nil
}

// Stop implements intake.Roster.
func (r *roster) Stop() {
	for id, run := range r.running {
		r.remove(id, run)
	}
}

// remove stops a rule; what it has in flight is finished first.
func (r *roster) remove(id string, run *running) {
	if err := r.stage.sup.RemoveAndWait(run.token, run.stop+stopSlack); err != nil {
		r.log.Error().Str("rule", id).Err(err).Msg("rule did not stop in time")
	}
	delete(r.running, id)
}

func (r *roster) observe(ctx context.Context, id string, e Exit) {
	if e.Panic == "" {
		return
	}
	r.log.Error().Str("actor", e.Actor).Str("rule", id).Str("panic", e.Panic).Bytes("stack", e.Stack).Msg("rule panicked")
	r.meter.Panicked(ctx, id, "the rule's actor panicked: "+e.Panic)
}

// condition compiles a rule's condition; nil when it has none.
func condition(rl plan.Rule) (func([]byte) bool, error) {
	if rl.Where == nil {
		return nil, nil
	}
	cond, err := where.Compile(rl.Where, rl.MatchAny)
	if err != nil {
		return nil, fmt.Errorf("its condition: %w", err)
	}
	return cond.Match, nil
}

// quietly masks secrets in words for a log.
func quietly(m *redact.Masker) func(string) string {
	return func(words string) string {
		masked, found := m.Text([]byte(words))
		if len(found) == 0 {
			return words
		}
		return string(masked)
	}
}

// quietMeter is a meter that is told no secret: a path can hold one, and so can the
// address that a rule sends to.
type quietMeter struct {
	*meter.Meter
	masker *redact.Masker
}

// Describe implements intake.Meter.
func (q quietMeter) Describe(ctx context.Context, project string, targets map[string]string) {
	quiet := quietly(q.masker)
	shown := make(map[string]string, len(targets))
	for rule, to := range targets {
		shown[rule] = quiet(to)
	}
	q.Meter.Describe(ctx, quiet(project), shown)
}

// sealOf is how a rule's payloads are made.
func sealOf(rl plan.Rule, m *redact.Masker) rule.Seal {
	if rl.Redact == plan.RedactNone {
		return redact.PlainShared
	}
	return m.SealShared
}
