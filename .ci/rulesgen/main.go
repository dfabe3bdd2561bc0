// Command rulesgen writes hooks/redact/rules_gen.go: the gitleaks rules, as
// data in the form that our engine reads.
//
//	go run . > ../../hooks/redact/rules_gen.go
package main

import (
	"fmt"
	"os"
)

func main() {
	src, err := Generate()
	if err != nil {
		fmt.Fprintln(os.Stderr, "rulesgen:", err)
		os.Exit(1)
	}
	os.Stdout.Write(src)
}
