package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"ways/hooks/repair"
)

// Kind says what an item is.
type Kind uint8

// The kinds of items.
const (
	// Text is a text block that the agent wrote.
	Text Kind = iota
	// Call is a tool call.
	Call
	// Result is a tool's result.
	Result
	// Prompt is what a turn began with.
	Prompt
	// Queued is a message that was taken into a running turn.
	Queued
	// Enqueued is a message that was put into the queue; what became of it, a
	// later line says. Dequeued and Dropped are such: it began a turn of its own,
	// or went back to the person who typed it.
	Enqueued
	Dequeued
	Dropped
	// Interrupted says that the user stopped the reply or the tool before it.
	Interrupted
)

// String names a kind in messages and tests.
func (k Kind) String() string {
	return [...]string{"text", "call", "result", "prompt", "queued", "enqueued", "dequeued", "dropped", "interrupted"}[k]
}

// Item is one thing that a line shows. Raw values alias the line.
type Item struct {
	Kind Kind
	// Block is the number of the content block in its line.
	Block int
	// Text is the JSON string of a text, a prompt or a queued message.
	Text jsontext.Value
	// ID is the tool call's; Name is the tool's, of a call.
	ID   string
	Name jsontext.Value
	// Input is a call's.
	Input jsontext.Value
	// Content is a result's, Output what the client made of it for its hooks
	// (toolUseResult); nil when the line has none.
	Content, Output jsontext.Value
	// Failed is a result's is_error.
	Failed bool
	// Origin says who wrote a prompt or queued message: human, task-notification
	// and others; empty where the client does not say.
	Origin string
	// Waited: the prompt waited in the queue before its turn began; the client ran
	// its hook then, under the turn that was running.
	Waited bool
	// ForTool: the interruption stopped a tool, and no reply.
	ForTool bool
}

// Line is one line of a transcript, as far as it is of interest.
type Line struct {
	// At and Size are where it is in the file, its newline included.
	At, Size int64
	// Type is the client's own; empty for a line that is passed over.
	Type         string
	UUID, Parent string
	Session      string
	PromptID     string
	// AgentID and AgentType are a subagent's; Sidechain is the client's mark for
	// its lines.
	AgentID, AgentType string
	Sidechain          bool
	// Meta: the client wrote it and shows it to nobody.
	Meta bool
	Cwd  string
	// Time is the client's; zero when the line has none.
	Time time.Time
	// Permission is the permission mode, where the line tells of it.
	Permission string
	// Decision is what became of a call's permission: accept, reject; or empty.
	Decision string
	// MessageID, Model and StopReason are an assistant message's. One message can
	// span several lines.
	MessageID, Model, StopReason string
	// Aborted: the reply was interrupted while it was written.
	Aborted bool
	// APIError: the client wrote it, for an answer that was none.
	APIError bool
	// InterruptedMessage is the message that an interruption stopped.
	InterruptedMessage string
	Items              []Item
	// Repaired counts bytes that were no UTF-8 and became U+FFFD.
	Repaired int
}

// errNotObject is the reason for a line that is JSON, but no object.
var errNotObject = errors.New("not a JSON object")

// rawLine is the fields of a line that are read before it is known what it is.
type rawLine struct {
	message, attachment, origin, decision, toolResult, content jsontext.Value
	operation, subtype, source                                 string
	compact, transcriptOnly                                    bool
}

// Parse reads one line. A line of an unknown kind has no items and is no error;
// thinking is dropped here, so that nobody behind can pass it on.
func Parse(line []byte) (Line, error) {
	var l Line
	text, repaired := sound(line)
	l.Repaired = repaired
	var raw rawLine
	err := object(text, func(key string, val jsontext.Value) error {
		switch key {
		case "type":
			l.Type = str(val)
		case "uuid":
			l.UUID = str(val)
		case "parentUuid":
			l.Parent = str(val)
		case "sessionId":
			l.Session = str(val)
		case "promptId":
			l.PromptID = str(val)
		case "agentId":
			l.AgentID = str(val)
		case "attributionAgent":
			l.AgentType = str(val)
		case "isSidechain":
			l.Sidechain = isTrue(val)
		case "isMeta":
			l.Meta = isTrue(val)
		case "cwd":
			l.Cwd = str(val)
		case "timestamp":
			l.Time = timeOf(val)
		case "permissionMode":
			l.Permission = str(val)
		case "isAbortedMidStream":
			l.Aborted = isTrue(val)
		case "isApiErrorMessage":
			l.APIError = isTrue(val)
		case "interruptedMessageId":
			l.InterruptedMessage = str(val)
		case "operation":
			raw.operation = str(val)
		case "subtype":
			raw.subtype = str(val)
		case "promptSource":
			raw.source = str(val)
		case "isCompactSummary":
			raw.compact = isTrue(val)
		case "isVisibleInTranscriptOnly":
			raw.transcriptOnly = isTrue(val)
		case "message":
			raw.message = val
		case "attachment":
			raw.attachment = val
		case "origin":
			raw.origin = val
		case "permissionDecision":
			raw.decision = val
		case "toolUseResult":
			raw.toolResult = val
		case "content":
			raw.content = val
		}
		return nil
	})
	if err != nil {
		return Line{}, err
	}
	if raw.decision != nil {
		l.Decision = member(raw.decision, "decision")
	}
	switch l.Type {
	case "assistant":
		err = l.assistant(raw)
	case "user":
		err = l.user(raw)
	case "attachment":
		err = l.attached(raw)
	case "queue-operation":
		l.queue(raw)
	}
	if err != nil {
		return Line{}, err
	}
	return l, nil
}

