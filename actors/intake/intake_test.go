package intake

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"ways/actors/actor"
	"ways/actors/delivery"
	"ways/config/plan"
	"ways/hooks/launch"
	"ways/hooks/record"
	"ways/hooks/spool"
)

// consumer stands for a rule actor: a queue with so much room, whose records are
// done when the test says so.
type consumer struct {
	mu    sync.Mutex
	id    string
	room  int
	queue []delivery.Item
	got   []string // "seq.ruleSeq" of all that was ever handed over
}

func (c *consumer) TryOffer(it delivery.Item) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) >= c.room {
		return false
	}
	c.queue = append(c.queue, it)
	c.got = append(c.got, fmt.Sprintf("%d.%d", it.Seq, it.RuleSeq))
	return true
}

// take takes the oldest record out of the queue.
func (c *consumer) take() (delivery.Item, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return delivery.Item{}, false
	}
	it := c.queue[0]
	c.queue = c.queue[1:]
	return it, true
}

func (c *consumer) seen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.got)
}

// ledger is a meter.
type ledger struct {
	mu                        sync.Mutex
	read, damaged             uint64
	matched, dropped, waiting map[string]uint64
}

func newLedger() *ledger {
	return &ledger{matched: map[string]uint64{}, dropped: map[string]uint64{}, waiting: map[string]uint64{}}
}

func (l *ledger) do(f func()) { l.mu.Lock(); defer l.mu.Unlock(); f() }

func (l *ledger) Read(_ context.Context, seq uint64, _, _ string) { l.do(func() { l.read = seq }) }
func (l *ledger) Damaged(context.Context)                         { l.do(func() { l.damaged++ }) }
func (l *ledger) Matched(_ context.Context, rule string, _ uint64) {
	l.do(func() { l.matched[rule]++ })
}

func (l *ledger) Dropped(_ context.Context, rule, reason string, n uint64) {
	l.do(func() { l.dropped[rule+" "+reason] += n })
}
func (l *ledger) Unwritten(context.Context, uint64)       {}
func (l *ledger) Spooled(context.Context, string, uint64) {}
func (l *ledger) Waiting(_ context.Context, rule string, n uint64, _ time.Time) {
	l.do(func() { l.waiting[rule] = n })
}
func (l *ledger) Describe(context.Context, string, map[string]string) {}
func (l *ledger) Happened(context.Context, string, string)            {}
func (l *ledger) Flush(context.Context) error                         { return nil }

// desk is a spool actor at work, with what it works on.
type desk struct {
	t     *testing.T
	dir   string
	in    *Intake
	meter *ledger
	stop  context.CancelFunc
	ended chan error
	// plans are the rules of each generation; running those of the last one.
	plans   map[uint64][]Selected
	current uint64
	running []Selected
	loadErr error
}

func newDesk(t *testing.T, rules ...Selected) *desk {
	t.Helper()
	return &desk{
		t: t, dir: filepath.Join(t.TempDir(), "state", "sessions", "s"), meter: newLedger(),
		plans: map[uint64][]Selected{1: rules}, current: 1,
	}
}

func (d *desk) Load(project string) (plan.Plan, uint64, error) {
	return plan.Plan{Project: project}, d.current, d.loadErr
}

// generation is what the index on disk says now.
func (d *desk) generation(string) (uint64, error) { return d.current, nil }

func (d *desk) Run(context.Context, plan.Plan) ([]Selected, []string) {
	next := d.plans[d.current]
	var stopped []string
	for _, was := range d.running {
		if !slices.ContainsFunc(next, func(s Selected) bool { return s.ID == was.ID && s.Actor == was.Actor }) {
			stopped = append(stopped, was.ID)
		}
	}
	d.running = next
	return next, stopped
}

func (d *desk) Stop() { d.running = nil }

func (d *desk) start(idle time.Duration) {
	d.t.Helper()
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		d.t.Fatal(err)
	}
	lock, err := launch.TryLock(d.dir)
	if err != nil {
		d.t.Fatal(err)
	}
	d.running = nil
	d.in = New(Options{Dir: d.dir, Session: "s", Lock: lock, Idle: idle, Linger: time.Hour, Roster: d, Generation: d.generation, Meter: d.meter, Log: zerolog.Nop()})
	ctx, cancel := context.WithCancel(context.Background())
	d.stop, d.ended = cancel, make(chan error, 1)
	go func() { d.ended <- d.in.Serve(ctx) }()
	synctest.Wait()
}

