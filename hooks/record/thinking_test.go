package record_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"ways/hooks/record"
)

func TestWithoutThinking(t *testing.T) {
	for _, row := range []struct{ in, want string }{
		{`"thinking"`, `"thinking"`},
		{`{"thinking":"a plan"}`, `{"thinking":"a plan"}`}, // no type: an input of some tool
		{`{"type":"thinking"}`, `{"type":"thinking"}`},     // nothing in it
		{`{"type":"text","text":"I am thinking"}`, `{"type":"text","text":"I am thinking"}`},
		{`{"type":"thinking","thinking":"a"}`, `null`},
		{`{"thinking":"a","type":"thinking"}`, `null`},
		{`{"type":"redacted_thinking","data":"a"}`, `null`},
		{`{"type":"th\u0069nk\u0069ng","th\u0069nk\u0069ng":"a"}`, `null`},
		{`{"content":[{"type":"thinking","thinking":"a","signature":"s"}, {"type":"text","text":"b"}],"n":1e400}`, `{"content":[null, {"type":"text","text":"b"}],"n":1e400}`},
		{`[[{"type":"thinking","signature":"s"}],{"a":{"type":"thinking_delta","thinking":"b"}}]`, `[[null],{"a":null}]`},
		{`{"type":"thinking","thinking":"a","deep":{"type":"thinking","thinking":"b"}}`, `null`},
		{`{"deep":{"type":"thinking","thinking":"b"},"type":"thinking","signature":""}`, `null`},
		{`{"type":{"type":"thinking"},"thinking":"a"}`, `{"type":{"type":"thinking"},"thinking":"a"}`},
		{`{"a":["type","thinking"],"thinking":"x"}`, `{"a":["type","thinking"],"thinking":"x"}`},
	} {
		if got := string(record.WithoutThinking(jsontext.Value(row.in))); got != row.want {
			t.Errorf("%s: %s, want %s", row.in, got, row.want)
		}
	}
}

// TestThinkingOfHooks plants a thought in every field of a payload.
func TestThinkingOfHooks(t *testing.T) {
	const block = `{"type":"thinking","thinking":"a private thought","signature":"c2ln"}`
	const redacted = `{"type":"redacted_thinking","data":"a private thought"}`
	plants := `"thinking":"a private thought","last_assistant_thinking":"a private thought","message":{"content":[` + block + `]},` +
		`"tool_input":{"messages":[` + block + `,` + redacted + `]},"tool_response":{"content":[` + block + `,{"type":"text","text":"kept"},` + redacted + `]},` +
		`"error":{"content":[` + block + `]},"last_assistant_message":[` + block + `],"prompt":[` + redacted + `],"source":` + block + `,"model":` + block +
		`,"reason":` + block + `,"trigger":` + block + `,"custom_instructions":` + block + `,"tool_name":` + block + `,"duration_ms":` + block + `,"mcp_server":` + block
	n := 0
	for _, event := range record.Events() {
		for _, rec := range from(t, `{"session_id":"s","hook_event_name":"`+event+`","tool_use_id":"t","agent_id":"a",`+plants+`}`, all(), false) {
			n++
			if strings.Contains(rec, "private") {
				t.Errorf("%s: %s", event, rec)
			}
			if event == "PostToolUse" && !strings.Contains(rec, `{"content":[null,{"type":"text","text":"kept"},null]}`) {
				t.Errorf("what stands beside a thought is gone: %s", rec)
			}
		}
	}
	if n < 9 {
		t.Errorf("%d records", n)
	}
}
