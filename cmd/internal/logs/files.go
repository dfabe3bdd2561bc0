package logs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ways/cmd/internal/dispatch"
	"ways/hooks/dirs"
	"ways/hooks/tally"
)

// live are the names of the logs in a session's directory.
func live() []string { return []string{dispatch.LogName, dispatch.BlockLogName} }

// sessionLogs lists the logs in a session's directory, those put aside included.
func sessionLogs(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var paths []string
	for _, e := range entries {
		for _, name := range live() {
			stem, ext := strings.TrimSuffix(name, ".log"), ".log"
			if e.Name() == name || strings.HasPrefix(e.Name(), stem+"-") && strings.HasSuffix(e.Name(), ext) {
				paths = append(paths, filepath.Join(dir, e.Name()))
			}
		}
	}
	return paths, err
}

// hookLogs are the logs of what hooks refused.
func hookLogs(d dirs.Dirs) []string {
	return []string{tally.LogPath(d) + ".1", tally.LogPath(d)}
}

// sessionDirs lists the directories of sessions, or the one of a session.
func sessionDirs(d dirs.Dirs, only string) ([]string, error) {
	if only != "" {
		return []string{d.Session(only)}, nil
	}
	entries, err := os.ReadDir(d.Sessions())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []string
	for _, e := range entries {
		if e.IsDir() {
			all = append(all, filepath.Join(d.Sessions(), e.Name()))
		}
	}
	return all, err
}
