package intake

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"ways/config/plan"
	"ways/hooks/launch"
	"ways/hooks/record"
	"ways/hooks/spool"
)

// house is a desk whose plans say what each rule promises. A rule runs as a new
// consumer whenever it changes, is turned off or comes back.
type house struct {
	*desk
	rules map[uint64][]plan.Rule
	room  int
	// now are the consumers that run, by rule.
	now  map[string]*consumer
	were map[string]plan.Rule
	// onLoad, when set, is called before a plan is loaded.
	onLoad func()
}

func newHouse(t *testing.T, room int) *house {
	return &house{desk: newDesk(t), rules: map[uint64][]plan.Rule{}, room: room}
}

func promise(id string, d plan.Delivery) plan.Rule {
	return plan.Rule{ID: id, Delivery: d, Sections: record.SetOf(record.ToolCall), Target: plan.Target{File: &plan.File{Path: "/" + id}}}
}

func (h *house) Load(project string) (plan.Plan, uint64, error) {
	if h.onLoad != nil {
		h.onLoad()
	}
	return plan.Plan{Project: project, Rules: h.rules[h.current]}, h.current, nil
}

func (h *house) Run(_ context.Context, p plan.Plan) (selected []Selected, stopped []string) {
	next := map[string]plan.Rule{}
	for _, r := range p.Rules {
		next[r.ID] = r
		if h.now[r.ID] == nil || h.were[r.ID].Off != r.Off || h.were[r.ID].Target.String() != r.Target.String() {
			if h.now[r.ID] != nil {
				stopped = append(stopped, r.ID)
			}
			h.now[r.ID] = &consumer{id: r.ID, room: h.room}
		}
		selected = append(selected, rule(h.now[r.ID], 0, record.ToolCall))
	}
	for id := range h.now {
		if _, there := next[id]; !there {
			stopped = append(stopped, id)
			delete(h.now, id)
		}
	}
	h.were = next
	return selected, stopped
}

func (h *house) Stop() { h.now, h.were = map[string]*consumer{}, nil }

// open begins a life.
func (h *house) open() {
	h.t.Helper()
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		h.t.Fatal(err)
	}
	lock, err := launch.TryLock(h.dir)
	if err != nil {
		h.t.Fatal(err)
	}
	h.Stop()
	h.in = New(Options{
		Dir: h.dir, Session: "s", Lock: lock, Idle: time.Hour, Linger: time.Hour, Roster: h, Generation: h.generation, Meter: h.meter, Log: zerolog.Nop(),
	})
	ctx, cancel := context.WithCancel(context.Background())
	h.stop, h.ended = cancel, make(chan error, 1)
	go func() { h.ended <- h.in.Serve(ctx) }()
	synctest.Wait()
}

func (h *house) wantDropped(want map[string]uint64) {
	h.t.Helper()
	for what, n := range h.meter.dropped {
		if want[what] != n {
			h.t.Errorf("dropped %v, want %v", h.meter.dropped, want)
		}
	}
}