// halt stops the actor as a signal does.
func (d *desk) halt() {
	d.t.Helper()
	d.stop()
	if err := <-d.ended; !errors.Is(err, context.Canceled) {
		d.t.Fatalf("it ended with %v", err)
	}
	if err := d.in.Lock.Close(); err != nil {
		d.t.Fatal(err)
	}
}

// put appends records of a section, with what as their text, and wakes the actor.
func (d *desk) put(generation uint64, section record.Section, n int) {
	d.t.Helper()
	for range n {
		_, err := spool.Append(d.dir, spool.Request{
			Generation: generation, Now: time.Now(), Wait: time.Second,
			Build: func(bool) []spool.Draft {
				return []spool.Draft{record.Draft{
					Section: section, Head: []byte(`{"v":1,"section":"` + section.String() + `","session":"s","seq":`),
					Tail: []byte(`,"project":"/p","data":{}}`),
				}}
			},
		})
		if err != nil {
			d.t.Fatal(err)
		}
	}
	if d.in != nil {
		d.in.Appended()
	}
	synctest.Wait()
}

// done says that a consumer is finished with its n oldest records, all for -1.
func (d *desk) done(c *consumer, n int) {
	d.t.Helper()
	for ; n != 0; n-- {
		it, ok := c.take()
		if !ok {
			if n > 0 {
				d.t.Fatalf("%s has no more records", c.id)
			}
			return
		}
		d.in.Done(context.Background(), delivery.Done{Rule: c.id, Seq: it.Seq})
		synctest.Wait()
	}
}

func rule(c *consumer, limit int, sections ...record.Section) Selected {
	return Selected{ID: c.id, Sections: record.SetOf(sections...), Cap: limit, Actor: c}
}

func want(t *testing.T, c *consumer, list ...string) {
	t.Helper()
	if got := c.seen(); !slices.Equal(got, list) {
		t.Errorf("%s was handed %v, want %v", c.id, got, list)
	}
}

// upTo lists "from.from" to "to.to".
func upTo(from, to int) []string {
	var list []string
	for i := from; i <= to; i++ {
		list = append(list, fmt.Sprintf("%d.%d", i, i))
	}
	return list
}

// TestRestartGoesOn: what was not done is handed over again, with its numbers;
// what was done is not.
func TestRestartGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, calls := &consumer{id: "a/all", room: 64}, &consumer{id: "a/calls", room: 64}
		d := newDesk(t, rule(all, 0, record.ToolCall, record.ToolResult), rule(calls, 0, record.ToolCall))
		d.start(time.Hour)
		for range 3 {
			d.put(1, record.ToolCall, 1)
			d.put(1, record.ToolResult, 1)
		}
		want(t, all, upTo(1, 6)...)
		want(t, calls, "1.1", "3.2", "5.3")
		d.done(all, 2)
		d.done(calls, 2)
		d.halt()

		again, callsAgain := &consumer{id: "a/all", room: 64}, &consumer{id: "a/calls", room: 64}
		d.plans[1] = []Selected{rule(again, 0, record.ToolCall, record.ToolResult), rule(callsAgain, 0, record.ToolCall)}
		d.start(time.Hour)
		want(t, again, upTo(3, 6)...)
		want(t, callsAgain, "5.3")
		d.put(1, record.ToolCall, 1)
		want(t, again, upTo(3, 7)...)
		want(t, callsAgain, "5.3", "7.4")
		d.done(again, -1)
		d.done(callsAgain, -1)
		d.halt()
		cur, err := spool.LoadCursors(d.dir)
		if err != nil || cur.Read.Seq != 7 || cur.Rules["a/all"].RuleSeq != 7 || cur.Rules["a/calls"].RuleSeq != 4 {
			t.Errorf("cursors %+v, %v", cur, err)
		}
	})
}

