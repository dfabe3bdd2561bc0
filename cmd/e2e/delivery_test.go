package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ways/hooks/launch"
	"ways/hooks/spool"
)

// posted is one request that a consumer got.
type posted struct {
	id, stamp string
	seq       int
	call      string
	body      string
	at        time.Time
	status    int
}

// scripted is a consumer whose answers a test chooses.
type scripted struct {
	*httptest.Server
	mu     sync.Mutex
	got    []posted
	answer func(p posted, nth int) (status int, retryAfter string)
}

// newScripted serves at addr, or anywhere for "".
func newScripted(t *testing.T, addr string, answer func(p posted, nth int) (int, string)) *scripted {
	t.Helper()
	c := &scripted{answer: answer}
	c.Server = httptest.NewUnstartedServer(c)
	if addr != "" {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		c.Listener.Close()
		c.Listener = l
	}
	c.Start()
	t.Cleanup(c.Close)
	return c
}

func (c *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var rec record
	_ = json.Unmarshal(body, &rec)
	p := posted{r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp"), rec.Seq, rec.Data.ID, string(body), time.Now(), 0}
	c.mu.Lock()
	defer c.mu.Unlock()
	var retryAfter string
	p.status, retryAfter = c.answer(p, len(c.got))
	c.got = append(c.got, p)
	if retryAfter != "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(p.status)
}

func (c *scripted) all() []posted {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.got)
}

// accepted lists the calls that were taken, in order.
func (c *scripted) accepted() []string {
	var list []string
	for _, p := range c.all() {
		if p.status < 300 {
			list = append(list, p.call)
		}
	}
	return list
}

func (c *scripted) waitAccepted(t *testing.T, s site, want ...string) {
	t.Helper()
	eventually(t, exitLimit, func() bool { return slices.Equal(c.accepted(), want) },
		func() string { return fmt.Sprintf("accepted %v of %v; %s", c.accepted(), want, s.story()) })
}

func ok(posted, int) (int, string) { return 200, "" }

// hookSite is a site with one at-least-once rule to a consumer.
func hookSite(t *testing.T, url string, env ...string) site {
	t.Helper()
	s := bareSite(t, env...)
	s.sensor(t, "hook", "[tool_call]", "http: {url: \""+url+"\"}", "delivery: at_least_once")
	return s
}

// verb runs a verb, whatever its exit code is.
func (in install) verb(t *testing.T, args ...string) (stdout string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), in.ways, args...)
	cmd.Env, cmd.Dir = in.env, t.TempDir()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		code = exit.ExitCode()
	}
	return out.String() + errs.String(), code
}

// TestConsumerRecovers: what an answer means, and that a record is sent again
// under its id until it is taken, in order.
func TestConsumerRecovers(t *testing.T) {
	for _, row := range []struct {
		name   string
		answer func(p posted, nth int) (int, string)
		sent   []string // "seq status"
		least  time.Duration
	}{
		{
			"503, then 200", func(_ posted, n int) (int, string) { return []int{503, 503, 200, 200, 200}[min(n, 4)], "" },
			[]string{"1 503", "1 503", "1 200", "2 200", "3 200"},
			0,
		},
		{
			"429 with Retry-After", func(_ posted, n int) (int, string) { return []int{429, 200, 200}[min(n, 2)], "1" },
			[]string{"1 429", "1 200", "2 200", "3 200"},
			time.Second,
		},
		{
			"408, 425, 500", func(_ posted, n int) (int, string) { return []int{408, 425, 500, 200}[min(n, 3)], "garbage" },
			[]string{"1 408", "1 425", "1 500", "1 200", "2 200", "3 200"},
			0,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := newScripted(t, "", row.answer)
			s := hookSite(t, c.URL, "WAYS_DISPATCHER_IDLE=20s")
			for i := range 3 {
				s.fire(t, call("s", fmt.Sprint("t", i), 10))
			}
			c.waitAccepted(t, s, "t0", "t1", "t2")
			var sent []string
			bodies := map[string]string{}
			for _, p := range c.all() {
				sent = append(sent, fmt.Sprintf("%d %d", p.seq, p.status))
				if p.id != fmt.Sprintf("s:hook/log:%d", p.seq) {
					t.Errorf("id %q of record %d", p.id, p.seq)
				}
				if was, again := bodies[p.id]; again && was != p.body {
					t.Errorf("another body under %s", p.id)
				}
				bodies[p.id] = p.body
			}
			if !slices.Equal(sent, row.sent) {
				t.Errorf("sent %v, want %v", sent, row.sent)
			}
			if gap := c.all()[1].at.Sub(c.all()[0].at); gap < row.least {
				t.Errorf("tried again after %v, asked for %v", gap, row.least)
			}
			if row.least > 0 && c.all()[0].stamp == c.all()[1].stamp {
				t.Error("the second try has the time of the first")
			}
		})
	}
}

