package supervisor

import (
	"context"
	"errors"
	"testing"

	"github.com/rs/zerolog"

	"ways/actors/target"
	"ways/actors/target/off"
	"ways/config/plan"
)

// TestWayOfARuleThatCannotSend: an at-least-once rule that is off, or whose target
// cannot be made, keeps its records; a best-effort one does not run.
func TestWayOfARuleThatCannotSend(t *testing.T) {
	broken := errors.New("a template that does not parse")
	made := &panicking{}
	r := &roster{log: zerolog.Nop(), targets: func(rl plan.Rule) (target.Target, error) {
		if rl.ID == "a/broken" {
			return nil, broken
		}
		return made, nil
	}}
	to := plan.Target{File: &plan.File{Path: "/log"}}
	for _, row := range []struct {
		name string
		rule plan.Rule
		why  error // of what is not sent
		err  error
	}{
		{"on", plan.Rule{ID: "a/b", Delivery: plan.AtLeastOnce, Target: to}, nil, nil},
		{"off", plan.Rule{ID: "a/b", Delivery: plan.AtLeastOnce, Target: to, Off: true}, off.ErrOff, nil},
		{"off and broken", plan.Rule{ID: "a/broken", Delivery: plan.AtLeastOnce, Target: to, Off: true}, off.ErrOff, nil},
		{"broken", plan.Rule{ID: "a/broken", Delivery: plan.AtLeastOnce, Target: to}, broken, nil},
		{"broken, best effort", plan.Rule{ID: "a/broken", Delivery: plan.BestEffort, Target: to}, nil, broken},
	} {
		way, err := r.way(row.rule)
		if !errors.Is(err, row.err) {
			t.Errorf("%s: %v", row.name, err)
		}
		if err != nil {
			continue
		}
		sent := way.Deliver(context.Background(), target.Dispatch{})
		var failed *target.Error
		if row.why == nil {
			if sent != nil || way != target.Target(made) {
				t.Errorf("%s: %v", row.name, sent)
			}
			continue
		}
		if !errors.As(sent, &failed) || failed.Kind != target.Refused || failed.Reason != target.RuleOff || !errors.Is(sent, row.why) {
			t.Errorf("%s: %v", row.name, sent)
		}
		if way.Describe() != "file /log" || way.Close() != nil {
			t.Errorf("%s: %s", row.name, way.Describe())
		}
	}
}
