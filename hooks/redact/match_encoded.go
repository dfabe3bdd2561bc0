package redact

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// Text in base64: an environment file piped through base64, a cloud-init
// document, a value printed by kubectl.

// The least and the most base64 that is decoded, in bytes. A longer run is
// data, not a text with a secret in it.
const (
	minEncoded = 24
	maxEncoded = 16 << 10
)

// encodedWords returns how the words that give a secret away look in base64, in
// each of the three ways a word can fall on the groups of three bytes. Only
// what does not depend on the bytes around the word is kept.
func encodedWords() []string {
	plain := []string{
		"password", "PASSWORD", "Password", "secret", "SECRET", "Secret", "token", "TOKEN", "Token",
		"api_key", "API_KEY", "apiKey", "PRIVATE KEY", "Bearer ", "private_key", "postgres://", "mysql://", "mongodb",
		"AWS_", "_KEY=", "ghp_", "sk-ant-", "sk-proj-", "AKIA",
	}
	seen := map[string]bool{}
	var out []string
	for _, w := range plain {
		for shift := range 3 {
			// Bits of the word: from 8*shift to 8*(shift+len). Whole digits of
			// six bits within them are the same whatever stands around.
			all := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + w))
			from := (8*shift + 5) / 6
			to := 8 * (shift + len(w)) / 6
			if to-from < 5 || seen[all[from:to]] {
				continue
			}
			seen[all[from:to]] = true
			out = append(out, all[from:to])
		}
	}
	return out
}

// encoded decodes the base64 around text[start:end], and masks all of it when
// what it decodes to has a secret in it.
func (s *scan) encoded(start, end int) {
	if s.inner || start < s.encodedEnd {
		return
	}
	t := s.text
	lo, hi := start, end
	for lo > s.encodedEnd && start-lo < maxEncoded && isBase64(t[lo-1]) {
		lo--
	}
	for hi < len(t) && hi-end < maxEncoded && isBase64(t[hi]) {
		hi++
	}
	s.encodedEnd = hi
	s.steps += hi - lo
	if hi-lo < minEncoded || hi-lo > maxEncoded {
		return
	}
	enc := base64.RawStdEncoding
	if bytes.ContainsAny(t[lo:hi], "-_") {
		enc = base64.RawURLEncoding
	}
	plain := make([]byte, enc.DecodedLen(hi-lo))
	n, err := enc.Decode(plain, t[lo:hi])
	if err != nil && n < (hi-lo)/2 {
		return
	}
	plain = plain[:n]
	for _, c := range plain {
		if c < ' ' && !isSpace(c) || c == 0x7f {
			return
		}
	}
	in := s.m.pool.Get().(*scan)
	in.inner = true
	in.doc.loadText(plain)
	found := in.run()
	s.work += in.work
	s.steps += in.steps
	kind, rule := "", ""
	if len(found) > 0 {
		kind, rule = found[0].kind, found[0].rule
	}
	in.inner = false
	s.m.release(in)
	if kind == "" {
		return
	}
	for hi < len(t) && t[hi] == '=' {
		hi++
	}
	s.add(lo, hi, kind, rule, prioPlace)
}
