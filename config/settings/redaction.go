package settings

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"ways/config/plan"
	"ways/config/schema"
	"ways/config/yamlfile"
	"ways/hooks/redact"
)

// masks reads the user's masking rules. An entry with a mistake is left out and
// said: what it was meant to mask goes unmasked, which the user must know, and
// its neighbours hold.
func (r *reader) masks(key schema.Key, n *yaml.Node) {
	items, ok := r.items(key, n, "must be a list of rules", `such as [{name: badge, regex: 'EMP-\d{6}', keywords: ["EMP-"]}]`)
	if !ok {
		return
	}
	names := map[string]int{}
	for _, item := range items {
		rule, ok := r.mask(key.Name+"[]", item)
		if !ok {
			continue
		}
		if line, again := names[rule.Name]; again {
			r.fault(key.Name+"[].name", yamlfile.At(item, fmt.Sprintf("a second rule named %q; the first is on line %d", rule.Name, line), "rename one of them"))
			continue
		}
		names[rule.Name] = item.Line
		r.s.Masking.Rules = append(r.s.Masking.Rules, rule)
	}
}

// mask reads one rule.
func (r *reader) mask(parent string, n *yaml.Node) (plan.MaskRule, bool) {
	var rule plan.MaskRule
	at := map[string]*yaml.Node{}
	ok := r.fields(parent, n, func(key schema.Key, value *yaml.Node) *yamlfile.Fault {
		at[key.Leaf()] = value
		if key.Type == schema.Texts {
			words, fault := texts(key, value)
			rule.Keywords = words
			return fault
		}
		v, fault := scalar(key, value)
		switch key.Leaf() {
		case "name":
			rule.Name = v.Text
		case "regex":
			rule.Regex = v.Text
		case "min_entropy":
			rule.MinEntropy = v.Float
		}
		return fault
	})
	for _, leaf := range r.table.Children(parent) {
		key, _ := r.table.Key(schema.Join(parent, leaf))
		if ok && key.Required && at[leaf] == nil {
			r.fault(key.Name, yamlfile.At(n, "the rule has no "+leaf, "add one; without it the rule masks nothing"))
			ok = false
		}
	}
	if !ok {
		return rule, false
	}
	err := redact.Rule{Name: rule.Name, Regex: rule.Regex, Keywords: rule.Keywords, MinEntropy: rule.MinEntropy}.Check()
	if err != nil {
		r.fault(parent, yamlfile.At(at["regex"], err.Error(), "the rule masks nothing until this is mended"))
		return rule, false
	}
	return rule, true
}

// allows reads what is never masked. A broken entry allows nothing.
func (r *reader) allows(key schema.Key, n *yaml.Node) {
	items, ok := r.items(key, n, "must be a list", "of texts, or of {regex: \"...\"}")
	if !ok {
		return
	}
	for _, item := range items {
		var allow plan.MaskAllow
		ok := true
		if item.Kind == yaml.MappingNode {
			ok = r.fields(key.Name+"[]", item, func(key schema.Key, value *yaml.Node) *yamlfile.Fault {
				v, fault := scalar(key, value)
				allow.Regex = v.Text
				return fault
			})
		} else {
			text, fault := yamlfile.Text(item)
			if fault != nil {
				r.fault(key.Name, fault)
				continue
			}
			allow.Literal = text
		}
		if !ok {
			continue
		}
		if err := (redact.Allow{Literal: allow.Literal, Regex: allow.Regex}).Check(); err != nil {
			r.fault(key.Name, yamlfile.At(item, err.Error(), "the entry allows nothing until this is mended"))
			continue
		}
		r.s.Masking.Allow = append(r.s.Masking.Allow, allow)
	}
}

// items returns the entries of a list; what is beyond the key's bound is refused.
func (r *reader) items(key schema.Key, n *yaml.Node, message, hint string) ([]*yaml.Node, bool) {
	if n.Kind != yaml.SequenceNode {
		r.fault(key.Name, yamlfile.At(n, message, hint))
		return nil, false
	}
	if int64(len(n.Content)) > key.Max {
		r.fault(key.Name, yamlfile.At(n.Content[key.Max], fmt.Sprintf("more than %d entries; this one and those after it are not used", key.Max), ""))
		return n.Content[:key.Max], true
	}
	return n.Content, true
}

// fields reads the keys of one entry; take gets each that is known and says
// what is wrong with its value. It reports whether nothing was wrong.
func (r *reader) fields(parent string, n *yaml.Node, take func(schema.Key, *yaml.Node) *yamlfile.Fault) bool {
	if fault := yamlfile.Plain(n); fault != nil {
		r.fault(parent, fault)
		return false
	}
	children := r.table.Children(parent)
	if n.Kind != yaml.MappingNode {
		r.fault(parent, yamlfile.At(n, "must be a group of keys", "its keys are "+strings.Join(children, ", ")))
		return false
	}
	good := true
	for _, pair := range yamlfile.Pairs(n) {
		key, known := r.table.Child(parent, pair.Name)
		fault := pair.Fault
		switch {
		case fault != nil:
		case !known:
			hint := "its keys are " + strings.Join(children, ", ")
			if near := schema.Suggest(pair.Name, children); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			fault = yamlfile.At(pair.Key, fmt.Sprintf("%q is no key of an entry of %s", pair.Name, strings.TrimSuffix(parent, "[]")), hint)
		default:
			fault = take(key, pair.Value)
		}
		if fault != nil {
			r.fault(schema.Join(parent, pair.Name), fault)
			good = false
		}
	}
	return good
}

func scalar(key schema.Key, n *yaml.Node) (schema.Value, *yamlfile.Fault) {
	text, fault := yamlfile.Scalar(n)
	if fault == nil && key.Type == schema.Text {
		text, fault = yamlfile.Text(n)
	}
	if fault != nil {
		return schema.Value{}, fault
	}
	v, err := key.Parse(text)
	if err != nil {
		return v, yamlfile.At(n, err.Error(), "")
	}
	return v, nil
}

func texts(key schema.Key, n *yaml.Node) ([]string, *yamlfile.Fault) {
	if fault := yamlfile.Plain(n); fault != nil {
		return nil, fault
	}
	if n.Kind != yaml.SequenceNode {
		return nil, yamlfile.At(n, "must be a list of texts", `such as ["EMP-"]`)
	}
	if int64(len(n.Content)) > key.Max {
		return nil, yamlfile.At(n, fmt.Sprintf("lists more than %d", key.Max), "")
	}
	var list []string
	for _, item := range n.Content {
		text, fault := yamlfile.Text(item)
		if fault != nil {
			return nil, fault
		}
		list = append(list, text)
	}
	return list, nil
}
