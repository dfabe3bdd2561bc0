package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ways/metrics/events"
)

// metric is the value of one series in what `ways metrics` prints; 0 when it is
// not there.
func metric(t *testing.T, text []byte, series string) float64 {
	t.Helper()
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), series+" "); ok {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			return n
		}
	}
	return 0
}

// checkEvents compares what a test made the product write to the event log with
// what docs/events.md is made from: no event and no field is undocumented.
func (s site) checkEvents(t *testing.T) {
	t.Helper()
	documented := map[string][]string{}
	for _, k := range events.Kinds() {
		documented[k.Name] = append(k.Fields, "ts", "event")
	}
	if info, err := os.Stat(s.dirs.State); err != nil || !info.IsDir() {
		return // a test of places where nothing can be written
	}
	for _, line := range logLines(t, filepath.Join(s.dirs.State, events.Name)) {
		var e map[string]string
		if err := json.Unmarshal(line, &e); err != nil {
			t.Errorf("the event log: %v: %.200s", err, line)
		}
		for name := range e {
			if !slices.Contains(documented[e["event"]], name) {
				t.Errorf("docs/events.md has no field %s of the event %s", name, e["event"])
			}
		}
	}
}

// The counters that Prometheus reads only grow and end up exact, while sessions
// come, go and come back and their dispatchers are killed in the middle.
func TestMetricsOutliveSessions(t *testing.T) {
	s := newSite(t, "WAYS_DISPATCHER_IDLE=200ms")
	series := []string{
		`ways_records_matched_total{rule="log",sensor="all"}`, `ways_records_delivered_total{rule="log",sensor="all"}`,
		`ways_hook_events_total{section="tool_call"}`, `ways_dispatch_duration_seconds_count{rule="log",sensor="all"}`,
	}
	before := map[string]float64{}
	look := func() []byte {
		text := s.run(t, "metrics")
		for _, name := range series {
			n := metric(t, text, name)
			if n < before[name] {
				t.Errorf("%s went from %v to %v", name, before[name], n)
			}
			before[name] = n
		}
		return text
	}
	const rounds, sessions, calls = 3, 3, 4
	sent := map[string]bool{}
	killed := 0
	for round := range rounds {
		for i := range sessions {
			session := fmt.Sprintf("s%d", i)
			for c := range calls {
				id := fmt.Sprintf("toolu_%d_%d_%d", round, i, c)
				sent[id] = true
				s.fire(t, call(session, id, 50))
			}
			if i == round {
				for _, d := range s.dispatchers(t, session) {
					_ = syscall.Kill(d.pid, syscall.SIGKILL)
					killed++
				}
				s.waitGone(t, session)
			}
			look()
		}
		if round == 1 { // all leave, and come back
			for i := range sessions {
				s.waitGone(t, fmt.Sprintf("s%d", i))
			}
		}
	}
	// What a killed dispatcher had left is adopted by the next one of its session.
	for i := range sessions {
		id := fmt.Sprintf("toolu_last_%d", i)
		sent[id] = true
		s.fire(t, call(fmt.Sprintf("s%d", i), id, 50))
	}
	s.waitCalls(t, sent)
	for i := range sessions {
		s.waitGone(t, fmt.Sprintf("s%d", i))
	}
	text := look()
	for _, name := range []string{series[0], series[2]} {
		if before[name] != float64(len(sent)) {
			t.Errorf("%s is %v, %d were sent", name, before[name], len(sent))
		}
	}
	// What a killed dispatcher had delivered since it saved its cursors last was
	// delivered, and counted, again; the file took it once.
	n := float64(len(lines(t, s.log)))
	if again := before[series[1]] - n; n != float64(len(sent)) || again < 0 || again > float64(killed*rounds*calls) {
		t.Errorf("%v delivered, %v lines, %d killed", before[series[1]], n, killed)
	}
	if n := metric(t, text, "ways_dispatchers_running"); n != 0 {
		t.Errorf("%v dispatchers run", n)
	}
	if left, err := filepath.Glob(filepath.Join(s.dirs.State, "counters", "*")); err != nil || len(left) > 0 {
		t.Errorf("counters that are in no total: %v, %v", left, err)
	}
	// All of it is past: no session's directory is opened for the sum.
	var view struct {
		Past     int   `json:"past_sessions"`
		Sessions []any `json:"sessions"`
	}
	if err := json.Unmarshal(s.run(t, "status", "--json"), &view); err != nil || view.Past != sessions || len(view.Sessions) != 0 {
		t.Errorf("%+v, %v", view, err)
	}
}

