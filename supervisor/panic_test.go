package supervisor_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"ways/actors/target"
	"ways/config/plan"
	"ways/metrics/counters"
)

// scripted is a target that does as do says, and keeps what it accepted. It is
// used by one rule's actor at a time.
type scripted struct {
	do   func(seq uint64, attempt int) error
	seen map[uint64]int
	got  []uint64
}

func (s *scripted) Deliver(_ context.Context, d target.Dispatch) error {
	s.seen[d.Seq]++
	if err := s.do(d.Seq, s.seen[d.Seq]); err != nil {
		return err
	}
	s.got = append(s.got, d.Seq)
	return nil
}
func (s *scripted) Describe() string { return "scripted" }
func (s *scripted) Close() error     { return nil }

func newScripted(do func(seq uint64, attempt int) error) *scripted {
	return &scripted{do: do, seen: map[uint64]int{}}
}

func upTo(n uint64, but ...uint64) []uint64 {
	var list []uint64
	for i := uint64(1); i <= n; i++ {
		if !slices.Contains(but, i) {
			list = append(list, i)
		}
	}
	return list
}

// TestPanicsOfOneRule: a panic restarts the rule's actor alone, with its queue and
// the record in its hand; a record that brings it down again and again is given
// up; the other rule notices nothing.
func TestPanicsOfOneRule(t *testing.T) {
	const n = 200 // more than the queue in memory holds
	for _, row := range []struct {
		name string
		do   func(seq uint64, attempt int) error
		got  []uint64
		want counters.Rule
	}{
		{"once", func(seq uint64, attempt int) error {
			if seq == 5 && attempt == 1 {
				panic("a secret of the session")
			}
			return nil
		}, upTo(n), counters.Rule{Matched: n, Delivered: n, Panics: 1}},
		{"always on one record", func(seq uint64, _ int) error {
			if seq == 7 {
				none := map[string][]int{}
				_ = none["x"][seq] // the runtime's own panic
			}
			return nil
		}, upTo(n, 7), counters.Rule{Matched: n, Delivered: n - 1, Refused: 1, Panics: 3}},
	} {
		t.Run(row.name, func(t *testing.T) {
			state := t.TempDir()
			dir := filepath.Join(state, "sessions", "bench")
			fill(t, dir, n, 300)
			shaky, steady := newScripted(row.do), newScripted(func(uint64, int) error { return nil })
			drain(t, dir, rules(2, func(int) plan.Target { return plan.Target{File: &plan.File{Path: "/x"}} }),
				func(r plan.Rule) (target.Target, error) {
					if r.ID == "bench/r000" {
						return shaky, nil
					}
					return steady, nil
				})
			if !slices.Equal(shaky.got, row.got) {
				t.Errorf("the rule that panics delivered %v, want %v", shaky.got, row.got)
			}
			if !slices.Equal(steady.got, upTo(n)) {
				t.Errorf("the other rule delivered %v", steady.got)
			}
			sum, err := counters.NewStore(state).Sum()
			if err != nil {
				t.Fatal(err)
			}
			for id, want := range map[string]counters.Rule{"bench/r000": row.want, "bench/r001": {Matched: n, Delivered: n}} {
				got := sum.Rules[id]
				if got == nil {
					t.Fatalf("nothing is counted of %s: %v", id, sum.Rules)
				}
				only := counters.Rule{Matched: got.Matched, Delivered: got.Delivered, Failed: got.Failed, Refused: got.Refused, Panics: got.Panics}
				if only.Matched != want.Matched || only.Delivered != want.Delivered || only.Failed != 0 || only.Refused != want.Refused || only.Panics != want.Panics {
					t.Errorf("%s: counted %+v, want %+v", id, only, want)
				}
			}
		})
	}
}
