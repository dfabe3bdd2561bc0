// Package schema holds the one table of configuration keys: what a sensor file
// may hold, and what the user's config.yaml may hold for ways. Parsing checks,
// validation, defaults, suggestions for misspelt keys, the reference page and the
// settings verbs all read it; a key is added here and nowhere else.
package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"ways/config/plan"
	"ways/hooks/record"
)

// Type says what a key holds.
type Type string

// The types.
const (
	Group    Type = "group"            // a mapping of further keys
	Rules    Type = "list of rules"    // a sequence of groups, each with a name
	Text     Type = "text"             // a string
	Name     Type = "name"             // a-z, 0-9 and -, at most 64 characters
	Bool     Type = "true or false"    // no other spelling
	Int      Type = "number"           // a whole number in decimal
	Duration Type = "duration"         // as 250ms, 5s, 1m30s
	Choice   Type = "one of"           // one of Key.Choices
	Sections Type = "list of sections" // names from hooks/record
	Texts    Type = "list of text"     // at least one
	Pairs    Type = "map of text"      // names to text, order kept
	Where    Type = "condition"        // paths to values or operators
	Dirs     Type = "list of directories"
	Number   Type = "decimal number" // as 3 or 3.5
	// Masks is a sequence of groups, each a masking rule with a name.
	Masks Type = "list of masking rules"
	// Allows is a sequence of texts, and of groups with one text each.
	Allows Type = "list of text or regex"
)

// Key is one row of the table.
type Key struct {
	// Name is the key's path in its file: "rules[].dispatch.file.path".
	Name string
	Type Type
	// Choices are a Choice's values.
	Choices []string
	// Min and Max bound an Int or Number (as it is) or a Duration (in nanoseconds), and
	// Max a text's length in bytes, a list's or map's number of items. 0 is no bound.
	Min, Max int64
	// Required says that the key must be set, in some layer; a key of a group
	// only when the group is there.
	Required bool
	// EachFile says that every file must set the key itself.
	EachFile bool
	// Default is what holds when no layer sets the key, as it would be written.
	Default string
	// Scope lists the layers that may set the key.
	Scope []plan.Layer
	// Short is one line; Long says more, in Markdown.
	Short, Long string
}

// Leaf returns the last part of the key's name.
func (k Key) Leaf() string { return k.Name[strings.LastIndexByte(k.Name, '.')+1:] }

// Parent returns the key's name without its last part; empty at the top.
func (k Key) Parent() string { return k.Name[:max(0, strings.LastIndexByte(k.Name, '.'))] }

// Sensor returns every key of a sensor file, parents before their children, in
// the order of the reference page.
func Sensor() []Key { return sensorKeys() }

// Settings returns the keys of the user's config.yaml that ways reads.
func Settings() []Key { return settingsKeys() }

// Table is a set of keys that can be looked up.
type Table struct {
	keys     []Key
	byName   map[string]int
	children map[string][]string
}

// NewTable indexes keys by name. Names must be unique.
func NewTable(keys []Key) *Table {
	t := &Table{keys: keys, byName: map[string]int{}, children: map[string][]string{}}
	for i, k := range keys {
		t.byName[k.Name] = i
		t.children[k.Parent()] = append(t.children[k.Parent()], k.Leaf())
	}
	return t
}

// Keys returns all keys in order.
func (t *Table) Keys() []Key { return t.keys }

// Key returns the key with that name.
func (t *Table) Key(name string) (Key, bool) {
	i, ok := t.byName[name]
	if !ok {
		return Key{}, false
	}
	return t.keys[i], true
}

// Child returns a group's key by its own name. A name with a dot in it is that
// of no key: YAML would read "a.b" as one name, not as b within a.
func (t *Table) Child(parent, leaf string) (Key, bool) {
	if strings.Contains(leaf, ".") {
		return Key{}, false
	}
	return t.Key(Join(parent, leaf))
}

