package sensors

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"gopkg.in/yaml.v3"

	"ways/config/plan"
	"ways/config/problem"
	"ways/config/schema"
	"ways/config/where"
	"ways/config/yamlfile"
	"ways/hooks/record"
)

// document is one sensor file as it was read, before it meets other layers.
type document struct {
	source Source
	name   string
	fields map[string]field // the sensor's own keys
	rules  []*ruleText
	// broken: a mistake outside the rules.
	broken   bool
	problems []Problem
}

// ruleText is one rule of one file.
type ruleText struct {
	name     string // or rules[2]
	origin   Origin
	fields   map[string]field // by name without "rules[]."
	broken   bool
	problems []Problem
}

// parser reads one file.
type parser struct {
	table *schema.Table
	doc   *document
	rule  *ruleText // the one being read, nil outside
}

// parse reads a sensor file's text. name is what the file's name says the
// sensor is called. It never fails: what is wrong is in the document.
func parse(table *schema.Table, source Source, name string, data []byte) *document {
	p := &parser{table: table, doc: &document{source: source, name: name, fields: map[string]field{}}}
	root, fault := yamlfile.Parse(data)
	switch {
	case fault != nil:
		p.fault("", fault)
	case root == nil:
		p.fault("", &yamlfile.Fault{Line: 1, Col: 1, Message: "the file is empty", Hint: "write a sensor, or delete the file"})
	default:
		if fault := yamlfile.Plain(root); fault != nil {
			p.fault("", fault)
		} else if root.Kind != yaml.MappingNode {
			p.fault("", yamlfile.At(root, "is no sensor", "a sensor file begins with spec: 1 and kind: ways"))
		} else {
			p.group(root, "", p.doc.fields)
			p.perFile(root)
		}
	}
	return p.doc
}

// fault notes a mistake: in the rule being read, or else in the file.
func (p *parser) fault(key string, f *yamlfile.Fault) {
	found := Problem{
		File: p.doc.source.File, Line: f.Line, Col: f.Col, Sensor: p.doc.name, Key: key,
		Message: f.Message, Suggestion: f.Hint, Severity: problem.Error,
	}
	if p.rule == nil {
		p.doc.broken = true
		p.doc.problems = append(p.doc.problems, found)
		return
	}
	found.Rule = p.rule.name
	p.rule.broken = true
	p.rule.problems = append(p.rule.problems, found)
}

func (p *parser) origin(n *yaml.Node) Origin {
	return Origin{Layer: p.doc.source.Layer, File: p.doc.source.File, Line: n.Line, Col: n.Column}
}

// perFile checks what every file must say by itself.
func (p *parser) perFile(root *yaml.Node) {
	for _, k := range p.table.Keys() {
		if !k.EachFile || k.Parent() != "" {
			continue
		}
		if _, ok := p.doc.fields[k.Name]; !ok && !p.blamed(k.Name) {
			p.fault(k.Name, yamlfile.At(root, k.Name+" is missing", fmt.Sprintf("add the line %s: %s", k.Name, oneValue(k))))
		}
	}
	if f, ok := p.doc.fields["name"]; ok && f.scalar.Text != p.doc.name {
		p.fault("name", &yamlfile.Fault{
			Line: f.origin.Line, Col: f.origin.Col,
			Message: fmt.Sprintf("the file is named %s.yaml, and its sensor %s", p.doc.name, f.scalar.Text),
			Hint:    "make them the same, or leave name out",
		})
	}
}

// oneValue is the value a key with only one can have.
func oneValue(k schema.Key) string {
	if k.Type == schema.Choice {
		return k.Choices[0]
	}
	return fmt.Sprint(k.Min)
}

// blamed reports whether something was already said about a key.
func (p *parser) blamed(key string) bool {
	has := func(pr Problem) bool { return pr.Key == key }
	return slices.ContainsFunc(p.doc.problems, has) || p.rule != nil && slices.ContainsFunc(p.rule.problems, has)
}

