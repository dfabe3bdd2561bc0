package e2e

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"ways/cmd/e2e/internal/mcpserver"
)

// asMCPServer, set in the environment, makes the test binary the MCP server of
// a session under test.
const asMCPServer = "WAYS_E2E_MCP_SERVER"

// updateFlag makes the tests write their golden files instead of comparing.
const updateFlag = "update"

// roundsFlag sets how many rounds the crash harness plays.
const roundsFlag = "rounds"

// backlogFlag sets how many megabytes are drained at once.
const backlogFlag = "backlog"

func TestMain(m *testing.M) {
	if os.Getenv(asMCPServer) != "" {
		if err := mcpserver.Serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 2 && os.Args[1] == consumeArg {
		os.Exit(consume(os.Args[2:]))
	}
	if len(os.Args) > 2 && os.Args[1] == clientArg {
		os.Exit(beClient(os.Args[2], os.Args[3:]))
	}
	flag.Bool(updateFlag, false, "write the golden files anew")
	flag.Int(roundsFlag, 2000, "rounds of the crash harness")
	flag.Int(backlogFlag, 256, "megabytes of the backlog that is drained")
	os.Exit(runTests(m))
}

// intFlag is the value of one of the flags above.
func intFlag(name string) int { return flag.Lookup(name).Value.(flag.Getter).Get().(int) }

// runTests gives the binaries one directory for the whole process.
func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ways-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Setenv(binDirEnv, dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
