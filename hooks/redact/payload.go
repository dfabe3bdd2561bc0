// Package redact masks secrets in records, and makes the only value a target
// accepts: a Payload cannot be made elsewhere, so an unmasked send does not
// compile.
package redact

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
