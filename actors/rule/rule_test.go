package rule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"ways/actors/delivery"
	"ways/actors/target"
	"ways/actors/watchdog"
	"ways/config/plan"
	"ways/hooks/redact"
	"ways/hooks/spool"
)

// bench is a rule at work, with a supervisor that starts it again when it
// panics, and notes what becomes of records.
type bench struct {
	*Rule
	mu      sync.Mutex
	story   []string
	panics  int
	deliver func(ctx context.Context, d target.Dispatch) error
	cancel  context.CancelFunc
	ended   chan error
}

func newBench(window int, timeout time.Duration, deliver func(ctx context.Context, d target.Dispatch) error) *bench {
	b := &bench{deliver: deliver, ended: make(chan error, 1)}
	dog := watchdog.New()
	b.Rule = New(Options{
		ID: "a/b", Timeout: timeout, Delivery: plan.BestEffort, Window: window, Target: b, Seal: redact.PlainShared,
		Watchdog: dog, Meter: b, Acks: acks{b}, Log: zerolog.Nop(),
	})
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	go func() { _ = dog.Serve(ctx) }()
	go func() {
		for {
			if err, again := b.once(ctx); !again {
				b.ended <- err
				return
			}
		}
	}()
	return b
}

// once is one life of Serve; again: it panicked.
func (b *bench) once(ctx context.Context) (err error, again bool) {
	defer func() {
		if recover() != nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.panics++
			again = true
		}
	}()
	return b.Serve(ctx), false
}

func (b *bench) note(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.story = append(b.story, fmt.Sprintf(format, args...))
}

// The bench is the rule's target and its meter.

func (b *bench) Deliver(ctx context.Context, d target.Dispatch) error { return b.deliver(ctx, d) }
func (b *bench) Describe() string                                     { return "a bench" }
func (b *bench) Close() error                                         { b.note("closed"); return nil }
func (b *bench) Delivered(context.Context, string, delivery.Arrival)  { b.note("delivered") }
func (b *bench) Lost(_ context.Context, _ string, l delivery.Loss) {
	b.note("%d lost: %s %s", l.Seq, l.Kind, l.Reason)
}

func (b *bench) Retrying(context.Context, string, delivery.Loss, time.Duration) { b.note("retrying") }
func (b *bench) Dead(context.Context, string, delivery.Loss)                    { b.note("dead") }

// acks notes the order in which records are done.
type acks struct{ b *bench }

func (a acks) Done(_ context.Context, d delivery.Done) { a.b.note("done %d", d.Seq) }
func (a acks) Resting(_ context.Context, _ string)     { a.b.note("resting") }

func (b *bench) offer(t *testing.T, from, to uint64) {
	t.Helper()
	for seq := from; seq <= to; seq++ {
		rec := fmt.Appendf(nil, `{"v":1,"section":"tool_call","ts":"2000-01-01T00:00:00Z","seq":%d,"data":{}}`, seq)
		if !b.TryOffer(delivery.NewItem("", "s", spool.Frame{Seq: seq}, seq, rec)) {
			t.Fatalf("no room for %d", seq)
		}
	}
	synctest.Wait()
}

func (b *bench) want(t *testing.T, story ...string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(b.story, story) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(b.story, "\n"), strings.Join(story, "\n"))
	}
}

func (b *bench) stop(t *testing.T) {
	t.Helper()
	b.cancel()
	if err := <-b.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

// TestInOrder: one record at a time, in the order they came, with the numbers of
// the envelope.
func TestInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []string
		b := newBench(8, time.Second, func(_ context.Context, d target.Dispatch) error {
			time.Sleep(100 * time.Millisecond) // of the bubble's clock
			sent = append(sent, fmt.Sprintf("%s %s", d.ID, d.Body.Bytes()))
			return nil
		})
		b.offer(t, 1, 3)
		time.Sleep(time.Second)
		b.want(t, "delivered", "done 1", "delivered", "done 2", "delivered", "done 3")
		for i, got := range sent {
			want := fmt.Sprintf(`s:a/b:%d {"v":1,"section":"tool_call","ts":"2000-01-01T00:00:00Z","seq":%d,"data":{},"rule":"a/b","rule_seq":%d}`, i+1, i+1, i+1)
			if got != want {
				t.Errorf("sent %s, want %s", got, want)
			}
		}
		b.stop(t)
	})
}