// TestSlowRule falls behind, holds nobody up, and gets all in order.
func TestSlowRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, quick := &consumer{id: "a/slow", room: 7}, &consumer{id: "b/quick", room: 1000}
		d := newDesk(t, rule(slow, 0, record.ToolCall), rule(quick, 0, record.ToolCall))
		d.start(time.Hour)
		d.put(1, record.ToolCall, 300)
		want(t, quick, upTo(1, 300)...)
		want(t, slow, upTo(1, 7)...)
		for len(slow.seen()) < 300 {
			d.done(slow, 1)
		}
		d.put(1, record.ToolCall, 2)
		d.done(slow, -1)
		want(t, slow, upTo(1, 302)...)
		d.done(quick, -1)
		if d.meter.matched["a/slow"] != 302 || len(d.meter.dropped) != 0 {
			t.Errorf("matched %v, dropped %v", d.meter.matched, d.meter.dropped)
		}
		d.halt()
	})
}

// TestCap: past a best-effort rule's cap the oldest records that wait are dropped
// and counted, and leave a gap in its numbers.
func TestCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &consumer{id: "a/capped", room: 5}
		d := newDesk(t, rule(c, 20, record.ToolCall))
		d.start(time.Hour)
		d.put(1, record.ToolCall, 100)
		for range 100 {
			d.done(c, -1)
		}
		got := c.seen()
		dropped := d.meter.dropped["a/capped queue_full"]
		if dropped != 80 || len(got) != 20 || d.meter.matched["a/capped"] != 100 {
			t.Errorf("%d handed over, %d dropped, %d matched", len(got), dropped, d.meter.matched["a/capped"])
		}
		// The ones in memory were handed over already; of those on disk the newest.
		if !slices.Equal(got, append(upTo(1, 5), upTo(86, 100)...)) {
			t.Errorf("handed over %v", got)
		}
		d.halt()
	})
}

// TestChangingRules adds, changes, removes and brings back rules in a running
// dispatcher.
func TestChangingRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, b2, b3 := &consumer{id: "a", room: 64}, &consumer{id: "b", room: 64}, &consumer{id: "b", room: 64}, &consumer{id: "b", room: 64}
		d := newDesk(t, rule(a, 0, record.ToolCall))
		d.plans[2] = []Selected{rule(a, 0, record.ToolCall), rule(b, 0, record.ToolCall)}
		d.plans[3] = []Selected{rule(a, 0, record.ToolCall), rule(b2, 0, record.ToolCall)}
		d.plans[4] = []Selected{rule(a, 0, record.ToolCall)}
		d.plans[5] = []Selected{rule(a, 0, record.ToolCall), rule(b3, 0, record.ToolCall)}
		d.start(time.Hour)
		d.put(1, record.ToolCall, 2)
		d.current = 2 // b is added
		d.put(2, record.ToolCall, 3)
		want(t, b, "3.1", "4.2", "5.3")
		d.done(b, 1)
		d.current = 3 // and changed, with two records on their way
		d.put(3, record.ToolCall, 1)
		want(t, b2, "4.2", "5.3", "6.4")
		d.done(b2, 2)
		d.current = 4 // and taken away, with one
		d.put(4, record.ToolCall, 3)
		if got := d.meter.dropped["b rule_stopped"]; got != 1 {
			t.Errorf("%d dropped with the rule, want 1", got)
		}
		d.current = 5 // and back: what came meanwhile is not its
		d.put(5, record.ToolCall, 2)
		want(t, b3, "10.5", "11.6")
		want(t, a, upTo(1, 11)...)
		want(t, b, "3.1", "4.2", "5.3")
		want(t, b2, "4.2", "5.3", "6.4")
		d.done(a, -1)
		d.done(b3, -1)
		d.halt()
	})
}

// TestRemovedRuleHoldsNothing: taken away, its cursor does not hold space back or
// begin a later dispatcher's reading early.
func TestRemovedRuleHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &consumer{id: "a", room: 64}, &consumer{id: "b", room: 64}
		d := newDesk(t, rule(a, 0, record.ToolCall), rule(b, 0, record.ToolCall))
		d.plans[2] = []Selected{rule(a, 0, record.ToolCall)}
		d.start(time.Hour)
		d.put(1, record.ToolCall, 2)
		d.current = 2
		d.put(2, record.ToolCall, 2)
		d.done(a, -1)
		d.halt()
		cur, err := spool.LoadCursors(d.dir)
		if err != nil || cur.Rules["b"] != (spool.Cursor{Seq: 4, RuleSeq: 2, At: cur.Read.At}) {
			t.Errorf("cursors %+v, %v", cur, err)
		}
	})
}

