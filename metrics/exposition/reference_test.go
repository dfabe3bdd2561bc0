package exposition_test

import (
	"flag"
	"os"
	"testing"

	"ways/metrics/exposition"
)

var update = flag.Bool("update", false, "write docs/metrics.md")

// docs/metrics.md is what the tables say.
func TestReference(t *testing.T) {
	const path = "../../docs/metrics.md"
	if *update {
		if err := os.WriteFile(path, []byte(exposition.Reference()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != exposition.Reference() {
		t.Error("docs/metrics.md is not what the tables say; run: go test ./metrics/exposition -run Reference -update")
	}
}
