package schema

import (
	"fmt"
	"slices"
	"strings"

	"ways/config/plan"
)

// Reference writes the reference page, docs/sensors-reference.md, from the
// tables.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# Reference: sensor files and settings

<!-- Made from the tables in config/schema. Change those, then run:
     go test ./config/schema -run Reference -update -->

How to write a sensor file is in [sensors.md](sensors.md); this page lists every key. A key that
is not listed is a mistake, and the rule or file that holds it is refused.

## Sensor files

`)
	writeKeys(&b, Sensor())
	b.WriteString("## The user's config.yaml\n\nKeys of other parts of ways and of other programs are let be.\n\n")
	writeKeys(&b, Settings())
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func writeKeys(b *strings.Builder, keys []Key) {
	b.WriteString("| key | value | default | |\n| --- | --- | --- | --- |\n")
	for _, k := range keys {
		def := "`" + k.Default + "`"
		switch {
		case k.Required:
			def = "required"
		case k.Default == "":
			def = ""
		case strings.Contains(k.Default, "|"):
			def = "see below"
		}
		fmt.Fprintf(b, "| [`%s`](#%s) | %s | %s | %s |\n", k.Name, anchor(k.Name), k.values(), def, k.Short)
	}
	b.WriteString("\n")
	for _, k := range keys {
		fmt.Fprintf(b, "### `%s`\n\n%s\n\n", k.Name, k.Short)
		if k.Long != "" {
			b.WriteString(k.Long + "\n\n")
		}
		fmt.Fprintf(b, "- Value: %s\n", k.values())
		switch {
		case k.EachFile:
			b.WriteString("- Required in every file\n")
		case k.Required && strings.HasPrefix(k.Parent(), "redaction."):
			fmt.Fprintf(b, "- Required in every entry of `%s`\n", strings.TrimSuffix(k.Parent(), "[]"))
		case k.Required && k.Parent() != "" && k.Parent() != "rules[]":
			fmt.Fprintf(b, "- Required where there is a `%s`\n", strings.TrimPrefix(k.Parent(), "rules[]."))
		case k.Required:
			b.WriteString("- Required, in one layer at least\n")
		case k.Default != "":
			fmt.Fprintf(b, "- Default: `%s`\n", k.Default)
		}
		fmt.Fprintf(b, "- Set in: %s\n\n", scope(k.Scope))
	}
}

// values says in words what a key may hold.
func (k Key) values() string {
	switch k.Type {
	case Choice:
		quoted := make([]string, len(k.Choices))
		for i, c := range k.Choices {
			quoted[i] = "`" + c + "`"
		}
		return strings.Join(quoted, " or ")
	case Int, Number, Duration:
		return string(k.Type) + ", " + k.Range()
	case Text:
		return fmt.Sprintf("text, at most %d bytes", k.Max)
	case Rules:
		return fmt.Sprintf("list of rules, at most %d", k.Max)
	case Texts, Pairs, Dirs, Sections, Masks, Allows:
		return fmt.Sprintf("%s, at most %d", k.Type, k.Max)
	case Where:
		return fmt.Sprintf("condition, at most %d paths", k.Max)
	}
	return string(k.Type)
}

func scope(layers []plan.Layer) string {
	if slices.Equal(layers, everyLayer()) {
		return "any layer"
	}
	names := make([]string, len(layers))
	for i, l := range layers {
		names[i] = "the " + string(l) + " layer alone"
	}
	return strings.Join(names, ", ")
}

// anchor is the link target that a heading of a key's name gets.
func anchor(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return -1
	}, strings.ToLower(name))
}
