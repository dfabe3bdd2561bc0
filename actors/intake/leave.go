package intake

import (
	"errors"
	"time"

	"ways/hooks/launch"
	"ways/hooks/spool"
	"ways/metrics/events"
)

// leave takes the last look and, when nothing is left to do here, gives up the
// dispatcher's lock under the append lock: whoever appends after that finds it
// free. Records whose rules only wait to try again are left in the spool when
// the session is over, or nothing has moved for long; another dispatcher adopts
// them.
func (r *run) leave() (bool, error) {
	if !r.ours() {
		return false, errReplaced
	}
	drained := r.drained()
	if !drained && !(r.resting() && (r.over || time.Since(r.moved) >= r.Linger)) {
		return false, nil
	}
	if r.tellGaps() {
		return false, nil
	}
	if len(r.gaps) > 0 {
		return false, errUntold
	}
	if !r.followed(func(f Follower) (bool, error) { return f.AtRest(r.ctx) }) {
		return false, nil
	}
	if !drained {
		// The rules stop before the lock goes: two processes must never deliver
		// one session's records at once.
		r.stop()
		drained = r.drained()
	}
	held, err := spool.Lock(r.Dir, lockWait)
	if err != nil {
		return false, err
	}
	defer held.Release()
	if !r.ours() {
		return false, errReplaced
	}
	if more, err := r.lastLook(held); more || err != nil {
		return false, err
	}
	if r.read.Seq < r.saved {
		r.missing(r.saved)
		return false, nil
	}
	if !r.followed(func(f Follower) (bool, error) { return f.Leave(r.ctx, r.read.Seq, drained) }) {
		return false, nil
	}
	reason := "idle"
	if drained {
		r.settleAt(r.settled())
	} else {
		reason = "undelivered"
		r.dirty = true
	}
	if err := r.save(); err != nil {
		return false, err
	}
	if drained {
		// Behind the save: a segment of notes alone is named as the next one will be,
		// and a position in it must not be taken for one in that.
		if _, err := held.Clear(r.Dir); err != nil {
			return false, err
		}
	}
	// A meter that cannot save must not say at each try that this is the end.
	if err := r.Meter.Flush(r.ctx); err != nil {
		return false, err
	}
	// Said before it is certain: once the lock is given up, the session's files
	// may be another dispatcher's.
	r.Meter.Happened(r.ctx, events.DispatcherEnd, reason)
	if err := r.Meter.Flush(r.ctx); err != nil {
		return false, err
	}
	if drained && r.Drained != nil {
		r.Drained()
	}
	if err := launch.Release(r.Lock); err != nil {
		return false, err
	}
	// A hook that could not get the append lock may have put a record in the inbox
	// since the look, and seen the dispatcher's lock held. Whichever of the two
	// came last sees the other.
	if spool.InboxWaiting(r.Dir) {
		lock, err := launch.TryLock(r.Dir)
		if err == nil {
			r.Lock = lock
			return false, nil
		}
	}
	return true, nil
}

// rest is how long the spool stays empty before the dispatcher leaves. It was
// about to, when the follower had something to add: that is no reason to stay on.
func (r *run) rest() time.Duration {
	if r.restless && (r.over || time.Since(r.moved) >= r.Idle) {
		return min(r.Idle, restlessIdle)
	}
	return r.Idle
}

// followed asks the follower. One that has not answered for long holds nobody up.
func (r *run) followed(ask func(Follower) (bool, error)) bool {
	if r.Follower == nil {
		return true
	}
	ok, err := ask(r.Follower)
	if err != nil {
		r.Log.Error().Err(err).Msg("the transcript actor does not answer")
		r.silent++
		ok = r.silent > maxSilent
	} else {
		r.silent = 0
	}
	r.restless = !ok
	return ok
}

// errReplaced ends a dispatcher whose session's directory is no longer there. What
// is at its path now is another dispatcher's, with cursors and records of its own.
var errReplaced = errors.New("the session's directory was deleted or replaced under this dispatcher; what it held is gone, and what came since is the next dispatcher's")

// ours reports whether the session's directory is the one of the lock.
func (r *run) ours() bool { return r.Lock == nil || launch.Held(r.Dir, r.Lock) }

// errUntold keeps a dispatcher from leaving with a gap that no record tells of.
var errUntold = errors.New("a gap could not be written")

// stop stops the rules and takes the word of what they finished.
func (r *run) stop() {
	r.Roster.Stop()
	r.stopped = true
	r.takeAcks()
}

// resume goes on after a stop: each rule from where it was done.
func (r *run) resume() {
	r.stopped = false
	r.saved = max(r.saved, r.read.Seq)
	for _, rs := range r.order {
		c := rs.cursor()
		r.parked[rs.ID] = c
		if c.Seq < r.read.Seq {
			r.read = spool.Cursor{Seq: c.Seq, At: c.At}
		}
	}
	for id, n := range r.absent {
		r.parked[id] = spool.Cursor{Seq: r.saved, RuleSeq: n, At: r.read.At}
	}
	r.closeReaders()
	r.order, r.stalled, r.satisfied = nil, nil, 0
	r.rules, r.absent = map[string]*ruleState{}, map[string]uint64{}
	r.head = spool.NewReader(r.Dir, r.read.At)
	r.Appended()
}

// why says why the dispatcher leaves, for its log.
func (r *run) why() string {
	if r.drained() {
		return "the spool stayed empty"
	}
	return "nothing new came; what waits for another try is adopted later"
}

// lastLook reports whether there is more to read, while nobody can append.
func (r *run) lastLook(held *spool.Locked) (more bool, err error) {
	for {
		_, err := r.head.Settle(held)
		var damage *spool.Damage
		switch {
		case errors.As(err, &damage):
			r.damaged(damage)
			r.advance(spool.Cursor{Seq: r.read.Seq, At: r.head.Position()})
			continue
		case errors.Is(err, spool.ErrWait):
			return spool.InboxWaiting(r.Dir), nil
		}
		// A record came in. The reader has moved past it; read it again.
		r.head.Close()
		r.head = spool.NewReader(r.Dir, r.read.At)
		return err == nil, err
	}
}

// settled is where the next record is looked for, whether or not the segments go
// after the cursors are saved: as long as they are there, writers append to the
// last one. A segment without a record is named as the next one will be, and
// begun anew.
func (r *run) settled() spool.Position {
	if at := r.read.At; at.Segment <= r.read.Seq {
		return at
	}
	return spool.Position{Segment: r.read.Seq + 1}
}

// settleAt puts every position at one place.
func (r *run) settleAt(at spool.Position) {
	r.read.At = at
	for _, rs := range r.order {
		rs.at.At = at
	}
	r.head.Close()
	r.head = spool.NewReader(r.Dir, at)
	r.dirty = true
}
