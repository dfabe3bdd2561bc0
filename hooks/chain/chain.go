// Package chain is the rule of the hash chain over records (docs/chain.md): how a
// record is linked behind the one before it, and how a linked line is read.
//
// A linked record is one JSON object on one line whose last three fields are
//
//	,"chain_n":N,"chain_prev":"<64 hex>","chain_hash":"<64 hex>"}
//
// in these bytes, without white space. N counts from 1. chain_prev is the
// chain_hash of the record before, 64 zeros for the first. chain_hash is the
// SHA-256, in lower-case hexadecimal, of the bytes of the line in front of
// `,"chain_hash":`.
package chain

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
)

// Head is where a chain ends: how many records it has, and the last one's hash.
// The zero Head is that of a chain that has not begun.
type Head struct {
	N    uint64
	Hash [sha256.Size]byte
}

// ErrNotObject is returned for a record that cannot be linked: no JSON object,
// an empty one, or one on several lines.
var ErrNotObject = errors.New("only a JSON object on one line, with a field, can be linked to a chain")

const (
	numberField = `,"chain_n":`
	prevField   = `,"chain_prev":"`
	hashField   = `,"chain_hash":"`
	hexSize     = 2 * sha256.Size
	// Overhead is the most bytes that a link adds to a record.
	Overhead = len(numberField) + 20 + len(prevField) + len(hashField) + 2*(hexSize+1)
)

// Append appends record, linked behind h, and returns the new head. It reads no
// further into the record than its last brace.
func Append(dst, record []byte, h Head) ([]byte, Head, error) {
	body, ok := bytes.CutSuffix(bytes.TrimRight(record, " \t\r\n"), []byte{'}'})
	body = bytes.TrimRight(body, " \t\r\n")
	if !ok || len(body) < 2 || body[0] != '{' || bytes.IndexByte(body, '\n') >= 0 {
		return dst, h, ErrNotObject
	}
	begin := len(dst)
	dst = append(dst, body...)
	dst = append(dst, numberField...)
	dst = strconv.AppendUint(dst, h.N+1, 10)
	dst = append(dst, prevField...)
	dst = hex.AppendEncode(dst, h.Hash[:])
	dst = append(dst, '"')
	next := Head{N: h.N + 1, Hash: sha256.Sum256(dst[begin:])}
	dst = append(dst, hashField...)
	dst = hex.AppendEncode(dst, next.Hash[:])
	return append(dst, `"}`...), next, nil
}

// Link is what a linked line says of itself, and what its bytes say.
type Link struct {
	// N and Hash are the line's own; Prev is the hash of the one before.
	N          uint64
	Prev, Hash [sha256.Size]byte
	// Sum is the hash of the line's bytes. It is Hash, or the line was edited.
	Sum [sha256.Size]byte
}

// Whole reports whether the line is as it was written.
func (l Link) Whole() bool { return l.N > 0 && l.Hash == l.Sum }

// Head is the chain's head behind the line.
func (l Link) Head() Head { return Head{N: l.N, Hash: l.Hash} }

// Follows reports whether the line is the one behind h.
func (l Link) Follows(h Head) bool { return l.Whole() && l.N == h.N+1 && l.Prev == h.Hash }

// Parse reads the link of a line, given without its newline; false for a line
// that has none in exactly the form above.
func Parse(line []byte) (Link, bool) {
	var l Link
	rest, ok := bytes.CutSuffix(line, []byte(`"}`))
	if !ok {
		return l, false
	}
	if rest, ok = cutHash(rest, hashField, &l.Hash); !ok {
		return l, false
	}
	signed := rest
	if rest, ok = bytes.CutSuffix(rest, []byte{'"'}); !ok {
		return l, false
	}
	if rest, ok = cutHash(rest, prevField, &l.Prev); !ok {
		return l, false
	}
	digits := len(rest)
	for digits > 0 && rest[digits-1] >= '0' && rest[digits-1] <= '9' {
		digits--
	}
	n, err := strconv.ParseUint(string(rest[digits:]), 10, 64)
	if err != nil || rest[digits] == '0' || !bytes.HasSuffix(rest[:digits], []byte(numberField)) || rest[0] != '{' {
		return l, false
	}
	l.N, l.Sum = n, sha256.Sum256(signed)
	return l, true
}

// cutHash takes field and a hash off the end of b. Upper-case digits are none:
// they would be the same hash in other bytes.
func cutHash(b []byte, field string, to *[sha256.Size]byte) ([]byte, bool) {
	at := len(b) - hexSize
	if at < 0 || !bytes.HasSuffix(b[:at], []byte(field)) {
		return nil, false
	}
	for _, c := range b[at:] {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return nil, false
		}
	}
	if _, err := hex.Decode(to[:], b[at:]); err != nil {
		return nil, false
	}
	return b[:at-len(field)], true
}
