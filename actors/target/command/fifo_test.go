package command

import (
	"bufio"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func newFIFO(t *testing.T) fifo {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	must(t, syscall.Mkfifo(path, 0o600))
	// Read and write, so that neither side waits to open it.
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	lines := bufio.NewReader(f)
	return fifo{path: path, read: func() string {
		line, _ := lines.ReadString('\n')
		return line
	}}
}
