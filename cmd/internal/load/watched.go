package main

import "time"

// watched is what the kernel has counted of a process so far.
type watched struct {
	// cpu is all its threads' time on a processor.
	cpu time.Duration
	// sleeps is how often one of them gave its processor up by itself: each time it
	// had been woken.
	sleeps int64
	// resident, proportional and peak are memory, in bytes: all that is mapped and
	// there; with what is shared divided by those who share it; the most of the first.
	resident, proportional, peak int64
	// writes is how often it called for a write.
	writes int64
}
