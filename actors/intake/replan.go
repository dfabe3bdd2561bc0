package intake

import (
	"fmt"
	"slices"

	"ways/actors/delivery"
	"ways/config/plan"
	"ways/hooks/spool"
)

// follow loads the index again when the frame was selected under another one.
// An error: there are no rules to go on with, so the frame must not be passed.
func (r *run) follow(f spool.Frame) error {
	project := delivery.StringField(f.JSON, "project")
	if f.Generation == r.satisfied && project == r.project && r.order != nil {
		return nil
	}
	p, generation, err := r.Roster.Load(project)
	if err != nil && r.order == nil {
		return fmt.Errorf("load the rules for %s: %w", project, err)
	}
	r.satisfied, r.project = f.Generation, project
	if err != nil {
		r.Log.Error().Err(err).Str("project", project).Msg("index not read; going on with the rules there are")
		return nil
	}
	if generation != r.generation || r.order == nil {
		r.generation = generation
		r.replan(p, f)
	}
	return nil
}

// look follows a change of the index that no record brought: a hook whose event no
// rule wants any more rings all the same. A rule that lost its trust stops now, and
// nothing that waits for it is sent; one that is new begins behind what is in the
// spool.
// It reports whether it looked; else it is to be asked again when all is read.
func (r *run) look() (done bool) {
	if r.Generation == nil || r.order == nil || r.stopped || r.project == "" {
		return true
	}
	now, err := r.Generation(r.project)
	if err != nil || now == r.generation {
		return true
	}
	p, generation, err := r.Roster.Load(r.project)
	if err != nil || generation == r.generation {
		return true
	}
	last, err := spool.LastSeq(r.Dir, lockWait)
	switch {
	case err != nil:
		r.Log.Warn().Err(err).Msg("last sequence number unknown")
		last = r.read.Seq
	case last > r.read.Seq && last != r.awaited:
		// Somebody appended meanwhile, under either plan: what is not read yet says
		// itself whose it is. Only what cannot be read is not waited for.
		r.awaited = last
		return false
	}
	r.generation, r.satisfied = generation, generation
	r.replan(p, spool.Frame{Seq: max(last, r.read.Seq) + 1, At: r.read.At})
	r.dirty = true
	return true
}

// replan makes the rules of a plan the ones that run.
func (r *run) replan(p plan.Plan, f spool.Frame) {
	// p is its owner's.
	p.Rules = append(slices.Clone(p.Rules), r.hold(p, f)...)
	selected, stopped := r.Roster.Run(r.ctx, p)
	r.takeAcks()
	was := map[string]*ruleState{}
	for _, id := range stopped {
		if rs := r.rules[id]; rs != nil {
			was[id] = rs
			rs.park(r, slices.ContainsFunc(selected, func(s Selected) bool { return s.ID == id }))
			delete(r.rules, id)
		}
	}
	order := []*ruleState{}
	targets := map[string]string{}
	for _, s := range selected {
		rs := r.rules[s.ID]
		if rs == nil {
			rs = r.begin(s, f, was[s.ID])
			r.rules[s.ID] = rs
		}
		rs.owed = r.owed[s.ID]
		order = append(order, rs)
	}
	for _, rule := range p.Rules {
		targets[rule.ID] = rule.Target.String()
	}
	for id, c := range r.parked {
		r.absent[id] = c.RuleSeq
		delete(r.parked, id)
	}
	r.order = order
	r.noteOwed()
	r.Meter.Describe(r.ctx, p.Project, targets)
	r.Log.Info().Int("rules", len(order)).Str("generation", fmt.Sprintf("%x", r.generation)).Msg("rules loaded")
}
