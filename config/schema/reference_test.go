package schema

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/sensors-reference.md")

const referencePage = "../../docs/sensors-reference.md"

// The committed page is what the tables say.
func TestReference(t *testing.T) {
	want := Reference()
	if *update {
		if err := os.WriteFile(referencePage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/sensors-reference.md is not what the tables say; run: go test ./config/schema -run Reference -update")
	}
}

// Every key has its place on the page, and every link of it a heading.
func TestReferenceIsWhole(t *testing.T) {
	page := Reference()
	headings := map[string]bool{}
	for line := range strings.SplitSeq(page, "\n") {
		if name, ok := strings.CutPrefix(line, "### `"); ok {
			a := anchor(strings.TrimSuffix(name, "`"))
			if headings[a] {
				t.Errorf("two headings lead to #%s", a)
			}
			headings[a] = true
		}
	}
	for _, k := range both() {
		if !headings[anchor(k.Name)] || !strings.Contains(page, "(#"+anchor(k.Name)+")") {
			t.Errorf("%s is not on the page", k.Name)
		}
	}
	if len(headings) != len(both()) {
		t.Errorf("%d headings for %d keys", len(headings), len(both()))
	}
}
