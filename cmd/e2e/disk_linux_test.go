package e2e

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

// tinyDisk mounts a file system of that size at dir, where this user may.
func tinyDisk(t *testing.T, dir string, size int) bool {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", size)); err != nil {
		return false
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return true
}
