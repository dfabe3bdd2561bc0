package cli

import (
	"io"

	"github.com/mattn/go-isatty"
	"golang.org/x/sys/unix"
)

// Terminal reports whether w is a terminal.
func Terminal(w io.Writer) bool {
	f, ok := fileOf(w)
	return ok && isatty.IsTerminal(f.Fd())
}

// Rows is how many lines a terminal shows; 0 when that is unknown.
func Rows(w io.Writer) int {
	f, ok := fileOf(w)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Row)
}

// Closed reports whether w is a pipe or socket that nobody reads any more: a
// program that writes seldom would notice late.
func Closed(w io.Writer) bool {
	f, ok := fileOf(w)
	if !ok {
		return false
	}
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}
