package payload_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"ways/hooks/payload"
)

// BenchmarkParse is a payload from the pipe to the event.
func BenchmarkParse(b *testing.B) {
	for _, row := range []struct {
		name string
		text string
	}{
		{"500B", strings.Repeat("go test ./... ", 10)},
		{"1MB", strings.Repeat("a line of output with \\\"quotes\\\" in it\\n", 28_000)},
	} {
		raw := fmt.Appendf(nil, `{"session_id":"31c02f60-dad9-4c1d-9493-4505c63fd62d","transcript_path":"/home/dev/t.jsonl","cwd":"/home/dev/proj",`+
			`"hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"make"},"tool_response":{"stdout":"%s"},"tool_use_id":"toolu_1"}`, row.text)
		b.Run(row.name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				whole, err := payload.Read(bytes.NewReader(raw))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := payload.Parse(whole); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
