package transcript_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ways/actors/transcript"
	"ways/hooks/client"
	"ways/hooks/record"
	"ways/hooks/spool"
)

// in runs a test in a bubble: its clock stands still while there is work.
func in(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func (r *rig) begin(prompt string) {
	r.hook("SessionStart", map[string]any{"source": "startup"})
	r.prompt(prompt, "do it")
}

func (r *rig) prompt(id, text string) {
	r.write(prompted(id, text))
	r.hook("UserPromptSubmit", map[string]any{"prompt_id": id, "prompt": text})
}

func (r *rig) stopHook(prompt, text string) {
	r.hook("Stop", map[string]any{"prompt_id": prompt, "last_assistant_message": text})
}

// TestLateTranscript (hard case BR-11): the client writes the last message a
// second after its hook told of it.
func TestLateTranscript(t *testing.T) {
	in(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		defer func() { r.stop() }()
		r.begin("p")
		r.write(says("m1", "a1", "tool_use", textBlock("first I look")), says("m1", "a2", "tool_use", callBlock("t1")))
		r.hook("PreToolUse", map[string]any{"prompt_id": "p", "tool_use_id": "t1", "tool_name": "Bash", "tool_input": map[string]any{}})
		r.hook("PostToolUse", map[string]any{"prompt_id": "p", "tool_use_id": "t1", "tool_name": "Bash", "tool_response": "ok"})
		r.stopHook("p", "X")
		late := r.now.Add(-time.Millisecond / 2) // written before the hook ran, as far as its time says
		<-time.After(time.Second)
		l := says("m2", "a3", "end_turn", textBlock("X"))
		l["timestamp"] = late.Format(time.RFC3339Nano)
		r.write(answered("r1", "p", "t1", "ok", false, nil), l)
		r.rest()
		r.wantShown(`main assistant_response {"text":"first I look","final":false,"interrupted":false}`)
		<-time.After(time.Minute)
		r.rest()
		if n := len(r.shown()); n != 1 {
			t.Errorf("%d records when the transcript has caught up, want 1", n)
		}
	})
}

