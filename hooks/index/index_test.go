package index_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"ways/hooks/index"
	"ways/hooks/record"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// sample is a header of inputs that are there, are not, and have odd paths.
func sample(t *testing.T, many int) index.Header {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), "x")
	h := index.Header{Project: "/home/dev/a project", Async: record.SetOf(record.ToolCall, record.WayEvent), Blocking: record.SetOf(record.UserPrompt)}
	for _, in := range []struct {
		kind index.Kind
		path string
	}{
		{index.File, filepath.Join(dir, "a.yaml")},
		{index.Dir, dir},
		{index.Root, dir},
		{index.File, filepath.Join(dir, "absent\n\x00\xff")},
		{index.File, ""},
	} {
		h.Inputs = append(h.Inputs, index.Look(in.kind, in.path))
	}
	for range many {
		h.Inputs = append(h.Inputs, index.Look(index.File, "/"+strings.Repeat("long/", 100)))
	}
	return h
}

func TestRoundTrip(t *testing.T) {
	for _, many := range []int{0, 500} { // the second is longer than the first read
		path := filepath.Join(t.TempDir(), "cache", "index", "p.idx")
		if _, err := index.Read(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("before: %v", err)
		}
		h, plan := sample(t, many), []byte(`{"rules":[]}`)
		// What a killed compiler left goes.
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(filepath.Join(filepath.Dir(path), ".ways-17.tmp"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		gen, err := index.Write(path, h, plan)
		if err != nil || gen == 0 || gen != index.Generation(plan) {
			t.Fatalf("generation %x, %v", gen, err)
		}
		h.Generation = gen
		got, err := index.Read(path)
		if err != nil || !reflect.DeepEqual(got, h) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, h)
		}
		got, back, err := index.ReadPlan(path)
		if err != nil || !reflect.DeepEqual(got, h) || !bytes.Equal(back, plan) {
			t.Errorf("got %+v, %q, %v", got, back, err)
		}
		if why := got.Stale(got.Project + "x"); why == "" {
			t.Error("fit for a project it is not of")
		}
		if got.Stale(got.Project) != "" {
			t.Errorf("stale: %s", got.Stale(got.Project))
		}
		for project, fit := range map[string]bool{got.Project: true, got.Project + "x": false} {
			fresh, changed, err := index.Fresh(path, project)
			want := h
			want.Inputs = nil
			if err != nil || (changed == "") != fit || !reflect.DeepEqual(fresh, want) {
				t.Errorf("fresh for %s: %+v, %q, %v", project, fresh, changed, err)
			}
		}
		for p, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
			if info, err := os.Stat(p); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v", p, info.Mode(), err)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.tmp")); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
		if other, err := index.Write(path, h, append(plan, ' ')); err != nil || other == gen {
			t.Errorf("another plan has generation %x, %v", other, err)
		}
	}
}

// TestDamage flips every byte of an index file and cuts it at every length: it
// is refused, or reads as it was.
func TestDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c", "i", "p.idx")
	h, plan := sample(t, 0), []byte(`{"rules":[1,2,3]}`)
	if _, err := index.Write(path, h, plan); err != nil {
		t.Fatal(err)
	}
	clean, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := index.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	bare := want
	bare.Inputs = nil
	check := func(what string, at int) {
		got, err := index.Read(path)
		if err == nil && !reflect.DeepEqual(got, want) || err != nil && !errors.Is(err, index.ErrDamaged) {
			t.Fatalf("%s %d: header %+v, %v", what, at, got, err)
		}
		_, body, err := index.ReadPlan(path)
		if !errors.Is(err, index.ErrDamaged) {
			t.Fatalf("%s %d: plan %q, %v", what, at, body, err)
		}
		got, _, err = index.Fresh(path, want.Project)
		if err == nil && !reflect.DeepEqual(got, bare) || err != nil && !errors.Is(err, index.ErrDamaged) {
			t.Fatalf("%s %d: fresh header %+v, %v", what, at, got, err)
		}
	}
	for at := range clean {
		for _, mask := range []byte{1, 0x80, 0xff} {
			spoilt := bytes.Clone(clean)
			spoilt[at] ^= mask
			write(t, path, string(spoilt))
			check("flipped", at)
		}
		write(t, path, string(clean[:at]))
		check("cut", at)
	}
	// More behind the end is nobody's, and read by nobody.
	write(t, path, string(clean)+"x")
	if got, body, err := index.ReadPlan(path); err != nil || !reflect.DeepEqual(got, want) || !bytes.Equal(body, plan) {
		t.Errorf("with a byte behind: %v", err)
	}
}

func TestNotAFile(t *testing.T) {
	dir := t.TempDir()
	fifo, link := filepath.Join(dir, "fifo"), filepath.Join(dir, "link")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(fifo, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, link, dir} {
		if _, err := index.Read(path); err == nil {
			t.Errorf("%s was read", path)
		}
		if _, _, err := index.Fresh(path, ""); err == nil {
			t.Errorf("%s was read for a hook", path)
		}
	}
}

