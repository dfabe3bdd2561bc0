package sensors

import (
	"os"
	"slices"
	"strings"
	"testing"

	"ways/config/plan"
	"ways/config/problem"
	"ways/config/schema"
	"ways/config/settings"
	"ways/config/where"
)

func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/sensors.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every row of the page's tables of conditions is true.
func TestDocumentedConditions(t *testing.T) {
	table := schema.NewTable(schema.Sensor())
	covered := map[string]int{}
	rows := 0
	for line := range strings.SplitSeq(page(t), "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 4 || cells[3] != "match" && cells[3] != "no match" {
			continue
		}
		rows++
		condition, record := strings.Trim(cells[1], "`"), strings.Trim(cells[2], "`")
		d := parse(table, Source{Layer: plan.User, File: "f"}, "s", []byte(rule(toFile+"    where: "+condition+"\n")))
		s, problems := merge(table, "s", []*document{d})
		if len(problems) != 0 {
			t.Errorf("%s: %v", condition, problems)
			continue
		}
		c, err := where.Compile(s.Rules[0].Where, s.Rules[0].MatchAny)
		if err != nil {
			t.Errorf("%s: %v", condition, err)
			continue
		}
		if got := c.Match([]byte(record)); got != (cells[3] == "match") {
			t.Errorf("%s on %s: %v, the page says %s", condition, record, got, cells[3])
		}
		operator := strings.Trim(cells[0], "`")
		if slices.Contains(where.Operators(), operator) {
			if !strings.Contains(condition, operator+":") {
				t.Errorf("%s: a row about %s", condition, operator)
			}
			covered[operator+" "+cells[3]]++
		}
	}
	for _, operator := range where.Operators() {
		for _, outcome := range []string{"match", "no match"} {
			if covered[operator+" "+outcome] == 0 {
				t.Errorf("no example of %s with the outcome %q", operator, outcome)
			}
		}
	}
	if rows < 30 {
		t.Errorf("only %d rows were found", rows)
	}
}

// Every YAML example on the page is one that works.
func TestDocumentedExamples(t *testing.T) {
	table := schema.NewTable(schema.Sensor())
	blocks := strings.Split(page(t), "```yaml\n")[1:]
	whole := 0
	for _, block := range blocks {
		text, _, closed := strings.Cut(block, "```")
		if !closed {
			t.Fatalf("an example without its end: %.40s", block)
		}
		first, _, _ := strings.Cut(text, ":")
		switch first {
		case "spec":
			whole++
			_, after, _ := strings.Cut(text, "\nname: ")
			name, _, _ := strings.Cut(after, "\n")
			docs := []*document{parse(table, Source{Layer: plan.User, File: name}, name, []byte(text))}
			if shipped, err := ShippedText(name); err == nil {
				docs = append([]*document{parse(table, Source{Layer: plan.Shipped}, name, shipped)}, docs...)
			}
			s, problems := merge(table, name, docs)
			if errs := problem.Errors(problems); len(errs) != 0 {
				t.Errorf("%s: %v", name, errs)
			}
			for _, r := range s.Rules {
				if !r.Active {
					t.Errorf("%s does not run", r.ID)
				}
			}
		case "ways":
			s, problems := settings.Parse("config.yaml", "/home/me", []byte(text))
			if len(problems) != 0 || len(s.ProjectSensors) != 2 {
				t.Errorf("%s: %v", text, problems)
			}
		case "where":
			lines := "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ") + "\n"
			if problems := Check("s", []byte(rule(toFile+lines))); len(problems) != 0 {
				t.Errorf("%s: %v", text, problems)
			}
		default:
			t.Errorf("an example that no test knows how to read: %.40s", text)
		}
	}
	if whole < 3 || len(blocks) < 6 {
		t.Errorf("only %d examples were found, %d whole files", len(blocks), whole)
	}
}

// What the page says of the shipped sensors and of records is so.
func TestDocumentedNames(t *testing.T) {
	text := page(t)
	for _, name := range Shipped() {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("the shipped sensor %s is not named", name)
		}
	}
	for _, name := range recordFields() {
		if name != "test" && !strings.Contains(text, "`"+name+"`") {
			t.Errorf("the record's field %s is not named", name)
		}
	}
}
