package arrows

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// CheckSources parses every Go file below dir and returns what breaks the rules
// on state and comments, as "file:line: what". Directories that the go command
// passes over (testdata, and names that begin with . or _) are passed over.
//
// Non-test files have no func init and no package variable other than: an
// interface assertion (var _ T = x), an error sentinel, an embedded file, a
// table (an unexported, filled slice, array or map literal that nothing in it
// computes and nothing in its package writes to), and a command's version, which
// the linker sets. Every package has a doc comment.
func CheckSources(dir string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		name := entry.Name()
		if path != dir && (name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
			return filepath.SkipDir
		}
		lines, err := checkPackage(dir, path)
		found = append(found, lines...)
		return err
	})
	return found, err
}

// checkPackage looks at the Go files of one directory.
func checkPackage(root, dir string) ([]string, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		return nil, err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	documented := false
	for _, name := range names {
		shown, err := filepath.Rel(root, name)
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(fset, shown, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		documented = documented || hasDoc(file)
		if !strings.HasSuffix(name, "_test.go") {
			files = append(files, file)
		}
	}
	var found []string
	for _, p := range checkFiles(files) {
		at := fset.Position(p.pos)
		found = append(found, fmt.Sprintf("%s:%d: %s", at.Filename, at.Line, p.what))
	}
	if !documented {
		shown, err := filepath.Rel(root, dir)
		if err != nil {
			return nil, err
		}
		found = append(found, shown+": no file has a package doc comment")
	}
	return found, nil
}

// hasDoc reports whether the file's package comment is one: for a library it
// begins as go doc expects.
func hasDoc(file *ast.File) bool {
	if file.Doc == nil {
		return false
	}
	text := strings.TrimSpace(file.Doc.Text())
	if file.Name.Name == "main" {
		return text != ""
	}
	return strings.HasPrefix(text, "Package "+strings.TrimSuffix(file.Name.Name, "_test")+" ")
}

type problem struct {
	pos  token.Pos
	what string
}

// checkFiles looks at the non-test files of one package.
func checkFiles(files []*ast.File) []problem {
	var found []problem
	tables := map[string]bool{}
	for _, file := range files {
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil && decl.Name.Name == "init" {
					found = append(found, problem{decl.Pos(), "func init: what it does belongs into a constructor"})
				}
			case *ast.GenDecl:
				if decl.Tok == token.VAR {
					found = append(found, checkVars(file, decl, tables)...)
				}
			}
		}
	}
	for _, file := range files {
		found = append(found, writes(file, tables)...)
	}
	return found
}

// checkVars looks at one package-level var declaration, and adds the names of
// the tables in it to tables.
func checkVars(file *ast.File, decl *ast.GenDecl, tables map[string]bool) []problem {
	var found []problem
	for _, spec := range decl.Specs {
		spec, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for i, name := range spec.Names {
			switch {
			case i < len(spec.Values) && !ast.IsExported(name.Name) && isTable(spec.Values[i]):
				tables[name.Name] = true
			case !allowedVar(file, decl, spec, i):
				found = append(found, problem{name.Pos(), "package variable " + name.Name + ": state has an owner, so hold it in a value that a constructor makes"})
			}
		}
	}
	return found
}

// writes returns where a file assigns to a table, deletes from one, or takes its
// address. It goes by name: a local variable named like a table counts too, and
// is better renamed.
func writes(file *ast.File, tables map[string]bool) []problem {
	var found []problem
	written := func(at token.Pos, to ast.Expr) {
		if name := root(to); tables[name] {
			found = append(found, problem{at, "the table " + name + " is written to: a table is constant, and state has an owner"})
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, to := range n.Lhs {
					written(n.Pos(), to)
				}
			}
		case *ast.IncDecStmt:
			written(n.Pos(), n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				written(n.Pos(), n.X)
			}
		case *ast.CallExpr:
			if name := callee(n.Fun); (name == "delete" || name == "clear") && len(n.Args) > 0 {
				written(n.Pos(), n.Args[0])
			}
		}
		return true
	})
	return found
}

// root returns the variable that an expression such as a.b[i] belongs to.
func root(x ast.Expr) string {
	for {
		switch inner := x.(type) {
		case *ast.Ident:
			return inner.Name
		case *ast.IndexExpr:
			x = inner.X
		case *ast.SelectorExpr:
			x = inner.X
		case *ast.ParenExpr:
			x = inner.X
		default:
			return ""
		}
	}
}

// allowedVar reports whether the i-th name of spec is a variable that CheckSources
// allows, tables apart.
func allowedVar(file *ast.File, decl *ast.GenDecl, spec *ast.ValueSpec, i int) bool {
	name := spec.Names[i].Name
	switch {
	case name == "_":
		return true
	case embeds(decl.Doc) || embeds(spec.Doc):
		return true
	case file.Name.Name == "main" && name == "version":
		return true
	case i >= len(spec.Values):
		return false
	}
	call, ok := spec.Values[i].(*ast.CallExpr)
	if !ok || !strings.HasPrefix(name, "Err") && !strings.HasPrefix(name, "err") {
		return false
	}
	made := callee(call.Fun)
	return made == "errors.New" || made == "fmt.Errorf"
}

func embeds(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool {
		return strings.HasPrefix(c.Text, "//go:embed ")
	})
}

// callee returns a called function's name as written, "pkg.Name" or "Name".
func callee(fun ast.Expr) string {
	switch fun := fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		if pkg, ok := fun.X.(*ast.Ident); ok {
			return pkg.Name + "." + fun.Sel.Name
		}
	}
	return ""
}

// isTable reports whether a value is a slice, array or map literal with something
// in it, and nothing that runs or can be shared: no call, function or pointer.
func isTable(value ast.Expr) bool {
	lit, ok := value.(*ast.CompositeLit)
	if !ok || len(lit.Elts) == 0 {
		return false
	}
	switch lit.Type.(type) {
	case *ast.ArrayType, *ast.MapType:
	default:
		return false
	}
	plain := true
	ast.Inspect(lit, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr, *ast.FuncLit:
			plain = false
		case *ast.UnaryExpr:
			plain = plain && n.Op != token.AND
		}
		return plain
	})
	return plain
}
