package note_test

import (
	"testing"
	"time"

	"ways/hooks/client"
	"ways/hooks/note"
	"ways/hooks/payload"
)

func TestNote(t *testing.T) {
	ev, err := payload.Parse([]byte(`{"session_id":"s","hook_event_name":"SubagentStop","transcript_path":"/t \"q\".jsonl",
		"agent_transcript_path":"/a.jsonl","agent_id":"a","agent_type":"general","prompt_id":"p","cwd":"/c","source":"startup",
		"last_assistant_message":"a private text"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := note.Note{
		Event: "SubagentStop", Time: time.Unix(12, 34).UTC(), Session: "s", Transcript: `/t "q".jsonl`, AgentTranscript: "/a.jsonl",
		AgentID: "a", AgentType: "general", PromptID: "p", Project: "/p", Cwd: "/c", Source: "startup", Replied: true,
		Client: client.Client{PID: 7, Start: 1 << 63},
	}
	n := note.Of(ev, want.Time, "/p", want.Client)
	if n != want {
		t.Errorf("got %+v, want %+v", n, want)
	}
	got, err := note.Decode(n.Encode())
	if err != nil || got != want {
		t.Errorf("%s: %+v, %v", n.Encode(), got, err)
	}
	bare := note.Note{Event: "Stop", Session: "s", Time: time.Unix(0, 0).UTC()}
	if got, err := note.Decode(bare.Encode()); err != nil || got != bare {
		t.Errorf("%s: %+v, %v", bare.Encode(), got, err)
	}
	if got, err := note.Decode([]byte(`{"event":"Stop","new":{"x":[1]},"session":"s","ns":0}`)); err != nil || got != bare {
		t.Errorf("a newer note: %+v, %v", got, err)
	}
	for _, bad := range []string{``, `[]`, `{"event":"Stop"}`, `{"session":"s"}`, `{"event":"Stop","session":`} {
		if n, err := note.Decode([]byte(bad)); err == nil {
			t.Errorf("%q is taken for %+v", bad, n)
		}
	}
}
