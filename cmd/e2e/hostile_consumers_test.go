package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hostile is a consumer that means no good, and what is to become of each of its
// records.
type hostile struct {
	name, dispatch string
	// kind is a counter and reason its word; kind is empty for a record that is
	// delivered.
	kind, reason string
}

// short is the timeout of rules whose consumers never end, ample of the others.
const (
	short = "timeout: 1500ms"
	ample = "timeout: 60s"
)

// answering reads a request, answers with these bytes, and goes on with those in
// turn, without end, until the client has gone.
func answering(first string, pause time.Duration, more ...string) func(net.Conn) {
	return func(c net.Conn) {
		if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.Copy(io.Discard, req.Body)
		}
		if _, err := io.WriteString(c, first); err != nil {
			return
		}
		for i := 0; len(more) > 0; i++ {
			if _, err := io.WriteString(c, more[i%len(more)]); err != nil {
				return
			}
			if pause > 0 {
				<-time.After(pause)
			}
		}
	}
}

// hostileServers are consumers behind http.
func hostileServers(t *testing.T) []hostile {
	t.Helper()
	at := func(scheme string, serve func(net.Conn)) string {
		return "http: {url: '" + scheme + "://" + tcpServer(t, serve) + "/'}"
	}
	var bomb bytes.Buffer
	zip := gzip.NewWriter(&bomb)
	_, _ = zip.Write(make([]byte, 50<<20))
	_ = zip.Close()
	drip := 100 * time.Millisecond
	closed := tcpServer(t, func(c net.Conn) {})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := listener.Addr().String()
	_ = listener.Close()
	ok := "HTTP/1.1 200 OK\r\n"
	return []hostile{
		{"never-reads", at("http", func(c net.Conn) { <-t.Context().Done() }), "timed_out", "headers"},
		{"never-answers", at("http", silent), "timed_out", "headers"},
		{"byte-by-byte", at("http", answering("", drip, "H", "T", "T", "P", "/")), "timed_out", "headers"},
		{"body-drips", at("http", answering(ok+"Content-Length: 1000\r\n\r\n", drip, "x")), "timed_out", "body"},
		{"accepts-and-closes", "http: {url: 'http://" + closed + "/'}", "failed", "closed"},
		{"resets", at("http", func(c net.Conn) {
			_, _ = c.Read(make([]byte, 10))
			_ = c.(*net.TCPConn).SetLinger(0)
		}), "failed", "closed"},
		{"tls-stalls", at("https", silent), "timed_out", "tls"},
		{"tls-is-not", at("https", func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n"); silent(c) }), "failed", "tls"},
		{"1xx-forever", at("http", answering("", time.Millisecond, "HTTP/1.1 103 Early Hints\r\nX-A: b\r\n\r\n")), "failed", "bad_response"},
		{"headers-forever", at("http", answering(ok, 0, "X-A: "+strings.Repeat("b", 1000)+"\r\n")), "failed", "bad_response"},
		{"body-forever", at("http", answering(ok+"\r\n", 0, strings.Repeat("x", 4096))), "", ""},
		{"gzip-bomb", at("http", answering(ok+fmt.Sprintf("Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", bomb.Len())+bomb.String(), 0)), "", ""},
		{"redirects", at("http", answering("HTTP/1.1 307 Temporary Redirect\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", 0)), "refused", "redirect"},
		{"not-http", at("http", answering("220 mail.example ESMTP\r\n", 0)), "failed", "bad_response"},
		{"nobody-there", "http: {url: 'http://" + nobody + "/'}", "failed", "connect"},
		{"no-more", at("http", answering("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", 0)), "failed", "status_503"},
		{"too-large", at("http", answering("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n", 0)), "refused", "status_413"},
		{"who-are-you", at("http", answering("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", 0)), "refused", "status_401"},
	}
}

// hostilePrograms are consumers behind command.
func hostilePrograms(t *testing.T) []hostile {
	t.Helper()
	leader := `"$TESTS" consume session-leader`
	return []hostile{
		{"reads-nothing", shell("exec sleep 120"), "killed", "timeout"},
		{"ignores-signals", shell(deaf), "killed", "timeout"},
		{"stops-itself", shell("kill -STOP $$"), "killed", "timeout"},
		{"stdout-forever", shell("exec yes"), "killed", "timeout"},
		{"stderr-huge", shell("cat >/dev/null; head -c 20000000 /dev/zero >&2"), "", ""},
		{"closes-all-and-stays", shell("exec <&- >&- 2>&-; sleep 120; :"), "killed", "timeout"},
		{"zombies-parent", shell("(exit 3) & exec sleep 120"), "killed", "timeout"},
		{"forks-and-exits", shell("sleep 120 & exit 0"), "", ""},
		{"forks-many", shell("for i in 1 2 3 4 5 6 7 8 9 10; do sleep 120 & done; exit 0"), "", ""},
		{"forks-with-setsid", withTests(t, leader+" sleep 120"), "", ""},
		{"forks-twice", withTests(t, leader+` /bin/sh -c "sleep 120 & sleep 120 & exit 0"; exit 0`), "", ""},
		{"forks-bare", withTests(t, `"$TESTS" consume session-leader-bare sleep 120`), "", ""},
		{"holds-the-pipe", shell("(trap '' TERM HUP PIPE; sleep 120; echo late) & exit 0"), "", ""},
		{"setsid-and-hangs", withTests(t, leader+" sleep 120; sleep 120"), "killed", "timeout"},
		{"closed-stdout", shell("exec >&-; echo words; exit 0"), "", ""},
		{"closes-stdin", shell("exec <&-; exit 0"), "", ""},
		{"exits-0", "command: {argv: ['true']}", "", ""},
		{"exits-1", "command: {argv: ['false']}", "failed", "exit_1"},
		{"exits-137", shell("cat >/dev/null; exit 137"), "failed", "exit_137"},
		{"kills-itself", shell("kill -KILL $$"), "failed", "signal_KILL"},
		{"kills-its-group", shell("sleep 120 & kill -TERM 0; sleep 120"), "failed", "signal_TERM"},
		{"is-not-there", "command: {argv: [/nonexistent/program]}", "refused", "not_found"},
		{"is-no-program", "command: {argv: [/etc/passwd]}", "refused", "not_executable"},
	}
}

// hostileFiles are consumers behind file. What they are made of is below home.
func hostileFiles(t *testing.T, s site) []hostile {
	t.Helper()
	path := func(name string) string { return filepath.Join(s.home, "hostile", name) }
	writeFile(t, path("plain"), nil)
	for _, err := range []error{
		syscall.Mkfifo(path("fifo"), 0o600),
		os.Mkdir(path("directory"), 0o700),
		os.Symlink(path("nowhere"), path("dangling")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	to := func(name string) string { return s.to(filepath.Join("hostile", name)) }
	return []hostile{
		{"fifo", to("fifo"), "refused", "not_regular"},
		{"directory", to("directory"), "refused", "is_directory"},
		{"dangling", to("dangling"), "refused", "is_symlink"},
		{"below-a-file", to("plain/log"), "refused", "not_directory"},
		{"dev-full", "file: {path: /dev/full, format: jsonl}", "refused", "not_regular"},
		{"rotated", to("rotated"), "", ""},
		{"deleted", to("deleted"), "", ""},
	}
}

// outcome is what is counted of n records that all end so.
func (h hostile) outcome(n uint64) counted {
	c := counted{Matched: n}
	switch h.kind {
	case "":
		c.Delivered = n
		return c
	case "failed":
		c.Failed = n
	case "refused":
		c.Refused = n
	case "timed_out":
		c.TimedOut = n
	case "killed":
		c.Killed = n
	}
	c.Reasons = map[string]uint64{h.reason: n}
	return c
}

// TestHostileConsumers runs all of them in one session, beside a rule at a file
// that delivers everything. No hook waits for any of them, what became of each
// record is counted exactly, and nothing is left of them.
func TestHostileConsumers(t *testing.T) {
	s := newSite(t, "WAYS_DISPATCHER_IDLE=5m")
	const events = 4
	const size = 70_000 // more than a pipe holds
	fire := func(id string) time.Duration { return runHook(t, s, call("s", id, size)) }

	fire("first")
	s.waitLines(t, 1)
	var alone []time.Duration
	for i := range events {
		alone = append(alone, fire(fmt.Sprint("alone", i)))
	}
	s.waitLines(t, 1+events)
	running := s.dispatchers(t, "s")
	if len(running) != 1 {
		t.Fatalf("dispatchers: %v", running)
	}
	before := descriptors(t, running[0].pid)

	all := slices.Concat(hostileServers(t), hostilePrograms(t), hostileFiles(t, s))
	t.Logf("%d consumers", len(all))
	var rules []ruleText
	want := map[string]counted{}
	for _, h := range all {
		timeout := ample
		if h.kind == "killed" || h.kind == "timed_out" {
			timeout = short
		}
		rules = append(rules, ruleText{h.name, "[tool_call]", h.dispatch, []string{timeout}})
		want["hostile/"+h.name] = h.outcome(events)
	}
	s.sensors(t, "hostile", rules...)
	s.run(t, "sensors", "compile")
	var beside []time.Duration
	for i := range events {
		beside = append(beside, fire(fmt.Sprint("beside", i)))
		if i > 0 {
			continue
		}
		for _, name := range []string{"rotated", "deleted"} {
			eventually(t, exitLimit, func() bool { return len(lines(t, filepath.Join(s.home, "hostile", name))) == 1 },
				func() string { return name + " has not taken its first record; " + s.story() })
		}
		if err := os.Rename(filepath.Join(s.home, "hostile", "rotated"), filepath.Join(s.home, "hostile", "rotated.1")); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(s.home, "hostile", "deleted")); err != nil {
			t.Fatal(err)
		}
	}
	s.waitLines(t, 1+2*events)
	slices.Sort(alone)
	slices.Sort(beside)
	t.Logf("hooks took %v alone, %v beside hostile consumers", alone, beside)
	if limit := 5*alone[events/2] + 100*time.Millisecond; beside[events/2] > limit {
		t.Errorf("the median hook took %v beside hostile consumers, and %v without", beside[events/2], alone[events/2])
	}

	unsettled := ""
	eventually(t, 2*exitLimit, func() bool {
		unsettled = ""
		got := s.status(t)
		for rule, w := range want {
			c := got[rule]
			if c.Delivered+c.Failed+c.Refused+c.TimedOut+c.Killed+c.Dropped < w.Matched || c.Spooled > 0 {
				unsettled += fmt.Sprintf("\n%s %+v", rule, c)
			}
		}
		return unsettled == ""
	}, func() string { return "unsettled:" + unsettled + s.story() })
	s.wantStatus(t, want)
	if now := s.dispatchers(t, "s"); len(now) != 1 || now[0].pid != running[0].pid {
		t.Fatalf("dispatchers: %v, before %v", now, running)
	}
	var after []string
	eventually(t, exitLimit, func() bool { after = descriptors(t, running[0].pid); return slices.Equal(before, after) },
		func() string { return fmt.Sprintf("descriptors before\n%v\nand after\n%v", before, after) })
	if left := s.leftBehind(t, running[0].pid); len(left) > 0 {
		t.Errorf("left behind beside the dispatcher: %q", left)
	}

	s.end(t, "s")
	if left := s.leftBehind(t, 0); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	for name, n := range map[string]int{"rotated.1": 1, "rotated": events - 1, "deleted": events - 1, "plain": 0} {
		if got := len(lines(t, filepath.Join(s.home, "hostile", name))); got != n {
			t.Errorf("%s has %d records, want %d", name, got, n)
		}
	}
	numbered(t, lines(t, s.log), "s", 2+2*events)
}
