package intake

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"ways/hooks/record"
	"ways/hooks/spool"
)

// Reasons of gaps that are the spool's own; the others are the reasons for which
// rules lost records.
const (
	gapDamaged   = "damaged"
	gapUnwritten = "unwritten"
	gapQueueFull = "queue_full"
)

// gap notes that n records were lost. It is told in a record of its own, at the
// next save, if some rule asks for such records.
func (r *run) gap(g record.Gap, n uint64) {
	r.gaps[g] += n
	r.dirty = true
}

// damaged notes a stretch of the spool without whole records.
func (r *run) damaged(d *spool.Damage) {
	r.Meter.Damaged(r.ctx)
	r.Log.Error().Err(d).Msg("damaged stretch of the spool passed over")
	r.gap(record.Gap{Reason: gapDamaged}, 1)
}

// tellGaps appends a record for each gap, as any hook would. It reports whether
// it appended one. What cannot be appended now is kept for the next time.
func (r *run) tellGaps() bool {
	if r.order == nil {
		return false
	}
	if lost := spool.Unwritten(r.Dir); lost > r.told {
		r.gap(record.Gap{Reason: gapUnwritten}, lost-r.told)
		r.Meter.Unwritten(r.ctx, lost-r.told)
		r.told = lost
	}
	if len(r.gaps) == 0 {
		return false
	}
	if !slices.ContainsFunc(r.order, func(rs *ruleState) bool { return rs.Sections.Has(record.SectionGap) }) {
		clear(r.gaps)
		return false
	}
	now := time.Now()
	var drafts []spool.Draft
	keys := slices.SortedFunc(maps.Keys(r.gaps), func(a, b record.Gap) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Reason, b.Reason))
	})
	for _, g := range keys {
		drafts = append(drafts, record.FromGap(g, r.gaps[g], r.Session, r.project, now))
	}
	_, err := spool.Append(r.Dir, spool.Request{
		Generation: r.satisfied, Now: now, Wait: lockWait, Build: func(bool) []spool.Draft { return drafts },
	})
	if err != nil {
		r.Log.Error().Err(err).Msg("gap not told yet")
		return false
	}
	clear(r.gaps)
	r.Appended()
	return true
}
