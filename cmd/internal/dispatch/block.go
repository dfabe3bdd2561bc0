package dispatch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/rs/zerolog"

	"ways/cmd/internal/cli"
	"ways/cmd/internal/logfile"
	"ways/config/files"
	"ways/config/publish"
	"ways/config/settings"
	"ways/hooks/dirs"
	"ways/hooks/spool"
	"ways/hooks/ticket"
	"ways/supervisor"
)

// BlockLogName is the log of a session's blocking dispatches, in its directory.
const BlockLogName = "blocking.log"

// BlockVerb is the entry of the verb that a hook becomes when a blocking rule may
// want its event; it is not for people.
func BlockVerb() cli.Verb { return cli.Verb{Name: "block", Run: Block} }

// Block hands one event's records to the blocking rules and waits. It is a hook:
// it prints nothing, and its exit code is 0 whatever happens.
func Block(env cli.Env, args []string) int {
	fs := cli.Flags("sensors block")
	session := fs.String("session", "", "")
	project := fs.String("project", "", "")
	first := fs.Uint64("first", 0, "")
	segment := fs.Uint64("segment", 0, "")
	offset := fs.Int64("offset", 0, "")
	fds := fs.IntSlice("ticket-fd", nil, "")
	if err := fs.Parse(args); err != nil {
		return cli.OK
	}
	syscall.Umask(0o077)
	d, err := dirs.From(env.Getenv)
	if err != nil {
		return cli.OK
	}
	dir := d.Session(*session)
	conf, _, _ := settings.Load(files.NewReader(), d.Settings(), d.Home)
	to := logfile.File{Path: filepath.Join(dir, BlockLogName), Megabytes: 1, Backups: 1}
	log := to.Open(logfile.Level(env.Getenv, conf)).With().Str("session", dirs.SessionLabel(*session)).Uint64("first_seq", *first).Int("pid", os.Getpid()).Logger()
	records, err := claimed(dir, *first, spool.Position{Segment: *segment, Offset: *offset}, *fds)
	if err == nil {
		err = block(env, d, *session, *project, records, log)
	}
	if err != nil {
		log.Error().Err(err).Msg("blocking rules not waited for to the end")
	}
	return cli.OK
}

func block(env cli.Env, d dirs.Dirs, session, project string, records []supervisor.Claimed, log zerolog.Logger) error {
	// The client may take the hook back; what it started goes with it.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	signal.Ignore(syscall.SIGPIPE)
	p, _, err := publish.Load(d, files.NewReader(), project)
	if err != nil {
		return err
	}
	masker, err := supervisor.NewMasker(p.Masking)
	if err != nil {
		return err
	}
	prepare(log)
	return supervisor.Blocking{
		Dir: d.Session(session), Session: session, Plan: p, Records: records,
		Targets: outlets{env: env, dirs: d, session: session, masker: masker, log: log}.target, Masker: masker, Log: log,
	}.Run(ctx)
}

// claimed reads the records that the hook has written and holds tickets for.
func claimed(dir string, first uint64, at spool.Position, fds []int) ([]supervisor.Claimed, error) {
	var out []supervisor.Claimed
	r := spool.NewReader(dir, at)
	defer r.Close()
	for i, fd := range fds {
		seq := first + uint64(i)
		t, err := ticket.Adopt(dir, seq, fd)
		if err != nil {
			return out, err
		}
		f, err := r.Next()
		var damage *spool.Damage
		for errors.As(err, &damage) {
			f, err = r.Next()
		}
		if err != nil {
			return out, fmt.Errorf("read record %d: %w", seq, err)
		}
		if f.Seq != seq {
			return out, fmt.Errorf("the spool holds record %d where %d was written", f.Seq, seq)
		}
		f.JSON = append([]byte(nil), f.JSON...)
		out = append(out, supervisor.Claimed{Frame: f, Ticket: t})
	}
	return out, nil
}