// message calls block for each content block of a message; a plain string counts
// as one text block.
func (l *Line) message(raw jsontext.Value, block func(n int, b jsontext.Value) error) error {
	if raw.Kind() != '{' {
		return nil
	}
	var content jsontext.Value
	if err := object(raw, func(key string, val jsontext.Value) error {
		switch key {
		case "id":
			l.MessageID = str(val)
		case "model":
			l.Model = str(val)
		case "stop_reason":
			l.StopReason = str(val)
		case "content":
			content = val
		}
		return nil
	}); err != nil {
		return err
	}
	switch content.Kind() {
	case '"':
		return block(0, content)
	case '[':
		n := -1
		return array(content, func(val jsontext.Value) error {
			n++
			return block(n, val)
		})
	}
	return nil
}

// block is one content block.
type block struct {
	kind                                          string
	text, id, name, input, content, useID, failed jsontext.Value
}

func readBlock(raw jsontext.Value) (block, error) {
	var b block
	if raw.Kind() == '"' {
		return block{kind: "text", text: raw}, nil
	}
	if raw.Kind() != '{' {
		return b, nil
	}
	err := object(raw, func(key string, val jsontext.Value) error {
		switch key {
		case "type":
			b.kind = str(val)
		case "text":
			b.text = val
		case "id":
			b.id = val
		case "name":
			b.name = val
		case "input":
			b.input = val
		case "content":
			b.content = val
		case "tool_use_id":
			b.useID = val
		case "is_error":
			b.failed = val
		}
		return nil
	})
	return b, err
}

func (l *Line) assistant(raw rawLine) error {
	return l.message(raw.message, func(n int, val jsontext.Value) error {
		b, err := readBlock(val)
		if err != nil {
			return err
		}
		switch {
		case b.kind == "text" && b.text.Kind() == '"' && len(b.text) > len(`""`):
			l.Items = append(l.Items, Item{Kind: Text, Block: n, Text: b.text})
		case b.kind == "tool_use", b.kind == "server_tool_use", b.kind == "mcp_tool_use":
			l.Items = append(l.Items, Item{Kind: Call, Block: n, ID: str(b.id), Name: b.name, Input: b.input})
		case strings.HasSuffix(b.kind, "_tool_result"): // of a tool that the API ran
			l.Items = append(l.Items, Item{Kind: Result, Block: n, ID: str(b.useID), Content: b.content, Failed: isTrue(b.failed)})
		}
		return nil
	})
}

// interruptions are what the client writes when the user stops the agent.
func interruption(text string) (forTool, ok bool) {
	switch text {
	case "[Request interrupted by user]":
		return false, true
	case "[Request interrupted by user for tool use]":
		return true, true
	}
	return false, false
}

func (l *Line) user(raw rawLine) error {
	results, text := 0, jsontext.Value(nil)
	blocks := 0
	err := l.message(raw.message, func(n int, val jsontext.Value) error {
		b, err := readBlock(val)
		if err != nil {
			return err
		}
		blocks++
		switch {
		case b.kind == "tool_result":
			results++
			l.Items = append(l.Items, Item{Kind: Result, Block: n, ID: str(b.useID), Content: b.content, Failed: isTrue(b.failed)})
		case b.kind == "text" && text == nil:
			text = b.text
		}
		return nil
	})
	if err != nil {
		return err
	}
	if results == 1 {
		// With several results in one line, whose it is cannot be told.
		l.Items[len(l.Items)-1].Output = raw.toolResult
	}
	if results > 0 || text.Kind() != '"' {
		return nil
	}
	if forTool, ok := interruption(short(text)); ok && blocks == 1 {
		l.Items = append(l.Items, Item{Kind: Interrupted, ForTool: forTool, Text: text})
		return nil
	}
	origin := ""
	if raw.origin.Kind() == '{' {
		origin = member(raw.origin, "kind")
	}
	if l.Meta || l.Sidechain || l.AgentID != "" || raw.compact || raw.transcriptOnly || l.PromptID == "" || (origin == "" && raw.source == "") {
		return nil
	}
	l.Items = append(l.Items, Item{Kind: Prompt, Text: text, Origin: origin, Waited: raw.source == "queued"})
	return nil
}