// TestNeverTwiceAcrossLives: killed at any moment, the actor appends what is
// missing once. A snapshot taken at each step is put back, as if all that came
// behind it had been lost with the process.
func TestNeverTwiceAcrossLives(t *testing.T) {
	in(t, func(t *testing.T) {
		r := newRig(t)
		state := filepath.Join(r.dir, "transcripts.json")
		var snapshots [][]byte
		keep := func() {
			if r.actor != nil {
				r.stop()
			}
			if raw, err := os.ReadFile(state); err == nil {
				snapshots = append(snapshots, raw)
			}
			r.start()
		}
		r.begin("p")
		keep()
		r.write(says("m1", "a1", "tool_use", textBlock("one")), says("m1", "a2", "tool_use", callBlock("t1")))
		r.rest()
		keep()
		r.write(answered("r1", "p", "t1", "<tool_use_error>no</tool_use_error>", true, "Error: no"), says("m2", "a3", "end_turn", textBlock("two")))
		keep()
		r.stopHook("p", "two")
		r.rest()
		keep()
		want := []string{
			`main assistant_response {"text":"one","final":false,"interrupted":false}`,
			`main tool_call {"id":"t1","name":"Bash","input":{"command":"t1"}}`,
			`main tool_result {"id":"t1","name":"Bash","status":"rejected","error":"\u003ctool_use_error\u003eno\u003c/tool_use_error\u003e"}`,
		}
		r.wantShown(want...)
		r.stop()
		for i, raw := range snapshots {
			if err := os.WriteFile(state, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			r.rest()
			if got := r.shown(); !slices.Equal(got, want) {
				t.Errorf("from snapshot %d on: %s", i, lines(got))
			}
			r.stop()
		}
		r.start()
		r.stop()
	})
}

// TestInterruptions: a reply, a tool, and a call that was denied.
func TestInterruptions(t *testing.T) {
	in(t, func(t *testing.T) {
		r := newRig(t)
		r.begin("p")
		l := says("m1", "a1", "", textBlock("half a sen"))
		l["isAbortedMidStream"] = true
		r.write(l, line{
			"type": "user", "uuid": "i1", "parentUuid": "a1", "promptId": "p", "interruptedMessageId": "m1",
			"message": map[string]any{"role": "user", "content": []any{textBlock("[Request interrupted by user]")}},
		})
		r.rest() // no hook tells of it
		r.wantShown(`main assistant_response {"text":"half a sen","final":false,"interrupted":true}`)

		r.prompt("q", "again")
		r.write(line{"type": "permission-mode", "permissionMode": "bypassPermissions"},
			says("m2", "a2", "tool_use", textBlock("whole")), says("m2", "a3", "tool_use", callBlock("t1")))
		r.hook("PreToolUse", map[string]any{"prompt_id": "q", "tool_use_id": "t1", "tool_name": "Bash", "tool_input": map[string]any{}})
		r.write(answered("r1", "q", "t1", "The user doesn't want to proceed with this tool use.", true, "User rejected tool use"), line{
			"type": "user", "uuid": "i2", "parentUuid": "r1", "promptId": "q", "interruptedMessageId": "m2",
			"message": map[string]any{"role": "user", "content": []any{textBlock("[Request interrupted by user for tool use]")}},
		})
		r.rest()
		if got := r.shown()[1:]; !slices.Equal(got, []string{
			`main assistant_response {"text":"whole","final":false,"interrupted":false}`,
			`main tool_result {"id":"t1","name":"Bash","status":"interrupted","error":"The user doesn't want to proceed with this tool use."}`,
		}) {
			t.Errorf("an interrupted tool: %s", lines(got))
		}
		r.stop()
	})
}

// queued is a message that was taken into a running turn.
func queued(uuid, text string) line {
	return line{"type": "attachment", "uuid": uuid, "attachment": map[string]any{
		"type": "queued_command", "prompt": text, "commandMode": "prompt", "origin": map[string]any{"kind": "human"},
	}}
}

// TestQueuedMessages (hard case BR-14): one record each, whoever told of it, and
// the same text typed twice is two.
func TestQueuedMessages(t *testing.T) {
	for _, row := range []struct {
		name  string
		hooks int // of the two, how many a hook tells of
		want  int
	}{{"an old client", 0, 2}, {"a new client", 2, 0}, {"a hook that was taken for its double", 1, 1}} {
		t.Run(row.name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				r := newRig(t)
				r.begin("p")
				for i := range 2 {
					r.write(line{"type": "queue-operation", "operation": "enqueue", "content": "look there"})
					if i < row.hooks {
						r.hook("UserPromptSubmit", map[string]any{"prompt_id": "p", "prompt": "look there"})
					}
				}
				for _, uuid := range []string{"q1", "q2"} {
					r.write(line{"type": "queue-operation", "operation": "remove"}, queued(uuid, "look there"))
				}
				r.write(says("m1", "a1", "end_turn", textBlock("done")))
				r.stopHook("p", "done")
				r.rest()
				defer r.stop()
				if got := len(r.shown()); got != row.want {
					t.Errorf("%d records from the transcript, want %d: %s", got, row.want, lines(r.shown()))
				}
				n := 0
				for _, rec := range r.records() {
					if rec.Section == "queued_message" {
						n++
					}
				}
				if n != 2 {
					t.Errorf("%d queued messages in all, want 2", n)
				}
			})
		})
	}
}

