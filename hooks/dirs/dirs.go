// Package dirs says where things are: the XDG directories of design §3, private
// directories, and safe names for session ids.
package dirs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"ways/hooks/crc"
)

// ErrNoHome is returned when HOME and the XDG variables leave no place for our
// files. A hook that meets it does nothing.
var ErrNoHome = errors.New("no home directory: set HOME, or XDG_CONFIG_HOME, XDG_STATE_HOME and XDG_CACHE_HOME, to absolute paths")

// ErrNotPrivate is returned for a directory that is not a directory, or belongs
// to somebody else.
var ErrNotPrivate = errors.New("not a private directory of this user")

// app is the directory name under each XDG base.
const app = "agent-ways"

// Dirs holds the absolute directories of one user. They need not exist.
type Dirs struct {
	Home   string // may be empty
	Config string // settings and sensors
	State  string // spools, counters, logs
	Cache  string // the compiled index
}

// From reads the directories from environment variables. An XDG variable that
// is unset, empty or relative takes its default under HOME (XDG Base Directory
// Specification, "Environment variables").
func From(getenv func(string) string) (Dirs, error) {
	home := getenv("HOME")
	if !filepath.IsAbs(home) {
		home = ""
	}
	d := Dirs{Home: home}
	for _, x := range []struct {
		name, fallback string
		to             *string
	}{
		{"XDG_CONFIG_HOME", ".config", &d.Config},
		{"XDG_STATE_HOME", ".local/state", &d.State},
		{"XDG_CACHE_HOME", ".cache", &d.Cache},
	} {
		base := getenv(x.name)
		if !filepath.IsAbs(base) {
			if home == "" {
				return Dirs{}, ErrNoHome
			}
			base = filepath.Join(home, x.fallback)
		}
		*x.to = filepath.Join(base, app)
	}
	return d, nil
}

// Sessions is the directory that holds one directory per session.
func (d Dirs) Sessions() string { return filepath.Join(d.State, "sessions") }

// Session is the directory of one session's spool.
func (d Dirs) Session(id string) string { return filepath.Join(d.Sessions(), SessionName(id)) }

// Sensors is the directory of the user's sensor files.
func (d Dirs) Sensors() string { return filepath.Join(d.Config, "sensors") }

// Settings is the user's config.yaml.
func (d Dirs) Settings() string { return filepath.Join(d.Config, "config.yaml") }

// Index is the compiled index for one project, named by a hash of the project's
// path as the client spells it.
func (d Dirs) Index(project string) string {
	return filepath.Join(d.Cache, "index", hashName(project)+".idx")
}

// maxPlainID is the longest session id that is used as a file name as it is.
const maxPlainID = 128

// SessionName turns a session id, which is untrusted, into one path element:
// the id itself when it is plain (letters, digits, - and _), else a hash of it
// (design §3). An id that looks like a secret is not plain either: a path stands
// in logs and listings.
func SessionName(id string) string {
	if plain(id) && !credential(id) {
		return id
	}
	return "x~" + hashName(id)
}

// SessionLabel is what a session is called outside its records: in logs, counters,
// listings and to consumers. It is the id, unless that looks like a secret: then it is
// the session's name.
func SessionLabel(id string) string {
	if credential(id) {
		return SessionName(id)
	}
	return id
}

// credential reports whether an id looks like a token: 16 letters and digits or
// more in a row, of two sorts at least (digits, small letters, capitals), that are no
// hexadecimal number. Clients make UUIDs.
func credential(id string) bool {
	var run, digits, upper, lower, hex int
	for i := 0; i <= len(id); i++ {
		var c byte
		if i < len(id) {
			c = id[i]
		}
		switch {
		case c >= '0' && c <= '9':
			digits++
			hex++
		case c >= 'a' && c <= 'z':
			lower++
			if c <= 'f' {
				hex++
			}
		case c >= 'A' && c <= 'Z':
			upper++
			if c <= 'F' {
				hex++
			}
		default:
			if run >= 16 && hex < run && run > max(digits, upper, lower) {
				return true
			}
			run, digits, upper, lower, hex = 0, 0, 0, 0, 0
			continue
		}
		run++
	}
	return false
}

func plain(id string) bool {
	if id == "" || len(id) > maxPlainID {
		return false
	}
	for _, c := range []byte(id) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// hashName is a 64-bit name for any string: two CRCs and the length. It keeps
// apart what an honest client sends; it is no defence against somebody who
// constructs a collision in his own session ids.
func hashName(s string) string {
	return strconv.FormatUint(crc.Sum64([]byte(s)), 16) + "-" + strconv.Itoa(len(s))
}

// MakePrivate makes dir and its missing parents, 0700 each, and checks that dir
// is a real directory of this user. One that others could enter is closed to
// them. A symlink in dir's place is refused.
func MakePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make private directory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("check private directory: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || (ok && int(owner.Uid) != os.Geteuid()) {
		return fmt.Errorf("%s: %w", dir, ErrNotPrivate)
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("close directory to others: %w", err)
		}
	}
	return nil
}
