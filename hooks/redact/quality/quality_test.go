package quality

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"ways/hooks/redact"
)

const (
	seed    = 20260301
	planted = 3000
)

func masker(t testing.TB) *redact.Masker {
	t.Helper()
	m, err := redact.New(redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Recall over the planted corpus, by family. Whatever was masked, the record is
// JSON, and a second masking finds nothing.
func TestQualityRecall(t *testing.T) {
	floors := map[string]float64{
		"token": 0.998, "assigned": 0.995, "password": 0.99, "env": 0.99, "url": 0.99,
		"header": 0.99, "key": 0.995, "jwt": 0.995, "manifest": 0.99,
	}
	m := masker(t)
	n, found := map[string]int{}, map[string]int{}
	for _, p := range Corpus(seed, planted) {
		n[p.Family]++
		out := m.Seal(p.Record, redact.Envelope{Rule: "q/q", RuleSeq: 1})
		if !json.Valid(out.Bytes()) {
			t.Fatalf("no JSON: %s", out.Bytes())
		}
		if bad := BrokenJSON(p.Record, out.Bytes()); bad != "" {
			t.Errorf("JSON inside a string was broken: %s\nin %s", bad, p.Record)
		}
		body, _, _ := strings.Cut(string(out.Bytes()), `,"rule":"q/q"`)
		if again := m.Seal([]byte(body+"}"), redact.Envelope{Rule: "q/q", RuleSeq: 1}); again.Counts() != nil {
			t.Errorf("masked again: %s\nthen %s", out.Bytes(), again.Bytes())
		}
		if leak := Leaks(out.Bytes(), p.Parts); leak != "" {
			t.Logf("missed: %s %s, %s: %.200q", p.Family, p.Service, p.Place, p.Text)
			continue
		}
		found[p.Family]++
	}
	if len(n) != len(floors) {
		t.Errorf("%d families, want %d", len(n), len(floors))
	}
	for _, f := range slices.Sorted(maps.Keys(n)) {
		recall := float64(found[f]) / float64(n[f])
		t.Logf("%-10s %5d of %5d  %.2f %%", f, found[f], n[f], 100*recall)
		if recall < floors[f] {
			t.Errorf("%s: recall %.4f, floor %.4f", f, recall, floors[f])
		}
	}
}

// Every service of the corpus has its secret found at least once where nothing
// but its format or its name gives it away.
func TestQualityServices(t *testing.T) {
	m := masker(t)
	services := map[string]bool{}
	for i, list := range [][]Format{Tokens(), Assigned()} {
		for _, f := range list {
			services[strings.SplitN(f.Service, "-", 2)[0]] = true
			g := newGen(uint64(len(services)))
			secret := g.pattern(f.Pattern)
			text := "x " + secret + " y"
			if i == 1 {
				text = strings.ToUpper(f.Service) + "_API_KEY=" + secret
			}
			out, _ := m.Text([]byte(text))
			if Leaks(out, []string{secret}) != "" {
				t.Errorf("%s: %s not masked in %q", f.Service, secret, out)
			}
		}
	}
	if len(services) < 150 {
		t.Errorf("%d services, want at least 150", len(services))
	}
	t.Logf("%d services", len(services))
}
