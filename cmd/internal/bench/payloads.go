package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// recordedCall is the payload that all others are made from: a call of Bash as
// the client wrote it.
const recordedCall = "2.1.332/interactive/04-PreToolUse.json"

// session is the id in the payloads of all rows but one.
const session = "5f0c1e52-8d7a-4a58-9a51-2f8c60d3b1aa"

// megabyte is the size of the large payloads.
const megabyte = 1 << 20

// call is a recorded payload with its varying parts named.
type call struct {
	raw []byte
	// The values to put others in the place of, as the payload spells them.
	session, id, transcript, command string
}

// readCall reads the recorded call below a directory of fixtures.
func readCall(fixtures string) (call, error) {
	raw, err := os.ReadFile(filepath.Join(fixtures, recordedCall))
	if err != nil {
		return call{}, fmt.Errorf("no recorded payload: %w (--fixtures says where they are)", err)
	}
	var parts struct {
		Session    string `json:"session_id"`
		Transcript string `json:"transcript_path"`
		ID         string `json:"tool_use_id"`
		Input      struct {
			Command string `json:"command"`
		} `json:"tool_input"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return call{}, fmt.Errorf("%s: %w", recordedCall, err)
	}
	c := call{bytes.TrimSpace(raw), parts.Session, parts.ID, parts.Transcript, parts.Input.Command}
	for _, part := range []string{c.session, c.id, c.transcript, c.command} {
		if part == "" || !bytes.Contains(c.raw, []byte(part)) {
			return call{}, fmt.Errorf("%s is no call of Bash with plain ids", recordedCall)
		}
	}
	return c, nil
}

// numbered is the payload of the n-th call: no two are the same event, since a
// hook drops the second of two equal ones early.
func (c call) numbered(n int) []byte { return c.in(session, n) }

// in is the n-th call of a session.
func (c call) in(session string, n int) []byte { return c.spelled(session, "", c.command, n) }

// large is a call of a megabyte.
func (c call) large(n int) []byte {
	line := "echo one more line of a script that was written for this call; "
	return c.spelled(session, "", strings.Repeat(line, megabyte/len(line)+1), n)
}

// naming is a call whose payload names a transcript.
func (c call) naming(transcript string) func(n int) []byte {
	return func(n int) []byte { return c.spelled(session, transcript, c.command, n) }
}

func (c call) spelled(session, transcript, command string, n int) []byte {
	if transcript == "" {
		transcript = "/nonexistent/transcript.jsonl"
	}
	// The path first: the session's id is part of it.
	return []byte(strings.NewReplacer(
		c.transcript, transcript, c.session, session, c.id, fmt.Sprintf("toolu_%024d", n), c.command, command,
	).Replace(string(c.raw)))
}

// sessionEnd is the payload at a session's end.
func sessionEnd(session string) []byte {
	return fmt.Appendf(nil, `{"session_id":%q,"transcript_path":"/nonexistent/transcript.jsonl","cwd":"/nonexistent",`+
		`"hook_event_name":"SessionEnd","reason":"other"}`, session)
}