// TestOffRuleKeepsItsRecords: an at-least-once rule that is turned off, or refused,
// loses nothing that was its; it runs on and takes nothing new. Back, if elsewhere,
// it is handed what it had not done, and what comes from then on. A best-effort
// rule gives up what waits.
func TestOffRuleKeepsItsRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, 64)
		a, sure, weak := promise("a/all", plan.BestEffort), promise("b/sure", plan.AtLeastOnce), promise("c/weak", plan.BestEffort)
		h.rules[1] = []plan.Rule{a, sure, weak}
		h.rules[2] = []plan.Rule{a}
		moved := sure
		moved.Target.File = &plan.File{Path: "/elsewhere"}
		h.rules[3] = []plan.Rule{a, moved}
		h.open()
		h.put(1, record.ToolCall, 3)
		want(t, h.now["b/sure"], upTo(1, 3)...)
		h.done(h.now["b/sure"], 1)

		h.current = 2
		h.put(2, record.ToolCall, 2)
		if !h.were["b/sure"].Off {
			t.Fatalf("the rule runs as %+v", h.were["b/sure"])
		}
		want(t, h.now["b/sure"], "2.2", "3.3")
		time.Sleep(2 * saveEvery)
		synctest.Wait()
		if n := h.meter.waiting["b/sure"]; n != 2 {
			t.Errorf("%d are said to wait", n)
		}
		h.wantDropped(map[string]uint64{"c/weak rule_stopped": 3})

		h.current = 3
		h.put(3, record.ToolCall, 1)
		want(t, h.now["b/sure"], "2.2", "3.3", "6.4")
		h.done(h.now["b/sure"], -1)
		// Off again, with nothing left: nothing is kept for it.
		h.current = 2
		h.put(2, record.ToolCall, 1)
		if c := h.now["b/sure"]; c != nil {
			t.Errorf("it runs on for %v", c.seen())
		}
		h.current = 3
		h.put(3, record.ToolCall, 1)
		want(t, h.now["b/sure"], "8.5")
		h.done(h.now["b/sure"], -1)
		h.done(h.now["a/all"], -1)
		want(t, h.now["a/all"], upTo(1, 8)...)
		h.halt()
	})
}

// TestOffRuleOverLives: dispatchers come and go while a rule is off. What was
// written before it went is kept, also what no dispatcher had read; what came
// meanwhile is not its, however often it goes and comes back.
func TestOffRuleOverLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, 64)
		a, sure := promise("a/all", plan.BestEffort), promise("b/sure", plan.AtLeastOnce)
		h.rules[1] = []plan.Rule{a, sure}
		h.rules[2] = []plan.Rule{a}
		life := func(generation uint64, records int, off bool, list ...string) {
			t.Helper()
			h.current = generation
			h.open()
			h.put(generation, record.ToolCall, records)
			if h.were["b/sure"].Off != off {
				t.Fatalf("the rule runs as %+v", h.were["b/sure"])
			}
			if c := h.now["b/sure"]; c != nil || len(list) > 0 {
				want(t, c, list...)
			}
			h.done(h.now["a/all"], -1)
			h.halt()
		}
		life(1, 3, false, upTo(1, 3)...)
		// Written while nobody looked, under the rules of before.
		h.in = nil
		h.put(1, record.ToolCall, 2)
		life(2, 2, true, upTo(1, 5)...)
		life(2, 1, true, upTo(1, 5)...)
		// 6, 7 and 8 came while it was off.
		life(1, 1, false, append(upTo(1, 5), "9.6")...)
		life(2, 1, true, append(upTo(1, 5), "9.6")...)
		life(2, 0, true, append(upTo(1, 5), "9.6")...)
		life(1, 2, false, append(upTo(1, 5), "9.6", "11.7", "12.8")...)
		if n, err := spool.Bytes(h.dir); n == 0 || err != nil {
			t.Errorf("the spool holds %d bytes, %v", n, err)
		}
		// Done with all of it, it holds nothing back any more.
		h.open()
		h.done(h.now["a/all"], -1)
		h.done(h.now["b/sure"], -1)
		time.Sleep(2 * saveEvery)
		h.halt()
		h.current = 2
		life(2, 1, false)
		cur, err := spool.LoadCursors(h.dir)
		if err != nil || cur.Rules["b/sure"].Seq != 13 || cur.Rules["b/sure"].RuleSeq != 8 {
			t.Errorf("%+v, %v", cur, err)
		}
		text, err := os.ReadFile(filepath.Join(h.dir, owedName))
		if err != nil || string(text) != "[]" {
			t.Errorf("%s, %v", text, err)
		}
		h.wantDropped(nil)
	})
}