// group reads a mapping whose keys are those of parent in the table.
func (p *parser) group(n *yaml.Node, parent string, into map[string]field) {
	for _, pair := range yamlfile.Pairs(n) {
		name := schema.Join(parent, pair.Name)
		if pair.Fault != nil {
			p.fault(name, pair.Fault)
			continue
		}
		key, ok := p.table.Child(parent, pair.Name)
		if !ok {
			p.fault(name, yamlfile.At(pair.Key, fmt.Sprintf("%q is no key of %s", pair.Name, groupName(parent)), p.suggest(pair.Name, parent)))
			continue
		}
		if !slices.Contains(key.Scope, p.doc.source.Layer) {
			p.fault(name, yamlfile.At(pair.Key, fmt.Sprintf("%s cannot be set in a %s file", pair.Name, p.doc.source.Layer), "remove the line"))
			continue
		}
		f := field{key: key, origin: p.origin(pair.Value)}
		if f.origin.Line == 0 {
			f.origin = p.origin(pair.Key)
		}
		if fault := p.read(&f, pair.Value, into); fault != nil {
			// An empty value has no place of its own worth pointing at.
			if pair.Value.Value == "" && pair.Value.Tag == "!!null" {
				fault.Line, fault.Col = pair.Key.Line, pair.Key.Column
			}
			p.fault(name, fault)
			continue
		}
		into[strings.TrimPrefix(name, "rules[].")] = f
	}
}

func groupName(parent string) string {
	switch parent {
	case "":
		return "a sensor file"
	case "rules[]":
		return "a rule"
	}
	return strings.TrimPrefix(parent, "rules[].")
}

