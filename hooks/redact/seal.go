package redact

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// Envelope is what dispatching adds to a record.
type Envelope struct {
	// Rule is "<sensor>/<rule>".
	Rule string
	// RuleSeq counts the records that the rule was handed in the session.
	RuleSeq uint64
	// Test marks a record made by `ways sensors fire`.
	Test bool
}

// Seal masks rec, one record as the spool holds it (a JSON object on one
// line), and adds the envelope. Every string of the record is scanned, decoded:
// keys and values, and JSON inside strings. What is not masked stays byte for
// byte as it was. A record that is no JSON object is not sent: all of it is
// replaced by a count of one "unscanned".
func (m *Masker) Seal(rec []byte, add Envelope) Payload {
	out, counts := m.mask(rec)
	if counts == nil {
		return Plain(rec, add)
	}
	return Payload{body: appendEnvelope(out, add, counts), counts: counts}
}

// Shared is one record that several rules are to be sent. It is masked once, by
// whoever needs it first, and does not change after that: any number of goroutines
// may use one at once.
type Shared struct {
	rec  []byte
	once sync.Once
	// by masked it; masked is nil, and so is found, where nothing was.
	by     *Masker
	masked []byte
	found  map[string]int
}

// NewShared returns the record for sharing. Nobody may change rec any more.
func NewShared(rec []byte) *Shared { return &Shared{rec: rec} }

// Bytes returns the record, unmasked. The caller must not change it.
func (s *Shared) Bytes() []byte { return s.rec }

// SealShared is Seal of a record that others are sent too.
func (m *Masker) SealShared(s *Shared, add Envelope) Payload {
	s.once.Do(func() { s.masked, s.found = m.mask(s.rec); s.by = m })
	if s.by != m {
		return m.Seal(s.rec, add) // its rules are others
	}
	if s.found == nil {
		return Plain(s.rec, add)
	}
	return Payload{body: appendEnvelope(roomy(s.masked, add), add, s.found), counts: s.found}
}

// PlainShared is Plain of a record that others are sent too.
func PlainShared(s *Shared, add Envelope) Payload { return Plain(s.rec, add) }

// roomy is a copy of rec with room for the envelope.
func roomy(rec []byte, add Envelope) []byte {
	const fields = 96 // names, a number, and the kinds of a few secrets
	return append(make([]byte, 0, len(rec)+len(add.Rule)+fields), rec...)
}

// Again is the payload of a record that was sealed before and kept, a dead
// letter: it has its envelope, and is masked once more, by what the rules are now.
func (m *Masker) Again(sealed []byte) Payload {
	out, counts := m.mask(sealed)
	if counts == nil {
		out = sealed
	}
	return Payload{body: out, counts: counts}
}

// AsKept is Again for a rule that masks nothing.
func AsKept(sealed []byte) Payload { return Payload{body: sealed} }

// mask returns a record with its secrets masked, and how many there were by
// kind; nil counts when there were none. A record that a matcher fails on is
// withheld like one that cannot be read: a retry would fail again, and for ever.
func (m *Masker) mask(rec []byte) (masked []byte, found map[string]int) {
	rec = bytes.TrimSpace(rec)
	s := m.pool.Get().(*scan)
	defer func() {
		if recover() != nil {
			masked, found = []byte("{}"), map[string]int{kindUnscanned: 1}
			return // and s, whatever state it is in, is not used again
		}
		m.release(s)
	}()
	if !s.doc.load(rec) {
		return []byte("{}"), map[string]int{kindUnscanned: 1}
	}
	spans := s.run()
	if len(spans) == 0 {
		return nil, nil
	}
	counts := make(map[string]int)
	out := make([]byte, 0, len(rec)+256)
	at := 0
	doc := &s.doc
	for _, sp := range spans {
		done := false
		for p := doc.pieceAt(sp.start); p < len(doc.pieces) && doc.pieces[p].start < sp.end; p++ {
			piece := &doc.pieces[p]
			lo, hi := max(sp.start, piece.start), min(sp.end, piece.end)
			if lo >= hi {
				continue
			}
			from, to := doc.back(p, lo, hi)
			if piece.number {
				// A number becomes a string; half a number would be no JSON.
				from, to = doc.back(p, piece.start, piece.end)
			}
			if from < at {
				continue
			}
			out = append(out, rec[at:from]...)
			if piece.number {
				out = append(out, '"')
				out = appendPlaceholder(out, sp.kind)
				out = append(out, '"')
			} else {
				out = appendMask(out, sp, 1)
			}
			at = to
			done = true
		}
		if done {
			counts[sp.kind]++
		}
	}
	if len(counts) == 0 {
		return nil, nil
	}
	return append(out, rec[at:]...), counts
}

// Plain adds the envelope to rec and masks nothing: a rule's `redact: none`.
func Plain(rec []byte, add Envelope) Payload {
	rec = bytes.TrimSpace(rec)
	return Payload{body: appendEnvelope(roomy(rec, add), add, nil)}
}

// appendEnvelope adds the fields of dispatch before rec's last brace.
func appendEnvelope(rec []byte, add Envelope, counts map[string]int) []byte {
	body := rec
	if n := len(rec); n > 0 && rec[n-1] == '}' {
		body = rec[:n-1]
	}
	if trimmed := bytes.TrimRight(body, " \t\r\n"); len(trimmed) > 0 && trimmed[len(trimmed)-1] != '{' {
		body = append(body, ',')
	}
	body = append(body, `"rule":`...)
	body = appendString(body, add.Rule)
	body = append(body, `,"rule_seq":`...)
	body = strconv.AppendUint(body, add.RuleSeq, 10)
	if add.Test {
		body = append(body, `,"test":true`...)
	}
	if len(counts) > 0 {
		body = append(body, `,"redacted":{`...)
		for i, kind := range slices.Sorted(maps.Keys(counts)) {
			if i > 0 {
				body = append(body, ',')
			}
			body = appendString(body, kind)
			body = append(body, ':')
			body = strconv.AppendInt(body, int64(counts[kind]), 10)
		}
		body = append(body, '}')
	}
	return append(body, '}')
}

func appendString(b []byte, s string) []byte {
	out, err := jsontext.AppendQuote(b, strings.ToValidUTF8(s, "\uFFFD"))
	if err != nil {
		// Valid UTF-8 always quotes.
		return append(b, `""`...)
	}
	return out
}
