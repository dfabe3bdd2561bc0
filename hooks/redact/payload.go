// Package redact masks secrets in records, and makes the only value a target
// accepts: a Payload cannot be made elsewhere, so an unmasked send does not
// compile.
package redact

import "ways/hooks/chain"

// Payload is a record as it may leave this process: masked, or deliberately
// not (a rule's `redact: none`). Its bytes are one JSON object without a raw
// newline.
type Payload struct {
	body   []byte
	counts map[string]int
}

// Bytes returns the record. The caller must not change it.
func (p Payload) Bytes() []byte { return p.body }

// Counts returns how many secrets were masked, by kind; nil when none was.
func (p Payload) Counts() map[string]int { return p.counts }

// Link returns the payload linked to a chain behind h (docs/chain.md), and the
// chain's new head. Nothing but the chain's own three fields is added.
func (p Payload) Link(h chain.Head) (Payload, chain.Head, error) {
	body, next, err := chain.Append(make([]byte, 0, len(p.body)+chain.Overhead), p.body, h)
	if err != nil {
		return Payload{}, h, err
	}
	return Payload{body: body, counts: p.counts}, next, nil
}
