package status

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"ways/actors/target/visible"
	"ways/config/problem"
	"ways/config/wiring"
)

// print writes the view for people. line writes a problem on one line.
func (v View) print(out io.Writer, line func(problem.Problem) string) {
	for _, p := range v.Problems {
		if p.Loud {
			fmt.Fprintln(out, line(p))
		}
	}
	switch {
	case v.Wiring.Complete:
		fmt.Fprintf(out, "wired in %s\n", visible.Line(v.Wiring.File))
	case v.Wiring.Problem != "":
		fmt.Fprintf(out, "NOT WIRED: %s\n", visible.Line(v.Wiring.Problem))
	default:
		fmt.Fprintf(out, "NOT WIRED on %d of %d events in %s; run: ways reconcile\n",
			len(v.Wiring.Missing), len(wiring.Events()), visible.Line(v.Wiring.File))
	}
	for _, p := range v.Problems {
		if p.Severity != problem.Notice && !p.Loud {
			fmt.Fprintln(out, line(p))
		}
	}
	for _, a := range v.Attention {
		switch a.Kind {
		case NotWired, Refused:
			continue // said above, in full
		case Untrusted:
			fmt.Fprintln(out, visible.Line(a.Text))
			continue
		case Failing:
			continue // said below the table
		}
		word := strings.ToUpper(strings.ReplaceAll(string(a.Kind), "_", " "))
		fmt.Fprintf(out, "%s %s\n", word, visible.Line(strings.TrimPrefix(a.Rule+sessionOf(a)+": "+a.Text, ": ")))
	}
	for _, r := range slices.Sorted(maps.Keys(v.Refused)) {
		fmt.Fprintf(out, "hook events refused, %s: %d\n", r, v.Refused[r])
	}
	if v.Damaged > 0 {
		fmt.Fprintf(out, "damaged stretches of spools passed over: %d\n", v.Damaged)
	}
	if v.Unwritten > 0 {
		fmt.Fprintf(out, "records that could not be written: %d\n", v.Unwritten)
	}
	if len(v.On) == 0 {
		fmt.Fprintln(out, "no rule is on here; turn one on: ways sensors copy tool-audit my-audit --enable")
	} else {
		fmt.Fprintf(out, "on here: %s\n", visible.Line(strings.Join(v.On, ", ")))
	}
	fmt.Fprintln(out)
	if len(v.Rules) > 0 {
		v.printRules(out)
		fmt.Fprintln(out)
	}
	if v.printWays(out) {
		fmt.Fprintln(out)
	}
	v.printSessions(out)
}

// printWays says where what runs here sends to, off this machine or to a program.
// It reports whether there is any.
func (v View) printWays(out io.Writer) (said bool) {
	for _, p := range v.Problems {
		if id := p.Sensor + "/" + p.Rule; p.Severity == problem.Notice && slices.Contains(v.On, id) {
			fmt.Fprintf(out, "%s %s\n", visible.Line(id), visible.Line(p.Message))
			said = true
		}
	}
	return said
}

func sessionOf(a Attention) string {
	if a.Session == "" {
		return ""
	}
	return "session " + a.Session
}

func (v View) printRules(out io.Writer) {
	ids := v.ranked()
	width := len("RULE")
	retries, panics := false, false
	for _, id := range ids {
		width = max(width, len(visible.Line(id)))
		retries = retries || v.Rules[id].Retried > 0 || v.Rules[id].Dead > 0
		panics = panics || v.Rules[id].Panics > 0
	}
	more := ""
	if retries {
		more = "  RETRIED  PUT ASIDE"
	}
	if panics {
		more += "  PANICS"
	}
	fmt.Fprintf(out, "%-*s  MATCHED  DELIVERED  FAILED  TIMED OUT  KILLED  REFUSED  DROPPED  SPOOLED%s  SINCE\n", width, "RULE", more)
	for _, id := range ids {
		r := v.Rules[id]
		more = ""
		if retries {
			more = fmt.Sprintf("  %7d  %9d", r.Retried, r.Dead)
		}
		if panics {
			more += fmt.Sprintf("  %6d", r.Panics)
		}
		fmt.Fprintf(out, "%-*s  %7d  %9d  %6d  %9d  %6d  %7d  %7d  %7d%s  %s\n", width, visible.Line(id), r.Matched, r.Delivered,
			r.Failed, r.TimedOut, r.Killed, r.Refused, r.Dropped, r.Waiting, more, clock(r.Since))
	}
	for _, id := range ids {
		r := v.Rules[id]
		ago := v.Time.Sub(r.LastErrorAt)
		switch {
		case r.LastError == "":
		case !r.LastDelivered.After(r.LastErrorAt):
			fmt.Fprintf(out, "%s: %s (%s)\n", visible.Line(id), visible.Line(r.LastError), clock(r.LastErrorAt))
		case ago < recent: // and nobody's concern later
			fmt.Fprintf(out, "%s: delivers again; failed last %s ago: %s\n", visible.Line(id), age(ago), visible.Line(r.LastError))
		}
	}
}

func (v View) printSessions(out io.Writer) {
	for _, s := range v.Sessions {
		state := "no dispatcher"
		if s.Running {
			state = fmt.Sprintf("dispatcher %d since %s", s.PID, clock(s.Started))
			if s.Memory > 0 {
				state += ", " + size(s.Memory)
			}
		}
		fmt.Fprintf(out, "session %s: %s, %d records", visible.Line(s.Session), state, s.Records)
		if s.Waiting > 0 {
			fmt.Fprintf(out, ", %d waiting since %s", s.Waiting, clock(s.Since))
		}
		if s.SpoolBytes > 0 {
			fmt.Fprintf(out, ", %s in its spool", size(s.SpoolBytes))
		}
		if s.Damaged > 0 {
			fmt.Fprintf(out, ", %d damaged stretches", s.Damaged)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "sessions that ended, with nothing waiting: %d\n", v.Past)
}
