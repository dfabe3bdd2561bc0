package doorbell

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ways/hooks/launch"
)

// listener takes rings one at a time.
type listener chan byte

func (l listener) Appended() { l <- launch.Appended }
func (l listener) Ended()    { l <- launch.Ended }

// wait takes the next ring.
func (l listener) wait(t *testing.T, want byte) {
	t.Helper()
	select {
	case got := <-l:
		if got != want {
			t.Fatalf("rang %c, want %c", got, want)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("nobody rang; want %c", want)
	}
}

func TestRings(t *testing.T) {
	dir := t.TempDir()
	to := make(listener, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- New(dir, to).Serve(ctx) }()

	// What was appended before anybody listened rang nowhere; so it rings once by
	// itself, and only when it listens.
	to.wait(t, launch.Appended)
	if !launch.Running(dir) {
		t.Error("it rang before it listened")
	}
	for _, what := range []byte{launch.Appended, launch.Ended, launch.Appended, 'x'} {
		launch.Wake(dir, what)
		if what == 'x' {
			what = launch.Appended // of a newer hook: look, whatever it is
		}
		to.wait(t, what)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	if launch.Running(dir) {
		t.Error("it still listens")
	}
}

// TestRestart listens again, and rings for what it may have missed.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	to := make(listener, 100)
	d := New(dir, to)
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- d.Serve(ctx) }()
		to.wait(t, launch.Appended)
		launch.Wake(dir, launch.Ended)
		to.wait(t, launch.Ended)
		cancel()
		<-ended
	}
}

// TestNoPlace: an error says so, and asks for a restart.
func TestNoPlace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "absent")
	if err := New(dir, make(listener, 1)).Serve(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