// TestNewRuleBehindASlowOne: a rule that is new in a later life does not get what
// is in the spool for a slower one.
func TestNewRuleBehindASlowOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &consumer{id: "a", room: 64}
		d := newDesk(t, rule(slow, 0, record.ToolCall))
		d.start(time.Hour)
		d.put(1, record.ToolCall, 3)
		d.done(slow, 1)
		d.halt()
		d.in = nil
		d.put(1, record.ToolCall, 1) // while nobody runs
		again, fresh := &consumer{id: "a", room: 64}, &consumer{id: "n", room: 64}
		d.plans[1] = []Selected{rule(again, 0, record.ToolCall), rule(fresh, 0, record.ToolCall)}
		d.start(time.Hour)
		want(t, again, upTo(2, 4)...)
		want(t, fresh, "4.1")
		d.done(again, -1)
		d.done(fresh, -1)
		d.halt()
	})
}

// TestDamage is passed over and counted; what lies around it is handed over.
func TestDamage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &consumer{id: "a", room: 64}
		d := newDesk(t, rule(c, 0, record.ToolCall))
		d.put(1, record.ToolCall, 1)
		segments, err := filepath.Glob(filepath.Join(d.dir, "*.seg"))
		if err != nil || len(segments) != 1 {
			t.Fatal(segments, err)
		}
		for range 2 {
			f, err := os.OpenFile(segments[0], os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			f.Write(make([]byte, 300))
			f.Close()
			d.put(1, record.ToolCall, 1)
		}
		d.start(time.Hour)
		want(t, c, upTo(1, 3)...)
		if d.meter.damaged != 2 {
			t.Errorf("%d damaged stretches, want 2", d.meter.damaged)
		}
		d.done(c, -1)
		d.halt()
	})
}

// TestCursorsAheadOfTheLog: after a power cut numbers are given anew, and being
// past them says nothing.
func TestCursorsAheadOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &consumer{id: "a", room: 64}
		d := newDesk(t, rule(c, 0, record.ToolCall))
		d.put(1, record.ToolCall, 3)
		err := spool.SaveCursors(d.dir, spool.Cursors{
			Read:  spool.Cursor{Seq: 50, At: spool.Position{Segment: 1, Offset: 9999}},
			Rules: map[string]spool.Cursor{"a": {Seq: 50, RuleSeq: 40, At: spool.Position{Segment: 1, Offset: 9999}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		d.start(time.Hour)
		want(t, c, "1.41", "2.42", "3.43")
		d.done(c, -1)
		d.halt()
	})
}

// TestLeaves: when the spool stayed empty for the idle time, and not while a
// record is under way.
func TestLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &consumer{id: "a", room: 64}
		d := newDesk(t, rule(c, 0, record.ToolCall))
		d.start(time.Minute)
		d.put(1, record.ToolCall, 2)
		time.Sleep(10 * time.Minute) // of the bubble's clock
		select {
		case err := <-d.ended:
			t.Fatalf("it left with records under way: %v", err)
		default:
		}
		d.done(c, -1)
		began := time.Now()
		if err := <-d.ended; !actor.IsDone(err) {
			t.Fatalf("it ended with %v", err)
		}
		if took := time.Since(began); took > time.Minute+time.Second {
			t.Errorf("it left after %v", took)
		}
		lock, err := launch.TryLock(d.dir)
		if err != nil {
			t.Fatalf("the dispatcher's lock: %v", err)
		}
		lock.Close()
		if n, err := spool.Bytes(d.dir); n != 0 || err != nil {
			t.Errorf("%d bytes are left, %v", n, err)
		}
		d.in.Done(context.Background(), delivery.Done{}) // nobody listens: it does not wait
		d.in.Pause(context.Background())
		d.in = nil
		d.put(1, record.ToolCall, 1)
		d.start(time.Minute)
		want(t, c, upTo(1, 3)...)
		d.done(c, -1)
		d.halt()
	})
}

