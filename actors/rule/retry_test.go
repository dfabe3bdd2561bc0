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

	"ways/actors/deadletter"
	"ways/actors/delivery"
	"ways/actors/target"
	"ways/actors/watchdog"
	"ways/config/plan"
	"ways/hooks/redact"
	"ways/hooks/spool"
)

// desk is an at-least-once rule at work in a bubble, its meter, its target and
// its dead letters.
type desk struct {
	*Rule
	mu      sync.Mutex
	began   time.Time
	tries   []try
	answers []error // to the tries, in turn; nil behind the last
	waits   []time.Duration
	kinds   []target.Kind // of the tries that are repeated
	dead    []deadletter.Letter
	deadErr []error // of the dead letters' store, in turn
	acks    []string
	cancel  context.CancelFunc
	ended   chan error
}

// try is one Deliver.
type try struct {
	at      time.Duration
	seq     uint64
	id      string
	attempt int
	body    string
}

func newDesk(maxAge time.Duration, answers ...error) *desk {
	d := &desk{began: time.Now(), answers: answers, ended: make(chan error, 1)}
	dog := watchdog.New()
	d.Rule = New(Options{
		ID: "a/b", Timeout: 5 * time.Second, Delivery: plan.AtLeastOnce, MaxAge: maxAge, Dead: d, Window: 8, Target: d,
		Seal: redact.PlainShared, Watchdog: dog, Meter: d, Acks: d, Log: zerolog.Nop(),
	})
	ctx, cancel := context.WithCancel(context.Background())
	d.cancel = cancel
	go func() { _ = dog.Serve(ctx) }()
	go func() { d.ended <- d.Serve(ctx) }()
	return d
}

func (d *desk) do(f func()) { d.mu.Lock(); defer d.mu.Unlock(); f() }

func (d *desk) Deliver(ctx context.Context, x target.Dispatch) error {
	var answer error
	d.do(func() {
		d.tries = append(d.tries, try{time.Since(d.began), x.Seq, x.ID, x.Attempt, string(x.Body.Bytes())})
		if len(d.answers) > 0 {
			answer = d.answers[0]
			d.answers = d.answers[1:]
		}
	})
	if errors.Is(answer, errHangs) {
		<-ctx.Done()
		return &target.Error{Kind: target.TimedOut, Reason: "timeout", Err: context.Cause(ctx)}
	}
	return answer
}

// errHangs makes a consumer never answer.
var errHangs = errors.New("hangs")

func (d *desk) Describe() string                                    { return "a desk" }
func (d *desk) Close() error                                        { return nil }
func (d *desk) Delivered(context.Context, string, delivery.Arrival) {}
func (d *desk) Lost(_ context.Context, _ string, l delivery.Loss) {
	d.do(func() { d.acks = append(d.acks, fmt.Sprint("lost ", l.Seq)) })
}

func (d *desk) Retrying(_ context.Context, _ string, l delivery.Loss, wait time.Duration) {
	d.do(func() { d.waits, d.kinds = append(d.waits, wait), append(d.kinds, l.Kind) })
}
func (d *desk) Dead(context.Context, string, delivery.Loss) {}

func (d *desk) Put(l deadletter.Letter) (err error) {
	d.do(func() {
		if len(d.deadErr) > 0 {
			err = d.deadErr[0]
			d.deadErr = d.deadErr[1:]
		}
		if err == nil {
			d.dead = append(d.dead, l)
		}
	})
	return err
}

func (d *desk) Done(_ context.Context, w delivery.Done) {
	d.do(func() { d.acks = append(d.acks, strings.TrimSpace(fmt.Sprint("done ", w.Seq, " ", w.Lost))) })
}

func (d *desk) Resting(context.Context, string) {
	d.do(func() { d.acks = append(d.acks, "resting") })
}

// offer hands records over that the hook saw so long ago.
func (d *desk) offer(t *testing.T, age time.Duration, seqs ...uint64) {
	t.Helper()
	for _, seq := range seqs {
		rec := fmt.Appendf(nil, `{"ts":%q,"seq":%d,"data":{}}`, time.Now().Add(-age).UTC().Format(time.RFC3339Nano), seq)
		if !d.TryOffer(delivery.NewItem("", "s", spool.Frame{Seq: seq}, seq, rec)) {
			t.Fatalf("no room for %d", seq)
		}
	}
	synctest.Wait()
}

