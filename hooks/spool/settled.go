package spool

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Settled reports whether nothing came into a session's spool since its
// positions were saved last, as far as two or three stats can tell: it never says
// so wrongly, and says no when both happened within one tick of the clock. It says
// nothing of a dispatcher that was killed: there positions were saved with records
// waiting.
func Settled(dir string) bool {
	saved, err := os.Lstat(filepath.Join(dir, cursorsName))
	if err != nil {
		return false
	}
	for _, name := range []string{lockName, inboxName} {
		info, err := os.Lstat(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || !info.ModTime().Before(saved.ModTime()) {
			return false
		}
	}
	return true
}
