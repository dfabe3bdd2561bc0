package ticket

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"ways/hooks/dirs"
)

// TestTicketsAreFiles: nothing else in the place of one is locked, read or waited
// for.
func TestTicketsAreFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, dirName), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path(dir, 1), filepath.Join(dir, dirName, "a~b.n")} {
		if err := syscall.Mkfifo(name, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Claim(dir, 1, 1); !errors.Is(err, dirs.ErrNotFile) {
		t.Errorf("claimed: %v", err)
	}
	if _, err := Read(dir, 1); !errors.Is(err, dirs.ErrNotFile) {
		t.Errorf("read: %v", err)
	}
	if _, err := Number(dir, "a/b"); !errors.Is(err, dirs.ErrNotFile) {
		t.Errorf("numbered: %v", err)
	}
}
