package dispatch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"ways/hooks/dirs"
)

// Marked lists, by the names of their directories, the sessions whose dispatcher
// has not left an empty spool behind: it runs, was killed, or left records.
func Marked(d dirs.Dirs) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(d.State, pendingName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if !strings.Contains(e.Name(), ".") { // a lock
			names = append(names, e.Name())
		}
	}
	return names, err
}