// TestEnded leaves without waiting: told so, or by the record of it; and not
// before all is drained.
func TestEnded(t *testing.T) {
	for _, told := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c := &consumer{id: "a", room: 64}
			d := newDesk(t, rule(c, 0, record.ToolCall, record.SessionEnd))
			d.start(time.Hour)
			d.put(1, record.ToolCall, 2)
			began := time.Now()
			if told {
				d.in.Ended()
			} else {
				d.put(1, record.SessionEnd, 1)
			}
			time.Sleep(time.Minute)
			select {
			case err := <-d.ended:
				t.Fatalf("it left with records under way: %v", err)
			default:
			}
			d.done(c, -1)
			if err := <-d.ended; !actor.IsDone(err) || time.Since(began) > 2*time.Minute {
				t.Errorf("told %v: %v after %v", told, err, time.Since(began))
			}
		})
	}
}

// TestPause hands nothing out any more, and takes what rules finish.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &consumer{id: "a", room: 64}
		d := newDesk(t, rule(c, 0, record.ToolCall))
		d.start(time.Hour)
		d.put(1, record.ToolCall, 2)
		d.in.Pause(context.Background())
		d.put(1, record.ToolCall, 2)
		want(t, c, upTo(1, 2)...)
		d.done(c, 1)
		d.halt()
		cur, err := spool.LoadCursors(d.dir)
		if err != nil || cur.Rules["a"].Seq != 1 || cur.Read.Seq != 2 {
			t.Errorf("cursors %+v, %v", cur, err)
		}
	})
}

// TestNoRules: a plan that cannot be loaded ends this life, and the record is
// there for the next.
func TestNoRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &consumer{id: "a", room: 64}
		d := newDesk(t, rule(c, 0, record.ToolCall))
		d.loadErr = errors.New("no index")
		d.put(1, record.ToolCall, 1)
		d.start(time.Hour)
		if err := <-d.ended; err == nil || !strings.Contains(err.Error(), "no index") || actor.IsDone(err) {
			t.Fatalf("it ended with %v", err)
		}
		d.in.Lock.Close()
		d.loadErr = nil
		d.start(time.Hour)
		want(t, c, "1.1")
		// With rules at work, one that cannot be loaded changes nothing.
		d.loadErr = errors.New("no index")
		d.put(2, record.ToolCall, 1)
		want(t, c, upTo(1, 2)...)
		d.done(c, -1)
		d.halt()
	})
}

// TestInbox: what a hook left there because the lock was held is taken in as soon
// as it can be, also beside a file that is damaged.
func TestInbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &consumer{id: "a", room: 64}
		d := newDesk(t, rule(c, 0, record.ToolCall))
		d.start(time.Hour)
		d.put(1, record.ToolCall, 1)
		held, err := spool.Lock(d.dir, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		box := filepath.Join(d.dir, "inbox")
		if err := os.MkdirAll(box, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(box, "0-1"), []byte("garbage"), 0o600); err != nil {
			t.Fatal(err)
		}
		d.put(1, record.ToolCall, 1) // waits for the lock in vain, and goes to the inbox
		if !spool.InboxWaiting(d.dir) {
			t.Fatal("nothing waits in the inbox")
		}
		time.Sleep(time.Minute)
		want(t, c, "1.1")
		began := time.Now()
		held.Release()
		for len(c.seen()) < 2 && time.Since(began) < time.Minute {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		want(t, c, upTo(1, 2)...)
		d.done(c, -1)
		d.halt()
	})
}

// TestLostGapRecordsAreNotToldOf: a rule that takes gap records and is over its cap
// loses some of those too. They are counted; were they told of in turn, each would
// push out another one, and that would never end.
func TestLostGapRecordsAreNotToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &consumer{id: "a/b", room: 1}
		d := newDesk(t, rule(c, 2, record.ToolCall, record.SectionGap))
		d.start(time.Hour)
		d.put(1, record.ToolCall, 10)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		first, err := spool.LastSeq(d.dir, time.Second)
		if err != nil || first <= 10 {
			t.Fatalf("nothing was told: %d, %v", first, err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if last, err := spool.LastSeq(d.dir, time.Second); err != nil || last != first {
			t.Errorf("records 1 to %d, and a minute later to %d, %v", first, last, err)
		}
		d.halt()
	})
}
