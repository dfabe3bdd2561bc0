package doctest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const (
	// root is the repository's root, seen from here.
	root = "../../.."
	// binDirEnv names the directory with the built programs.
	binDirEnv = "WAYS_DOCTEST_BIN_DIR"
	// updateFlag makes the tests write output into the pages.
	updateFlag = "update"
)

// TestMain builds the programs once. Started under the name jq the test binary
// is jq, so that the pages' queries run where nothing but Go is installed.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "jq" {
		if err := jq(os.Args[1:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Bool(updateFlag, false, "write the output of commands into the pages")
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ways-doctest-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func build(dir string) error {
	cmd := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "ways/cmd/ways", "ways/cmd/waysctl", "ways/cmd/internal/demo")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return errors.Join(os.Symlink(self, filepath.Join(dir, "jq")), os.Setenv(binDirEnv, dir))
}
