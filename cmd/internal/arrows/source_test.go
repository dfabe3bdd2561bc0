package arrows

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSources holds the rules on state and comments in this repository.
func TestSources(t *testing.T) {
	found, err := CheckSources(repository(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range found {
		t.Error(line)
	}
}

func TestCheckFiles(t *testing.T) {
	const (
		variable = "package variable"
		written  = "is written to"
	)
	tests := []struct {
		name, src string
		want      string // a part of the one problem; empty for none
	}{
		{"init", "package p\nfunc init() {}", "func init"},
		{"a method named init", "package p\ntype T struct{}\nfunc (T) init() {}", ""},
		{"a local variable", "package p\nfunc f() { var n int; _ = n }", ""},
		{"a constant", "package p\nconst n = 1", ""},
		{"an assertion", "package p\nvar _ error = (*T)(nil)", ""},
		{"a sentinel", "package p\nvar ErrGone = errors.New(\"gone\")", ""},
		{"a sentinel in a group", "package p\nvar (\n\terrA = errors.New(\"a\")\n\tErrB = fmt.Errorf(\"b: %w\", errA)\n)", ""},
		{"an error made elsewhere", "package p\nvar ErrGone = open()", variable},
		{"a sentinel by another name", "package p\nvar gone = errors.New(\"gone\")", variable},
		{"an embedded file", "package p\n\n//go:embed x.yaml\nvar x string", ""},
		{"an embedded tree in a group", "package p\nvar (\n\t//go:embed all:x\n\tx embed.FS\n)", ""},
		{"a comment that only speaks of it", "package p\n\n// go:embed x\nvar x string", variable},
		{"a command's version", "package main\nvar version = \"devel\"", ""},
		{"a library's version", "package p\nvar version = \"devel\"", variable},
		{"no value", "package p\nvar n int", variable},
		{"a number", "package p\nvar n = 1", variable},
		{"a group with one bad", "package p\nvar (\n\tErrA = errors.New(\"a\")\n\tn int\n)", variable + " n"},
		{"a regexp", "package p\nvar re = regexp.MustCompile(`a`)", variable},
		{"a mutex", "package p\nvar mu = sync.Mutex{}", variable},
		{"a pool", "package p\nvar pool = sync.Pool{New: func() any { return 0 }}", variable},
		{"a pointer", "package p\nvar state = &T{1}", variable},
		{"a struct", "package p\nvar state = T{1}", variable},
		{"a function", "package p\nvar now = time.Now", variable},
		{"a cache", "package p\nvar cache = map[string]int{}", variable},
		{"a channel", "package p\nvar c = make(chan int)", variable},
		{"a table", "package p\nvar table = []struct{ a string; n int }{{\"x\", 1}, {\"y\", 2}}", ""},
		{"a table of names", "package p\nvar names = map[string]string{\"a\": \"b\"}", ""},
		{"a table that anybody can write", "package p\nvar Names = map[string]string{\"a\": \"b\"}", variable},
		{"a table of pointers", "package p\nvar table = []*T{&T{1}}", variable},
		{"a table of regexps", "package p\nvar table = []any{regexp.MustCompile(`a`)}", variable},
		{"a table of functions", "package p\nvar table = []func(){func() {}}", variable},
		{"a table assigned to", "package p\nvar table = []int{1}\nfunc f() { table[0] = 2 }", written},
		{"a table replaced", "package p\nvar table = []int{1}\nfunc f() { table = nil }", written},
		{"a table counted up", "package p\nvar table = []T{{1}}\nfunc f() { table[0].n++ }", written},
		{"a table deleted from", "package p\nvar table = map[int]int{1: 1}\nfunc f() { delete(table, 1) }", written},
		{"a table cleared", "package p\nvar table = map[int]int{1: 1}\nfunc f() { clear(table) }", written},
		{"a table's address", "package p\nvar table = []int{1}\nfunc f() *int { return &table[0] }", written},
		{"a table read", "package p\nvar table = []int{1}\nfunc f() int { n := table[0]; n = n + 1; return n }", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file, err := parser.ParseFile(token.NewFileSet(), "p.go", tt.src, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			got := checkFiles([]*ast.File{file})
			if tt.want == "" && len(got) == 0 {
				return
			}
			if len(got) != 1 || tt.want == "" || !strings.Contains(got[0].what, tt.want) {
				t.Errorf("found %v, want one that says %q", got, tt.want)
			}
		})
	}
}

func TestCheckSources(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"good/good.go":         "// Package good is documented.\npackage good\n",
		"good/good_test.go":    "package good\n\nvar state int\n",
		"tests/only_test.go":   "// Package tests holds tests.\npackage tests_test\n",
		"tool/main.go":         "// The tool does things.\npackage main\n",
		"bad/bad.go":           "package bad\n\nvar table = []int{1}\n\nvar state int\n",
		"bad/other.go":         "package bad\n\nfunc f() { table[0] = 2 }\n",
		"odd/odd.go":           "// Odd things.\npackage odd\n",
		"good/testdata/x.go":   "package x\n\nvar state int\n",
		".hidden/x.go":         "package x\n\nvar state int\n",
		"_old/x.go":            "package x\n\nvar state int\n",
		"good/data/nothing.md": "no Go here\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := CheckSources(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"bad/bad.go:5: package variable state: state has an owner, so hold it in a value that a constructor makes",
		"bad/other.go:3: the table table is written to: a table is constant, and state has an owner",
		"bad: no file has a package doc comment",
		"odd: no file has a package doc comment",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
