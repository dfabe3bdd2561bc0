// Package mcpserver is a minimal stdio MCP server with one tool, so that a
// session under test can call a tool that is not the client's own. The test
// binary runs itself as this server.
package mcpserver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// Name is the server's name in a configuration, and Tool its only tool: the
// client calls it mcp__demo__lookup.
const (
	Name = "demo"
	Tool = "lookup"
)

// Config is the client's MCP configuration file for a server that is started
// as argv with env.
func Config(argv []string, env map[string]string) ([]byte, error) {
	raw, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		Name: map[string]any{"type": "stdio", "command": argv[0], "args": argv[1:], "env": env},
	}})
	if err != nil {
		return nil, fmt.Errorf("the MCP configuration: %w", err)
	}
	return raw, nil
}

type call struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ProtocolVersion string `json:"protocolVersion"`
		Arguments       struct {
			Q string `json:"q"`
		} `json:"arguments"`
	} `json:"params"`
}

// Serve answers JSON-RPC lines from in on out until in ends. The tool answers
// "found <q>"; with the q "fail" it answers with an error result.
func Serve(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading a request: %w", err)
		}
		var c call
		if err := json.Unmarshal(line, &c); err != nil {
			return fmt.Errorf("request %.80q: %w", line, err)
		}
		if len(c.ID) == 0 {
			continue // a notification wants no answer
		}
		answer, err := json.Marshal(c.answer())
		if err != nil {
			return fmt.Errorf("answer to %s: %w", c.Method, err)
		}
		if _, err := out.Write(append(answer, '\n')); err != nil {
			return fmt.Errorf("answer to %s: %w", c.Method, err)
		}
	}
}

func (c call) answer() map[string]any {
	answer := map[string]any{"jsonrpc": "2.0", "id": c.ID}
	switch c.Method {
	case "initialize":
		answer["result"] = map[string]any{
			"protocolVersion": c.Params.ProtocolVersion,
			"capabilities":    map[string]any{"tools": map[string]any{}},
			"serverInfo":      map[string]any{"name": Name, "version": "1"},
		}
	case "tools/list":
		answer["result"] = map[string]any{"tools": []any{map[string]any{
			"name": Tool, "description": "Looks a word up.",
			"inputSchema": map[string]any{
				"type":       "object",
				"properties": map[string]any{"q": map[string]any{"type": "string"}},
				"required":   []string{"q"},
			},
		}}}
	case "tools/call":
		q := c.Params.Arguments.Q
		answer["result"] = map[string]any{
			"content": []any{map[string]any{"type": "text", "text": "found " + q}},
			"isError": q == "fail",
		}
	case "ping":
		answer["result"] = map[string]any{}
	default:
		answer["error"] = map[string]any{"code": -32601, "message": "no method " + c.Method}
	}
	return answer
}