// TestKilledClient (hard case BR-16): its transcript is read to the end, the torn
// line too if it is whole, and the end of the session and its subagent is inferred.
func TestKilledClient(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	who := client.Of(cmd.Process.Pid)
	in(t, func(t *testing.T) {
		r := newRig(t)
		r.client = who
		r.begin("p")
		r.hook("SubagentStart", map[string]any{"agent_id": "sub", "agent_type": "general"})
		r.write(line{"type": "queue-operation", "operation": "enqueue", "content": "never delivered"},
			says("m1", "a1", "tool_use", callBlock("t1")))
		r.raw(r.path, []byte(`{"type":"assistant","uuid":"a2","timestamp":"`+r.now.Format(time.RFC3339Nano)+
			`","message":{"id":"m2","content":[{"type":"text","text":"last words"}]}}`))
		r.rest()
		if got := r.shown(); len(got) != 0 {
			t.Errorf("told while the client lives: %s", lines(got))
		}
		if transcript.Unfinished(r.dir) {
			t.Error("unfinished while the client lives")
		}
		if err := errors.Join(cmd.Process.Kill(), expectKilled(cmd.Wait())); err != nil {
			t.Fatal(err)
		}
		r.stop()
		if !transcript.Unfinished(r.dir) {
			t.Error("not unfinished with a dead client")
		}
		r.rest()
		r.wantShown(
			`main queued_message {"text":"never delivered","delivered":false}`,
			`main tool_call {"id":"t1","name":"Bash","input":{"command":"t1"}}`,
			`main assistant_response {"text":"last words","final":true,"interrupted":false}`,
			`sub subagent {"phase":"stop","id":"sub","type":"general","inferred":true}`,
			`main session_end {"reason":"unknown","inferred":true}`,
		)
		if r.ended != 1 || transcript.Unfinished(r.dir) {
			t.Errorf("the dispatcher was told %d times that the session is over; unfinished %v", r.ended, transcript.Unfinished(r.dir))
		}
		// The session is taken up again: nothing is told twice.
		r.client = client.Of(os.Getpid())
		r.hook("SessionStart", map[string]any{"source": "resume"})
		r.prompt("q", "go on")
		r.rest()
		r.stop()
		if n := len(r.shown()); n != 5 {
			t.Errorf("%d records after the session went on, want 5", n)
		}
	})
}

