package command

import (
	"errors"
	"syscall"
	"unsafe"
)

// waitUntilDead returns when the child pid is dead, without reaping it: until it
// is reaped its number, and its group's, belong to nobody else.
func waitUntilDead(pid int) {
	const pPID = 1
	// Large enough for siginfo_t on every system; nothing in it is read.
	var info [16]uint64
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pPID, uintptr(pid),
			uintptr(unsafe.Pointer(&info)), syscall.WEXITED|syscall.WNOWAIT, 0, 0)
		if !errors.Is(errno, syscall.EINTR) {
			return
		}
	}
}
