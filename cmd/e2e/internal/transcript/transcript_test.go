package transcript

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRead(t *testing.T) {
	got, err := Read(write(t,
		`{"type":"mode","mode":"normal"}`,
		`{"type":"user","message":{"role":"user","content":"a prompt"}}`,
		`{"type":"assistant","message":{"content":[{"type":"text","text":"x"},{"type":"tool_use","id":"t1","name":"Bash","input":{"n":9007199254740993}}]}}`,
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":[{"type":"text"}]}]}}`,
		`{"type":"some-later-kind","message":null}`,
		`{"type":"api-request-blob","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1"}]}}`,
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t2","content":"`+strings.Repeat("z", 1<<20)+`"}]}}`,
	))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Calls) != 1 || got.Calls[0].ID != "t1" || got.Calls[0].Name != "Bash" || string(got.Calls[0].Input) != `{"n":9007199254740993}` {
		t.Errorf("calls %+v", got.Calls)
	}
	if len(got.Results) != 2 || got.Results[0] != (Result{ID: "t1", Failed: true}) || got.Results[1] != (Result{ID: "t2"}) {
		t.Errorf("results %+v", got.Results)
	}
}

func TestReadRefuses(t *testing.T) {
	if _, err := Read(write(t, `{"type":"mode"}`, `{"type":`)); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a torn line: %v", err)
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// Every recorded transcript parses, and each result in it has its call.
func TestReadRecorded(t *testing.T) {
	paths, err := filepath.Glob("../../../../testdata/claude-code/*/*/*transcript.jsonl")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recorded transcripts: %v", err)
	}
	for _, path := range paths {
		got, err := Read(path)
		if err != nil {
			t.Error(err)
			continue
		}
		calls := map[string]bool{}
		for _, c := range got.Calls {
			calls[c.ID] = true
		}
		if len(calls) == 0 {
			t.Errorf("%s: no calls", path)
		}
		for _, r := range got.Results {
			if !calls[r.ID] {
				t.Errorf("%s: result of %s without a call", path, r.ID)
			}
		}
	}
}
