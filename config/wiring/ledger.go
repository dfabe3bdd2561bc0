package wiring

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"ways/hooks/dirs"
	"ways/hooks/temp"
)

// ledger is what an install left behind in our state directory, so that Remove
// can give back what was there before. One per settings file, named by a hash
// of the real file's path:
//
//	<hash>.json      the ledger
//	<hash>.original  the settings before the install
//	<hash>.backup    the settings before the latest change of ours
//	<hash>.lock      held while a change is made; never deleted
//
// All are 0600: settings may hold keys.
type ledger struct {
	// File is the settings file, for a person who reads the ledger.
	File string `json:"file"`
	// Result is the SHA-256 of what the install wrote. While the file still is
	// that, removing is restoring the original.
	Result string `json:"result"`
	// Original is the SHA-256 of <hash>.original.
	Original string `json:"original"`
	// Exact is false when the original held an entry of ours already.
	Exact bool `json:"exact"`
	// Made is true when there was no settings file.
	Made bool `json:"made,omitempty"`
	// MadeDirs are the directories made for it, outermost first.
	MadeDirs []string `json:"made_dirs,omitempty"`
	Undo     Undo     `json:"undo"`

	original []byte
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// file is the path of one of our files for a settings file.
func (s Store) file(real, extension string) string {
	return filepath.Join(s.dir, sum([]byte(real))[:32]+extension)
}

// load reads the ledger of a settings file; nil when there is none, or when it
// does not hold together. It is a help for Remove, never a condition.
func (s Store) load(real string) *ledger {
	text, err := dirs.ReadFile(s.file(real, ".json"))
	if err != nil {
		return nil
	}
	var l ledger
	if json.Unmarshal(text, &l) != nil {
		return nil
	}
	l.original, err = dirs.ReadFile(s.file(real, ".original"))
	if err != nil || sum(l.original) != l.Original {
		l.original, l.Exact = nil, false
	}
	return &l
}

func (s Store) save(real string, l ledger) error {
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the ledger: %w", err)
	}
	if err := replaceOwn(s.file(real, ".original"), l.original); err != nil {
		return err
	}
	return replaceOwn(s.file(real, ".json"), append(text, '\n'))
}

func (s Store) drop(real string) error {
	var failed error
	for _, extension := range []string{".json", ".original"} {
		if err := os.Remove(s.file(real, extension)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// replaceOwn writes one of our own files, whole or not at all.
func replaceOwn(path string, text []byte) error {
	if err := temp.Write(path, text, true); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// writeTemp makes a synced file, 0600, beside the one it is to replace.
func writeTemp(dir string, text []byte) (*os.File, error) {
	f, err := temp.Create(dir)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		temp.Discard(f)
		return nil, err
	}
	return f, nil
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	// Some file systems cannot sync a directory; the file itself is synced.
	_ = f.Sync()
	return f.Close()
}
