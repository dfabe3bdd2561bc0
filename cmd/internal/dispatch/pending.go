package dispatch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ways/actors/delivery"
	"ways/actors/transcript"
	"ways/hooks/dirs"
	"ways/hooks/spool"
	"ways/metrics/counters"
)

// pendingName is the directory, in the state directory, with a file for each
// session whose dispatcher has not left its spool empty: still running, killed,
// or gone with records undelivered. The file's name is the session's directory,
// its content the session's id, or its name when that looks like a secret.
const pendingName = "pending"

func pendingPath(d dirs.Dirs, session string) string {
	return filepath.Join(d.State, pendingName, dirs.SessionName(session))
}

// markPending notes that a session has something to deliver, also for after a
// power cut.
func markPending(d dirs.Dirs, session string) error {
	path := pendingPath(d, session)
	if err := dirs.MakePrivate(filepath.Dir(path)); err != nil {
		return err
	}
	dirs.Clear(path)
	f, err := dirs.Open(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.WriteString(dirs.SessionLabel(session))
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// clearPending notes that it has not.
func clearPending(d dirs.Dirs, session string) error {
	err := os.Remove(pendingPath(d, session))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// pending lists the sessions that are marked as having something to deliver, by
// the names of their directories. The lock of who drains lies there too; no
// session's name has a dot.
func pending(d dirs.Dirs) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(d.State, pendingName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if !strings.Contains(e.Name(), ".") && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// forgotten lists the sessions without a mark that need a dispatcher: with
// something in their spool, since the hook died before it could start one, or with
// a client that died later and an end that nobody has told. Spools that changed within the
// last while are left to the hooks that are at work there.
func forgotten(d dirs.Dirs, while time.Duration, marked []string) ([]string, error) {
	known := map[string]bool{}
	for _, name := range marked {
		known[name] = true
	}
	entries, err := os.ReadDir(d.Sessions())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		dir := filepath.Join(d.Sessions(), e.Name())
		if known[e.Name()] || !e.IsDir() {
			continue
		}
		n, err := spool.Bytes(dir)
		if err != nil || (n == 0 && !spool.InboxWaiting(dir)) {
			// Its client may have died when its dispatcher had left.
			if err == nil && transcript.Unfinished(dir) {
				names = append(names, e.Name())
			}
			continue
		}
		if quiet, err := spool.Quiet(dir, while); err == nil && quiet {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// errNoID is returned for a spool that does not say whose it is.
var errNoID = errors.New("neither its mark, its counters nor its records say which session's it is")

// sessionOf is the id of the session whose directory has that name: the name
// itself, unless the id was not fit for one. Each place that may know the id is
// believed only if the id leads back to the name.
func sessionOf(d dirs.Dirs, name string) (string, error) {
	if dirs.SessionName(name) == name {
		return name, nil
	}
	if id, err := dirs.ReadFile(filepath.Join(d.State, pendingName, name)); err == nil && dirs.SessionName(string(id)) == name {
		return string(id), nil
	}
	if s, err := counters.NewStore(d.State).Of(name); err == nil && dirs.SessionName(s.Session) == name {
		return s.Session, nil
	}
	r := spool.NewReader(filepath.Join(d.Sessions(), name), spool.Position{})
	defer r.Close()
	for {
		f, err := r.Next()
		var damage *spool.Damage
		switch {
		case errors.As(err, &damage):
		case err != nil:
			return "", errNoID
		default:
			if id := delivery.StringField(f.JSON, "session"); dirs.SessionName(id) == name {
				return id, nil
			}
		}
	}
}
