package front

import (
	"errors"
	"io"
	"syscall"
	"time"
)

// errSilent is returned by stdin.Read when its writer said nothing for too long.
var errSilent = errors.New("the writer fell silent")

// stdin reads the hook's input, whose writer may fall silent or never end. The
// wait is the kernel's and not a timer's: what has arrived is read however late
// this process gets to run, so a machine that stood still makes nobody stalled.
type stdin struct {
	fd int
	// silence is how long the writer may say nothing.
	silence time.Duration
	// until bounds all reads together; zero for no bound.
	until time.Time
}

// Read returns what there is; errSilent when nothing came in time.
func (s *stdin) Read(p []byte) (int, error) {
	for {
		if !s.wait() {
			return 0, errSilent
		}
		n, err := syscall.Read(s.fd, p)
		switch {
		case n > 0:
			return n, nil
		case errors.Is(err, syscall.EINTR), errors.Is(err, syscall.EAGAIN): // the parent may share its end unblocked
		case err != nil:
			return 0, err
		default:
			return 0, io.EOF
		}
	}
}

// wait reports whether a read will not wait.
func (s *stdin) wait() bool {
	now := time.Now()
	end := now.Add(s.silence)
	if !s.until.IsZero() {
		if now.After(s.until) {
			return false // though there be more: a writer that never ends
		}
		if s.until.Before(end) {
			end = s.until
		}
	}
	for left := end.Sub(now); ; left = time.Until(end) {
		ready, err := readable(s.fd, max(left, 0)) // with nothing left, a last look
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		return ready || err != nil // a read says what is wrong
	}
}

// drain takes what the writer still has to say, so that it never meets a closed
// pipe (hard case BR-05), until it says nothing for that long. With 0 it takes what
// is there already, a newline behind the payload mostly.
func (s *stdin) drain(silence time.Duration) {
	s.silence, s.until = silence, time.Now().Add(drainMost)
	var buf [4096]byte
	for {
		if _, err := s.Read(buf[:]); err != nil {
			return
		}
	}
}
