package client

import "syscall"

// Of returns the client of a hook whose parent is the process ppid. A shell in
// between cannot be told from a client here; whoever watches a client takes one
// only that several hooks named.
func Of(ppid int) Client { return Client{PID: ppid} }

// Gone reports whether the client is certainly dead. A process that has its
// number now hides its death.
func (c Client) Gone() bool {
	return c.Known() && syscall.Kill(c.PID, 0) == syscall.ESRCH
}
