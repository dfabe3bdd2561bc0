package exposition_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"ways/metrics/counters"
	"ways/metrics/exposition"
)

// full is a snapshot in which everything has a value.
func full() exposition.Snapshot {
	now := time.Unix(1000, 0)
	c := counters.NewCounts(now)
	r := c.Rule("audit/log")
	*r = counters.Rule{
		Matched: 20, Delivered: 9, Failed: 3, Refused: 2, TimedOut: 1, Killed: 1, Dropped: 4, Dead: 1, Retried: 5, Spooled: 2, Panics: 1,
		Waiting: 7, WaitingSince: time.Unix(940, 0), PausedSince: time.Unix(990, 0), Redacted: map[string]uint64{"jwt": 3},
	}
	r.Count(counters.Failed, "status_503", 2)
	r.Count(counters.Failed, "status_500", 1)
	r.Count(counters.Refused, "status_400", 2)
	r.Count(counters.Dropped, "queue_full", 4)
	r.Count(counters.Dead, "expired", 1)
	r.Count(counters.Retried, "exit_3", 4)
	r.Count(counters.Retried, "exit_17", 1)
	r.Duration.Observe(3 * time.Millisecond)
	r.Lag.Observe(2 * time.Second)
	c.Hooks = map[string]uint64{"tool_call": 11}
	c.Transcript = map[string]uint64{"assistant_response": 2}
	c.Damaged, c.Unwritten = 1, 2
	return exposition.Snapshot{
		Sum: counters.Sum{Counts: c, Unreadable: []error{errors.New("x")}}, Now: now, Version: "v1.2.3", HookRefusals: map[string]uint64{"too_large": 2},
		DeadLetters: map[string]int{"audit/log": 1}, SpoolBytes: 4096, Dispatchers: 2,
	}
}