// suggest says what an unknown key may have been meant to be: a key of this
// group that is spelt almost so, or one of this name in another group.
func (p *parser) suggest(word, parent string) string {
	names := p.table.Children(parent)
	if _, dotted := p.table.Key(schema.Join(parent, word)); dotted {
		return "a key with a dot is written as a group: " + strings.ReplaceAll(word, ".", ": {") + ": ..." + strings.Repeat("}", strings.Count(word, "."))
	}
	if near := schema.Suggest(word, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	for _, k := range p.table.Keys() {
		if k.Leaf() == word && k.Name != schema.Join(parent, word) {
			return fmt.Sprintf("it belongs in %s", groupName(k.Parent()))
		}
	}
	return "its keys are " + strings.Join(names, ", ")
}

// read reads one key's value. A nil fault with nothing in f is a group.
func (p *parser) read(f *field, n *yaml.Node, into map[string]field) *yamlfile.Fault {
	if fault := yamlfile.Plain(n); fault != nil {
		return fault
	}
	switch f.key.Type {
	case schema.Group:
		if n.Kind != yaml.MappingNode {
			return yamlfile.At(n, "must be a group of keys", "its keys are "+strings.Join(p.table.Children(f.key.Name), ", "))
		}
		p.group(n, f.key.Name, into)
		return nil
	case schema.Rules:
		return p.rules(f, n)
	case schema.Sections:
		return p.sections(f, n)
	case schema.Texts:
		return p.texts(f, n)
	case schema.Pairs:
		return p.pairs(f, n)
	case schema.Where:
		return p.where(f, n)
	}
	return p.scalar(f, n)
}

func (p *parser) scalar(f *field, n *yaml.Node) *yamlfile.Fault {
	read := yamlfile.Scalar
	if f.key.Type == schema.Text || f.key.Type == schema.Name {
		read = yamlfile.Text
	}
	text, fault := read(n)
	if fault != nil {
		return fault
	}
	quoted := !yamlfile.Bare(n)
	if quoted && (f.key.Type == schema.Bool || f.key.Type == schema.Int) {
		return yamlfile.At(n, fmt.Sprintf("%q in quotes is text, not a %s", text, f.key.Type), "remove the quotes")
	}
	v, err := f.key.Parse(text)
	if err != nil {
		return valueFault(n, err)
	}
	if f.key.Type == schema.Text {
		if message, hint := checkText(f.key.Name, text); message != "" {
			return yamlfile.At(n, message, hint)
		}
	}
	f.scalar = v
	return nil
}

func valueFault(n *yaml.Node, err error) *yamlfile.Fault {
	if e, ok := err.(*schema.ValueError); ok {
		return yamlfile.At(n, e.Reason, e.Hint)
	}
	return yamlfile.At(n, err.Error(), "")
}

func (p *parser) rules(f *field, n *yaml.Node) *yamlfile.Fault {
	if n.Kind != yaml.SequenceNode {
		return yamlfile.At(n, "must be a list of rules", "begin each rule with \"- name: ...\"")
	}
	if int64(len(n.Content)) > f.key.Max {
		return yamlfile.At(n, fmt.Sprintf("more than %d rules", f.key.Max), "spread them over several sensors")
	}
	for i, item := range n.Content {
		r := &ruleText{name: fmt.Sprintf("rules[%d]", i), origin: p.origin(item), fields: map[string]field{}}
		p.rule = r
		p.doc.rules = append(p.doc.rules, r)
		if fault := yamlfile.Plain(item); fault != nil {
			p.fault("rules[]", fault)
			continue
		}
		if item.Kind != yaml.MappingNode {
			p.fault("rules[]", yamlfile.At(item, "is no rule", "a rule is a group of keys that begins with name"))
			continue
		}
		// The name comes first, so that every other finding can carry it.
		for _, pair := range yamlfile.Pairs(item) {
			if pair.Name == "name" && pair.Fault == nil && pair.Value.Kind == yaml.ScalarNode && schema.IsName(pair.Value.Value) {
				r.name = pair.Value.Value
			}
		}
		p.group(item, "rules[]", r.fields)
		if _, ok := r.fields["name"]; !ok && !p.blamed("rules[].name") {
			p.fault("rules[].name", yamlfile.At(item, "the rule has no name", "add a name, such as name: log"))
		}
	}
	// Two rules of one name: nobody can say which is meant.
	first := map[string]*ruleText{}
	for _, r := range p.doc.rules {
		if _, named := r.fields["name"]; !named {
			continue
		}
		earlier, again := first[r.name]
		if !again {
			first[r.name] = r
			continue
		}
		for _, twin := range []*ruleText{earlier, r} {
			other := earlier
			if twin == earlier {
				other = r
			}
			p.rule = twin
			p.fault("rules[].name", &yamlfile.Fault{
				Line: twin.origin.Line, Col: twin.origin.Col,
				Message: fmt.Sprintf("two rules are named %s; the other is on line %d", r.name, other.origin.Line),
				Hint:    "rename one of them",
			})
		}
	}
	p.rule = nil
	return nil
}

func (p *parser) sections(f *field, n *yaml.Node) *yamlfile.Fault {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return yamlfile.At(n, "must be a list of sections, with at least one", "such as [tool_call, tool_result]")
	}
	for _, item := range n.Content {
		name, fault := yamlfile.Text(item)
		if fault != nil {
			return fault
		}
		section, ok := record.ParseSection(name)
		if !ok {
			hint := "the sections are " + strings.Join(schema.SectionNames(), ", ")
			if near := schema.Suggest(name, schema.SectionNames()); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			return yamlfile.At(item, fmt.Sprintf("%q is no section", name), hint)
		}
		if f.sections.Has(section) {
			return yamlfile.At(item, name+" is listed twice", "remove one of them")
		}
		f.sections |= record.SetOf(section)
	}
	return nil
}

