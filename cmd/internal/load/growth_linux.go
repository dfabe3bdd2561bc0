package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// growth tells of each write to a file, without a look at it now and then, which
// would take time from what is measured.
func growth(path string) (told <-chan struct{}, stop func(), err error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, nil, os.NewSyscallError("inotify_init1", err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_MODIFY); err != nil {
		events.Close()
		return nil, nil, os.NewSyscallError("inotify_add_watch", err)
	}
	grown := make(chan struct{}, 1)
	go func() {
		buf := make([]byte, 4096)
		for {
			if _, err := events.Read(buf); err != nil {
				return
			}
			select {
			case grown <- struct{}{}:
			default:
			}
		}
	}()
	return grown, func() { events.Close() }, nil
}
