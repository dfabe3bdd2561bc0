//go:build !linux

package main

import "time"

// growth tells every now and then that a file may have grown.
func growth(string) (told <-chan struct{}, stop func(), err error) {
	const every = 200 * time.Microsecond
	tick := time.NewTicker(every)
	grown, done := make(chan struct{}, 1), make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			select {
			case grown <- struct{}{}:
			default:
			}
		}
	}()
	return grown, func() { tick.Stop(); close(done) }, nil
}
