package command

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime"
	"syscall"
	"time"
	"unicode/utf8"

	"ways/actors/target/visible"
)

const (
	// tailSize is how much of the end of stdout and of stderr is shown, in bytes.
	tailSize = 4 << 10
	// keepSize is how much is kept for that: a secret is masked whole before the text
	// is cut, so more must be there than is shown.
	keepSize = 4 * tailSize
	// partSize is dropped from the beginning of a kept text without a line break: it
	// may be the end of a secret.
	partSize = 1 << 10
	// drainTime is how long the pipes are still read when all that is known to
	// hold them is dead. It passes only if somebody who got away holds one.
	drainTime = 50 * time.Millisecond
	// killTime bounds the wait for what was killed to be gone. It passes only if
	// the system cannot end a process, such as one that waits for a dead disk.
	killTime = 5 * time.Second
)

// errEnded is returned by do when ctx ended first.
var errEnded = errors.New("the dispatch's context ended")

// run is one run of a program.
type run struct {
	path     string
	argv     []string
	env      []string
	dir      string
	delivery string // value of the marker in env
	// stdin is written to the program with a newline behind it; nil gives it
	// an empty stdin.
	stdin          []byte
	stdout, stderr tail
}

// pipes are this process's ends; the program's are closed once it runs.
type pipes struct {
	stdin          *os.File // nil without a record on it
	stdout, stderr *os.File
	theirs         []*os.File
}

func (p *pipes) closeTheirs() {
	for _, f := range p.theirs {
		_ = f.Close()
	}
	p.theirs = nil
}

func (p *pipes) close() {
	p.closeTheirs()
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
		if f != nil {
			_ = f.Close()
		}
	}
}

func (r *run) pipes() (p *pipes, err error) {
	p = &pipes{}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	var in, out, errs *os.File
	if r.stdin == nil {
		in, err = os.Open(os.DevNull)
	} else {
		in, p.stdin, err = os.Pipe()
	}
	if err != nil {
		return p, err
	}
	p.theirs = append(p.theirs, in)
	if p.stdout, out, err = os.Pipe(); err != nil {
		return p, err
	}
	p.theirs = append(p.theirs, out)
	if p.stderr, errs, err = os.Pipe(); err != nil {
		return p, err
	}
	p.theirs = append(p.theirs, errs)
	return p, nil
}

// do runs the program to its end, or kills it at ctx's. It stays on its thread.
func (r *run) do(ctx context.Context) (syscall.WaitStatus, error) {
	p, err := r.pipes()
	if err != nil {
		return 0, err
	}
	proc, err := os.StartProcess(r.path, r.argv, &os.ProcAttr{Dir: r.dir, Env: r.env, Files: p.theirs, Sys: processAttributes()})
	if err != nil {
		p.close()
		return 0, err
	}
	p.closeTheirs()

	exited := make(chan struct{})
	go func() {
		defer close(exited)
		waitUntilDead(proc.Pid)
	}()
	served := make(chan struct{})
	go func() {
		defer close(served)
		r.serve(p)
	}()

	g := group{leader: proc.Pid, delivery: r.delivery}
	ended := false
	select {
	case <-exited:
	case <-ctx.Done():
		select {
		case <-exited:
		default:
			ended = true
			g.kill()
		}
	}
	gone := true
	select {
	case <-exited:
	case <-time.After(killTime):
		gone = false
	}
	// The leader is dead and not reaped: its number is still the group's.
	if gone {
		g.sweep(killTime)
	}

	deadline := time.Now().Add(drainTime)
	_ = p.stdout.SetReadDeadline(deadline)
	_ = p.stderr.SetReadDeadline(deadline)
	if p.stdin != nil {
		_ = p.stdin.Close()
	}
	<-served
	p.close()
	if !gone {
		// It is reaped whenever the system lets go of it.
		go func() {
			<-exited
			_, _ = proc.Wait()
		}()
		return 0, errEnded
	}
	state, err := proc.Wait()
	if err != nil {
		return 0, err
	}
	if ended {
		return 0, errEnded
	}
	status, _ := state.Sys().(syscall.WaitStatus)
	return status, nil
}

// serve feeds stdin and drains stdout and stderr; it returns when the last is
// closed or past its deadline. A program that does not read its record is fine:
// what it thinks of it is in its exit status.
func (r *run) serve(p *pipes) {
	done := make(chan struct{}, 2)
	go func() {
		r.stdout.drain(p.stdout)
		done <- struct{}{}
	}()
	go func() {
		r.stderr.drain(p.stderr)
		done <- struct{}{}
	}()
	if p.stdin != nil {
		if _, err := p.stdin.Write(r.stdin); err == nil {
			_, _ = p.stdin.Write([]byte{'\n'})
		}
		_ = p.stdin.Close()
	}
	<-done
	<-done
}

// tail keeps the end of a stream.
type tail struct {
	kept []byte
	cut  bool
}

func (t *tail) drain(f *os.File) {
	buf := make([]byte, 32<<10)
	for {
		n, err := f.Read(buf)
		t.add(buf[:n])
		if err != nil {
			return
		}
	}
}

func (t *tail) add(b []byte) {
	if over := len(t.kept) + len(b) - keepSize; over > 0 {
		t.cut = true
		if over >= len(t.kept) {
			b = b[over-len(t.kept):]
			t.kept = t.kept[:0]
		} else {
			t.kept = t.kept[:copy(t.kept, t.kept[over:])]
		}
	}
	t.kept = append(t.kept, b...)
}

// words returns the end of the stream, masked, cut, and harmless on a terminal,
// in this order; it begins with "[...]" when something came before.
func (t *tail) words(mask func([]byte) []byte) string {
	kept, cut := t.kept, t.cut
	if cut {
		// What is left of a line may be what is left of a secret.
		begin := bytes.IndexByte(kept, '\n') + 1
		if begin == 0 {
			begin = min(partSize, len(kept))
		}
		kept = kept[begin:]
	}
	if mask != nil {
		kept = mask(kept)
	}
	if over := len(kept) - tailSize; over > 0 {
		kept, cut = kept[over:], true
		for len(kept) > 0 && !utf8.RuneStart(kept[0]) {
			kept = kept[1:]
		}
	}
	var text []byte
	if cut {
		text = append(text, "[...]"...)
	}
	return string(visible.Append(text, string(kept), ""))
}

// onThreadOfItsOwn calls f on a thread that does not end before f does, and that
// is not the process's first: on Linux a child dies with the thread that started
// it (PR_SET_PDEATHSIG), and adopted children are listed under the first thread.
func onThreadOfItsOwn(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if !onFirstThread() {
		f()
		return
	}
	// This goroutine occupies the first thread, so another one is elsewhere.
	panicked := make(chan any, 1)
	go func() {
		defer func() { panicked <- recover() }()
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		f()
	}()
	if why := <-panicked; why != nil {
		panic(why)
	}
}
