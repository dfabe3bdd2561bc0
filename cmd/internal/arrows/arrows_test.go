package arrows

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// repository is the repository's root, seen from this package.
func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// product loads the repository's own import graph for both systems it is built
// for.
func product(t *testing.T) Graph {
	t.Helper()
	linux, err := Load(t.Context(), repository(t), "linux")
	if err != nil {
		t.Fatal(err)
	}
	darwin, err := Load(t.Context(), repository(t), "darwin")
	if err != nil {
		t.Fatal(err)
	}
	return Union(linux, darwin)
}

// TestProduct holds the architecture's arrows in this repository.
func TestProduct(t *testing.T) {
	g := product(t)
	for _, v := range Check(g) {
		t.Errorf("%v\nSee docs/architecture.md, \"Arrows\".", v)
	}
	// A graph without the product's packages would pass every check.
	for _, want := range []string{"cmd", "supervisor", "actors", "hooks", "config", "metrics"} {
		if !slices.ContainsFunc(paths(g), func(path string) bool { return layer(path) == want }) {
			t.Errorf("go list names no package below %s", want)
		}
	}
}

// TestCheck shows that every banned import is found, and the allowed ones pass.
func TestCheck(t *testing.T) {
	std := map[string]bool{"os": true, "encoding/json": true}
	tests := []struct {
		from, to string
		why      string // a part of the reason; empty when the import is fine
	}{
		{"ways/cmd/waysctl", "ways/cmd/internal/status", ""},
		{"ways/cmd/waysctl", "ways/supervisor", ""},
		{"ways/cmd/ways", "ways/hooks/front", ""},
		{"ways/cmd/internal/status", "ways/config/plan", ""},
		{"ways/supervisor", "ways/actors/intake", ""},
		{"ways/supervisor", "ways/cmd/internal/status", "supervisor may import"},
		{"ways/actors/intake", "ways/hooks/spool", ""},
		{"ways/actors/meter", "ways/metrics/counters", ""},
		{"ways/actors/rule", "ways/config/where", ""},
		{"ways/actors/intake", "ways/supervisor", "actors may import"},
		{"ways/actors/intake", "ways/cmd/ways", "actors may import"},
		{"ways/config/plan", "ways/hooks/record", ""},
		{"ways/config/compile", "ways/config/sensors", ""},
		{"ways/config/plan", "ways/actors/target", "config may import"},
		{"ways/config/plan", "ways/metrics/counters", "config may import"},
		{"ways/config/plan", "ways/supervisor", "config may import"},
		{"ways/metrics/counters", "ways/config/plan", "metrics may import"},
		{"ways/metrics/counters", "ways/actors/meter", "metrics may import"},
		{"ways/hooks/front", "ways/hooks/spool", ""},
		{"ways/hooks/index", "ways/config/plan", "hooks may import"},
		{"ways/hooks/tally", "ways/metrics/counters", "hooks may import"},
		{"ways/hooks/launch", "ways/actors/actor", "hooks may import"},
		{"ways/hooks/launch", "ways/supervisor", "hooks may import"},
		{"ways/hooks/launch", "ways/cmd/waysctl", "hooks may import"},
		{"ways/tools/gen", "ways/hooks/record", "no part of the tree"},

		{"ways/supervisor", "github.com/thejerf/suture/v4", ""},
		{"ways/actors/actor", "github.com/thejerf/suture/v4", "supervisor alone"},
		{"ways/cmd/waysctl", "github.com/thejerf/suture/v4", "supervisor alone"},
		{"ways/config/sensors", "gopkg.in/yaml.v3", ""},
		{"ways/cmd/internal/sensors", "gopkg.in/yaml.v3", "config alone"},
		{"ways/hooks/index", "gopkg.in/yaml.v3", "config alone"},
		{"ways/cmd/internal/status", "github.com/spf13/pflag", ""},
		{"ways/supervisor", "github.com/spf13/pflag", "cmd alone"},
		{"ways/config/settings", "github.com/spf13/pflag", "cmd alone"},
		{"ways/metrics/exposition", "github.com/prometheus/client_golang/prometheus", ""},
		{"ways/cmd/internal/metrics", "github.com/prometheus/client_golang/prometheus/promhttp", "metrics alone"},
		{"ways/actors/meter", "github.com/prometheus/client_model/go", "metrics alone"},
		{"ways/supervisor", "github.com/rs/zerolog", ""},
		{"ways/actors/meter", "github.com/rs/zerolog", ""},
		{"ways/config/sensors", "github.com/rs/zerolog", "nothing in hooks or config logs"},
		{"ways/hooks/tally", "github.com/rs/zerolog/log", "nothing in hooks or config logs"},

		{"ways/hooks/payload", "os", ""},
		{"ways/hooks/payload", "encoding/json", ""},
		{"ways/hooks/payload", "github.com/go-json-experiment/json/jsontext", ""},
		{"ways/hooks/payload", "github.com/go-json-experiment/json", "linked into the hook's binary"},
		{"ways/hooks/launch", "golang.org/x/sys/unix", "linked into the hook's binary"},

		{"ways/actors/rule", "ways/actors/actor", ""},
		{"ways/actors/rule", "ways/actors/delivery", ""},
		{"ways/actors/rule", "ways/actors/target", ""},
		{"ways/actors/rule", "ways/actors/rule/internal/queue", ""},
		{"ways/actors/rule", "ways/actors/target/file", "only the message types"},
		{"ways/actors/rule", "ways/actors/watchdog", "only the message types"},
		{"ways/actors/intake", "ways/actors/rule", "only the message types"},
		{"ways/actors/target/file", "ways/actors/target", ""},
		{"ways/actors/target/file", "ways/actors/rule", "a target knows nothing"},
		{"ways/actors/target/http", "ways/actors/intake", "a target knows nothing"},
		{"ways/actors/target", "ways/actors/delivery", "a target knows nothing"},
	}
	for _, tt := range tests {
		t.Run(tt.from+"->"+tt.to, func(t *testing.T) {
			g := Graph{
				tt.from: {Path: tt.from, Imports: []string{tt.to}},
				tt.to:   {Path: tt.to, Std: std[tt.to]},
			}
			got := Check(g)
			if tt.why == "" {
				if len(got) != 0 {
					t.Errorf("Check: %v, want nothing", got)
				}
				return
			}
			if !slices.ContainsFunc(got, func(v Violation) bool {
				return v.From == tt.from && v.To == tt.to && strings.Contains(v.Why, tt.why)
			}) {
				t.Errorf("Check: %v, want one that says %q", got, tt.why)
			}
		})
	}
}

