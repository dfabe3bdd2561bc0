package intake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"ways/config/plan"
	"ways/hooks/dirs"
	"ways/hooks/spool"
	"ways/hooks/temp"
)

// owedName is the file with the at-least-once rules that a session's spool may hold
// records for.
const owedName = "owed.json"

// owed is an at-least-once rule, as the last plan had it that had it. When a plan
// has it no more, what it has not done stays in the spool (docs/delivery.md, "A
// rule that is not there").
type owed struct {
	Rule plan.Rule `json:"rule"`
	// Off are the stretches of the spool that came while no plan had the rule, oldest
	// first: they are not its. The last one is open while that lasts.
	Off []span `json:"off,omitempty"`
	// Plans are the plans that were met, oldest first: a record that was written
	// under one of them is the rule's if that had it. Off is for the others, which
	// came and went before anybody loaded them.
	Plans []known `json:"plans,omitempty"`
	// undecided: no plan has the rule since the last life, and where it went is not
	// found yet.
	undecided bool
	// same: the rule selects what it did before the last change of it.
	same bool
}

// known says of a plan, by its generation, whether it had the rule.
type known struct {
	Generation uint64 `json:"generation"`
	Had        bool   `json:"had"`
}

// maxPlans is how many plans are remembered for one rule.
const maxPlans = 32

// met notes a plan.
func (k *owed) met(generation uint64, had bool) {
	k.Plans = slices.DeleteFunc(k.Plans, func(p known) bool { return p.Generation == generation })
	if len(k.Plans) == maxPlans {
		k.Plans = slices.Delete(k.Plans, 0, 1)
	}
	k.Plans = append(k.Plans, known{generation, had})
}

// span is a stretch of the spool by the numbers of its records. To is 0 for one
// that is open.
type span struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to,omitempty"`
}

// lacks reports whether a record, which was written under a plan of that
// generation, came while the rule was off.
func (k *owed) lacks(seq, generation uint64) bool {
	if k == nil {
		return false
	}
	for _, p := range k.Plans {
		if p.Generation == generation {
			return !p.Had
		}
	}
	for _, s := range k.Off {
		if seq >= s.From && (s.To == 0 || seq <= s.To) {
			return true
		}
	}
	return false
}

// off reports whether no plan has the rule, and up to which record it had one.
func (k *owed) off() (until uint64, off bool) {
	if n := len(k.Off); n > 0 && k.Off[n-1].To == 0 {
		return k.Off[n-1].From - 1, true
	}
	return 0, false
}

// leave notes that no plan has the rule for the records behind until.
func (k *owed) leave(until uint64) {
	k.undecided = false
	if _, off := k.off(); !off {
		k.Off = append(k.Off, span{From: until + 1})
	}
}

// back notes that a plan has the rule again, for the records behind last. Of what
// lies before the record done nothing need be known any more.
func (k *owed) back(last, done uint64) {
	k.undecided = false
	if _, off := k.off(); off {
		k.Off[len(k.Off)-1].To = last
	}
	k.Off = slices.DeleteFunc(k.Off, func(s span) bool { return s.To != 0 && (s.To < s.From || s.To <= done) })
}

