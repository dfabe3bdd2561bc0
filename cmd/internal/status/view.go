package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"ways/cmd/internal/survey"
	"ways/config/problem"
	"ways/hooks/tally"
	"ways/metrics/counters"
)

// View is the status as JSON. Its shape is stable: fields are added, never
// renamed or removed (docs/status.md, docs/status.schema.json).
type View struct {
	// Time is when it was looked at.
	Time   time.Time `json:"time"`
	Wiring Wiring    `json:"wiring"`
	// Attention lists what a person should look at, the most urgent first.
	Attention []Attention             `json:"attention"`
	Problems  []problem.Problem       `json:"problems"`
	Untrusted []string                `json:"untrusted"`
	Refused   map[tally.Reason]uint64 `json:"hook_refusals"`
	// On lists the rules that run for this project.
	On []string `json:"rules_on"`
	// Rules were handed records, at any time in any project.
	Rules map[string]Rule `json:"rules"`
	// DeadLetters are put aside, by rule.
	DeadLetters map[string]int `json:"dead_letters"`
	SpoolBytes  int64          `json:"spool_bytes"`
	Damaged     uint64         `json:"damaged"`
	Unwritten   uint64         `json:"unwritten"`
	// Sessions have a dispatcher, or something waiting.
	Sessions []Session `json:"sessions"`
	// Past counts the sessions without a dispatcher and without anything waiting.
	Past int `json:"past_sessions"`
}

// Wiring says how far the client's settings have our hook.
type Wiring struct {
	File     string   `json:"file"`
	Complete bool     `json:"complete"`
	Missing  []string `json:"missing,omitempty"`
	Problem  string   `json:"problem,omitempty"`
}

// Rule is what became of a rule's records since the first.
type Rule struct {
	counters.Rule
	// Dispatch is how long dispatches took, LagTimes how old records were when
	// they had arrived.
	Dispatch Times `json:"dispatch_ms"`
	LagTimes Times `json:"lag_ms"`
}

// Times are durations in milliseconds.
type Times struct {
	Count uint64  `json:"count"`
	P50   float64 `json:"p50"`
	P95   float64 `json:"p95"`
}

// Session is one session with a dispatcher, or with something waiting.
type Session struct {
	Session string    `json:"session"`
	Project string    `json:"project,omitempty"`
	Running bool      `json:"running"`
	PID     int       `json:"pid,omitempty"`
	Version string    `json:"version,omitempty"`
	Started time.Time `json:"started,omitzero"`
	// Uptime is in seconds.
	Uptime float64 `json:"uptime_seconds,omitempty"`
	// Memory is the dispatcher's resident memory.
	Memory     int64     `json:"memory_bytes,omitempty"`
	Records    uint64    `json:"records"`
	Damaged    uint64    `json:"damaged,omitempty"`
	SpoolBytes int64     `json:"spool_bytes"`
	Waiting    uint64    `json:"spooled"`
	Since      time.Time `json:"spooled_since,omitzero"`
}

// Attention is one thing to look at.
type Attention struct {
	Kind Concern `json:"kind"`
	// Rule or Session is what it is about, where it is about one.
	Rule    string `json:"rule,omitempty"`
	Session string `json:"session,omitempty"`
	// Text says it in words, with what to do.
	Text string `json:"text"`
}

// Concern is what kind of thing needs attention.
type Concern string

// The concerns, the most urgent first.
const (
	NotWired   Concern = "not_wired"
	Refused    Concern = "refused"
	Off        Concern = "off"
	Paused     Concern = "paused"
	Unsent     Concern = "unsent"
	Unattended Concern = "unattended"
	Dead       Concern = "dead_letters"
	Failing    Concern = "failing"
	Unreadable Concern = "unreadable"
	Untrusted  Concern = "untrusted"
)

// Times after which something needs attention.
const (
	// late: a record waits for a minute.
	late = time.Minute
	// recent: a failure of the last hour that no delivery came after.
	recent = time.Hour
)

// fill puts in what the survey found.
func (v *View) fill(s survey.Survey, now time.Time) {
	v.Time = now.UTC().Truncate(time.Second)
	v.Refused, v.DeadLetters, v.SpoolBytes, v.Past = s.Refused, s.DeadLetters, s.SpoolBytes, s.Past
	v.Damaged, v.Unwritten = s.Sum.Damaged, s.Sum.Unwritten
	for id, r := range s.Sum.Rules {
		one := Rule{Rule: *r, Dispatch: times(r.Duration), LagTimes: times(r.Lag)}
		one.Duration, one.Lag, one.By = counters.Histogram{}, counters.Histogram{}, nil
		v.Rules[id] = one
	}
	for _, o := range s.Sessions {
		one := Session{
			Session: o.ID, Project: o.Project, Running: o.Running, PID: o.PID, Version: o.Version, Started: o.Started, Memory: o.Memory,
			Records: o.Records, Damaged: o.Damaged, SpoolBytes: o.SpoolBytes, Waiting: o.Waiting, Since: o.Since,
		}
		if !o.Started.IsZero() {
			one.Uptime = max(now.Sub(o.Started).Truncate(time.Second).Seconds(), 0)
		}
		v.Sessions = append(v.Sessions, one)
	}
	v.attend(s, now)
}

