package meter_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"ways/actors/delivery"
	"ways/actors/meter"
	"ways/actors/target"
	"ways/hooks/spool"
	"ways/metrics/counters"
	"ways/metrics/events"
)

// start runs a meter for a session; stop returns when it has ended.
func start(t *testing.T, state string) (m *meter.Meter, stop func()) {
	t.Helper()
	dir := filepath.Join(state, "sessions", "s1")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	m = meter.New(dir, "s1", events.NewLog(state), zerolog.Nop())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Serve(ctx) }()
	return m, func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Serve: %v", err)
		}
	}
}

// Everything that happens, once each.
func everything(ctx context.Context, m *meter.Meter) {
	m.Happened(ctx, events.DispatcherStart, "")
	m.Describe(ctx, "/p", map[string]string{"a/b": "file ~/x"})
	m.Read(ctx, 1, "tool_call", "hook")
	m.Read(ctx, 1, "tool_call", "hook") // again after a restart
	m.Read(ctx, 2, "tool_result", "transcript")
	m.Damaged(ctx)
	m.Unwritten(ctx, 4)
	for i := range 9 {
		m.Matched(ctx, "a/b", uint64(i+1))
	}
	m.Delivered(ctx, "a/b", delivery.Arrival{Masked: map[string]int{"jwt": 2}, Took: 5 * time.Millisecond, Lag: 2 * time.Second})
	loss := func(k target.Kind, reason string) delivery.Loss {
		return delivery.Loss{Kind: k, Reason: reason, Words: "words of " + reason, Seq: 7, Took: time.Second}
	}
	m.Lost(ctx, "a/b", loss(target.Failed, "status_503"))
	m.Lost(ctx, "a/b", loss(target.Refused, "status_400"))
	m.Lost(ctx, "a/b", loss(target.TimedOut, "headers"))
	m.Lost(ctx, "a/b", loss(target.Killed, "timeout"))
	m.Retrying(ctx, "a/b", loss(target.Failed, "connect"), time.Minute)
	m.Retrying(ctx, "a/b", loss(target.Unauthorized, "status_401"), time.Minute)
	m.Dead(ctx, "a/b", loss(target.Refused, "expired"))
	m.Dropped(ctx, "a/b", "queue_full", 3)
	m.Spooled(ctx, "a/b", 9)
	m.Waiting(ctx, "a/b", 2, time.Unix(100, 0))
	m.Panicked(ctx, "a/b", "the rule's actor panicked: nil map")
	m.Happened(ctx, events.DispatcherEnd, "idle")
}

// Every documented event is written, with documented fields and no others.
func TestEventsAreTheDocumentedOnes(t *testing.T) {
	state := t.TempDir()
	m, stop := start(t, state)
	everything(t.Context(), m)
	stop()
	documented := map[string][]string{}
	for _, k := range events.Kinds() {
		documented[k.Name] = append(k.Fields, "ts", "event")
	}
	data, err := os.ReadFile(filepath.Join(state, events.Name))
	if err != nil {
		t.Fatal(err)
	}
	seen, fields := map[string]bool{}, map[string]bool{}
	before := ""
	for line := range bytes.Lines(data) {
		var e map[string]string
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		name := e["event"]
		seen[name] = true
		for f := range e {
			fields[f] = true
			if !slices.Contains(documented[name], f) {
				t.Errorf("%s has the field %s, which docs/events.md does not give it", name, f)
			}
		}
		if e["ts"] < before || e["session"] != "s1" || e["project"] == "" && name != events.DispatcherStart {
			t.Errorf("%s", line)
		}
		before = e["ts"]
	}
	if want := slices.Sorted(maps.Keys(documented)); !slices.Equal(slices.Sorted(maps.Keys(seen)), want) {
		t.Errorf("written: %q, documented: %q", slices.Sorted(maps.Keys(seen)), want)
	}
	for _, f := range events.Fields() {
		if !fields[f.Name] {
			t.Errorf("no event has the field %s", f.Name)
		}
	}
}

func TestCounts(t *testing.T) {
	state := t.TempDir()
	m, stop := start(t, state)
	everything(t.Context(), m)
	stop()
	sum, err := counters.NewStore(state).Sum()
	if err != nil {
		t.Fatal(err)
	}
	r := *sum.Rules["a/b"]
	if sum.Records != 2 || sum.Hooks["tool_call"] != 1 || sum.Transcript["tool_result"] != 1 || sum.Damaged != 1 || sum.Unwritten != 4 {
		t.Errorf("%+v", sum.Counts)
	}
	if r.Matched != 9 || r.Delivered != 1 || r.Failed != 1 || r.Refused != 1 || r.TimedOut != 1 || r.Killed != 1 || r.Retried != 2 ||
		r.Dead != 1 || r.Dropped != 3 || r.Spooled != 1 || r.Panics != 1 || r.Waiting != 2 || r.Redacted["jwt"] != 2 {
		t.Errorf("%+v", r)
	}
	if r.Duration.Count != 8 || r.Lag.Count != 1 || r.Lag.UpTo(1) != 1 || r.Lag.UpTo(0) != 0 {
		t.Errorf("durations %+v, lag %+v", r.Duration, r.Lag)
	}
	if r.LastError != "the rule's actor panicked: nil map" || r.PausedSince.IsZero() || r.Target != "file ~/x" {
		t.Errorf("%+v", r)
	}
	if r.By[counters.Retried]["status_401"] != 1 || r.By[counters.Dropped]["queue_full"] != 3 || r.By[counters.Dead]["expired"] != 1 {
		t.Errorf("%+v", r.By)
	}
}

// A later dispatcher of the session goes on: from the marks of one that was
// killed, and from the cursors that one that left has written.
func TestNextDispatcherGoesOn(t *testing.T) {
	state := t.TempDir()
	m, stop := start(t, state)
	m.Matched(t.Context(), "a/b", 1)
	m.Read(t.Context(), 1, "tool_call", "hook")
	stop()
	dir := filepath.Join(state, "sessions", "s1")
	if err := spool.SaveCursors(dir, spool.Cursors{Read: spool.Cursor{Seq: 1}, Rules: map[string]spool.Cursor{"a/b": {Seq: 1, RuleSeq: 1}}}); err != nil {
		t.Fatal(err)
	}
	m, stop = start(t, state)
	for _, n := range []uint64{1, 2} {
		m.Matched(t.Context(), "a/b", n)
		m.Read(t.Context(), n, "tool_call", "hook")
	}
	stop()
	sum, err := counters.NewStore(state).Sum()
	if err != nil {
		t.Fatal(err)
	}
	if sum.Records != 2 || sum.Rules["a/b"].Matched != 2 || len(sum.Files) != 0 {
		t.Errorf("%+v", sum)
	}
}

// Events that could not be written come when they can.
func TestEventsAreKept(t *testing.T) {
	state := t.TempDir()
	path := filepath.Join(state, events.Name)
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	m, stop := start(t, state)
	m.Dropped(t.Context(), "a/b", "queue_full", 3)
	if err := m.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	stop()
	data, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(data, []byte(`"event":"sensor_drop","sensor":"a","rule":"b","session":"s1","count":"3","reason":"queue_full"`)) {
		t.Errorf("%s, %v", data, err)
	}
}
