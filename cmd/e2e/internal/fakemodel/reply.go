package fakemodel

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// inputChunk is how many bytes of a tool input one delta carries: small enough
// that every input of some size arrives in pieces.
const inputChunk = 32

// block is one content block of a reply, with the deltas it is streamed in.
type block struct {
	whole  map[string]any
	start  map[string]any
	deltas []map[string]any
}

func newID(prefix string) string { return prefix + "_" + strings.ToLower(rand.Text()) }

// blocks lays out a step. With tools false the calls are left out: a request
// that offers no tools (a title, a summary) cannot be answered with a call.
func (s Step) blocks(tools bool) []block {
	var list []block
	if s.Thinking != "" {
		signature := newID("sig")
		list = append(list, block{
			whole: map[string]any{"type": "thinking", "thinking": s.Thinking, "signature": signature},
			start: map[string]any{"type": "thinking", "thinking": "", "signature": ""},
			deltas: append(textDeltas("thinking_delta", "thinking", s.Thinking),
				map[string]any{"type": "signature_delta", "signature": signature}),
		})
	}
	for _, text := range append([]string{s.Text}, s.More...) {
		if text == "" {
			continue
		}
		list = append(list, block{
			whole:  map[string]any{"type": "text", "text": text},
			start:  map[string]any{"type": "text", "text": ""},
			deltas: textDeltas("text_delta", "text", text),
		})
	}
	if !tools {
		return list
	}
	for _, c := range s.calls() {
		id := newID("toolu")
		input := c.Input
		if len(input) == 0 {
			input = json.RawMessage("{}")
		}
		list = append(list, block{
			whole:  map[string]any{"type": "tool_use", "id": id, "name": c.Tool, "input": input},
			start:  map[string]any{"type": "tool_use", "id": id, "name": c.Tool, "input": map[string]any{}},
			deltas: inputDeltas(string(input)),
		})
	}
	return list
}

func textDeltas(kind, key, text string) []map[string]any {
	var list []map[string]any
	for _, word := range strings.SplitAfter(text, " ") {
		list = append(list, map[string]any{"type": kind, key: word})
	}
	return list
}

// inputDeltas cuts at rune borders: a delta is a JSON string, and half a rune
// in it would be replaced.
func inputDeltas(input string) []map[string]any {
	var list []map[string]any
	var piece strings.Builder
	flush := func() {
		if piece.Len() > 0 {
			list = append(list, map[string]any{"type": "input_json_delta", "partial_json": piece.String()})
			piece.Reset()
		}
	}
	for _, r := range input {
		piece.WriteRune(r)
		if piece.Len() >= inputChunk {
			flush()
		}
	}
	flush()
	return list
}

func stopReason(list []block) string {
	for _, b := range list {
		if b.whole["type"] == "tool_use" {
			return "tool_use"
		}
	}
	return "end_turn"
}

func envelope(model string, content []any, stop any) map[string]any {
	return map[string]any{
		"id": newID("msg"), "type": "message", "role": "assistant", "model": model,
		"content": content, "stop_reason": stop, "stop_sequence": nil,
		"usage": map[string]any{
			"input_tokens": 10, "output_tokens": 10,
			"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
		},
	}
}

// whole is the answer to a request that did not ask for a stream.
func whole(model string, list []block) map[string]any {
	content := make([]any, len(list))
	for i, b := range list {
		content[i] = b.whole
	}
	return envelope(model, content, stopReason(list))
}

// flushWriter is where a stream goes: each event must leave at once.
type flushWriter interface {
	io.Writer
	Flush()
}

// stream writes the reply as server-sent events, the delay spread before its
// deltas. It ends early when ctx does (the client hung up) or a write fails.
func stream(ctx context.Context, w flushWriter, model string, list []block, delay time.Duration) error {
	pauses := 0
	for _, b := range list {
		pauses += len(b.deltas)
	}
	var pause time.Duration
	if pauses > 0 {
		pause = delay / time.Duration(pauses)
	}

	send := func(kind string, fields map[string]any) error {
		fields["type"] = kind
		data, err := json.Marshal(fields)
		if err != nil {
			return fmt.Errorf("event %s: %w", kind, err)
		}
		if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, data); err != nil {
			return fmt.Errorf("event %s: %w", kind, err)
		}
		w.Flush()
		return nil
	}

	if err := send("message_start", map[string]any{"message": envelope(model, []any{}, nil)}); err != nil {
		return err
	}
	if err := send("ping", map[string]any{}); err != nil {
		return err
	}
	if pauses == 0 {
		if err := wait(ctx, delay); err != nil {
			return err
		}
	}
	for i, b := range list {
		if err := send("content_block_start", map[string]any{"index": i, "content_block": b.start}); err != nil {
			return err
		}
		for _, d := range b.deltas {
			if err := wait(ctx, pause); err != nil {
				return err
			}
			if err := send("content_block_delta", map[string]any{"index": i, "delta": d}); err != nil {
				return err
			}
		}
		if err := send("content_block_stop", map[string]any{"index": i}); err != nil {
			return err
		}
	}
	if err := send("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": stopReason(list), "stop_sequence": nil},
		"usage": map[string]any{"output_tokens": 10},
	}); err != nil {
		return err
	}
	return send("message_stop", map[string]any{})
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
