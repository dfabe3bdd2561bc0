package http

import (
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"ways/config/plan"
)

// blackHole returns an address that takes no connection and refuses none: a
// listener whose queue is full drops what comes.
func blackHole(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	for range 8 {
		c, err := net.DialTimeout("tcp", addr, 100*time.Millisecond)
		if err != nil {
			return addr
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	t.Fatal("the queue did not fill")
	return ""
}

// A connection under way is given up with its dispatch, and does not go on in
// the background for the next one.
func TestABlackHole(t *testing.T) {
	addr := blackHole(t)
	before := descriptors(t)
	to := newTarget(t, plan.HTTP{URL: "http://" + addr}, nil, nil)
	for n := range 3 {
		start := time.Now()
		wantOutcome(t, to.Deliver(within(t, 100*time.Millisecond), dispatch(n, "{}")), "timed_out connect")
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
	}
	// The socket is closed by the dialling goroutine, a moment later.
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	late := time.After(2 * time.Second)
	for descriptors(t) > before {
		select {
		case <-look.C:
		case <-late:
			t.Fatalf("%d descriptors, %d before", descriptors(t), before)
		}
	}
}
