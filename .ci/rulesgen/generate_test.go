package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The committed table is what this generator makes of the gitleaks release in
// go.mod.
func TestCommittedTableIsCurrent(t *testing.T) {
	want, err := Generate()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join("..", "..", "hooks", "redact", "rules_gen.go")
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the generator writes; run: go run . > ../../hooks/redact/rules_gen.go", name)
	}
}

// Every rule of gitleaks is taken over, or named with the matcher that does
// its work.
func TestEveryRuleIsAccountedFor(t *testing.T) {
	rules, stop, err := Rules()
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]int{}
	for _, r := range rules {
		modes[r.Mode]++
		if len(r.Keywords) == 0 {
			t.Errorf("%s: no keyword", r.ID)
		}
	}
	want := map[string]int{"modeAssign": 100, "modePrefix": 106, "modeWindow": 8, "modeNear": 1}
	for mode, n := range want {
		if modes[mode] != n {
			t.Errorf("%s: %d rules, want %d", mode, modes[mode], n)
		}
	}
	if len(stop) < 1000 {
		t.Errorf("%d stop words", len(stop))
	}
}
