package quality

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"ways/hooks/redact"
)

const (
	seed    = 20260301
	planted = 6000
)

func masker(t testing.TB) *redact.Masker {
	t.Helper()
	m, err := redact.New(redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Recall over the planted corpus.
func TestQualityRecall(t *testing.T) {
	m := masker(t)
	type tally struct{ n, found int }
	byFamily := map[string]*tally{}
	missed := map[string]int{}
	total, found := 0, 0
	for _, p := range Corpus(seed, planted) {
		out := m.Seal(p.Record, redact.Envelope{Rule: "q/q", RuleSeq: 1})
		if !json.Valid(out.Bytes()) {
			t.Fatalf("no JSON: %s", out.Bytes())
		}
		f := byFamily[p.Family]
		if f == nil {
			f = &tally{}
			byFamily[p.Family] = f
		}
		f.n++
		total++
		if Leaks(out.Bytes(), p.Parts) == "" {
			f.found++
			found++
			continue
		}
		missed[p.Family+" "+p.Service+" "+strings.SplitN(p.Place, " in ", 2)[0]]++
		if testing.Verbose() {
			t.Logf("missed: %s %s %s: %q", p.Family, p.Service, p.Place, p.Text[:min(len(p.Text), 200)])
		}
	}
	for name, f := range byFamily {
		t.Logf("%-10s %5d of %5d  %.2f %%", name, f.found, f.n, 100*float64(f.found)/float64(f.n))
	}
	t.Logf("all %d of %d", found, total)
	var keys []string
	for k := range missed {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { return missed[b] - missed[a] })
	for _, k := range keys[:min(60, len(keys))] {
		t.Logf("MISS %4d %s", missed[k], k)
	}
}
