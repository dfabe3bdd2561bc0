package compile

import (
	"path/filepath"

	"ways/config/plan"
	"ways/config/problem"
	"ways/config/sensors"
)

// refuseTogether takes the rules out that cannot keep what they promise beside
// the others that run, and says so of each; then it gives every chained rule the
// rule that is sent its checkpoints.
func refuseTogether(set *sensors.Set, home string) []Problem {
	var problems []Problem
	refuse := func(r *sensors.Rule, key, message, hint string) {
		at := r.Origins[key]
		p := Problem{
			File: at.File, Line: at.Line, Col: at.Col, Sensor: r.Sensor, Rule: r.Name,
			Key: "rules[]." + key, Message: message, Suggestion: hint, Severity: problem.Error,
		}
		r.Active, r.Refused = false, true
		r.Problems = append(r.Problems, p)
		problems = append(problems, p)
	}
	plain := map[string]string{}
	byID := map[string]*sensors.Rule{}
	for r := range running(set) {
		byID[r.ID] = r
		if path := logOf(&r.Rule, home); path != "" && !r.Chain && plain[path] == "" {
			plain[path] = r.ID
		}
	}
	for r := range running(set) {
		// The chained one is refused: a log that its owner believes to be a chain
		// must not be broken by design.
		if other := plain[logOf(&r.Rule, home)]; r.Chain && other != "" {
			refuse(r, "chain", "the rule "+other+" writes the same file without a chain, and would break this one",
				"give both chain: true, or one another file")
		}
	}
	for r := range running(set) {
		to := r.Checkpoint.To
		if to == "" {
			continue
		}
		other := byID[to]
		switch {
		case other == nil || !other.Active:
			refuse(r, "checkpoint.to", "no rule "+to+" runs here", "name one that does, as sensor/rule")
		case to == r.ID:
			refuse(r, "checkpoint.to", "a rule's checkpoints in its own log would prove nothing", "name another rule")
		case other.Checkpoint.To != "":
			refuse(r, "checkpoint.to", "the rule "+to+" sends its own checkpoints on, and these would follow in a circle or without end", "name a rule without checkpoint.to")
		case other.Target.File != nil && logOf(&other.Rule, home) == logOf(&r.Rule, home):
			refuse(r, "checkpoint.to", "the rule "+to+" writes the same file, and checkpoints there would prove nothing", "name a rule with another target")
		default:
			way := other.Rule
			r.Checkpoint.Way = &way
		}
	}
	return problems
}

// running calls for each rule that runs.
func running(set *sensors.Set) func(func(*sensors.Rule) bool) {
	return func(yield func(*sensors.Rule) bool) {
		for i := range set.Sensors {
			for j := range set.Sensors[i].Rules {
				if r := &set.Sensors[i].Rules[j]; r.Active && !yield(r) {
					return
				}
			}
		}
	}
}

// logOf is the file that a rule writes, as far as it is known before its
// variables are; empty for a rule that writes none.
func logOf(r *plan.Rule, home string) string {
	if r.Target.File == nil {
		return ""
	}
	path := r.Target.File.Path
	if len(path) > 1 && path[:2] == "~/" {
		path = home + path[1:]
	}
	return filepath.Clean(path)
}
