package intake

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ways/actors/actor"
	"ways/actors/delivery"
	"ways/hooks/launch"
	"ways/hooks/record"
	"ways/hooks/spool"
)

// stopping is a desk that does something when the rules are stopped.
type stopping struct {
	*desk
	stops    atomic.Int32
	onStop   func()
	follower Follower
}

func (s *stopping) Stop() {
	s.stops.Add(1)
	s.running = nil
	if s.onStop != nil {
		s.onStop()
	}
}

// begin starts the actor of a desk that notices stops.
func (s *stopping) begin(idle, linger time.Duration) {
	s.t.Helper()
	s.start(idle)
	s.halt()
	lock, err := launch.TryLock(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	s.running = nil
	s.in = New(Options{Dir: s.dir, Session: "s", Lock: lock, Idle: idle, Linger: linger, Follower: s.follower, Roster: s, Meter: s.meter, Log: s.in.Log})
	s.ended = make(chan error, 1)
	ended, in, ctx := s.ended, s.in, s.t.Context()
	go func() { ended <- in.Serve(ctx) }()
	synctest.Wait()
}

// over is what Serve returned; nil while it runs.
func (s *stopping) over() error {
	synctest.Wait()
	select {
	case err := <-s.ended:
		return err
	default:
		return nil
	}
}

func (s *stopping) rest(c *consumer) {
	s.in.Resting(s.t.Context(), c.id)
	synctest.Wait()
}

// TestLeavesWhatRests: in a session that has ended, a rule that waits for another
// try holds nobody up. It is stopped before the lock goes, what it finished
// meanwhile counts, and the rest stays in the spool.
func TestLeavesWhatRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &consumer{id: "a/b", room: 8}
		s := &stopping{desk: newDesk(t, rule(c, 0, record.ToolCall))}
		s.begin(time.Minute, time.Hour)
		s.put(1, record.ToolCall, 3)
		s.onStop = func() {
			if _, err := launch.TryLock(s.dir); !errors.Is(err, launch.ErrRunning) {
				t.Errorf("the lock went before the rules stopped: %v", err)
			}
			s.in.Done(t.Context(), delivery.Done{Rule: "a/b", Seq: 1}) // was in flight
		}
		s.rest(c)
		s.in.Ended()
		time.Sleep(59 * time.Second)
		if err := s.over(); err != nil || s.stops.Load() != 0 {
			t.Fatalf("it left before its idle time: %v, %d stops", err, s.stops.Load())
		}
		time.Sleep(2 * time.Second)
		if err := s.over(); !actor.IsDone(err) || s.stops.Load() != 1 {
			t.Fatalf("it ended with %v, %d stops", err, s.stops.Load())
		}
		cur, err := spool.LoadCursors(s.dir)
		if err != nil || cur.Rules["a/b"].Seq != 1 || cur.Rules["a/b"].RuleSeq != 1 || cur.Read.Seq != 3 {
			t.Errorf("%+v, %v", cur, err)
		}
		if n, err := spool.Bytes(s.dir); n == 0 || err != nil {
			t.Errorf("%d bytes are left, %v", n, err)
		}
		if lock, err := launch.TryLock(s.dir); err != nil {
			t.Error(err)
		} else {
			lock.Close()
		}
		if s.meter.waiting["a/b"] != 2 {
			t.Errorf("%d are said to wait", s.meter.waiting["a/b"])
		}

		// The next dispatcher goes on there.
		s.in = nil
		s.start(time.Minute)
		want(t, c, "1.1", "2.2", "3.3", "2.2", "3.3")
		s.halt()
	})
}

