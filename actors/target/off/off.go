// Package off is the target of a rule that is off: it takes nothing, so that what
// waits for the rule goes on to wait.
package off

import (
	"context"
	"errors"

	"ways/actors/target"
)

// ErrOff says why a record of such a rule was not sent.
var ErrOff = errors.New("the rule is off: it was turned off, removed or refused; what waits for it is kept until it is on again, or until spool.max_age")

// Target refuses every record without looking at it.
type Target struct {
	// To is where the rule sent when it was on, for people.
	To string
	// Why says why nothing is sent.
	Why error
}

// Deliver implements target.Target.
func (t Target) Deliver(context.Context, target.Dispatch) error {
	return &target.Error{Kind: target.Refused, Reason: target.RuleOff, Err: t.Why}
}

// Describe implements target.Target.
func (t Target) Describe() string { return t.To }

// Close implements target.Target.
func (Target) Close() error { return nil }
