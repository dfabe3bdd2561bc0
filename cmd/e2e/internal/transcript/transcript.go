// Package transcript reads what a client's transcript says about tools, as the
// yardstick for what a log of the session must hold.
package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

// Call is one tool_use block.
type Call struct {
	ID, Name string
	// Input is the block's bytes as the transcript has them.
	Input json.RawMessage
}

// Result is one tool_result block.
type Result struct {
	// ID is the id of the call it answers.
	ID string
	// Failed is the block's is_error.
	Failed bool
}

// Transcript is what one file holds, in file order.
type Transcript struct {
	Path    string
	Calls   []Call
	Results []Result
	// Raw is the whole file.
	Raw []byte
}

// Read parses the transcript at path. A line that is no JSON is an error: the
// client has exited when this is called.
func Read(path string) (Transcript, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Transcript{}, fmt.Errorf("transcript: %w", err)
	}
	t := Transcript{Path: path, Raw: raw}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, len(raw)+1)
	for n := 1; lines.Scan(); n++ {
		var line struct {
			Type    string `json:"type"`
			Message struct {
				Content json.RawMessage `json:"content"`
			} `json:"message"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return Transcript{}, fmt.Errorf("transcript %s, line %d: %w", path, n, err)
		}
		var blocks []struct {
			Type      string          `json:"type"`
			ID        string          `json:"id"`
			Name      string          `json:"name"`
			Input     json.RawMessage `json:"input"`
			ToolUseID string          `json:"tool_use_id"`
			IsError   bool            `json:"is_error"`
		}
		if line.Type != "assistant" && line.Type != "user" {
			continue // api-request-blob lines repeat the messages of the conversation
		}
		if !bytes.HasPrefix(line.Message.Content, []byte("[")) {
			continue // a plain string
		}
		if err := json.Unmarshal(line.Message.Content, &blocks); err != nil {
			return Transcript{}, fmt.Errorf("transcript %s, line %d, content: %w", path, n, err)
		}
		for _, b := range blocks {
			switch b.Type {
			case "tool_use":
				t.Calls = append(t.Calls, Call{ID: b.ID, Name: b.Name, Input: b.Input})
			case "tool_result":
				t.Results = append(t.Results, Result{ID: b.ToolUseID, Failed: b.IsError})
			}
		}
	}
	if err := lines.Err(); err != nil {
		return Transcript{}, fmt.Errorf("transcript %s: %w", path, err)
	}
	return t, nil
}
