package dirs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestFrom(t *testing.T) {
	for _, row := range []struct {
		name string
		env  map[string]string
		want Dirs
		err  error
	}{
		{"home alone", map[string]string{"HOME": "/h"}, Dirs{"/h", "/h/.config/agent-ways", "/h/.local/state/agent-ways", "/h/.cache/agent-ways"}, nil},
		{"all set", map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s", "XDG_CACHE_HOME": "/k"}, Dirs{"/h", "/c/agent-ways", "/s/agent-ways", "/k/agent-ways"}, nil},
		{"empty and relative", map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "s", "XDG_CACHE_HOME": "./k"}, Dirs{"/h", "/h/.config/agent-ways", "/h/.local/state/agent-ways", "/h/.cache/agent-ways"}, nil},
		{"no home, all set", map[string]string{"XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s", "XDG_CACHE_HOME": "/k"}, Dirs{"", "/c/agent-ways", "/s/agent-ways", "/k/agent-ways"}, nil},
		{"a relative home counts as none", map[string]string{"HOME": "h", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s", "XDG_CACHE_HOME": "/k"}, Dirs{"", "/c/agent-ways", "/s/agent-ways", "/k/agent-ways"}, nil},
		{"nothing", nil, Dirs{}, ErrNoHome},
		{"a relative home", map[string]string{"HOME": "h"}, Dirs{}, ErrNoHome},
		{"no home, one missing", map[string]string{"XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s"}, Dirs{}, ErrNoHome},
		{"not clean", map[string]string{"HOME": "/h/../h2/"}, Dirs{"/h/../h2/", "/h2/.config/agent-ways", "/h2/.local/state/agent-ways", "/h2/.cache/agent-ways"}, nil},
	} {
		got, err := From(func(name string) string { return row.env[name] })
		if got != row.want || !errors.Is(err, row.err) {
			t.Errorf("%s: %+v, %v; want %+v, %v", row.name, got, err, row.want, row.err)
		}
	}
	d := Dirs{"/h", "/c", "/s", "/k"}
	for got, want := range map[string]string{
		d.Sessions(): "/s/sessions", d.Session("abc"): "/s/sessions/abc", d.Sensors(): "/c/sensors",
		d.Settings(): "/c/config.yaml", filepath.Dir(d.Index("/p")): "/k/index",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if d.Index("/p") == d.Index("/q") {
		t.Error("the index is not one for each project")
	}
}

// TestSessionName: an id from outside is one path element, and no two ids share
// one.
func TestSessionName(t *testing.T) {
	for _, id := range []string{"a78d8549-8442-40b5-8a32-8ba87b02955d", "A_b-9", "x", strings.Repeat("i", 128)} {
		if got := SessionName(id); got != id {
			t.Errorf("%q became %q", id, got)
		}
	}
	seen := map[string]string{}
	for _, id := range []string{
		"", ".", "..", "../..", "a/b", "/", "/etc/passwd", "a\x00b", "a b", "ü", "~", "x~1", "-x\n", "..\\..", "a.b",
		strings.Repeat("i", 129), strings.Repeat("i", 100_000), "\xff",
	} {
		got := SessionName(id)
		if plain(got) || !strings.HasPrefix(got, "x~") || len(got) > 60 ||
			strings.ContainsAny(got, "/\\\x00 .") || filepath.Base(got) != got {
			t.Errorf("%.20q became %q", id, got)
		}
		if other, taken := seen[got]; taken {
			t.Errorf("%.20q and %.20q are both %q", id, other, got)
		}
		seen[got] = id
		// A name is not an id that gives it again.
		if SessionName(got) == got {
			t.Errorf("%q is a name of its own", got)
		}
	}
}

// An id that looks like a secret is no path and no label; one that a client makes is
// both.
func TestSecretSessionIDs(t *testing.T) {
	for id, secret := range map[string]bool{
		"a78d8549-8442-40b5-8a32-8ba87b02955d": false,
		"A78D8549844240B58A328BA87B02955D":     false,
		"s":                                    false, "a b": false, "1234567890123456789": false,
		"my-session-of-2026-03-04": false, "abcdefghijklmnopqrstuvwxyz": false,
		"ghp_0123456789abcdefghijABCDEFGHIJ012345":   true,
		"LTAInCQiOSsqQZPAfvVDcwAg":                   true,
		"AKIAIOSFODNN7EXAMPLE":                       true,
		"sk-ant-api03-0123456789abcdefghij-XYZ":      true,
		"/home/x/ghp_0123456789abcdefghijABCDEFGHIJ": true,
	} {
		if got := SessionLabel(id); (got != id) != secret || secret && got != SessionName(id) {
			t.Errorf("label of %q: %q", id, got)
		}
		if got := SessionName(id); secret && (got == id || strings.Contains(got, "0123456789") || plain(got)) {
			t.Errorf("name of %q: %q", id, got)
		}
	}
}

func TestMakePrivate(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	base := t.TempDir()
	mode := func(dir string) fs.FileMode {
		info, err := os.Lstat(dir)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}

	deep := filepath.Join(base, "a", "b", "c")
	for range 2 {
		if err := MakePrivate(deep); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{deep, filepath.Dir(deep)} {
		if got := mode(dir); got != fs.ModeDir|0o700 {
			t.Errorf("%s: %v", dir, got)
		}
	}

	open := filepath.Join(base, "open")
	if err := os.Mkdir(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := MakePrivate(open); err != nil || mode(open) != fs.ModeDir|0o700 {
		t.Errorf("a wide-open directory: %v, %v", err, mode(open))
	}

	link, file := filepath.Join(base, "link"), filepath.Join(base, "file")
	if err := os.Symlink(open, link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := MakePrivate(link); !errors.Is(err, ErrNotPrivate) {
		t.Errorf("a symlink: %v", err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		if err := MakePrivate(dir); err == nil {
			t.Errorf("%s: made", dir)
		}
	}
	// A directory of somebody else: root can make one, everybody else has one.
	if os.Geteuid() != 0 {
		if err := MakePrivate("/"); !errors.Is(err, ErrNotPrivate) {
			t.Errorf("somebody else's: %v", err)
		}
		return
	}
	foreign := filepath.Join(base, "foreign")
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(foreign, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if err := MakePrivate(foreign); !errors.Is(err, ErrNotPrivate) {
		t.Errorf("somebody else's: %v", err)
	}
}
