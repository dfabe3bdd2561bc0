package transcript

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"ways/hooks/record"
	"ways/hooks/transcript"
)

// discover makes every transcript of the session known: the main one, and the
// subagents' in the directory beside it.
func (st *state) discover() {
	if st.Transcript == "" {
		return
	}
	if st.Files[st.Transcript] == nil {
		st.follow(st.Transcript, "")
	}
	dir := filepath.Join(strings.TrimSuffix(st.Transcript, ".jsonl"), "subagents")
	st.discoverIn(dir, 2)
}

func (st *state) discoverIn(dir string, depth int) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // most sessions have none
	}
	for _, e := range entries {
		name := e.Name()
		switch {
		case e.IsDir() && depth > 1:
			st.discoverIn(filepath.Join(dir, name), depth-1)
		case strings.HasPrefix(name, "agent-") && strings.HasSuffix(name, ".jsonl"):
			path := filepath.Join(dir, name)
			if st.Files[path] == nil {
				st.follow(path, strings.TrimSuffix(strings.TrimPrefix(name, "agent-"), ".jsonl"))
			}
		}
	}
}

// follow makes one transcript known. An agent has one: of another path that leads
// to it nothing is read as long as the first one is there, and when the session's
// own has moved (it was taken up again from another directory), its new place goes
// on where the old one was.
func (st *state) follow(path, agent string) {
	n := &file{File: transcript.File{Path: path}, Agent: agent}
	for _, old := range st.Files {
		if old.Agent != agent {
			continue
		}
		if agent != "" && exists(old.Path) || !exists(path) {
			return
		}
		n.Prompt, n.Mode, n.Calls, n.Queue = old.Prompt, old.Mode, old.Calls, old.Queue
		n.Last, n.Recent, n.Again = old.Last, old.Recent, true
		for _, it := range slices.Concat(st.Items, n.Queue) {
			if it.Path == old.Path {
				it.Path = path
			}
		}
		delete(st.Files, old.Path)
		break
	}
	if path != "" && len(st.Files) < maxAgents {
		st.Files[path] = n
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// line takes one line of a transcript.
func (st *state) line(f *file, l transcript.Line, again bool, now time.Time) {
	if l.Permission != "" {
		f.Mode = l.Permission
	}
	agentID := f.Agent
	if agentID == "" && l.Sidechain {
		if agentID = l.AgentID; agentID == "" {
			agentID = "sidechain" // clients before 2.1 wrote subagents into the main transcript, some without a name
		}
	}
	if l.AgentType != "" && agentID != "" {
		if a := st.agent(agentID); a.Type == "" {
			a.Type = l.AgentType
		}
	}
	if l.PromptID != "" && l.PromptID != f.Prompt {
		f.Prompt = l.PromptID
		if !again && f.Agent == "" && agentID == "" && !answers(l) {
			st.end("", end{Except: l.PromptID, Time: l.Time}, now)
		}
	}
	if !again && l.Time.After(st.Last) && !l.Time.After(now.Add(time.Minute)) {
		st.Last = l.Time
	}
	when := l.Time
	if when.IsZero() {
		when = f.Last
	}
	if l.Type == "assistant" && !again {
		st.spoke(f.Path, agentID, f.Prompt, l, now)
	}
	for _, it := range l.Items {
		n := &item{
			Kind: it.Kind, Path: f.Path, At: l.At, Size: l.Size, Block: it.Block, UUID: l.UUID, Agent: agentID,
			Prompt: f.Prompt, Time: when, ID: it.ID, Message: l.MessageID,
		}
		if again {
			st.relocate(f, n, it)
			continue
		}
		switch it.Kind {
		case transcript.Text:
			n.Section, n.Hash = record.AssistantResponse, hash(it.Text)
			n.ToolStop = l.StopReason == "tool_use"
			n.Interrupted = l.Aborted
		case transcript.Call:
			n.Section, n.Name = record.ToolCall, string(it.Name)
			f.Calls = push(f.Calls, maxCalls, call{it.ID, n.Name, l.MessageID})
			for _, o := range st.Items {
				if o.Kind == transcript.Text && o.Message == l.MessageID && o.Agent == agentID {
					o.ToolStop = true
				}
			}
		case transcript.Result:
			n.Section = record.ToolResult
			f.answered(n)
			n.Status = statusOf(it, l, f.Mode)
		case transcript.Queued:
			n.Section, n.Hash = record.QueuedMessage, hash(it.Text)
			if it.Origin != "" && it.Origin != "human" {
				n.Section = record.UserPrompt
			}
			f.unqueue(it.Text)
		case transcript.Prompt:
			if clientsOwn(it.Text) {
				continue
			}
			n.Section, n.Hash, n.Waited = record.UserPrompt, hash(it.Text), it.Waited
		case transcript.Enqueued:
			n.Section, n.Hash, n.Waiting = record.QueuedMessage, hash(it.Text), true
			if it.Text.Kind() == '"' && record.Origin(it.Text) == "human" {
				f.Queue = push(f.Queue, maxTexts, n)
			}
			continue
		case transcript.Dequeued, transcript.Dropped:
			f.unqueue(it.Text)
			continue
		case transcript.Interrupted:
			st.interrupted(f, agentID, it, l, now)
			continue
		}
		st.show(n, now)
	}
}

// answers reports whether a line brings a tool's result: it can come in a later
// turn than its call's.
func answers(l transcript.Line) bool {
	return slices.ContainsFunc(l.Items, func(it transcript.Item) bool { return it.Kind == transcript.Result })
}

// relocate finds an item that is undecided in a file that was rewritten.
func (st *state) relocate(f *file, n *item, it transcript.Item) {
	if n.UUID == "" && it.Text != nil {
		n.Hash = hash(it.Text)
	}
	for _, list := range [][]*item{st.Items, f.Queue} {
		for _, o := range list {
			if o.Path == n.Path && o.Kind == n.Kind && o.ref() == n.ref() {
				o.At, o.Size = n.At, n.Size
			}
		}
	}
}

// answered takes a result's call off the list, and what is known of it.
func (f *file) answered(n *item) {
	i := slices.IndexFunc(f.Calls, func(c call) bool { return c.ID == n.ID })
	if i >= 0 {
		n.Name, n.Message = f.Calls[i].Name, f.Calls[i].Message
		f.Calls = slices.Delete(f.Calls, i, i+1)
	}
}

// unqueue takes a message off the queue: the one of that text, or the first when
// the line does not say which.
func (f *file) unqueue(text jsontext.Value) {
	if text.Kind() != '"' {
		if len(f.Queue) > 0 {
			f.Queue = f.Queue[1:]
		}
		return
	}
	h := hash(text)
	if i := slices.IndexFunc(f.Queue, func(q *item) bool { return q.Hash == h }); i >= 0 {
		f.Queue = slices.Delete(f.Queue, i, i+1)
	}
}

// clientsOwn reports whether a prompt is a command to the client itself, for
// which no hook is run: /compact, or a shell command.
func clientsOwn(text jsontext.Value) bool {
	start := unquote(append(slices.Clone(text[:min(len(text)-1, 40)]), '"'))
	for _, mark := range []string{"<command-", "<local-command-", "<bash-"} {
		if strings.HasPrefix(strings.TrimSpace(start), mark) {
			return true
		}
	}
	return false
}

// statusOf is what became of a call of which no hook told.
func statusOf(it transcript.Item, l transcript.Line, mode string) string {
	if it.Output.Kind() == '{' && !it.Failed {
		if strings.Contains(string(it.Output[:min(len(it.Output), 1<<20)]), `"interrupted":true`) {
			return "interrupted"
		}
	}
	if !it.Failed {
		return "ok"
	}
	if said := unquoteShort(it.Output); said == "User rejected tool use" {
		// The client says the same when a person denied the call and when he
		// stopped it while it ran.
		switch {
		case l.Decision == "reject" || l.Decision == "deny":
			return "rejected"
		case l.Decision != "" || mode == "bypassPermissions":
			return "interrupted"
		}
		return "rejected"
	}
	text := transcript.Beginning(it.Content, 600)
	switch {
	case strings.Contains(text, "<tool_use_error>"):
		return "rejected"
	case strings.HasPrefix(text, "The user doesn't want to"):
		return "rejected"
	case strings.HasPrefix(text, "[Request interrupted by user"), strings.HasPrefix(text, "Interrupted by user"):
		return "interrupted"
	case strings.Contains(text, "has been denied"), strings.Contains(text, "hook error"), strings.Contains(text, "denied this tool"), strings.Contains(text, "was blocked"):
		return "rejected"
	}
	return "error"
}

func unquoteShort(val jsontext.Value) string {
	if val.Kind() != '"' || len(val) > 256 {
		return ""
	}
	return unquote(val)
}

// spoke notes that an agent said something: its earlier calls and the texts in
// front of them are over, since it was given their results.
func (st *state) spoke(path, agentID, prompt string, l transcript.Line, now time.Time) {
	for _, o := range st.Items {
		if o.Path != path || o.Agent != agentID || o.Message == l.MessageID {
			continue
		}
		switch {
		case o.Kind != transcript.Text && o.Kind != transcript.Queued:
			o.close(now)
		case o.Kind == transcript.Text && (o.Prompt == prompt || o.Prompt == ""):
			o.Followed = true
			if o.ToolStop {
				o.close(now)
			}
		}
	}
}

// interrupted takes the user's word that the turn is over.
func (st *state) interrupted(f *file, agentID string, it transcript.Item, l transcript.Line, now time.Time) {
	if !it.ForTool {
		for _, o := range st.Items {
			if o.Kind == transcript.Text && o.Agent == agentID && o.Path == f.Path && !o.ToolStop &&
				(o.UUID == l.Parent || o.Message == l.InterruptedMessage && l.InterruptedMessage != "") {
				o.Interrupted = true
			}
		}
	}
	st.end(agentID, end{Prompt: f.Prompt, Time: l.Time}, now)
}

// show takes an item that is new, unless a hook has told of it, or we have.
func (st *state) show(n *item, now time.Time) {
	if n.Time.Before(st.First) {
		return
	}
	if take(&st.Emitted, key(n.Section, n.ref())) {
		return
	}
	switch n.Kind {
	case transcript.Call:
		if take(&st.Calls, n.ID) {
			return
		}
	case transcript.Result:
		if take(&st.Results, n.ID) {
			return
		}
	case transcript.Prompt:
		if st.takeText(n) || slices.Contains(st.Prompts, n.Prompt) {
			return
		}
	case transcript.Queued:
		if st.takeText(n) {
			return
		}
	}
	for _, e := range st.agent(n.Agent).Ends {
		if e.over(n) {
			n.close(now)
		}
	}
	if st.Ended {
		n.close(now)
	}
	st.Items = append(st.Items, n)
}

// tells reports whether a hook's word of a prompt or a queued message is of an
// item.
func (t text) tells(it *item) bool {
	if t.Hash != it.Hash {
		return false
	}
	if it.Kind == transcript.Prompt && it.Waited {
		return true // under which turn the hook ran is not said
	}
	return (it.Kind == transcript.Prompt || it.Kind == transcript.Queued) && t.Section == it.Section.String() &&
		t.Typed == (it.Kind == transcript.Prompt) && (t.Prompt == it.Prompt || t.Prompt == "" || it.Prompt == "")
}

// takeText finds the hook's word of a prompt or a queued message.
func (st *state) takeText(n *item) bool {
	i := slices.IndexFunc(st.Texts, func(t text) bool { return t.tells(n) })
	if i < 0 {
		return false
	}
	st.Texts = slices.Delete(st.Texts, i, i+1)
	return true
}

func (it *item) close(now time.Time) {
	if it.Closed.IsZero() {
		it.Closed = now
	}
}

// end notes that a turn of an agent ended.
func (st *state) end(agentID string, e end, now time.Time) {
	a := st.agent(agentID)
	a.Ends = push(a.Ends, maxEnds, e)
	for _, it := range st.Items {
		if it.Agent == agentID && e.over(it) {
			it.close(now)
		}
	}
}
