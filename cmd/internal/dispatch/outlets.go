package dispatch

import (
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"ways/actors/courier"
	"ways/actors/target"
	"ways/actors/target/chained"
	"ways/actors/target/checkpoint"
	"ways/actors/target/command"
	"ways/actors/target/file"
	"ways/actors/target/http"
	"ways/cmd/internal/cli"
	"ways/config/plan"
	"ways/hooks/chain"
	"ways/hooks/dirs"
	"ways/hooks/redact"
)

// errNoTarget is returned for a plan of a newer build.
var errNoTarget = errors.New("a target that this build does not know")

// outlets makes rules' ways out.
type outlets struct {
	env     cli.Env
	dirs    dirs.Dirs
	session string
	masker  *redact.Masker
	// courier takes checkpoints to other rules' targets; nil for a process that
	// is too short-lived for that. A later checkpoint covers its records.
	courier *courier.Courier
	// last makes a checkpoint of what no other one covers when a rule ends.
	last bool
	log  zerolog.Logger
}

// target makes the way out of one rule.
func (o outlets) target(r plan.Rule) (target.Target, error) {
	sync := r.Delivery == plan.AtLeastOnce
	write := o.checkpoints(r)
	if f := r.Target.File; f != nil {
		return file.New(*f, file.Options{
			StateDir: o.dirs.State, Home: o.dirs.Home, Getenv: o.env.Getenv, Sync: sync, Chain: r.Chain,
			Checkpoints: file.Checkpoints{Every: uint64(r.Checkpoint.Every), AtClose: o.last, Write: write},
		})
	}
	way, err := o.plain(r)
	if err != nil || !r.Chain {
		return way, err
	}
	return chained.New(way, chained.Options{
		StateDir: o.dirs.State, Rule: r.ID, Sync: sync, Every: uint64(r.Checkpoint.Every), AtClose: o.last, Write: write,
	}), nil
}

func (o outlets) plain(r plan.Rule) (target.Target, error) {
	switch {
	case r.Target.HTTP != nil:
		return http.New(*r.Target.HTTP, http.Options{Getenv: o.env.Getenv, Version: o.env.Version})
	case r.Target.Command != nil:
		return command.New(*r.Target.Command, command.Options{Home: o.dirs.Home, Getenv: o.env.Getenv, Mask: o.mask})
	}
	return nil, errNoTarget
}

// mask masks what a program wrote.
func (o outlets) mask(text []byte) []byte {
	masked, _ := o.masker.Text(text)
	return masked
}

// checkpoints returns what keeps a rule's checkpoints, and sends them on.
func (o outlets) checkpoints(r plan.Rule) func(name string, h chain.Head) error {
	if !r.Chain {
		return nil
	}
	keeper := checkpoint.New(o.dirs.State, checkpoint.KeyFile(o.dirs.Config))
	return func(name string, h chain.Head) error {
		signed, err := keeper.Write(name, h)
		if err != nil {
			o.log.Error().Str("rule", r.ID).Uint64("chain_n", h.N).Err(err).Msg("no checkpoint")
			return err
		}
		if o.courier == nil || r.Checkpoint.Way == nil {
			return nil
		}
		record, err := checkpoint.Record(o.session, r.ID, name, h, signed, time.Now())
		if err == nil && !o.courier.Post(courier.Parcel{
			Chain: name, To: *r.Checkpoint.Way, ID: fmt.Sprintf("checkpoint:%s:%d", name, h.N), Session: o.session, Record: record,
		}) {
			err = errors.New("too many are waiting")
		}
		if err != nil {
			o.log.Warn().Str("rule", r.ID).Str("to", r.Checkpoint.To).Err(err).Msg("checkpoint not sent on")
		}
		return nil
	}
}
