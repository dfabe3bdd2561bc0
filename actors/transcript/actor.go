// Package transcript is the transcript actor: it reads a session's transcripts
// and appends to the spool what no hook told (design §10).
//
// # Why a record is neither missing nor there twice
//
// Hooks and transcripts tell of the same things, in any order. What a hook told
// and what a transcript showed are struck off against each other: tool calls and
// results by the call's id, prompts by the prompt's, replies and queued messages
// by their text, one for one. What a transcript shows and no hook told waits as
// an item until it is certain that none will: its turn has ended, or the agent
// has gone on, and a settling time has passed (Options.Settle), or the hook that
// ended the turn has told a reply that stands behind it.
//
// The state is saved as one snapshot and may be lost back to the last one. The
// spool keeps its segments from the snapshot's position on (Spool.Keep), so the
// hooks' records since then are read again, and so are our own: they name the
// place in the transcript they came from, and what is in the spool is not
// appended again. Nothing is appended before the spool was read to its end.
package transcript

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"ways/hooks/index"
	"ways/hooks/spool"
	"ways/hooks/transcript"
)

// Defaults of Options.
const (
	// DefaultSettle is how long a hook may be late behind its turn's end.
	DefaultSettle = 2 * time.Second
	// DefaultLate is how long a client may be late with what a hook has told.
	DefaultLate = 5 * time.Second
	// DefaultPoll is how soon after a hook transcripts, and the client's life, are
	// looked at again. While nothing comes they are looked at less and less often.
	DefaultPoll = 2 * time.Second
)

const (
	// quick is how often they are looked at while something is awaited, and maxPoll
	// the longest time between two looks.
	quick   = 200 * time.Millisecond
	maxPoll = 32 * time.Second
	// saveEvery bounds how often the state is saved while it changes.
	saveEvery = time.Second
	// backlog is how many frames are read between two looks at the transcripts.
	backlog = 256
	// maxBlind is how often an index may be unreadable before it counts as empty.
	maxBlind = 50
	// askWait bounds how long the spool actor waits for an answer.
	askWait = 5 * time.Second
)

// Spool is what the actor says to the spool actor. Its methods never wait.
type Spool interface {
	// Appended: there is something to read.
	Appended()
	// Ended: the session is over.
	Ended()
	// Keep: segments from this one on are needed; all before it are not.
	Keep(segment uint64)
}

// Options say what the actor works with.
type Options struct {
	Dir, Session string
	// Index returns the header of a project's index, as it is now.
	Index func(project string) (index.Header, error)
	Spool Spool
	// Settle, Late and Poll: see the defaults, which hold for 0.
	Settle, Late, Poll time.Duration
	Log                zerolog.Logger
}

// Actor is the actor.
type Actor struct {
	Options
	bell chan struct{}
	asks chan ask
	// reader and sent belong to Serve. sent are the keys of our own records on
	// their way back through the spool.
	reader transcript.Reader
	sent   []string
}

// ask is a question of the spool actor's.
type ask struct {
	// leave: the spool actor holds the append lock and is about to leave; the last
	// number given is last, and the spool will be cleared.
	leave, cleared bool
	last           uint64
	reply          chan bool
}

// New returns the transcript actor of one session.
func New(o Options) *Actor {
	if o.Settle <= 0 {
		o.Settle = DefaultSettle
	}
	if o.Late <= 0 {
		o.Late = DefaultLate
	}
	if o.Poll <= 0 {
		o.Poll = DefaultPoll
	}
	return &Actor{Options: o, bell: make(chan struct{}, 1), asks: make(chan ask)}
}

// String names the actor.
func (a *Actor) String() string { return "transcript" }

// Appended says that there may be something new in the spool. It never waits.
func (a *Actor) Appended() {
	select {
	case a.bell <- struct{}{}:
	default:
	}
}

// Ended is Appended: how a session ended stands in the spool.
func (a *Actor) Ended() { a.Appended() }

// errSilent is the error of a question that got no answer in time.
var errSilent = errors.New("no answer in time")

// AtRest reports whether the actor has nothing left to add for now: the
// dispatcher may leave. An error: it did not answer in time.
func (a *Actor) AtRest(ctx context.Context) (bool, error) { return a.ask(ctx, ask{}) }

// Leave reports, under the append lock, whether all is read. When the spool is
// cleared, the next life begins behind the last number given.
func (a *Actor) Leave(ctx context.Context, last uint64, cleared bool) (bool, error) {
	return a.ask(ctx, ask{leave: true, last: last, cleared: cleared})
}

