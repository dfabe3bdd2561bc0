package sensors

import (
	"strings"
	"testing"
	"time"

	"ways/config/plan"
	"ways/config/problem"
	"ways/config/schema"
	"ways/config/where"
)

// flaw says what of a rule that is to run could not run; empty for none.
func flaw(r *Rule) string {
	targets := 0
	if f := r.Target.File; f != nil {
		targets++
		if f.Path == "" || f.Format != "jsonl" && f.Format != "text" || f.Format == "text" && f.Template == "" {
			return "file target"
		}
	}
	if h := r.Target.HTTP; h != nil {
		targets++
		for _, p := range h.Headers {
			if p.Name == "" || strings.ContainsAny(p.Name+p.Value, "\r\n\x00") {
				return "headers"
			}
		}
		if h.URL == "" {
			return "url"
		}
	}
	if c := r.Target.Command; c != nil {
		targets++
		if len(c.Argv) == 0 || c.Argv[0] == "" || c.Input != "stdin" && c.Input != "args" {
			return "command target"
		}
	}
	_, err := where.Compile(r.Where, r.MatchAny)
	switch {
	case targets != 1:
		return "targets"
	case !schema.IsName(r.Sensor) || !schema.IsName(r.Name) || r.ID != r.Sensor+"/"+r.Name:
		return "id"
	case r.Sections == 0:
		return "sections"
	case err != nil:
		return "where: " + err.Error()
	case r.Mode != plan.Async && r.Mode != plan.Blocking:
		return "mode"
	case r.Timeout < time.Millisecond || r.Timeout > time.Hour:
		return "timeout"
	case r.Queue < 1 || r.Queue > 1_000_000:
		return "queue"
	case r.Delivery != plan.BestEffort && r.Delivery != plan.AtLeastOnce:
		return "delivery"
	case r.Redact != plan.RedactSecrets && r.Redact != plan.RedactNone:
		return "redact"
	case r.Refused || !r.Enabled:
		return "it does not run"
	}
	return ""
}

// Whatever two layers hold: a rule that runs can run, and a rule that is
// refused has a reason.
func FuzzLayers(f *testing.F) {
	whole := head + "rules:\n" + goodRule
	for _, seed := range [][2]string{
		{whole, whole},
		{whole, head + "rules: [{name: log, dispatch: {http: {url: \"https://a/\"}}, where: {}}]\n"},
		{httpRule("        headers: {A: b}\n"), head + "rules: [{name: log, dispatch: {file: {path: /x, format: text}}}]\n"},
		{head + "rules: [{name: log, chain: true}]\n", command("        argv: [a, b]\n")},
		{head + "enabled: false\nrules: [{name: a}]\n", head + "enabled: true\nrules: [{name: a, queue: 5}]\n"},
		{whole, "{"},
		{whole, head + "rules: [{name: log, dispatch: {}}]\n"},
		{whole, head + "rules: [{name: log, dispatch: {file: {}}}]\n"},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, user, project []byte) {
		table := schema.NewTable(schema.Sensor())
		s, problems := merge(table, "s", []*document{
			parse(table, Source{Layer: plan.User, File: "u"}, "s", user),
			parse(table, Source{Layer: plan.Project, File: "p"}, "s", project),
		})
		if s.Refused && len(problem.Errors(problems)) == 0 {
			t.Fatal("the sensor was refused without a reason")
		}
		for i := range s.Rules {
			r := &s.Rules[i]
			if r.Active {
				if what := flaw(r); what != "" {
					t.Fatalf("%s runs with a flaw: %s: %+v", r.ID, what, r.Rule)
				}
			}
			if r.Refused && !s.Refused && len(problem.Errors(r.Problems)) == 0 {
				t.Fatalf("%s was refused without a reason", r.ID)
			}
			for _, setting := range r.Settings(table) {
				_ = setting.Text()
			}
		}
	})
}