// TestCheckFindsEach shows that one bad import does not hide the next, and that
// a package outside the product is nobody's business.
func TestCheckFindsEach(t *testing.T) {
	g := Graph{
		"ways/hooks/a":       {Path: "ways/hooks/a", Imports: []string{"ways/supervisor", "gopkg.in/yaml.v3", "os"}},
		"ways/supervisor":    {Path: "ways/supervisor", Imports: []string{"ways/cmd/x"}},
		"ways/cmd/x":         {Path: "ways/cmd/x"},
		"gopkg.in/yaml.v3":   {Path: "gopkg.in/yaml.v3", Imports: []string{"os"}},
		"os":                 {Path: "os", Std: true},
		"example.com/waysed": {Path: "example.com/waysed", Imports: []string{"gopkg.in/yaml.v3"}},
	}
	var got []string
	for _, v := range Check(g) {
		got = append(got, v.From+" "+v.To)
	}
	want := []string{
		"ways/hooks/a gopkg.in/yaml.v3", // not under config
		"ways/hooks/a gopkg.in/yaml.v3", // not the standard library
		"ways/hooks/a ways/supervisor",  // upwards
		"ways/hooks/a ways/supervisor",  // not hooks
		"ways/supervisor ways/cmd/x",
	}
	if !slices.Equal(got, want) {
		t.Errorf("Check found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func paths(g Graph) []string {
	var all []string
	for path := range g {
		all = append(all, path)
	}
	return all
}
