package supervisor

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"ways/actors/delivery"
	"ways/actors/intake"
	"ways/actors/meter"
	"ways/actors/target"
	"ways/actors/watchdog"
	"ways/config/plan"
	"ways/hooks/record"
	"ways/hooks/redact"
	"ways/hooks/spool"
	"ways/metrics/counters"
	"ways/metrics/events"
)

// panicking panics that many times, and then accepts everything.
type panicking struct{ left int }

func (p *panicking) Deliver(context.Context, target.Dispatch) error {
	if p.left > 0 {
		p.left--
		panic("a secret of the session")
	}
	return nil
}
func (p *panicking) Describe() string { return "panicking" }
func (p *panicking) Close() error     { return nil }

// ledger keeps what rules are done with.
type ledger struct {
	mu   sync.Mutex
	done map[string][]uint64
}

func (l *ledger) Done(_ context.Context, d delivery.Done) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done[d.Rule] = append(l.done[d.Rule], d.Seq)
}
func (l *ledger) Resting(context.Context, string) {}

func (l *ledger) of(rule string) []uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.done[rule])
}

// lockedBuffer is a log that several actors write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestPanicsBackOff: a rule whose actor panics too often pauses, and goes on
// where it was; the rule beside it does not pause; how often is counted, and the
// log does not repeat what the panic said.
func TestPanicsBackOff(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		out := &lockedBuffer{}
		log := zerolog.New(out)
		count, dog, acks := meter.New(dir, "s", events.NewLog(dir), log), watchdog.New(), &ledger{done: map[string][]uint64{}}
		silent := func(Exit) {}
		base := newStage("base", log, time.Second, service{count, silent}, service{dog, silent})
		rules := newStage("rules", log, time.Second)
		masker, err := redact.New(redact.Options{})
		if err != nil {
			t.Fatal(err)
		}
		// Three panics use one record up, so the sixth is the second record's last.
		shaky := &panicking{left: 6}
		list := &roster{
			dir: dir, targets: func(r plan.Rule) (target.Target, error) {
				if r.ID == "x/shaky" {
					return shaky, nil
				}
				return &panicking{}, nil
			},
			masker: masker, watchdog: dog, meter: count, acks: acks, log: log, stage: rules, running: map[string]*running{},
		}
		var p plan.Plan
		for _, id := range []string{"x/shaky", "x/steady"} {
			p.Rules = append(p.Rules, plan.Rule{
				ID: id, Sections: record.SetOf(record.ToolCall), Mode: plan.Async, Timeout: time.Second, Queue: 10,
				Delivery: plan.BestEffort, Redact: plan.RedactSecrets,
			})
		}
		selected, _ := list.Run(t.Context(), p)
		offer := func(s intake.Selected, seq uint64) {
			json := []byte(`{"section":"tool_call"}`)
			if !s.Actor.TryOffer(delivery.NewItem(dir, "s", spool.Frame{Seq: seq}, seq, json)) {
				t.Fatalf("%s has no room for record %d", s.ID, seq)
			}
		}
		for seq := uint64(1); seq <= 4; seq++ {
			for _, s := range selected {
				offer(s, seq)
			}
		}
		began := time.Now()
		synctest.Wait()
		if got := acks.of("x/shaky"); !slices.Equal(got, []uint64{1}) {
			t.Errorf("before the pause the rule is done with %v, want [1]", got)
		}
		if got := acks.of("x/steady"); !slices.Equal(got, []uint64{1, 2, 3, 4}) {
			t.Errorf("the other rule is done with %v", got)
		}
		<-time.After(failureBackoff / 2)
		synctest.Wait()
		if got := acks.of("x/shaky"); len(got) != 1 {
			t.Errorf("in its pause the rule is done with %v", got)
		}
		for _, s := range selected {
			if s.ID == "x/steady" {
				offer(s, 5)
			}
		}
		synctest.Wait()
		if got := acks.of("x/steady"); len(got) != 5 {
			t.Errorf("in the pause the other rule is done with %v", got)
		}
		<-time.After(failureBackoff)
		synctest.Wait()
		if got := acks.of("x/shaky"); !slices.Equal(got, []uint64{1, 2, 3, 4}) {
			t.Errorf("behind its pause, %v later, the rule is done with %v", time.Since(began), got)
		}
		rules.stop(log)
		base.stop(log)
		if text := out.String(); strings.Contains(text, "secret") || !strings.Contains(text, `"supervisor":"rule/x/shaky","message":"too many failures: restarts pause"`) {
			t.Errorf("the log says\n%s", text)
		}
	})
	sum, err := counters.NewStore(dir).Sum()
	if err != nil {
		t.Fatal(err)
	}
	if r := sum.Rules["x/shaky"]; r.Panics != 6 || r.Delivered != 2 || r.Refused != 2 {
		t.Errorf("counted %+v, want 6 panics, 2 delivered, 2 refused", r)
	}
	if r := sum.Rules["x/steady"]; r.Panics != 0 || r.Delivered != 5 {
		t.Errorf("counted %+v, want 5 delivered", r)
	}
}
