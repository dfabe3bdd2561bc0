// Package actor says what an actor is in this program.
//
// An actor is a value with Serve and String. It owns its state: working state
// is local to Serve and rebuilt on every start, and others reach it only through
// methods that send on its mailbox. The mailbox belongs to the value, so that it
// survives a restart. Nobody closes a mailbox; an actor stops with its context.
package actor

import (
	"context"
	"errors"
)

// Actor is what a supervisor runs. Serve returns when ctx ends, or with an
// error: a plain one asks for a restart, Done and Fatal say otherwise.
type Actor interface {
	Serve(ctx context.Context) error
	// String names the actor in logs; stable, without addresses or secrets.
	String() string
}

type doneError struct{ why string }

func (e *doneError) Error() string { return "done: " + e.why }

// Done is returned by an actor that has finished for good; it is not
// restarted and its siblings go on.
func Done(why string) error { return &doneError{why} }

// IsDone reports whether err is an actor's Done.
func IsDone(err error) bool {
	var d *doneError
	return errors.As(err, &d)
}

// WhyDone is the reason in an actor's Done; empty for any other error.
func WhyDone(err error) string {
	var d *doneError
	if !errors.As(err, &d) {
		return ""
	}
	return d.why
}

type fatalError struct{ err error }

func (e *fatalError) Error() string { return e.err.Error() }
func (e *fatalError) Unwrap() error { return e.err }

// Fatal is returned by an actor without which the whole tree has no point; the
// tree stops and the process reports err.
func Fatal(err error) error { return &fatalError{err} }

// IsFatal reports whether err is an actor's Fatal.
func IsFatal(err error) bool {
	var f *fatalError
	return errors.As(err, &f)
}
