package checkpoint

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"ways/hooks/chain"
)

// TestWriteNeverWaits for the other end of a FIFO in the place of the notes.
func TestWriteNeverWaits(t *testing.T) {
	state := t.TempDir()
	path := File(state, "a~b")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := New(state, filepath.Join(state, "keys", "checkpoint")).Write("a~b", chain.Head{})
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil {
			t.Error("written to a FIFO")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("waits")
	}
}
