package arrows

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// opensList holds the opens that were decided on.
const opensList = "testdata/opens.txt"

// TestOpens holds that files of ours are opened by hooks/dirs and replaced by
// hooks/temp, and that every other open was looked at.
func TestOpens(t *testing.T) {
	found, err := Opens(repository(t), []string{
		// Tools and tests; nothing of them is installed.
		"cmd/e2e", "cmd/internal/arrows", "cmd/internal/bench", "cmd/internal/demo", "cmd/internal/doctest", "cmd/internal/load",
		"cmd/internal/peer", "hooks/redact/quality",
	})
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]int{}
	for _, line := range readList(t, opensList) {
		var file, name string
		var n int
		if _, err := fmt.Sscan(line, &file, &name, &n); err != nil {
			t.Fatalf("%s: %q: %v", opensList, line, err)
		}
		allowed[file+" "+name] = n
	}
	for what, n := range found {
		if n > allowed[what] {
			t.Errorf("%s, %d times, not %d: a file of ours is opened with hooks/dirs (Open, ReadFile) and replaced with hooks/temp, so that "+
				"nothing in its place is waited for or followed; for any other file, add it to cmd/internal/arrows/%s, with the reason", what, n, allowed[what], opensList)
		}
	}
	for what, n := range allowed {
		if found[what] < n {
			t.Errorf("%s is listed %d times and there %d times: mend %s", what, n, found[what], opensList)
		}
	}
}

func TestOpensAreFound(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a/a.go":          "package a\n\nfunc f() { os.Open(x); os.Open(y); g(os.ReadFile) }\n",
		"a/a_test.go":     "package a\n\nfunc f() { os.Open(x) }\n",
		"a/testdata/x.go": "package x\n\nfunc f() { os.Open(x) }\n",
		"b/b.go":          "package b\n\nfunc f() { dirs.Open(x); os.Remove(y); os.CreateTemp(x, y) }\n",
		"tool/t.go":       "package tool\n\nfunc f() { os.Open(x) }\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Opens(dir, []string{"tool"})
	want := map[string]int{"a/a.go os.Open": 2, "a/a.go os.ReadFile": 1, "b/b.go os.CreateTemp": 1}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("found %v, %v; want %v", got, err, want)
	}
	if err := os.WriteFile(filepath.Join(dir, "b", "b.go"), []byte("no Go"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Opens(dir, nil); err == nil || !strings.Contains(err.Error(), "b.go") {
		t.Errorf("no Go: %v", err)
	}
}
