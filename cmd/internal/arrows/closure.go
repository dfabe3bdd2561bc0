package arrows

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Closure returns root and all it imports, directly or not, each with the path
// of imports that leads there, root first. It fails when root is not in g.
func Closure(g Graph, root string) (map[string][]string, error) {
	if _, ok := g[root]; !ok {
		return nil, fmt.Errorf("%s is not in the import graph: the package does not exist, or was not listed", root)
	}
	ways := map[string][]string{root: {root}}
	for next := []string{root}; len(next) > 0; next = next[1:] {
		imports := slices.Clone(g[next[0]].Imports)
		slices.Sort(imports)
		for _, path := range imports {
			if _, seen := ways[path]; !seen {
				ways[path] = append(slices.Clone(ways[next[0]]), path)
				next = append(next, path)
			}
		}
	}
	return ways, nil
}

// Internal reports whether path is a package of the standard library that is
// its own affair: it changes with Go's version, and nobody here can import it.
func Internal(g Graph, path string) bool {
	if path == "unsafe" || path == "C" {
		return true
	}
	if !g[path].Std {
		return false
	}
	return strings.HasPrefix(path, "vendor/") || slices.Contains(strings.Split(path, "/"), "internal")
}

// Drift compares a closure with the list of packages that were decided on. The
// lines it returns say what joined, by which imports, and what is listed for
// nothing; none when they agree.
func Drift(g Graph, closure map[string][]string, allowed []string) []string {
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(closure)) {
		if !Internal(g, path) && !slices.Contains(allowed, path) {
			lines = append(lines, fmt.Sprintf("%s joined: %s", path, strings.Join(closure[path], " -> ")))
		}
	}
	for _, path := range allowed {
		if _, linked := closure[path]; !linked {
			lines = append(lines, fmt.Sprintf("%s is listed and no longer linked: take it off the list", path))
		}
	}
	return lines
}
