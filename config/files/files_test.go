package files

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestSafe(t *testing.T) {
	const me = 1000
	for _, row := range []struct {
		mode  fs.FileMode
		owner uint32
		says  string
	}{
		{0o600, me, ""},
		{0o644, me, ""},
		{0o755 | fs.ModeDir, me, ""},
		{0o444, 0, ""},
		{0o644, 0, ""},
		{0o620, me, "may be written by its group (mode 0620)"},
		{0o664, me, "chmod go-w '/f'"},
		{0o602, me, "may be written by everybody"},
		{0o666, me, "may be written by everybody"},
		{0o777 | fs.ModeDir, me, "may be written by everybody"},
		{0o777 | fs.ModeDir | fs.ModeSticky, 0, "may be written by everybody"},
		{0o600, 1001, "belongs to user 1001, not to you (1000) or root"},
		{0o664, 0, "may be written by its group"},
	} {
		err := safe("/f", row.mode, row.owner, 100, me, func(uint32) bool { return false })
		if row.says == "" {
			if err != nil {
				t.Errorf("%v of %d: %v", row.mode, row.owner, err)
			}
			continue
		}
		if !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%v of %d: %v, want %q", row.mode, row.owner, err, row.says)
		}
	}
}

// put makes a file with exactly this mode, whatever the umask.
func put(t *testing.T, path, text string, mode fs.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func dir(t *testing.T, path string, mode fs.FileMode) string {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func link(t *testing.T, to, at string) string {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
	return at
}

func TestRead(t *testing.T) {
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, name) }
	safeDir, openDir := dir(t, at("safe"), 0o755), dir(t, at("open"), 0o777)
	put(t, filepath.Join(safeDir, "f"), "linked", 0o644)
	put(t, filepath.Join(openDir, "f"), "exposed", 0o644)
	fifo := at("fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	// A socket's path must be short, which a temporary directory's may not be.
	socketDir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(socketDir) })
	socket := filepath.Join(socketDir, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })

	reader := NewReader()
	ownGroup := reader.ownGroup(uint32(os.Getegid())) // as the system of this test has it
	for _, row := range []struct {
		name, path, text string
		is               error
	}{
		{"plain", put(t, at("plain"), "text", 0o600), "text", nil},
		{"empty", put(t, at("empty"), "", 0o644), "", nil},
		{"largest", put(t, at("largest"), strings.Repeat("x", MaxBytes), 0o644), strings.Repeat("x", MaxBytes), nil},
		{"too big", put(t, at("big"), strings.Repeat("x", MaxBytes+1), 0o644), "", ErrTooBig},
		{"absent", at("absent"), "", fs.ErrNotExist},
		{"below a file", at("plain/x"), "", syscall.ENOTDIR},
		{"group-writable", put(t, at("group"), "x", 0o664), map[bool]string{true: "x"}[ownGroup], map[bool]error{false: ErrUnsafe}[ownGroup]},
		{"world-writable", put(t, at("world"), "x", 0o646), "", ErrUnsafe},
		{"directory", safeDir, "", ErrKind},
		{"FIFO without writer", fifo, "", ErrKind},
		{"socket", socket, "", ErrKind},
		{"device", os.DevNull, "", ErrKind},
		{"link", link(t, filepath.Join(safeDir, "f"), at("link")), "linked", nil},
		{"relative link", link(t, "safe/f", at("rel")), "linked", nil},
		{"link to a link", link(t, "rel", at("rel2")), "linked", nil},
		{"link into an open directory", link(t, "open/f", at("exposed")), "", ErrUnsafe},
		{"link to a FIFO", link(t, "fifo", at("tofifo")), "", ErrKind},
		{"dangling link", link(t, "nowhere", at("dangling")), "", fs.ErrNotExist},
		{"link in a circle", link(t, "circle", at("circle")), "", ErrKind},
	} {
		file, err := reader.Read(row.path)
		if !errors.Is(err, row.is) || string(file.Data) != row.text {
			t.Errorf("%s: %d bytes, %v, want %v", row.name, len(file.Data), err, row.is)
		}
		if err == nil && file.Info.Size() != int64(len(row.text)) {
			t.Errorf("%s: the state is of another file: %d bytes", row.name, file.Info.Size())
		}
	}
}

func TestReadOwner(t *testing.T) {
	path := put(t, filepath.Join(t.TempDir(), "f"), "x", 0o600)
	if os.Geteuid() == 0 {
		if err := os.Chown(path, 4242, 4242); err != nil {
			t.Fatal(err)
		}
		if _, err := NewReader().Read(path); !errors.Is(err, ErrUnsafe) {
			t.Errorf("a file of another user: %v", err)
		}
		if _, err := (Reader{User: 4242}).Read(path); err != nil {
			t.Errorf("its owner: %v", err)
		}
		return
	}
	other := Reader{User: uint32(os.Geteuid()) + 1}
	if _, err := other.Read(path); !errors.Is(err, ErrUnsafe) {
		t.Errorf("a file of another user: %v", err)
	}
}

func TestList(t *testing.T) {
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, name) }
	full := dir(t, at("full"), 0o755)
	for _, name := range []string{"b", "a", "c"} {
		put(t, filepath.Join(full, name), "", 0o600)
	}
	crowded := dir(t, at("crowded"), 0o755)
	for i := range MaxEntries + 1 {
		put(t, filepath.Join(crowded, strings.Repeat("x", i/100)+string(rune('a'+i%100/10))+string(rune('a'+i%10))), "", 0o600)
	}
	for _, row := range []struct {
		name, path, names string
		is                error
	}{
		{"full", full, "a b c", nil},
		{"link", link(t, "full", at("link")), "a b c", nil},
		{"empty", dir(t, at("empty"), 0o700), "", nil},
		{"absent", at("absent"), "", fs.ErrNotExist},
		{"file", put(t, at("file"), "", 0o600), "", ErrKind},
		{"open", dir(t, at("open"), 0o777), "", ErrUnsafe},
		{"crowded", crowded, "", ErrTooBig},
	} {
		got, err := NewReader().List(row.path)
		if !errors.Is(err, row.is) || strings.Join(got.Names, " ") != row.names {
			t.Errorf("%s: %v, %v, want %v", row.name, got.Names, err, row.is)
		}
	}
}

// A replacement that a killed process had begun goes with the next one of any file
// beside it.
func TestUnfinishedReplacementsGo(t *testing.T) {
	in := t.TempDir()
	left := put(t, filepath.Join(in, ".ways-17.tmp"), "half a fi", 0o600)
	path := put(t, filepath.Join(in, "config.yaml"), "old", 0o640)
	if err := Replace(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", left, err)
	}
	text, err := os.ReadFile(path)
	info, statErr := os.Stat(path)
	if err != nil || statErr != nil || string(text) != "new" || info.Mode().Perm() != 0o640 {
		t.Errorf("%q, %v, %v, %v", text, info.Mode(), err, statErr)
	}
}