// TestConsumerComesUp: nobody listens, then somebody does; and it restarts.
func TestConsumerComesUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	s := hookSite(t, "http://"+addr, "WAYS_DISPATCHER_IDLE=20s")
	s.fire(t, call("s", "t0", 10))
	s.fire(t, call("s", "t1", 10))
	eventually(t, exitLimit, func() bool { return strings.Contains(s.story(), "record not delivered") }, s.story)
	c := newScripted(t, addr, ok)
	c.waitAccepted(t, s, "t0", "t1")
	c.CloseClientConnections()
	c.Close()
	s.fire(t, call("s", "t2", 10))
	eventually(t, exitLimit, func() bool { return strings.Count(s.story(), "record not delivered") == 2 }, s.story)
	again := newScripted(t, addr, ok)
	again.waitAccepted(t, s, "t2")
}

// letters is what ways sensors dead list shows.
func letters(t *testing.T, s site) (list []string) {
	t.Helper()
	for line := range strings.Lines(string(s.run(t, "sensors", "dead", "list", "--json"))) {
		var l struct {
			ID, Reason string
			Attempts   int
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%s %s %d", l.ID, l.Reason, l.Attempts))
	}
	return list
}

// TestDeadLetters: what is refused for good goes aside, each once, and does not
// hold up the rest; it can be shown, sent again, and dropped.
func TestDeadLetters(t *testing.T) {
	mended := false
	c := newScripted(t, "", nil)
	c.answer = func(p posted, _ int) (int, string) {
		if mended {
			return map[bool]int{true: 400, false: 200}[p.call == "bad"], ""
		}
		switch {
		case len(p.body) > 10_000:
			return 413, ""
		case p.call == "bad":
			return 400, ""
		case p.call == "gone":
			return 410, ""
		}
		return 200, ""
	}
	s := hookSite(t, c.URL, "WAYS_DISPATCHER_IDLE=20s")
	for _, id := range []string{"a", "big", "b", "bad", "gone", "c"} {
		size := 10
		if id == "big" {
			size = 20_000
		}
		s.fire(t, call("s", id, size))
	}
	c.waitAccepted(t, s, "a", "b", "c")
	if n := len(c.all()); n != 6 {
		t.Errorf("%d requests, want each record once", n)
	}
	want := []string{"s:hook/log:2 status_413 1", "s:hook/log:4 status_400 1", "s:hook/log:5 status_410 1"}
	if got := letters(t, s); !slices.Equal(got, want) {
		t.Errorf("dead letters %v, want %v", got, want)
	}
	if out, code := s.verb(t, "sensors", "dead", "show", "s:hook/log:5"); code != 0 || !strings.Contains(out, `"gone"`) || !strings.Contains(out, "410") {
		t.Errorf("show: %d, %s", code, out)
	}
	if out, code := s.verb(t, "sensors", "dead", "show", "nothing"); code != 1 {
		t.Errorf("show nothing: %d, %s", code, out)
	}
	c.mu.Lock()
	mended = true
	c.mu.Unlock()
	if out, code := s.verb(t, "sensors", "dead", "retry", "--project", s.home); code != 1 || !strings.Contains(out, "2 accepted, 1 stay") {
		t.Errorf("retry: %d, %s", code, out)
	}
	c.waitAccepted(t, s, "a", "b", "c", "big", "gone")
	for _, p := range c.all() {
		if p.id != fmt.Sprintf("s:hook/log:%d", p.seq) {
			t.Errorf("record %d was sent as %s", p.seq, p.id)
		}
	}
	if got := letters(t, s); !slices.Equal(got, want[1:2]) {
		t.Errorf("left %v, want %v", got, want[1:2])
	}
	if out, code := s.verb(t, "sensors", "dead", "drop"); code != 2 {
		t.Errorf("drop of nothing in particular: %d, %s", code, out)
	}
	if out, code := s.verb(t, "sensors", "dead", "drop", "hook/log"); code != 0 || len(letters(t, s)) != 0 {
		t.Errorf("drop: %d, %s", code, out)
	}
}

// TestUnauthorized pauses the rule, loudly, and burns nothing: once the consumer
// knows us, everything arrives.
func TestUnauthorized(t *testing.T) {
	for _, status := range []int{401, 403} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			known := false
			c := newScripted(t, "", nil)
			c.answer = func(posted, int) (int, string) {
				if known {
					return 200, ""
				}
				return status, ""
			}
			s := hookSite(t, c.URL, "WAYS_DISPATCHER_IDLE=1s")
			s.fire(t, call("s", "t0", 10))
			s.fire(t, call("s", "t1", 10))
			eventually(t, exitLimit, func() bool {
				out, _ := s.verb(t, "status")
				return strings.Contains(strings.ToLower(out), "paused")
			}, s.story)
			if n := len(c.all()); n != 1 {
				t.Errorf("%d requests while paused", n)
			}
			if got := letters(t, s); len(got) != 0 {
				t.Errorf("put aside: %v", got)
			}
			c.mu.Lock()
			known = true
			c.mu.Unlock()
			s.stop(t, "s")
			if out, code := s.verb(t, "sensors", "drain"); code != 0 {
				t.Errorf("drain: %d, %s", code, out)
			}
			c.waitAccepted(t, s, "t0", "t1")
			if out, _ := s.verb(t, "status"); strings.Contains(strings.ToLower(out), "paused") {
				t.Errorf("still paused: %s", out)
			}
		})
	}
}