func (a *Actor) ask(ctx context.Context, q ask) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	q.reply = make(chan bool, 1)
	select {
	case a.asks <- q:
	case <-ctx.Done():
		return false, errSilent
	}
	select {
	case ok := <-q.reply:
		return ok, nil
	case <-ctx.Done():
		return false, errSilent
	}
}

// run is one life of Serve.
type run struct {
	*Actor
	st    *state
	spool *spool.Reader
	dirty bool
	saved time.Time
	// moved is when anything was last heard or read.
	moved time.Time
	// gone is since when the client has been seen dead.
	gone time.Time
	// kept is the segment last told to the spool actor.
	kept uint64
	// noted: a note came in since the transcripts were read.
	noted bool
	// next is when the next item is due.
	next time.Time
	// failing is the error last logged, not to log it again.
	failing string
	// blind counts the failures to read the index, told the records appended since
	// the last snapshot.
	blind, told int
}

// Serve follows the transcripts until ctx ends.
func (a *Actor) Serve(ctx context.Context) error {
	st, err := load(a.Dir)
	if err != nil {
		a.Log.Error().Err(err).Msg("transcripts are followed anew from here on")
	}
	r := &run{Actor: a, st: st, spool: spool.NewReader(a.Dir, st.Pos), noted: true, saved: time.Now(), moved: time.Now()}
	r.spool.Notes = true
	a.sent = nil
	defer r.spool.Close()
	for {
		if err := r.step(ctx); err != nil {
			return errors.Join(err, r.save())
		}
		timer := time.NewTimer(r.pause())
		select {
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(ctx.Err(), r.save())
		case <-a.bell:
			r.moved = time.Now()
		case <-timer.C:
			r.noted = true
		case q := <-a.asks:
			q.reply <- r.answer(ctx, q)
		}
		timer.Stop()
	}
}

// pause is how long there is nothing to do. A session that is left alone must not
// wake the machine every other second: the longer nothing comes, the longer it is.
// Whatever it is that no hook told is read when the next one comes, or at the end.
func (r *run) pause() time.Duration {
	now := time.Now()
	wait := max(r.Poll, min(now.Sub(r.moved), maxPoll))
	if _, owed := r.st.owed(now, r.Late); owed || !r.gone.IsZero() || r.st.Ended && !r.st.Finished {
		wait = min(wait, quick)
	}
	if !r.next.IsZero() {
		wait = min(wait, max(r.next.Sub(now), time.Millisecond))
	}
	if r.dirty {
		wait = min(wait, max(r.saved.Add(saveEvery).Sub(now), time.Millisecond))
	}
	return wait
}

// step reads what is new, and acts on it.
func (r *run) step(ctx context.Context) error {
	if err := r.absorb(ctx); err != nil {
		return err
	}
	if r.noted {
		r.noted = false
		r.follow(ctx, false)
	}
	if err := r.act(ctx); err != nil {
		return err
	}
	if r.dirty && time.Since(r.saved) >= saveEvery {
		return r.save()
	}
	return nil
}

// absorb reads the spool to its end.
func (r *run) absorb(ctx context.Context) error {
	now := time.Now()
	for n := 1; ctx.Err() == nil; n++ {
		if n%backlog == 0 {
			// A long backlog: strike off as it comes, so that what is remembered of it
			// stays small.
			r.follow(ctx, false)
			r.st.match(now, r.Late, r.textOf)
		}
		f, err := r.spool.Next()
		var damage *spool.Damage
		switch {
		case errors.Is(err, spool.ErrWait):
			if pos := r.spool.Position(); pos != r.st.Pos {
				r.st.Pos, r.dirty = pos, true
			}
			return nil
		case errors.As(err, &damage):
			continue // the spool actor reports it
		case err != nil:
			return err
		}
		r.noted = r.noted || f.Note
		r.st.frame(f, now)
		r.returned()
		r.st.Pos, r.dirty = f.Next, true
	}
	return nil
}

// returned forgets records of ours that have come back through the spool.
func (r *run) returned() {
	for i := 0; i < len(r.sent); i++ {
		if take(&r.st.Emitted, r.sent[i]) {
			r.sent = slices.Delete(r.sent, i, i+1)
			i--
		}
	}
}

