package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"ways/actors/target/visible"
)

// output is where a verb prints. It remembers the first failure, so that a verb need
// not look at every line it prints.
type output struct {
	io.Writer
	err error
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}

// fileOf is the file that w writes to.
func fileOf(w io.Writer) (*os.File, bool) {
	if o, ok := w.(*output); ok {
		w = o.Writer
	}
	f, ok := w.(*os.File)
	return f, ok
}

// Main runs a program. When it succeeded and yet something of what it printed could
// not be written (a full disk), that is said, and it has failed. A reader that went
// away is no failure.
func Main(env Env, program func(Env) int) int {
	out := &output{Writer: env.Stdout}
	env.Stdout = out
	code := program(env)
	if code != OK || out.err == nil || errors.Is(out.err, syscall.EPIPE) {
		return code
	}
	fmt.Fprintf(env.Stderr, "ways: what it printed is not complete: %s\n", visible.Line(out.err.Error()))
	return Failed
}