func (p *parser) texts(f *field, n *yaml.Node) *yamlfile.Fault {
	if n.Kind != yaml.SequenceNode {
		return yamlfile.At(n, "must be a list", "such as [notify-send, ways]; no shell splits one text into words")
	}
	if len(n.Content) == 0 {
		return yamlfile.At(n, "is empty", "name at least the program")
	}
	if int64(len(n.Content)) > f.key.Max {
		return yamlfile.At(n, fmt.Sprintf("has more than %d items", f.key.Max), "")
	}
	for i, item := range n.Content {
		text, fault := yamlfile.Text(item)
		if fault != nil {
			return fault
		}
		if err := schema.CheckText(text); err != nil {
			return valueFault(item, err)
		}
		if len(text) > maxItem {
			return yamlfile.At(item, fmt.Sprintf("is longer than %d bytes", maxItem), "")
		}
		if message, hint := checkItem(f.key.Name, i, text); message != "" {
			return yamlfile.At(item, message, hint)
		}
		f.texts = append(f.texts, text)
		f.places = append(f.places, p.origin(item))
	}
	return nil
}

func (p *parser) pairs(f *field, n *yaml.Node) *yamlfile.Fault {
	if n.Kind != yaml.MappingNode {
		return yamlfile.At(n, "must be names with values", "such as {Accept: text/plain}")
	}
	if int64(len(n.Content)/2) > f.key.Max {
		return yamlfile.At(n, fmt.Sprintf("has more than %d entries", f.key.Max), "")
	}
	lower := map[string]bool{}
	for _, pair := range yamlfile.Pairs(n) {
		if pair.Fault != nil {
			return pair.Fault
		}
		value, fault := yamlfile.Text(pair.Value)
		if fault != nil {
			if pair.Value.Value == "" {
				fault.Line, fault.Col = pair.Key.Line, pair.Key.Column
			}
			fault.Message = pair.Name + ": " + fault.Message
			return fault
		}
		if err := schema.CheckText(value); err != nil {
			return valueFault(pair.Value, err)
		}
		if len(value) > maxItem {
			return yamlfile.At(pair.Value, fmt.Sprintf("is longer than %d bytes", maxItem), "")
		}
		if message, hint := checkPair(f.key.Name, pair.Name, value); message != "" {
			return yamlfile.At(pair.Key, message, hint)
		}
		if f.key.Leaf() == "headers" {
			if lower[strings.ToLower(pair.Name)] {
				return yamlfile.At(pair.Key, "the header "+pair.Name+" stands here twice in different spelling", "remove one of them")
			}
			lower[strings.ToLower(pair.Name)] = true
		}
		f.pairs = append(f.pairs, plan.Pair{Name: pair.Name, Value: value})
		f.places = append(f.places, p.origin(pair.Key))
	}
	return nil
}

// where turns a condition into the JSON that config/where reads, checks each
// path of it, and reports each by itself.
func (p *parser) where(f *field, n *yaml.Node) *yamlfile.Fault {
	if n.Kind != yaml.MappingNode {
		return yamlfile.At(n, "must be paths with values or operators", "such as {data.name: Bash}; {} for no condition")
	}
	if int64(len(n.Content)/2) > f.key.Max {
		return yamlfile.At(n, fmt.Sprintf("has more than %d paths", f.key.Max), "")
	}
	f.where = []byte{'{'}
	for _, pair := range yamlfile.Pairs(n) {
		if pair.Fault != nil {
			p.fault(f.key.Name, pair.Fault)
			continue
		}
		name, err := jsontext.AppendQuote(nil, pair.Name)
		if err != nil {
			p.fault(f.key.Name, yamlfile.At(pair.Key, "the path is not UTF-8", ""))
			continue
		}
		value, fault := conditionJSON(nil, pair.Value, 0)
		if fault != nil {
			if fault.Line == 0 || pair.Value.Tag == "!!null" {
				fault.Line, fault.Col = pair.Key.Line, pair.Key.Column
			}
			fault.Message = pair.Name + ": " + fault.Message
			p.fault(f.key.Name, fault)
			continue
		}
		entry := append(append(append([]byte{'{'}, name...), ':'), value...)
		if _, err := where.Compile(append(entry, '}'), false); err != nil {
			p.fault(f.key.Name, whereFault(pair, err))
			continue
		}
		if len(f.where) > 1 {
			f.where = append(f.where, ',')
		}
		f.where = append(f.where, entry[1:]...)
		f.places = append(f.places, p.origin(pair.Key))
		p.unknownField(f, pair)
	}
	f.where = append(f.where, '}')
	if _, err := where.Compile(f.where, false); err != nil {
		return yamlfile.At(n, err.Error(), "")
	}
	return nil
}

