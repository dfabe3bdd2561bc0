// Package note is what a hook tells the reader of transcripts: that a turn, a
// subagent or a session began or ended, and where its transcript is. Notes lie
// in the spool among the records (spool.Request.Note) and never leave the
// machine. A note read twice says nothing new.
package note

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"ways/hooks/client"
	"ways/hooks/payload"
)

// Note is one note. Texts are empty where the payload has no such field.
type Note struct {
	Event   string
	Time    time.Time // when the hook saw the event
	Session string
	// Transcript is the session's transcript file, AgentTranscript a subagent's.
	Transcript, AgentTranscript string
	// AgentID is empty for the main agent.
	AgentID, AgentType string
	PromptID           string
	Project, Cwd       string
	// Source is SessionStart's.
	Source string
	// Replied: the event brought the turn's last message.
	Replied bool
	Client  client.Client
}

// Wanted reports whether an event is worth a note: turns, subagents and sessions
// begin or end with it.
func Wanted(event string) bool {
	switch event {
	case "UserPromptSubmit", "Stop", "SubagentStart", "SubagentStop", "PreCompact", "SessionStart", "SessionEnd":
		return true
	}
	return false
}

// Of is the note of an event.
func Of(ev payload.Event, now time.Time, project string, by client.Client) Note {
	n := Note{
		Event: ev.Name, Time: now, Session: ev.Session, Transcript: ev.Transcript, AgentTranscript: ev.AgentTranscript,
		AgentID: ev.AgentID, AgentType: ev.AgentType, PromptID: ev.PromptID, Project: project, Cwd: ev.Cwd, Client: by,
		Replied: ev.LastMessage.Kind() == '"',
	}
	if ev.Source.Kind() == '"' {
		text, _ := jsontext.AppendUnquote(nil, ev.Source) // what is no UTF-8 in it does not matter
		n.Source = string(text)
	}
	return n
}

// texts lists a note's texts under their names.
func (n *Note) texts() []struct {
	name string
	at   *string
} {
	return []struct {
		name string
		at   *string
	}{
		{"event", &n.Event},
		{"session", &n.Session},
		{"transcript", &n.Transcript},
		{"agent_transcript", &n.AgentTranscript},
		{"agent_id", &n.AgentID},
		{"agent_type", &n.AgentType},
		{"prompt_id", &n.PromptID},
		{"project", &n.Project},
		{"cwd", &n.Cwd},
		{"source", &n.Source},
	}
}

// Encode spells the note as JSON on one line.
func (n Note) Encode() []byte {
	b := append(make([]byte, 0, 512), `{"ns":`...)
	b = strconv.AppendInt(b, n.Time.UnixNano(), 10)
	for _, t := range n.texts() {
		if *t.at != "" {
			b = append(append(append(b, `,"`...), t.name...), `":`...)
			b, _ = jsontext.AppendQuote(b, *t.at) // a path that is no UTF-8 gets U+FFFD, and is then not found
		}
	}
	if n.Replied {
		b = append(b, `,"replied":true`...)
	}
	if n.Client.Known() {
		b = append(strconv.AppendInt(append(b, `,"pid":`...), int64(n.Client.PID), 10), `,"start":`...)
		b = strconv.AppendUint(b, n.Client.Start, 10)
	}
	return append(b, '}')
}

// Decode reads a note. Members of a newer build are passed over.
func Decode(b []byte) (Note, error) {
	var n Note
	dec := jsontext.NewDecoder(bytes.NewReader(b), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	tok, err := dec.ReadToken()
	if err != nil || tok.Kind() != '{' {
		return n, fmt.Errorf("not a note: %.80q", b)
	}
	texts := map[string]*string{}
	for _, t := range n.texts() {
		texts[t.name] = t.at
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return n, err
		}
		key := name.String()
		if dec.PeekKind() == '{' || dec.PeekKind() == '[' {
			if err := dec.SkipValue(); err != nil {
				return n, err
			}
			continue
		}
		val, err := dec.ReadToken()
		if err != nil {
			return n, err
		}
		switch to, isText := texts[key]; {
		case isText && val.Kind() == '"':
			*to = val.String()
		case key == "ns" && val.Kind() == '0':
			ns, _ := val.Int() // out of range: the nearest there is
			n.Time = time.Unix(0, ns).UTC()
		case key == "replied":
			n.Replied = val.Kind() == 't'
		case key == "pid" && val.Kind() == '0':
			pid, _ := val.Int()
			n.Client.PID = int(pid)
		case key == "start" && val.Kind() == '0':
			n.Client.Start, _ = val.Uint()
		}
	}
	if n.Event == "" || n.Session == "" {
		return n, fmt.Errorf("not a note: %.80q", b)
	}
	return n, nil
}
