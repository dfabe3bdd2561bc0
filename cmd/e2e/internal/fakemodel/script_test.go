package fakemodel

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestStep(t *testing.T) {
	const script = `x SCRIPT: [{"text":"one"},{"text":"two"},{"text":"three"}]`
	waiting := `SCRIPT: [{"text":"start"},{"tool":"Bash","until":{"text":"</end>","count":2}},{"text":"over"}]`
	user := func(text string) map[string]any { return map[string]any{"role": "user", "content": text} }
	reply := map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "text", "text": "r"}}}
	result := map[string]any{"role": "user", "content": []any{
		map[string]any{"type": "tool_result", "tool_use_id": "t", "content": `SCRIPT: [{"text":"from a tool"}]`},
	}}
	blocks := func(texts ...string) map[string]any {
		var list []any
		for _, s := range texts {
			list = append(list, map[string]any{"type": "text", "text": s})
		}
		return map[string]any{"role": "user", "content": list}
	}
	nested, err := Prompt("outer", Step{Tool: "Agent", Text: "mine", Input: json.RawMessage(`{"prompt":"SCRIPT: [{\"text\":\"inner\"}]"}`)})
	if err != nil {
		t.Fatal(err)
	}

	for _, row := range []struct {
		name     string
		messages []any
		want     string // the step's text, or its tool's name
		err      string
	}{
		{name: "the first reply", messages: []any{user(script)}, want: "one"},
		{name: "after one reply", messages: []any{user(script), reply, result}, want: "two"},
		{name: "a reply split in two still counts each", messages: []any{user(script), reply, reply, result}, want: "three"},
		{name: "past the end", messages: []any{user(script), reply, reply, reply, result}, want: pastEnd},
		{name: "an empty script", messages: []any{user("SCRIPT: []")}, want: pastEnd},
		{name: "a reminder block after the prompt", messages: []any{blocks(script, "<system-reminder>x</system-reminder>")}, want: "one"},
		{name: "a reminder block before the prompt", messages: []any{blocks("# Environment", script)}, want: "one"},
		{name: "a later prompt without a script", messages: []any{user(script), reply, user("go on")}, want: "two"},
		{name: "a later prompt with its own", messages: []any{user(script), reply, user(`SCRIPT: [{"text":"new"}]`)}, want: "new"},
		{name: "words after the script", messages: []any{user(script + "\n\nand so on]")}, want: "one"},
		{name: "a script quoted in a script", messages: []any{user(nested)}, want: "mine"},
		{name: "a tool result is no prompt", messages: []any{user(script), reply, result}, want: "two"},
		{name: "waiting", messages: []any{user(waiting), reply, result}, want: "Bash"},
		{name: "still waiting", messages: []any{user(waiting), reply, reply, user("</end>"), reply, result}, want: "Bash"},
		{name: "waited", messages: []any{user(waiting), reply, reply, user("</end>"), reply, user("</end>")}, want: "over"},
		{name: "after the wait", messages: []any{user(waiting), reply, reply, user("</end></end>"), reply}, want: pastEnd},
		{name: "nothing to wait for", messages: []any{user(waiting), user("</end></end>"), reply}, want: "over"},
		{name: "the same notice twice in one message", messages: []any{user(waiting), reply, blocks("</end>", "</end>")}, want: "over"},
		{name: "no script", messages: []any{user("hello")}, err: errNoScript.Error()},
		{name: "no message", err: errNoScript.Error()},
		{name: "a broken script", messages: []any{user(`SCRIPT: [{"text":`)}, err: "does not parse"},
		{name: "a script of another shape", messages: []any{user(`SCRIPT: [7]`)}, err: "does not parse"},
	} {
		t.Run(row.name, func(t *testing.T) {
			raw, err := json.Marshal(map[string]any{"messages": row.messages})
			if err != nil {
				t.Fatal(err)
			}
			var req request
			if err := json.Unmarshal(raw, &req); err != nil {
				t.Fatal(err)
			}
			step, err := req.step()
			if row.err != "" {
				if err == nil || !strings.Contains(err.Error(), row.err) {
					t.Fatalf("error %v, want %q", err, row.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := step.Text
			if got == "" {
				got = step.Tool
			}
			if got != row.want {
				t.Errorf("step %q, want %q", got, row.want)
			}
		})
	}
}
