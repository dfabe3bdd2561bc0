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
	gapMissing   = "missing"
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

// missing notes that the numbers up to last are no longer in the spool: a file of
// it was deleted, or damage took whole records. Where a rule's cursor stays in
// front of them, the next dispatcher tells of them again.
func (r *run) missing(last uint64) {
	if r.read.Seq == 0 && r.saved == 0 || last <= r.read.Seq {
		return // without a cursor, earlier records may have been given back
	}
	r.Log.Error().Uint64("from", r.read.Seq+1).Uint64("to", last).Msg("records are missing from the spool")
	r.gap(record.Gap{Reason: gapMissing}, last-r.read.Seq)
	r.read.Seq = last
}

// tellGaps appends a record for each gap, as any hook would. It reports whether
// it appended one. What cannot be appended now is kept for the next time.
func (r *run) tellGaps() bool {
	lost := spool.Unwritten(r.Dir)
	if lost > r.told && r.order != nil {
		r.gaps[record.Gap{Reason: gapUnwritten}] = lost - r.told
	}
	if len(r.gaps) == 0 {
		return false
	}
	if r.order != nil && !slices.ContainsFunc(r.order, func(rs *ruleState) bool { return rs.Sections.Has(record.SectionGap) }) {
		clear(r.gaps)
		r.wrote(lost)
		return false
	}
	now := time.Now()
	keys := slices.SortedFunc(maps.Keys(r.gaps), func(a, b record.Gap) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Reason, b.Reason))
	})
	told := false
	for _, g := range keys {
		draft := record.FromGap(g, r.gaps[g], r.Session, r.project, now)
		// Not counted where it cannot be written: that would be a gap of its own,
		// and there is no end to those.
		_, err := spool.Append(r.Dir, spool.Request{
			Generation: r.satisfied, Now: now, Wait: lockWait, Kept: true,
			Build: func(bool) []spool.Draft { return []spool.Draft{draft} },
		})
		if err != nil {
			r.Log.Error().Err(err).Msg("gap not told yet")
			break
		}
		delete(r.gaps, g)
		if g.Reason == gapUnwritten {
			r.wrote(lost)
		}
		told = true
	}
	if told {
		r.Appended()
	}
	return told
}

// wrote notes that the records that could not be written are told of.
func (r *run) wrote(lost uint64) {
	if lost > r.told {
		r.Meter.Unwritten(r.ctx, lost-r.told)
		r.told = lost
		r.dirty = true
	}
}
