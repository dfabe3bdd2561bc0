package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestKilledWhileFollowing kills the dispatcher at any instant while turns end
// that hooks tell only part of: what the transcript alone shows is in the log
// once, under one number, whatever was killed.
func TestKilledWhileFollowing(t *testing.T) {
	t.Parallel()
	s := newSite(t, "WAYS_DISPATCHER_IDLE=20s")
	path := filepath.Join(s.home, "t.jsonl")
	write := func(lines ...map[string]any) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lines {
			l["timestamp"], l["cwd"] = time.Now().UTC().Format(time.RFC3339Nano), "/"
			raw, err := json.Marshal(l)
			if err == nil {
				_, err = f.Write(append(raw, '\n'))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	says := func(message, uuid, stop string, block map[string]any) map[string]any {
		return map[string]any{"type": "assistant", "uuid": uuid, "message": map[string]any{"id": message, "stop_reason": stop, "content": []any{block}}}
	}
	fire := func(event string, fields map[string]any) {
		t.Helper()
		fields["hook_event_name"], fields["session_id"], fields["transcript_path"], fields["cwd"] = event, "s", path, "/"
		raw, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		s.fire(t, string(raw))
	}

	const turns = 60
	fire("SessionStart", map[string]any{"source": "startup"})
	last, kills := 0, 0
	for i := range turns {
		p := fmt.Sprint("p", i)
		write(map[string]any{"type": "user", "uuid": "u" + p, "promptId": p, "promptSource": "typed", "message": map[string]any{"content": "do " + p}})
		fire("UserPromptSubmit", map[string]any{"prompt_id": p, "prompt": "do " + p})
		write(
			says("m"+p, "a"+p, "tool_use", map[string]any{"type": "text", "text": "before " + p}),
			says("m"+p, "b"+p, "tool_use", map[string]any{"type": "tool_use", "id": "t" + p, "name": "X", "input": map[string]any{}}),
			map[string]any{"type": "user", "uuid": "r" + p, "promptId": p, "message": map[string]any{"content": []any{
				map[string]any{"type": "tool_result", "tool_use_id": "t" + p, "is_error": true, "content": "<tool_use_error>no</tool_use_error>"},
			}}},
			says("n"+p, "c"+p, "end_turn", map[string]any{"type": "text", "text": "done " + p}),
		)
		fire("Stop", map[string]any{"prompt_id": p, "last_assistant_message": "done " + p})
		after(t, time.Duration(rand.IntN(60))*time.Millisecond)
		if now := s.kill(t, "s", last); now != last {
			last = now
			kills++
		}
	}
	fire("SessionEnd", map[string]any{"reason": "other"})
	s.waitGone(t, "s")

	seqs := map[string]map[int]bool{}
	count := map[string]int{}
	for _, r := range lines(t, s.log) {
		var text string
		if err := json.Unmarshal(r.Data.Text, &text); err != nil && r.Data.Text != nil {
			t.Fatal(err)
		}
		what := r.Section + " " + r.Source + " " + r.Data.ID + text
		if seqs[what] == nil {
			seqs[what] = map[int]bool{}
			count[r.Section+" "+r.Source]++
		}
		seqs[what][r.Seq] = true
	}
	for what, n := range seqs {
		if len(n) != 1 && what != "user_prompt hook " {
			t.Errorf("%q has the numbers %v", what, n)
		}
	}
	for kind, n := range map[string]int{
		"assistant_response hook": turns, "assistant_response transcript": turns, "tool_call transcript": turns, "tool_result transcript": turns,
		"tool_call hook": 0, "tool_result hook": 0, "queued_message transcript": 0, "user_prompt transcript": 0, "session_end transcript": 0,
	} {
		if count[kind] != n {
			t.Errorf("%d of %s, want %d", count[kind], kind, n)
		}
	}
	if kills < turns/5 {
		t.Errorf("only %d kills", kills)
	}
}