// follow reads what was added to the transcripts.
func (r *run) follow(ctx context.Context, final bool) {
	r.st.discover()
	for _, path := range r.paths() {
		f := r.st.Files[path]
		for ctx.Err() == nil {
			now := time.Now()
			rep, err := r.reader.Read(&f.File, final, func(l transcript.Line, again bool) { r.st.line(f, l, again, now) })
			if rep.Bytes > 0 || rep.Rewritten {
				r.dirty, r.moved = true, now
			}
			if rep.Rewritten {
				r.Log.Warn().Str("transcript", path).Msg("the transcript was rewritten; read again from its beginning")
			}
			for _, d := range rep.Damaged {
				r.Log.Warn().Str("transcript", path).Int64("at", d.At).Int64("bytes", d.Size).AnErr("error", d.Err).
					Msg("damaged stretch of a transcript passed over")
			}
			if err != nil {
				r.complain(err)
			}
			if err != nil || !rep.More {
				break
			}
			if r.dirty && time.Since(r.saved) >= saveEvery && r.save() != nil {
				break
			}
		}
	}
}

// paths lists the transcripts, the main one first.
func (r *run) paths() []string {
	var list []string
	for path := range r.st.Files {
		if path != r.st.Transcript {
			list = append(list, path)
		}
	}
	slices.Sort(list)
	if r.st.Files[r.st.Transcript] != nil {
		list = slices.Insert(list, 0, r.st.Transcript)
	}
	return list
}

// complain logs an error unless it is the last one again.
func (r *run) complain(err error) {
	if err.Error() != r.failing {
		r.failing = err.Error()
		r.Log.Error().Err(err).Msg("transcript not read")
	}
}

// act strikes off, appends what is due, and ends the session when it is over.
func (r *run) act(ctx context.Context) error {
	now := time.Now()
	st := r.st
	st.match(now, r.Late, r.textOf)
	if err := r.tell(ctx, now); err != nil {
		return err
	}
	if st.Lost != nil {
		h, err := r.header()
		if err != nil {
			return nil //nolint:nilerr // said, and tried again
		}
		if _, err := r.append(st, &h, r.end(st, &h, *st.Lost)); err != nil {
			return r.later(err)
		}
		st.Lost, r.dirty = nil, true
	}
	switch {
	case st.Ended && !st.Finished:
		return r.finish(ctx, now)
	case !st.Ended && !st.First.IsZero() && st.gone():
		if r.gone.IsZero() {
			r.gone = now
		}
		return r.mourn(ctx, now)
	default:
		r.gone = time.Time{}
	}
	return nil
}

// finish reads the last of a session whose end a hook told.
func (r *run) finish(ctx context.Context, now time.Time) error {
	st := r.st
	dead := st.Client.Gone()
	if _, owed := st.owed(now, r.Late); (owed || !dead) && now.Sub(st.EndedAt) < r.Settle || owed && now.Sub(st.EndedAt) < r.Late {
		return nil
	}
	r.follow(ctx, dead)
	st.over(now)
	st.match(now, r.Late, r.textOf)
	if dead {
		for _, it := range st.Items {
			it.Sure = true
		}
	}
	if err := r.tell(ctx, now); err != nil || len(st.Items) > 0 || ctx.Err() != nil {
		return err
	}
	h, err := r.header()
	if err != nil {
		return nil //nolint:nilerr // said, and tried again
	}
	if _, err := r.append(st, &h, r.stops(st, &h)); err != nil {
		return r.later(err)
	}
	st.Finished, r.dirty = true, true
	return r.save()
}

// mourn ends a session whose client died without a word.
func (r *run) mourn(ctx context.Context, now time.Time) error {
	st := r.st
	if now.Sub(r.gone) < r.Settle || spool.InboxWaiting(r.Dir) && now.Sub(r.gone) < r.Late {
		return nil // a hook of its may still be at work
	}
	r.follow(ctx, true)
	at := st.Last
	st.over(now)
	st.endAll(at, now)
	st.match(now, r.Late, r.textOf)
	for _, it := range st.Items {
		it.Sure = true
	}
	if err := r.tell(ctx, now); err != nil || len(st.Items) > 0 || ctx.Err() != nil {
		return err
	}
	h, err := r.header()
	if err != nil {
		return nil //nolint:nilerr // said, and tried again
	}
	list := append(r.stops(st, &h), r.end(st, &h, lost{at, st.Began})...)
	if _, err := r.append(st, &h, list); err != nil {
		return r.later(err)
	}
	r.Log.Info().Stringer("client", st.Client).Msg("the client is gone without a word; the session's end is inferred")
	st.Ended, st.EndedAt, st.Finished, r.dirty, r.gone = true, now, true, true, time.Time{}
	if err := r.save(); err != nil {
		return err
	}
	r.Spool.Ended()
	return nil
}