func (d *desk) stop(t *testing.T) {
	t.Helper()
	d.cancel()
	if err := <-d.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

// sent lists the tries as "seq.attempt".
func (d *desk) sent() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []string
	for _, x := range d.tries {
		list = append(list, fmt.Sprintf("%d.%d", x.seq, x.attempt))
	}
	return list
}

func (d *desk) want(t *testing.T, sent, acks string) {
	t.Helper()
	if got := strings.Join(d.sent(), " "); got != sent {
		t.Errorf("sent %s; want %s", got, sent)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if got := strings.Join(d.acks, ", "); got != acks {
		t.Errorf("said %q; want %q", got, acks)
	}
}

func answer(kind target.Kind, reason string, retryAfter time.Duration) error {
	return &target.Error{Kind: kind, Reason: reason, RetryAfter: retryAfter, Err: errors.New("words of " + reason)}
}

// TestWaits holds the drawn waits to their intervals.
func TestWaits(t *testing.T) {
	for _, row := range []struct {
		name          string
		wait          func(int, time.Duration) time.Duration
		n             int
		retryAfter    time.Duration
		atLeast, less time.Duration
	}{
		{"first", backoff, 1, 0, time.Second / 10, time.Second},
		{"second", backoff, 2, 0, time.Second / 5, 2 * time.Second},
		{"ninth", backoff, 9, 0, 256 * time.Second / 10, 256 * time.Second},
		{"capped", backoff, 10, 0, 30 * time.Second, 5 * time.Minute},
		{"far beyond a shift", backoff, 1 << 40, 0, 30 * time.Second, 5 * time.Minute},
		{"asked for more", backoff, 1, 3 * time.Second, 3 * time.Second, 3*time.Second + 1},
		{"asked for less", backoff, 10, time.Second, 30 * time.Second, 5 * time.Minute},
		{"asked for a day", backoff, 1, 24 * time.Hour, time.Hour, time.Hour + 1},
		{"asked for a past date", backoff, 1, -time.Hour, time.Second / 10, time.Second},
		{"pause", pause, 1, 0, 15 * time.Second, 30 * time.Second},
		{"next pause", pause, 2, 0, 30 * time.Second, time.Minute},
		{"longest pause", pause, 50, 0, 30 * time.Minute, time.Hour},
		{"pause as asked", pause, 1, 10 * time.Minute, 10 * time.Minute, 10*time.Minute + 1},
	} {
		least, most := time.Duration(1<<62), time.Duration(0)
		for range 5000 {
			w := row.wait(row.n, row.retryAfter)
			least, most = min(least, w), max(most, w)
		}
		if least < row.atLeast || most >= row.less {
			t.Errorf("%s: from %v to %v, want from %v to less than %v", row.name, least, most, row.atLeast, row.less)
		}
		// Jitter: the draws fill the interval.
		if spread := row.less - row.atLeast; most-least < spread*9/10 && spread > 1 {
			t.Errorf("%s: from %v to %v do not fill the interval from %v to %v", row.name, least, most, row.atLeast, row.less)
		}
	}
}

// TestTriedUntilAccepted: whatever goes wrong that may go right, the record is
// sent again under its id, and those behind it wait for it.
func TestTriedUntilAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(0,
			answer(target.Failed, "status_503", 0), answer(target.Failed, "connect", 0), errors.New("of no kind"),
			errHangs, answer(target.Killed, "killed", 0), answer(target.Failed, "exit_1", 0), nil,
			answer(target.Failed, "status_500", 0), nil)
		d.offer(t, 0, 1, 2, 3)
		time.Sleep(time.Hour)
		synctest.Wait()
		d.want(t, "1.1 1.2 1.3 1.4 1.5 1.6 1.7 2.1 2.2 3.1",
			"resting, resting, resting, resting, resting, resting, done 1, resting, done 2, done 3")
		for i, x := range d.tries {
			if want := fmt.Sprintf("s:a/b:%d", x.seq); x.id != want || x.body != d.tries[slices.IndexFunc(d.tries, func(o try) bool { return o.seq == x.seq })].body {
				t.Errorf("try %d: id %s, body %s", i, x.id, x.body)
			}
		}
		// The waits are what was announced, and the hung try took its timeout.
		for i, w := range d.waits[:6] {
			gap := d.tries[i+1].at - d.tries[i].at
			if d.tries[i].attempt == 4 {
				gap -= 5 * time.Second
			}
			if gap != w {
				t.Errorf("wait %d was %v, announced %v", i, gap, w)
			}
		}
		if d.waits[6] >= time.Second {
			t.Errorf("the next record's first wait is %v: it begins anew", d.waits[6])
		}
		d.stop(t)
	})
}

