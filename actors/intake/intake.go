// Package intake is the spool actor: it reads a session's spool, selects for
// each rule, hands records out, and owns every rule's position and the spool's
// space (design §7).
//
// It never waits for a rule. All rules that keep up share one reader, the head. A
// rule whose queue is full falls behind: it gets a reader of its own that goes on
// from where the rule stopped as its queue empties, and joins the head again when
// it has caught up. What waits for a rule waits on disk, so memory is bounded by
// the small queues whatever the backlog. A best-effort rule that falls behind by
// more than its cap loses its oldest waiting records, counted.
package intake

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"ways/actors/actor"
	"ways/actors/delivery"
	"ways/config/plan"
	"ways/hooks/record"
	"ways/hooks/spool"
	"ways/hooks/ticket"
)

// Window is how many records wait in memory for one rule.
const Window = 64

const (
	// batch is how many records are read between two looks at the mailbox.
	batch = 64
	// saveEvery bounds how often cursors are saved while they move: each save is
	// flushed to the disk.
	saveEvery = time.Second
	// patience is how long the head waits for a full rule that has just been
	// handing records on. A rule at a dead consumer gets none.
	patience = 5 * time.Millisecond
	// lockWait is how long the last look waits for the append lock.
	lockWait = 2 * time.Second
	// restlessIdle is when a follower that had something to add is asked again, and
	// maxSilent how often one may not answer.
	restlessIdle = 250 * time.Millisecond
	maxSilent    = 10
	// maxStuck is how often in a row a dispatcher that has no more reason to stay fails
	// to leave before it goes without saving how far it came.
	maxStuck = 10
	// retryInbox is when an inbox that could not be taken in is tried again.
	retryInbox = time.Second
)

// Selected is one rule of a plan, ready to be evaluated and run.
type Selected struct {
	ID       string
	Sections record.Set
	// Where evaluates the rule's condition on a record; nil for none.
	Where func(record []byte) bool
	// Cap is how many records may wait for a best-effort rule; 0 for no cap.
	Cap int
	// Actor is where its records go.
	Actor delivery.Rule
}

// Roster turns plans into running rules.
type Roster interface {
	// Load returns the plan for a project, and its generation.
	Load(project string) (plan.Plan, uint64, error)
	// Run makes the rules of a plan run, and stops those of the plan before it
	// that are not in it or have changed, whose ids it returns.
	Run(ctx context.Context, p plan.Plan) (rules []Selected, stopped []string)
	// Stop stops every rule. What is in flight is finished first.
	Stop()
}

// Meter counts; the meter actor is one.
type Meter interface {
	// Read says that the spool was read up to record seq, Damaged that a stretch
	// of it held no whole record.
	Read(ctx context.Context, seq uint64, section, source string)
	Damaged(ctx context.Context)
	// Unwritten says that hooks could not write n records.
	Unwritten(ctx context.Context, n uint64)
	// Matched says that a rule was handed its record number ruleSeq.
	Matched(ctx context.Context, rule string, ruleSeq uint64)
	Dropped(ctx context.Context, rule, reason string, n uint64)
	// Spooled says that a rule fell behind: records wait for it on disk from seq on.
	Spooled(ctx context.Context, rule string, seq uint64)
	// Waiting sets how many records wait for a rule, and since when.
	Waiting(ctx context.Context, rule string, n uint64, since time.Time)
	// Describe notes where each rule sends, and for which project.
	Describe(ctx context.Context, project string, targets map[string]string)
	// Happened notes an event of the dispatcher itself.
	Happened(ctx context.Context, kind, reason string)
	// Flush returns when all of it is on disk.
	Flush(ctx context.Context) error
}

// Follower is who reads the spool beside the rules and may add to it: the
// transcript actor. An error of its methods: it did not answer.
type Follower interface {
	// AtRest reports whether it has nothing to add for now.
	AtRest(ctx context.Context) (bool, error)
	// Leave reports, while nobody can append, whether it has read all. With cleared,
	// the spool is emptied then: what comes after record last begins a new segment.
	Leave(ctx context.Context, last uint64, cleared bool) (bool, error)
}

