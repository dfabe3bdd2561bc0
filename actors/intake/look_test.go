package intake

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"ways/config/plan"
	"ways/hooks/launch"
	"ways/hooks/record"
	"ways/hooks/spool"
)

// A rule that is gone from the index stops at the next event, also when no rule
// wants that event and so no record tells of it: what waited for it is dropped.
// A rule that is new is not handed what was in the spool before it.
func TestIndexIsLookedAtWithoutARecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mine, theirs, late := &consumer{id: "a/mine", room: 64}, &consumer{id: "p/theirs", room: 1}, &consumer{id: "b/late", room: 64}
		d := newDesk(t, rule(mine, 0, record.ToolCall), rule(theirs, 0, record.ToolCall))
		d.start(time.Minute)
		d.put(1, record.ToolCall, 5)
		want(t, mine, upTo(1, 5)...)
		want(t, theirs, "1.1")

		d.plans[2] = []Selected{rule(mine, 0, record.ToolCall), rule(late, 0, record.ToolCall)}
		d.plans[2][0] = d.plans[1][0]
		d.current = 2
		d.in.Appended() // the hook of an event that nobody wants
		synctest.Wait()
		if n := d.meter.dropped["p/theirs rule_stopped"]; n != 5 {
			t.Errorf("%d of the stopped rule's records were dropped, want 5: %v", n, d.meter.dropped)
		}
		theirs.take()
		d.put(2, record.ToolCall, 1)
		want(t, theirs, "1.1")
		if got := late.seen(); len(got) != 1 {
			t.Errorf("the new rule was handed %v, want the last record alone", got)
		}
		d.done(mine, -1)
		d.halt()
	})
}

// meanwhile is a desk at which something happens while a plan is loaded.
type meanwhile struct {
	*desk
	do func()
}

func (m *meanwhile) Load(project string) (plan.Plan, uint64, error) {
	p, generation, err := m.desk.Load(project)
	if m.do != nil {
		m.do()
		m.do = nil
	}
	return p, generation, err
}

// TestLookLosesNoRecord: while the actor looks at a changed index that no record
// told of, another hook, which knows the new rule, appends a record for it. That
// record is the rule's.
func TestLookLosesNoRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mine, late := &consumer{id: "a/mine", room: 64}, &consumer{id: "b/late", room: 64}
		d := &meanwhile{desk: newDesk(t, rule(mine, 0, record.ToolCall))}
		d.start(time.Hour)
		d.halt()
		lock, err := launch.TryLock(d.dir)
		if err != nil {
			t.Fatal(err)
		}
		d.in = New(Options{Dir: d.dir, Session: "s", Lock: lock, Idle: time.Hour, Linger: time.Hour, Roster: d, Generation: d.generation, Meter: d.meter, Log: zerolog.Nop()})
		ctx, cancel := context.WithCancel(t.Context())
		d.stop, d.ended = cancel, make(chan error, 1)
		go func() { d.ended <- d.in.Serve(ctx) }()
		synctest.Wait()
		d.put(1, record.ToolCall, 2)
		want(t, mine, upTo(1, 2)...)

		d.plans[2] = []Selected{d.plans[1][0], rule(late, 0, record.ToolCall)}
		d.current = 2
		in := d.in
		d.do = func() {
			if _, err := spool.Append(d.dir, spool.Request{
				Generation: 2, Now: time.Now(), Wait: time.Second,
				Build: func(bool) []spool.Draft {
					return []spool.Draft{record.Draft{
						Section: record.ToolCall, Head: []byte(`{"v":1,"section":"tool_call","session":"s","seq":`),
						Tail: []byte(`,"project":"/p","data":{}}`),
					}}
				},
			}); err != nil {
				t.Error(err)
			}
			in.Appended()
		}
		d.in.Appended() // the hook of an event that nobody wants
		synctest.Wait()
		want(t, mine, upTo(1, 3)...)
		want(t, late, "3.1")
		d.done(mine, -1)
		d.done(late, -1)
		d.halt()
	})
}

// TestLookDoesNotWaitForWhatIsGone: numbers that no file of the spool holds any more
// keep nobody from following the index, and nothing spins for them.
func TestLookDoesNotWaitForWhatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mine, late := &consumer{id: "a/mine", room: 64}, &consumer{id: "b/late", room: 64}
		d := newDesk(t, rule(mine, 0, record.ToolCall))
		d.start(time.Hour)
		d.put(1, record.ToolCall, 2)
		in := d.in
		d.in = nil // nobody rings
		d.put(1, record.ToolCall, 3)
		segments, err := filepath.Glob(filepath.Join(d.dir, "*.seg"))
		if err != nil || len(segments) != 1 {
			t.Fatal(segments, err)
		}
		f, err := os.OpenFile(segments[0], os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(info.Size() * 2 / 5); err != nil {
			t.Fatal(err)
		}
		d.in = in
		d.plans[2] = []Selected{d.plans[1][0], rule(late, 0, record.ToolCall)}
		d.current = 2
		d.in.Appended()
		synctest.Wait()
		d.put(2, record.ToolCall, 1)
		if got := late.seen(); len(got) != 1 {
			t.Errorf("the new rule was handed %v", got)
		}
		d.done(mine, -1)
		d.done(late, -1)
		d.halt()
	})
}
