package dispatch

import (
	"context"
	"errors"
	"fmt"

	"github.com/rs/zerolog"

	"ways/actors/target"
	"ways/actors/target/visible"
	"ways/cmd/internal/cli"
	"ways/config/files"
	"ways/config/plan"
	"ways/config/publish"
	"ways/hooks/dirs"
	"ways/hooks/redact"
	"ways/supervisor"
)

// Sender sends single records through rules' real masks, timeouts and targets,
// from the process of a person who asked for it.
type Sender struct {
	plan    plan.Plan
	masker  *redact.Masker
	make    func(plan.Rule) (target.Target, error)
	targets map[string]target.Target
}

// NewSender returns a sender for the rules that apply to a project.
func NewSender(env cli.Env, project string) (*Sender, error) {
	d, err := dirs.From(env.Getenv)
	if err != nil {
		return nil, err
	}
	p, _, err := publish.Fresh(d, files.NewReader(), project)
	if err != nil {
		return nil, err
	}
	masker, err := supervisor.NewMasker(p.Masking)
	if err != nil {
		return nil, err
	}
	return &Sender{plan: p, masker: masker, make: outlets{env: env, dirs: d, masker: masker, log: zerolog.Nop()}.target, targets: map[string]target.Target{}}, nil
}

// Rules returns the rules that run.
func (s *Sender) Rules() []plan.Rule { return s.plan.Rules }

// Rule returns a rule that runs.
func (s *Sender) Rule(id string) (plan.Rule, error) {
	for _, r := range s.plan.Rules {
		if r.ID == id {
			return r, nil
		}
	}
	return plan.Rule{}, fmt.Errorf("the rule %s does not run here; ways sensors list shows which do", visible.Line(id))
}

// Send sends what build makes for a rule, once, within the rule's timeout.
func (s *Sender) Send(ctx context.Context, rule string, build func(plan.Rule, *redact.Masker) target.Dispatch) error {
	r, err := s.Rule(rule)
	if err != nil {
		return err
	}
	way := s.targets[rule]
	if way == nil {
		if way, err = s.make(r); err != nil {
			return err
		}
		s.targets[rule] = way
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.Timeout, target.ErrExpired)
	defer cancel()
	return way.Deliver(ctx, build(r, s.masker))
}

// Close gives what the rules' targets hold back.
func (s *Sender) Close() error {
	var errs []error
	for _, way := range s.targets {
		errs = append(errs, way.Close())
	}
	return errors.Join(errs...)
}
