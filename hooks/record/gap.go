package record

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"ways/hooks/payload"
)

// FromDispatcher is the source of records that the dispatcher writes itself.
const FromDispatcher = "dispatcher"

// Gap says which records were lost: by policy, by damage, or because they could
// not be written.
type Gap struct {
	// Reason is a short stable word: "damaged", "unwritten", "queue_full", or why
	// the rule's consumer did not get them.
	Reason string
	// Rule is the rule that lost them; empty when the session's spool did.
	Rule string
}

// FromGap returns the record that tells of n lost records. For damage, n counts
// stretches of the spool: how many records were in one is not known.
func FromGap(g Gap, n uint64, session, project string, now time.Time) Draft {
	fields := []field{{"reason", quote(g.Reason)}, {"count", jsontext.Value(strconv.FormatUint(n, 10))}}
	if g.Rule != "" {
		fields = append(fields, field{"rule", quote(g.Rule)})
	}
	ev := payload.Event{Name: "Gap", Session: session, Cwd: project}
	return draft(ev, Context{Time: now, Project: project, Source: FromDispatcher}, SectionGap, object(fields...))
}
