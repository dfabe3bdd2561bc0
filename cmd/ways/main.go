// Command ways is the front binary. It does `ways hook sensors` and `ways
// --version` itself, and hands every other verb to waysctl, which lies beside
// it. A hook runs on every tool call, so this program links next to nothing.
package main

import (
	"os"
	"syscall"
	"time"

	"ways/hooks/front"
)

// version is set by the linker: -X main.version=...
var version = "dev"

func main() { os.Exit(run(os.Args[1:])) }

// run picks the exit code. Go exits with 2 when a program panics, and the client
// reads 2 as "block this call"; so a hook's code is 0 by every path.
func run(args []string) (code int) {
	hook := len(args) == 2 && args[0] == "hook" && args[1] == "sensors" ||
		len(args) == 0 && front.IsPayload(os.Stdin) // a client that ignores "args"
	defer func() {
		if recover() != nil {
			code = 1
			if hook {
				code = 0
			}
		}
	}()
	switch {
	case hook:
		front.Run(front.Process{
			Stdin: syscall.Stdin, Getenv: os.Getenv, Now: time.Now, Environ: os.Environ, Executable: os.Executable,
		})
		return 0
	case len(args) == 1 && args[0] == "--version":
		if _, err := os.Stdout.WriteString("ways " + version + "\n"); err != nil {
			os.Stderr.WriteString("ways: " + err.Error() + "\n")
			return 1
		}
		return 0
	}
	self, err := os.Executable()
	if err != nil {
		os.Stderr.WriteString("ways: cannot find its own path: " + err.Error() + "\n")
		return 1
	}
	operator := front.Sibling(self, "waysctl")
	err = syscall.Exec(operator, append([]string{"ways"}, args...), os.Environ())
	os.Stderr.WriteString("ways: cannot run " + operator + ": " + err.Error() + "; install waysctl beside ways\n")
	return 1
}
