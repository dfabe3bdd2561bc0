// Package delivery holds the messages between the spool actor and the rule
// actors: a record on its way to one rule, and the word that the rule is done
// with it.
package delivery

import (
	"context"
	"fmt"
	"time"

	"ways/actors/target"
	"ways/hooks/redact"
	"ways/hooks/spool"
)

// keepBytes is the largest record that travels with its bytes. Larger ones are
// read again when their turn comes, so that a queue of giants stays small.
const keepBytes = 64 << 10

// Item is one record handed to one rule.
type Item struct {
	Session string
	Seq     uint64
	// RuleSeq counts what the rule was handed in this session, this one included.
	RuleSeq uint64
	// At is where the record is in the spool.
	At spool.Position

	dir string
	// shared is the record, which other rules may have as well; nil for a large one,
	// whose time is in at.
	shared *redact.Shared
	at     time.Time
}

// NewItem makes the item for a frame of a session's spool. It keeps the frame's
// bytes only when own is a copy that nobody changes.
func NewItem(dir, session string, f spool.Frame, ruleSeq uint64, own []byte) Item {
	return SharedItem(dir, session, f, ruleSeq, redact.NewShared(own))
}

// SharedItem is NewItem for a record that goes to several rules: what one of them
// does to it, the others need not do again.
func SharedItem(dir, session string, f spool.Frame, ruleSeq uint64, record *redact.Shared) Item {
	it := Item{Session: session, Seq: f.Seq, RuleSeq: ruleSeq, At: f.At, dir: dir}
	switch n := len(record.Bytes()); {
	case n > keepBytes:
		it.at = TimeOf(record.Bytes())
	case n > 0:
		it.shared = record
	}
	return it
}

// Record returns the record's JSON; the caller must not change it. An error says
// that the spool no longer holds it.
func (it Item) Record() ([]byte, error) {
	record, err := it.Shared()
	if err != nil {
		return nil, err
	}
	return record.Bytes(), nil
}

// Shared is Record as it is shared with other rules.
func (it Item) Shared() (*redact.Shared, error) {
	if it.shared != nil {
		return it.shared, nil
	}
	f, err := spool.ReadAt(it.dir, it.At)
	if err == nil && f.Seq != it.Seq {
		err = fmt.Errorf("the spool holds record %d where %d was", f.Seq, it.Seq)
	}
	if err != nil {
		return nil, fmt.Errorf("read record %d again: %w", it.Seq, err)
	}
	return redact.NewShared(f.JSON), nil
}

// Time is when the hook saw the record; now, for a record that does not say.
func (it Item) Time() time.Time {
	if !it.at.IsZero() {
		return it.at
	}
	record, err := it.Record()
	if err != nil {
		return time.Now()
	}
	return TimeOf(record)
}

// TimeOf is a record's time; now, for one that does not say.
func TimeOf(record []byte) time.Time {
	t, err := time.Parse(time.RFC3339Nano, StringField(record, "ts"))
	if err != nil {
		return time.Now()
	}
	return t
}

// Rule is what the spool actor knows of a rule actor: a queue with room or none.
type Rule interface {
	// TryOffer hands an item over; false when the queue is full. It never waits.
	TryOffer(Item) bool
}

// Done says that a rule is finished with a record, whatever became of it.
type Done struct {
	Rule string
	Seq  uint64
	// Lost says why the consumer did not get it; empty when it did, or when the
	// record was put aside.
	Lost string
}

// Arrival is a record that a rule's consumer accepted.
type Arrival struct {
	// Masked counts what was masked in it, by kind.
	Masked map[string]int
	// Took is how long the dispatch lasted, Lag how long ago the hook had seen the
	// record when it ended.
	Took, Lag time.Duration
}

// Loss is a record that a rule's consumer did not get.
type Loss struct {
	Kind   target.Kind
	Reason string
	// Words say what happened, without secrets.
	Words string
	Seq   uint64
	// Took is how long the dispatch lasted.
	Took time.Duration
}

// Acks is where rules say that they are done.
type Acks interface {
	// Done hands the word over, waiting until it is taken or ctx ends.
	Done(ctx context.Context, d Done)
	// Resting says that a rule waits before it tries its record again.
	Resting(ctx context.Context, rule string)
}
