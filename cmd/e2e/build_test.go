package e2e

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// binDirEnv names the directory that TestMain made for the built binaries.
const binDirEnv = "WAYS_E2E_BIN_DIR"

// binaries are the product's, as a user has them: side by side.
type binaries struct{ ways, waysctl string }

// buildBinaries builds ./cmd/ways and ./cmd/waysctl, once in a test process:
// the first caller builds while the lock makes the others wait.
func buildBinaries(t *testing.T) binaries {
	t.Helper()
	dir := os.Getenv(binDirEnv)
	lock, err := os.OpenFile(filepath.Join(dir, "build.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatalf("the build's lock: %v", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatalf("the build's lock: %v", err)
	}
	b := binaries{ways: filepath.Join(dir, "ways"), waysctl: filepath.Join(dir, "waysctl")}
	if _, err := os.Stat(b.waysctl); err == nil {
		return b
	} else if !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the build: %v", err)
	}
	for _, pkg := range []string{"ways/cmd/ways", "ways/cmd/waysctl"} {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", dir+string(filepath.Separator), pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("building %s: %v\n%s", pkg, err, out)
		}
	}
	return b
}