// Options say what the actor works with.
type Options struct {
	Dir     string
	Session string
	// Lock is the dispatcher's lock; the actor gives it up when it leaves for good.
	Lock *os.File
	Idle time.Duration
	// Linger is how long the dispatcher stays for rules that only wait to try
	// again, or while it cannot even save how far it came, in a session that goes on.
	// With 0 it drains once.
	Linger time.Duration
	// Follower, when set, reads the spool beside the rules.
	Follower Follower
	// Drained, when set, is called when the session's spool is empty and the
	// dispatcher is about to leave.
	Drained func()
	Roster  Roster
	// Generation, when set, returns the generation of a project's index, as it is now.
	Generation func(project string) (uint64, error)
	Meter      Meter
	Log        zerolog.Logger
}

// Intake is the actor.
type Intake struct {
	Options
	acks  chan word
	bell  chan struct{}
	ended chan struct{}
	pause chan chan struct{}
	gone  chan struct{}
	keep  chan uint64
}

// word is what a rule says: that it is done with a record, or only rests. Both
// come one way, so that a rest is never heard after the end of what it was for.
type word struct {
	delivery.Done
	resting bool
}

// New returns the spool actor of one session.
func New(o Options) *Intake {
	return &Intake{
		Options: o,
		acks:    make(chan word, 1024),
		bell:    make(chan struct{}, 1),
		ended:   make(chan struct{}, 1),
		pause:   make(chan chan struct{}),
		gone:    make(chan struct{}),
		keep:    make(chan uint64, 1),
	}
}

// String names the actor.
func (in *Intake) String() string { return "spool" }

// Appended says that there may be something to read. It never waits.
func (in *Intake) Appended() { poke(in.bell) }

// Ended says that the session ended: leave as soon as all is drained.
func (in *Intake) Ended() { poke(in.ended); poke(in.bell) }

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Keep takes the follower's word that it needs the segments from this one on. It
// never waits.
func (in *Intake) Keep(segment uint64) {
	for {
		select {
		case in.keep <- segment:
			return
		default:
		}
		select {
		case <-in.keep: // an older word
		default:
		}
	}
}

// Done takes a rule's word that it is finished with a record.
func (in *Intake) Done(ctx context.Context, d delivery.Done) { in.hear(ctx, word{Done: d}) }

func (in *Intake) hear(ctx context.Context, w word) {
	select {
	case in.acks <- w:
	case <-in.gone:
	case <-ctx.Done():
	}
}

// Resting takes a rule's word that it waits before it tries its record again.
func (in *Intake) Resting(ctx context.Context, rule string) {
	in.hear(ctx, word{Done: delivery.Done{Rule: rule}, resting: true})
}

// Pause makes the actor hand nothing out any more, while it goes on to take
// what rules finish. It returns when that holds.
func (in *Intake) Pause(ctx context.Context) {
	reply := make(chan struct{})
	select {
	case in.pause <- reply:
		<-reply
	case <-in.gone:
	case <-ctx.Done():
	}
}

// run is the state of one life of Serve.
type run struct {
	*Intake
	ctx    context.Context
	head   *spool.Reader
	rules  map[string]*ruleState
	order  []*ruleState
	parked map[string]spool.Cursor // where rules go on that are to run
	// absent is the numbering of rules that are not in the plan. Should one come
	// back, it begins with the frame that brought it: what came while it was off,
	// or not trusted, is not its.
	absent map[string]uint64
	// owed are the at-least-once rules of the plan, and those that are in it no more
	// and have something left; owedText is what their file holds.
	owed     map[string]*owed
	owedText []byte
	// owes: they are not in it yet, so the cursors must not move on.
	owes bool
	read spool.Cursor // how far the head is
	// saved is the number up to which an earlier life had read.
	saved uint64
	// live is the last number that was in the spool when this life began: what
	// came before it is backlog, and counts against nobody's cap.
	live       uint64
	project    string
	generation uint64
	// awaited is the last number in the spool for which a look at the index was put
	// off.
	awaited uint64
	// satisfied is the generation last looked up for a frame; it may differ from
	// the loaded one when the index has moved on.
	satisfied uint64
	stalled   *spool.Frame // the frame the head waits with, for a full rule
	stalledBy time.Time
	// recent are the records that were offered last.
	recent recent
	dirty  bool
	// fresh: the head or the inbox may hold something. Looking costs more than what
	// a rule's word that it is done with a record is worth.
	fresh bool
	// ending: leave as soon as all is drained. over: the session ended.
	ending, over bool
	paused       bool
	// kept is the segment that the follower still needs; silent counts its missing
	// answers; restless: it has something to add.
	kept     uint64
	silent   int
	restless bool
	// stopped: the rules were stopped to leave.
	stopped bool
	// moved is when anything was last read or finished.
	moved time.Time
	// gaps are losses that no record tells of yet, told the unwritten records
	// that one did.
	gaps map[record.Gap]uint64
	told uint64
}

