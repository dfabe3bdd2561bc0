// Package logfile makes the loggers of processes that nobody watches: zerolog JSON
// lines in a file of bounded size.
package logfile

import (
	"os"
	"time"

	"github.com/rs/zerolog"
	"gopkg.in/natefinch/lumberjack.v2"

	"ways/config/settings"
	"ways/hooks/dirs"
)

// LevelVariable is the environment variable that sets the level, over log.level in
// config.yaml.
const LevelVariable = "WAYS_LOG_LEVEL"

// File says where a log goes and how much of it is kept.
type File struct {
	Path string
	// Megabytes is where a file is put aside, Backups how many of those are kept.
	Megabytes, Backups int
}

// Open returns a logger for a file, which is made at the first line. A FIFO or
// symlink in its place is removed: it would hold the process, or lead elsewhere. So
// is a file with another name elsewhere, which keeps what was written until then.
func (f File) Open(level zerolog.Level) zerolog.Logger {
	dirs.Clear(f.Path)
	linked := dirs.Linked(f.Path)
	if linked && os.Remove(f.Path) != nil {
		return zerolog.Nop()
	}
	log := zerolog.New(&lumberjack.Logger{Filename: f.Path, MaxSize: f.Megabytes, MaxBackups: f.Backups}).
		Level(level).Hook(stamp{})
	if linked {
		log.Warn().Msg("the log had another name elsewhere, a hard link, which keeps it; here begins a new one")
	}
	return log
}

// stamp puts the time on each line, finely enough to merge the lines of processes.
type stamp struct{}

// Run implements zerolog.Hook.
func (stamp) Run(e *zerolog.Event, _ zerolog.Level, _ string) {
	e.Str("time", time.Now().UTC().Format(time.RFC3339Nano))
}

// Level is the level that holds: the environment's, else the settings'. What is no
// level counts as unset.
func Level(getenv func(string) string, s settings.Settings) zerolog.Level {
	for _, text := range []string{getenv(LevelVariable), s.LogLevel} {
		if l, err := zerolog.ParseLevel(text); err == nil && text != "" && l != zerolog.NoLevel {
			return l
		}
	}
	return zerolog.InfoLevel
}
