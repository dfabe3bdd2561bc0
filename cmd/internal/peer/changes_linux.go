package main

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// changes returns a channel that has a value when a file in dir was made or
// written to. Go's own timers wake to the millisecond at best.
func changes(dir string) (<-chan time.Time, func(), error) {
	fd, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
	if err != nil {
		return nil, nil, fmt.Errorf("watch %s: %w", dir, err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	if _, err := syscall.InotifyAddWatch(fd, dir, syscall.IN_CREATE|syscall.IN_MODIFY); err != nil {
		events.Close()
		return nil, nil, fmt.Errorf("watch %s: %w", dir, err)
	}
	ring := make(chan time.Time, 1)
	go func() {
		buf := make([]byte, 4096)
		for {
			if _, err := events.Read(buf); err != nil {
				return // closed
			}
			select {
			case ring <- time.Now():
			default: // the file is about to be looked at
			}
		}
	}()
	return ring, func() { events.Close() }, nil
}