// Serve runs until ctx ends, or until the session's spool is drained for good:
// then it has given up the dispatcher's lock, and returns actor.Done.
func (in *Intake) Serve(ctx context.Context) error {
	r := &run{Intake: in, ctx: ctx, rules: map[string]*ruleState{}, parked: map[string]spool.Cursor{}, absent: map[string]uint64{}, owed: map[string]*owed{}, gaps: map[record.Gap]uint64{}, moved: time.Now(), fresh: true}
	if err := r.restore(); err != nil {
		return err
	}
	defer r.closeReaders()
	stuck := 0
	idle := time.NewTimer(in.Idle)
	defer idle.Stop()
	var saveDue, wait <-chan time.Time
	more := true
	// rung: somebody rang since the index was last looked at.
	rung := false
	always := make(chan struct{})
	close(always)
	for {
		if r.dirty && saveDue == nil {
			saveDue = time.After(saveEvery)
		}
		var ready chan struct{}
		if more && !r.paused {
			ready = always
		}
		select {
		case <-ctx.Done():
			r.takeAcks()
			if !r.ours() {
				return errors.Join(ctx.Err(), errReplaced)
			}
			return errors.Join(ctx.Err(), r.save())
		case reply := <-in.pause:
			r.paused = true
			close(reply)
		case w := <-in.acks:
			r.heard(w)
			r.takeAcks()
			more = true
		case <-in.ended:
			r.ending, r.over = true, true
			more, r.fresh = true, true
		case <-in.bell:
			more, r.fresh = true, true
			rung = true
		case <-saveDue:
			saveDue = nil
			if !r.ours() {
				return actor.Fatal(errReplaced)
			}
			r.tellGaps()
			if err := r.save(); err != nil {
				in.Log.Error().Err(err).Msg("cursors not saved; a restart would deliver again")
			}
		case <-wait:
			wait = nil
			more, r.fresh = true, true
		case <-idle.C:
			left, err := r.leave()
			switch {
			case errors.Is(err, errReplaced):
				return actor.Fatal(err)
			case err == nil:
				stuck = 0
			case r.over || time.Since(r.moved) >= in.Linger:
				if stuck++; stuck >= maxStuck {
					return actor.Fatal(fmt.Errorf("cannot leave in order, so it leaves as it is; what it has not noted is delivered again: %w", err))
				}
			}
			if err != nil {
				in.Log.Error().Err(err).Msg("cannot leave yet")
			}
			if !left && r.stopped {
				r.resume()
			}
			if left {
				close(in.gone)
				return actor.Done(r.why())
			}
			// A session that is over is left once what kept it is done, not an idle time
			// later. The follower is asked again at its own pace.
			r.ending = r.ending || err == nil && r.over && !r.restless
			more, r.fresh = true, true
			idle.Reset(r.rest())
		case <-ready:
			var progress bool
			var err error
			more, progress, err = r.step()
			if err != nil {
				return err
			}
			if progress {
				r.moved = time.Now()
				idle.Reset(r.rest())
			}
			if rung && !more && r.stalled == nil {
				rung = !r.look()
				if rung {
					more, r.fresh = true, true
				}
			}
			switch {
			case more:
			case r.stalled != nil:
				wait = time.After(patience)
			case r.fresh && spool.InboxWaiting(in.Dir):
				wait = time.After(retryInbox)
			case r.ending && r.drained():
				r.ending = false
				idle.Reset(0)
			}
		}
	}
}

