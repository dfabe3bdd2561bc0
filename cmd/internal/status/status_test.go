package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"ways/actors/deadletter"
	"ways/cmd/internal/cli"
	"ways/config/problem"
	"ways/hooks/dirs"
	"ways/hooks/launch"
	"ways/metrics/counters"
)

// desk is a user's machine on which status is asked.
type desk struct {
	t    *testing.T
	d    dirs.Dirs
	home string
}

func newDesk(t *testing.T) desk {
	t.Helper()
	home := t.TempDir()
	d, err := dirs.From(func(name string) string { return map[string]string{"HOME": home}[name] })
	if err != nil {
		t.Fatal(err)
	}
	return desk{t, d, home}
}

func (k desk) env(out, errs *bytes.Buffer) cli.Env {
	return cli.Env{
		Getenv:     func(name string) string { return map[string]string{"HOME": k.home, "CLAUDE_PROJECT_DIR": "/p"}[name] },
		Executable: func() (string, error) { return filepath.Join(k.home, "waysctl"), nil },
		Stdout:     out, Stderr: errs, Version: "v1",
	}
}

func (k desk) run(args ...string) string {
	k.t.Helper()
	var out, errs bytes.Buffer
	if code := Run(k.env(&out, &errs), args); code != cli.OK || errs.Len() > 0 {
		k.t.Fatalf("%v: exit %d, %s", args, code, errs.String())
	}
	return out.String()
}

func (k desk) write(path, text string) {
	k.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		k.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

// trouble makes one of everything.
func (k desk) trouble(now time.Time) {
	k.t.Helper()
	k.write(filepath.Join(k.d.Sensors(), "bad.yaml"), "spec: 1\nkind: ways\nrules: [{name: r, section: [tool_call]}]\n")
	l := counters.NewStore(k.d.State).Open("s1", "s1", now)
	l.Project = "/p"
	count := func(id string) *counters.Rule {
		r := l.Rule(id)
		r.Matched, r.Since, r.Target = 10, now.Add(-time.Hour), "http https://x.example/"
		return r
	}
	r := count("a/fine")
	r.Delivered, r.LastDelivered, r.LastError, r.LastErrorAt = 10, now, "once it said no", now.Add(-time.Minute)
	r.Duration.Observe(3 * time.Millisecond)
	r.Lag.Observe(30 * time.Millisecond)
	r = count("b/failing")
	r.Failed, r.LastError, r.LastErrorAt = 10, "connection refused", now.Add(-time.Second)
	r.Reasons = map[string]uint64{"connect": 10}
	r.Count(counters.Failed, "connect", 10)
	r = count("c/late")
	r.Delivered, r.Waiting, r.WaitingSince, r.Retried = 7, 3, now.Add(-10*time.Minute), 4
	r.LastError, r.LastErrorAt = "answered 503", now.Add(-time.Second)
	r = count("d/paused")
	r.Waiting, r.WaitingSince, r.PausedSince, r.NextTry = 10, now.Add(-5*time.Minute), now.Add(-4*time.Minute), now.Add(time.Minute)
	r.LastError, r.LastErrorAt = "answered 401 \x1b[31mUnauthorized", now.Add(-time.Second)
	r = count("e/later")
	r.Delivered, r.Waiting, r.WaitingSince = 9, 1, now.Add(-2*time.Minute)
	r.LastDelivered, r.LastError, r.LastErrorAt = now.Add(-2*time.Hour), "long mended", now.Add(-3*time.Hour)
	r = count("o/off")
	r.Waiting, r.WaitingSince, r.OffSince = 2, now.Add(-5*time.Minute), now.Add(-4*time.Minute)
	if err := l.Save(now); err != nil {
		k.t.Fatal(err)
	}
	dir := k.d.Session("s1")
	k.write(filepath.Join(dir, "dispatcher.json"), fmt.Sprintf(`{"pid":%d,"started":%q,"version":"v1"}`, os.Getpid(), now.Add(-time.Hour).Format(time.RFC3339)))
	wake, err := launch.Listen(dir)
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { wake.Close() })
	k.write(filepath.Join(k.d.Session("s2"), "00000000000000000001.seg"), strings.Repeat("x", 20<<10))
	for i := range 2 {
		if err := deadletter.NewStore(k.d.State).Put(deadletter.Letter{ID: fmt.Sprint(i), Rule: "c/late", Body: []byte("{}")}); err != nil {
			k.t.Fatal(err)
		}
	}
	k.write(filepath.Join(k.d.State, counters.Dir, "torn~1.1.json"), "{")
}

