package front

import (
	"syscall"
	"unsafe"
)

// pending is how many bytes can be read from fd without waiting.
func pending(fd int) int {
	var n int32
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), fionread, uintptr(unsafe.Pointer(&n)))
	if errno != 0 {
		return 0
	}
	return int(n)
}