// restore finds where to go on.
func (r *run) restore() error {
	cur, err := spool.LoadCursors(r.Dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		// Twice is better than never: begin at the oldest record there is.
		r.Log.Error().Err(err).Msg("cursors unreadable; records in the spool are delivered again")
	default:
		r.parked = cur.Rules
		r.saved = cur.Read.Seq
		r.told = cur.Unwritten
		// The head begins where the slowest rule is; the others pass over what
		// they have done.
		r.read = cur.Read
		for _, c := range cur.Rules {
			if c.Seq < r.read.Seq {
				r.read = spool.Cursor{Seq: c.Seq, At: c.At}
			}
		}
	}
	r.loadOwed()
	if _, err := spool.TakeInbox(r.Dir, lockWait); err != nil {
		r.Log.Error().Err(err).Msg("inbox not taken in")
	}
	r.live, err = spool.LastSeq(r.Dir, lockWait)
	switch {
	case err != nil:
		r.Log.Warn().Err(err).Msg("last sequence number unknown")
	case r.live < r.saved:
		// The log was cut back behind the cursors (a power cut: they are flushed,
		// records are not). Numbers up to saved are given anew, so being past them
		// says nothing.
		r.Log.Error().Uint64("last", r.live).Uint64("cursor", r.saved).
			Msg("the spool ends before the cursors; what it holds is delivered again")
		r.read, r.saved = spool.Cursor{}, 0
		for id, c := range r.parked {
			r.parked[id] = spool.Cursor{RuleSeq: c.RuleSeq}
		}
		for _, k := range r.owed {
			k.Off = nil
		}
	}
	r.head = spool.NewReader(r.Dir, r.read.At)
	return nil
}

// step reads a batch. It reports whether there may be more to read at once, and
// whether anything happened.
func (r *run) step() (more, progress bool, err error) {
	for _, rs := range r.order {
		if rs.own != nil {
			moved, err := r.catchUp(rs)
			if err != nil {
				return false, progress, err
			}
			progress = progress || moved
		}
	}
	if !r.fresh && r.stalled == nil {
		return false, progress, nil
	}
	for range batch {
		f, err := r.next()
		var damage *spool.Damage
		switch {
		case errors.Is(err, spool.ErrWait):
			took, err := spool.TakeInbox(r.Dir, lockWait)
			if err != nil {
				r.Log.Error().Err(err).Msg("inbox not taken in")
			}
			if took > 0 {
				return true, true, nil
			}
			r.fresh = err != nil
			return false, progress, nil
		case errors.As(err, &damage):
			r.damaged(damage)
			r.advance(spool.Cursor{Seq: r.read.Seq, At: r.head.Position()})
			progress = true
			continue
		case err != nil:
			return false, progress, fmt.Errorf("read the spool: %w", err)
		}
		if r.stalled == nil {
			r.missing(f.Seq - 1)
			if err := r.follow(f); err != nil {
				return false, progress, err
			}
			r.settleOwed(f)
		}
		if !r.handOut(f) {
			return false, progress, nil // a rule needs a moment
		}
		progress = true
	}
	return true, progress, nil
}

// next is the frame the head waits with, or the next one.
func (r *run) next() (spool.Frame, error) {
	if r.stalled != nil {
		return *r.stalled, nil
	}
	f, err := r.head.Next()
	if err == nil {
		// The reader reuses its buffer, and the record is shared by all rules
		// that want it.
		f.JSON = slices.Clone(f.JSON)
	}
	return f, err
}

// handOut offers a frame to every rule that keeps up and wants it. It returns
// false, with the frame kept, when a healthy rule is full for the moment.
func (r *run) handOut(f spool.Frame) bool {
	now := time.Now()
	section := delivery.SectionOf(f.JSON)
	for _, rs := range r.order {
		if f.Seq <= rs.at.Seq {
			continue // from before a restart, or the rule's first record: done
		}
		matches := rs.matches(f, section)
		if rs.own != nil {
			if matches && f.Seq > rs.counted {
				rs.count(r, f.Seq)
				if rs.over() {
					r.Appended() // what is over its cap goes now, not when it has room
				}
			}
			continue
		}
		if !matches {
			rs.at = spool.Cursor{Seq: f.Seq, RuleSeq: rs.at.RuleSeq, At: f.Next}
			continue
		}
		if !rs.offer(r, f, true) {
			if now.Sub(rs.lastAck) < patience && (r.stalled == nil || now.Sub(r.stalledBy) < patience) {
				if r.stalled == nil {
					r.stalled, r.stalledBy = &f, now
				}
				return false
			}
			rs.fallBehind(r, f)
		}
	}
	r.stalled = nil
	switch section {
	case record.SessionEnd:
		// The wake-up that says the same rings nowhere when this record is what
		// the dispatcher was started for.
		r.ending, r.over = true, true
	case record.SessionStart:
		r.ending, r.over = false, false
	}
	r.Meter.Read(r.ctx, f.Seq, section.String(), delivery.StringField(f.JSON, "source"))
	r.advance(spool.Cursor{Seq: f.Seq, At: f.Next})
	return true
}

