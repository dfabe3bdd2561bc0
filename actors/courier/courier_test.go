package courier_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"ways/actors/courier"
	"ways/actors/target"
	"ways/config/plan"
	"ways/hooks/redact"
)

// inbox is a target that says what it got.
type inbox struct {
	got    chan target.Dispatch
	answer chan error
}

func (i inbox) Deliver(_ context.Context, d target.Dispatch) error { i.got <- d; return <-i.answer }
func (inbox) Describe() string                                     { return "inbox" }
func (inbox) Close() error                                         { return nil }

func TestTheLatestArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masker, err := redact.New(redact.Options{})
		if err != nil {
			t.Fatal(err)
		}
		to := inbox{make(chan target.Dispatch), make(chan error)}
		c := courier.New(courier.Options{
			Make:   func(plan.Rule) (target.Target, error) { return to, nil },
			Masker: masker, Log: zerolog.Nop(),
		})
		parcel := func(n int) courier.Parcel {
			return courier.Parcel{
				Chain: "c", To: plan.Rule{ID: "s/r", Timeout: time.Second}, ID: fmt.Sprint("checkpoint:c:", n), Session: "x",
				Record: []byte(fmt.Sprintf(`{"data":{"n":%d}}`, n)),
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Serve(ctx) }()
		expect := func(n, attempt int, answer error) {
			t.Helper()
			d := <-to.got
			if want := fmt.Sprintf(`{"data":{"n":%d},"rule":"s/r","rule_seq":0}`, n); string(d.Body.Bytes()) != want || d.Attempt != attempt || !d.Unordered {
				t.Errorf("got %s, attempt %d, unordered %v; want %s, attempt %d", d.Body.Bytes(), d.Attempt, d.Unordered, want, attempt)
			}
			to.answer <- answer
		}
		c.Post(parcel(1))
		expect(1, 1, nil)
		c.Post(parcel(2))
		expect(2, 1, errors.New("down"))
		began := time.Now()
		expect(2, 2, errors.New("down")) // tried again by itself
		if waited := time.Since(began); waited <= 0 || waited > time.Minute {
			t.Errorf("tried again after %v", waited)
		}
		c.Post(parcel(3)) // takes the place of 2
		expect(3, 3, errors.New("down"))
		cancel()
		expect(3, 4, nil) // the last try
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Serve = %v", err)
		}
		for n := range 100 {
			if !c.Post(parcel(n)) && n < 64 {
				t.Errorf("parcel %d did not fit", n)
			}
		}
	})
}
