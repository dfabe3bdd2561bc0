package transcript

import (
	"testing"
	"testing/synctest"
	"time"
)

// While nothing comes the transcripts are looked at less and less often.
func TestLooksGrowRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &run{Actor: New(Options{}), st: &state{}, moved: time.Now()}
		began := time.Now()
		for _, at := range []time.Duration{2, 4, 8, 16, 32, 64, 96} {
			time.Sleep(r.pause())
			if got := time.Since(began); got != at*time.Second {
				t.Errorf("a look after %v, want %v", got, at*time.Second)
			}
		}
		r.moved = time.Now()
		if got := r.pause(); got != DefaultPoll {
			t.Errorf("after something came the next look is %v away", got)
		}
	})
}