// TestStale: each change of an input is seen, however small and quick.
func TestStale(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(dir string) error
		stale  string // the input that shows it; empty for none
	}{
		{"nothing", func(string) error { return nil }, ""},
		{"read", func(d string) error { _, err := os.ReadFile(d + "/s/a.yaml"); return err }, ""},
		{"same size, at once", func(d string) error { return os.WriteFile(d+"/s/a.yaml", []byte("yyyy"), 0o600) }, "/s/a.yaml"},
		{"longer", func(d string) error { return os.WriteFile(d+"/s/a.yaml", []byte("longer"), 0o600) }, "/s/a.yaml"},
		{"same size, time set back", func(d string) error {
			info, err := os.Stat(d + "/s/a.yaml")
			if err != nil {
				return err
			}
			if err := os.WriteFile(d+"/s/a.yaml", []byte("yyyy"), 0o600); err != nil {
				return err
			}
			return os.Chtimes(d+"/s/a.yaml", info.ModTime(), info.ModTime())
		}, "/s/a.yaml"},
		{"chmod", func(d string) error { return os.Chmod(d+"/s/a.yaml", 0o640) }, "/s/a.yaml"},
		{"removed", func(d string) error { return os.Remove(d + "/s/a.yaml") }, "/s/a.yaml"},
		{"renamed over", func(d string) error { return os.Rename(d+"/s/b.yaml", d+"/s/a.yaml") }, "/s/a.yaml"},
		{"renamed", func(d string) error { return os.Rename(d+"/s/a.yaml", d+"/s/c.yaml") }, "/s/a.yaml"},
		{"new file", func(d string) error { return os.WriteFile(d+"/s/n.yaml", nil, 0o600) }, "/s"},
		{"new file, then gone", func(d string) error {
			if err := os.WriteFile(d+"/s/n.yaml", nil, 0o600); err != nil {
				return err
			}
			return os.Remove(d + "/s/n.yaml")
		}, "/s"},
		{"directory's mode", func(d string) error { return os.Chmod(d+"/s", 0o750) }, "/s"},
		{"link leads elsewhere", func(d string) error {
			if err := os.Remove(d + "/l.yaml"); err != nil {
				return err
			}
			return os.Symlink(d+"/s/b.yaml", d+"/l.yaml")
		}, "/l.yaml"},
		{"link dangles", func(d string) error { return os.Remove(d + "/target.yaml") }, "/l.yaml"},
		{"an absent directory appears", func(d string) error { return os.Mkdir(d+"/p", 0o700) }, "/p"},
		{"an absent file appears", func(d string) error { return os.WriteFile(d+"/config.yaml", nil, 0o600) }, "/config.yaml"},
		{"a file in a root", func(d string) error { return os.WriteFile(d+"/root/x", nil, 0o600) }, ""},
		{"a root is replaced", func(d string) error {
			if err := os.Rename(d+"/root", d+"/old"); err != nil {
				return err
			}
			return os.Mkdir(d+"/root", 0o700)
		}, "/root"},
		{"a root is gone", func(d string) error { return os.Remove(d + "/root") }, "/root"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir+"/s/a.yaml", "xxxx")
			write(t, dir+"/s/b.yaml", "xxxx")
			write(t, dir+"/target.yaml", "")
			if err := os.Symlink(dir+"/target.yaml", dir+"/l.yaml"); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(dir+"/root", 0o700); err != nil {
				t.Fatal(err)
			}
			var h index.Header
			for _, in := range []struct {
				kind index.Kind
				path string
			}{
				{index.File, "/s/a.yaml"},
				{index.File, "/l.yaml"},
				{index.File, "/config.yaml"},
				{index.Dir, "/p"},
				{index.Dir, "/s"},
				{index.Root, "/root"},
			} {
				h.Inputs = append(h.Inputs, index.Look(in.kind, dir+in.path))
			}
			path := filepath.Join(t.TempDir(), "cache", "index", "p.idx")
			if _, err := index.Write(path, h, []byte("plan")); err != nil {
				t.Fatal(err)
			}
			// The file system's clock steps; a change within one step is what the
			// compiler waits out (config/publish).
			past(t)
			if err := row.change(dir); err != nil {
				t.Fatal(err)
			}
			want := row.stale
			if want != "" {
				want = dir + want
			}
			if got := h.Stale(h.Project); got != want {
				t.Errorf("stale: %q, want %q", got, want)
			}
			if _, got, err := index.Fresh(path, h.Project); got != want || err != nil {
				t.Errorf("fresh: %q, %v; want %q", got, err, want)
			}
		})
	}
}

// past makes changes until one has a later time than all before it.
func past(t *testing.T) {
	t.Helper()
	probe := filepath.Join(t.TempDir(), "probe")
	write(t, probe, "")
	first := index.Look(index.File, probe)
	for {
		write(t, probe, "")
		if index.Look(index.File, probe).Ctime != first.Ctime {
			return
		}
	}
}

// TestSeen: what was read is compared by the same rules as what is looked at.
func TestSeen(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a", "x")
	for _, kind := range []index.Kind{index.File, index.Dir, index.Root} {
		info, err := os.Stat(dir + "/a")
		if err != nil {
			t.Fatal(err)
		}
		if got, want := index.Seen(kind, dir+"/a", info), index.Look(kind, dir+"/a"); got != want || !got.Present {
			t.Errorf("kind %d: %+v, want %+v", kind, got, want)
		}
		if got, want := index.Seen(kind, dir+"/b", nil), index.Look(kind, dir+"/b"); got != want {
			t.Errorf("kind %d, absent: %+v, want %+v", kind, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	path := filepath.Join(f.TempDir(), "c", "i", "p.idx")
	if _, err := index.Write(path, index.Header{Inputs: []index.Input{index.Look(index.Dir, "/")}}, []byte("{}")); err != nil {
		f.Fatal(err)
	}
	clean, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(clean)
	f.Add(clean[:30])
	f.Add([]byte("WAYSIDX1\xff\xff\xff\x03\x00\x00\x00\x00\xff\xff\xff\x03\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		h, err := index.Read(path)
		_, _, planErr := index.ReadPlan(path)
		if err != nil && (!errors.Is(err, index.ErrDamaged) || planErr == nil) {
			t.Fatalf("%v, %v", err, planErr)
		}
		if len(h.Inputs) > len(data) {
			t.Fatalf("%d inputs out of %d bytes", len(h.Inputs), len(data))
		}
	})
}