// TestQueueIsBounded: one in hand, and the window.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		b := newBench(3, time.Hour, func(context.Context, target.Dispatch) error { <-hold; return nil })
		b.offer(t, 1, 1)
		b.offer(t, 2, 4)
		if b.TryOffer(delivery.Item{}) {
			t.Error("a fifth record found room")
		}
		close(hold)
		synctest.Wait()
		b.want(t, "delivered", "done 1", "delivered", "done 2", "delivered", "done 3", "delivered", "done 4")
		b.stop(t)
	})
}

// TestPanic: a target that panics takes nobody along. The queue is intact, and
// the record that did it is given up after three times.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := map[uint64]int{}
		b := newBench(8, time.Second, func(_ context.Context, d target.Dispatch) error {
			begun[d.Seq]++
			if d.Seq == 2 || d.Seq == 3 && begun[3] < 3 {
				panic("target")
			}
			return nil
		})
		b.offer(t, 1, 4)
		b.want(t, "delivered", "done 1", "2 lost: refused panic", "done 2", "delivered", "done 3", "delivered", "done 4")
		if begun[2] != 3 || begun[3] != 3 || b.panics != 5 {
			t.Errorf("begun %v, %d panics", begun, b.panics)
		}
		b.stop(t)
	})
}

// TestLosses: each kind of failure is counted as what it is, once.
func TestLosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := []error{
			&target.Error{Kind: target.Failed, Reason: "connect", Err: errors.New("refused")},
			&target.Error{Kind: target.Refused, Reason: "status_400", Err: errors.New("no")},
			errors.New("anything else"),
			fmt.Errorf("wrapped: %w", &target.Error{Kind: target.Killed, Reason: "timeout", Err: errors.New("killed")}),
		}
		b := newBench(8, time.Second, func(_ context.Context, d target.Dispatch) error { return fail[d.Seq-1] })
		b.offer(t, 1, 4)
		b.want(t, "1 lost: failed connect", "done 1", "2 lost: refused status_400", "done 2",
			"3 lost: failed unclassified", "done 3", "4 lost: killed timeout", "done 4")
		b.stop(t)
	})
}

// TestTimeout ends a dispatch at the rule's timeout, with the cause that says so.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(8, 3*time.Second, func(ctx context.Context, _ target.Dispatch) error {
			<-ctx.Done()
			return &target.Error{Kind: target.TimedOut, Reason: "timeout", Err: context.Cause(ctx)}
		})
		began := time.Now()
		b.offer(t, 1, 2)
		time.Sleep(10 * time.Second)
		b.want(t, "1 lost: timed_out timeout", "done 1", "2 lost: timed_out timeout", "done 2")
		if time.Since(began) != 10*time.Second {
			t.Errorf("took %v", time.Since(began))
		}
		b.stop(t)
	})
}

// TestStop finishes what is in flight, and nothing else.
func TestStop(t *testing.T) {
	for range 20 { // a select that may pick either would show
		synctest.Test(t, func(t *testing.T) {
			b := newBench(8, time.Minute, func(ctx context.Context, _ target.Dispatch) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(10 * time.Second):
					return nil
				}
			})
			b.offer(t, 1, 4)
			began := time.Now()
			b.stop(t)
			if took := time.Since(began); took != 10*time.Second {
				t.Errorf("it stopped after %v", took)
			}
			b.want(t, "delivered", "done 1", "closed")
		})
	}
}

// TestLostRecord: a record that the spool no longer holds is a loss like another.
func TestLostRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(8, time.Second, func(context.Context, target.Dispatch) error { return nil })
		// Longer than what travels with its bytes, so it is read again.
		big := []byte(`{"data":"` + strings.Repeat("x", 100_000) + `"}`)
		b.TryOffer(delivery.NewItem(t.TempDir(), "s", spool.Frame{Seq: 1, At: spool.Position{Segment: 1}}, 1, big))
		synctest.Wait()
		b.want(t, "1 lost: refused spool", "done 1")
		b.stop(t)
	})
}

func TestDeliveryID(t *testing.T) {
	for _, row := range []struct {
		session string
		want    string
	}{
		{"a78d8549-8442", "a78d8549-8442:a/b:7"},
	} {
		if got := DeliveryID(row.session, "a/b", 7); got != row.want {
			t.Errorf("%s, want %s", got, row.want)
		}
	}
	for _, session := range []string{"a b", "ü", "x\r\ny", "../.."} {
		got := DeliveryID(session, "a/b", 7)
		if strings.ContainsAny(got, " \r\n\t") || !strings.HasSuffix(got, ":a/b:7") || got == DeliveryID("other", "a/b", 7) {
			t.Errorf("%q: %q", session, got)
		}
	}
}
