package main

import (
	"context"
	"os"
	"time"

	"github.com/rs/zerolog"

	"ways/actors/target"
	"ways/config/files"
	"ways/config/plan"
	"ways/config/publish"
	"ways/hooks/dirs"
	"ways/hooks/index"
	"ways/hooks/launch"
	"ways/metrics/events"
	"ways/supervisor"
)

// discardRole is the argument with which this program runs itself as a
// dispatcher whose targets do nothing: what is left is all but the target.
const discardRole = "discard"

// nowhere takes every record, several at once as a file does.
type nowhere struct{}

var _ target.Batch = nowhere{}

func (nowhere) Deliver(context.Context, target.Dispatch) error { return nil }
func (nowhere) DeliverAll(_ context.Context, ds []target.Dispatch) (int, error) {
	return len(ds), nil
}
func (nowhere) Describe() string { return "nowhere" }
func (nowhere) Close() error     { return nil }

// discard dispatches the session args[0], in the home of the environment.
func discard(ctx context.Context, args []string) error {
	session := args[0]
	d, err := dirs.From(os.Getenv)
	if err != nil {
		return err
	}
	masker, err := supervisor.NewMasker(plan.Masking{})
	if err != nil {
		return err
	}
	lock, err := launch.TryLock(d.Session(session))
	if err != nil {
		return err
	}
	reader := files.NewReader()
	return supervisor.Dispatcher{
		Dir: d.Session(session), Session: session, Lock: lock, Idle: rest, Linger: time.Second, Masker: masker, Log: zerolog.Nop(), Events: events.NewLog(d.State),
		Load:    func(project string) (plan.Plan, uint64, error) { return publish.Load(d, reader, project) },
		Index:   func(project string) (index.Header, error) { return publish.Header(d, reader, project) },
		Targets: func(plan.Rule) (target.Target, error) { return nowhere{}, nil },
	}.Run(ctx)
}

// drainNowhere is drain with targets that do nothing.
func (l *lab) drainNowhere(ctx context.Context, h home, session string) (usage, error) {
	self, err := os.Executable()
	if err != nil {
		return usage{}, err
	}
	return h.time(ctx, self, discardRole, session)
}
