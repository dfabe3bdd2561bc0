package sensors

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ways/config/plan"
	"ways/config/problem"
	"ways/config/schema"
)

// defaultEvery is after how many records a chain's head is signed, in a rule that
// says nothing of checkpoints.
const defaultEvery = 100

// blockingCap is how long blocking rules may hold one hook event (seed §5).
const blockingCap = 10 * time.Second

// merge lays the documents of one sensor over each other, weakest first.
func merge(table *schema.Table, name string, docs []*document) (Sensor, []Problem) {
	s := Sensor{Name: name, Enabled: true, Origins: map[string]Origin{}}
	var problems []Problem
	var order []string
	layers := map[string][]*ruleText{}
	for _, d := range docs {
		s.Sources = append(s.Sources, d.source)
		s.Refused = s.Refused || d.broken
		problems = append(problems, d.problems...)
		for key, f := range d.fields {
			switch key {
			case "description":
				s.Description = f.scalar.Text
			case "enabled":
				s.Enabled = f.scalar.Bool
			case "spec", "kind", "name":
			default:
				continue
			}
			s.Origins[key] = f.origin
		}
		for _, r := range d.rules {
			if _, known := layers[r.name]; !known {
				order = append(order, r.name)
			}
			layers[r.name] = append(layers[r.name], r)
		}
	}
	for _, key := range []string{"enabled", "name", "description"} {
		if _, set := s.Origins[key]; !set {
			s.Origins[key] = Origin{Layer: Default}
		}
	}
	top := docs[len(docs)-1].source
	if len(order) == 0 && !s.Refused {
		s.Refused = true
		problems = append(problems, Problem{
			File: top.File, Sensor: name, Key: "rules", Severity: problem.Error,
			Message: "the sensor has no rules", Suggestion: "add rules, each with name, sections and dispatch",
		})
	}
	for _, rule := range order {
		r := mergeRule(table, &s, rule, layers[rule], order)
		problems = append(problems, r.Problems...)
		s.Rules = append(s.Rules, r)
	}
	return s, problems
}

func mergeRule(table *schema.Table, s *Sensor, name string, layers []*ruleText, siblings []string) Rule {
	r := Rule{Sensor: s.Name, Name: name, fields: map[string]field{}, Origins: map[string]Origin{}}
	broken := false
	for _, l := range layers {
		broken = broken || l.broken
		r.Problems = append(r.Problems, l.problems...)
		if _, replaces := l.fields["dispatch"]; replaces {
			maps.DeleteFunc(r.fields, func(key string, _ field) bool { return strings.HasPrefix(key, "dispatch") })
		}
		maps.Copy(r.fields, l.fields)
	}
	defaults(table, r.fields)
	for key, f := range r.fields {
		r.Origins[key] = f.origin
	}
	top := layers[len(layers)-1].origin
	r.Rule = plan.Rule{ID: s.Name + "/" + name, Layer: top.Layer, File: top.File}
	fill(&r)

	loud := map[int]string{}
	if !broken {
		for _, f := range check(&r) {
			at := r.place(f.key, top)
			p := Problem{
				File: at.File, Line: at.Line, Col: at.Col, Sensor: s.Name, Rule: name,
				Key: "rules[]." + f.key, Message: f.message, Suggestion: f.hint, Severity: f.severity,
			}
			if f.key == "sections" && f.severity == problem.Error && len(layers) == 1 {
				// A rule that only changes another layer's, under a wrong name.
				others := slices.DeleteFunc(slices.Clone(siblings), func(o string) bool { return o == name })
				if near := schema.Suggest(name, others); near != "" {
					p.Suggestion += fmt.Sprintf("; or did you mean to change the rule %q?", near)
				}
			}
			if f.loud != "" {
				loud[len(r.Problems)] = f.loud
			}
			r.Problems = append(r.Problems, p)
			broken = broken || f.severity == problem.Error
		}
	}
	r.Refused = broken || s.Refused
	r.Active = r.Enabled && s.Enabled && !r.Refused
	for i, message := range loud {
		if r.Active {
			r.Problems[i].Loud, r.Problems[i].Message = true, message
		}
	}
	return r
}

// place is where a key was set, or the nearest group around it, or the rule.
func (r *Rule) place(key string, rule Origin) Origin {
	for {
		if at, set := r.Origins[key]; set && at.Line > 0 {
			return at
		}
		end := strings.LastIndexByte(key, '.')
		if end < 0 {
			return rule
		}
		key = key[:end]
	}
}

// defaults sets what no layer did: the keys of the rule itself, and those of
// the target it has.
func defaults(table *schema.Table, fields map[string]field) {
	for _, k := range table.Under("rules[]") {
		short := strings.TrimPrefix(k.Name, "rules[].")
		if _, set := fields[short]; set || k.Default == "" {
			continue
		}
		if parent, below := strings.CutPrefix(k.Parent(), "rules[]."); below {
			if _, there := fields[parent]; !there {
				continue
			}
		}
		if short == "dispatch.file.template" && fields["dispatch.file.format"].scalar.Text != "text" {
			continue
		}
		// The defaults are in the table, and a test parses every one.
		v, err := k.Parse(k.Default)
		if err != nil {
			continue
		}
		fields[short] = field{key: k, scalar: v, origin: Origin{Layer: Default}}
	}
}

// fill makes the plan's rule of the fields.
func fill(r *Rule) {
	text := func(key string) string { return r.fields[key].scalar.Text }
	has := func(key string) bool { _, ok := r.fields[key]; return ok }
	r.Enabled = r.fields["enabled"].scalar.Bool
	r.Sections = r.fields["sections"].sections
	if w := r.fields["where"].where; len(w) > len("{}") {
		r.Where = w
	}
	r.MatchAny = text("match") == "any"
	r.Mode = plan.Mode(text("mode"))
	r.Timeout = r.fields["timeout"].scalar.Duration
	r.Queue = int(r.fields["queue"].scalar.Int)
	r.Delivery = plan.Delivery(text("delivery"))
	r.Chain = r.fields["chain"].scalar.Bool
	if r.Chain {
		r.Checkpoint = plan.Checkpoint{Every: defaultEvery, To: text("checkpoint.to")}
		if has("checkpoint.every") {
			r.Checkpoint.Every = int(r.fields["checkpoint.every"].scalar.Int)
		}
	}
	r.Redact = plan.Redaction(text("redact"))
	if has("dispatch.file") {
		r.Target.File = &plan.File{
			Path:     text("dispatch.file.path"),
			Format:   text("dispatch.file.format"),
			Template: text("dispatch.file.template"),
		}
	}
	if has("dispatch.http") {
		r.Target.HTTP = &plan.HTTP{
			URL:       text("dispatch.http.url"),
			Headers:   r.fields["dispatch.http.headers"].pairs,
			SecretEnv: text("dispatch.http.secret_env"),
		}
	}
	if has("dispatch.command") {
		r.Target.Command = &plan.Command{
			Argv:  r.fields["dispatch.command.argv"].texts,
			Input: text("dispatch.command.input"),
			Env:   r.fields["dispatch.command.env"].pairs,
		}
		if f := r.fields["dispatch.command.cwd"]; f.origin.Layer != Default {
			r.Target.Command.Cwd = f.scalar.Text
		}
	}
}
