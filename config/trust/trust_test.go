package trust

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestNotes(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	project := filepath.Join(root, "app")
	if err := os.Mkdir(project, 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(root, "link")
	if err := os.Symlink("app", link); err != nil {
		t.Fatal(err)
	}
	n := Notes{State: filepath.Join(root, "state")}
	at := time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)
	first := Files{"/a": Sum([]byte("a")), "/b": Sum([]byte("b"))}
	if got := n.Changes(project, first); got != nil {
		t.Errorf("without a note: %v", got)
	}
	if err := n.Keep(project, first, at); err != nil {
		t.Fatal(err)
	}
	later := Files{"/a": Sum([]byte("A")), "/c": Sum([]byte("c"))}
	// A note that is there stays, whatever is seen later.
	if err := n.Keep(project, later, at.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := n.Changes(link, first); got != nil {
		t.Errorf("unchanged, by another name: %v", got)
	}
	got := n.Changes(project, later)
	want := []string{
		`/a: warning: has changed since 2026-03-04T05:06:07Z, when you trusted the project: last seen as ca978112ca1b, now 559aead08264; it is in force; look at it; if you trust it as it is, run: ways sensors trust --project ` + project,
		"/b: warning: is gone since 2026-03-04T05:06:07Z, when you trusted the project",
		"/c: warning: is new since 2026-03-04T05:06:07Z, when you trusted the project; it is in force",
	}
	if len(got) != len(want) {
		t.Fatalf("%v", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i].String(), want[i]) {
			t.Errorf("%s\nwant %s", got[i], want[i])
		}
	}
	if err := n.Save(project, later, at); err != nil {
		t.Fatal(err)
	}
	if got := n.Changes(project, later); got != nil {
		t.Errorf("acknowledged: %v", got)
	}
	if err := errors.Join(n.Forget(link), n.Forget(link)); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Of(project); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("forgotten: %v", err)
	}
}

// A damaged note is a change: nobody who spoils it is rid of the warning.
func TestDamagedNote(t *testing.T) {
	project := t.TempDir()
	n := Notes{State: filepath.Join(t.TempDir(), "state")}
	if err := n.Save(project, Files{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	path, err := n.path(project)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := n.Keep(project, Files{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := n.Changes(project, Files{}); len(got) != 1 || !strings.Contains(got[0].Message, "is damaged") {
		t.Errorf("%v", got)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestCommand(t *testing.T) {
	for project, want := range map[string]string{
		"/home/you/src/app-1.0": "ways sensors trust --project /home/you/src/app-1.0",
		"/a b":                  "ways sensors trust --project '/a b'",
		"/$(reboot)":            "ways sensors trust --project '/$(reboot)'",
		"/it's":                 `ways sensors trust --project '/it'\''s'`,
		"/é":                    "ways sensors trust --project '/é'",
		"":                      "ways sensors trust --project ''",
	} {
		if got := Command(project); got != want {
			t.Errorf("%q: %s", project, got)
		}
	}
}

func TestNoState(t *testing.T) {
	if got := (Notes{}).Changes(t.TempDir(), Files{"/a": "x"}); got != nil {
		t.Errorf("%v", got)
	}
}

// A note that a killed process had begun goes with the next one.
func TestUnfinishedNotesGo(t *testing.T) {
	state, project := t.TempDir(), t.TempDir()
	n := Notes{State: state}
	path, err := n.path(project)
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(filepath.Dir(path), ".ways-17.tmp")
	if err := errors.Join(os.MkdirAll(filepath.Dir(left), 0o700), os.WriteFile(left, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := n.Keep(project, Files{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", left, err)
	}
}
