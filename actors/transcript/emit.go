package transcript

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"ways/hooks/index"
	"ways/hooks/record"
	"ways/hooks/spool"
	"ways/hooks/transcript"
)

const (
	// chunk and chunkBytes bound one append.
	chunk      = 64
	chunkBytes = 4 << 20
	// lockWait is how long an append waits for the lock; then it is tried again.
	lockWait = time.Second
)

// errMoved is the error of an item whose line is not where it was.
var errMoved = errors.New("the transcript no longer holds the line where it was")

// entry is an item's record, or one of ours that stands for what nobody told.
type entry struct {
	key   string
	item  *item
	draft record.Draft
}

// lineOf reads an item's line again.
func (a *Actor) lineOf(it *item) (transcript.Line, error) {
	l, err := a.reader.At(it.Path, it.At, it.Size)
	if err == nil && l.UUID != it.UUID {
		err = errMoved
	}
	return l, err
}

// textOf reads an item's text again.
func (a *Actor) textOf(it *item) (jsontext.Value, bool) {
	l, err := a.lineOf(it)
	if err != nil {
		return nil, false
	}
	for _, x := range l.Items {
		if x.Kind == it.Kind && x.Block == it.Block {
			return x.Text, true
		}
	}
	return nil, false
}

// entryOf makes an item's record.
func (a *Actor) entryOf(st *state, it *item) (record.Draft, error) {
	l, err := a.lineOf(it)
	if err != nil {
		return record.Draft{}, err
	}
	i := slices.IndexFunc(l.Items, func(x transcript.Item) bool { return x.Kind == it.Kind && x.Block == it.Block })
	if i < 0 {
		return record.Draft{}, errMoved
	}
	e := record.Entry{
		Section: it.Section, Time: it.Time, Session: a.Session, AgentID: it.Agent, Project: st.Project,
		Cwd: l.Cwd, PromptID: it.Prompt, Ref: it.ref(), Repaired: l.Repaired, Replayed: st.history,
		Data: Data(it.Section, l, l.Items[i], Context{
			Name: jsontext.Value(it.Name), Status: it.Status, Interrupted: it.Interrupted,
			Final:       !it.ToolStop && !it.Followed && !it.Interrupted,
			Undelivered: it.Waiting,
		}),
	}
	if e.Cwd == "" {
		e.Cwd = st.Cwd
	}
	if it.Agent != "" {
		e.AgentType = st.agent(it.Agent).Type
	}
	return record.FromEntry(e), nil
}

// Context is what an item's record says that its line alone does not.
type Context struct {
	// Name is the tool of a result, as raw JSON.
	Name   jsontext.Value
	Status string
	// Final: the text ended its turn. Interrupted: the user stopped it.
	Final, Interrupted bool
	// Undelivered: a message that the session ended before it was delivered.
	Undelivered bool
}

// Data is the data of an item's record.
func Data(section record.Section, l transcript.Line, it transcript.Item, c Context) []record.Field {
	switch section {
	case record.AssistantResponse:
		fields := []record.Field{record.Raw("text", it.Text), record.Bool("final", c.Final), record.Bool("interrupted", c.Interrupted)}
		if l.APIError || l.Model == "<synthetic>" && !c.Interrupted {
			fields = append(fields, record.Bool("synthetic", true)) // the client wrote it, and no model
		}
		return fields
	case record.ToolCall:
		return []record.Field{record.Text("id", it.ID), record.Raw("name", it.Name), record.Raw("input", it.Input)}
	case record.ToolResult:
		fields := []record.Field{record.Text("id", it.ID), record.Raw("name", orNil(c.Name)), record.Text("status", c.Status)}
		if c.Status == "ok" {
			output := it.Output
			if output == nil {
				output = it.Content
			}
			return append(fields, record.Raw("output", output))
		}
		return append(fields, record.Raw("error", it.Content))
	case record.QueuedMessage:
		fields := []record.Field{record.Raw("text", it.Text)}
		if c.Undelivered {
			fields = append(fields, record.Bool("delivered", false))
		}
		return fields
	case record.UserPrompt:
		return []record.Field{record.Raw("prompt", it.Text), record.Text("origin", Origin(it))}
	}
	return nil
}

// Origin is who wrote a prompt, in the words of a record.
func Origin(it transcript.Item) string {
	if it.Origin == "" || it.Origin == "human" {
		return record.Origin(it.Text)
	}
	if it.Origin == "task-notification" {
		return "task_notification"
	}
	return it.Origin
}

func orNil(v jsontext.Value) jsontext.Value {
	if len(v) == 0 {
		return nil
	}
	return v
}

// inferred is a record for what nobody told: that a subagent stopped, or the
// session ended.
func (a *Actor) inferred(st *state, section record.Section, ref, agentID, agentType string, at time.Time, data ...record.Field) entry {
	data = append(data, record.Bool("inferred", true))
	return entry{key: key(section, ref), draft: record.FromEntry(record.Entry{
		Section: section, Time: at, Session: a.Session, AgentID: agentID, AgentType: agentType,
		Project: st.Project, Cwd: st.Cwd, Ref: ref, Data: data,
	})}
}

// stops are the records of subagents whose end nobody told.
func (a *Actor) stops(st *state, h *index.Header) []entry {
	var list []entry
	for id, ag := range st.Agents {
		if ag.Started.IsZero() || ag.Stopped {
			continue
		}
		ag.Stopped = true
		if h.Selects(record.Subagent, st.Last) {
			list = append(list, a.inferred(st, record.Subagent, "subagent:"+id+":"+strconv.FormatInt(ag.Started.UnixNano(), 10), id, ag.Type, st.Last,
				record.Text("phase", "stop"), record.Text("id", id), record.Text("type", ag.Type)))
		}
	}
	slices.SortFunc(list, func(a, b entry) int {
		if a.key < b.key {
			return -1
		}
		return 1
	})
	return list
}

// end is the record of a session's end that nobody told.
func (a *Actor) end(st *state, h *index.Header, l lost) []entry {
	if !h.Selects(record.SessionEnd, l.At) {
		return nil
	}
	return []entry{a.inferred(st, record.SessionEnd, "session_end:"+strconv.FormatInt(l.Began.UnixNano(), 10), "", "", l.At,
		record.Text("reason", "unknown"))}
}

// append puts entries into the spool, in order, each once: those that are there
// already are passed over. It returns how many it is done with; an error says
// that the rest is to be tried again.
func (a *Actor) append(st *state, h *index.Header, list []entry) (int, error) {
	done := 0
	for done < len(list) {
		n, size := 0, 0
		var drafts []spool.Draft
		for _, e := range list[done:] {
			if n == chunk || n > 0 && size+e.draft.Size() > chunkBytes {
				break
			}
			n++
			if take(&st.Emitted, e.key) {
				continue
			}
			size += e.draft.Size()
			drafts = append(drafts, e.draft)
			a.sent = push(a.sent, maxFacts, e.key)
		}
		if len(drafts) > 0 {
			_, err := spool.Append(a.Dir, spool.Request{
				Direct: true, Generation: h.Generation, Now: time.Now(), Wait: lockWait,
				Build: func(bool) []spool.Draft { return drafts },
			})
			switch {
			case errors.Is(err, spool.ErrUnwritten):
				// Counted in the spool, like a hook's: a gap record tells of it.
				a.Log.Error().Err(err).Int("records", len(drafts)).Msg("what a transcript showed was not written")
			case err != nil:
				return done, fmt.Errorf("append what a transcript shows: %w", err)
			}
			a.Spool.Appended()
		}
		done += n
	}
	return done, nil
}
