package transcript

import (
	"slices"
	"time"

	"ways/hooks/note"
	"ways/hooks/record"
	"ways/hooks/spool"
	"ways/hooks/transcript"
)

// frame takes a record or a note from the spool.
func (st *state) frame(f spool.Frame, now time.Time) {
	if f.Note {
		if n, err := note.Decode(f.JSON); err == nil {
			st.note(n, now)
		}
		return
	}
	st.Seq = f.Seq
	if fact, ok := readFact(f.JSON); ok && !fact.test {
		st.told(fact, now)
	}
}

// told takes what a record says.
func (st *state) told(f fact, now time.Time) {
	if f.source == record.FromTranscript {
		st.own(f)
		return
	}
	switch f.section {
	case record.ToolCall:
		if f.id != "" && !st.drop(transcript.Call, f.id) {
			st.Calls = push(st.Calls, maxFacts, f.id)
		}
	case record.ToolResult:
		if f.id != "" && !st.drop(transcript.Result, f.id) {
			st.Results = push(st.Results, maxFacts, f.id)
		}
	case record.AssistantResponse:
		if f.hasText {
			a := st.agent(f.agent)
			a.Replies = push(a.Replies, maxFacts, reply{Hash: f.hash, Prompt: f.prompt, Time: f.time, Since: now})
		}
	case record.QueuedMessage, record.UserPrompt:
		t := text{
			Hash: f.hash, Prompt: f.prompt, Section: f.section.String(),
			Typed: f.section == record.UserPrompt && (f.origin == "human" || f.origin == ""),
		}
		i := slices.IndexFunc(st.Items, t.tells)
		if i >= 0 {
			st.Items = slices.Delete(st.Items, i, i+1)
		} else if f.hasText {
			st.Texts = push(st.Texts, maxTexts, t)
		}
		st.prompt(f.prompt)
	}
}

// own takes back a record that an earlier life appended, or this one.
func (st *state) own(f fact) {
	if f.ref == "" {
		return
	}
	i := slices.IndexFunc(st.Items, func(it *item) bool { return it.Section == f.section && it.ref() == f.ref })
	if i >= 0 {
		st.Items = slices.Delete(st.Items, i, i+1)
		return
	}
	st.Emitted = push(st.Emitted, maxFacts, key(f.section, f.ref))
}

// drop takes an item away of which a hook told.
func (st *state) drop(kind transcript.Kind, id string) bool {
	i := slices.IndexFunc(st.Items, func(it *item) bool { return it.Kind == kind && it.ID == id })
	if i < 0 {
		return false
	}
	st.Items = slices.Delete(st.Items, i, i+1)
	return true
}

// prompt remembers a prompt that a hook told of.
func (st *state) prompt(id string) {
	if id == "" || slices.Contains(st.Prompts, id) {
		return
	}
	st.Prompts = push(st.Prompts, maxTexts, id)
	st.Items = slices.DeleteFunc(st.Items, func(it *item) bool { return it.Kind == transcript.Prompt && it.Prompt == id && !it.Waited })
}

// note takes what a hook says of turns and sessions.
func (st *state) note(n note.Note, now time.Time) {
	if n.Time.Before(st.Began) {
		return // read before
	}
	if st.First.IsZero() {
		st.First, st.Began = n.Time, n.Time
	}
	if n.Event == "SessionStart" && n.Source != "compact" && !st.Ended && st.Heard >= 2 && n.Client != st.Client && st.gone() {
		st.Lost = &lost{st.Last, st.Began}
		st.undelivered(now)
	}
	if n.Time.After(st.Last) {
		st.Last = n.Time
	}
	if n.Project != "" {
		st.Project = n.Project
	}
	if n.Cwd != "" {
		st.Cwd = n.Cwd
	}
	if n.Transcript != "" {
		st.Transcript = n.Transcript
	}
	if n.Client.Known() {
		if n.Client != st.Client {
			st.Client, st.Heard = n.Client, 0
		}
		st.Heard++
	}
	if n.AgentTranscript != "" && st.Files[n.AgentTranscript] == nil {
		st.follow(n.AgentTranscript, n.AgentID)
	}
	if n.AgentID != "" && n.AgentType != "" {
		st.agent(n.AgentID).Type = n.AgentType
	}
	switch n.Event {
	case "SessionStart":
		if n.Source != "compact" {
			st.endAll(n.Time, now)
			st.Ended, st.Finished, st.Began = false, false, n.Time
		}
	case "UserPromptSubmit":
		st.Ended, st.Finished = false, false
		st.prompt(n.PromptID)
		if n.PromptID != "" && n.AgentID == "" {
			st.end("", end{Except: n.PromptID, Time: n.Time}, now)
		}
	case "Stop":
		st.end(n.AgentID, end{Prompt: n.PromptID, Time: n.Time}, now)
	case "SubagentStart":
		a := st.agent(n.AgentID)
		a.Started, a.Stopped = n.Time, false
	case "SubagentStop":
		st.agent(n.AgentID).Stopped = true
		st.end(n.AgentID, end{Time: n.Time}, now)
	case "PreCompact":
		st.end(n.AgentID, end{Except: n.PromptID, Time: n.Time}, now)
	case "SessionEnd":
		st.endAll(n.Time, now)
		if !st.Ended {
			st.Ended, st.EndedAt, st.Finished = true, now, false
		}
	}
}

// endAll ends the turns of every agent.
func (st *state) endAll(at, now time.Time) {
	st.end("", end{Time: at}, now)
	for id := range st.Agents {
		if id != "" {
			st.end(id, end{Time: at}, now)
		}
	}
}
