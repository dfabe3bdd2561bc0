package dirs

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestOpenNeverWaits for what lies in a file's place, and never follows it.
func TestOpenNeverWaits(t *testing.T) {
	victim := filepath.Join(t.TempDir(), "victim")
	for name, put := range map[string]func(path string) error{
		"a FIFO":             func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"an empty directory": func(p string) error { return os.Mkdir(p, 0o700) },
		"a symlink":          func(p string) error { return os.Symlink(victim, p) },
	} {
		if err := os.WriteFile(victim, []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "file")
		if err := put(path); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for _, flags := range []int{os.O_RDONLY, os.O_WRONLY | os.O_CREATE | os.O_TRUNC, os.O_RDWR | os.O_CREATE | os.O_APPEND} {
				if f, err := Open(path, flags); err == nil {
					f.Close()
					t.Errorf("%s, flags %#x: opened", name, flags)
				}
			}
			if _, err := ReadFile(path); err == nil {
				t.Errorf("%s: read", name)
			}
		}()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: waits", name)
		}
		Clear(path)
		f, err := Open(path, os.O_WRONLY|os.O_CREATE)
		if err != nil {
			t.Errorf("%s, cleared: %v", name, err)
			continue
		}
		if _, err := f.WriteString("ours"); err != nil {
			t.Error(err)
		}
		f.Close()
		Clear(path) // a file stays
		if got, err := ReadFile(path); string(got) != "ours" || err != nil {
			t.Errorf("%s, cleared: %q, %v", name, got, err)
		}
		if got, _ := os.ReadFile(victim); string(got) != "kept" {
			t.Errorf("%s: the file elsewhere holds %q", name, got)
		}
	}
}