// TestLingers: in a session that goes on, it stays for a rule that waits, so that
// the next event does not begin a new round of tries; but not for ever.
func TestLingers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &consumer{id: "a/b", room: 8}
		s := &stopping{desk: newDesk(t, rule(c, 0, record.ToolCall))}
		s.begin(time.Minute, 10*time.Minute)
		s.put(1, record.ToolCall, 1)
		s.rest(c)
		time.Sleep(9 * time.Minute)
		s.put(1, record.ToolCall, 1) // that is something moving
		time.Sleep(9 * time.Minute)
		if err := s.over(); err != nil {
			t.Fatalf("it ended with %v", err)
		}
		time.Sleep(2 * time.Minute)
		if err := s.over(); !actor.IsDone(err) {
			t.Errorf("it did not leave: %v", err)
		}
	})
}

// TestStaysForWhatDoesNotRest: a rule in the middle of a dispatch is no reason to
// leave, and a rest that is over is none.
func TestStaysForWhatDoesNotRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &consumer{id: "a/b", room: 8}
		s := &stopping{desk: newDesk(t, rule(c, 0, record.ToolCall))}
		s.begin(time.Second, time.Hour)
		s.put(1, record.ToolCall, 2)
		s.in.Ended()
		s.rest(c)
		s.done(c, 1)
		time.Sleep(time.Hour)
		if err := s.over(); err != nil || s.stops.Load() != 0 {
			t.Fatalf("it ended with %v, %d stops", err, s.stops.Load())
		}
		s.done(c, 1)
		time.Sleep(2 * time.Second)
		if err := s.over(); !actor.IsDone(err) {
			t.Errorf("it did not leave: %v", err)
		}
		if n, err := spool.Bytes(s.dir); n != 0 || err != nil {
			t.Errorf("%d bytes are left, %v", n, err)
		}
	})
}

// TestComesBackFromLeaving: a record that arrives while the rules are being
// stopped is not left behind, and nothing that was done is handed over again.
func TestComesBackFromLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &consumer{id: "a/b", room: 8}
		s := &stopping{desk: newDesk(t, rule(c, 0, record.ToolCall))}
		s.begin(time.Second, time.Hour)
		s.put(1, record.ToolCall, 2)
		s.onStop = func() {
			s.onStop = nil
			s.in.Done(t.Context(), delivery.Done{Rule: "a/b", Seq: 1})
			c.take()
			c.take() // a stopped rule's queue is gone
			_, err := spool.Append(s.dir, spool.Request{Generation: 1, Now: time.Now(), Wait: time.Second, Build: func(bool) []spool.Draft {
				return []spool.Draft{record.Draft{
					Section: record.ToolCall, Head: []byte(`{"v":1,"section":"tool_call","session":"s","seq":`), Tail: []byte(`,"project":"/p","data":{}}`),
				}}
			}})
			if err != nil {
				t.Error(err)
			}
		}
		s.rest(c)
		s.in.Ended()
		time.Sleep(1500 * time.Millisecond)
		if err := s.over(); err != nil || s.stops.Load() != 1 {
			t.Fatalf("it ended with %v, %d stops", err, s.stops.Load())
		}
		want(t, c, "1.1", "2.2", "2.2", "3.3")
		s.done(c, 2)
		s.in.Ended()
		time.Sleep(2 * time.Second)
		if err := s.over(); !actor.IsDone(err) {
			t.Errorf("it did not leave: %v", err)
		}
		if n, err := spool.Bytes(s.dir); n != 0 || err != nil {
			t.Errorf("%d bytes are left, %v", n, err)
		}
	})
}

// tooLong is a record that no frame can hold.
type tooLong struct{}

func (tooLong) Append(dst []byte, _ uint64) []byte { return append(dst, "{}"...) }
func (tooLong) Size() int                          { return spool.MaxFrame }

