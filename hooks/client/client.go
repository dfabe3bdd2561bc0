// Package client names the process that a hook works for, so that its death can
// be noticed: a client that was killed runs no hook any more.
package client

import "strconv"

// Client is a process; the zero value is none that is known.
type Client struct {
	PID int
	// Start tells it from a later process of the same number: clock ticks since
	// the system's start on Linux. 0 where the system does not say.
	Start uint64
}

// Known reports whether c is a process at all.
func (c Client) Known() bool { return c.PID > 1 }

// String is for logs.
func (c Client) String() string { return strconv.Itoa(c.PID) }