func expectKilled(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

// TestSubagents: their transcripts are followed, with their names on the records.
func TestSubagents(t *testing.T) {
	in(t, func(t *testing.T) {
		r := newRig(t)
		r.begin("p")
		r.hook("SubagentStart", map[string]any{"agent_id": "sub", "agent_type": "general"})
		path := filepath.Join(strings.TrimSuffix(r.path, ".jsonl"), "subagents", "agent-sub.jsonl")
		r.writeTo(path, line{"type": "user", "isSidechain": true, "agentId": "sub", "promptId": "p", "uuid": "s0", "message": map[string]any{"content": "do this part"}},
			says("s1", "s1", "tool_use", textBlock("part one")), says("s1", "s2", "tool_use", callBlock("t9")),
			answered("s3", "p", "t9", "fine", false, map[string]any{"stdout": "fine"}), says("s4", "s4", "end_turn", textBlock("part two")))
		r.hook("SubagentStop", map[string]any{"agent_id": "sub", "agent_type": "general", "agent_transcript_path": path, "last_assistant_message": "part two"})
		r.rest()
		r.stop()
		r.wantShown(
			`sub assistant_response {"text":"part one","final":false,"interrupted":false}`,
			`sub tool_call {"id":"t9","name":"Bash","input":{"command":"t9"}}`,
			`sub tool_result {"id":"t9","name":"Bash","status":"ok","output":{"stdout":"fine"}}`,
		)
		if rec := r.records()[len(r.records())-1]; rec.AgentType != "general" {
			t.Errorf("agent type %q", rec.AgentType)
		}
	})
}

// TestRewrittenTranscript: replaced, cut short and gone, the transcript leads to
// nothing twice, and what is new in it is told.
func TestRewrittenTranscript(t *testing.T) {
	in(t, func(t *testing.T) {
		r := newRig(t)
		r.begin("p")
		one, two := says("m1", "a1", "tool_use", textBlock("one")), says("m2", "a2", "end_turn", textBlock("two"))
		r.write(one, two)
		r.stopHook("p", "two")
		r.rest()
		want := []string{`main assistant_response {"text":"one","final":false,"interrupted":false}`}
		r.wantShown(want...)
		old, err := os.ReadFile(r.path)
		if err != nil {
			t.Fatal(err)
		}
		for i, change := range []func() error{
			func() error { return os.WriteFile(r.path+".new", old, 0o600) },
			func() error { return os.Rename(r.path+".new", r.path) },
			func() error { return os.Truncate(r.path, int64(len(old)/2)) },
			func() error { return os.Remove(r.path) },
			func() error { return os.Mkdir(r.path, 0o700) },
			func() error { return os.Remove(r.path) },
			func() error { return os.WriteFile(r.path, bytes.Repeat(old, 3), 0o600) },
			func() error {
				return os.WriteFile(r.path, append(append(make([]byte, 300), "{half a li\n"...), old...), 0o600)
			},
		} {
			if err := change(); err != nil {
				t.Fatal(err)
			}
			<-time.After(5 * time.Second)
			r.rest()
			if got := r.shown(); !slices.Equal(got, want) {
				t.Errorf("after change %d: %s", i, lines(got))
			}
		}
		r.prompt("q", "on")
		r.write(says("m3", "a3", "tool_use", textBlock("three")), says("m4", "a4", "end_turn", textBlock("four")))
		r.stopHook("q", "four")
		r.rest()
		r.stop()
		r.wantShown(append(want, `main assistant_response {"text":"three","final":false,"interrupted":false}`)...)
	})
}

// TestHistory: what was there before the session's first hook, and what belongs
// to a section that no rule asked for then, is nobody's.
func TestHistory(t *testing.T) {
	in(t, func(t *testing.T) {
		r := newRig(t, record.AssistantResponse, record.ToolCall)
		r.write(prompted("o", "old"), says("m0", "a0", "tool_use", textBlock("old")), says("m0", "b0", "tool_use", callBlock("t0")))
		r.begin("p")
		r.header.Since[record.ToolCall] = r.now.Add(2 * time.Millisecond).UnixNano()
		r.write(says("m1", "a1", "tool_use", callBlock("t1")), says("m1", "a2", "tool_use", textBlock("new")))
		r.write(says("m2", "a3", "tool_use", callBlock("t2")), answered("r2", "p", "t2", "no", true, nil), says("m3", "a4", "end_turn", textBlock("end")))
		r.stopHook("p", "end")
		r.rest()
		r.stop()
		r.wantShown(`main assistant_response {"text":"new","final":false,"interrupted":false}`, `main tool_call {"id":"t2","name":"Bash","input":{"command":"t2"}}`)
	})
}

// TestThinkingStays plants a thought in every place of a transcript.
func TestThinkingStays(t *testing.T) {
	in(t, func(t *testing.T) {
		r := newRig(t)
		const secret = "a private thought"
		thought := map[string]any{"type": "thinking", "thinking": secret, "signature": secret}
		redacted := map[string]any{"type": "redacted_thinking", "data": secret}
		r.begin("p")
		path := filepath.Join(strings.TrimSuffix(r.path, ".jsonl"), "subagents", "agent-sub.jsonl")
		for _, to := range []string{r.path, path} {
			r.writeTo(to, line{"type": "assistant", "uuid": "x" + to, "thinking": secret, "message": map[string]any{
				"id": "m1", "stop_reason": "tool_use", "thinking": secret, "content": []any{thought, textBlock("said"), redacted, callBlock("t" + to)},
			}}, line{"type": "assistant", "uuid": "y" + to, "message": map[string]any{"id": "m2", "content": []any{thought}}},
				line{"type": "assistant", "uuid": "z" + to, "message": map[string]any{"id": "m3", "content": []any{redacted}}},
				line{"type": "thinking", "uuid": "w" + to, "content": secret, "message": map[string]any{"content": []any{textBlock(secret)}}},
				line{
					"type": "user", "uuid": "v" + to, "promptId": "p", "toolUseResult": map[string]any{"content": []any{thought, textBlock("seen"), redacted}},
					"message": map[string]any{"content": []any{map[string]any{"type": "tool_result", "tool_use_id": "t" + to, "content": []any{thought, textBlock("seen")}}}},
				},
				line{
					"type": "user", "uuid": "k" + to, "promptId": "p", "toolUseResult": "Error: no",
					"message": map[string]any{"content": []any{map[string]any{"type": "tool_result", "tool_use_id": "k" + to, "is_error": true, "content": []any{redacted, textBlock("seen")}}}},
				},
				line{"type": "attachment", "uuid": "q" + to, "attachment": map[string]any{"type": "queued_command", "thinking": secret, "commandMode": "prompt", "prompt": []any{thought, textBlock("queued")}}},
			)
		}
		r.hook("SubagentStop", map[string]any{"agent_id": "sub"})
		r.hook("Stop", map[string]any{"prompt_id": "p"})
		r.rest()
		r.stop()
		if n := len(r.shown()); n != 10 {
			t.Errorf("%d records, want 10: %s", n, lines(r.shown()))
		}
		entries, err := os.ReadDir(r.dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			raw, err := os.ReadFile(filepath.Join(r.dir, e.Name()))
			if err == nil && bytes.Contains(raw, []byte("private")) {
				t.Errorf("%s holds a thought", e.Name())
			}
		}
	})
}

// TestKeep: the spool's segments are kept from where the saved state goes on.
func TestKeep(t *testing.T) {
	in(t, func(t *testing.T) {
		r := newRig(t)
		r.begin("p")
		r.hook("SessionEnd", map[string]any{"reason": "other"})
		r.rest()
		last, err := spool.LastSeq(r.dir, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := r.actor.Leave(t.Context(), last, true); !ok || err != nil {
			t.Errorf("leaving: %v, %v", ok, err)
		}
		if r.kept != 1 {
			t.Errorf("kept from segment %d on, want 1", r.kept)
		}
		r.stop()
	})
}

// TestBacklog: a dispatcher that comes late to a long session tells of each thing
// once, whatever it remembers at a time.
func TestBacklog(t *testing.T) {
	in(t, func(t *testing.T) {
		r := newRig(t)
		r.begin("p")
		const turns = 1200
		for i := range turns {
			id := fmt.Sprint(i)
			r.prompt("q"+id, "go "+id)
			r.write(says("m"+id, "a"+id, "tool_use", callBlock("t"+id)), answered("r"+id, "q"+id, "t"+id, "ok", false, nil), says("n"+id, "b"+id, "end_turn", textBlock("done "+id)))
			r.hook("PreToolUse", map[string]any{"prompt_id": "q" + id, "tool_use_id": "t" + id, "tool_name": "Bash", "tool_input": map[string]any{}})
			r.hook("PostToolUse", map[string]any{"prompt_id": "q" + id, "tool_use_id": "t" + id, "tool_name": "Bash", "tool_response": "ok"})
			r.stopHook("q"+id, "done "+id)
		}
		r.write(says("x", "x", "tool_use", textBlock("the only news")), says("y", "y", "end_turn", textBlock("over")))
		r.stopHook("q1199", "over")
		r.rest()
		r.stop()
		r.wantShown(`main assistant_response {"text":"the only news","final":false,"interrupted":false}`)
		if info, err := os.Stat(filepath.Join(r.dir, "transcripts.json")); err != nil || info.Size() > 200<<10 {
			t.Errorf("the state has %d bytes, %v", info.Size(), err)
		}
	})
}

// TestMovedTranscript: a session that is taken up elsewhere has its transcript
// elsewhere, with all that was told already.
func TestMovedTranscript(t *testing.T) {
	in(t, func(t *testing.T) {
		r := newRig(t)
		r.begin("p")
		r.write(says("m1", "a1", "tool_use", textBlock("one")), says("m2", "a2", "end_turn", textBlock("two")))
		r.stopHook("p", "two")
		r.rest()
		r.write(says("m3", "a3", "tool_use", callBlock("t1")))
		r.rest()
		old, err := os.ReadFile(r.path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(r.path); err != nil {
			t.Fatal(err)
		}
		r.path = filepath.Join(filepath.Dir(r.path), "elsewhere", "s.jsonl")
		r.raw(r.path, append([]byte("{\"type\":\"mode\"}\n"), old...))
		r.hook("SessionStart", map[string]any{"source": "resume"})
		r.prompt("q", "go on")
		r.write(says("m4", "a4", "tool_use", textBlock("three")), says("m5", "a5", "end_turn", textBlock("four")))
		r.stopHook("q", "four")
		r.rest()
		r.stop()
		got := r.shown()
		slices.Sort(got)
		want := []string{
			`main assistant_response {"text":"one","final":false,"interrupted":false}`,
			`main assistant_response {"text":"three","final":false,"interrupted":false}`,
			`main tool_call {"id":"t1","name":"Bash","input":{"command":"t1"}}`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %s", lines(got))
		}
	})
}
