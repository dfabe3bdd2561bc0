package rule

import (
	"math/rand/v2"
	"time"
)

// Bounds of the waits between tries of one record.
const (
	// backoffBase doubles with every try, up to backoffMost.
	backoffBase = time.Second
	backoffMost = 5 * time.Minute
	// pauseBase and pauseMost are the same for a consumer that does not know us:
	// somebody has to mend a credential, so there is no hurry.
	pauseBase = 30 * time.Second
	pauseMost = time.Hour
	// retryAfterMost caps what a consumer can ask for.
	retryAfterMost = time.Hour
)

// backoff is how long to wait before the try after try number n, counted from 1:
// a random part of an interval that doubles ("full jitter"), so that many
// sessions do not come back at once; but never sooner than the consumer asked.
func backoff(n int, base, most, retryAfter time.Duration) time.Duration {
	interval := most
	if shift := n - 1; shift < 20 {
		interval = min(base<<shift, most)
	}
	// A tenth at least, so that a run of low draws is no busy loop.
	wait := interval/10 + rand.N(interval-interval/10)
	return max(wait, min(retryAfter, retryAfterMost))
}
