package transcript_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	actor "ways/actors/transcript"
	"ways/hooks/client"
	"ways/hooks/index"
	"ways/hooks/note"
	"ways/hooks/payload"
	"ways/hooks/record"
	"ways/hooks/spool"
)

// fixtures are the recorded sessions.
const fixtures = "../../testdata/claude-code"

// rig is a session with the actor and without a dispatcher.
type rig struct {
	t      testing.TB
	dir    string
	path   string // of the transcript
	header index.Header
	client client.Client
	now    time.Time

	mu    sync.Mutex
	ended int
	kept  uint64
	stop  func()
	actor *actor.Actor
}

func (r *rig) Appended() {}

func (r *rig) Ended() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended++
}

func (r *rig) Keep(segment uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = segment
}

// newRig makes a session in which some rule selects these sections; all when
// there are none.
func newRig(t testing.TB, sections ...record.Section) *rig {
	t.Helper()
	if len(sections) == 0 {
		sections = record.Sections()
	}
	home := t.TempDir()
	r := &rig{
		t: t, dir: filepath.Join(home, "sessions", "s"), path: filepath.Join(home, "s.jsonl"),
		header: index.Header{Async: record.SetOf(sections...), Generation: 7},
		client: client.Of(os.Getpid()), now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
	}
	return r
}

// start makes the actor run.
func (r *rig) start() {
	r.t.Helper()
	a := actor.New(actor.Options{
		Dir: r.dir, Session: "s", Spool: r, Log: zerolog.Nop(),
		Index: func(string) (index.Header, error) { return r.header, nil },
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Serve(ctx) }()
	r.actor = a
	r.stop = func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			r.t.Errorf("the actor ended with %v", err)
		}
		r.actor = nil
	}
}

// rest waits until the actor has nothing to add.
func (r *rig) rest() {
	r.t.Helper()
	for range 600 {
		if r.actor == nil {
			r.start()
		}
		if ok, err := r.actor.AtRest(context.Background()); ok {
			return
		} else if err != nil {
			r.t.Fatal(err)
		}
		<-time.After(100 * time.Millisecond) // of the bubble's clock
	}
	r.t.Fatal("the actor does not come to rest")
}

// hook fires an event, as the front does, at the rig's time, which it moves on.
func (r *rig) hook(event string, fields map[string]any) {
	r.t.Helper()
	all := map[string]any{"hook_event_name": event, "session_id": "s", "transcript_path": r.path, "cwd": "/home/dev/proj"}
	for k, v := range fields {
		all[k] = v
	}
	raw, err := json.Marshal(all)
	if err != nil {
		r.t.Fatal(err)
	}
	r.fire(raw)
}

func (r *rig) fire(raw []byte) {
	r.t.Helper()
	ev, err := payload.Parse(raw)
	if err != nil {
		r.t.Fatalf("%v: %s", err, raw)
	}
	ev.Session = "s"
	r.now = r.now.Add(time.Millisecond)
	now := r.now
	req := spool.Request{Now: now, Wait: time.Second, Generation: 7, Build: func(inTurn bool) []spool.Draft {
		var list []spool.Draft
		for _, d := range record.FromEvent(ev, record.Context{Time: now, Project: "/home/dev/proj", InTurn: inTurn}, r.header.Async) {
			list = append(list, d)
		}
		return list
	}}
	if ev.Name == "UserPromptSubmit" {
		for _, c := range ev.PromptID {
			req.Turn = req.Turn*31 + uint64(c)
		}
	}
	if note.Wanted(ev.Name) {
		n := note.Of(ev, now, "/home/dev/proj", r.client)
		n.Transcript = r.path
		req.Note = n.Encode()
	}
	if _, err := spool.Append(r.dir, req); err != nil {
		r.t.Fatal(err)
	}
	if r.actor != nil {
		r.actor.Appended()
	}
}

// line is one line of a transcript.
type line map[string]any

// write appends lines to the transcript, each at the rig's time, which it moves on.
func (r *rig) write(lines ...line) { r.t.Helper(); r.writeTo(r.path, lines...) }

func (r *rig) writeTo(path string, lines ...line) {
	r.t.Helper()
	var all []byte
	for _, l := range lines {
		r.now = r.now.Add(time.Millisecond)
		if _, ok := l["timestamp"]; !ok {
			l["timestamp"] = r.now.Format(time.RFC3339Nano)
		}
		raw, err := json.Marshal(l)
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(append(all, raw...), '\n')
	}
	r.raw(path, all)
}

func (r *rig) raw(path string, b []byte) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Close()); err != nil {
		r.t.Fatal(err)
	}
}

// says is an assistant's line: a message's one block.
func says(message, uuid, stop string, block map[string]any) line {
	return line{"type": "assistant", "uuid": uuid, "message": map[string]any{
		"id": message, "role": "assistant", "stop_reason": stop, "content": []any{block},
	}}
}

func textBlock(s string) map[string]any { return map[string]any{"type": "text", "text": s} }

func callBlock(id string) map[string]any {
	return map[string]any{"type": "tool_use", "id": id, "name": "Bash", "input": map[string]any{"command": id}}
}

// prompted is a user's prompt.
func prompted(id, text string) line {
	return line{
		"type": "user", "uuid": "u-" + id, "promptId": id, "promptSource": "typed", "origin": map[string]any{"kind": "human"},
		"message": map[string]any{"role": "user", "content": text},
	}
}

// answered is a tool's result.
func answered(uuid, prompt, id, content string, failed bool, result any) line {
	return line{
		"type": "user", "uuid": uuid, "promptId": prompt, "toolUseResult": result,
		"message": map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": id, "content": content, "is_error": failed}}},
	}
}

// told is a record as the tests read it.
type told struct {
	Section, Event, Source, TS, Ref string
	Seq                             int
	AgentID                         string `json:"agent_id"`
	AgentType                       string `json:"agent_type"`
	PromptID                        string `json:"prompt_id"`
	Cwd                             string
	Data                            json.RawMessage
	raw                             string
}

// records reads the spool. Numbers are 1, 2, 3, ...
func (r *rig) records() []told {
	r.t.Helper()
	rd := spool.NewReader(r.dir, spool.Position{})
	defer rd.Close()
	var list []told
	for {
		f, err := rd.Next()
		if errors.Is(err, spool.ErrWait) {
			return list
		}
		if err != nil {
			r.t.Fatal(err)
		}
		var rec told
		if err := json.Unmarshal(f.JSON, &rec); err != nil {
			r.t.Fatalf("%v: %s", err, f.JSON)
		}
		rec.raw = string(f.JSON)
		list = append(list, rec)
		if rec.Seq != len(list) {
			r.t.Errorf("record %d has number %d", len(list), rec.Seq)
		}
	}
}

// shown is what came from transcripts: "agent section data", in order.
func (r *rig) shown() []string {
	r.t.Helper()
	var list []string
	for _, rec := range r.records() {
		if rec.Source == record.FromTranscript {
			list = append(list, fmt.Sprintf("%s %s %s", rec.AgentID, rec.Section, rec.Data))
		}
	}
	return list
}

func (r *rig) wantShown(want ...string) {
	r.t.Helper()
	if got := r.shown(); !slices.Equal(got, want) {
		r.t.Errorf("transcripts told\n%s\nwant\n%s", lines(got), lines(want))
	}
}

func lines(list []string) string {
	out := ""
	for _, s := range list {
		out += "  " + s + "\n"
	}
	return out
}
