package events_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ways/metrics/events"
)

var update = flag.Bool("update", false, "write docs/events.md")

// docs/events.md is what the tables say.
func TestReference(t *testing.T) {
	const path = "../../docs/events.md"
	if *update {
		if err := os.WriteFile(path, []byte(events.Reference()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != events.Reference() {
		t.Error("docs/events.md is not what the tables say; run: go test ./metrics/events -run Reference -update")
	}
}

// The tables have every constant of an event, and every field of a line.
func TestTablesAreComplete(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "events.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for _, value := range v.Values {
			if lit, ok := value.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				name, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				named = append(named, name)
			}
		}
		return true
	})
	var listed, fields []string
	for _, k := range events.Kinds() {
		listed = append(listed, k.Name)
		for _, f := range k.Fields {
			if !slices.ContainsFunc(events.Fields(), func(o events.Field) bool { return o.Name == f }) {
				t.Errorf("%s has the field %s, which the table of fields does not", k.Name, f)
			}
		}
	}
	slices.Sort(named)
	slices.Sort(listed)
	if !slices.Equal(named, listed) {
		t.Errorf("constants %q, table %q", named, listed)
	}
	for _, f := range events.Fields() {
		fields = append(fields, f.Name)
	}
	line := reflect.TypeFor[events.Event]()
	var have []string
	for i := range line.NumField() {
		name, _, _ := strings.Cut(line.Field(i).Tag.Get("json"), ",")
		have = append(have, name)
	}
	slices.Sort(fields)
	slices.Sort(have)
	if !slices.Equal(have, fields) {
		t.Errorf("a line has %q, the table %q", have, fields)
	}
}
