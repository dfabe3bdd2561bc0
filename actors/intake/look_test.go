package intake

import (
	"testing"
	"testing/synctest"
	"time"

	"ways/hooks/record"
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
