package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDispatcherThatCannotSave leaves when its session is over, and says so; the
// mark stays, and the next dispatcher of another session has its spool emptied.
func TestDispatcherThatCannotSave(t *testing.T) {
	for name, block := range map[string]func(s site) string{
		"counters": func(s site) string { return filepath.Join(s.dirs.State, "counters") },
		"cursors":  func(s site) string { return filepath.Join(s.dirs.Session("s"), "cursors", "x") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, "WAYS_DISPATCHER_IDLE=150ms")
			inWay := block(s)
			if err := os.MkdirAll(filepath.Dir(inWay), 0o700); err != nil {
				t.Fatal(err)
			}
			writeFile(t, inWay, nil)
			s.fire(t, call("s", "t1", 10))
			s.waitLines(t, 1)
			s.finish(t, "s")
			log, err := os.ReadFile(filepath.Join(s.dirs.Session("s"), "dispatcher.log"))
			if err != nil || !strings.Contains(string(log), "cannot leave in order, so it leaves as it is") {
				t.Errorf("%v: %s", err, log)
			}
			told, err := os.ReadFile(filepath.Join(s.dirs.State, "events.jsonl"))
			if err != nil || strings.Count(string(told), `"dispatcher_end"`) != 1 || !strings.Contains(string(told), `"reason":"failed"`) {
				t.Errorf("%v: %s", err, told)
			}
			if _, err := os.Stat(s.pendingMark("s")); err != nil {
				t.Error(err)
			}
			if err := os.Remove(inWay); err != nil {
				t.Fatal(err)
			}
			if name == "cursors" {
				if err := os.Remove(filepath.Dir(inWay)); err != nil {
					t.Fatal(err)
				}
			}
			s.fire(t, call("another", "t2", 10))
			s.finish(t, "another")
			eventually(t, exitLimit, func() bool {
				_, err := os.Stat(s.pendingMark("s"))
				return os.IsNotExist(err)
			}, s.story)
		})
	}
}
