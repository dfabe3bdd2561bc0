package front

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"time"
)

// hang is more than anything here may take.
const hang = 20 * time.Second

// low makes a descriptor below 32, which select takes, of a pipe's reading end.
func low(t *testing.T) (in int, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	in = int(r.Fd()) // from here on it is a blocking one
	if in >= 32 {
		t.Fatalf("descriptor %d", in)
	}
	return in, w
}

// TestStdin: what has come is read, however late; a silent writer is given up.
func TestStdin(t *testing.T) {
	fd, w := low(t)
	if _, err := w.WriteString("ab"); err != nil {
		t.Fatal(err)
	}
	// Not a nanosecond is left, as after a machine stood still.
	late := stdin{fd: fd}
	var buf [1]byte
	for _, want := range []string{"a", "b"} {
		if n, err := late.Read(buf[:]); err != nil || string(buf[:n]) != want {
			t.Errorf("%q, %v; want %q", buf[:n], err, want)
		}
	}
	if n, err := late.Read(buf[:]); n != 0 || !errors.Is(err, errSilent) {
		t.Errorf("a silent writer: %d, %v", n, err)
	}
	began := time.Now()
	patient := stdin{fd: fd, silence: 30 * time.Millisecond}
	if _, err := patient.Read(buf[:]); !errors.Is(err, errSilent) || time.Since(began) < 30*time.Millisecond {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	w.Close()
	if n, err := patient.Read(buf[:]); n != 0 || err != io.EOF {
		t.Errorf("at the end: %d, %v", n, err)
	}
}

// TestStdinUnblocked: the parent may have its pipes non-blocking, and so ours.
func TestStdinUnblocked(t *testing.T) {
	fd, w := low(t)
	if err := syscall.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	in := stdin{fd: fd, silence: hang}
	got := make(chan string)
	go func() {
		var buf [8]byte
		n, err := in.Read(buf[:])
		got <- string(buf[:n]) + errText(err)
	}()
	if _, err := w.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	if s := <-got; s != "x" {
		t.Errorf("read %q", s)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return " " + err.Error()
}

// TestDrain: a writer of megabytes meets no closed pipe; one that never ends is
// left after drainMost, whatever it still writes.
func TestDrain(t *testing.T) {
	fd, w := low(t)
	wrote := make(chan error, 1)
	go func() {
		_, err := w.Write(bytes.Repeat([]byte("x"), 3<<20))
		wrote <- errors.Join(err, w.Close())
	}()
	in := stdin{fd: fd, silence: hang}
	in.drain(drainStall)
	if err := <-wrote; err != nil {
		t.Errorf("the writer: %v", err)
	}

	fd, w = low(t)
	go func() {
		for {
			if _, err := w.Write(make([]byte, 4096)); err != nil {
				return // closed at the test's end
			}
		}
	}()
	endless := stdin{fd: fd, silence: hang, until: time.Now().Add(50 * time.Millisecond)}
	n, err := io.Copy(io.Discard, &endless)
	if n == 0 || !errors.Is(err, errSilent) {
		t.Errorf("an endless writer: %d bytes, %v", n, err)
	}
}
