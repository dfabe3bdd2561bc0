package arrows

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// Opens counts the places in which the product's non-test files below dir open a
// file by package os itself, as "file os.Function" to a number. Whatever lies in
// the place of a file of ours, nobody may wait for it or follow it: hooks/dirs
// opens those, and hooks/temp replaces them. Directories named in skip, relative to
// dir, are left out.
func Opens(dir string, skip []string) (map[string]int, error) {
	found := map[string]int{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		shown, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		shown = filepath.ToSlash(shown)
		name := entry.Name()
		if entry.IsDir() {
			if shown != "." && (name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || slices.Contains(skip, shown)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			switch name := callee(sel); name {
			case "os.Open", "os.OpenFile", "os.Create", "os.CreateTemp", "os.ReadFile", "os.WriteFile":
				found[fmt.Sprintf("%s %s", shown, name)]++
			}
			return true
		})
		return nil
	})
	return found, err
}
