package arrows

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
)

// Load asks the go command for the import graph of every package below dir, as
// built for goos without cgo and without a workspace: as the product is built.
// A package whose imports cannot be resolved is an error.
func Load(ctx context.Context, dir, goos string) (Graph, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-json=ImportPath,Standard,Imports,ImportMap", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH=amd64", "CGO_ENABLED=0", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list for %s in %s: %w\n%s", goos, dir, err, stderr.Bytes())
	}
	g := Graph{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var listed struct {
			ImportPath string
			Standard   bool
			Imports    []string
			ImportMap  map[string]string
		}
		if err := decoder.Decode(&listed); errors.Is(err, io.EOF) {
			return g, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading go list's answer for %s: %w", goos, err)
		}
		for i, path := range listed.Imports {
			if mapped, ok := listed.ImportMap[path]; ok {
				listed.Imports[i] = mapped
			}
		}
		g[listed.ImportPath] = Package{Path: listed.ImportPath, Std: listed.Standard, Imports: listed.Imports}
	}
}

// Union returns a graph with the packages and the imports of both, for files
// that only one operating system builds.
func Union(a, b Graph) Graph {
	all := Graph{}
	for _, g := range []Graph{a, b} {
		for path, p := range g {
			p.Imports = append(slices.Clone(all[path].Imports), p.Imports...)
			slices.Sort(p.Imports)
			p.Imports = slices.Compact(p.Imports)
			all[path] = p
		}
	}
	return all
}
