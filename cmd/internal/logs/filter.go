package logs

import (
	"strings"
	"time"

	"github.com/rs/zerolog"
)

// Filter says which lines are wanted; its zero value wants those of info and above.
type Filter struct {
	// Session and Rule are exact; Rule may also name a sensor, for all its rules.
	Session, Rule string
	Level         zerolog.Level
	Since         time.Time
}

// Wants reports whether a line is wanted. A line without a level is never below
// one.
func (f Filter) Wants(l Line) bool {
	switch {
	case f.Session != "" && l.Session != f.Session:
		return false
	case l.Level != zerolog.NoLevel && l.Level < f.Level:
		return false
	case !f.Since.IsZero() && l.Time.Before(f.Since):
		return false
	}
	return f.Rule == "" || f.ofRule(l)
}

func (f Filter) ofRule(l Line) bool {
	is := func(rule string) bool { return rule == f.Rule || strings.HasPrefix(rule, f.Rule+"/") }
	if is(l.Rule) {
		return true
	}
	for _, field := range l.Fields {
		// An actor's name is rule/<rule>.
		if rule, ok := strings.CutPrefix(field.Value, "rule/"); ok && (field.Name == "actor" || field.Name == "supervisor") && is(rule) {
			return true
		}
	}
	return false
}
