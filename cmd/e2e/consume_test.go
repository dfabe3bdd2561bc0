package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// consumeArg, as the first argument, makes the test binary a part of a consumer.
const consumeArg = "consume"

// consume does what scripts cannot: it starts a program in a session of its own,
// holding all that it inherited itself, prints its process id, and is gone.
// "session-leader-bare" starts it with an empty environment.
func consume(args []string) int {
	cmd := exec.Command(args[1], args[2:]...) //nolint:gosec // the tests' own words
	path, err := exec.LookPath(args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cmd.Path = path
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if args[0] == "session-leader-bare" {
		cmd.Env = []string{}
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(cmd.Process.Pid)
	return 0
}

// diesWithParent reports whether the system ends a consumer with the process that
// started it (docs/architecture.md).
func diesWithParent() bool { return runtime.GOOS == "linux" }