// TestRetryAfter is waited for, within bounds.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(0,
			answer(target.Failed, "status_429", 3*time.Second), answer(target.Failed, "status_429", 24*time.Hour),
			answer(target.Failed, "status_503", -5*time.Second))
		d.offer(t, 0, 1)
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if d.waits[0] != 3*time.Second || d.waits[1] != time.Hour || d.waits[2] >= 4*time.Second {
			t.Errorf("waits %v", d.waits)
		}
		d.want(t, "1.1 1.2 1.3 1.4", "resting, resting, resting, done 1")
		d.stop(t)
	})
}

// TestRefusedGoesAside, with the reason, and the next record goes on at once.
func TestRefusedGoesAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(0, nil, answer(target.Failed, "status_503", 0), answer(target.Refused, "status_413", 0), nil,
			answer(target.Refused, "status_400", 0), answer(target.Refused, "status_410", 0), answer(target.Refused, "argument_too_long", 0))
		d.offer(t, 0, 1, 2, 3, 4, 5, 6, 7)
		time.Sleep(time.Minute)
		synctest.Wait()
		d.want(t, "1.1 2.1 2.2 3.1 4.1 5.1 6.1 7.1", "done 1, resting, done 2, done 3, done 4, done 5, done 6, done 7")
		var got []string
		for _, l := range d.dead {
			got = append(got, fmt.Sprintf("%s %d %s %d", l.ID, l.Seq, l.Reason, l.Attempts))
			if !strings.Contains(l.Words, "words of "+l.Reason) || !strings.Contains(string(l.Body), fmt.Sprintf(`"seq":%d`, l.Seq)) {
				t.Errorf("%+v", l)
			}
		}
		want := []string{"s:a/b:2 2 status_413 2", "s:a/b:4 4 status_400 1", "s:a/b:5 5 status_410 1", "s:a/b:6 6 argument_too_long 1"}
		if !slices.Equal(got, want) {
			t.Errorf("put aside %v, want %v", got, want)
		}
		d.stop(t)
	})
}

// TestNothingIsGivenUpThatCannotBePutAside.
func TestNothingIsGivenUpThatCannotBePutAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusal := answer(target.Refused, "status_400", 0)
		d := newDesk(0, refusal, refusal, refusal)
		d.deadErr = []error{errors.New("no space"), errors.New("no space"), nil}
		d.offer(t, 0, 1, 2)
		time.Sleep(time.Hour)
		synctest.Wait()
		d.want(t, "1.1 1.2 1.3 2.1", "resting, resting, done 1, done 2")
		if len(d.dead) != 1 || d.dead[0].Attempts != 3 || d.waits[1] >= 2*time.Second {
			t.Errorf("%+v, waits %v", d.dead, d.waits)
		}
		d.stop(t)
	})
}

// TestPauses: a consumer that does not know us, and a rule that cannot run as it
// is written, burn no records: each pause is longer than the one before it, and
// once it is mended all goes on.
func TestPauses(t *testing.T) {
	for _, a := range []error{
		answer(target.Unauthorized, "status_401", 0), answer(target.Unauthorized, "status_403", 0),
		answer(target.Refused, "missing_variable", 0), answer(target.Refused, "is_directory", 0), answer(target.Refused, "redirect", 0),
		answer(target.Refused, "not_found", 0), answer(target.Refused, "bad_url", 0), answer(target.Refused, "permission", 0),
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(0, a, a, a, a, a, a, a, a, a, a)
			d.offer(t, 0, 1, 2)
			time.Sleep(24 * time.Hour)
			synctest.Wait()
			if len(d.waits) != 10 || len(d.dead) != 0 {
				t.Fatalf("%v: waits %v, dead %v", a, d.waits, d.dead)
			}
			for i, w := range d.waits {
				if i > 0 && i < 7 && w < d.waits[i-1] {
					t.Errorf("%v: pause %d is %v, behind %v", a, i, w, d.waits[i-1])
				}
				if w < 15*time.Second || w > time.Hour {
					t.Errorf("%v: pause %d is %v", a, i, w)
				}
			}
			if got := d.sent(); got[len(got)-1] != "2.1" || len(got) != 12 {
				t.Errorf("%v: sent %v", a, got)
			}
			d.stop(t)
		})
	}
}

