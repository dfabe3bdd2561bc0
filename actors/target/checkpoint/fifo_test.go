package checkpoint

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// TestHalfMadeKeysGo: a process killed while it made the key leaves a second one,
// which goes although the key is there and none is made any more.
func TestHalfMadeKeysGo(t *testing.T) {
	state := t.TempDir()
	key := filepath.Join(state, "keys", "checkpoint")
	left := filepath.Join(state, "keys", ".ways-17.tmp")
	for range 2 { // without a key, and with one
		if err := os.MkdirAll(filepath.Dir(left), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(left, []byte("PRIVATE+KEY+"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := New(state, key).Write("a~b", chain.Head{}); err != nil {
			t.Fatal(err)
		}
		names, err := filepath.Glob(filepath.Join(state, "keys", "*"))
		if want := []string{key, key + publicSuffix}; err != nil || !slices.Equal(names, want) {
			t.Errorf("the keys' directory holds %q, %v; want %q", names, err, want)
		}
	}
}

// TestKeyIsNeverWaitedFor, nor followed: what lies in its place says so.
func TestKeyIsNeverWaitedFor(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"a FIFO":    func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"a symlink": func(p string) error { return os.Symlink("/dev/null", p) },
	} {
		state := t.TempDir()
		key := filepath.Join(state, "keys", "checkpoint")
		if err := os.MkdirAll(filepath.Dir(key), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := put(key); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := New(state, key).Write("a~b", chain.Head{})
			done <- err
		}()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), key) {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: waits", name)
		}
	}
}