// TestOffRuleFarBehind: what waits on the disk is counted, kept and handed out in
// order, and memory holds no more of it than of any rule's.
func TestOffRuleFarBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, 2)
		a, sure := promise("a/all", plan.BestEffort), promise("b/sure", plan.AtLeastOnce)
		h.rules[1] = []plan.Rule{sure}
		h.rules[2] = []plan.Rule{a}
		h.rules[3] = []plan.Rule{sure}
		h.open()
		h.put(1, record.ToolCall, 100)
		h.current = 2
		h.put(2, record.ToolCall, 1)
		want(t, h.now["b/sure"], upTo(1, 2)...)
		waits := func(n uint64) {
			t.Helper()
			time.Sleep(2 * saveEvery)
			synctest.Wait()
			if got := h.meter.waiting["b/sure"]; got != n {
				t.Errorf("%d are said to wait, not %d", got, n)
			}
		}
		waits(100)
		h.done(h.now["b/sure"], 1) // grown too old, and put aside
		waits(99)
		h.current = 3
		h.put(3, record.ToolCall, 1)
		waits(100)
		for len(h.now["b/sure"].seen()) < 100 {
			h.done(h.now["b/sure"], 1)
		}
		h.done(h.now["b/sure"], -1)
		waits(0)
		list := upTo(2, 100)
		list = append(list, "102.101")
		want(t, h.now["b/sure"], list...)
		h.wantDropped(map[string]uint64{"a/all rule_stopped": 1})
		h.halt()
	})
}

// TestOffRuleWithoutItsFile: what cannot be read back is no reason to stop.
func TestOffRuleWithoutItsFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, 8)
		a, sure := promise("a/all", plan.BestEffort), promise("b/sure", plan.AtLeastOnce)
		h.rules[1] = []plan.Rule{a, sure}
		for _, text := range []string{"", "{", "null", `[null,{"rule":{}},{"rule":{"id":"x/y","delivery":"at_least_once"}}]`} {
			if err := os.MkdirAll(h.dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(h.dir, owedName), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			h.open()
			h.put(1, record.ToolCall, 1)
			if got := h.now["b/sure"].seen(); len(got) != 1 {
				t.Errorf("after %q: handed %v", text, got)
			}
			h.done(h.now["a/all"], -1)
			h.done(h.now["b/sure"], -1)
			h.halt()
			got, err := os.ReadFile(filepath.Join(h.dir, owedName))
			if err != nil || !strings.Contains(string(got), `"id":"b/sure"`) || strings.Contains(string(got), "x/y") {
				t.Errorf("after %q: %s, %v", text, got, err)
			}
		}
	})
}

// TestOffWhileTheHeadIsBehind: a rule goes, for the second time, while a dispatcher
// that has just begun reads again what waits for it, and comes to what was written
// when it was off before. What was written while it was on is its, read or not.
func TestOffWhileTheHeadIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, 64)
		a, sure := promise("a/all", plan.BestEffort), promise("b/sure", plan.AtLeastOnce)
		h.rules[1], h.rules[2] = []plan.Rule{a, sure}, []plan.Rule{a}
		h.open()
		h.put(1, record.ToolCall, 3)
		h.current = 2
		h.put(2, record.ToolCall, 2)
		h.current = 1
		h.put(1, record.ToolCall, 1)
		h.done(h.now["a/all"], -1)
		h.halt()
		h.in = nil
		h.put(1, record.ToolCall, 4) // 7 to 10
		loads := 0
		h.onLoad = func() {
			if loads++; loads == 2 {
				h.current = 2
			}
		}
		h.open()
		h.put(2, record.ToolCall, 1)
		if !h.were["b/sure"].Off {
			t.Fatalf("after %d loads the rule runs as %+v", loads, h.were["b/sure"])
		}
		h.current = 1
		h.put(1, record.ToolCall, 1)
		want(t, h.now["b/sure"], "1.1", "2.2", "3.3", "6.4", "7.5", "8.6", "9.7", "10.8", "12.9")
		h.done(h.now["b/sure"], -1)
		h.halt()
	})
}