func (r *run) advance(to spool.Cursor) {
	r.read = to
	r.dirty = true
}

// takeAcks takes every word that rules have sent so far.
func (r *run) takeAcks() {
	for {
		select {
		case w := <-r.acks:
			r.heard(w)
		default:
			return
		}
	}
}

func (r *run) heard(w word) {
	if !w.resting {
		r.done(w.Done)
	} else if rs := r.rules[w.Rule]; rs != nil {
		rs.resting = true
	}
}

// done moves a rule's position over a record it is finished with.
func (r *run) done(d delivery.Done) {
	rs := r.rules[d.Rule]
	if rs == nil || len(rs.out) == 0 || rs.out[0].seq != d.Seq {
		return // of a life before this one
	}
	rs.out = rs.out[1:]
	rs.lastAck, rs.resting = time.Now(), false
	r.moved = rs.lastAck
	r.dirty = true
	if d.Lost != "" {
		r.gap(record.Gap{Reason: d.Lost, Rule: d.Rule}, 1)
	}
}

// drained reports whether nothing is left to do.
func (r *run) drained() bool {
	for _, rs := range r.order {
		if rs.own != nil || len(rs.out) > 0 {
			return false
		}
	}
	return r.stalled == nil
}

// resting reports whether all that is left is with rules that wait before they
// try again.
func (r *run) resting() bool {
	for _, rs := range r.order {
		if !rs.resting && (rs.own != nil || len(rs.out) > 0) {
			return false
		}
	}
	return r.stalled == nil
}

// save writes the cursors, gives space back, and tells the meter what waits.
func (r *run) save() error {
	if !r.dirty {
		return nil
	}
	if r.owes {
		if err := r.saveOwed(); err != nil {
			return err
		}
	}
	cur := spool.Cursors{Read: r.read, Unwritten: r.told, Rules: maps.Clone(r.parked)}
	// A rule that is not in the plan holds nothing back.
	for id, n := range r.absent {
		cur.Rules[id] = spool.Cursor{Seq: r.read.Seq, RuleSeq: n, At: r.read.At}
	}
	oldest := r.read.At.Segment
	for _, rs := range r.order {
		c := rs.cursor()
		cur.Rules[rs.ID] = c
		if c.At.Segment != 0 {
			oldest = min(oldest, c.At.Segment)
		}
		n, since := rs.waiting(r)
		if n != rs.told || !since.Equal(rs.toldSince) {
			r.Meter.Waiting(r.ctx, rs.ID, n, since)
			rs.told, rs.toldSince = n, since
		}
	}
	// Counted first: what the cursors are past never comes again.
	counting, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), lockWait)
	if err := r.Meter.Flush(counting); err != nil {
		r.Log.Error().Err(err).Msg("counters lag behind the cursors")
	}
	cancel()
	if r.Follower != nil {
		select {
		case r.kept = <-r.keep:
		default:
		}
		oldest = min(oldest, r.kept)
	}
	if err := spool.SaveCursors(r.Dir, cur); err != nil {
		return err
	}
	r.dirty = len(r.gaps) > 0 // what could not be told is told later
	if r.drained() {
		r.recent = recent{} // nobody comes to them any more
	}
	done := r.read.Seq
	for _, c := range cur.Rules {
		done = min(done, c.Seq)
	}
	if err := ticket.Reclaim(r.Dir, done); err != nil {
		return err
	}
	freed, err := spool.Reclaim(r.Dir, oldest)
	if freed > 0 {
		r.Log.Debug().Int64("bytes", freed).Msg("spool space given back")
	}
	return err
}

func (r *run) closeReaders() {
	r.head.Close()
	for _, rs := range r.order {
		if rs.own != nil {
			rs.own.Close()
		}
	}
}
