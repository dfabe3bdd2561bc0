package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ways/hooks/client"
	"ways/hooks/dirs"
	"ways/hooks/record"
	"ways/hooks/spool"
	"ways/hooks/transcript"
)

// stateName is the file in a session's directory that says how far its
// transcripts were read.
const stateName = "transcripts.json"

// stateVersion is the form of the file. Another one is not read: the session then
// goes on from what its next hook says.
const stateVersion = 1

// Bounds of what is remembered of hooks whose counterpart in a transcript was not
// met: a call whose transcript is missing, say. The oldest goes first.
const (
	maxFacts  = 1024
	maxTexts  = 128
	maxEnds   = 32
	maxCalls  = 4096
	maxAgents = 1024
)

// state is what the actor knows. All of it is one snapshot: how far the spool and
// the transcripts were read, and what of them is undecided. It can be older than
// what was appended, never newer: see Actor.
type state struct {
	V int `json:"v"`
	// Pos and Seq are how far the spool was read.
	Pos spool.Position `json:"pos"`
	Seq uint64         `json:"seq"`
	// First is when the session's first hook was seen: what a transcript holds of
	// an earlier time was said to somebody else, or to nobody.
	First time.Time `json:"first,omitzero"`
	// Began is when it began, or was taken up again, last. Last is the newest time
	// of anything.
	Began time.Time `json:"began,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Ended: the session's end was told, or inferred.
	Ended bool `json:"ended,omitempty"`
	// EndedAt is when that was noticed.
	EndedAt time.Time `json:"ended_at,omitzero"`
	// Finished: what was left then was appended.
	Finished bool `json:"finished,omitempty"`

	// Lost is a life of the session that ended without a word, and was taken up
	// again.
	Lost *lost `json:"lost,omitempty"`

	Transcript string        `json:"transcript,omitempty"`
	Project    string        `json:"project,omitempty"`
	Cwd        string        `json:"cwd,omitempty"`
	Client     client.Client `json:"client"`
	// Heard is how many notes named the client.
	Heard int `json:"heard,omitempty"`

	Files  map[string]*file  `json:"files,omitempty"`
	Agents map[string]*agent `json:"agents,omitempty"`
	// Items are what transcripts showed and no hook did, yet.
	Items []*item `json:"items,omitempty"`

	// Calls and Results are the ids of which hooks told and transcripts did not.
	Calls   []string `json:"calls,omitempty"`
	Results []string `json:"results,omitempty"`
	// Texts are messages of which hooks told and transcripts did not.
	Texts []text `json:"texts,omitempty"`
	// Prompts are the last prompts that hooks told of.
	Prompts []string `json:"prompts,omitempty"`
	// history: all of it is of a past session, and told again.
	history bool
	// Emitted are the refs of records of ours that were found in the spool before
	// the transcript was read that far again.
	Emitted []string `json:"emitted,omitempty"`
}

// lost is when a session was last heard of, and when it had begun.
type lost struct {
	At    time.Time `json:"at"`
	Began time.Time `json:"began"`
}

// file is one transcript that is followed.
type file struct {
	transcript.File
	// Agent is the id of the agent it belongs to; empty for the main agent.
	Agent string `json:"agent,omitempty"`
	// Prompt is the turn that its last lines belong to.
	Prompt string `json:"prompt,omitempty"`
	// Mode is the permission mode.
	Mode string `json:"mode,omitempty"`
	// Calls are the calls without a result.
	Calls []call `json:"calls,omitempty"`
	// Queue are the messages that wait in the client.
	Queue []*item `json:"queue,omitempty"`
}

type call struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Message string `json:"message,omitempty"`
}

// agent is the main agent or a subagent.
type agent struct {
	Type string `json:"type,omitempty"`
	// Started is when a hook told that it began; Stopped: one told of its end.
	Started time.Time `json:"started,omitzero"`
	Stopped bool      `json:"stopped,omitempty"`
	// Replies are last messages of turns of which hooks told and which no
	// transcript showed yet.
	Replies []reply `json:"replies,omitempty"`
	Ends    []end   `json:"ends,omitempty"`
	// Missed counts the replies given up.
	Missed int `json:"missed,omitempty"`
}

// reply is a turn's last message as a hook told it.
type reply struct {
	Hash   string    `json:"hash"`
	Prompt string    `json:"prompt,omitempty"`
	Time   time.Time `json:"time"`
	// Since is when it was noticed.
	Since time.Time `json:"since"`
}

// end is the end of a turn: of the one that Prompt began, or, when that is empty,
// of all but the one that Except began.
type end struct {
	Prompt string    `json:"prompt,omitempty"`
	Except string    `json:"except,omitempty"`
	Time   time.Time `json:"time"`
}

// over reports whether an item belongs to a turn that ended.
func (e end) over(it *item) bool {
	if it.Time.After(e.Time) {
		return false
	}
	if e.Prompt != "" {
		return it.Prompt == "" || it.Prompt == e.Prompt
	}
	return e.Except == "" || it.Prompt != e.Except
}

type text struct {
	Hash    string `json:"hash"`
	Prompt  string `json:"prompt,omitempty"`
	Section string `json:"section"`
	// Typed: a prompt that a person began a turn with.
	Typed bool `json:"typed,omitempty"`
}

// item is something that a transcript shows and of which no hook has told. It
// says where it is, not what it is: the line is read again when its time comes.
type item struct {
	Section record.Section  `json:"section"`
	Kind    transcript.Kind `json:"kind"`
	Path    string          `json:"path"`
	At      int64           `json:"at"`
	Size    int64           `json:"size"`
	Block   int             `json:"block,omitempty"`
	UUID    string          `json:"uuid,omitempty"`
	Agent   string          `json:"agent,omitempty"`
	Prompt  string          `json:"prompt,omitempty"`
	Time    time.Time       `json:"time"`
	// ID is a tool call's, Name its tool, as raw JSON.
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
	// Message is the message a text or call belongs to, or the one that a result's
	// call belongs to.
	Message string `json:"message,omitempty"`
	// Hash is a text's.
	Hash string `json:"hash,omitempty"`
	// Status is a result's.
	Status string `json:"status,omitempty"`
	// ToolStop: the message goes on with tool calls.
	ToolStop bool `json:"tool_stop,omitempty"`
	// Followed: the agent has said something after it in the same turn.
	Followed bool `json:"followed,omitempty"`
	// Interrupted: the user stopped it.
	Interrupted bool `json:"interrupted,omitempty"`
	// Waited: a prompt that waited in the queue.
	Waited bool `json:"waited,omitempty"`
	// Waiting: a queued message that was never delivered.
	Waiting bool `json:"waiting,omitempty"`
	// Closed is when it was noticed that no hook will tell of it any more, but for
	// one that is late. Sure: not even such a one.
	Closed time.Time `json:"closed,omitzero"`
	Sure   bool      `json:"sure,omitempty"`
}

// ref names an item for good.
func (it *item) ref() string {
	if it.UUID == "" {
		// A line without an id: its time and its text tell it from others.
		return fmt.Sprintf("%s:%d:%.16s", it.Kind, it.Time.UnixNano(), it.Hash)
	}
	return fmt.Sprintf("%s:%d", it.UUID, it.Block)
}

// key is what a ref is remembered under: a line can lead to records of several
// sections.
func key(section record.Section, ref string) string { return section.String() + " " + ref }

func newState() *state {
	return &state{V: stateVersion, Files: map[string]*file{}, Agents: map[string]*agent{}}
}

// load reads a session's state; a new one when there is none, or none of use.
func load(dir string) (*state, error) {
	raw, err := dirs.ReadFile(filepath.Join(dir, stateName))
	if errors.Is(err, fs.ErrNotExist) {
		return newState(), nil
	}
	if err != nil {
		return newState(), err
	}
	st := newState()
	if err := json.Unmarshal(raw, st); err != nil || st.V != stateVersion {
		return newState(), fmt.Errorf("%s is damaged or of another version", stateName)
	}
	for _, f := range st.Files {
		if f == nil {
			return newState(), fmt.Errorf("%s is damaged", stateName)
		}
	}
	for _, a := range st.Agents {
		if a == nil {
			return newState(), fmt.Errorf("%s is damaged", stateName)
		}
	}
	st.Items = slices.DeleteFunc(st.Items, func(it *item) bool { return it == nil })
	return st, nil
}

// save replaces the state's file and flushes it: the cursors of the session are
// flushed too, and must not be ahead of it after a power cut.
func (st *state) save(dir string) error {
	raw, err := json.Marshal(st)
	if err != nil {
		return fmt.Errorf("save the transcripts' state: %w", err)
	}
	path := filepath.Join(dir, stateName)
	dirs.Clear(path + ".tmp")
	f, err := dirs.Open(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return fmt.Errorf("save the transcripts' state: %w", err)
	}
	_, err = f.Write(raw)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err != nil {
		return fmt.Errorf("save the transcripts' state: %w", err)
	}
	return nil
}

// agent returns an agent, made when it is new.
func (st *state) agent(id string) *agent {
	a := st.Agents[id]
	if a == nil {
		a = &agent{}
		if len(st.Agents) < maxAgents {
			st.Agents[id] = a
		}
	}
	return a
}

// unfinishedAge is how long after its last sign of life a session's end is still
// looked for.
const unfinishedAge = 7 * 24 * time.Hour

// Unfinished reports whether a session's client is gone and its end was not told:
// a dispatcher that is started for it reads what the transcripts still hold, and
// tells it.
func Unfinished(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, stateName))
	if err != nil || time.Since(info.ModTime()) > unfinishedAge {
		return false // of most sessions this is all that is looked at
	}
	st, err := load(dir)
	return err == nil && !st.First.IsZero() && !st.Ended && st.gone()
}

// gone reports whether the session's client is dead. One that a single hook named
// may have been something between the client and the hook.
func (st *state) gone() bool { return st.Heard >= 2 && st.Client.Gone() }

// push appends to a list that forgets its oldest.
func push[T any](list []T, limit int, v T) []T {
	if len(list) >= limit {
		list = slices.Delete(list, 0, len(list)-limit+1)
	}
	return append(list, v)
}

// take removes one value from a list; false when it is not there.
func take(list *[]string, v string) bool {
	i := slices.Index(*list, v)
	if i < 0 {
		return false
	}
	*list = slices.Delete(*list, i, i+1)
	return true
}
