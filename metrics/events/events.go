// Package events is the event log, events.jsonl: one JSON object a line, shared
// by every process of ways on this account. Every value is a string.
package events

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// The events of sensors.
const (
	DispatcherStart = "dispatcher_start"
	DispatcherEnd   = "dispatcher_end"
	Timeout         = "sensor_timeout"
	Kill            = "sensor_kill"
	Refusal         = "sensor_refusal"
	Failure         = "sensor_failure"
	Drop            = "sensor_drop"
	Spool           = "sensor_spool"
	Damage          = "sensor_damage"
	Panic           = "sensor_panic"
	Retry           = "sensor_retry"
	Pause           = "sensor_pause"
	DeadLetter      = "sensor_dead_letter"
	Gap             = "sensor_gap"
)

// Event is one line. Empty fields are left out; TS is set by Append when empty.
// A field longer than MaxField is cut.
type Event struct {
	TS      string `json:"ts"`
	Event   string `json:"event"`
	Sensor  string `json:"sensor,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Session string `json:"session,omitempty"`
	Project string `json:"project,omitempty"`
	// Seq is the first record it is about, Count how many there were since the
	// event before of the same kind.
	Seq      string `json:"seq,omitempty"`
	Count    string `json:"count,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Duration string `json:"duration_ms,omitempty"`
	Detail   string `json:"detail,omitempty"`
}

// MaxField is how much of one field is written, in bytes.
const MaxField = 4096

func (e *Event) texts() []*string {
	return []*string{&e.Sensor, &e.Rule, &e.Session, &e.Project, &e.Reason, &e.Detail}
}

func bounded(s string) string {
	if len(s) <= MaxField {
		return s
	}
	cut := MaxField
	for cut > MaxField-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// Kind describes one event.
type Kind struct {
	Name string
	// When says when it is written.
	When string
	// Fields may stand in it, beside ts and event.
	Fields []string
}

// Field describes one field.
type Field struct{ Name, Text string }

// Kinds lists every event that is written.
func Kinds() []Kind {
	of := func(more ...string) []string { return append([]string{"session", "project", "count"}, more...) }
	rule := func(more ...string) []string { return append(of("sensor", "rule", "reason"), more...) }
	try := rule("seq", "duration_ms", "detail")
	return []Kind{
		{DispatcherStart, "a session's dispatcher started", of()},
		{DispatcherEnd, "it ended: it was idle, was told to stop, or could not go on, as the reason says; one that was killed writes none", of("reason")},
		{Timeout, "a rule's timeout passed before its consumer accepted a record; the record is lost to the rule", try},
		{Kill, "the same, and a command was killed for it", try},
		{Refusal, "a consumer, or the rule's own configuration, will never take a record; it is lost to the rule", try},
		{Failure, "a dispatch failed; the record is lost to the rule", try},
		{Retry, "a try of an at-least-once rule failed, for whatever reason; the record is kept and tried again", try},
		{Pause, "an at-least-once rule's consumer does not know us (401, 403): the rule waits, and tries seldom", try},
		{DeadLetter, "an at-least-once rule's consumer refused a record for good, or the record grew too old; it was put aside", try},
		{Drop, "a rule's queue was full, or the rule was stopped: records are lost to it", rule()},
		{Spool, "a rule fell behind: records wait for it on disk, from seq on", rule("seq")},
		{Panic, "a rule's actor failed and was started again", rule("detail")},
		{Damage, "a stretch of the spool held no whole record and was passed over", of()},
		{Gap, "hooks could not write records: the disk was full", of("reason")},
	}
}

// Fields lists every field.
func Fields() []Field {
	return []Field{
		{"ts", "when the first of them happened: RFC 3339, UTC, up to nanoseconds"},
		{"event", "the event's name"},
		{"sensor", "the sensor"},
		{"rule", "the rule's name in it"},
		{"session", "the session's id, as the client gives it"},
		{"project", "the project's directory; missing until the first record was read"},
		{"seq", "the sequence number of the first record it is about"},
		{"count", "how many there were: equal events within a second are one line"},
		{"reason", "a short stable word, such as `status_503` or `queue_full`"},
		{"duration_ms", "how long the last of the dispatches took, in milliseconds"},
		{"detail", "the last failure in words, without secrets and without text of the session; cut at 4,096 bytes"},
	}
}

// Reference is the page docs/events.md.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# Events

<!-- Made from the tables in metrics/events. Change those, then run:
     go test ./metrics/events -run Reference -update -->

What went wrong with deliveries, and when dispatchers came and went, is one line each in
` + "`~/.local/state/agent-ways/events.jsonl`" + `, shared by all sessions. A line is a JSON object whose values are all
strings, numbers included. It never holds text of a session. To count what arrived, see ` + "`ways status`" + `
and [metrics](metrics.md); for the story of one dispatcher, ` + "`ways logs`" + `.

    jq -c 'select(.event == "sensor_timeout") | [.ts, .sensor, .rule, .count]' ~/.local/state/agent-ways/events.jsonl

Each line is written whole or not at all, also when many dispatchers write at once, the disk is full, or
one is killed. A line cut short by a power cut ends at the next newline: skip a line that is no JSON.

Past 32 MiB the log is compacted: a new file with its newest 24 MiB takes its place, so follow it by name
(` + "`tail -F`" + `). ` + "`judge_call`" + ` lines are carried forward, so that what was spent survives; when they alone take
more than a third, the older ones are summed up to a line for each month, outcome, engine, provider, model and
cost_source, with the number of calls as ` + "`count`" + `.

Events that cannot be written are kept by their dispatcher and tried again, 1,000 at most; the counters
have them in any case.

## Events

| event | written when | fields, where known |
| --- | --- | --- |
`)
	for _, k := range Kinds() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.Name, k.When, code(k.Fields))
	}
	b.WriteString("\n## Fields\n\nEvery line has `ts` and `event`; a field without a value is left out.\n\n| field | meaning |\n| --- | --- |\n")
	for _, f := range Fields() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", f.Name, f.Text)
	}
	return b.String()
}

func code(names []string) string {
	names = slices.Clone(names)
	slices.Sort(names)
	return "`" + strings.Join(names, "`, `") + "`"
}
