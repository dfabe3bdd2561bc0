//go:build !failpoints

// Package failpoint lets a test kill this process at chosen places. What it does
// is compiled in under the build tag failpoints alone: in a shipped binary the
// functions are empty, and no environment variable is read.
package failpoint

// Here is a place where a test may kill the process.
func Here(string) {}

// Cut returns how many of n bytes are to be written before the process is
// killed, and whether it is.
func Cut(_ string, n int) (int, bool) { return n, false }

// Kill ends the process as SIGKILL does.
func Kill() {}