// stop tells a session's dispatcher to stop, and waits until it is gone.
func (s site) stop(t *testing.T, session string) {
	t.Helper()
	for _, d := range s.dispatchers(t, session) {
		if err := syscall.Kill(d.pid, syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}
	s.waitGone(t, session)
	s.waitUnlocked(t, session) // a process that is going away loses its name before its files
}

// TestKilledBetweenAnswerAndCursor: the consumer has taken the record, and the
// dispatcher dies before it can note that. It comes again, under the same id.
func TestKilledBetweenAnswerAndCursor(t *testing.T) {
	b := buildDoomed(t)
	c := newScripted(t, "", ok)
	s := hookSite(t, c.URL, "WAYS_DISPATCHER_IDLE=20s")
	for from, path := range map[string]string{b.ways: s.ways, b.waysctl: s.waysctl} {
		if err := errors.Join(os.Remove(path), os.Link(from, path)); err != nil {
			t.Fatal(err)
		}
	}
	s.fire(t, call("s", "t0", 10), doomed+"=rule.sent=1")
	eventually(t, exitLimit, func() bool { return len(c.all()) == 1 }, s.story)
	s.waitUnlocked(t, "s")
	s.fire(t, call("s", "t1", 10))
	c.waitAccepted(t, s, "t0", "t0", "t1")
	got := c.all()
	if got[0].id != "s:hook/log:1" || got[1].id != got[0].id || got[0].body != got[1].body || got[2].id != "s:hook/log:2" {
		t.Errorf("%+v", got)
	}
}

// TestRuleThatCannotRunWaits: a variable that is not there is no reason to give
// records up; with it, they arrive.
func TestRuleThatCannotRunWaits(t *testing.T) {
	c := newScripted(t, "", ok)
	s := bareSite(t, "WAYS_DISPATCHER_IDLE=1s")
	s.sensor(t, "hook", "[tool_call]", "http: {url: \""+c.URL+"\", headers: {Authorization: 'Bearer ${WAYS_TEST_TOKEN}'}}", "delivery: at_least_once")
	s.fire(t, call("s", "t0", 10))
	s.finish(t, "s")
	if got := letters(t, s); len(got) != 0 || len(c.all()) != 0 {
		t.Errorf("dead letters %v, requests %v", got, c.all())
	}
	if out, code := s.verb(t, "sensors", "drain"); code != 1 || !strings.Contains(out, "1 records still undelivered") {
		t.Errorf("drain without the variable: %d, %s", code, out)
	}
	s.env = append(s.env, "WAYS_TEST_TOKEN=x")
	if out, code := s.verb(t, "sensors", "drain"); code != 0 {
		t.Errorf("drain: %d, %s", code, out)
	}
	c.waitAccepted(t, s, "t0")
}

// TestMaxAge: what is not delivered within spool.max_age (7 days, unless it is
// set) goes to the dead letters, with its text, and the spool is empty then.
func TestMaxAge(t *testing.T) {
	c := newScripted(t, "", func(posted, int) (int, string) { return 503, "" })
	s := hookSite(t, c.URL, "WAYS_DISPATCHER_IDLE=300ms")
	backlog(t, s, "s", 3, 10, time.Now().Add(-169*time.Hour))
	if out, code := s.verb(t, "sensors", "drain"); code != 0 || !strings.Contains(out, "s: drained") {
		t.Errorf("drain: %d, %s", code, out)
	}
	got := letters(t, s)
	if want := []string{"s:hook/log:1 expired 1", "s:hook/log:2 expired 0", "s:hook/log:3 expired 0"}; !slices.Equal(got, want) {
		t.Errorf("dead letters %v, want %v", got, want)
	}
	if left, err := filepath.Glob(filepath.Join(s.dirs.Session("s"), "*.seg")); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if out, code := s.verb(t, "sensors", "drain"); code != 0 || !strings.Contains(out, "nothing is left") {
		t.Errorf("drain: %d, %s", code, out)
	}

	// Nearly as old, and with a setting of its own.
	s = hookSite(t, c.URL, "WAYS_DISPATCHER_IDLE=300ms")
	backlog(t, s, "s", 1, 10, time.Now().Add(-167*time.Hour))
	if out, code := s.verb(t, "sensors", "drain"); code != 1 || len(letters(t, s)) != 0 {
		t.Errorf("drain: %d, %s", code, out)
	}
	writeFile(t, filepath.Join(s.config, "config.yaml"), []byte("spool:\n  max_age: 2h\n"))
	if out, code := s.verb(t, "sensors", "drain"); code != 0 || len(letters(t, s)) != 1 {
		t.Errorf("drain: %d, %s", code, out)
	}
}

// draft is a record around its number.
type draft struct{ head, tail string }

func (d draft) Append(dst []byte, seq uint64) []byte {
	return append(strconv.AppendUint(append(dst, d.head...), seq, 10), d.tail...)
}
func (d draft) Size() int { return len(d.head) + len(d.tail) }

// backlog puts records into a session's spool that no dispatcher has seen.
func backlog(t *testing.T, s site, session string, n, size int, at time.Time) {
	t.Helper()
	text := strings.Repeat("some words of text ", size/19)
	for i := 0; i < n; {
		var drafts []spool.Draft
		for ; i < n && len(drafts)*size < 4<<20; i++ {
			drafts = append(drafts, draft{
				fmt.Sprintf(`{"v":1,"section":"tool_call","event":"PreToolUse","source":"hook","ts":%q,"session":%q,"seq":`, at.UTC().Format(time.RFC3339Nano), session),
				fmt.Sprintf(`,"agent_id":"main","agent_type":"main","project":%q,"cwd":"/","data":{"id":"b%d","name":"Read","input":{"text":%q}}}`, s.home, i, text),
			})
		}
		_, err := spool.Append(s.dirs.Session(session), spool.Request{
			Generation: 1, Now: at, Wait: time.Second, Build: func(bool) []spool.Draft { return drafts },
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// finish ends a session whose dispatcher listens, and waits until that is gone.
func (s site) finish(t *testing.T, session string) {
	t.Helper()
	dir := s.dirs.Session(session)
	eventually(t, exitLimit, func() bool { return launch.Running(dir) }, s.story)
	s.fire(t, event(session, "SessionEnd", ""))
	s.waitUnlocked(t, session)
}

// waitUnlocked waits until no process dispatches a session, nor is dying over it.
func (s site) waitUnlocked(t *testing.T, session string) {
	t.Helper()
	eventually(t, exitLimit, func() bool {
		lock, err := launch.TryLock(s.dirs.Session(session))
		if err == nil {
			lock.Close()
		}
		return err == nil
	}, s.story)
}
