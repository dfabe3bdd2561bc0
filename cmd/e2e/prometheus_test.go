//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// promtool runs the program of that name, which comes with Prometheus.
func promtool(t *testing.T, stdin []byte, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "promtool", args...)
	cmd.Stdin = bytes.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// What is exposed is as Prometheus wants it: names, types, help, units.
func TestPromtoolChecksMetrics(t *testing.T) {
	s := newSite(t, "WAYS_DISPATCHER_IDLE=200ms")
	s.sensor(t, "broken", "[tool_call]", "http: {url: 'http://127.0.0.1:9/'}")
	s.fire(t, call("one", "toolu_1", 50))
	s.fire(t, "[]")
	s.waitGone(t, "one")
	text := s.run(t, "metrics")
	if metric(t, text, `ways_records_failed_total{reason="connect",rule="log",sensor="broken"}`) != 1 {
		t.Errorf("no failure in it:\n%s", text)
	}
	promtool(t, text, "check", "metrics")
}

// The alert rules are valid, and fire when they should; the dashboard's queries
// are valid.
func TestPromtoolChecksRules(t *testing.T) {
	promtool(t, nil, "check", "rules", "../../docs/alerts.yaml")
	promtool(t, nil, "test", "rules", "testdata/alerts_test.yaml")

	raw, err := os.ReadFile("../../docs/grafana-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(raw, &board); err != nil {
		t.Fatal(err)
	}
	// As recording rules, with a value for each of Grafana's variables.
	fill := strings.NewReplacer("$__rate_interval", "5m", "$sensor", ".*", "$rule", ".*")
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			rules = append(rules, rule{fmt.Sprintf("query_%d", len(rules)), fill.Replace(target.Expr)})
		}
	}
	text, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}}) // JSON is YAML
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "queries.yaml")
	writeFile(t, path, text)
	promtool(t, nil, "check", "rules", path)
}

// promServer is a running Prometheus.
type promServer struct{ url string }