// TestOffForUnreadRecords: two hooks append at once, one that knows the rule and one
// that knows it is gone; the latter's record comes first. Nothing of the rule's was
// waiting until then.
func TestOffForUnreadRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, 64)
		a, sure := promise("a/all", plan.BestEffort), promise("b/sure", plan.AtLeastOnce)
		h.rules[1], h.rules[2] = []plan.Rule{a, sure}, []plan.Rule{a}
		h.open()
		h.put(1, record.ToolCall, 1)
		h.done(h.now["b/sure"], -1)
		h.current = 2
		in := h.in
		h.in = nil
		h.put(2, record.ToolCall, 1)
		h.in = in
		h.put(1, record.ToolCall, 1)
		h.put(2, record.ToolCall, 1)
		if c := h.now["b/sure"]; c == nil || len(c.seen()) != 1 || c.seen()[0] != "3.2" {
			t.Errorf("%+v", c)
		}
		h.done(h.now["a/all"], -1)
		h.halt()
	})
}

func TestMetPlans(t *testing.T) {
	k := &owed{}
	k.met(1, true)
	k.met(2, false)
	k.leave(0) // says that every record is not its
	for generation, lacks := range map[uint64]bool{1: false, 2: true, 3: true} {
		if k.lacks(5, generation) != lacks {
			t.Errorf("a record of plan %d: %v", generation, !lacks)
		}
	}
	for n := range uint64(2 * maxPlans) {
		k.met(1, true)
		k.met(100+n, false)
	}
	if len(k.Plans) != maxPlans || k.lacks(5, 1) {
		t.Errorf("%d plans are kept; the one that comes again and again: %v", len(k.Plans), !k.lacks(5, 1))
	}
}

// TestOwedBeforeTheCursors: while the rules cannot be noted, the cursors do not move
// on: a rule that went then would lose what waits for it. Both follow when they can.
func TestOwedBeforeTheCursors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, 8)
		h.rules[1] = []plan.Rule{promise("b/sure", plan.AtLeastOnce)}
		inTheWay := filepath.Join(h.dir, owedName)
		if err := os.MkdirAll(filepath.Join(inTheWay, "full"), 0o700); err != nil {
			t.Fatal(err)
		}
		h.open()
		h.put(1, record.ToolCall, 2)
		h.done(h.now["b/sure"], 1)
		time.Sleep(2 * saveEvery)
		synctest.Wait()
		if cur, err := spool.LoadCursors(h.dir); !os.IsNotExist(err) {
			t.Errorf("cursors %+v, %v", cur, err)
		}
		if err := os.RemoveAll(inTheWay); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * saveEvery)
		synctest.Wait()
		if cur, err := spool.LoadCursors(h.dir); err != nil || cur.Rules["b/sure"].Seq != 1 {
			t.Errorf("cursors %+v, %v", cur, err)
		}
		if text, err := os.ReadFile(inTheWay); err != nil || !strings.Contains(string(text), `"id":"b/sure"`) {
			t.Errorf("%s, %v", text, err)
		}
		h.halt()
	})
}

func TestOwedSpans(t *testing.T) {
	k := &owed{}
	in := func(from, to uint64) (list []uint64) {
		for n := from; n <= to; n++ {
			if !k.lacks(n, 0) {
				list = append(list, n)
			}
		}
		return list
	}
	check := func(when string, want ...uint64) {
		t.Helper()
		if got := in(1, 12); !slices.Equal(got, want) {
			t.Errorf("%s: has %v, want %v", when, got, want)
		}
	}
	check("on", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
	k.leave(3)
	k.leave(9) // it is off already
	check("off", 1, 2, 3)
	k.back(5, 1)
	check("back", 1, 2, 3, 6, 7, 8, 9, 10, 11, 12)
	k.leave(7)
	k.back(7, 1) // nothing came meanwhile
	check("off and on at once", 1, 2, 3, 6, 7, 8, 9, 10, 11, 12)
	k.leave(8)
	check("off again", 1, 2, 3, 6, 7, 8)
	k.back(10, 5)
	if len(k.Off) != 1 {
		t.Errorf("what is past is kept: %v", k.Off)
	}
	check("back again", 1, 2, 3, 4, 5, 6, 7, 8, 11, 12)
	var none *owed
	if none.lacks(1, 0) {
		t.Error("a rule of which nothing is known lacks a record")
	}
}
