package temp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// writerEnv makes the test binary a writer in the directory it names: it begins a
// file, says its name, and gives it the name "done" when its input ends.
const writerEnv = "WAYS_TEMP_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerEnv); dir != "" {
		if err := writer(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func writer(dir string) error {
	f, err := Create(dir)
	if err != nil {
		return err
	}
	fmt.Println(filepath.Base(f.Name()))
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	if _, err := f.WriteString("whole"); err != nil {
		return err
	}
	return Commit(f, filepath.Join(dir, "done"))
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// begin starts a writer, which has begun a file when begin returns.
func begin(t *testing.T, dir string) (cmd *exec.Cmd, finish io.Closer, name string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), writerEnv+"="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	name, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return cmd, in, strings.TrimSpace(name)
}

// TestSweepKnowsTheDead leaves a living writer its file, also while the writer is
// stopped, and removes a killed one's.
func TestSweepKnowsTheDead(t *testing.T) {
	dir := t.TempDir()
	alive, finish, one := begin(t, dir)
	dead, _, two := begin(t, dir)
	if err := alive.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	Sweep(dir)
	if got, want := names(t, dir), []string{one, two}; !slices.Equal(got, sorted(want)) {
		t.Errorf("two at work: %q, want %q", got, want)
	}
	if err := dead.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = dead.Wait()
	// Any later writer sweeps.
	if err := Write(filepath.Join(dir, "other"), []byte("x"), true); err != nil {
		t.Fatal(err)
	}
	if got, want := names(t, dir), []string{one, "other"}; !slices.Equal(got, sorted(want)) {
		t.Errorf("one was killed: %q, want %q", got, want)
	}
	if err := errors.Join(alive.Process.Signal(syscall.SIGCONT), finish.Close(), alive.Wait()); err != nil {
		t.Fatal(err)
	}
	if got, want := names(t, dir), []string{"done", "other"}; !slices.Equal(got, want) {
		t.Errorf("the other one went on: %q, want %q", got, want)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "done")); string(text) != "whole" || err != nil {
		t.Errorf("it wrote %q, %v", text, err)
	}
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

// TestSweepLeavesOthersAlone holds that only what this package made, and nothing
// that only looks like it, is removed.
func TestSweepLeavesOthersAlone(t *testing.T) {
	dir := t.TempDir()
	put := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kept := []string{".ways-.tmp", ".ways-1.tmp.bak", ".ways-1a.tmp", ".ways-config.tmp", ".ways-12", "ways-12.tmp", "x.tmp"}
	for _, name := range kept {
		put(name)
	}
	put(".ways-12.tmp")
	put(".ways-4294967295.tmp")
	for name, make := range map[string]func(string) error{
		".ways-1.tmp": func(p string) error { return os.Mkdir(p, 0o700) },
		".ways-2.tmp": func(p string) error { return os.Symlink(filepath.Join(dir, "x.tmp"), p) },
		".ways-3.tmp": func(p string) error { return syscall.Mkfifo(p, 0o600) },
	} {
		if err := make(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		kept = append(kept, name)
	}
	Sweep(dir)
	if got, want := names(t, dir), sorted(kept); !slices.Equal(got, want) {
		t.Errorf("left %q, want %q", got, want)
	}
	Sweep(filepath.Join(dir, "none")) // there is nothing to do
}

// TestManyWriters at once, each sweeping before it writes, take nothing from each
// other.
func TestManyWriters(t *testing.T) {
	dir := t.TempDir()
	var working sync.WaitGroup
	for i := range 8 {
		working.Go(func() {
			path := filepath.Join(dir, strconv.Itoa(i%2))
			for range 100 {
				if err := Write(path, []byte("whole\n"), false); err != nil {
					t.Error(err)
					return
				}
				if text, err := os.ReadFile(path); string(text) != "whole\n" || err != nil {
					t.Errorf("%q, %v", text, err)
				}
			}
		})
	}
	working.Wait()
	if got, want := names(t, dir), []string{"0", "1"}; !slices.Equal(got, want) {
		t.Errorf("left %q, want %q", got, want)
	}
}

// TestFailures leave what was there as it was, and nothing besides.
func TestFailures(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "place")
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("x"), true); err == nil {
		t.Error("written over a directory")
	}
	if err := Write(filepath.Join(dir, "none", "file"), nil, false); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in no directory: %v", err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"place"}) {
		t.Errorf("left %q", got)
	}
	f, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := Commit(f, filepath.Join(dir, "file")); err != nil {
		t.Error(err)
	}
	Discard(f) // after it has its name: nothing happens
	if got := names(t, dir); !slices.Equal(got, []string{"file", "place"}) {
		t.Errorf("left %q", got)
	}
}