// TestExpired: what has grown too old goes aside once its consumer has failed.
// Age alone gives nothing up: a clock that was set forward makes all records old.
func TestExpired(t *testing.T) {
	down := answer(target.Failed, "connect", 0)
	for _, row := range []struct {
		name     string
		maxAge   time.Duration
		age      time.Duration
		answers  []error
		sent     string
		dead     int
		finishes bool
	}{
		{"old, and taken", time.Hour, 24 * 365 * time.Hour, nil, "1.1 2.1 3.1", 0, true},
		{"old, and not taken", time.Hour, 2 * time.Hour, []error{down, down, down}, "1.1", 3, true},
		{"old, its consumer unauthorized", time.Hour, 2 * time.Hour, []error{answer(target.Unauthorized, "status_401", 0)}, "1.1", 3, true},
		{"not old yet", time.Hour, 59 * time.Minute, []error{down, nil}, "1.1 1.2 2.1 3.1", 0, true},
		{"kept for ever", 0, 1000 * time.Hour, []error{down, nil}, "1.1 1.2 2.1 3.1", 0, true},
		{"from the future", time.Hour, -24 * 365 * time.Hour, []error{down, nil}, "1.1 1.2 2.1 3.1", 0, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(row.maxAge, row.answers...)
			d.offer(t, row.age, 1, 2, 3)
			time.Sleep(30 * time.Second)
			synctest.Wait()
			if got := strings.Join(d.sent(), " "); got != row.sent || len(d.dead) != row.dead {
				t.Errorf("%s: sent %s, want %s; dead %v, want %d", row.name, got, row.sent, d.dead, row.dead)
			}
			for i, l := range d.dead {
				if tried := l.Attempts == 1; tried != (i == 0) {
					t.Errorf("%s: record %d was tried %d times", row.name, l.Seq, l.Attempts)
				}
				if l.Reason != "expired" || !strings.HasPrefix(l.Words, "not delivered within 1h0m0s") || string(l.Body) == "null" {
					t.Errorf("%s: %+v", row.name, l)
				}
			}
			d.stop(t)
		})
	}
}

// TestAgesWhileItWaits: a record that grows too old between tries goes aside with
// the next, and says why the last one failed.
func TestAgesWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(time.Minute)
		for range 100 {
			d.answers = append(d.answers, answer(target.Failed, "status_503", 0))
		}
		d.offer(t, 0, 1)
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(d.dead) != 1 || d.dead[0].Attempts < 3 || d.dead[0].Attempts > 60 {
			t.Fatalf("%+v", d.dead)
		}
		d.stop(t)
	})
}

// TestStopWhileResting: it ends at once, and the record is not done with.
func TestStopWhileResting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(0, answer(target.Failed, "connect", time.Hour))
		d.offer(t, 0, 1, 2)
		began := time.Now()
		d.stop(t)
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v", took)
		}
		d.want(t, "1.1", "resting")
	})
}

// TestStopInFlight: what is being sent is finished, within its timeout, and
// nothing more is sent.
func TestStopInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(0, errHangs)
		d.offer(t, 0, 1, 2)
		began := time.Now()
		d.stop(t)
		// The watchdog has stopped with the bench: the rule's own context ends it.
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
		if got := d.sent(); !slices.Equal(got, []string{"1.1"}) {
			t.Errorf("sent %v", got)
		}
	})
}

// TestUnreadableRecord goes aside, without a text: there is none.
func TestUnreadableRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(0)
		d.deadErr = []error{errors.New("no space"), nil}
		if !d.TryOffer(delivery.NewItem(t.TempDir(), "s", spool.Frame{Seq: 1}, 1, nil)) {
			t.Fatal("no room")
		}
		d.offer(t, 0, 2)
		time.Sleep(time.Minute)
		synctest.Wait()
		d.want(t, "2.1", "resting, done 1, done 2")
		if len(d.dead) != 1 || d.dead[0].Attempts != 0 || d.dead[0].Reason != "spool" || string(d.dead[0].Body) != "null" {
			t.Errorf("%+v", d.dead)
		}
		d.stop(t)
	})
}

// TestBestEffortTriesOnce, and the loss is said.
func TestBestEffortTriesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(time.Hour, answer(target.Failed, "connect", time.Hour), answer(target.Refused, "missing_variable", 0))
		d.Delivery = plan.BestEffort
		d.offer(t, 1000*time.Hour, 1, 2, 3)
		d.want(t, "1.1 2.1 3.1", "lost 1, done 1 connect, lost 2, done 2 missing_variable, done 3")
		d.stop(t)
	})
}
