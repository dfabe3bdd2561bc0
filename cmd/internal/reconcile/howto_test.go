package reconcile

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// blocks lists the fenced blocks of a language in the how-to.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "howto-wire.md"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, part := range strings.Split(string(text), "```"+language+"\n")[1:] {
		block, _, ok := strings.Cut(part, "\n```\n")
		if !ok {
			t.Fatal("a block does not end")
		}
		found = append(found, block)
	}
	return found
}

// Every command of the how-to runs, in the page's order, and in the end the
// home is as if none had, but for the last one, which wires it.
func TestHowtoCommandsRun(t *testing.T) {
	h := newHome(t)
	h.write("{}\n", "other", "settings.json")
	h.write("", "project", "README")
	commands := blocks(t, "sh")
	if len(commands) != 5 {
		t.Fatalf("%d blocks of commands, want 5", len(commands))
	}
	for _, block := range commands {
		if got := h.start("/bin/sh", "-eu", "-c", block); got.code != 0 {
			t.Fatalf("%s\nended with %+v", block, got)
		}
	}
	if got := h.read(h.path("other", "settings.json")); got != "{}\n" {
		t.Errorf("other/settings.json is %q", got)
	}
	if _, err := os.Lstat(h.path("project", ".claude")); err == nil {
		t.Error("project/.claude is still there")
	}
	if len(h.commands(h.path(".claude", "settings.json"))) != 10 {
		t.Error("the last command did not wire the home")
	}
}

// The entry on the page is the entry in the file.
func TestHowtoShowsTheEntry(t *testing.T) {
	shown := blocks(t, "json")
	if len(shown) != 1 {
		t.Fatalf("%d JSON blocks, want 1", len(shown))
	}
	h := newHome(t)
	h.run()
	var settings struct {
		Hooks map[string][]struct{ Hooks []any }
	}
	if err := json.Unmarshal([]byte(h.read(h.path(".claude", "settings.json"))), &settings); err != nil {
		t.Fatal(err)
	}
	var want any
	if err := json.Unmarshal([]byte(strings.ReplaceAll(shown[0], "/usr/local/bin/ways", h.ways)), &want); err != nil {
		t.Fatal(err)
	}
	for event, groups := range settings.Hooks {
		if got := groups[0].Hooks[0]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, the page shows %v", event, got, want)
		}
	}
}
