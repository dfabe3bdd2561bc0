//go:build failpoints

// Package failpoint lets a test kill this process at chosen places. What it does
// is compiled in under the build tag failpoints alone: in a shipped binary the
// functions are empty, and no environment variable is read.
package failpoint

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Variable sets the chance that the process is killed at a place: "0.01" for
// every place, "spool.write=0.2" for those whose name begins so.
const Variable = "WAYS_FAILPOINT"

func struck(name string) bool {
	setting := os.Getenv(Variable)
	if setting == "" {
		return false
	}
	prefix, chance, named := strings.Cut(setting, "=")
	if !named {
		prefix, chance = "", setting
	}
	p, err := strconv.ParseFloat(chance, 64)
	return err == nil && strings.HasPrefix(name, prefix) && rand.Float64() < p
}

// Here is a place where a test may kill the process.
func Here(name string) {
	if struck(name) {
		Kill()
	}
}

// Cut returns how many of n bytes are to be written before the process is
// killed, and whether it is.
func Cut(name string, n int) (int, bool) {
	if n == 0 || !struck(name) {
		return n, false
	}
	return rand.IntN(n + 1), true
}

// Kill ends the process as SIGKILL does.
func Kill() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
