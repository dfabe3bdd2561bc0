package record

import (
	"bytes"
	"cmp"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"ways/hooks/payload"
)

// Version is the value of a record's `v`. Fields may be added under it.
const Version = 1

// Where a record came from, on the wire in `source`.
const (
	FromHook       = "hook"
	FromTranscript = "transcript"
)

// The main agent's id and type on the wire.
const mainAgent = "main"

// The marker with which the client opens a prompt that it wrote itself.
const taskNotification = "<task-notification>"

// Yields returns the sections that a hook event can yield; empty for an event
// that is not ours.
func Yields(event string) Set {
	switch event {
	case "UserPromptSubmit":
		return SetOf(UserPrompt, QueuedMessage)
	case "PreToolUse":
		return SetOf(ToolCall)
	case "PostToolUse", "PostToolUseFailure":
		return SetOf(ToolResult)
	case "Stop":
		return SetOf(AssistantResponse)
	case "SubagentStart":
		return SetOf(Subagent)
	case "SubagentStop":
		return SetOf(Subagent, AssistantResponse)
	case "PreCompact":
		return SetOf(Compaction)
	case "SessionStart":
		return SetOf(SessionStart, Compaction)
	case "SessionEnd":
		return SetOf(SessionEnd)
	}
	return 0
}

// Events lists the hook events that Yields knows, in the order they are wired.
func Events() []string {
	return []string{
		"PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop",
		"SubagentStart", "SubagentStop", "SessionStart", "SessionEnd", "PreCompact",
	}
}

// Draft is a record that lacks only its sequence number, which is given under
// the spool's lock.
type Draft struct {
	Section Section
	// Head ends where the number goes, Tail begins behind it.
	Head, Tail []byte
}

// Append appends the record with its number to dst.
func (d Draft) Append(dst []byte, seq uint64) []byte {
	dst = append(dst, d.Head...)
	dst = strconv.AppendUint(dst, seq, 10)
	return append(dst, d.Tail...)
}

// Size is the record's length without the number's digits.
func (d Draft) Size() int { return len(d.Head) + len(d.Tail) }

// Context is what the hook knows of an event beside its payload.
type Context struct {
	// Time is when the hook saw the event.
	Time time.Time
	// Project is the project root.
	Project string
	// InTurn: the event's prompt id is the one of the turn that is running, so
	// a prompt is a message queued into that turn.
	InTurn bool
	// Source is where the record comes from; empty for FromHook.
	Source string
	// Ref and Replayed are as in an Entry.
	Ref      string
	Replayed bool
}

// FromEvent returns the records of the wanted sections that an event yields,
// in the order consumers should see them.
func FromEvent(ev payload.Event, c Context, want Set) []Draft {
	var drafts []Draft
	add := func(s Section, data data) {
		if want.Has(s) {
			drafts = append(drafts, draft(ev, c, s, data))
		}
	}
	switch ev.Name {
	case "UserPromptSubmit":
		origin := originOf(ev.Prompt)
		if c.InTurn && origin == "human" {
			add(QueuedMessage, object(field{"text", orNull(ev.Prompt)}))
		} else {
			add(UserPrompt, object(field{"prompt", orNull(ev.Prompt)}, field{"origin", quote(origin)}))
		}
	case "PreToolUse":
		add(ToolCall, object(field{"id", orNull(ev.ToolUse)}, field{"name", orNull(ev.ToolName)}, field{"input", orNull(ev.ToolInput)}, field{"mcp_server", ev.MCPServer}))
	case "PostToolUse":
		add(ToolResult, object(field{"id", orNull(ev.ToolUse)}, field{"name", orNull(ev.ToolName)}, field{"status", quote("ok")}, field{"output", orNull(ev.ToolResponse)}, field{"duration_ms", ev.DurationMS}, field{"mcp_server", ev.MCPServer}))
	case "PostToolUseFailure":
		status := "error"
		if string(ev.IsInterrupt) == "true" {
			status = "interrupted"
		}
		add(ToolResult, object(field{"id", orNull(ev.ToolUse)}, field{"name", orNull(ev.ToolName)}, field{"status", quote(status)}, field{"error", orNull(ev.Error)}, field{"duration_ms", ev.DurationMS}, field{"mcp_server", ev.MCPServer}))
	case "Stop":
		addReply(ev, add)
	case "SubagentStart":
		add(Subagent, subagent(ev, "start"))
	case "SubagentStop":
		// The reply first: it was written before the subagent stopped.
		addReply(ev, add)
		add(Subagent, subagent(ev, "stop"))
	case "PreCompact":
		add(Compaction, object(field{"phase", quote("before")}, field{"trigger", orNull(ev.Trigger)}, field{"custom_instructions", ev.CustomInstructions}))
	case "SessionStart":
		if string(ev.Source) == `"compact"` {
			add(Compaction, object(field{"phase", quote("after")}))
		}
		add(SessionStart, object(field{"source", orNull(ev.Source)}, field{"model", ev.Model}))
	case "SessionEnd":
		add(SessionEnd, object(field{"reason", orNull(ev.Reason)}))
	}
	return drafts
}

