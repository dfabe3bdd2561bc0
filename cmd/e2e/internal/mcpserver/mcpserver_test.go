package mcpserver

import (
	"strings"
	"testing"
)

func TestServe(t *testing.T) {
	in := strings.Join([]string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":"a","method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"lookup","arguments":{"q":"zebra"}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"lookup","arguments":{"q":"fail"}}}`,
		`{"jsonrpc":"2.0","id":4,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":5,"method":"prompts/list"}`,
	}, "\n") + "\n"
	var out strings.Builder
	if err := Serve(strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	want := []string{
		`{"id":0,"jsonrpc":"2.0","result":{"capabilities":{"tools":{}},"protocolVersion":"2025-06-18","serverInfo":{"name":"demo","version":"1"}}}`,
		`{"id":"a","jsonrpc":"2.0","result":{"tools":[{"description":"Looks a word up.","inputSchema":{"properties":{"q":{"type":"string"}},"required":["q"],"type":"object"},"name":"lookup"}]}}`,
		`{"id":2,"jsonrpc":"2.0","result":{"content":[{"text":"found zebra","type":"text"}],"isError":false}}`,
		`{"id":3,"jsonrpc":"2.0","result":{"content":[{"text":"found fail","type":"text"}],"isError":true}}`,
		`{"id":4,"jsonrpc":"2.0","result":{}}`,
		`{"error":{"code":-32601,"message":"no method prompts/list"},"id":5,"jsonrpc":"2.0"}`,
	}
	if len(got) != len(want) {
		t.Fatalf("%d answers, want %d:\n%s", len(got), len(want), out.String())
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("answer %d\n%s, want\n%s", i, got[i], want[i])
		}
	}
	if err := Serve(strings.NewReader("{\n"), &out); err == nil {
		t.Error("a broken request was taken")
	}
}
