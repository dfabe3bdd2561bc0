package watchdog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ways/actors/target"
)

// serve runs w until the returned function is called.
func serve(t *testing.T, w *Watchdog) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Serve(ctx) }()
	return func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Serve = %v, want context.Canceled", err)
		}
	}
}

func TestExpiresAtTheDeadlineWithItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New()
		defer serve(t, w)()
		start := time.Now()
		ctx, release := w.Watch(t.Context(), "a/b", 3*time.Second)
		defer release()
		if at, ok := ctx.Deadline(); !ok || at.Sub(start) != 3*time.Second {
			t.Errorf("Deadline = %v, %v", at.Sub(start), ok)
		}
		<-ctx.Done()
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("expired after %v, want 3s", took)
		}
		if cause := context.Cause(ctx); cause != target.ErrExpired {
			t.Errorf("cause = %v, want ErrExpired", cause)
		}
	})
}

func TestExpiryIsInOrderWhateverTheOrderOfEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New()
		defer serve(t, w)()
		const n = 5000
		start := time.Now()
		var releases []func()
		var mu sync.Mutex
		late := map[int]time.Duration{}
		for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
			ctx, release := w.Watch(t.Context(), fmt.Sprint(i), time.Duration(i+1)*time.Millisecond)
			releases = append(releases, release)
			context.AfterFunc(ctx, func() {
				mu.Lock()
				defer mu.Unlock()
				if context.Cause(ctx) == target.ErrExpired {
					late[i] = time.Since(start) - time.Duration(i+1)*time.Millisecond
				}
			})
		}
		time.Sleep(n * time.Millisecond)
		synctest.Wait()
		if len(late) != n {
			t.Fatalf("%d of %d expired", len(late), n)
		}
		for i, d := range late {
			if d != 0 {
				t.Fatalf("entry %d was %v late", i, d)
			}
		}
		if left := w.InFlight(t.Context()); len(left) != 0 {
			t.Errorf("still in flight: %v", left)
		}
		for _, release := range releases {
			release()
		}
	})
}

func TestReleaseTakesTheEntryBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New()
		defer serve(t, w)()
		_, keep := w.Watch(t.Context(), "keep", time.Minute)
		defer keep()
		ctx, release := w.Watch(t.Context(), "gone", time.Second)
		release()
		release()
		if cause := context.Cause(ctx); cause != context.Canceled {
			t.Errorf("cause after release = %v, want context.Canceled", cause)
		}
		list := w.InFlight(t.Context())
		if len(list) != 1 || list[0].Label != "keep" {
			t.Errorf("in flight = %v, want keep alone", list)
		}
	})
}

func TestReleaseAfterExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New()
		defer serve(t, w)()
		ctx, release := w.Watch(t.Context(), "a", time.Second)
		<-ctx.Done()
		release()
		release()
		if cause := context.Cause(ctx); cause != target.ErrExpired {
			t.Errorf("cause = %v, want ErrExpired still", cause)
		}
	})
}

func TestNoTimeMeansExpiredAtOnce(t *testing.T) {
	for _, timeout := range []time.Duration{0, -time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w := New()
			defer serve(t, w)()
			start := time.Now()
			ctx, release := w.Watch(t.Context(), "a", timeout)
			defer release()
			<-ctx.Done()
			if time.Since(start) != 0 || context.Cause(ctx) != target.ErrExpired {
				t.Errorf("after %v: %v", time.Since(start), context.Cause(ctx))
			}
		})
	}
}

func TestTheCallersContextEndsItToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New()
		defer serve(t, w)()
		why := errors.New("stopping")
		outer, cancel := context.WithCancelCause(t.Context())
		ctx, release := w.Watch(outer, "a", time.Minute)
		defer release()
		cancel(why)
		<-ctx.Done()
		if cause := context.Cause(ctx); cause != why {
			t.Errorf("cause = %v, want the caller's", cause)
		}
	})
}

