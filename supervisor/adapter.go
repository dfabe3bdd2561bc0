// Package supervisor runs the actors: it holds the dispatcher's tree and the one
// adapter around suture, which is imported nowhere else.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/rs/zerolog"
	"github.com/thejerf/suture/v4"

	"ways/actors/actor"
)

// Exit is one return of an actor's Serve.
type Exit struct {
	Actor string
	// Err is what Serve returned; nil when it panicked.
	Err error
	// Panic describes the panic, without the text of its value, which may quote
	// a record; Stack is where it was.
	Panic string
	Stack []byte
	// Stopping: the actor had been told to stop.
	Stopping bool
}

// service runs an actor under suture. suture says nothing of a service that ends
// for good or while its tree stops, so every exit is reported here first.
type service struct {
	actor.Actor
	observe func(Exit)
}

// errPanicked is what suture is told of a panic; the Exit has the rest.
var errPanicked = errors.New("panicked")

// Serve implements suture.Service.
func (s service) Serve(ctx context.Context) (err error) {
	defer func() {
		exit := Exit{Actor: s.String(), Err: err, Stopping: ctx.Err() != nil}
		if v := recover(); v != nil {
			exit.Panic, exit.Stack, err = describePanic(v), debug.Stack(), errPanicked
		}
		s.observe(exit)
	}()
	err = s.Actor.Serve(ctx)
	switch {
	case err == nil && ctx.Err() == nil:
		// An actor that returns has ended; suture would start it again.
		return suture.ErrDoNotRestart
	case actor.IsDone(err):
		return fmt.Errorf("%w: %w", suture.ErrDoNotRestart, err)
	case actor.IsFatal(err):
		return fmt.Errorf("%w: %w", suture.ErrTerminateSupervisorTree, err)
	}
	return err
}

// describePanic says what kind of panic it was. The runtime's own messages hold
// numbers and types; any other value may hold session text.
func describePanic(v any) string {
	if e, ok := v.(runtime.Error); ok {
		return e.Error()
	}
	return fmt.Sprintf("a %T", v)
}

// Restart limits of a supervisor. One rule each, so that the pause after too
// many failures is that rule's alone.
const (
	failureThreshold = 5
	failureDecay     = 30 // seconds
	failureBackoff   = 15 * time.Second
)

// spec is a supervisor's configuration: its name, the log, and how long its
// actors may take to stop.
func spec(log zerolog.Logger, stop time.Duration) suture.Spec {
	return suture.Spec{
		EventHook:        func(e suture.Event) { logEvent(log, e) },
		FailureThreshold: failureThreshold,
		FailureDecay:     failureDecay,
		FailureBackoff:   failureBackoff,
		Timeout:          stop,
	}
}

// logEvent writes a suture event to the log. It runs on the supervisor's own
// goroutine: it must neither wait nor call back.
func logEvent(log zerolog.Logger, e suture.Event) {
	switch e := e.(type) {
	case suture.EventBackoff:
		log.Warn().Str("supervisor", e.SupervisorName).Msg("too many failures: restarts pause")
	case suture.EventResume:
		log.Info().Str("supervisor", e.SupervisorName).Msg("restarts resume")
	case suture.EventStopTimeout:
		// Its own String would print the live actor.
		log.Error().Str("supervisor", e.SupervisorName).Str("actor", e.ServiceName).Msg("did not stop in time")
	case suture.EventServiceTerminate:
		log.Warn().Str("supervisor", e.SupervisorName).Str("actor", e.ServiceName).
			Float64("failures", e.CurrentFailures).Bool("restarting", e.Restarting).Msg("actor failed")
	}
}

// stage is a supervisor whose actors stop together. suture stops siblings in no
// order, so what must stop in order is in stages.
type stage struct {
	sup    *suture.Supervisor
	cancel context.CancelFunc
	ended  <-chan error
}

// newStage starts a supervisor with these services.
func newStage(name string, log zerolog.Logger, stop time.Duration, services ...suture.Service) *stage {
	ctx, cancel := context.WithCancel(context.Background())
	sup := suture.New(name, spec(log, stop))
	for _, s := range services {
		sup.Add(s)
	}
	return &stage{sup: sup, cancel: cancel, ended: sup.ServeBackground(ctx)}
}

// stop ends the stage and reports what did not stop.
func (s *stage) stop(log zerolog.Logger) {
	s.cancel()
	<-s.ended
	report, err := s.sup.UnstoppedServiceReport()
	if err != nil {
		return
	}
	for _, u := range report {
		log.Error().Str("supervisor", s.sup.Name).Str("actor", u.Name).Msg("left running")
	}
}
