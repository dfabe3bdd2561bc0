package dispatch

import (
	"errors"
	"os"
	"path/filepath"

	"ways/hooks/dirs"
)

// pendingName is the directory, in the state directory, with a file for each
// session whose dispatcher has not left its spool empty: still running, killed,
// or gone with records undelivered. The file's name is the session's directory,
// its content the session's id.
const pendingName = "pending"

func pendingPath(d dirs.Dirs, session string) string {
	return filepath.Join(d.State, pendingName, dirs.SessionName(session))
}

// markPending notes that a session has something to deliver.
func markPending(d dirs.Dirs, session string) error {
	path := pendingPath(d, session)
	if err := dirs.MakePrivate(filepath.Dir(path)); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(session), 0o600)
}

// clearPending notes that it has not.
func clearPending(d dirs.Dirs, session string) error {
	err := os.Remove(pendingPath(d, session))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// pending lists the sessions that have something to deliver, by id.
func pending(d dirs.Dirs) ([]string, error) {
	dir := filepath.Join(d.State, pendingName)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var ids []string
	for _, e := range entries {
		id, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err == nil && len(id) > 0 {
			ids = append(ids, string(id))
		}
	}
	return ids, err
}
