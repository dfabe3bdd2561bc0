package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// clientArg makes the test binary a client: it runs the hook with each payload,
// and lives until it is killed.
const clientArg = "-as-client"

func beClient(hook string, payloads []string) int {
	for _, p := range payloads {
		cmd := exec.Command(hook, "hook", "sensors")
		cmd.Stdin = strings.NewReader(p)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			fmt.Fprintf(os.Stderr, "%q, %v\n", out, err)
			return 1
		}
	}
	fmt.Println("done")
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
	return 0
}

// client starts a client of that kind, and returns when its hooks have run.
func (s site) client(t *testing.T, payloads ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, append([]string{clientArg, s.ways}, payloads...)...)
	cmd.Env, cmd.Dir, cmd.Stderr = append(append([]string(nil), s.env...), "CLAUDE_PROJECT_DIR="+s.home), s.home, os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var word [5]byte
	if _, err := io.ReadFull(out, word[:]); err != nil {
		t.Fatalf("the client's hooks: %v", err)
	}
	return cmd
}

// withTranscript is a payload of a session with a transcript.
func withTranscript(name, session, transcript, more string) string {
	return fmt.Sprintf(`{"hook_event_name":%q,"session_id":%q,"transcript_path":%q,"cwd":"/"%s}`, name, session, transcript, more)
}

// TestSilentDeath (hard case BR-16): a client that dies without a word, while its
// dispatcher runs and after it has left. The end is told once in both cases, and
// no process stays.
func TestSilentDeath(t *testing.T) {
	t.Parallel()
	s := newSite(t, "WAYS_DISPATCHER_IDLE=3s")
	path := filepath.Join(s.home, "t.jsonl")
	ends := func(session string) (n int) {
		for _, r := range lines(t, s.log) {
			if r.Session == session && r.Section == "session_end" {
				n++
				if r.Source != "transcript" {
					t.Errorf("an end from %s", r.Source)
				}
			}
		}
		return n
	}
	begin := func(session string) *exec.Cmd {
		return s.client(t, withTranscript("SessionStart", session, path, `,"source":"startup"`),
			withTranscript("UserPromptSubmit", session, path, `,"prompt_id":"p","prompt":"go"`),
			withTranscript("Stop", session, path, `,"prompt_id":"p","last_assistant_message":"there"`))
	}
	kill := func(c *exec.Cmd) {
		t.Helper()
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
	}
	early, late := begin("early"), begin("late")
	kill(early)
	s.waitGone(t, "early")
	if n := ends("early"); n != 1 {
		t.Errorf("%d ends of the session whose client died early, want 1", n)
	}
	s.waitGone(t, "late") // idle: its client lives
	if n := ends("late"); n != 0 {
		t.Errorf("%d ends of a session whose client lives", n)
	}
	kill(late)
	third := begin("third") // its dispatcher finds what others left
	defer kill(third)
	eventually(t, exitLimit, func() bool { return ends("late") == 1 }, func() string { return "the late death is not told" })
	s.waitGone(t, "late")
	if n := ends("late") + ends("third"); n != 1 {
		t.Errorf("%d ends, want 1", n)
	}
}
