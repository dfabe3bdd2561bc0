package intake

import (
	"errors"
	"slices"
	"time"

	"ways/actors/delivery"
	"ways/hooks/record"
	"ways/hooks/redact"
	"ways/hooks/spool"
)

// ruleState is what the spool actor knows of one rule.
type ruleState struct {
	Selected
	// owed is what is known of an at-least-once rule that is or was off; else nil.
	owed *owed
	// at is where the next record for the rule is looked for: what lies before it
	// was handed over, passed over or dropped.
	at spool.Cursor
	// out are the records handed over and not yet done, oldest first.
	out []handed
	// own is the reader of a rule that fell behind; nil while it keeps up.
	own *spool.Reader
	// behind counts the records on disk that wait for the rule and came in during
	// this life.
	behind int
	// disk counts all records on disk that wait for the rule, from the number
	// counting on; counted is the newest of them.
	disk              int
	counting, counted uint64
	lastAck           time.Time
	// resting: the rule waits before it tries its record again.
	resting bool
	// told is the number of waiting records the meter was last told.
	told      uint64
	toldSince time.Time
	// oldest is the number of the record that since belongs to.
	oldest uint64
	since  time.Time
}

// untold is no number of waiting records: the meter's, from a life before, may be
// any.
const untold = ^uint64(0)

// handed is a record that a rule actor has: where it begins is where a restart
// would go on.
type handed struct {
	seq, ruleSeq uint64
	at           spool.Position
}

// begin makes the state of a rule that joins with frame f: it goes on from its
// saved cursor; a rule that is new begins with the frame that brought it. was is
// the rule as it was until then; nil when it did not run.
func (r *run) begin(s Selected, f spool.Frame, was *ruleState) *ruleState {
	rs := &ruleState{Selected: s, told: untold, owed: r.owed[s.ID]}
	if c, ok := r.parked[s.ID]; ok {
		delete(r.parked, s.ID)
		rs.at = c
		if c.Seq < r.read.Seq {
			rs.own = spool.NewReader(r.Dir, c.At)
			rs.counting = r.read.Seq + 1
			if was != nil && rs.owed != nil && rs.owed.same {
				// What waited for it waits on the disk now.
				rs.disk, rs.counting, rs.counted = was.disk+len(was.out), c.Seq+1, was.newest()
			}
			r.Appended() // nothing else may ever wake us for what it missed
		}
		return rs
	}
	rs.at = spool.Cursor{Seq: f.Seq - 1, RuleSeq: r.absent[s.ID], At: f.At}
	delete(r.absent, s.ID)
	if r.order == nil {
		// The first plan of this life. What lies in front of the last save is there
		// for slower rules; what lies behind it may be this rule's, from before the
		// dispatcher died.
		rs.at.Seq = max(rs.at.Seq, r.saved)
	}
	return rs
}

// newest is the newest record that was counted for the rule.
func (rs *ruleState) newest() uint64 {
	if n := len(rs.out); n > 0 {
		return max(rs.counted, rs.out[n-1].seq)
	}
	return rs.counted
}

// matches evaluates the rule's selection.
func (rs *ruleState) matches(f spool.Frame, section record.Section) bool {
	return rs.Sections.Has(section) && !rs.owed.lacks(f.Seq, f.Generation) && (rs.Where == nil || rs.Where(f.JSON))
}

// cursor is how far the rule is done.
func (rs *ruleState) cursor() spool.Cursor {
	if len(rs.out) == 0 {
		return rs.at
	}
	first := rs.out[0]
	return spool.Cursor{Seq: first.seq - 1, RuleSeq: first.ruleSeq - 1, At: first.at}
}

// park keeps the cursor of a rule whose actor was stopped. One that only changed,
// or is off with its records kept, goes on from there. A best-effort one that was
// taken away gives its waiting records up, counted; should it come back in this
// session, its numbering goes on.
func (rs *ruleState) park(r *run, changed bool) {
	if rs.own != nil {
		rs.own.Close()
	}
	if changed {
		r.parked[rs.ID] = rs.cursor()
		return
	}
	if waiting, _ := rs.waiting(r); waiting > 0 {
		r.Log.Warn().Str("rule", rs.ID).Uint64("records", waiting).Msg("rule stopped; what waited for it is given up")
		r.Meter.Dropped(r.ctx, rs.ID, "rule_stopped", waiting)
		r.gap(record.Gap{Reason: "rule_stopped", Rule: rs.ID}, waiting)
		r.Meter.Waiting(r.ctx, rs.ID, 0, time.Time{})
	}
	r.absent[rs.ID] = rs.at.RuleSeq
}

// offer hands a frame over.
func (rs *ruleState) offer(r *run, f spool.Frame, own bool) bool {
	ruleSeq := rs.at.RuleSeq + 1
	if !rs.Actor.TryOffer(delivery.SharedItem(r.Dir, r.Session, f, ruleSeq, r.recent.share(f, own))) {
		return false
	}
	r.Meter.Matched(r.ctx, rs.ID, ruleSeq)
	rs.out = append(rs.out, handed{f.Seq, ruleSeq, f.At})
	rs.at = spool.Cursor{Seq: f.Seq, RuleSeq: ruleSeq, At: f.Next}
	return true
}

// keepShared bounds the records that are kept for rules that come to them later, in
// bytes: rules that fell behind together read the same ones within a short time.
const keepShared = 4 << 20

