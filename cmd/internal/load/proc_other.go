//go:build !linux

package main

import (
	"errors"
	"fmt"
)

// watch is for Linux alone: it reads /proc.
func watch(int) (watched, error) {
	return watched{}, fmt.Errorf("a process's counters are read from /proc, on Linux alone: %w", errors.ErrUnsupported)
}

// held is for Linux alone as well.
func held(int) (int64, error) { return 0, errors.ErrUnsupported }
