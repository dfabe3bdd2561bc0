package spool

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"ways/hooks/dirs"
)

// TestFIFOsInOurPlaces hold neither a writer nor a reader, and take no record
// that is not counted.
func TestFIFOsInOurPlaces(t *testing.T) {
	for _, name := range []string{cursorsName, cursorsName + ".tmp", lockName, "00000000000000000001.seg"} {
		dir := filepath.Join(t.TempDir(), "session")
		if err := dirs.MakePrivate(dir); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			req := Request{Build: func(bool) []Draft { return []Draft{draft{`{"seq":`, `,"what":"a"}`}} }, Now: time.Now(), Wait: time.Second}
			res, err := Append(dir, req)
			if (err == nil) != (res.First == 1) {
				t.Errorf("%s: %+v, %v", name, res, err)
			}
			_ = Unwritten(dir)
			_, _ = LastSeq(dir, time.Second)
			if err := SaveCursors(dir, Cursors{}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := LoadCursors(dir); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: waits", name)
		}
		if info, err := os.Lstat(filepath.Join(dir, cursorsName)); err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s: the cursors are %v, %v", name, info, err)
		}
	}
}
