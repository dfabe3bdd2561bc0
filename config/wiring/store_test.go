package wiring

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// place is a home with a client directory and a state directory of its own.
type place struct {
	t     *testing.T
	store Store
	home  string
	state string
	file  string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	// The real path: on macOS the temporary directory is behind a symlink.
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, home: home, state: filepath.Join(home, "state"), file: filepath.Join(home, ".claude", "settings.json")}
	p.store = NewStore(p.state)
	return p
}

func (p *place) write(path, text string, mode fs.FileMode) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) read(path string) string {
	p.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

func (p *place) install() Outcome {
	p.t.Helper()
	out, err := p.store.Install(p.t.Context(), p.file, Sensors(waysPath), false)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

func (p *place) uninstall() Outcome {
	p.t.Helper()
	out, err := p.store.Uninstall(p.t.Context(), p.file, false)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

// names lists a directory.
func (p *place) names(dir string) []string {
	p.t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		p.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// expect fails when a wired file is not that of original with our entry.
func (p *place) expectWired(original string) {
	p.t.Helper()
	want, err := Apply([]byte(original), Sensors(waysPath))
	if err != nil {
		p.t.Fatal(err)
	}
	if got := p.read(p.file); got != string(want.Settings) {
		p.t.Fatalf("wired file:\n%s\nwant\n%s", got, want.Settings)
	}
}

func TestInstallAndUninstallGiveBackTheFile(t *testing.T) {
	for name, original := range originals() {
		// Both ways back: the kept original, and the cut when the ledger's hash
		// no longer fits.
		for _, way := range []string{"restore", "cut"} {
			t.Run(name+"/"+way, func(t *testing.T) {
				p := newPlace(t)
				p.write(p.file, original, 0o640)
				first := p.install()
				p.expectWired(original)
				if !first.Changed || len(first.Added) != 10 || string(first.Before) != original {
					t.Fatalf("%+v", first)
				}
				if got := p.read(first.Backup); got != original {
					t.Errorf("the backup holds %q", got)
				}
				second := p.install()
				if second.Changed || second.Backup != "" {
					t.Errorf("twice is not once: %+v", second)
				}
				if way == "cut" {
					ledger := p.store.load(first.Real)
					ledger.Result = "of another file"
					if err := p.store.save(first.Real, *ledger); err != nil {
						t.Fatal(err)
					}
				}
				gone := p.uninstall()
				if got := p.read(p.file); got != original {
					t.Errorf("after Uninstall %q, want %q", got, original)
				}
				if gone.Restored != (way == "restore") || len(gone.Removed) != 10 {
					t.Errorf("%+v", gone)
				}
				info, err := os.Stat(p.file)
				if err != nil || info.Mode() != 0o640 {
					t.Errorf("mode %v %v", info.Mode(), err)
				}
				if got := p.names(filepath.Dir(p.file)); !slices.Equal(got, []string{"settings.json"}) {
					t.Errorf("the client's directory holds %v", got)
				}
				if again := p.uninstall(); again.Changed {
					t.Errorf("the second Uninstall changed something")
				}
				if p.store.load(first.Real) != nil {
					t.Error("a ledger is left")
				}
			})
		}
	}
}

func TestInstallMakesTheFileAndUninstallRemovesIt(t *testing.T) {
	for _, row := range []struct {
		name string
		dirs []string // made before
		edit func(p *place)
		left []string // in home afterwards, beside state
	}{
		{"nothing there", nil, func(*place) {}, nil},
		{"directory there", []string{".claude"}, func(*place) {}, []string{".claude"}},
		{"directory used since", nil, func(p *place) {
			p.write(filepath.Join(p.home, ".claude", "history"), "x", 0o600)
		}, []string{".claude"}},
		{"saved again by the client", nil, func(p *place) {
			var compact bytes.Buffer
			if err := json.Compact(&compact, []byte(p.read(p.file))); err != nil {
				p.t.Fatal(err)
			}
			p.write(p.file, compact.String(), 0o600)
		}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newPlace(t)
			for _, dir := range row.dirs {
				if err := os.Mkdir(filepath.Join(p.home, dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			out := p.install()
			if out.Before != nil || out.Backup != "" || !out.Changed {
				t.Errorf("%+v", out)
			}
			p.expectWired("")
			for path, want := range map[string]fs.FileMode{p.file: 0o600, filepath.Join(p.state, "wiring"): fs.ModeDir | 0o700} {
				if info, err := os.Stat(path); err != nil || info.Mode() != want {
					t.Errorf("%s: %v %v", path, info, err)
				}
			}
			if row.dirs == nil {
				if info, err := os.Stat(filepath.Dir(p.file)); err != nil || info.Mode().Perm() != 0o700 {
					t.Errorf("%v %v", info, err)
				}
			}
			row.edit(p)
			gone := p.uninstall()
			if gone.After != nil || !gone.Restored {
				t.Errorf("%+v", gone)
			}
			if got, want := p.names(p.home), append(slices.Clone(row.left), "state"); !slices.Equal(got, want) {
				t.Errorf("home holds %v, want %v", got, want)
			}
			if _, err := os.Lstat(p.file); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the file is still there: %v", err)
			}
		})
	}
}

// A file that we made, and that its user has put something in, stays with that.
func TestUninstallKeepsWhatWasAddedToAFileWeMade(t *testing.T) {
	p := newPlace(t)
	p.install()
	p.write(p.file, strings.Replace(p.read(p.file), "{\n", "{\n  \"model\": \"opus\",\n", 1), 0o600)
	p.uninstall()
	if got, want := p.read(p.file), "{\n  \"model\": \"opus\"\n}\n"; got != want {
		t.Errorf("left %q, want %q", got, want)
	}
}

func TestUninstallAfterAnEditCutsOurEntryAlone(t *testing.T) {
	p := newPlace(t)
	p.write(p.file, "{\n  \"hooks\": { },\n  \"a\": 1\n}\n", 0o600)
	p.install()
	p.write(p.file, strings.Replace(p.read(p.file), `"a": 1`, `"a": 2`, 1), 0o600)
	out := p.uninstall()
	if got, want := p.read(p.file), "{\n  \"hooks\": { },\n  \"a\": 2\n}\n"; got != want || out.Restored {
		t.Errorf("left %q, want %q", got, want)
	}
}

// A newer ways at another path updates the entry; removing still leads back to
// the bytes from before the first install.
func TestUpgradeThenUninstall(t *testing.T) {
	for _, edited := range []bool{false, true} {
		p := newPlace(t)
		original := "{\n\t\"hooks\": {\n\t\t\"Stop\": [ ]\n\t}\n}"
		p.write(p.file, original, 0o600)
		if _, err := p.store.Install(t.Context(), p.file, Sensors("/older/ways"), false); err != nil {
			t.Fatal(err)
		}
		if edited {
			p.write(p.file, p.read(p.file)+"\n", 0o600)
			original += "\n"
		}
		out := p.install()
		if out.Added != nil || len(out.Updated) != 10 {
			t.Errorf("%+v", out)
		}
		if gone := p.uninstall(); gone.Restored == edited {
			t.Errorf("edited %v, restored %v", edited, gone.Restored)
		}
		if got := p.read(p.file); got != original {
			t.Errorf("edited %v: left %q, want %q", edited, got, original)
		}
	}
}

// An entry from before there was a ledger (written by hand, say) goes too, and
// the original that held it is not brought back.
func TestUninstallNeverBringsBackAnOldEntry(t *testing.T) {
	p := newPlace(t)
	p.write(p.file, `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"ways hook sensors"}]}]},"a":1}`, 0o600)
	p.install()
	p.uninstall()
	if got := p.read(p.file); got != `{"a":1}` {
		t.Errorf("left %s", got)
	}
}

func TestUninstallWithoutLedger(t *testing.T) {
	p := newPlace(t)
	original := originals()["foreign hooks"]
	p.write(p.file, original, 0o600)
	p.install()
	if err := os.RemoveAll(p.state); err != nil {
		t.Fatal(err)
	}
	p.uninstall()
	if got := p.read(p.file); got != original {
		t.Errorf("left %s", got)
	}
}

// A ledger that was damaged is no help, and no harm.
func TestUninstallWithADamagedLedger(t *testing.T) {
	for _, extension := range []string{".json", ".original"} {
		p := newPlace(t)
		original := originals()["foreign hooks"]
		p.write(p.file, original, 0o600)
		out := p.install()
		p.write(p.store.file(out.Real, extension), "{", 0o600)
		if gone := p.uninstall(); gone.Restored {
			t.Errorf("%s: restored from damage", extension)
		}
		if got := p.read(p.file); got != original {
			t.Errorf("%s: left %s", extension, got)
		}
	}
}

func TestSymlinksAreFollowedAndKept(t *testing.T) {
	for _, row := range []struct {
		name string
		link func(p *place, real string)
	}{
		{"file", func(p *place, real string) {
			p.write(real, "{}\n", 0o644)
			p.symlink("../dotfiles/claude/settings.json", p.file)
		}},
		{"two links", func(p *place, real string) {
			p.write(real, "{}\n", 0o644)
			p.symlink("settings.json", filepath.Join(p.home, "dotfiles", "claude", "link.json"))
			p.symlink("../dotfiles/claude/link.json", p.file)
		}},
		{"directory", func(p *place, real string) {
			p.write(real, "{}\n", 0o644)
			if err := os.Symlink("dotfiles/claude", filepath.Join(p.home, ".claude")); err != nil {
				p.t.Fatal(err)
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newPlace(t)
			real := filepath.Join(p.home, "dotfiles", "claude", "settings.json")
			row.link(p, real)
			before := p.links()
			out := p.install()
			if out.Real != real || out.File != p.file {
				t.Errorf("file %s, real %s", out.File, out.Real)
			}
			p.expectWired("{}\n")
			if info, err := os.Lstat(real); err != nil || info.Mode() != 0o644 {
				t.Errorf("%v %v", info, err)
			}
			p.uninstall()
			if got := p.read(real); got != "{}\n" {
				t.Errorf("left %q", got)
			}
			if after := p.links(); !slices.Equal(before, after) {
				t.Errorf("links %v, were %v", after, before)
			}
		})
	}
}

func (p *place) symlink(to, at string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Symlink(to, at); err != nil {
		p.t.Fatal(err)
	}
}

// links lists every symlink in the home and where it leads.
func (p *place) links() []string {
	p.t.Helper()
	var list []string
	err := filepath.WalkDir(p.home, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type() == fs.ModeSymlink {
			to, err := os.Readlink(path)
			list = append(list, path+" -> "+to)
			return err
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return list
}

func TestAHardLinkedFileStaysLinked(t *testing.T) {
	p := newPlace(t)
	other := filepath.Join(p.home, "dotfiles.json")
	long := `{"a":"` + strings.Repeat("x", 10_000) + `"}`
	p.write(p.file, long, 0o644)
	if err := os.Link(p.file, other); err != nil {
		t.Fatal(err)
	}
	p.install()
	p.expectWired(long)
	if p.read(other) != p.read(p.file) {
		t.Error("the other name shows another file")
	}
	p.uninstall()
	if p.read(other) != long || p.read(p.file) != long {
		t.Error("not as before")
	}
}

func TestModeAndOwnerAreKept(t *testing.T) {
	for _, mode := range []fs.FileMode{0o600, 0o640, 0o644, 0o664, 0o755} {
		p := newPlace(t)
		p.write(p.file, "{}", mode)
		uid, gid := os.Getuid(), os.Getgid()
		if uid == 0 { // only root can give a file away
			uid, gid = 1234, 2345
			if err := os.Chown(p.file, uid, gid); err != nil {
				t.Fatal(err)
			}
		}
		p.install()
		info, err := os.Stat(p.file)
		if err != nil {
			t.Fatal(err)
		}
		st := info.Sys().(*syscall.Stat_t)
		if info.Mode() != mode || int(st.Uid) != uid || int(st.Gid) != gid {
			t.Errorf("mode %v uid %d gid %d, want %v %d %d", info.Mode(), st.Uid, st.Gid, mode, uid, gid)
		}
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	for _, row := range []struct {
		name  string
		setup func(p *place)
		says  string
	}{
		{"comment", func(p *place) { p.write(p.file, "{\n  // x\n}\n", 0o600) }, "line 2, column 3: there is a comment"},
		{"BOM", func(p *place) { p.write(p.file, "\ufeff{}", 0o600) }, "byte order mark"},
		{"broken", func(p *place) { p.write(p.file, "{", 0o600) }, "ends too early"},
		{"too large", func(p *place) { p.write(p.file, strings.Repeat(" ", MaxSize+1), 0o600) }, "larger than 10 MiB"},
		{"read-only", func(p *place) { p.write(p.file, "{}", 0o444) }, "read-only"},
		{"unreadable", func(p *place) { p.write(p.file, "{}", 0o200) }, "cannot be read"},
		{"directory", func(p *place) {
			if err := os.MkdirAll(p.file, 0o755); err != nil {
				p.t.Fatal(err)
			}
		}, "a directory"},
		{"FIFO", func(p *place) {
			if err := os.MkdirAll(filepath.Dir(p.file), 0o755); err != nil {
				p.t.Fatal(err)
			}
			if err := syscall.Mkfifo(p.file, 0o600); err != nil {
				p.t.Fatal(err)
			}
		}, "not a regular file"},
		{"device", func(p *place) { p.symlink("/dev/null", p.file) }, "not a regular file"},
		{"dangling symlink", func(p *place) { p.symlink("/nowhere/settings.json", p.file) }, "symlink to /nowhere/settings.json, which does not exist"},
		{"dangling directory", func(p *place) { p.symlink("/nowhere", filepath.Dir(p.file)) }, "cannot be reached"},
		{"symlink loop", func(p *place) { p.symlink("settings.json", p.file) }, "cannot be reached"},
		{"file in the directory's place", func(p *place) { p.write(filepath.Dir(p.file), "x", 0o600) }, "cannot be reached"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newPlace(t)
			row.setup(p)
			before := p.stat()
			for _, preview := range []bool{true, false} {
				_, err := p.store.Install(t.Context(), p.file, Sensors(waysPath), preview)
				if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), row.says) || !strings.HasPrefix(err.Error(), p.file+": ") {
					t.Errorf("preview %v: %v, want %q", preview, err, row.says)
				}
			}
			if after := p.stat(); before != after {
				t.Errorf("it was touched: %s, was %s", after, before)
			}
			if _, err := os.Stat(p.store.file(p.file, ".backup")); err == nil {
				t.Error("a backup of a file that was refused")
			}
		})
	}
}

func (p *place) stat() string {
	info, err := os.Lstat(p.file)
	if err != nil {
		return "absent"
	}
	return info.Mode().String() + " " + info.ModTime().String() + " " + strconv.FormatInt(info.Size(), 10)
}

func TestPreviewTouchesNothing(t *testing.T) {
	p := newPlace(t)
	out, err := p.store.Install(t.Context(), p.file, Sensors(waysPath), true)
	if err != nil || !out.Changed || out.Before != nil || out.After == nil {
		t.Errorf("%+v %v", out, err)
	}
	if got := p.names(p.home); got != nil {
		t.Errorf("made %v", got)
	}
	p.write(p.file, "{}", 0o600)
	p.install()
	was, state := p.stat(), p.names(filepath.Join(p.state, "wiring"))
	out, err = p.store.Uninstall(t.Context(), p.file, true)
	if err != nil || !out.Changed || string(out.After) != "{}" {
		t.Errorf("%+v %v", out, err)
	}
	if p.stat() != was || !slices.Equal(p.names(filepath.Join(p.state, "wiring")), state) {
		t.Error("a preview of the removal touched something")
	}
}

// Another program saves the file between our reading and writing: its change
// stays, and ours is made on top.
func TestAChangeByAnotherProgramIsNotLost(t *testing.T) {
	for _, row := range []struct {
		name   string
		before string // "" for no file
		other  func(p *place)
		want   string
	}{
		{"saved in place", "{}", func(p *place) { p.write(p.file, `{"a":1}`, 0o600) }, `{"a":1}`},
		{"saved by rename", "{}", func(p *place) {
			p.write(p.file+".new", `{"a":1}`, 0o600)
			if err := os.Rename(p.file+".new", p.file); err != nil {
				p.t.Fatal(err)
			}
		}, `{"a":1}`},
		{"same bytes, other file", "{}", func(p *place) {
			p.write(p.file+".new", "{}", 0o600)
			if err := os.Rename(p.file+".new", p.file); err != nil {
				p.t.Fatal(err)
			}
		}, "{}"},
		{"made meanwhile", "", func(p *place) { p.write(p.file, `{"a":1}`, 0o600) }, `{"a":1}`},
		{"deleted meanwhile", "{}", func(p *place) {
			if err := os.Remove(p.file); err != nil {
				p.t.Fatal(err)
			}
		}, ""},
		{"turned into a symlink", "{}", func(p *place) {
			p.write(filepath.Join(p.home, "real.json"), `{"a":1}`, 0o600)
			if err := os.Remove(p.file); err != nil {
				p.t.Fatal(err)
			}
			p.symlink("../real.json", p.file)
		}, `{"a":1}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newPlace(t)
			if row.before != "" {
				p.write(p.file, row.before, 0o600)
			}
			times := 0
			p.store.beforeWrite = func() {
				if times++; times == 1 {
					row.other(p)
				}
			}
			p.install()
			if times != 2 {
				t.Errorf("written after %d readings, want 2", times)
			}
			p.expectWired(row.want)
			p.store.beforeWrite = func() {}
			p.uninstall()
			got, err := os.ReadFile(p.file)
			if row.want == "" {
				if !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("left %q, %v", got, err)
				}
			} else if err != nil || string(got) != row.want {
				t.Errorf("left %q, %v", got, err)
			}
		})
	}
}

func TestAFileThatNeverRestsIsLeftAlone(t *testing.T) {
	p := newPlace(t)
	p.write(p.file, "{}", 0o600)
	n := 0
	p.store.beforeWrite = func() {
		n++
		p.write(p.file, `{"n":`+strconv.Itoa(n)+`}`, 0o600)
	}
	_, err := p.store.Install(t.Context(), p.file, Sensors(waysPath), false)
	if !errors.Is(err, ErrWrite) || n != attempts {
		t.Errorf("%v after %d readings", err, n)
	}
	if got := p.read(p.file); got != `{"n":5}` {
		t.Errorf("left %s", got)
	}
	if got := p.names(filepath.Dir(p.file)); !slices.Equal(got, []string{"settings.json"}) {
		t.Errorf("left %v", got)
	}
}

func TestTwoReconcilesAtOnce(t *testing.T) {
	p := newPlace(t)
	original := originals()["foreign hooks"]
	p.write(p.file, original, 0o600)
	var changed [16]bool
	var all sync.WaitGroup
	for i := range changed {
		all.Go(func() {
			out, err := p.store.Install(t.Context(), p.file, Sensors(waysPath), false)
			if err != nil {
				t.Error(err)
			}
			changed[i] = out.Changed
		})
	}
	all.Wait()
	n := 0
	for _, c := range changed {
		if c {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d of 16 changed the file", n)
	}
	p.expectWired(original)
	p.uninstall()
	if got := p.read(p.file); got != original {
		t.Errorf("left %s", got)
	}
}

func TestALockHeldByAnotherReconcile(t *testing.T) {
	p := newPlace(t)
	p.write(p.file, "{}", 0o600)
	unlock, err := p.store.lock(t.Context(), p.file)
	if err != nil {
		t.Fatal(err)
	}
	impatient := p.store
	impatient.lockWait = time.Millisecond
	_, err = impatient.Install(t.Context(), p.file, Sensors(waysPath), false)
	if !errors.Is(err, ErrWrite) || !strings.Contains(err.Error(), "another reconcile") {
		t.Errorf("%v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = p.store.Install(ended, p.file, Sensors(waysPath), false); !errors.Is(err, ErrWrite) {
		t.Errorf("%v", err)
	}
	if got := p.read(p.file); got != "{}" {
		t.Errorf("left %s", got)
	}
	unlock()
	p.install()
}

func TestAStateDirectoryThatCannotBeMade(t *testing.T) {
	p := newPlace(t)
	p.write(p.file, "{}", 0o600)
	p.write(p.state, "a file", 0o600)
	_, err := p.store.Install(t.Context(), p.file, Sensors(waysPath), false)
	if !errors.Is(err, ErrWrite) {
		t.Errorf("%v", err)
	}
	if got := p.read(p.file); got != "{}" {
		t.Errorf("left %s", got)
	}
}

func TestSettingsFile(t *testing.T) {
	for _, row := range []struct{ config, home, want, says string }{
		{"", "/home/u", "/home/u/.claude/settings.json", ""},
		{"/cfg", "/home/u", "/cfg/settings.json", ""},
		{"/cfg/", "", "/cfg/settings.json", ""},
		{"", "", "", "neither CLAUDE_CONFIG_DIR nor HOME is set"},
		{"", "home", "", `HOME is "home"`},
		{"cfg", "/home/u", "", `CLAUDE_CONFIG_DIR is "cfg"`},
		{"~/cfg", "/home/u", "", `CLAUDE_CONFIG_DIR is "~/cfg"`},
	} {
		got, err := SettingsFile(func(name string) string {
			return map[string]string{"CLAUDE_CONFIG_DIR": row.config, "HOME": row.home}[name]
		})
		if got != row.want || (row.says == "") != (err == nil) {
			t.Errorf("%+v: %q %v", row, got, err)
		}
		if err != nil && (!errors.Is(err, ErrNoClientDir) || !strings.Contains(err.Error(), row.says)) {
			t.Errorf("%+v: %v", row, err)
		}
	}
}

// What a killed reconcile left, which may hold keys, goes with the next one, also
// when that one has nothing to change; a preview touches nothing.
func TestUnfinishedFilesGo(t *testing.T) {
	p := newPlace(t)
	p.write(p.file, "{}", 0o600)
	p.install()
	left := []string{filepath.Join(filepath.Dir(p.file), ".ways-17.tmp"), filepath.Join(p.state, "wiring", ".ways-18.tmp")}
	for _, path := range left {
		p.write(path, `{"env":{"TOKEN":"`, 0o600)
	}
	if _, err := p.store.Install(t.Context(), p.file, Sensors(waysPath), true); err != nil {
		t.Fatal(err)
	}
	for _, path := range left {
		p.read(path)
	}
	if out := p.install(); out.Changed {
		t.Errorf("%+v", out)
	}
	for _, path := range left {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
}