// hold compares a plan, which holds from frame f on, with the at-least-once rules
// that were there. It returns those that the plan has no more and that have
// something left: they run on, and nothing of theirs is sent.
func (r *run) hold(p plan.Plan, f spool.Frame) []plan.Rule {
	there := map[string]bool{}
	for _, rule := range p.Rules {
		there[rule.ID] = true
		k := r.owed[rule.ID]
		if k == nil {
			k = &owed{}
		}
		k.back(max(f.Seq-1, r.saved), r.doneOf(rule.ID, f))
		k.met(r.generation, true)
		k.same = sameSelection(k.Rule, rule)
		k.Rule = rule
		r.owed[rule.ID] = k
		if rule.Delivery != plan.AtLeastOnce && len(k.Off) == 0 {
			delete(r.owed, rule.ID)
		}
	}
	var gone []plan.Rule
	last, err := spool.LastSeq(r.Dir, lockWait)
	if err != nil {
		r.Log.Warn().Err(err).Msg("last sequence number unknown")
		last = r.live
	}
	for _, id := range slices.Sorted(maps.Keys(r.owed)) {
		k := r.owed[id]
		if there[id] {
			continue
		}
		until, off := k.off()
		switch {
		case off:
		case r.order != nil:
			until = max(r.read.Seq, r.saved)
		case f.Seq > r.saved && f.Generation == r.generation:
			until = max(f.Seq-1, r.saved)
		default:
			// It went after the last life: somewhere in what nobody has read yet.
			k.undecided = true
		}
		// What is in the spool behind this record, and nobody has read, may have been
		// written while the rule was there.
		unread := last > max(f.Seq, r.saved)
		if k.Rule.Delivery != plan.AtLeastOnce || !unread && !k.undecided && r.doneOf(id, f) >= until {
			delete(r.owed, id)
			continue
		}
		k.met(r.generation, false)
		if !k.undecided {
			k.leave(until)
		}
		if !k.Rule.Off {
			r.Log.Warn().Str("rule", id).Msg("rule is off; what waits for it is kept")
		}
		k.same = true
		k.Rule.Off = true
		gone = append(gone, k.Rule)
	}
	return gone
}

// doneOf is up to which record a rule is done, as far as is known before frame f.
func (r *run) doneOf(id string, f spool.Frame) uint64 {
	if rs := r.rules[id]; rs != nil {
		return rs.cursor().Seq
	}
	if c, ok := r.parked[id]; ok {
		return c.Seq
	}
	return f.Seq - 1
}

// settleOwed finds where rules went that went between two lives: before the first
// record that was written under the plan there is now.
func (r *run) settleOwed(f spool.Frame) {
	if f.Seq <= r.saved || f.Generation != r.generation {
		return
	}
	found := false
	for _, k := range r.owed {
		if k.undecided {
			k.leave(f.Seq - 1)
			found = true
		}
	}
	if found {
		r.noteOwed()
	}
}

func sameSelection(a, b plan.Rule) bool {
	return a.Sections == b.Sections && a.MatchAny == b.MatchAny && bytes.Equal(a.Where, b.Where)
}

// noteOwed writes the rules down, when they have changed. It comes before the next
// save of the cursors, which does not happen until this has: a rule that is gone by
// then is known.
func (r *run) noteOwed() {
	if err := r.saveOwed(); err != nil {
		r.Log.Error().Err(err).Msg("at-least-once rules not noted yet, so what is delivered from here on would be delivered again")
		r.dirty = true
	}
}

func (r *run) saveOwed() error {
	r.owes = true
	list := make([]*owed, 0, len(r.owed))
	for _, id := range slices.Sorted(maps.Keys(r.owed)) {
		list = append(list, r.owed[id])
	}
	path := filepath.Join(r.Dir, owedName)
	text, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("note the at-least-once rules: %w", err)
	}
	if (len(list) > 0 || r.owedText != nil) && !bytes.Equal(text, r.owedText) {
		dirs.Clear(path)
		if err := temp.Write(path, text, true); err != nil {
			return fmt.Errorf("note the at-least-once rules: %w", err)
		}
		r.owedText = text
	}
	r.owes = false
	return nil
}

// loadOwed reads them back. Without the file, or with a damaged one, there are none.
func (r *run) loadOwed() {
	text, err := dirs.ReadFile(filepath.Join(r.Dir, owedName))
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	var list []*owed
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		r.Log.Error().Err(err).Str("file", owedName).Msg("the at-least-once rules of before are not known")
		return
	}
	r.owedText = text
	for _, k := range list {
		if k != nil && k.Rule.ID != "" {
			r.owed[k.Rule.ID] = k
		}
	}
}