// TestUnwrittenIsToldOnce, over restarts, with the count of what came since; and
// what waits is told exactly.
func TestUnwrittenIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &consumer{id: "a/b", room: 100}
		d := newDesk(t, rule(c, 0, record.ToolCall, record.SectionGap))
		lose := func(n int) {
			for range n {
				_, err := spool.Append(d.dir, spool.Request{Generation: 1, Now: time.Now(), Wait: time.Second, Build: func(bool) []spool.Draft {
					return []spool.Draft{tooLong{}}
				}})
				if !errors.Is(err, spool.ErrUnwritten) {
					t.Error(err)
				}
			}
		}
		told := func() string {
			var list []string
			c.mu.Lock()
			defer c.mu.Unlock()
			for _, it := range c.queue {
				rec, err := it.Record()
				if err != nil {
					t.Fatal(err)
				}
				if delivery.SectionOf(rec) == record.SectionGap {
					_, data, _ := strings.Cut(string(rec), `"data":`)
					list = append(list, fmt.Sprintf("%d %s", it.Seq, strings.TrimSuffix(data, "}")))
				}
			}
			return strings.Join(list, "; ")
		}
		d.start(time.Hour)
		d.put(1, record.ToolCall, 1)
		lose(3)
		d.put(1, record.ToolCall, 1)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got, want := told(), `3 {"reason":"unwritten","count":3}`; got != want {
			t.Errorf("told %s, want %s", got, want)
		}
		d.done(c, -1)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		d.halt()
		lose(2)
		d.start(time.Hour)
		d.put(1, record.ToolCall, 1)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got, want := told(), `5 {"reason":"unwritten","count":2}`; got != want {
			t.Errorf("told %s, want %s", got, want)
		}
		d.halt()
	})
}

// TestWaitingIsCounted exactly, also what lies in the spool from a life before.
func TestWaitingIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &consumer{id: "a/b", room: 4}
		d := newDesk(t, rule(c, 0, record.ToolCall))
		d.start(time.Hour)
		d.put(1, record.ToolCall, 30)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := d.meter.waiting["a/b"]; n != 30 {
			t.Errorf("%d wait, want 30", n)
		}
		d.done(c, 3)
		d.halt()
		c.queue = nil
		d.meter.waiting["a/b"] = 0
		d.start(time.Hour)
		d.put(1, record.ToolCall, 5)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := d.meter.waiting["a/b"]; n != 32 {
			t.Errorf("%d wait in the next life, want 32", n)
		}
		d.done(c, 2)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := d.meter.waiting["a/b"]; n != 30 {
			t.Errorf("%d wait, want 30", n)
		}
		d.halt()
	})
}

// lastWord is a follower that appends a record the moment before it is at rest.
type lastWord struct {
	*desk
	said atomic.Bool
}

func (l *lastWord) AtRest(context.Context) (bool, error) {
	if !l.said.Swap(true) {
		in := l.in
		l.in = nil // nobody rings
		l.put(1, record.ToolCall, 1)
		l.in = in
	}
	return true, nil
}

func (l *lastWord) Leave(context.Context, uint64, bool) (bool, error) { return true, nil }

// TestLeavesBehindTheLastWord: what the follower adds to a session that is over is
// handed out, and is no reason to stay for another idle time.
func TestLeavesBehindTheLastWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &consumer{id: "a/b", room: 8}
		s := &stopping{desk: newDesk(t, rule(c, 0, record.ToolCall))}
		s.follower = &lastWord{desk: s.desk}
		s.begin(time.Hour, time.Hour)
		s.put(1, record.ToolCall, 1)
		s.done(c, 1)
		s.in.Ended()
		time.Sleep(time.Second)
		want(t, c, "1.1", "2.2")
		if err := s.over(); err != nil {
			t.Fatalf("it left what it had handed out: %v", err)
		}
		s.done(c, 1)
		time.Sleep(time.Second)
		if err := s.over(); !actor.IsDone(err) {
			t.Errorf("it has not left: %v", err)
		}
	})
}

// stuckMeter is a meter whose counts cannot be saved.
type stuckMeter struct {
	*ledger
	happened []string
}

func (m *stuckMeter) Flush(context.Context) error { return errors.New("no room") }
func (m *stuckMeter) Happened(_ context.Context, kind, reason string) {
	m.do(func() { m.happened = append(m.happened, kind+" "+reason) })
}