// Children returns the names, within their parent, of a group's keys: of
// "rules[]" for instance; "" is the top of the file.
func (t *Table) Children(parent string) []string { return t.children[parent] }

// Under returns every key below a group.
func (t *Table) Under(parent string) []Key {
	var under []Key
	for _, k := range t.keys {
		if strings.HasPrefix(k.Name, parent+".") {
			under = append(under, k)
		}
	}
	return under
}

// Join returns the name of a group's key.
func Join(parent, leaf string) string {
	if parent == "" {
		return leaf
	}
	return parent + "." + leaf
}

// Value is a scalar that a key accepted.
type Value struct {
	Text     string // as written, for every type
	Bool     bool
	Int      int64
	Float    float64
	Duration time.Duration
}

// ValueError says why a text cannot be a key's value, and what could be.
type ValueError struct {
	Reason string
	Hint   string // what to write instead; may be empty
}

func (e *ValueError) Error() string {
	if e.Hint == "" {
		return e.Reason
	}
	return e.Reason + "; " + e.Hint
}

// Parse checks text as the value of a key of a scalar type: Text, Name, Bool,
// Int, Number, Duration or Choice. The error is a *ValueError.
func (k Key) Parse(text string) (Value, error) {
	v := Value{Text: text}
	switch k.Type {
	case Bool:
		switch text {
		case "true":
			v.Bool = true
		case "false":
		default:
			return v, &ValueError{fmt.Sprintf("%q is neither true nor false", text), "write true or false"}
		}
	case Int:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || strconv.FormatInt(n, 10) != text {
			return v, &ValueError{fmt.Sprintf("%q is no whole number", text), "write digits only, such as " + k.example()}
		}
		if n < k.Min || k.Max != 0 && n > k.Max {
			return v, &ValueError{fmt.Sprintf("must be %s, not %d", k.Range(), n), ""}
		}
		v.Int = n
	case Number:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || strings.Trim(text, "0123456789.") != "" {
			return v, &ValueError{fmt.Sprintf("%q is no decimal number", text), "write digits, such as 3 or 3.5"}
		}
		if n < float64(k.Min) || n > float64(k.Max) {
			return v, &ValueError{fmt.Sprintf("must be %s, not %s", k.Range(), text), ""}
		}
		v.Float = n
	case Duration:
		return k.parseDuration(text)
	case Choice:
		if !slices.Contains(k.Choices, text) {
			e := &ValueError{fmt.Sprintf("must be %s, not %q", strings.Join(k.Choices, " or "), text), ""}
			if near := Suggest(text, k.Choices); near != "" {
				e.Hint = fmt.Sprintf("did you mean %q?", near)
			}
			return v, e
		}
	case Name:
		if !IsName(text) {
			return v, &ValueError{
				fmt.Sprintf("%q is no name", text),
				"a name is 1 to 64 characters of a-z, 0-9 and -, and does not begin with -",
			}
		}
	case Text:
		if err := CheckText(text); err != nil {
			return v, err
		}
		if k.Max != 0 && int64(len(text)) > k.Max {
			return v, &ValueError{fmt.Sprintf("longer than %d bytes", k.Max), ""}
		}
		if k.Required && text == "" {
			return v, &ValueError{"empty", ""}
		}
	default:
		return v, &ValueError{fmt.Sprintf("%s is a %s", k.Name, k.Type), "it cannot be set from one word"}
	}
	return v, nil
}

func (k Key) parseDuration(text string) (Value, error) {
	v := Value{Text: text}
	d, err := time.ParseDuration(text)
	if err != nil {
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			return v, &ValueError{fmt.Sprintf("%q has no unit", text), fmt.Sprintf("write %ss for seconds or %sms for milliseconds", text, text)}
		}
		return v, &ValueError{fmt.Sprintf("%q is no duration", text), "write a number and a unit: 250ms, 5s, 1m30s"}
	}
	// ParseDuration takes a bare 0.
	if text == "0" || text == "+0" || text == "-0" {
		return v, &ValueError{fmt.Sprintf("%q has no unit", text), "write a number and a unit: 250ms, 5s, 1m30s"}
	}
	if int64(d) < k.Min || k.Max != 0 && int64(d) > k.Max {
		return v, &ValueError{fmt.Sprintf("must be %s, not %s", k.Range(), text), ""}
	}
	v.Duration = d
	return v, nil
}

