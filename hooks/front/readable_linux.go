package front

import (
	"syscall"
	"time"
)

// readable waits until a descriptor below 64 can be read without waiting.
func readable(fd int, wait time.Duration) (bool, error) {
	var set syscall.FdSet
	set.Bits[0] = 1 << fd
	left := syscall.NsecToTimeval(wait.Nanoseconds())
	n, err := syscall.Select(fd+1, &set, nil, nil, &left)
	return n == 1, err
}
