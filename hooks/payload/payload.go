// Package payload turns a hook's stdin into an event. The payload is outside
// input: it may be empty, truncated, endless, enormous or not JSON. What is
// taken from it is kept as the bytes the client sent.
package payload

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"ways/hooks/repair"
)

// MaxBytes is the largest payload that is taken. Larger ones are drained and
// refused; it is far above what the client sends (a tool result of megabytes).
const MaxBytes = 64 << 20

// Why a payload was refused. Each is a counter (hooks/tally) and the reason in
// the log; none of them holds any of the payload's text.
var (
	ErrEmpty     = errors.New("empty")
	ErrNotObject = errors.New("not_object")
	ErrTruncated = errors.New("truncated")
	ErrSyntax    = errors.New("invalid_json")
	ErrTooLarge  = errors.New("too_large")
	ErrNoSession = errors.New("no_session")
	ErrNoEvent   = errors.New("no_event")
)

// Event is one hook payload. Raw fields hold the value's JSON exactly as sent,
// with raw newlines (which can only stand between tokens) turned into spaces;
// nil where the payload has no such field. Of a repeated key the last one holds,
// as in the parsers of the client itself.
type Event struct {
	Name      string // hook_event_name
	Session   string
	Cwd       string
	AgentID   string // empty for the main agent
	AgentType string
	PromptID  string
	ToolUseID string
	// Transcript is the session's transcript file, as the client names it.
	Transcript string
	// AgentTranscript is a subagent's transcript file, where the client names one.
	AgentTranscript string

	Prompt             jsontext.Value
	LastMessage        jsontext.Value
	ToolName           jsontext.Value
	ToolInput          jsontext.Value
	ToolUse            jsontext.Value // tool_use_id, raw
	ToolResponse       jsontext.Value
	Error              jsontext.Value
	IsInterrupt        jsontext.Value
	DurationMS         jsontext.Value
	MCPServer          jsontext.Value // of newer clients, with a tool of an MCP server
	Source             jsontext.Value
	Model              jsontext.Value
	Reason             jsontext.Value
	Trigger            jsontext.Value
	CustomInstructions jsontext.Value

	// Raw is the whole payload, for telling two events apart.
	Raw []byte
	// Repaired counts the bytes that were no UTF-8 and were replaced by U+FFFD,
	// so that a consumer can parse the record.
	Repaired int
}

// Parse reads one payload: a JSON object as Scan delimits it. Lone surrogate
// escapes are kept. Errors wrap one of the sentinels above.
func Parse(raw []byte) (Event, error) {
	raw, repaired := sound(raw)
	if len(raw) > MaxBytes {
		return Event{}, ErrTooLarge // a byte that is no UTF-8 becomes three
	}
	ev := Event{Raw: raw, Repaired: repaired}
	// A Buffer is read where it lies; of any other reader the decoder makes a copy.
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	tok, err := dec.ReadToken()
	switch {
	case err != nil:
		return Event{}, syntax(err)
	case tok.Kind() != '{':
		return Event{}, ErrNotObject
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return Event{}, syntax(err)
		}
		toText, toValue := ev.field(name.String())
		val, err := dec.ReadValue()
		if err != nil {
			return Event{}, syntax(err)
		}
		end := int(dec.InputOffset())
		if toValue != nil {
			*toValue = raw[end-len(val) : end : end]
		}
		if toText != nil {
			*toText = text(val)
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return Event{}, syntax(err)
	}
	if ev.Session == "" {
		return ev, ErrNoSession
	}
	if ev.Name == "" {
		return ev, ErrNoEvent
	}
	return ev, nil
}

// field is where a member of the payload belongs: to a text, a raw value, both or
// none. A switch and no map, which would be made anew in each process.
func (ev *Event) field(key string) (*string, *jsontext.Value) {
	switch key {
	case "hook_event_name":
		return &ev.Name, nil
	case "session_id":
		return &ev.Session, nil
	case "cwd":
		return &ev.Cwd, nil
	case "agent_id":
		return &ev.AgentID, nil
	case "agent_type":
		return &ev.AgentType, nil
	case "prompt_id":
		return &ev.PromptID, nil
	case "transcript_path":
		return &ev.Transcript, nil
	case "agent_transcript_path":
		return &ev.AgentTranscript, nil
	case "tool_use_id":
		return &ev.ToolUseID, &ev.ToolUse
	case "prompt":
		return nil, &ev.Prompt
	case "last_assistant_message":
		return nil, &ev.LastMessage
	case "tool_name":
		return nil, &ev.ToolName
	case "tool_input":
		return nil, &ev.ToolInput
	case "tool_response":
		return nil, &ev.ToolResponse
	case "error":
		return nil, &ev.Error
	case "is_interrupt":
		return nil, &ev.IsInterrupt
	case "duration_ms":
		return nil, &ev.DurationMS
	case "mcp_server":
		return nil, &ev.MCPServer
	case "source":
		return nil, &ev.Source
	case "model":
		return nil, &ev.Model
	case "reason":
		return nil, &ev.Reason
	case "trigger":
		return nil, &ev.Trigger
	case "custom_instructions":
		return nil, &ev.CustomInstructions
	}
	return nil, nil
}

// text is the string that val spells; empty for any other kind of value.
func text(val jsontext.Value) string {
	if val.Kind() != '"' {
		return ""
	}
	b, err := jsontext.AppendUnquote(nil, val)
	if err != nil && len(b) == 0 {
		return ""
	}
	return string(b)
}

// syntax keeps the position of a syntax error and drops its text, which can
// quote the payload.
func syntax(err error) error {
	var se *jsontext.SyntacticError
	if errors.As(err, &se) {
		return fmt.Errorf("%w at byte %d", ErrSyntax, se.ByteOffset)
	}
	return ErrSyntax
}

// sound makes the payload valid UTF-8 on one line. Both are rare, so the
// common payload is returned as it is.
func sound(raw []byte) ([]byte, int) {
	raw, n := repair.UTF8(raw)
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw, n
	}
	// A raw newline inside a JSON string is a syntax error; turning it into a
	// space there would hide that, so it is left for the parser to refuse.
	out := bytes.Clone(raw)
	inString, escaped := false, false
	for i, c := range out {
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case !inString && (c == '\n' || c == '\r'):
			out[i] = ' '
		}
	}
	return out, n
}
