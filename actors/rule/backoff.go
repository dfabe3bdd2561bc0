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
	// pauseBase and pauseMost are the same for a consumer that does not know us,
	// or a rule that cannot run as it is written: somebody has to mend that, so
	// there is no hurry.
	pauseBase = 30 * time.Second
	pauseMost = time.Hour
	// retryAfterMost caps what a consumer can ask for.
	retryAfterMost = time.Hour
)

// backoff is how long to wait before the try after try number n, counted from 1:
// a random part of an interval that doubles ("full jitter"), so that many
// sessions do not come back at once; but never sooner than the consumer asked.
func backoff(n int, retryAfter time.Duration) time.Duration {
	whole := interval(n, backoffBase, backoffMost)
	// A tenth at least, so that a run of low draws is no busy loop.
	return max(between(whole/10, whole), asked(retryAfter))
}

// pause is backoff for a rule that waits for somebody to mend something: the
// upper half of the interval, so that each pause is longer than the one before
// it, up to the longest.
func pause(n int, retryAfter time.Duration) time.Duration {
	whole := interval(n, pauseBase, pauseMost)
	return max(between(whole/2, whole), asked(retryAfter))
}

// interval doubles base n-1 times, up to most.
func interval(n int, base, most time.Duration) time.Duration {
	if n > 20 {
		return most
	}
	return min(base<<(n-1), most)
}

// between draws from the half-open interval.
func between(from, to time.Duration) time.Duration { return from + rand.N(to-from) }

// asked is what a consumer asked for, as far as it is granted.
func asked(retryAfter time.Duration) time.Duration { return min(retryAfter, retryAfterMost) }
