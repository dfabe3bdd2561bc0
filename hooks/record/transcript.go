package record

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"ways/hooks/payload"
)

// TranscriptEvent is the `event` of a record that no hook event led to.
const TranscriptEvent = "Transcript"

// Shown lists the sections of which a transcript can show what no hook told.
func Shown() Set {
	return SetOf(UserPrompt, QueuedMessage, AssistantResponse, ToolCall, ToolResult, Subagent, SessionEnd)
}

// Field is one member of a record's data: a name that needs no escaping, and its
// raw value. One without a value is left out.
type Field struct {
	Name  string
	Value jsontext.Value
}

// Text is a field whose value is a string.
func Text(name, value string) Field { return Field{name, quote(value)} }

// Bool is a field whose value is true or false.
func Bool(name string, value bool) Field {
	return Field{name, jsontext.Value(strconv.FormatBool(value))}
}

// Raw is a field whose value is the client's own bytes; null when there are none.
func Raw(name string, value jsontext.Value) Field { return Field{name, orNull(value)} }

// Entry is what a record is made of that comes from a transcript.
type Entry struct {
	Section Section
	// Time is the transcript's own.
	Time    time.Time
	Session string
	// AgentID is empty for the main agent.
	AgentID, AgentType string
	Project, Cwd       string
	PromptID           string
	// Ref names the place in the transcript: the line's uuid and the number of the
	// block in it. Of two records of one section with one ref, one is a copy.
	Ref string
	// Replayed: from a past session, at somebody's request.
	Replayed bool
	// Repaired counts the bytes that were no UTF-8.
	Repaired int
	Data     []Field
}

// FromEntry returns the record of an entry.
func FromEntry(e Entry) Draft {
	fields := make([]field, len(e.Data))
	for i, f := range e.Data {
		fields[i] = field{f.Name, f.Value}
	}
	return draft(payload.Event{
		Name: TranscriptEvent, Session: e.Session, Cwd: e.Cwd, AgentID: e.AgentID, AgentType: e.AgentType,
		PromptID: e.PromptID, Repaired: e.Repaired,
	}, Context{Time: e.Time, Project: e.Project, Source: FromTranscript, Ref: e.Ref, Replayed: e.Replayed}, e.Section, object(fields...))
}

// Origin says who wrote a prompt, a JSON string: human, or task_notification when
// the client did.
func Origin(prompt jsontext.Value) string { return originOf(prompt) }