// TestLeavesAlthoughItCannotSave: a dispatcher that cannot save its counters stays
// while its session goes on, and not for ever: after as many tries as one that only
// drains, it goes, and its lock with it.
func TestLeavesAlthoughItCannotSave(t *testing.T) {
	for _, row := range []struct {
		name  string
		ended bool
		stays time.Duration // at least
		goes  time.Duration
	}{
		{"the session is over", true, 8*time.Minute + 30*time.Second, 12 * time.Minute},
		{"nothing moves for long", false, 17 * time.Minute, 22 * time.Minute},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &consumer{id: "a/b", room: 8}
				s := &stopping{desk: newDesk(t, rule(c, 0, record.ToolCall))}
				m := &stuckMeter{ledger: s.meter}
				s.begin(time.Minute, 10*time.Minute)
				s.stop() // of the desk's first actor
				in := New(Options{Dir: s.dir, Session: "s", Lock: s.in.Lock, Idle: time.Minute, Linger: 10 * time.Minute, Roster: s, Meter: m, Log: s.in.Log})
				s.in.Ended()
				time.Sleep(2 * time.Minute)
				if err := s.over(); !actor.IsDone(err) {
					t.Fatal(err)
				}
				lock, err := launch.TryLock(s.dir)
				if err != nil {
					t.Fatal(err)
				}
				in.Lock, s.in = lock, in
				s.ended = make(chan error, 1)
				go func() { s.ended <- in.Serve(t.Context()) }()
				synctest.Wait()
				s.put(1, record.ToolCall, 1)
				s.done(c, -1)
				if row.ended {
					in.Ended()
				}
				time.Sleep(row.stays)
				if err := s.over(); err != nil {
					t.Fatalf("it ended with %v", err)
				}
				time.Sleep(row.goes - row.stays)
				if err := s.over(); !actor.IsFatal(err) || !strings.Contains(fmt.Sprint(err), "no room") {
					t.Errorf("it ended with %v", err)
				}
				if len(m.happened) != 0 {
					t.Errorf("it said %v, and was still there", m.happened)
				}
				lock.Close()
			})
		})
	}
}

// TestDeletedUnderIt: somebody deletes the session's directory, and hooks make it
// anew and start another dispatcher. The old one goes, and touches nothing of it,
// whether it would leave or save.
func TestDeletedUnderIt(t *testing.T) {
	for name, wake := range map[string]func(s *stopping){
		"as it leaves": func(*stopping) { time.Sleep(2 * time.Minute) },
		"as it saves": func(s *stopping) {
			s.in.Done(s.t.Context(), delivery.Done{Rule: "a/b", Seq: 1})
			time.Sleep(2 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &consumer{id: "a/b", room: 8}
				s := &stopping{desk: newDesk(t, rule(c, 0, record.ToolCall))}
				s.begin(time.Minute, time.Minute)
				s.put(1, record.ToolCall, 3)
				s.rest(c)
				time.Sleep(2 * time.Second)
				if err := os.RemoveAll(s.dir); err != nil {
					t.Fatal(err)
				}
				in := s.in
				s.in = nil // nobody rings for it
				s.put(1, record.ToolCall, 1)
				s.in = in
				lock, err := launch.TryLock(s.dir)
				if err != nil {
					t.Fatal(err)
				}
				defer lock.Close()
				wake(s)
				if err := s.over(); !actor.IsFatal(err) || !errors.Is(err, errReplaced) {
					t.Errorf("it ended with %v", err)
				}
				if cur, err := spool.LoadCursors(s.dir); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("cursors: %+v, %v", cur, err)
				}
				if f, err := spool.NewReader(s.dir, spool.Position{}).Next(); err != nil || f.Seq != 1 {
					t.Errorf("the new spool: %d, %v", f.Seq, err)
				}
			})
		})
	}
}