// whereFault puts a condition's error at the operator it is about.
func whereFault(pair yamlfile.Pair, err error) *yamlfile.Fault {
	e, ok := err.(*where.Error)
	if !ok {
		return yamlfile.At(pair.Key, err.Error(), "")
	}
	if e.Operator == "" {
		return yamlfile.At(pair.Key, pair.Name+": "+e.Reason, "")
	}
	fault := yamlfile.At(pair.Value, fmt.Sprintf("%s: %s: %s", pair.Name, e.Operator, e.Reason), "")
	for _, inner := range yamlfile.Pairs(pair.Value) {
		if inner.Name == e.Operator {
			fault.Line, fault.Col = inner.Key.Line, inner.Key.Column
		}
	}
	if !slices.Contains(where.Operators(), e.Operator) {
		if near := schema.Suggest(e.Operator, where.Operators()); near != "" {
			fault.Hint = fmt.Sprintf("did you mean %q?", near)
		}
	}
	return fault
}

// conditionJSON writes a condition's operand as JSON. depth is 0 for what a
// path holds, 1 for what an operator does, 2 for an item of its list.
func conditionJSON(to []byte, n *yaml.Node, depth int) ([]byte, *yamlfile.Fault) {
	if fault := yamlfile.Plain(n); fault != nil {
		return to, fault
	}
	switch n.Kind {
	case yaml.MappingNode:
		if depth > 0 {
			return to, yamlfile.At(n, "operators cannot be nested", "name a path further inside instead")
		}
		to = append(to, '{')
		for i, pair := range yamlfile.Pairs(n) {
			if pair.Fault != nil {
				return to, pair.Fault
			}
			if i > 0 {
				to = append(to, ',')
			}
			name, err := jsontext.AppendQuote(nil, pair.Name)
			if err != nil {
				return to, yamlfile.At(pair.Key, "the operator is not UTF-8", "")
			}
			to = append(append(to, name...), ':')
			var fault *yamlfile.Fault
			if to, fault = conditionJSON(to, pair.Value, 1); fault != nil {
				return to, fault
			}
		}
		return append(to, '}'), nil
	case yaml.SequenceNode:
		if depth > 1 {
			return to, yamlfile.At(n, "a list in a list", "")
		}
		to = append(to, '[')
		for i, item := range n.Content {
			if i > 0 {
				to = append(to, ',')
			}
			var fault *yamlfile.Fault
			if to, fault = conditionJSON(to, item, 2); fault != nil {
				return to, fault
			}
		}
		return append(to, ']'), nil
	case yaml.ScalarNode:
		return conditionScalar(to, n)
	}
	return to, yamlfile.At(n, "is no value", "")
}

func conditionScalar(to []byte, n *yaml.Node) ([]byte, *yamlfile.Fault) {
	if yamlfile.Ambiguous(n) {
		return to, yamlfile.At(n, fmt.Sprintf("%s without quotes is a truth value to some YAML readers", n.Value),
			fmt.Sprintf("write %q for the text, or true or false", n.Value))
	}
	switch n.Tag {
	case "!!null":
		if n.Value == "" {
			return to, yamlfile.At(n, "has no value", "write null if that is meant")
		}
		return append(to, "null"...), nil
	case "!!bool":
		return append(to, strings.ToLower(n.Value)...), nil
	case "!!int", "!!float":
		if !jsontext.Value(n.Value).IsValid() {
			return to, yamlfile.At(n, n.Value+" is no number as JSON writes it",
				"write it in plain decimal, or in quotes for the text")
		}
		return append(to, n.Value...), nil
	}
	quoted, err := jsontext.AppendQuote(to, n.Value)
	if err != nil {
		return to, yamlfile.At(n, "is not UTF-8", "")
	}
	return quoted, nil
}
