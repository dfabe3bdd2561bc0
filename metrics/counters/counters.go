// Package counters holds what a dispatcher counted for its session, per rule,
// and the file it is kept in. Numbers only grow.
package counters

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Name is the counters' file in a session directory.
const Name = "counters.json"

// Rule is what was counted for one rule in one session.
type Rule struct {
	// Matched records were selected for the rule. Each ends in one of Delivered,
	// Failed, Refused, TimedOut, Killed, Dropped, or is waiting.
	Matched   uint64 `json:"matched"`
	Delivered uint64 `json:"delivered"`
	Failed    uint64 `json:"failed"`
	Refused   uint64 `json:"refused"`
	TimedOut  uint64 `json:"timed_out"`
	Killed    uint64 `json:"killed"`
	Dropped   uint64 `json:"dropped"`
	// Dead records were put aside by an at-least-once rule.
	Dead uint64 `json:"dead,omitempty"`
	// Retried counts tries that failed and were repeated.
	Retried uint64 `json:"retried,omitempty"`
	// PausedSince is set while the consumer does not know us (401, 403).
	PausedSince time.Time `json:"paused_since,omitzero"`
	// NextTry is when a record that waits for another try gets it.
	NextTry time.Time `json:"next_try,omitzero"`
	// Waiting is a gauge: records handed over or on disk that the rule is not
	// done with.
	Waiting uint64 `json:"spooled"`
	// WaitingSince is the time of the oldest of them; zero when none waits.
	WaitingSince time.Time `json:"spooled_since,omitzero"`
	// Redacted counts masked secrets by kind.
	Redacted map[string]uint64 `json:"redacted,omitempty"`
	// Reasons counts what did not arrive, by reason.
	Reasons map[string]uint64 `json:"reasons,omitempty"`
	// Panics counts restarts of the rule's actor.
	Panics uint64 `json:"panics,omitempty"`
	// LastError is the newest failure in words, without secrets, and when.
	LastError   string    `json:"last_error,omitempty"`
	LastErrorAt time.Time `json:"last_error_at,omitzero"`
	// Since is when the first record matched.
	Since time.Time `json:"since,omitzero"`
	// Target says where the rule sends.
	Target string `json:"target,omitempty"`
}

// Session is the content of a session's counter file.
type Session struct {
	Session string `json:"session"`
	Project string `json:"project,omitempty"`
	// Started is when the first dispatcher of the session started, Updated when
	// the file was written.
	Started time.Time        `json:"started"`
	Updated time.Time        `json:"updated"`
	Records uint64           `json:"records"`
	Damaged uint64           `json:"damaged,omitempty"`
	Rules   map[string]*Rule `json:"rules"`
}

// New returns empty counters.
func New(session string, now time.Time) *Session {
	return &Session{Session: session, Started: now.UTC(), Rules: map[string]*Rule{}}
}

// Rule returns the counters of a rule, making them when there are none.
func (s *Session) Rule(id string) *Rule {
	r := s.Rules[id]
	if r == nil {
		r = &Rule{}
		s.Rules[id] = r
	}
	return r
}

// Load reads a session directory's counters; os.ErrNotExist when there are none.
func Load(dir string) (*Session, error) {
	path := filepath.Join(dir, Name)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &Session{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if s.Rules == nil {
		s.Rules = map[string]*Rule{}
	}
	for id, r := range s.Rules {
		if r == nil {
			delete(s.Rules, id)
		}
	}
	return s, nil
}

// Save replaces a session directory's counters, whole or not at all.
func Save(dir string, s *Session, now time.Time) error {
	s.Updated = now.UTC()
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, Name)
	if err := os.WriteFile(path+".tmp", append(data, '\n'), 0o600); err != nil {
		return errors.Join(fmt.Errorf("save counters: %w", err), os.Remove(path+".tmp"))
	}
	return os.Rename(path+".tmp", path)
}
