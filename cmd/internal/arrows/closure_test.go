package arrows

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// frontList holds what the hook's binary may link, one import path a line.
const frontList = "testdata/front-packages.txt"

// TestFront holds what is linked into the binary that runs on every hook event.
func TestFront(t *testing.T) {
	g := product(t)
	closure, err := Closure(g, Front)
	if err != nil {
		t.Fatal(err)
	}
	if drift := Drift(g, closure, readList(t, frontList)); len(drift) > 0 {
		t.Errorf(`%s
%s runs on every hook event, and its start-up time grows with what it links.
For a package that joined: do without it, or decide on it. Measure before and after with
go tool task bench:hook; if the median does not move, add it to cmd/internal/arrows/%s.`,
			strings.Join(drift, "\n"), Front, frontList)
	}
}

func TestDrift(t *testing.T) {
	g := Graph{
		"ways/cmd/ways":                {Path: "ways/cmd/ways", Imports: []string{"ways/hooks/front", "os"}},
		"ways/hooks/front":             {Path: "ways/hooks/front", Imports: []string{"net/http", "os", "ways/hooks/spool"}},
		"ways/hooks/spool":             {Path: "ways/hooks/spool", Imports: []string{"os", "unsafe"}},
		"os":                           {Path: "os", Std: true, Imports: []string{"internal/poll"}},
		"internal/poll":                {Path: "internal/poll", Std: true, Imports: []string{"unsafe"}},
		"net/http":                     {Path: "net/http", Std: true, Imports: []string{"vendor/golang.org/x/net/idna", "crypto/internal/fips140"}},
		"unsafe":                       {Path: "unsafe", Std: true},
		"crypto/internal/fips140":      {Path: "crypto/internal/fips140", Std: true},
		"vendor/golang.org/x/net/idna": {Path: "vendor/golang.org/x/net/idna", Std: true},
		"ways/supervisor":              {Path: "ways/supervisor"},
	}
	closure, err := Closure(g, "ways/cmd/ways")
	if err != nil {
		t.Fatal(err)
	}
	allowed := []string{"os", "regexp", "ways/cmd/ways", "ways/hooks/front", "ways/hooks/spool"}
	got := Drift(g, closure, allowed)
	want := []string{
		"net/http joined: ways/cmd/ways -> ways/hooks/front -> net/http",
		"regexp is listed and no longer linked: take it off the list",
	}
	if !slices.Equal(got, want) {
		t.Errorf("Drift:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := Drift(g, closure, []string{"net/http", "os", "ways/cmd/ways", "ways/hooks/front", "ways/hooks/spool"}); len(got) != 0 {
		t.Errorf("Drift of the exact list: %v, want nothing", got)
	}
}

func TestClosureOfMissingRoot(t *testing.T) {
	if closure, err := Closure(Graph{"os": {Path: "os", Std: true}}, "ways/cmd/ways"); err == nil {
		t.Errorf("Closure of a package that is not there: %v, want an error", closure)
	}
}

// TestLoad reads a real module: the imports behind a build constraint are seen
// for their own system, and a test's imports for none.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":          "module ways\n\ngo 1.26\n",
		"a/a.go":          "package a\n\nimport _ \"os\"\n",
		"a/a_darwin.go":   "package a\n\nimport _ \"ways/b\"\n",
		"a/a_test.go":     "package a\n\nimport _ \"net/http\"\n",
		"b/b.go":          "package b\n",
		"testdata/c/c.go": "package c\n\nimport _ \"net/http\"\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	linux, err := Load(t.Context(), dir, "linux")
	if err != nil {
		t.Fatal(err)
	}
	darwin, err := Load(t.Context(), dir, "darwin")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := linux["ways/a"].Imports, []string{"os"}; !slices.Equal(got, want) {
		t.Errorf("ways/a on linux imports %v, want %v", got, want)
	}
	all := Union(linux, darwin)
	if got, want := all["ways/a"].Imports, []string{"os", "ways/b"}; !slices.Equal(got, want) {
		t.Errorf("ways/a imports %v, want %v", got, want)
	}
	if !all["os"].Std || all["ways/b"].Std {
		t.Errorf("Std of os is %v and of ways/b %v, want true and false", all["os"].Std, all["ways/b"].Std)
	}
	if _, seen := all["net/http"]; seen {
		t.Error("net/http is in the graph, and only a test imports it")
	}
	if err := os.WriteFile(filepath.Join(dir, "b", "b.go"), []byte("package b\n\nimport _ \"ways/gone\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(t.Context(), dir, "linux"); err == nil || !strings.Contains(err.Error(), "ways/gone") {
		t.Errorf("Load with an import of nothing: %v, want an error that names ways/gone", err)
	}
}

// readList returns the lines of a list that are neither empty nor comments.
func readList(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			list = append(list, line)
		}
	}
	return list
}