// started is a verb that runs on, and the lines it prints.
type started struct {
	cmd   *exec.Cmd
	lines *bufio.Reader
	errs  *bytes.Buffer
	out   io.ReadCloser
}

func (s site) start(t *testing.T, args ...string) started {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.ways, args...)
	cmd.Env, cmd.Dir = s.env, s.home
	errs := &bytes.Buffer{}
	cmd.Stderr = errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return started{cmd, bufio.NewReader(out), errs, out}
}

func (s started) line(t *testing.T) []byte {
	t.Helper()
	line, err := s.lines.ReadBytes('\n')
	if err != nil {
		t.Fatalf("%q: %v; it said %s", line, err, s.errs)
	}
	return line
}

// ways logs -f | jq: lines of all sessions as they come, JSON each, and a quiet end
// when the reader leaves.
func TestLogsFollowed(t *testing.T) {
	s := newSite(t)
	follow := s.start(t, "logs", "-f", "--level", "info")
	for _, session := range []string{"one", "two"} {
		s.fire(t, call(session, "toolu_"+session, 50))
		for {
			var l struct{ Session, Message, Level, Time string }
			if err := json.Unmarshal(follow.line(t), &l); err != nil {
				t.Fatal(err)
			}
			if _, err := time.Parse(time.RFC3339Nano, l.Time); err != nil || l.Level == "" {
				t.Errorf("%+v: %v", l, err)
			}
			if l.Session == session && l.Message == "dispatcher starts" {
				break
			}
		}
	}
	follow.out.Close() // nobody reads any more, and nothing is written either
	if err := follow.cmd.Wait(); err != nil || follow.errs.Len() > 0 {
		t.Errorf("%v, %s", err, follow.errs)
	}
}

// status --watch goes on until Ctrl-C, and ends well.
func TestStatusWatched(t *testing.T) {
	s := newSite(t)
	watch := s.start(t, "status", "--watch", "--json")
	for range 2 {
		var view struct {
			Wiring struct{ Complete *bool }
		}
		if err := json.Unmarshal(watch.line(t), &view); err != nil || view.Wiring.Complete == nil {
			t.Fatalf("%+v, %v", view, err)
		}
	}
	if err := watch.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, watch.lines); err != nil {
		t.Error(err)
	}
	if err := watch.cmd.Wait(); err != nil || watch.errs.Len() > 0 {
		t.Errorf("%v, %s", err, watch.errs)
	}
}

// metrics serve says where, answers, and ends well on SIGTERM.
func TestMetricsServed(t *testing.T) {
	s := newSite(t)
	serve := s.start(t, "metrics", "serve", "--listen", "127.0.0.1:0")
	url, ok := strings.CutPrefix(strings.TrimSpace(string(serve.line(t))), "serving ")
	if !ok {
		t.Fatalf("it says %q", url)
	}
	if out, err := exec.CommandContext(t.Context(), s.ways, "metrics", "serve", "--listen", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/metrics")).CombinedOutput(); err == nil {
		t.Errorf("two listen at one address: %s", out)
	}
	if err := serve.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := serve.cmd.Wait(); err != nil || serve.errs.Len() > 0 {
		t.Errorf("%v, %s", err, serve.errs)
	}
}