func text(t *testing.T, s exposition.Snapshot) string {
	t.Helper()
	var b bytes.Buffer
	if err := exposition.Write(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestText(t *testing.T) {
	got := text(t, full())
	for _, want := range []string{
		`ways_records_matched_total{rule="log",sensor="audit"} 20`,
		`ways_records_delivered_total{rule="log",sensor="audit"} 9`,
		`ways_records_failed_total{reason="status_5xx",rule="log",sensor="audit"} 3`,
		`ways_records_refused_total{reason="status_4xx",rule="log",sensor="audit"} 2`,
		`ways_records_timed_out_total{rule="log",sensor="audit"} 1`,
		`ways_records_killed_total{rule="log",sensor="audit"} 1`,
		`ways_records_dropped_total{reason="queue_full",rule="log",sensor="audit"} 4`,
		`ways_records_dead_total{reason="expired",rule="log",sensor="audit"} 1`,
		`ways_dispatch_retries_total{reason="exit",rule="log",sensor="audit"} 5`,
		`ways_secrets_redacted_total{kind="jwt",rule="log",sensor="audit"} 3`,
		`ways_queue_records{rule="log",sensor="audit"} 7`,
		`ways_oldest_unsent_age_seconds{rule="log",sensor="audit"} 60`,
		`ways_rule_paused{rule="log",sensor="audit"} 1`,
		`ways_rule_falls_behind_total{rule="log",sensor="audit"} 2`,
		`ways_rule_panics_total{rule="log",sensor="audit"} 1`,
		`ways_dead_letters{rule="log",sensor="audit"} 1`,
		`ways_hook_events_total{section="tool_call"} 11`,
		`ways_other_records_total{section="assistant_response"} 2`,
		`ways_hook_refusals_total{reason="too_large"} 2`,
		`ways_spool_damaged_total 1`, `ways_records_unwritten_total 2`, `ways_spool_bytes 4096`, `ways_dispatchers_running 2`,
		`ways_unreadable_files 1`, `ways_build_info{version="v1.2.3"} 1`,
		`ways_dispatch_duration_seconds_bucket{rule="log",sensor="audit",le="0.001953125"} 0`,
		`ways_dispatch_duration_seconds_bucket{rule="log",sensor="audit",le="0.00390625"} 1`,
		`ways_dispatch_duration_seconds_bucket{rule="log",sensor="audit",le="+Inf"} 1`,
		`ways_dispatch_duration_seconds_sum{rule="log",sensor="audit"} 0.003`,
		`ways_delivery_lag_seconds_bucket{rule="log",sensor="audit",le="1"} 0`,
		`ways_delivery_lag_seconds_bucket{rule="log",sensor="audit",le="2"} 1`,
		`ways_delivery_lag_seconds_count{rule="log",sensor="audit"} 1`,
	} {
		if !strings.Contains(got, "\n"+want+"\n") {
			t.Errorf("no line %s", want)
		}
	}
	// Every metric of the table is there, with help and the type it is said to have.
	for _, m := range exposition.Metrics() {
		if !strings.Contains(got, fmt.Sprintf("# HELP %s %s\n# TYPE %s %s\n", m.Name, m.Help, m.Name, m.Type)) {
			t.Errorf("%s is not exposed as the table says", m.Name)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

// Whatever the files hold, there are no more series than rules and words of ours,
// and every label is a plain one (BR-67).
func TestLabelsAreBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	c := counters.NewCounts(now)
	for i := range 10_000 {
		hostile := fmt.Sprintf("mcp__%d\"}\n# \x1b[31m{", i)
		r := c.Rule(hostile + "/" + hostile)
		r.Matched = 1
		r.Redacted = map[string]uint64{hostile: 1}
		r.Count(counters.Failed, hostile, 1)
		c.Rule("a/b").Count(counters.Failed, fmt.Sprintf("exit_%d", i), 1)
		c.Rule("a/b").Count(counters.Failed, fmt.Sprintf("status_%d", i), 1)
		if c.Hooks == nil {
			c.Hooks = map[string]uint64{}
		}
		c.Hooks[hostile] = 1
	}
	got := text(t, exposition.Snapshot{Sum: counters.Sum{Counts: c}, Now: now, HookRefusals: c.Hooks, DeadLetters: map[string]int{"\xff/x": 1, "\n/x": 2}})
	series := 0
	for line := range strings.Lines(got) {
		if strings.ContainsAny(line, "\x1b\"{}") && strings.Contains(line, "mcp__") {
			t.Fatalf("hostile line %q", line)
		}
		if !strings.HasPrefix(line, "#") {
			series++
		}
	}
	if series > 200 {
		t.Errorf("%d series", series)
	}
	for _, want := range []string{
		`ways_records_matched_total{rule="other",sensor="other"} 10000`, `ways_records_failed_total{reason="exit",rule="b",sensor="a"} 10000`,
		`ways_hook_events_total{section="other"} 10000`, `ways_dead_letters{rule="x",sensor="other"} 3`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no line %s", want)
		}
	}
}

func scrape(t *testing.T, url, accept string) (string, *http.Response) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body), resp
}

func TestFormats(t *testing.T) {
	srv := httptest.NewServer(exposition.Handler(func() (exposition.Snapshot, error) { return full(), nil }, func(err error) { t.Error(err) }))
	defer srv.Close()
	for _, row := range []struct{ accept, kind, has string }{
		{"", "text/plain; version=0.0.4", "\nways_spool_bytes 4096\n"},
		{"application/openmetrics-text; version=1.0.0", "application/openmetrics-text; version=1.0.0", "# TYPE ways_records_matched counter\n"},
	} {
		body, resp := scrape(t, srv.URL, row.accept)
		if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), row.kind) || !strings.Contains(body, row.has) {
			t.Errorf("accept %q: %d %s\n%s", row.accept, resp.StatusCode, resp.Header.Get("Content-Type"), body)
		}
		if open := strings.HasSuffix(body, "# EOF\n"); open != strings.Contains(row.kind, "openmetrics") {
			t.Errorf("accept %q: EOF %v", row.accept, open)
		}
	}
	body, resp := scrape(t, srv.URL, "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	dec := expfmt.NewDecoder(strings.NewReader(body), expfmt.ResponseFormat(resp.Header))
	var names []string
	for {
		var f dto.MetricFamily
		err := dec.Decode(&f)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, f.GetName())
		if f.GetName() == "ways_dispatch_duration_seconds" {
			h := f.GetMetric()[0].GetHistogram()
			// 3 ms lies in (2^(-67/8), 2^(-66/8)]... as bucket -67 of schema 3.
			if h.GetSchema() != 3 || len(h.GetPositiveSpan()) != 1 || h.GetPositiveSpan()[0].GetOffset() != -67 || len(h.GetBucket()) != 24 {
				t.Errorf("histogram is %v", h)
			}
		}
		if !model.LegacyValidation.IsValidMetricName(f.GetName()) {
			t.Errorf("name %q", f.GetName())
		}
	}
	if !slices.Contains(names, "ways_dispatch_duration_seconds") {
		t.Errorf("names %q", names)
	}
}

// A sum that cannot be had is an error, not a smaller sum.
func TestFailure(t *testing.T) {
	var told error
	srv := httptest.NewServer(exposition.Handler(func() (exposition.Snapshot, error) {
		return exposition.Snapshot{}, errors.New("the totals are locked")
	}, func(err error) { told = err }))
	defer srv.Close()
	body, resp := scrape(t, srv.URL, "")
	if resp.StatusCode != http.StatusInternalServerError || !strings.Contains(body, "the totals are locked") || told == nil {
		t.Errorf("%d %q, told %v", resp.StatusCode, body, told)
	}
}
