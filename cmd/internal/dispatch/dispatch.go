// Package dispatch is the verb `ways sensors dispatch`: one session's
// dispatcher, as a hook starts it or a person does.
package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"ways/actors/courier"
	"ways/actors/deadletter"
	"ways/actors/target/command"
	"ways/cmd/internal/cli"
	"ways/cmd/internal/logfile"
	"ways/config/files"
	"ways/config/plan"
	"ways/config/publish"
	"ways/config/settings"
	"ways/hooks/dirs"
	"ways/hooks/index"
	"ways/hooks/launch"
	"ways/hooks/temp"
	"ways/metrics/events"
	"ways/supervisor"
)

// DefaultIdle is how long the spool stays empty before a dispatcher leaves
// (seed §10).
const DefaultIdle = 60 * time.Second

// IdleVariable is the environment variable that sets another idle time.
const IdleVariable = "WAYS_DISPATCHER_IDLE"

const usage = `Usage: ways sensors dispatch --session ID

Runs the dispatcher of one session in the foreground: hands what its spool holds
to the rules, until the spool has stayed empty for the idle time. Hooks start one
by themselves; by hand it is for looking on, or for a spool left behind.`

// Verb is the verb's entry.
func Verb() cli.Verb {
	return cli.Verb{Name: "dispatch", Short: "run one session's dispatcher in the foreground", Run: Run}
}

// Run is the verb.
func Run(env cli.Env, args []string) int {
	fs := cli.Flags("sensors dispatch")
	session := fs.String("session", "", "the session's `ID`")
	idle := fs.Duration("idle", idleOf(env), "leave when the spool stayed empty this long ("+IdleVariable+")")
	lockFD := fs.Int("lock-fd", 0, "the descriptor on which a hook hands the session's lock down")
	if err := fs.MarkHidden("lock-fd"); err != nil {
		return env.Fail("sensors dispatch", err)
	}
	if code, done := cli.Parse(env, fs, usage, args); done {
		return code
	}
	if *session == "" || fs.NArg() > 0 {
		return cli.WrongArgs(env, fs, "--session ID and nothing else")
	}
	// Everything a dispatcher makes is its owner's alone.
	syscall.Umask(0o077)
	d, err := dirs.From(env.Getenv)
	if err != nil {
		return env.Fail("sensors dispatch", err)
	}
	dir := d.Session(*session)
	lock, err := takeLock(dir, *lockFD)
	if err != nil {
		return env.Fail("sensors dispatch", err)
	}
	log := sessionLog(env, d, *session)
	if err := adopt(env, d, *session); err != nil {
		log.Error().Err(err).Msg("what other sessions left undelivered is not adopted")
	}
	if err := run(env, d, *session, lock, timing{idle: *idle, linger: Linger, load: publish.Load}, log); err != nil {
		log.Error().Err(err).Msg("dispatcher failed")
		return env.Fail("sensors dispatch", err)
	}
	return cli.OK
}

// sessionLog is the log of a session's dispatcher.
func sessionLog(env cli.Env, d dirs.Dirs, session string) zerolog.Logger {
	conf, _, _ := settings.Load(files.NewReader(), d.Settings(), d.Home)
	to := logfile.File{Path: filepath.Join(d.Session(session), LogName), Megabytes: 5, Backups: 2}
	return to.Open(logfile.Level(env.Getenv, conf)).With().Str("session", dirs.SessionLabel(session)).Int("pid", os.Getpid()).Logger()
}

// Linger is how long a dispatcher stays for records that wait for another try
// while nothing else happens in its session.
const Linger = 10 * time.Minute

// timing is when a dispatcher leaves.
type timing struct {
	idle, linger time.Duration
	// load finds a project's rules.
	load func(dirs.Dirs, files.Reader, string) (plan.Plan, uint64, error)
}

// LogName is a dispatcher's log in its session's directory.
const LogName = "dispatcher.log"

// InfoName is the file in a session's directory that says which process
// dispatches.
const InfoName = "dispatcher.json"

// Info is the content of InfoName. It is true only while the dispatcher runs
// (launch.Running).
type Info struct {
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	Version string    `json:"version"`
}

func idleOf(env cli.Env) time.Duration {
	if d, err := time.ParseDuration(env.Getenv(IdleVariable)); err == nil && d > 0 {
		return d
	}
	return DefaultIdle
}

// takeLock takes the session's dispatcher lock, or the one that was handed down.
func takeLock(dir string, fd int) (*os.File, error) {
	if fd > 0 {
		return launch.Adopt(dir, fd)
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("this session has no spool; ways status lists those that have: %w", err)
	}
	return launch.TryLock(dir)
}

func run(env cli.Env, d dirs.Dirs, session string, lock *os.File, when timing, log zerolog.Logger) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	prepare(log)
	orphans := func(ctx context.Context) {
		ctx, enough := context.WithTimeout(ctx, sweepTime)
		defer enough()
		if n := command.KillOrphans(ctx, dirs.SessionLabel(session)); n > 0 {
			log.Warn().Int("processes", n).Msg("killed what commands of a dead process had left")
		}
	}
	orphans(ctx)
	masker, err := supervisor.NewMasker(plan.Masking{})
	if err != nil {
		return err
	}
	dir := d.Session(session)
	info, err := json.Marshal(Info{os.Getpid(), time.Now().UTC(), env.Version})
	if err == nil {
		dirs.Clear(filepath.Join(dir, InfoName))
		err = temp.Write(filepath.Join(dir, InfoName), info, false)
	}
	if err != nil {
		log.Warn().Err(err).Msg("status will not show this process")
	}
	log.Info().Str("version", env.Version).Dur("idle", when.idle).Msg("dispatcher starts")
	reader, follower := files.NewReader(), files.NewReader()
	conf, _, _ := settings.Load(reader, d.Settings(), d.Home)
	out := outlets{env: env, dirs: d, session: session, masker: masker, log: log}
	out.courier = courier.New(courier.Options{Make: out.target, Masker: masker, Log: log})
	out.last = true
	if err := markPending(d, session); err != nil {
		log.Error().Err(err).Msg("should this process die, nobody adopts what it leaves")
	}
	return supervisor.Dispatcher{
		Dir: dir, Session: session, Lock: lock, Idle: when.idle, Linger: when.linger, Masker: masker, Log: log, Events: events.NewLog(d.State),
		Load:    func(project string) (plan.Plan, uint64, error) { return when.load(d, reader, project) },
		Index:   func(project string) (index.Header, error) { return publish.Header(d, follower, project) },
		Targets: out.target, Courier: out.courier, Orphans: orphans,
		Dead:   deadletter.NewStore(d.State),
		MaxAge: conf.MaxAge,
		Drained: func() {
			if err := clearPending(d, session); err != nil {
				log.Error().Err(err).Msg("the session still counts as having something to deliver")
			}
		},
	}.Run(ctx)
}

// sweepTime bounds the look for what an earlier dispatcher's commands left.
const sweepTime = 2 * time.Second

// prepare makes this process fit to run commands.
func prepare(log zerolog.Logger) {
	if err := command.HideDescriptors(); err != nil {
		log.Warn().Err(err).Msg("commands may inherit descriptors")
	}
	if err := command.BecomeSubreaper(); err != nil {
		log.Warn().Err(err).Msg("cannot adopt what commands leave behind")
	}
}