func (l *Line) attached(raw rawLine) error {
	if raw.attachment.Kind() != '{' {
		return nil
	}
	var kind, mode string
	it := Item{Kind: Queued}
	err := object(raw.attachment, func(key string, val jsontext.Value) error {
		switch key {
		case "type":
			kind = str(val)
		case "commandMode":
			mode = str(val)
		case "prompt":
			it.Text = val
		case "origin":
			if val.Kind() == '{' {
				it.Origin = member(val, "kind")
			}
		}
		return nil
	})
	if err != nil || kind != "queued_command" {
		return err
	}
	if it.Text.Kind() == '[' {
		it.Text = joined(it.Text)
	}
	if it.Text.Kind() != '"' {
		return nil
	}
	if it.Origin == "" && mode != "prompt" {
		it.Origin = mode
	}
	l.Items = append(l.Items, it)
	return nil
}

// joined is the text of a message in blocks (one with pictures), as one string.
func joined(blocks jsontext.Value) jsontext.Value {
	var all []byte
	_ = array(blocks, func(val jsontext.Value) error { // it was parsed as a whole before
		if b, err := readBlock(val); err == nil && b.kind == "text" {
			if len(all) > 0 {
				all = append(all, '\n')
			}
			all, _ = jsontext.AppendUnquote(all, b.text)
		}
		return nil
	})
	out, _ := jsontext.AppendQuote(nil, all)
	return out
}

func (l *Line) queue(raw rawLine) {
	kind := Dropped
	switch raw.operation {
	case "enqueue":
		kind = Enqueued
	case "dequeue":
		kind = Dequeued
	case "remove", "popAll", "pop", "clear":
	default:
		return
	}
	l.Items = append(l.Items, Item{Kind: kind, Text: raw.content})
}

// short is the text of a JSON string that is short; empty for others.
func short(val jsontext.Value) string {
	if len(val) > 512 {
		return ""
	}
	return str(val)
}

func str(val jsontext.Value) string {
	if val.Kind() != '"' {
		return ""
	}
	b, _ := jsontext.AppendUnquote(nil, val) // what is no UTF-8 becomes U+FFFD
	return string(b)
}

func isTrue(val jsontext.Value) bool { return val.Kind() == 't' }

func timeOf(val jsontext.Value) time.Time {
	t, err := time.Parse(time.RFC3339Nano, short(val))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// member is one string member of an object.
func member(val jsontext.Value, name string) string {
	found := ""
	_ = object(val, func(key string, v jsontext.Value) error { // it was parsed as a whole before
		if key == name {
			found = str(v)
		}
		return nil
	})
	return found
}

// object calls f with each member of an object. Of a repeated name the last one
// holds, as in the client's own parser, since f is called again.
func object(raw []byte, f func(key string, val jsontext.Value) error) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	tok, err := dec.ReadToken()
	switch {
	case err != nil:
		return syntax(err)
	case tok.Kind() != '{':
		return errNotObject
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return syntax(err)
		}
		key := name.String()
		val, err := dec.ReadValue()
		if err != nil {
			return syntax(err)
		}
		end := int(dec.InputOffset())
		if err := f(key, raw[end-len(val):end:end]); err != nil {
			return err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return syntax(err)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value on a line")
	}
	return nil
}

func array(raw []byte, f func(val jsontext.Value) error) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if _, err := dec.ReadToken(); err != nil {
		return syntax(err)
	}
	for dec.PeekKind() != ']' {
		val, err := dec.ReadValue()
		if err != nil {
			return syntax(err)
		}
		end := int(dec.InputOffset())
		if err := f(raw[end-len(val) : end : end]); err != nil {
			return err
		}
	}
	return nil
}

// syntax keeps where an error is and drops its text, which can quote the line.
func syntax(err error) error {
	var se *jsontext.SyntacticError
	if errors.As(err, &se) {
		return fmt.Errorf("not JSON at byte %d", se.ByteOffset)
	}
	return errors.New("not JSON")
}

// sound makes a line valid UTF-8, and takes away what a crash of the machine
// may leave in front of it: a run of NULs. A carriage return can only stand
// between tokens; a record has none.
func sound(line []byte) ([]byte, int) {
	line = bytes.TrimLeft(line, "\x00")
	line = bytes.TrimRight(line, "\r")
	if bytes.IndexByte(line, '\r') >= 0 {
		line = bytes.ReplaceAll(line, []byte{'\r'}, []byte{' '})
	}
	return repair.UTF8(line)
}

// Beginning is how a result's content begins, as plain text: of a string, or of
// the first text block. It looks at most bytes of it.
func Beginning(content jsontext.Value, most int) string {
	if content.Kind() == '[' {
		first := jsontext.Value(nil)
		_ = array(content, func(val jsontext.Value) error { // it was parsed as a whole before
			if b, err := readBlock(val); first == nil && err == nil && b.kind == "text" {
				first = b.text
			}
			return nil
		})
		content = first
	}
	if content.Kind() != '"' {
		return ""
	}
	if len(content) > most {
		content = append(bytes.Clone(content[:most]), '"')
	}
	plain, _ := jsontext.AppendUnquote(nil, content) // an escape that was cut through is lost
	return string(plain)
}
