package e2e

import (
	"testing"
	"time"
)

// pollEvery is how often a condition in another process is looked at.
const pollEvery = 20 * time.Millisecond

// eventually waits for cond, and fails the test with describe's words when it
// does not hold within limit.
func eventually(t *testing.T, limit time.Duration, cond func() bool, describe func() string) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not within %v: %s", limit, describe())
		case <-t.Context().Done():
			t.Fatalf("the test ended while waiting: %s", describe())
		}
	}
}