func (k Key) example() string {
	if k.Default != "" {
		return k.Default
	}
	return strconv.FormatInt(max(k.Min, 1), 10)
}

// Range says in words what an Int, Number or Duration is bounded by.
func (k Key) Range() string {
	if k.Type == Duration {
		return shortDuration(k.Min) + " to " + shortDuration(k.Max)
	}
	if k.Min == k.Max {
		return strconv.FormatInt(k.Min, 10)
	}
	return strconv.FormatInt(k.Min, 10) + " to " + strconv.FormatInt(k.Max, 10)
}

// shortDuration writes 1h as 1h, where Duration.String says 1h0m0s.
func shortDuration(ns int64) string {
	s := time.Duration(ns).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}

// CheckText refuses what no text in a configuration file may hold: NUL, which
// neither a path nor an argument nor a header can carry, and bytes that are no
// UTF-8. The error is a *ValueError.
func CheckText(text string) error {
	if strings.IndexByte(text, 0) >= 0 {
		return &ValueError{"holds a NUL character", ""}
	}
	if !utf8.ValidString(text) {
		return &ValueError{"is not UTF-8", ""}
	}
	return nil
}

// IsName reports whether s can name a sensor or a rule: [a-z0-9][a-z0-9-]{0,63}.
func IsName(s string) bool {
	if len(s) == 0 || len(s) > 64 || s[0] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// SettingKey returns the name under which the settings verbs reach a key of a
// sensor file (seed §9): ways.sensors.<sensor>.rules.<rule>.<field>. rule is
// empty for a key of the sensor itself.
func SettingKey(sensor, rule, name string) string {
	if rest, ok := strings.CutPrefix(name, "rules[]."); ok {
		return "ways.sensors." + sensor + ".rules." + rule + "." + rest
	}
	return "ways.sensors." + sensor + "." + name
}

// ParseSettingKey takes such a name apart. name is a key of the sensor table.
// Names of sensors and rules hold no dots, so there is one way to do it.
func ParseSettingKey(setting string) (sensor, rule, name string, ok bool) {
	rest, ok := strings.CutPrefix(setting, "ways.sensors.")
	if !ok {
		return "", "", "", false
	}
	sensor, rest, ok = strings.Cut(rest, ".")
	if !ok || !IsName(sensor) || rest == "" {
		return "", "", "", false
	}
	inRules, ok := strings.CutPrefix(rest, "rules.")
	if !ok {
		return sensor, "", rest, true
	}
	rule, field, ok := strings.Cut(inRules, ".")
	if !ok || !IsName(rule) || field == "" {
		return "", "", "", false
	}
	return sensor, rule, "rules[]." + field, true
}

// Suggest returns the candidate that word is most likely a misspelling of, or
// nothing when none is near.
func Suggest(word string, candidates []string) string {
	best, distance := "", 1+max(1, len(word)/3)
	lower := strings.ToLower(strings.NewReplacer("-", "_", " ", "_").Replace(word))
	for _, c := range candidates {
		d := editDistance(lower, strings.ReplaceAll(strings.ToLower(c), "-", "_"))
		if d < distance {
			best, distance = c, d
		}
	}
	return best
}

// editDistance counts the insertions, deletions, changes and swaps of two
// neighbours that make b of a. Words longer than 100 bytes are far from everything.
func editDistance(a, b string) int {
	if len(a) > 100 || len(b) > 100 {
		return 100
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(last[j]+1, row[j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// SectionNames returns the names a Sections value may hold.
func SectionNames() []string {
	var names []string
	for _, s := range record.Sections() {
		names = append(names, s.String())
	}
	return names
}
