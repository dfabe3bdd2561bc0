package payload

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// TestFeedInPieces: where a value ends does not depend on how the pipe cut it. In
// pieces of one byte the scanner sees each byte by itself.
func TestFeedInPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	inputs := []string{
		`{"a":"b"} {}`, `{"a\\":"\"}","b":[1,{"c":"]\\\\"}]}x`, `["\\\"",""]`, ` [ ]`, `{"a":"`, `{"a":"\`, `"a"`, ``, `{"\u0022":1}`,
	}
	const alphabet = `{}[]""\\\ax `
	for range 300 {
		b := []byte{"{["[r.IntN(2)]}
		for range r.IntN(40) {
			b = append(b, alphabet[r.IntN(len(alphabet))])
		}
		inputs = append(inputs, string(b))
	}
	for _, in := range inputs {
		wantTaken, wantDone, wantErr := feedIn(in, 1)
		for size := 2; size <= len(in)+1; size++ {
			taken, done, err := feedIn(in, size)
			if taken != wantTaken || done != wantDone || !errors.Is(err, wantErr) {
				t.Errorf("%q in pieces of %d: %d bytes, %v, %v; in single bytes %d, %v, %v", in, size, taken, done, err, wantTaken, wantDone, wantErr)
			}
		}
	}
}

// feedIn feeds a scanner in pieces of size bytes.
func feedIn(in string, size int) (taken int, done bool, err error) {
	var s scanner
	for at := 0; at < len(in) && !done && err == nil; at += size {
		var n int
		n, done, err = s.feed([]byte(in[at:min(at+size, len(in))]))
		taken += n
	}
	return taken, done, err
}

// TestFeedKnownEnds holds the single-byte way itself.
func TestFeedKnownEnds(t *testing.T) {
	for _, row := range []struct {
		in    string
		taken int
		done  bool
	}{
		{`{"a":"b"} {}`, 9, true},
		{`{"a":"}"}`, 9, true},
		{`{"a":"\"}"}`, 11, true},
		{`{"a":"\\"}}`, 10, true},
		{`[[1],"]"]`, 9, true},
		{`{"a":"\`, 7, false},
		{` {}`, 3, true},
	} {
		if taken, done, err := feedIn(row.in, 1); taken != row.taken || done != row.done || err != nil {
			t.Errorf("%q: %d bytes, %v, %v; want %d, %v", row.in, taken, done, err, row.taken, row.done)
		}
	}
}
