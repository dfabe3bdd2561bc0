package wiring

import (
	"errors"
	"fmt"
	"path/filepath"
)

// ErrNoClientDir is matched by the error for an environment that does not say
// where the client keeps its settings.
var ErrNoClientDir = errors.New("cannot tell where the client keeps its settings")

// SettingsFile is the client's user settings file: settings.json in
// CLAUDE_CONFIG_DIR, else in .claude under HOME. It need not exist.
func SettingsFile(getenv func(string) string) (string, error) {
	dir := getenv("CLAUDE_CONFIG_DIR")
	if dir == "" {
		home := getenv("HOME")
		if home == "" {
			return "", fmt.Errorf("%w: neither CLAUDE_CONFIG_DIR nor HOME is set; set one, or name the file with --settings", ErrNoClientDir)
		}
		if !filepath.IsAbs(home) {
			return "", fmt.Errorf("%w: HOME is %q, not an absolute path; correct it, or name the file with --settings", ErrNoClientDir, home)
		}
		dir = filepath.Join(home, ".claude")
	}
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("%w: CLAUDE_CONFIG_DIR is %q, not an absolute path, so it means another directory wherever the client starts; make it absolute, or name the file with --settings", ErrNoClientDir, dir)
	}
	return filepath.Join(dir, "settings.json"), nil
}