// addReply adds the reply at a turn's end. A client too old to send it, and a
// reply without text, yield none here: what there is, the transcript shows.
func addReply(ev payload.Event, add func(Section, data)) {
	if ev.LastMessage.Kind() == '"' && len(ev.LastMessage) > len(`""`) {
		add(AssistantResponse, object(field{"text", ev.LastMessage}, field{"final", jsontext.Value("true")}, field{"interrupted", jsontext.Value("false")}))
	}
}

func subagent(ev payload.Event, phase string) data {
	return object(field{"phase", quote(phase)}, field{"id", quote(ev.AgentID)}, field{"type", quote(ev.AgentType)})
}

// originOf tells a prompt that the client wrote from one that a person typed.
func originOf(prompt jsontext.Value) string {
	if prompt.Kind() != '"' {
		return "human"
	}
	// The marker is at the beginning, and may be escaped in any way JSON allows;
	// each of its characters takes six bytes at most.
	start := prompt[1:min(len(prompt), 1+6*(len(taskNotification)+8))]
	plain, _ := jsontext.AppendUnquote(nil, append(append([]byte{'"'}, trimEscape(start)...), '"'))
	if bytes.HasPrefix(bytes.TrimLeft(plain, " \t\r\n"), []byte(taskNotification)) {
		return "task_notification"
	}
	return "human"
}

// trimEscape drops what a cut made of the last escape, and a closing quote.
func trimEscape(b []byte) []byte {
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == '"':
			return b[:i]
		case b[i] == '\\' && i+1 < len(b) && b[i+1] == 'u':
			if i+6 > len(b) {
				return b[:i]
			}
			i += 5
		case b[i] == '\\':
			if i+2 > len(b) {
				return b[:i]
			}
			i++
		}
	}
	return b
}

// draft wraps data in the envelope. Field order is fixed, so that a person can
// read a line from left to right.
func draft(ev payload.Event, c Context, s Section, data data) Draft {
	head := make([]byte, 0, 192)
	head = append(head, `{"v":`...)
	head = strconv.AppendInt(head, Version, 10)
	head = append(head, `,"section":`...)
	head = append(head, quote(s.String())...)
	head = append(head, `,"event":`...)
	head = append(head, quote(ev.Name)...)
	head = append(head, `,"source":`...)
	head = append(head, quote(cmp.Or(c.Source, FromHook))...)
	head = append(head, `,"ts":"`...)
	head = c.Time.UTC().AppendFormat(head, "2006-01-02T15:04:05.000000000Z")
	head = append(head, `","session":`...)
	head = append(head, quote(ev.Session)...)
	head = append(head, `,"seq":`...)

	agent, kind := ev.AgentID, ev.AgentType
	switch {
	case agent == "":
		agent, kind = mainAgent, mainAgent
	case kind == "":
		kind = "unknown" // seen: agent_id without agent_type
	}
	tail := make([]byte, 0, 256+data.size())
	tail = append(tail, `,"agent_id":`...)
	tail = append(tail, quote(agent)...)
	tail = append(tail, `,"agent_type":`...)
	tail = append(tail, quote(kind)...)
	tail = append(tail, `,"project":`...)
	tail = append(tail, quote(c.Project)...)
	tail = append(tail, `,"cwd":`...)
	tail = append(tail, quote(ev.Cwd)...)
	if ev.PromptID != "" {
		tail = append(tail, `,"prompt_id":`...)
		tail = append(tail, quote(ev.PromptID)...)
	}
	if c.Ref != "" {
		tail = append(tail, `,"ref":`...)
		tail = append(tail, quote(c.Ref)...)
	}
	if c.Replayed {
		tail = append(tail, `,"replayed":true`...)
	}
	if ev.Repaired > 0 {
		tail = append(tail, `,"repaired":`...)
		tail = strconv.AppendInt(tail, int64(ev.Repaired), 10)
	}
	tail = append(tail, `,"data":`...)
	tail = data.append(tail)
	tail = append(tail, '}')
	return Draft{Section: s, Head: head, Tail: tail}
}

// field is one member of a record's data: a name that needs no escaping, and
// its raw value.
type field struct {
	name  string
	value jsontext.Value
}

// data is a record's data. A value can be megabytes: it is copied once, into the
// record.
type data []field

// object makes data of fields; one without a value is left out.
func object(fields ...field) data {
	for i, f := range fields {
		fields[i].value = WithoutThinking(f.value)
	}
	return fields
}

// size is how much append appends, or a little more.
func (d data) size() int {
	n := len(`{}`)
	for _, f := range d {
		n += len(f.name) + len(`"":,`) + len(f.value)
	}
	return n
}

// append spells the data as a JSON object.
func (d data) append(dst []byte) []byte {
	dst = append(dst, '{')
	first := true
	for _, f := range d {
		if f.value == nil {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(append(append(dst, '"'), f.name...), `":`...)
		dst = append(dst, f.value...)
	}
	return append(dst, '}')
}

func orNull(v jsontext.Value) jsontext.Value {
	if v == nil {
		return jsontext.Value("null")
	}
	return v
}

// quote spells s as a JSON string. What is no UTF-8 in it (a path can hold any
// byte) becomes U+FFFD; the error that reports this is the replacement itself.
func quote(s string) jsontext.Value {
	b, _ := jsontext.AppendQuote(make([]byte, 0, len(s)+2), s)
	return b
}
