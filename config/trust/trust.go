// Package trust remembers what the sensor files of a trusted project were when
// the user trusted it, so that a later change of them shows. The rule: the user
// trusts a project by listing it (ways.project_sensors); what its files are at the
// first compilation after that, or at `ways sensors trust`, is noted; while they
// differ from the note they are used all the same, and every lint and status says
// so. The note is renewed by `ways sensors trust`, or by taking the project off the
// list and putting it back.
package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ways/config/problem"
	"ways/hooks/dirs"
	"ways/hooks/temp"
)

// Files are the sensor files of a project by path, each with Sum of its content.
type Files map[string]string

// Sum is the hash that a note holds: SHA-256, in hexadecimal.
func Sum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Note is what a project's files were.
type Note struct {
	Project string    `json:"project"`
	Noted   time.Time `json:"noted"`
	Files   Files     `json:"files"`
}

// Notes are the notes in a state directory; empty for none kept.
type Notes struct{ State string }

// dirName is the directory of the notes in the state directory.
const dirName = "trust"

// path names a project's note by a hash of its resolved path: a project that is
// reached by two names is one.
func (n Notes) path(project string) (string, error) {
	real, err := filepath.EvalSymlinks(project)
	if err != nil {
		return "", fmt.Errorf("resolving the project: %w", err)
	}
	return filepath.Join(n.State, dirName, Sum([]byte(real))[:32]+".json"), nil
}

// Of returns a project's note. The error is fs.ErrNotExist when there is none; a
// note that cannot be read is one that fits nothing.
func (n Notes) Of(project string) (Note, error) {
	if n.State == "" {
		return Note{}, fs.ErrNotExist
	}
	path, err := n.path(project)
	if err != nil {
		return Note{}, err
	}
	data, err := dirs.ReadFile(path)
	if err != nil {
		return Note{}, err
	}
	var note Note
	if err := json.Unmarshal(data, &note); err != nil {
		return Note{}, fmt.Errorf("the note %s is damaged: %w", path, err)
	}
	return note, nil
}

// Save notes what a project's files are, in the place of an older note.
func (n Notes) Save(project string, files Files, now time.Time) error {
	path, err := n.path(project)
	if err != nil {
		return err
	}
	for _, dir := range []string{n.State, filepath.Dir(path)} {
		if err := dirs.MakePrivate(dir); err != nil {
			return err
		}
	}
	data, err := json.Marshal(Note{Project: project, Noted: now.UTC().Truncate(time.Second), Files: files})
	if err != nil {
		return err
	}
	return temp.Write(path, data, false)
}

// Keep notes the files of a trusted project that has no note yet.
func (n Notes) Keep(project string, files Files, now time.Time) error {
	if _, err := n.Of(project); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return n.Save(project, files, now)
}

// Forget drops the note of a project that the user does not list any more.
func (n Notes) Forget(project string) error {
	path, err := n.path(project)
	if err != nil {
		return nil // it is gone, and trusted by nobody
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Command is what a user types to trust a project as it is now.
func Command(project string) string {
	word := project
	if strings.Trim(strings.ToLower(word), "abcdefghijklmnopqrstuvwxyz0123456789/._-+,@%") != "" || word == "" {
		word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return "ways sensors trust --project " + word
}

// Changes says how a trusted project's files differ from its note; nothing when
// there is no note.
func (n Notes) Changes(project string, files Files) []problem.Problem {
	note, err := n.Of(project)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var found []problem.Problem
	say := func(path, message string) {
		found = append(found, problem.Problem{
			File: path, Severity: problem.Warning, Message: message,
			Suggestion: "look at it; if you trust it as it is, run: " + Command(project),
		})
	}
	if err != nil {
		say(project, "nobody can say whether its sensor files changed since you trusted it: "+err.Error())
		return found
	}
	since := "since " + note.Noted.Format(time.RFC3339)
	for path, sum := range files {
		switch was, ok := note.Files[path]; {
		case !ok:
			say(path, "is new "+since+", when you trusted the project; it is in force")
		case was != sum:
			say(path, fmt.Sprintf("has changed %s, when you trusted the project: last seen as %.12s, now %.12s; it is in force", since, was, sum))
		}
	}
	for path := range note.Files {
		if _, ok := files[path]; !ok {
			say(path, "is gone "+since+", when you trusted the project")
		}
	}
	slices.SortFunc(found, func(a, b problem.Problem) int {
		if a.File < b.File {
			return -1
		}
		return 1
	})
	return found
}