// recent are the records that were offered last, by where they are.
type recent struct {
	known map[spool.Position]*redact.Shared
	order []spool.Position // oldest first
	bytes int
}

// share is a frame's record, the same for all rules that are offered it. The frame's
// bytes are copied unless own says that nobody changes them.
func (c *recent) share(f spool.Frame, own bool) *redact.Shared {
	if known := c.known[f.At]; known != nil {
		return known
	}
	if !own {
		f.JSON = slices.Clone(f.JSON)
	}
	record := redact.NewShared(f.JSON)
	if c.known == nil {
		c.known = map[spool.Position]*redact.Shared{}
	}
	c.known[f.At] = record
	c.order = append(c.order, f.At)
	for c.bytes += len(f.JSON); c.bytes > keepShared && len(c.order) > 1; c.order = c.order[1:] {
		c.bytes -= len(c.known[c.order[0]].Bytes())
		delete(c.known, c.order[0])
	}
	return record
}

// fallBehind gives the rule a reader of its own, from frame f on.
func (rs *ruleState) fallBehind(r *run, f spool.Frame) {
	rs.at.At = f.At
	rs.own = spool.NewReader(r.Dir, f.At)
	rs.behind, rs.disk, rs.counting = 0, 0, f.Seq
	rs.count(r, f.Seq)
	r.Meter.Spooled(r.ctx, rs.ID, f.Seq)
	r.Log.Debug().Str("rule", rs.ID).Uint64("seq", f.Seq).Msg("rule falls behind")
}

// count counts a record that waits on disk.
func (rs *ruleState) count(r *run, seq uint64) {
	rs.counted = seq
	rs.disk++
	if seq > r.live {
		rs.behind++
	}
}

// uncount takes one off that no longer does.
func (rs *ruleState) uncount(r *run, seq uint64) {
	if seq >= rs.counting && rs.disk > 0 {
		rs.disk--
	}
	if seq > r.live && rs.behind > 0 {
		rs.behind--
	}
}

// catchUp hands a rule that fell behind what it has room for, drops what is over
// its cap, and lets it join the head when it is there.
func (r *run) catchUp(rs *ruleState) (moved bool, err error) {
	for range batch {
		if rs.at.Seq >= r.read.Seq {
			rs.own.Close()
			if rs.disk > 0 {
				// The head has read them; since then they have gone.
				r.Meter.Dropped(r.ctx, rs.ID, gapMissing, uint64(rs.disk))
				r.gap(record.Gap{Reason: gapMissing, Rule: rs.ID}, uint64(rs.disk))
			}
			rs.own, rs.behind, rs.disk = nil, 0, 0
			rs.at.At = r.read.At
			return true, nil
		}
		over := rs.over()
		if !over && len(rs.out) >= Window {
			return moved, nil
		}
		f, err := rs.own.Next()
		var damage *spool.Damage
		switch {
		case errors.Is(err, spool.ErrWait):
			// The stretch the head has read is gone or damaged at its end.
			rs.at.Seq = r.read.Seq
			continue
		case errors.As(err, &damage):
			continue // the head has reported it
		case err != nil:
			return moved, err
		}
		if f.Seq <= rs.at.Seq {
			continue
		}
		if !rs.matches(f, delivery.SectionOf(f.JSON)) {
			rs.at = spool.Cursor{Seq: f.Seq, RuleSeq: rs.at.RuleSeq, At: f.Next}
			r.dirty = true
			continue
		}
		switch {
		case over && f.Seq > r.live:
			r.Meter.Matched(r.ctx, rs.ID, rs.at.RuleSeq+1)
			r.Meter.Dropped(r.ctx, rs.ID, gapQueueFull, 1)
			if delivery.SectionOf(f.JSON) != record.SectionGap {
				// A lost gap record is told of in none: each would push out another.
				r.gap(record.Gap{Reason: gapQueueFull, Rule: rs.ID}, 1)
			}
			rs.at = spool.Cursor{Seq: f.Seq, RuleSeq: rs.at.RuleSeq + 1, At: f.Next}
		case !rs.offer(r, f, false):
			// Full after all; look at this frame again next time.
			rs.own.Close()
			rs.own = spool.NewReader(r.Dir, f.At)
			rs.at.At = f.At
			return moved, nil
		}
		rs.uncount(r, f.Seq)
		r.dirty, moved = true, true
	}
	r.Appended() // there may be more; let the mailbox have its turn
	return moved, nil
}

// over reports whether more records wait for a best-effort rule than may.
func (rs *ruleState) over() bool {
	return rs.Cap > 0 && rs.behind > 0 && rs.behind+len(rs.out) > rs.Cap
}

// waiting is how many records wait for the rule, and when the hook saw the
// oldest of them.
func (rs *ruleState) waiting(r *run) (uint64, time.Time) {
	n := uint64(len(rs.out) + rs.disk)
	seq, at := rs.at.Seq+1, rs.at.At
	if len(rs.out) > 0 {
		seq, at = rs.out[0].seq, rs.out[0].at
	}
	switch {
	case n == 0:
		return 0, time.Time{}
	case seq != rs.oldest:
		rs.oldest, rs.since = seq, time.Now()
		if f, err := spool.ReadAt(r.Dir, at); err == nil {
			rs.since = delivery.TimeOf(f.JSON)
		}
	}
	return n, rs.since
}
