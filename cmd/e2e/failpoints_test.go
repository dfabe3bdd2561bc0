package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// doomed sets the chance of a process to die at each of its failpoints.
const doomed = "WAYS_FAILPOINT"

// buildDoomed builds the binaries with failpoints, which the shipped ones do not
// have.
func buildDoomed(t *testing.T) binaries {
	t.Helper()
	dir := filepath.Join(os.Getenv(binDirEnv), "failpoints")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-tags", "failpoints", "-o", dir+string(filepath.Separator), "ways/cmd/ways", "ways/cmd/waysctl")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building with failpoints: %v\n%s", err, out)
	}
	return binaries{ways: filepath.Join(dir, "ways"), waysctl: filepath.Join(dir, "waysctl")}
}

// TestFailpointsAreNotShipped: in the binaries as they are built for users, the
// variable that kills has no effect, and not even its name is there.
func TestFailpointsAreNotShipped(t *testing.T) {
	s := newSite(t, shortIdle, doomed+"=1")
	s.fire(t, call("s", "t", 10))
	s.waitLines(t, 1)
	for _, path := range []string{s.ways, s.waysctl} {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(raw, []byte(doomed)) {
			t.Errorf("%s holds %s", path, doomed)
		}
	}
}
