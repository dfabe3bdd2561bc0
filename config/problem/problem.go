// Package problem is what is wrong, or worth saying, about a configuration
// file: the same value for lint, status, logs and their JSON.
package problem

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Severity says what a problem means for the rule or file it is about.
type Severity string

// The severities, worst first.
const (
	// Error: the rule, sensor or file named is not used.
	Error Severity = "error"
	// Warning: it is used, and does something the user may not want.
	Warning Severity = "warning"
	// Notice: a fact that people ask about, such as that a rule sends data away.
	Notice Severity = "notice"
)

// Problem is one finding. Everything but Message and Severity may be empty.
type Problem struct {
	File string `json:"file,omitempty"` // empty for a shipped sensor
	// Line and Col count from 1, Col in characters; 0 is the file as a whole.
	Line   int    `json:"line,omitempty"`
	Col    int    `json:"col,omitempty"`
	Sensor string `json:"sensor,omitempty"`
	Rule   string `json:"rule,omitempty"` // its name, or rules[2] when it has none
	Key    string `json:"key,omitempty"`  // as in the reference: rules[].timeout
	// Message says what is wrong, Suggestion what to do.
	Message    string   `json:"message"`
	Suggestion string   `json:"suggestion,omitempty"`
	Severity   Severity `json:"severity"`
	// Loud marks what the user must not miss: it is shown first, and in colour.
	Loud bool `json:"loud,omitempty"`
}

// String writes the problem on one line: file:line:col: severity: sensor/rule:
// key: message; suggestion. What a terminal would act on, or what would break the
// line, is written out as \u001b: names and keys come from files.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", p.Line, p.Col)
		}
		b.WriteString(": ")
	}
	severity := string(p.Severity)
	if p.Loud {
		severity = strings.ToUpper(severity)
	}
	b.WriteString(severity + ": ")
	switch {
	case p.Rule != "":
		b.WriteString(p.Sensor + "/" + p.Rule + ": ")
	case p.Sensor != "":
		b.WriteString(p.Sensor + ": ")
	}
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Message)
	if p.Suggestion != "" {
		b.WriteString("; " + p.Suggestion)
	}
	return printable(b.String())
}

func printable(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// Sort orders problems by file, place, and then by what they are about; loud ones
// come before all others.
func Sort(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(
			loudFirst(a, b),
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Col, b.Col),
			cmp.Compare(a.Sensor, b.Sensor),
			cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Message, b.Message),
		)
	})
}

func loudFirst(a, b Problem) int {
	switch {
	case a.Loud == b.Loud:
		return 0
	case a.Loud:
		return -1
	}
	return 1
}

// Errors returns the problems for which something is not used.
func Errors(problems []Problem) []Problem {
	var errs []Problem
	for _, p := range problems {
		if p.Severity == Error {
			errs = append(errs, p)
		}
	}
	return errs
}