func TestAnOuterDeadlineThatIsSoonerIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New()
		defer serve(t, w)()
		outer, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		want, _ := outer.Deadline()
		ctx, release := w.Watch(outer, "a", time.Minute)
		defer release()
		if at, _ := ctx.Deadline(); !at.Equal(want) {
			t.Errorf("Deadline = %v, want %v", at, want)
		}
	})
}

// A dispatch is never without a deadline: not before the actor runs, not while
// it is away between two runs, not when it ends in the middle.
func TestDeadlinesHoldWithoutTheActor(t *testing.T) {
	type row struct {
		name  string
		watch func(t *testing.T, w *Watchdog) (context.Context, func())
	}
	for _, r := range []row{
		{"never started", func(t *testing.T, w *Watchdog) (context.Context, func()) {
			return w.Watch(t.Context(), "a", time.Second)
		}},
		{"stopped before", func(t *testing.T, w *Watchdog) (context.Context, func()) {
			serve(t, w)()
			return w.Watch(t.Context(), "a", time.Second)
		}},
		{"stopped while in flight", func(t *testing.T, w *Watchdog) (context.Context, func()) {
			stop := serve(t, w)
			ctx, release := w.Watch(t.Context(), "a", time.Second)
			stop()
			return ctx, release
		}},
		{"restarted while in flight", func(t *testing.T, w *Watchdog) (context.Context, func()) {
			stop := serve(t, w)
			ctx, release := w.Watch(t.Context(), "a", time.Second)
			stop()
			t.Cleanup(serve(t, w))
			return ctx, release
		}},
	} {
		t.Run(r.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				ctx, release := r.watch(t, New())
				<-ctx.Done()
				if took := time.Since(start); took != time.Second {
					t.Errorf("expired after %v, want 1s", took)
				}
				if cause := context.Cause(ctx); cause != target.ErrExpired {
					t.Errorf("cause = %v, want ErrExpired", cause)
				}
				release()
			})
			// The same, released in time: nothing may be left waiting, which the
			// bubble checks when it ends.
			synctest.Test(t, func(t *testing.T) {
				ctx, release := r.watch(t, New())
				release()
				release()
				if cause := context.Cause(ctx); cause != context.Canceled {
					t.Errorf("cause = %v, want context.Canceled", cause)
				}
			})
		})
	}
}

func TestWatchDuringRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New()
		var callers sync.WaitGroup
		for i := range 20 {
			callers.Go(func() {
				for range 50 {
					ctx, release := w.Watch(t.Context(), fmt.Sprint(i), 7*time.Millisecond)
					if i%2 == 0 {
						<-ctx.Done()
						if context.Cause(ctx) != target.ErrExpired {
							t.Errorf("cause = %v", context.Cause(ctx))
						}
					}
					release()
				}
			})
		}
		for range 40 {
			stop := serve(t, w)
			time.Sleep(3 * time.Millisecond)
			stop()
			time.Sleep(2 * time.Millisecond)
		}
		callers.Wait()
	})
}

func TestIdleMeansNoTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New()
		defer serve(t, w)()
		_, release := w.Watch(t.Context(), "a", time.Second)
		release()
		// If anything still ticked, the bubble's clock would stop at it on the
		// way to the hour; the actor would then have run again.
		if left := w.InFlight(t.Context()); len(left) != 0 {
			t.Fatalf("in flight = %v", left)
		}
		start := time.Now()
		time.Sleep(time.Hour)
		if time.Since(start) != time.Hour {
			t.Error("the clock moved otherwise")
		}
	})
}

func TestInFlightGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if list := New().InFlight(ctx); list != nil {
			t.Errorf("InFlight without an actor = %v", list)
		}
	})
}

func BenchmarkWatch(b *testing.B) {
	w := New()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	go func() { _ = w.Serve(ctx) }()
	for range 10_000 {
		_, release := w.Watch(ctx, "held", time.Hour)
		defer release()
	}
	for b.Loop() {
		_, release := w.Watch(ctx, "a", time.Minute)
		release()
	}
}
