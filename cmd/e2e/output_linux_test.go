package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestOutputThatCannotBeWritten: a verb whose output does not fit anywhere says so
// and fails; it does not pretend that there was nothing.
func TestOutputThatCannotBeWritten(t *testing.T) {
	s := newSite(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, verb := range []string{
		"--version", "version", "help", "status", "status --json", "status --watch", "sensors list", "sensors list --json",
		"sensors lint", "sensors lint --json", "sensors show all", "sensors dead list", "sensors drain", "sensors copy tool-audit mine",
		"metrics", "reconcile --dry-run --json",
	} {
		cmd := exec.CommandContext(t.Context(), s.ways, strings.Fields(verb)...)
		cmd.Env, cmd.Dir = s.env, s.home
		var errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = full, &errs
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code < 1 || !strings.Contains(errs.String(), "no space left on device") {
			t.Errorf("ways %s: exit %d, %s", verb, code, errs.String())
		}
	}
}
