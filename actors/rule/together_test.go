package rule

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ways/actors/delivery"
	"ways/actors/target"
	"ways/hooks/spool"
)

// crowd is a target that takes several records at once.
type crowd struct {
	*bench
	all func(ctx context.Context, ds []target.Dispatch) (int, error)
}

func (c crowd) DeliverAll(ctx context.Context, ds []target.Dispatch) (int, error) {
	return c.all(ctx, ds)
}

// numbers names the records of one call.
func numbers(ds []target.Dispatch) string {
	var list []string
	for _, d := range ds {
		list = append(list, fmt.Sprint(d.Seq))
	}
	return "together " + strings.Join(list, " ")
}

// newCrowd is a rule whose target takes the first record by itself, slowly, so that
// the others wait.
func newCrowd(all func(ctx context.Context, ds []target.Dispatch) (int, error)) *bench {
	var b *bench
	b = newBench(64, time.Second, func(_ context.Context, d target.Dispatch) error {
		b.note("alone %d", d.Seq)
		time.Sleep(10 * time.Millisecond) // of the bubble's clock
		return nil
	})
	b.Target = crowd{b, all}
	return b
}

// line offers records, of which the first is under way when the others come.
func (b *bench) line(t *testing.T, from, to uint64) {
	t.Helper()
	b.offer(t, from, from)
	b.offer(t, from+1, to)
}

// What waits goes together, in order, and each record is told to be delivered and
// done.
func TestTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *bench
		b = newCrowd(func(ctx context.Context, ds []target.Dispatch) (int, error) {
			b.note("%s", numbers(ds))
			if at, ok := ctx.Deadline(); !ok || time.Until(at) != time.Second {
				t.Errorf("the deadline is %v away", time.Until(at))
			}
			if d := ds[1]; d.ID != "s:a/b:3" || d.Rule != "a/b" || d.Session != "s" || d.Attempt != 1 || d.Unordered ||
				!strings.Contains(string(d.Body.Bytes()), `"rule":"a/b","rule_seq":3`) {
				t.Errorf("%+v", d)
			}
			return len(ds), nil
		})
		b.line(t, 1, 4)
		time.Sleep(time.Second)
		b.want(t, "alone 1", "delivered", "done 1", "together 2 3 4", "delivered", "done 2", "delivered", "done 3", "delivered", "done 4")
		b.stop(t)
	})
}

// No more than mostTogether records go at once, and no more than bytesTogether.
func TestTogetherIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		b := newCrowd(func(_ context.Context, ds []target.Dispatch) (int, error) {
			sizes = append(sizes, len(ds))
			return len(ds), nil
		})
		b.line(t, 1, 50)
		time.Sleep(time.Second)
		big := fmt.Appendf(nil, `{"v":1,"data":%q}`, strings.Repeat("x", bytesTogether/5))
		b.offer(t, 51, 51)
		for seq := range uint64(9) {
			if !b.TryOffer(delivery.NewItem("", "s", spool.Frame{Seq: 52 + seq}, 52+seq, big)) {
				t.Fatal("no room")
			}
		}
		synctest.Wait()
		time.Sleep(time.Second)
		synctest.Wait()
		// The first of each offer goes by itself; five of the big ones fill the bytes.
		if got, want := fmt.Sprint(sizes), "[32 17 5 4]"; got != want {
			t.Errorf("%s at once, want %s", got, want)
		}
		b.stop(t)
	})
}

// What is not accepted goes one by one, and what comes after that together again.
func TestTogetherFails(t *testing.T) {
	for _, accepted := range []int{0, 2} {
		synctest.Test(t, func(t *testing.T) {
			var b *bench
			b = newCrowd(func(_ context.Context, ds []target.Dispatch) (int, error) {
				b.note("%s", numbers(ds))
				if ds[0].Seq == 2 {
					return accepted, errors.New("full")
				}
				return len(ds), nil
			})
			b.line(t, 1, 4)
			time.Sleep(time.Second)
			want := []string{"alone 1", "delivered", "done 1", "together 2 3 4"}
			for seq := 2; seq <= 4; seq++ {
				if seq >= 2+accepted {
					want = append(want, fmt.Sprint("alone ", seq))
				}
				want = append(want, "delivered", fmt.Sprint("done ", seq))
			}
			b.want(t, want...)
			b.line(t, 5, 7)
			time.Sleep(time.Second)
			b.want(t, append(want, "alone 5", "delivered", "done 5", "together 6 7", "delivered", "done 6", "delivered", "done 7")...)
			b.stop(t)
		})
	}
}

// A panic over several is not counted against the first: each goes by itself then.
func TestTogetherPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newCrowd(func(_ context.Context, ds []target.Dispatch) (int, error) { panic("together") })
		b.line(t, 1, 3)
		time.Sleep(time.Second)
		b.want(t, "alone 1", "delivered", "done 1", "alone 2", "delivered", "done 2", "alone 3", "delivered", "done 3")
		if b.panics != 1 {
			t.Errorf("%d panics", b.panics)
		}
		b.stop(t)
	})
}

// A rule that is told to stop finishes what the target has, and leaves the rest to
// whoever comes after it.
func TestTogetherStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *bench
		b = newCrowd(func(ctx context.Context, ds []target.Dispatch) (int, error) {
			b.note("%s", numbers(ds))
			time.Sleep(100 * time.Millisecond)
			return 2, errors.Join(ctx.Err(), errors.New("the third did not fit"))
		})
		b.line(t, 1, 5)
		time.Sleep(50 * time.Millisecond)
		b.stop(t)
		b.want(t, "alone 1", "delivered", "done 1", "together 2 3 4 5", "delivered", "done 2", "delivered", "done 3", "closed")
	})
}

// Records of a blocking rule come in no order, and some were handed out already.
func TestNotTogether(t *testing.T) {
	for name, set := range map[string]func(b *bench){
		"no order":     func(b *bench) { b.Unordered = true },
		"a hook's own": func(b *bench) { b.Dir = t.TempDir() },
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newCrowd(func(_ context.Context, ds []target.Dispatch) (int, error) {
				t.Errorf("%s: %s", name, numbers(ds))
				return 0, nil
			})
			set(b)
			b.line(t, 1, 3)
			time.Sleep(time.Second)
			b.stop(t)
			b.want(t, "alone 1", "delivered", "done 1", "alone 2", "delivered", "done 2", "alone 3", "delivered", "done 3", "closed")
		})
	}
}
