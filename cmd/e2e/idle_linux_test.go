package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sleeps is how often each thread of a process has given its processor up by itself:
// once more each time that it was woken.
func sleeps(t *testing.T, pid int) map[string]int {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("the threads of process %d: %v", pid, err)
	}
	counts := map[string]int{}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(text), "\nvoluntary_ctxt_switches:")
		var n int
		if _, err := fmt.Sscan(rest, &n); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		counts[path] = n
	}
	return counts
}

// TestIdleDispatcherSleeps: a dispatcher with nothing to do is woken by nothing but
// its looks at the transcript, and those come 2, 4, 8, 16 and 32 seconds after the
// last event. So of six seconds from the ninth on it sleeps through all, or, on a
// machine on which a look comes late, through all but one.
func TestIdleDispatcherSleeps(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.sensor(t, "chained", "[tool_call]", "file: {path: "+s.log+".2, format: jsonl}", "delivery: at_least_once", "chain: true")
	transcript := filepath.Join(s.home, "transcript.jsonl")
	writeFile(t, transcript, []byte("{\"type\":\"user\"}\n"))
	s.fire(t, strings.Replace(call("s", "t1", 10), `"cwd"`, fmt.Sprintf(`"transcript_path":%q,"cwd"`, transcript), 1))
	s.waitLines(t, 1)
	var info struct{ PID int }
	raw, err := os.ReadFile(filepath.Join(s.dirs.Session("s"), "dispatcher.json"))
	if err == nil {
		err = json.Unmarshal(raw, &info)
	}
	if err != nil {
		t.Fatal(err)
	}
	after(t, 9*time.Second)
	var woken []string
	before := sleeps(t, info.PID)
	for second := 9; second < 15; second++ {
		after(t, time.Second)
		now := sleeps(t, info.PID)
		n := 0
		for thread, count := range now {
			n += count - before[thread]
		}
		if n > 0 {
			woken = append(woken, fmt.Sprintf("%d times in second %d", n, second))
		}
		before = now
	}
	if len(woken) > 1 {
		t.Errorf("an idle dispatcher was woken %s; %s", strings.Join(woken, ", "), s.story())
	}
}
