package intake

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"ways/actors/actor"
	"ways/actors/delivery"
	"ways/actors/doorbell"
	"ways/config/plan"
	"ways/hooks/launch"
	"ways/hooks/record"
	"ways/hooks/spool"
)

// session is one session's directory, and the dispatchers that hooks start in it.
type session struct {
	t       *testing.T
	dir     string
	running sync.WaitGroup
	started atomic.Int32
	// dispatch is what a dispatcher does with the lock it was handed.
	dispatch func(lock *os.File)
}

// hook does what the hook does: append, then start a dispatcher or wake the one
// there is.
func (s *session) hook() {
	_, err := spool.Append(s.dir, spool.Request{
		Generation: 1, Now: time.Now(), Wait: 10 * time.Second,
		Build: func(bool) []spool.Draft {
			return []spool.Draft{record.Draft{
				Head: []byte(`{"v":1,"section":"tool_call","session":"s","seq":`), Tail: []byte(`,"project":"/p","data":{}}`),
			}}
		},
	})
	if err != nil {
		s.t.Error(err)
		return
	}
	lock, err := launch.TryLock(s.dir)
	if errors.Is(err, launch.ErrRunning) {
		launch.Wake(s.dir, launch.Appended)
		return
	}
	if err != nil {
		s.t.Error(err)
		return
	}
	s.started.Add(1)
	s.running.Go(func() { s.dispatch(lock) })
}

// stranded reports whether, with no dispatcher left, a record was not handed out.
func (s *session) stranded() bool {
	s.running.Wait()
	last, err := spool.LastSeq(s.dir, 10*time.Second)
	if err != nil {
		s.t.Error(err)
	}
	done, err := spool.LoadCursors(s.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Error(err)
	}
	return done.Read.Seq < last
}

// instant is a rule that is finished with a record as soon as it has it.
type instant chan delivery.Item

func (i instant) TryOffer(it delivery.Item) bool {
	select {
	case i <- it:
		return true
	default:
		return false
	}
}

// single is a roster of that one rule.
type single struct{ rule Selected }

func (s single) Load(project string) (plan.Plan, uint64, error) {
	return plan.Plan{Project: project}, 1, nil
}

func (s single) Run(context.Context, plan.Plan) ([]Selected, []string) {
	return []Selected{s.rule}, nil
}

func (s single) Stop() {}

// real is the dispatcher: the spool actor and the doorbell, leaving at once.
func (s *session) real(lock *os.File) {
	roster := &single{}
	in := New(Options{
		Dir: s.dir, Session: "s", Lock: lock, Idle: time.Duration(1 + rand.IntN(300_000)), Linger: time.Hour,
		Roster: roster, Meter: newLedger(), Log: zerolog.Nop(),
	})
	consumer := make(instant, 8)
	roster.rule = Selected{ID: "a", Sections: record.SetOf(record.ToolCall), Actor: consumer}
	ctx, cancel := context.WithCancel(context.Background())
	var bell sync.WaitGroup
	bell.Go(func() { _ = doorbell.New(s.dir, in).Serve(ctx) })
	bell.Go(func() {
		for {
			select {
			case it := <-consumer:
				in.Done(ctx, delivery.Done{Rule: "a", Seq: it.Seq})
			case <-ctx.Done():
				return
			}
		}
	})
	if err := in.Serve(ctx); !actor.IsDone(err) {
		s.t.Errorf("it ended with %v", err)
	}
	cancel()
	bell.Wait()
}

// TestNoLostWakeUp lets hooks and dispatchers that leave at once race, thousands
// of times: whenever no dispatcher is left, no record is left either.
func TestNoLostWakeUp(t *testing.T) {
	s := &session{t: t, dir: filepath.Join(t.TempDir(), "state", "sessions", "s")}
	s.dispatch = s.real
	const rounds = 2000
	for round := range rounds {
		var hooks sync.WaitGroup
		for range 1 + round%3 {
			hooks.Go(func() {
				for range rand.IntN(2000) {
					runtime.Gosched()
				}
				s.hook()
			})
		}
		hooks.Wait()
		if s.stranded() {
			t.Fatalf("round %d: a record is left alone", round)
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d dispatchers for %d rounds", s.started.Load(), rounds)
}

// TestLostWakeUpWouldBeSeen gives the lock up in the wrong order, without the
// append lock between the last look and that: the check of the test above sees
// what then goes wrong.
func TestLostWakeUpWouldBeSeen(t *testing.T) {
	s := &session{t: t, dir: filepath.Join(t.TempDir(), "state", "sessions", "s")}
	gap, done := make(chan struct{}), make(chan struct{})
	s.dispatch = func(lock *os.File) {
		r := spool.NewReader(s.dir, spool.Position{})
		defer r.Close()
		var read spool.Cursor
		for {
			f, err := r.Next()
			if errors.Is(err, spool.ErrWait) {
				break // nothing left, it seems
			}
			if err != nil {
				t.Error(err)
				break
			}
			read = spool.Cursor{Seq: f.Seq, At: f.Next}
		}
		if err := spool.SaveCursors(s.dir, spool.Cursors{Read: read}); err != nil {
			t.Error(err)
		}
		gap <- struct{}{}
		<-done
		if err := launch.Release(lock); err != nil {
			t.Error(err)
		}
	}
	s.hook()
	<-gap
	s.hook() // sees the lock held
	close(done)
	if !s.stranded() {
		t.Error("the record that came in the gap is not missed")
	}
}
