package fakemodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// marker precedes a script in a prompt.
const marker = "SCRIPT: "

// pastEnd is what the model says when a conversation outlives its script.
const pastEnd = "done"

// errNoScript is returned for a conversation in which no prompt holds a script.
var errNoScript = errors.New("no prompt of this conversation holds a script")

// Step is one reply of the model. A step without text, thinking, tool or error
// is an empty reply.
type Step struct {
	// Thinking is streamed first, as a thinking block with a signature.
	Thinking string `json:"thinking,omitempty"`
	// Text comes before the tool calls, one delta per word.
	Text string `json:"text,omitempty"`
	// More are further text blocks of the same reply, behind Text.
	More []string `json:"more,omitempty"`
	// Tool and Input are the only tool call, or the first of several.
	Tool  string          `json:"tool,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
	// Tools are further calls in the same reply; the client runs them in parallel.
	Tools []Call `json:"tools,omitempty"`
	// DelayS, in seconds, is spread evenly before the deltas of the reply: the
	// time a test has to interrupt it.
	DelayS float64 `json:"delay_s,omitempty"`
	// Error is an HTTP status to answer with instead of a reply.
	Error int `json:"error,omitempty"`
	// Until makes a step repeat until the conversation holds something, and
	// left out when it already does: how the model waits for what the client
	// tells it by itself, such as the end of a background subagent.
	Until *Until `json:"until,omitempty"`
}

// Until is the end of a repeated step: Text was seen Count times in the
// conversation after the prompt, tool results and the model's own words left out.
type Until struct {
	Text  string `json:"text"`
	Count int    `json:"count"`
}

// Call is one tool call.
type Call struct {
	Tool  string          `json:"tool"`
	Input json.RawMessage `json:"input,omitempty"`
}

// Prompt returns a prompt that makes the model reply with steps, in order.
// The title is for people who read a transcript.
func Prompt(title string, steps ...Step) (string, error) {
	script, err := json.Marshal(steps)
	if err != nil {
		return "", fmt.Errorf("script %q: %w", title, err)
	}
	return title + " " + marker + string(script), nil
}

// calls lists all tool calls of the step, in order.
func (s Step) calls() []Call {
	if s.Tool == "" {
		return s.Tools
	}
	return append([]Call{{Tool: s.Tool, Input: s.Input}}, s.Tools...)
}

func (s Step) delay() time.Duration {
	return time.Duration(s.DelayS * float64(time.Second))
}

// request is what the model reads of a POST /v1/messages body.
type request struct {
	Model    string            `json:"model"`
	Stream   bool              `json:"stream"`
	Tools    []json.RawMessage `json:"tools"`
	Messages []message         `json:"messages"`
}

type message struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

// content is a message's text blocks. Tool results are left out: what a tool
// printed is no prompt.
type content []string

// UnmarshalJSON reads both spellings: a string, or an array of blocks.
func (c *content) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*c = content{text}
		return nil
	}
	var blocks []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return fmt.Errorf("message content: %w", err)
	}
	*c = nil
	for _, b := range blocks {
		if b.Type == "text" {
			*c = append(*c, b.Text)
		}
	}
	return nil
}

// step picks the reply: from the last prompt that holds a script, the step that
// the replies since then lead to. Counting replies rather than requests makes a
// retried request get the same answer.
func (r request) step() (Step, error) {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role == "assistant" {
			continue
		}
		steps, err := r.Messages[i].Content.script()
		if errors.Is(err, errNoScript) {
			continue
		}
		if err != nil {
			return Step{}, err
		}
		return walk(steps, r.Messages[i+1:]), nil
	}
	return Step{}, errNoScript
}

// walk follows a script through what was said since its prompt. Each reply made
// then was chosen by the same rule from the messages before it.
func walk(steps []Step, since []message) Step {
	var told strings.Builder
	next := func() Step {
		for len(steps) > 0 && steps[0].Until.holds(told.String()) {
			steps = steps[1:]
		}
		if len(steps) == 0 {
			return Step{Text: pastEnd}
		}
		return steps[0]
	}
	for _, m := range since {
		if m.Role != "assistant" {
			told.WriteString(strings.Join(m.Content, "\n"))
			continue
		}
		if next().Until == nil && len(steps) > 0 {
			steps = steps[1:]
		}
	}
	return next()
}

func (u *Until) holds(told string) bool {
	return u != nil && strings.Count(told, u.Text) >= u.Count
}

// script returns the script of the last text block that has one. A script may
// quote another one (a subagent's prompt); the first marker is the outer one's.
func (c content) script() ([]Step, error) {
	for i := len(c) - 1; i >= 0; i-- {
		_, after, found := strings.Cut(c[i], marker+"[")
		if !found {
			continue
		}
		var steps []Step
		dec := json.NewDecoder(strings.NewReader("[" + after))
		if err := dec.Decode(&steps); err != nil {
			return nil, fmt.Errorf("the script in prompt %.60q does not parse: %w", c[i], err)
		}
		return steps, nil
	}
	return nil, errNoScript
}
