package transcript_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// BenchmarkSession is a session of 10,000 turns, whose transcript grows to 200 MB.
// It reports what one of the first and one of the last thousand turns costs,
// hooks' appends included. Run it with -benchtime 1x.
func BenchmarkSession(b *testing.B) {
	const turns, batch = 10_000, 1000
	for b.Loop() {
		r := newRig(b)
		r.start()
		r.begin("p")
		filler := strings.Repeat("a word of a result ", 1000)
		var first, last time.Duration
		began := time.Now()
		for i := range turns {
			id := fmt.Sprint(i)
			r.prompt("q"+id, "go "+id)
			r.write(
				says("m"+id, "a"+id, "tool_use", textBlock("before "+id)), says("m"+id, "c"+id, "tool_use", callBlock("t"+id)),
				answered("r"+id, "q"+id, "t"+id, filler, false, nil), says("n"+id, "b"+id, "end_turn", textBlock("done "+id)),
			)
			r.hook("PreToolUse", map[string]any{"prompt_id": "q" + id, "tool_use_id": "t" + id, "tool_name": "Bash", "tool_input": map[string]any{}})
			r.hook("PostToolUse", map[string]any{"prompt_id": "q" + id, "tool_use_id": "t" + id, "tool_name": "Bash", "tool_response": "ok"})
			r.stopHook("q"+id, "done "+id)
			if i%20 == 19 {
				if _, err := r.actor.AtRest(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
			switch i {
			case batch - 1:
				first = time.Since(began)
			case turns - batch - 1:
				began = time.Now()
			case turns - 1:
				last = time.Since(began)
			}
		}
		r.rest()
		r.stop()
		if n := len(r.shown()); n != turns {
			b.Fatalf("%d records from the transcript, want %d", n, turns)
		}
		b.ReportMetric(float64(first.Microseconds())/batch, "µs/first-turn")
		b.ReportMetric(float64(last.Microseconds())/batch, "µs/last-turn")
	}
}
