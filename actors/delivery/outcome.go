package delivery

import (
	"bytes"
	"encoding/json"
	"time"

	"ways/hooks/ticket"
)

// Outcome is what became of a record with a blocking rule in the hook's own
// process, as it is written on the record's ticket.
type Outcome struct {
	Rule string `json:"rule"`
	// RuleSeq is the number the record was handed out under.
	RuleSeq uint64 `json:"rule_seq"`
	// Finished: the consumer answered, or its time ran out. Otherwise the
	// process ended while the dispatch was under way.
	Finished bool `json:"finished"`
	// Kind, Reason and Words say how it failed; Kind is empty when it was accepted.
	Kind   string `json:"kind,omitempty"`
	Reason string `json:"reason,omitempty"`
	Words  string `json:"words,omitempty"`
	// Took is how long the dispatch lasted, Lag how old the record was then.
	Took time.Duration `json:"took_ns,omitempty"`
	Lag  time.Duration `json:"lag_ns,omitempty"`
	// Redacted counts what was masked.
	Redacted map[string]int `json:"redacted,omitempty"`
}

// Note writes an outcome on a ticket. A rule's last one holds.
func (o Outcome) Note(t ticket.Ticket) error {
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return t.Note(line)
}

// ReadOutcome returns what a record's ticket says of a rule; false when it says
// nothing. Errors are as ticket.Read's.
func ReadOutcome(dir string, seq uint64, rule string) (Outcome, bool, error) {
	lines, err := ticket.Read(dir, seq)
	var last Outcome
	found := false
	for _, line := range lines {
		var o Outcome
		if json.Unmarshal(bytes.TrimSpace(line), &o) == nil && o.Rule == rule {
			last, found = o, true
		}
	}
	return last, found, err
}