// tell appends the items whose time has come.
func (r *run) tell(ctx context.Context, now time.Time) error {
	st := r.st
	list, next := st.due(now, r.Settle)
	r.next = next
	if len(list) == 0 {
		return nil
	}
	if spool.InboxWaiting(r.Dir) {
		// A hook's word that has no number yet may be of one of these.
		r.Spool.Appended()
		r.next = now.Add(quick)
		return nil
	}
	h, err := r.header()
	if err != nil {
		return nil //nolint:nilerr // said, and tried again
	}
	for len(list) > 0 && ctx.Err() == nil {
		// A few at a time: their texts are in memory while they are appended.
		part := list[:min(len(list), chunk)]
		list = list[len(part):]
		var entries []entry
		gone := map[*item]bool{}
		for _, it := range part {
			gone[it] = true
			if !h.Selects(it.Section, it.Time) {
				continue
			}
			d, err := r.entryOf(st, it)
			if err != nil {
				r.Log.Error().Err(err).Str("transcript", it.Path).Str("ref", it.ref()).Msg("what the transcript showed is lost")
				continue
			}
			entries = append(entries, entry{key(it.Section, it.ref()), it, d})
		}
		done, err := r.append(st, &h, entries)
		for _, e := range entries[done:] {
			delete(gone, e.item)
		}
		st.Items = slices.DeleteFunc(st.Items, func(it *item) bool { return gone[it] })
		r.dirty = true
		if err != nil {
			return r.later(err)
		}
		// What was appended since the last snapshot must fit into what is looked for
		// after a crash.
		if r.told += len(entries); r.told >= maxFacts/2 {
			r.told = 0
			if err := r.save(); err != nil {
				return err
			}
		}
	}
	return nil
}

// header is the index of the session's project. When it stays unreadable, nobody
// is known to want anything.
func (r *run) header() (index.Header, error) {
	h, err := r.Index(r.st.Project)
	if err == nil {
		r.blind = 0
		return h, nil
	}
	r.complain(err)
	if r.blind++; r.blind > maxBlind {
		return index.Header{}, nil
	}
	r.next = time.Now().Add(quick)
	return h, err
}

// later notes that something is to be tried again.
func (r *run) later(err error) error {
	if errors.Is(err, spool.ErrLocked) {
		r.next = time.Now().Add(quick)
		return nil
	}
	return err
}

// answer answers the spool actor.
func (r *run) answer(ctx context.Context, q ask) bool {
	if q.leave {
		r.noted = false
		if err := r.absorb(ctx); err != nil || r.noted || !r.rested() {
			return false
		}
		if q.cleared && r.st.Pos.Segment > q.last {
			// A segment of notes alone is named as the next one will be.
			r.st.Pos = spool.Position{Segment: q.last + 1}
			r.spool.Close()
			r.spool = spool.NewReader(r.Dir, r.st.Pos)
			r.spool.Notes = true
		}
		r.dirty = true
		if err := r.save(); err != nil {
			r.Log.Error().Err(err).Msg("cannot leave yet")
			return false
		}
		return true
	}
	r.noted = true
	if err := r.step(ctx); err != nil {
		r.complain(err)
		return false
	}
	return r.rested()
}

// rested reports whether nothing is left to add for now.
func (r *run) rested() bool {
	now := time.Now()
	if slices.ContainsFunc(r.st.Items, func(it *item) bool { return !it.Closed.IsZero() }) || r.st.Lost != nil {
		return false
	}
	if r.st.Ended {
		return r.st.Finished
	}
	if !r.st.First.IsZero() && r.st.gone() {
		return false
	}
	_, owed := r.st.owed(now, r.Late)
	return !owed
}

// save writes the state, and lets the spool give back what is not needed again.
func (r *run) save() error {
	if r.dirty {
		if err := r.st.save(r.Dir); err != nil {
			return err
		}
		r.dirty, r.saved = false, time.Now()
	}
	if r.kept != r.st.Pos.Segment {
		r.kept = r.st.Pos.Segment
		r.Spool.Keep(r.kept)
	}
	return nil
}