func times(h counters.Histogram) Times {
	ms := func(q float64) float64 {
		return float64(h.Quantile(q).Round(10*time.Microsecond)) / float64(time.Millisecond)
	}
	return Times{h.Count, ms(0.5), ms(0.95)}
}

// attend lists what needs attention.
func (v *View) attend(s survey.Survey, now time.Time) {
	say := func(kind Concern, rule, session, format string, args ...any) {
		v.Attention = append(v.Attention, Attention{kind, rule, session, fmt.Sprintf(format, args...)})
	}
	switch {
	case v.Wiring.Problem != "":
		say(NotWired, "", "", "%s", v.Wiring.Problem)
	case !v.Wiring.Complete:
		say(NotWired, "", "", "on %d events in %s; run: ways reconcile", len(v.Wiring.Missing), v.Wiring.File)
	}
	for _, p := range v.Problems {
		if p.Severity == problem.Error {
			say(Refused, "", "", "%s", p.String())
		}
	}
	for _, id := range v.ranked() {
		r := v.Rules[id]
		waits := fmt.Sprintf("%d records wait", r.Waiting)
		if r.Waiting == 1 {
			waits = "1 record waits"
		}
		if !r.WaitingSince.IsZero() {
			waits += ", the oldest for " + age(now.Sub(r.WaitingSince))
		}
		why := ""
		if r.LastError != "" && !r.LastDelivered.After(r.LastErrorAt) {
			why = "; " + r.LastError
		}
		switch {
		case !r.OffSince.IsZero() && r.Waiting > 0:
			say(Off, id, "", "it is off, and %s; on again, it delivers them, else they go to the dead letters at spool.max_age", waits)
		case !r.PausedSince.IsZero():
			next := ""
			if r.NextTry.After(now) {
				next = ", next try in " + age(r.NextTry.Sub(now))
			}
			say(Paused, id, "", "paused since %s, %s%s%s", clock(r.PausedSince), waits, next, why)
		case r.Waiting > 0 && !r.WaitingSince.IsZero() && now.Sub(r.WaitingSince) > late:
			say(Unsent, id, "", "%s%s", waits, why)
		}
	}
	for _, o := range v.Sessions {
		if !o.Running && (o.Waiting > 0 || o.SpoolBytes > 0) {
			say(Unattended, "", o.Session, "%d records and %s in its spool, and no dispatcher; run: ways sensors drain", o.Waiting, size(o.SpoolBytes))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(v.DeadLetters)) {
		say(Dead, id, "", "%d put aside; see: ways sensors dead list", v.DeadLetters[id])
	}
	for _, id := range v.ranked() {
		if r := v.Rules[id]; v.failing(r, now) && r.Waiting == 0 {
			say(Failing, id, "", "nothing delivered since %s; %s", clock(r.LastErrorAt), r.LastError)
		}
	}
	for _, err := range s.Sum.Unreadable {
		say(Unreadable, "", "", "%v", err)
	}
	for _, f := range v.Untrusted {
		say(Untrusted, "", "", "not read, since the project is not trusted: %s", f)
	}
}

// failing: the newest of what is known of the rule is a failure, of late.
func (v *View) failing(r Rule, now time.Time) bool {
	return r.LastErrorAt.After(r.LastDelivered) && now.Sub(r.LastErrorAt) < recent
}

// ranked orders the rules by their need of attention.
func (v *View) ranked() []string {
	urgency := func(id string) int {
		r := v.Rules[id]
		switch {
		case !r.PausedSince.IsZero(), !r.OffSince.IsZero():
			return 0
		case r.Waiting > 0:
			return 1
		case v.DeadLetters[id] > 0:
			return 2
		case r.LastErrorAt.After(r.LastDelivered):
			return 3
		}
		return 4
	}
	return slices.SortedFunc(maps.Keys(v.Rules), func(a, b string) int {
		x, y := urgency(a), urgency(b)
		if x == 1 && y == 1 {
			if c := v.Rules[a].WaitingSince.Compare(v.Rules[b].WaitingSince); c != 0 {
				return c
			}
		}
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
	})
}

func clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// age says a duration with one or two units.
func age(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm %ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh %dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours())/24)
}

// size says a number of bytes with one unit.
func size(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d B", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
