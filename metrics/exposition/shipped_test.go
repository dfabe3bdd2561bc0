package exposition_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ways/metrics/exposition"
)

// named are the metrics that a text names, without what a histogram's series have
// behind the name.
func named(text string) []string {
	var names []string
	for _, n := range regexp.MustCompile(`\bways_[a-z_]+\b`).FindAllString(text, -1) {
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base := strings.TrimSuffix(n, suffix); strings.HasSuffix(base, "_seconds") {
				n = base
			}
		}
		names = append(names, n)
	}
	return names
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every metric that the dashboard, the alerts and the page about them name is
// there, and the dashboard leaves out none that can go wrong.
func TestNamedMetricsExist(t *testing.T) {
	var have []string
	for _, m := range exposition.Metrics() {
		have = append(have, m.Name)
	}
	shown := map[string]bool{}
	for _, file := range []string{"grafana-dashboard.json", "alerts.yaml", "metrics.md"} {
		names := named(read(t, file))
		if len(names) == 0 {
			t.Errorf("%s names none", file)
		}
		for _, n := range names {
			if !slices.Contains(have, n) {
				t.Errorf("%s names %s, which is not there", file, n)
			}
			shown[n] = shown[n] || file == "grafana-dashboard.json"
		}
	}
	for _, n := range have {
		if !shown[n] && n != "ways_build_info" && n != "ways_records_matched_total" {
			t.Errorf("the dashboard shows no %s", n)
		}
	}
}

// The dashboard is one that Grafana can import: panels have ids of their own, lie
// within its 24 columns and do not overlap, and ask the data source that is chosen.
func TestDashboard(t *testing.T) {
	var d struct {
		Title         string
		UID           string
		SchemaVersion int
		Templating    struct{ List []struct{ Name, Type string } }
		Panels        []struct {
			ID         int
			Title      string
			Type       string
			Datasource struct{ UID string }
			GridPos    struct{ X, Y, W, H int }
			Targets    []struct {
				Expr, RefID string
				Datasource  struct{ UID string }
			}
		}
	}
	if err := json.Unmarshal([]byte(read(t, "grafana-dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	if d.Title == "" || d.UID == "" || d.SchemaVersion == 0 || len(d.Panels) < 10 || d.Templating.List[0].Type != "datasource" {
		t.Errorf("%+v", d)
	}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || len(p.Targets) == 0 || p.Datasource.UID != "${datasource}" {
			t.Errorf("panel %+v", p)
		}
		ids[p.ID] = true
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if refs[target.RefID] || target.Expr == "" || target.Datasource.UID != "${datasource}" {
				t.Errorf("panel %q: target %+v", p.Title, target)
			}
			refs[target.RefID] = true
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other := cells[at]; other != "" || at[0] >= 24 {
					t.Fatalf("panel %q lies on %q at %v", p.Title, other, at)
				}
				cells[at] = p.Title
			}
		}
	}
}

// The service files start the server, as its help has it.
func TestServiceFiles(t *testing.T) {
	const words = "metrics serve --listen 127.0.0.1:9464"
	unit := read(t, "ways-metrics.service")
	if !strings.Contains(unit, "\nExecStart=%h/.local/bin/ways "+words+"\n") || !strings.Contains(unit, "\nWantedBy=default.target\n") {
		t.Errorf("unit: %s", unit)
	}
	dec := xml.NewDecoder(strings.NewReader(read(t, "local.ways.metrics.plist")))
	var texts []string
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := tok.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			texts = append(texts, string(text))
		}
	}
	if all := strings.Join(texts, " "); !strings.Contains(all, "ProgramArguments /Users/you/.local/bin/ways "+words+" ") || !strings.HasPrefix(all, "Label local.ways.metrics ") {
		t.Errorf("agent: %s", all)
	}
}