// newPrometheus starts Prometheus, which scrapes an address four times a second.
func newPrometheus(t *testing.T, target string) promServer {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	writeFile(t, config, fmt.Appendf(nil, `global: {scrape_interval: 250ms, scrape_timeout: 250ms, evaluation_interval: 1s}
scrape_configs: [{job_name: ways, static_configs: [{targets: [%q]}]}]
`, target))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	var said bytes.Buffer
	cmd := exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--enable-feature=native-histograms", "--log.level=warn")
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatalf("prometheus: %v; .ci/run installs it", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("prometheus said:\n%s", said.String())
		}
	})
	p := promServer{"http://" + address}
	eventually(t, time.Minute, func() bool {
		resp, err := http.Get(p.url + "/-/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, func() string { return "Prometheus is not ready" })
	return p
}

// query evaluates an expression now: a value for each rule that it is about, under
// "" when it is about none.
func (p promServer) query(t *testing.T, expr string) map[string]float64 {
	t.Helper()
	resp, err := http.PostForm(p.url+"/api/v1/query", url.Values{"query": {expr}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Status string
		Error  string
		Data   struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s: %v %s", expr, err, answer.Error)
	}
	got := map[string]float64{}
	for _, r := range answer.Data.Result {
		id := r.Metric["sensor"]
		if r.Metric["rule"] != "" {
			id += "/" + r.Metric["rule"]
		}
		text, _ := r.Value[1].(string)
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("%s: %v", expr, err)
		}
		got[id] += n
	}
	return got
}

// A real Prometheus scrapes while sessions come and go and dispatchers are killed:
// it has a rate for each rule, sees no counter go back, and ends up with the exact
// numbers.
func TestPrometheusScrapes(t *testing.T) {
	s := newSite(t, "WAYS_DISPATCHER_IDLE=300ms")
	s.sensor(t, "calls", "[tool_call]", s.to("calls.jsonl"), "where: {data.name: Bash}")
	s.sensor(t, "never", "[tool_call]", "http: {url: 'http://127.0.0.1:9/'}")
	serve := s.start(t, "metrics", "serve", "--listen", "127.0.0.1:0")
	address := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(string(serve.line(t))), "serving http://"), "/metrics")
	prom := newPrometheus(t, address)
	// The rules' series begin at what they are when they are scraped first; a rate
	// counts from there.
	s.fire(t, call("first", "toolu_first", 50))
	eventually(t, exitLimit, func() bool { return prom.query(t, "ways_records_matched_total")["all/log"] >= 1 },
		func() string { return "the first record is not scraped" })

	const rounds, sessions, calls = 4, 3, 5
	sent := map[string]bool{"toolu_first": true}
	for round := range rounds {
		for i := range sessions {
			session := fmt.Sprintf("s%d-%d", round/2, i) // each comes twice
			for c := range calls {
				id := fmt.Sprintf("toolu_%d_%d_%d", round, i, c)
				sent[id] = true
				s.fire(t, call(session, id, 50))
			}
			if i == 0 && round%2 == 0 { // comes again, and goes on where it was
				for _, d := range s.dispatchers(t, session) {
					_ = syscall.Kill(d.pid, syscall.SIGKILL)
				}
			}
		}
		after(t, 500*time.Millisecond) // a scrape or two of each stage
	}
	s.waitCalls(t, sent)
	for round := range rounds {
		for i := range sessions {
			s.waitGone(t, fmt.Sprintf("s%d-%d", round/2, i))
		}
	}
	s.waitGone(t, "first")

	want := s.status(t)
	n := float64(len(sent))
	for _, rule := range []string{"all/log", "calls/log", "never/log"} {
		if want[rule].Matched != uint64(len(sent)) {
			t.Errorf("%s matched %d of %v", rule, want[rule].Matched, n)
		}
	}
	eventually(t, exitLimit, func() bool {
		got := prom.query(t, "ways_records_matched_total")
		return got["all/log"] == n && prom.query(t, "ways_dispatchers_running")[""] == 0
	}, func() string { return fmt.Sprint(prom.query(t, "ways_records_matched_total")) })
	for expr, value := range map[string]func(c counted) float64{
		"ways_records_delivered_total":                          func(c counted) float64 { return float64(c.Delivered) },
		"sum by (sensor, rule) (ways_records_failed_total)":     func(c counted) float64 { return float64(c.Failed) },
		"ways_queue_records":                                    func(counted) float64 { return 0 },
		"histogram_count(ways_dispatch_duration_seconds)":       func(c counted) float64 { return float64(c.Delivered + c.Failed) },
		"histogram_count(ways_delivery_lag_seconds)":            func(c counted) float64 { return float64(c.Delivered) },
		"resets(ways_records_matched_total[10m])":               func(counted) float64 { return 0 },
		"resets(ways_records_delivered_total[10m])":             func(counted) float64 { return 0 },
		"resets(ways_dispatch_duration_seconds[10m])":           func(counted) float64 { return 0 },
		"sum_over_time(ways_rule_panics_total[10m])":            func(counted) float64 { return 0 },
		"ways_oldest_unsent_age_seconds + ways_rule_paused * 1": func(counted) float64 { return 0 },
	} {
		got := prom.query(t, expr)
		for _, rule := range []string{"all/log", "calls/log", "never/log"} {
			if w := value(want[rule]); got[rule] != w {
				t.Errorf("%s of %s is %v, want %v", expr, rule, got[rule], w)
			}
		}
	}
	rates := prom.query(t, "sum by (sensor, rule) (rate(ways_records_delivered_total[5m]))")
	if rates["all/log"] <= 0 || rates["calls/log"] <= 0 || rates["never/log"] != 0 {
		t.Errorf("rates %v", rates)
	}
	if rates := prom.query(t, "sum by (sensor, rule) (rate(ways_records_failed_total[5m]))"); rates["never/log"] <= 0 {
		t.Errorf("rates of failures %v", rates)
	}
	if q := prom.query(t, "histogram_quantile(0.95, sum by (sensor, rule) (rate(ways_delivery_lag_seconds[5m])))"); q["all/log"] <= 0 || q["all/log"] > 60 {
		t.Errorf("lag %v", q)
	}
	if up := prom.query(t, "min_over_time(up[10m])"); up[""] != 1 {
		t.Errorf("a scrape failed: %v", up)
	}
	if err := serve.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := serve.cmd.Wait(); err != nil || serve.errs.Len() > 0 {
		t.Errorf("%v, %s", err, serve.errs)
	}
}