// What needs attention comes first, the most urgent at the top.
func TestAttention(t *testing.T) {
	k := newDesk(t)
	now := time.Now()
	k.trouble(now)
	var out, errs bytes.Buffer
	v, err := Gather(k.env(&out, &errs), k.d, now)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range v.Attention {
		got = append(got, strings.TrimSpace(string(a.Kind)+" "+a.Rule+a.Session))
	}
	want := []string{
		"not_wired", "refused", "paused d/paused", "off o/off", "unsent c/late", "unsent e/later", "unattended s2", "dead_letters c/late", "failing b/failing", "unreadable",
	}
	if !slices.Equal(got, want) {
		t.Errorf("attention %q\nwant %q", got, want)
	}
	v.print(&out, func(p problem.Problem) string { return p.String() })
	text := out.String()
	at := -1
	for _, want := range []string{
		"NOT WIRED on 10 of 10 events in " + k.home + "/.claude/settings.json; run: ways reconcile\n",
		"bad.yaml:3:",
		"PAUSED d/paused: paused since " + clock(now.Add(-4*time.Minute)) + ", 10 records wait, the oldest for 5m 0s, next try in 1m 0s; answered 401 \\x1b[31mUnauthorized\n",
		"OFF o/off: it is off, and 2 records wait, the oldest for 5m 0s; on again, it delivers them, else they go to the dead letters at spool.max_age\n",
		"UNSENT c/late: 3 records wait, the oldest for 10m 0s; answered 503\n",
		"UNSENT e/later: 1 record waits, the oldest for 2m 0s\n",
		"UNATTENDED session s2: 0 records and 20 KiB in its spool, and no dispatcher; run: ways sensors drain\n",
		"DEAD LETTERS c/late: 2 put aside; see: ways sensors dead list\n",
		"UNREADABLE " + filepath.Join(k.d.State, counters.Dir, "torn~1.1.json") + " is damaged",
		"no rule is on here",
		"RULE       MATCHED  DELIVERED  FAILED  TIMED OUT  KILLED  REFUSED  DROPPED  SPOOLED  RETRIED  PUT ASIDE  SINCE\n",
		"\nd/paused ", "\no/off ", "\nc/late ", "\ne/later ", "\nb/failing ", "\na/fine ",
		"d/paused: answered 401", "b/failing: connection refused (", "a/fine: delivers again; failed last ", " ago: once it said no\n",
		fmt.Sprintf("session s1: dispatcher %d since %s, ", os.Getpid(), clock(now.Add(-time.Hour))), ", 16 waiting since " + clock(now.Add(-10*time.Minute)),
		"session s2: no dispatcher, 0 records, 20 KiB in its spool\n",
		"sessions that ended, with nothing waiting: 0\n",
	} {
		i := strings.Index(text[at+1:], want)
		if i < 0 {
			t.Fatalf("not there, or too early: %q\n%s", want, text)
		}
		at += i
	}
	if strings.Contains(text, "long mended") {
		t.Errorf("a failure that is mended is told of as if it were not:\n%s", text)
	}
	if strings.Contains(text, "\x1b") {
		t.Error("the terminal is told something")
	}
}

// The JSON is what the schema says, with everything in it and with nothing.
func TestJSON(t *testing.T) {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	schema, err := c.Compile("../../../docs/status.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	k := newDesk(t)
	for _, state := range []string{"nothing", "trouble"} {
		if state == "trouble" {
			k.trouble(time.Now())
		}
		text := k.run("--json")
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(doc); err != nil {
			t.Errorf("%s: %v\n%s", state, err, text)
		}
	}
	var v View
	if err := json.Unmarshal([]byte(k.run("--json")), &v); err != nil {
		t.Fatal(err)
	}
	r := v.Rules["a/fine"]
	if r.Delivered != 10 || r.Dispatch.Count != 1 || r.Dispatch.P50 < 3 || r.Dispatch.P50 > 3.3 || r.LagTimes.P95 < 30 || r.LagTimes.P95 > 33 {
		t.Errorf("%+v", r)
	}
	s := v.Sessions
	if len(s) != 2 || s[0].Session != "s1" || !s[0].Running || s[0].Memory == 0 || s[0].Uptime < 3600 || s[0].Waiting != 16 || s[1].SpoolBytes != 20<<10 {
		t.Errorf("%+v", s)
	}
	if v.DeadLetters["c/late"] != 2 {
		t.Errorf("%+v", v.DeadLetters)
	}
}

func TestWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m 1s", 90 * time.Minute: "1h 30m", 47*time.Hour + time.Minute: "47h 1m", 49 * time.Hour: "2 days",
	} {
		if got := age(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 10239: "10239 B", 10240: "10 KiB", 10<<20 - 1: "10239 KiB", 10 << 20: "10 MiB"} {
		if got := size(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

// TestSettingsAreNeverWaitedFor: a FIFO in the place of the client's settings is
// told of.
func TestSettingsAreNeverWaitedFor(t *testing.T) {
	k := newDesk(t)
	path := filepath.Join(k.home, ".claude", "settings.json")
	k.write(path, "{}")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan string, 1)
	go func() { done <- k.run() }()
	select {
	case out := <-done:
		if !strings.Contains(out, "not a regular file") {
			t.Error(out)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("waits")
	}
}

// TestTableBeforeWays: what was delivered comes before where each rule sends to.
func TestTableBeforeWays(t *testing.T) {
	k := newDesk(t)
	k.write(filepath.Join(k.d.Sensors(), "a.yaml"), "spec: 1\nkind: ways\nname: a\nrules: [{name: r, sections: [tool_call], dispatch: {http: {url: 'https://far.example/in'}}}]\n")
	l := counters.NewStore(k.d.State).Open("s1", "s1", time.Now())
	l.Rule("a/r").Matched = 3
	if err := l.Save(time.Now()); err != nil {
		t.Fatal(err)
	}
	text := k.run()
	table, ways := strings.Index(text, "\nRULE "), strings.Index(text, "\na/r sends ")
	if ways < 0 {
		ways = strings.Index(text, "https://far.example/in")
	}
	if table < 0 || ways < table {
		t.Errorf("the table at %d, where it sends at %d:\n%s", table, ways, text)
	}
}
