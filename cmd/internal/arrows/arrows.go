// Package arrows checks what the architecture promises about the source: which
// package may import which, what the hook's binary links, and that no package
// keeps state of its own. Its tests run the checks on this repository
// (docs/architecture.md, "Arrows").
package arrows

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Module is the product's module path.
const Module = "ways"

// Front is the binary that runs on every hook event.
const Front = Module + "/cmd/ways"

const jsonTokens = "github.com/go-json-experiment/json/jsontext"

// Package is one node of an import graph.
type Package struct {
	Path string
	// Std is true for a package of the standard library.
	Std bool
	// Imports are the direct imports of the non-test files.
	Imports []string
}

// Graph is a set of packages by import path, with all they import.
type Graph map[string]Package

// Violation is one import that the architecture forbids.
type Violation struct {
	From, To string
	Why      string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s imports %s: %s", v.From, v.To, v.Why)
}

// Check returns every forbidden import of the product's packages in g, ordered
// by importer and import. Only direct imports are looked at: what is reached
// through another package is that package's import.
func Check(g Graph) []Violation {
	var found []Violation
	for _, from := range slices.Sorted(maps.Keys(g)) {
		if !under(from, Module) {
			continue
		}
		imports := slices.Clone(g[from].Imports)
		slices.Sort(imports)
		for _, to := range imports {
			for _, why := range forbidden(from, to, g[to].Std) {
				found = append(found, Violation{From: from, To: to, Why: why})
			}
		}
	}
	return found
}

// forbidden returns why from must not import to; nothing when it may.
func forbidden(from, to string, std bool) []string {
	var whys []string
	if why := crossesLayers(layer(from), layer(to)); under(to, Module) && why != "" {
		whys = append(whys, why)
	}
	if why := leavesHome(from, to); why != "" {
		whys = append(whys, why)
	}
	if layer(from) == "hooks" && !std && layer(to) != "hooks" && to != jsonTokens {
		whys = append(whys, "hooks is linked into the hook's binary: standard library, the JSON tokenizer and hooks only")
	}
	if why := actorsMeet(from, to); why != "" {
		whys = append(whys, why)
	}
	return whys
}

// crossesLayers holds cmd -> supervisor -> actors -> (hooks, config, metrics);
// of the leaves, config may use the vocabulary in hooks, and no other leaf
// another.
func crossesLayers(from, to string) string {
	var below []string
	switch from {
	case "cmd":
		below = []string{"cmd", "supervisor", "actors", "hooks", "config", "metrics"}
	case "supervisor":
		below = []string{"supervisor", "actors", "hooks", "config", "metrics"}
	case "actors":
		below = []string{"actors", "hooks", "config", "metrics"}
	case "config":
		below = []string{"config", "hooks"}
	case "hooks", "metrics":
		below = []string{from}
	default:
		return fmt.Sprintf("%q is no part of the tree", from)
	}
	if slices.Contains(below, to) {
		return ""
	}
	return fmt.Sprintf("%s may import %s, not %s", from, strings.Join(below, ", "), to)
}

// leavesHome holds the libraries that one part of the tree keeps to itself.
func leavesHome(from, to string) string {
	for _, lib := range []struct{ prefix, home, why string }{
		{"github.com/thejerf/suture", "supervisor", "suture is imported in supervisor alone"},
		{"gopkg.in/yaml.v3", "config", "YAML is imported in config alone"},
		{"github.com/spf13/pflag", "cmd", "pflag is imported in cmd alone"},
		{"github.com/prometheus", "metrics", "the Prometheus client is imported in metrics alone"},
	} {
		if under(to, lib.prefix) && layer(from) != lib.home {
			return lib.why
		}
	}
	if under(to, "github.com/rs/zerolog") && (layer(from) == "hooks" || layer(from) == "config") {
		return "nothing in hooks or config logs: it returns errors"
	}
	return ""
}

// actorsMeet holds that actors know each other's messages only, so that no one
// reaches past another's mailbox. A target knows what a target is, and nothing
// of who calls it.
func actorsMeet(from, to string) string {
	if layer(from) != "actors" || layer(to) != "actors" {
		return ""
	}
	const actors = Module + "/actors/"
	if under(from, actors+"target") {
		if under(to, actors+"target") {
			return ""
		}
		return "a target knows nothing of the actors that call it"
	}
	own, _, _ := strings.Cut(strings.TrimPrefix(from, actors), "/")
	if under(to, actors+own) {
		return ""
	}
	for _, messages := range []string{"actor", "delivery", "deadletter", "target"} {
		if to == actors+messages {
			return ""
		}
	}
	return "an actor knows of another only the message types in actors/actor, actors/delivery, actors/deadletter and actors/target"
}

// layer returns the first element below the module, "" outside it.
func layer(path string) string {
	rest, ok := strings.CutPrefix(path, Module+"/")
	if !ok {
		return ""
	}
	first, _, _ := strings.Cut(rest, "/")
	return first
}

// under reports whether path is prefix or below it; a major version's suffix
// counts as below.
func under(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}
