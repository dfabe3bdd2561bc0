package logfile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"
)

// TestWhatLiesInTheLogsPlace neither holds the process nor is written to under
// another name: the log is a new file.
func TestWhatLiesInTheLogsPlace(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	for name, row := range map[string]struct {
		put  func(path string) error
		says string
	}{
		"nothing":     {func(string) error { return nil }, ""},
		"a log":       {func(p string) error { return os.WriteFile(p, []byte("before\n"), 0o600) }, "before"},
		"a FIFO":      {func(p string) error { return syscall.Mkfifo(p, 0o600) }, ""},
		"a symlink":   {func(p string) error { return os.Symlink(elsewhere, p) }, ""},
		"a hard link": {func(p string) error { return os.Link(elsewhere, p) }, "a hard link, which keeps it"},
	} {
		if err := os.WriteFile(elsewhere, []byte("kept\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "dispatcher.log")
		if err := row.put(path); err != nil {
			t.Fatal(err)
		}
		log := File{Path: path, Megabytes: 1, Backups: 1}.Open(zerolog.InfoLevel)
		log.Info().Msg("a line")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		if last := lines[len(lines)-1]; !strings.Contains(last, `"message":"a line"`) {
			t.Errorf("%s: the log ends with %s", name, last)
		}
		if row.says == "" && len(lines) != 1 || row.says != "" && (len(lines) != 2 || !strings.Contains(lines[0], row.says)) {
			t.Errorf("%s: the log holds %q", name, lines)
		}
		if got, err := os.ReadFile(elsewhere); string(got) != "kept\n" || err != nil {
			t.Errorf("%s: elsewhere holds %q, %v", name, got, err)
		}
	}
}
