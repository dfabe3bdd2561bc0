package compile

import (
	"ways/config/plan"
	"ways/config/problem"
	"ways/config/sensors"
)

// Unsupported says why this build cannot do what a checked rule asks for; empty
// when it can. The rule is then refused rather than run as something less: a log
// that its owner believes to be chained must not be a plain one.
func Unsupported(rule plan.Rule) string {
	switch {
	case rule.Chain:
		return "chain is not available in this version; remove chain: true"
	}
	return ""
}

// refuseUnsupported takes the rules out that this build cannot run, and says so
// of each. Rules that are off anyway are left alone.
func refuseUnsupported(set *sensors.Set) []Problem {
	var problems []Problem
	for i := range set.Sensors {
		for j := range set.Sensors[i].Rules {
			rule := &set.Sensors[i].Rules[j]
			why := Unsupported(rule.Rule)
			if !rule.Active || why == "" {
				continue
			}
			const key = "chain"
			at := rule.Origins[key]
			p := Problem{
				File: at.File, Line: at.Line, Col: at.Col, Sensor: rule.Sensor, Rule: rule.Name,
				Key: "rules[]." + key, Message: why, Severity: problem.Error,
			}
			rule.Active, rule.Refused = false, true
			rule.Problems = append(rule.Problems, p)
			problems = append(problems, p)
		}
	}
	return problems
}
