package rule

import (
	"context"
	"errors"
	"os"
	"time"

	"ways/actors/delivery"
	"ways/actors/target"
	"ways/config/plan"
	"ways/hooks/ticket"
)

// look is how often a record's ticket is looked at while the hook's process
// holds it; that takes ten seconds at most (seed §5).
const look = 20 * time.Millisecond

// takeOver finds out whether the hook's own process has finished with a record
// of a blocking rule; it counts the outcome then. Otherwise it leaves the number
// the record is to be handed out under in it.RuleSeq. lost is as finish has it.
func (r *Rule) takeOver(ctx context.Context, it *delivery.Item) (finished bool, lost string, err error) {
	var said delivery.Outcome
	var found bool
	for {
		said, found, err = delivery.ReadOutcome(r.Dir, it.Seq, r.ID)
		if !errors.Is(err, ticket.ErrHeld) {
			break
		}
		select {
		case <-ctx.Done():
			return false, "", ctx.Err()
		case <-time.After(look):
		}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.Log.Error().Str("rule", r.ID).Uint64("seq", it.Seq).Err(err).Msg("ticket unreadable; the record is handed out again")
	}
	switch {
	case found && said.Finished && said.Kind == "":
		r.delivered(ctx, *it, delivery.Arrival{Masked: said.Redacted, Took: said.Took, Lag: said.Lag})
		return true, "", nil
	case found && said.Finished && r.Delivery == plan.BestEffort:
		return true, r.lost(ctx, *it, failure{Loss: delivery.Loss{
			Kind: target.Kind(said.Kind), Reason: said.Reason, Words: said.Words, Seq: it.Seq, Took: said.Took,
		}}), nil
	case found && said.Finished:
		// The rule promises to try on.
		r.Meter.Retrying(ctx, r.ID, delivery.Loss{
			Kind: target.Kind(said.Kind), Reason: said.Reason, Words: said.Words, Seq: it.Seq, Took: said.Took,
		}, 0)
		it.RuleSeq = said.RuleSeq
		return false, "", nil
	case found:
		// The hook's process died over it. What it had started is to be gone before
		// the consumer sees the record again.
		if r.Orphans != nil {
			r.Orphans(ctx)
		}
		it.RuleSeq = said.RuleSeq
		return false, "", nil
	}
	it.RuleSeq, err = ticket.Number(r.Dir, r.ID)
	if err != nil {
		r.Log.Error().Str("rule", r.ID).Uint64("seq", it.Seq).Err(err).Msg("no number for a record")
	}
	return false, "", nil
}
