// Package doorbell is the actor at the wake FIFO: it turns the bytes that hooks
// write into messages for the spool actor. Between events the whole dispatcher
// sleeps here.
package doorbell

import (
	"context"
	"errors"
	"fmt"
	"os"

	"ways/hooks/launch"
)

// Listener is who is woken. Its methods never wait.
type Listener interface {
	Appended()
	Ended()
}

// Doorbell is the actor.
type Doorbell struct {
	dir string
	to  Listener
}

// New returns the doorbell of a session directory.
func New(dir string, to Listener) *Doorbell { return &Doorbell{dir: dir, to: to} }

// String names the actor.
func (d *Doorbell) String() string { return "doorbell" }

// Serve reads the FIFO until ctx ends.
func (d *Doorbell) Serve(ctx context.Context) error {
	f, err := launch.Listen(d.dir)
	if err != nil {
		return err
	}
	defer f.Close()
	// Whatever was appended before the FIFO was open rang nowhere.
	d.to.Appended()
	if launch.TakeEnd(d.dir) {
		d.to.Ended()
	}
	stop := context.AfterFunc(ctx, func() { f.Close() })
	defer stop()
	buf := make([]byte, 512)
	for {
		n, err := f.Read(buf)
		for _, b := range buf[:n] {
			switch b {
			case launch.Ended:
				launch.TakeEnd(d.dir)
				d.to.Ended()
			default:
				d.to.Appended()
			}
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, os.ErrClosed):
			return fmt.Errorf("wake FIFO: %w", err)
		case err != nil:
			return fmt.Errorf("read the wake FIFO: %w", err)
		}
	}
}
