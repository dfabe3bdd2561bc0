// Package target says what a consumer is, and in which ways it can fail. The
// ways out themselves are the packages below it.
package target

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ways/hooks/redact"
)

// Dispatch is one record on its way to one rule's consumer.
type Dispatch struct {
	// ID is the same over all tries of one record to one rule (seed §6).
	ID string
	// Rule is "<sensor>/<rule>".
	Rule    string
	Session string
	Seq     uint64
	// Attempt counts from 1.
	Attempt int
	// Unordered says that records of this session and rule come in no order: a
	// blocking rule's, a dead letter's, one that was fired by hand. Where it is
	// false, a target may take a Seq below the last one for a repetition.
	Unordered bool
	Body      redact.Payload
}

// Target is one rule's way out. Its methods are called by one goroutine at a
// time. Deliver returns nil once the consumer accepted the record, an *Error
// when it did not. It returns soon after ctx ends and leaves nothing behind
// then: no process, no descriptor, no half-written line.
type Target interface {
	Deliver(ctx context.Context, d Dispatch) error
	// Describe names the destination for people, without secrets: a path, a
	// URL without userinfo and query, a program's name.
	Describe() string
	Close() error
}

// Batch is a Target that takes several records at once for less than it takes them
// one by one.
type Batch interface {
	Target
	// DeliverAll delivers ds, which is not empty: records of one session and rule,
	// Seq rising, none Unordered. It returns how many of them, from the first on, were
	// accepted. The error is nil when all were, else it says of the one behind those
	// what Deliver's would.
	DeliverAll(ctx context.Context, ds []Dispatch) (accepted int, err error)
}

// Kind says what a failed dispatch means for the record.
type Kind string

// The kinds of failure.
const (
	// Failed: this try did not work and another might: a refused connection,
	// a 503, a full disk, a command that exited 1.
	Failed Kind = "failed"
	// Refused: the consumer or the configuration will never accept this record
	// as it is: a 400, a directory where a file was named, a missing ${NAME}.
	Refused Kind = "refused"
	// TimedOut: the rule's timeout passed, and the dispatch was cancelled.
	TimedOut Kind = "timed_out"
	// Killed: the rule's timeout passed, and a process was killed for it.
	Killed Kind = "killed"
	// Unauthorized: the consumer does not know us (401, 403). The record is
	// fine; the rule should pause.
	Unauthorized Kind = "unauthorized"
)

// Cancelled is the reason of a dispatch that was given up before its deadline
// because its process was told to stop. It says nothing about the consumer.
const Cancelled = "cancelled"

// RuleOff is the reason of a record that was not sent since its rule is off: no
// sensor file has it any more, or it was refused or turned off.
const RuleOff = "rule_off"

// Error is a dispatch that the consumer did not accept.
type Error struct {
	Kind Kind
	// Reason is a short stable word for counters and events: "status_503",
	// "connect", "tls", "exit_1", "is_directory".
	Reason string
	// RetryAfter is what the consumer asked for; 0 when it did not.
	RetryAfter time.Duration
	// Err says what happened, in words, without secrets.
	Err error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s (%s): %v", e.Kind, e.Reason, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of a dispatch error; an error that is no *Error
// counts as Failed, so that an unclassified error never burns a record.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Failed
}

// ErrExpired is the cause of a context that the watchdog cancelled at a
// dispatch's deadline.
var ErrExpired = errors.New("the rule's timeout passed")
