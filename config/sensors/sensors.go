package sensors

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"ways/config/files"
	"ways/config/plan"
	"ways/config/problem"
	"ways/config/schema"
	"ways/config/trust"
	"ways/hooks/record"
)

// Problem is a finding about a sensor file.
type Problem = problem.Problem

// Default is the layer of a value that no file set.
const Default plan.Layer = "default"

// Origin says which layer and place set a value.
type Origin struct {
	Layer plan.Layer `json:"layer"` // shipped, user, project or default
	File  string     `json:"file,omitempty"`
	Line  int        `json:"line,omitempty"`
	Col   int        `json:"col,omitempty"`
}

// Source is one layer's file of a sensor.
type Source struct {
	Layer plan.Layer `json:"layer"`
	File  string     `json:"file,omitempty"` // empty for shipped
}

// Set is every sensor of every layer that could be read, whether it is enabled
// or not.
type Set struct {
	Sensors []Sensor // in order of name
	// Problems is everything that was found, of sensors and of files that are
	// none, in order of file and place.
	Problems []Problem
	// Untrusted lists files of the project that were not read, because the
	// user's settings do not list the project.
	Untrusted []string
	// Read has the project's files that were read, with trust.Sum of each.
	Read trust.Files
	// Inputs is every file and directory the set depends on.
	Inputs []files.Input
}

// Sensor is one sensor after its layers were merged.
type Sensor struct {
	Name        string
	Description string
	// Enabled is what the sensor says of itself.
	Enabled bool
	// Refused is true when a file of it has a mistake outside its rules; then no
	// rule of it runs.
	Refused bool
	Sources []Source // weakest first
	Rules   []Rule   // in order of first appearance, weakest layer first
	// Origins has the origin of every key of the sensor itself, by name.
	Origins map[string]Origin
}

// Rule is one rule after its layers were merged. The embedded plan.Rule has
// every field set when the rule is not refused, and the fields that could be read
// when it is.
type Rule struct {
	plan.Rule
	Sensor, Name string
	// Enabled is what the rule says of itself.
	Enabled bool
	// Refused is true when the rule, or its whole sensor, cannot run.
	Refused bool
	// Active is true when the rule runs: it and its sensor are enabled, and
	// neither is refused.
	Active bool
	// Problems is what was found about this rule.
	Problems []Problem
	// Origins has the origin of every key the rule has, by the name it has in
	// config/schema without "rules[].": "timeout", "dispatch.file.path".
	Origins map[string]Origin
	fields  map[string]field
}

// Find returns the sensor with that name.
func (s *Set) Find(name string) (Sensor, bool) {
	i, ok := slices.BinarySearchFunc(s.Sensors, name, func(a Sensor, b string) int { return strings.Compare(a.Name, b) })
	if !ok {
		return Sensor{}, false
	}
	return s.Sensors[i], true
}

// Find returns the sensor's rule with that name.
func (s *Sensor) Find(rule string) (Rule, bool) {
	for _, r := range s.Rules {
		if r.Name == rule {
			return r, true
		}
	}
	return Rule{}, false
}

// Active returns the rules that run, in order of id.
func (s *Set) Active() []Rule {
	var active []Rule
	for _, sensor := range s.Sensors {
		for _, rule := range sensor.Rules {
			if rule.Active {
				active = append(active, rule)
			}
		}
	}
	slices.SortFunc(active, func(a, b Rule) int { return strings.Compare(a.ID, b.ID) })
	return active
}

// OffMachine reports whether the rule may send session content off this
// machine, and to whom. A file stays. An address that names this machine is still
// reported, with local true: what listens there may pass it on.
func (r *Rule) OffMachine() (to string, local, off bool) {
	switch {
	case r.Target.HTTP != nil:
		to, local = describeURL(r.Target.HTTP.URL)
		return to, local, true
	case r.Target.Command != nil && len(r.Target.Command.Argv) > 0:
		return r.Target.Command.Argv[0], false, true
	}
	return "", false, false
}

// Destination names where the rule's records go, for people, without secrets.
func (r *Rule) Destination() string {
	if r.Target.File != nil {
		return r.Target.File.Path
	}
	to, _, _ := r.OffMachine()
	return to
}

// Setting is one key of a rule with the value that holds and who set it.
type Setting struct {
	Key    string `json:"key"`   // "timeout", "dispatch.file.path"
	Value  any    `json:"value"` // string, bool, int64, []string, []plan.Pair or JSON
	Origin Origin `json:"origin"`
}

// Settings lists every key the rule has, in the order of the reference page,
// with the defaults that apply.
func (r *Rule) Settings(table *schema.Table) []Setting {
	var list []Setting
	for _, k := range table.Under("rules[]") {
		short := strings.TrimPrefix(k.Name, "rules[].")
		f, ok := r.fields[short]
		if !ok || k.Type == schema.Group {
			continue
		}
		list = append(list, Setting{Key: short, Value: f.value(), Origin: f.origin})
	}
	return list
}

// Text writes the value on one line.
func (s Setting) Text() string {
	switch v := s.Value.(type) {
	case string:
		return v
	case []string:
		return "[" + strings.Join(v, ", ") + "]"
	case []plan.Pair:
		parts := make([]string, len(v))
		for i, p := range v {
			parts[i] = p.Name + ": " + p.Value
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case jsontext.Value:
		return string(v)
	}
	return fmt.Sprint(s.Value)
}

// field is one key's value in one file.
type field struct {
	key      schema.Key
	scalar   schema.Value
	texts    []string
	pairs    []plan.Pair
	sections record.Set
	where    []byte
	origin   Origin
	// places are those of the items of texts and pairs, or of where's paths.
	places []Origin
}

func (f *field) value() any {
	switch f.key.Type {
	case schema.Bool:
		return f.scalar.Bool
	case schema.Int:
		return f.scalar.Int
	case schema.Texts:
		return f.texts
	case schema.Pairs:
		return f.pairs
	case schema.Where:
		return jsontext.Value(f.where)
	case schema.Sections:
		var names []string
		for _, s := range f.sections.List() {
			names = append(names, s.String())
		}
		return names
	}
	return f.scalar.Text
}
