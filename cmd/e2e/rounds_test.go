package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ways/hooks/chain"
)

// roundSites is how many installations are tortured at once.
const roundSites = 10

// inbound is a consumer that takes everything, and notes what came under which
// id.
type inbound struct {
	mu     sync.Mutex
	bodies map[string]string // by webhook-id
	calls  map[string]int    // by tool call
	faults []string
}

func (in *inbound) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // its sender was killed
	}
	var rec record
	in.mu.Lock()
	defer in.mu.Unlock()
	id := r.Header.Get("Webhook-Id")
	if err := json.Unmarshal(body, &rec); err != nil {
		in.faults = append(in.faults, fmt.Sprintf("%s: %v", id, err))
		return
	}
	if was, ok := in.bodies[id]; ok && was != string(body) {
		in.faults = append(in.faults, fmt.Sprintf("%s came with two bodies:\n%s\n%s", id, was, body))
	}
	if want := fmt.Sprintf("%s:hook/log:%d", rec.Session, rec.Seq); id != want {
		in.faults = append(in.faults, fmt.Sprintf("id %s, want %s", id, want))
	}
	in.bodies[id] = string(body)
	in.calls[rec.Data.ID]++
}

// tortured is one installation over all its rounds, and what is known of it.
type tortured struct {
	site
	t        *testing.T
	to       *inbound
	accepted map[string]bool           // tool calls whose hook lived
	offset   int64                     // how much of the log was read
	lines    map[string]int            // how often each call is in the log
	numbers  map[string]map[int]string // by session and number, the call
	next     int
	deaths   int
	chained  bool
	head     chain.Head // of the last line read
}

// newTortured installs the product; with chained, the log is a chain.
func newTortured(t *testing.T, b binaries, chained bool) *tortured {
	t.Helper()
	to := &inbound{bodies: map[string]string{}, calls: map[string]int{}}
	server := httptest.NewServer(to)
	t.Cleanup(server.Close)
	s := bareSite(t)
	for from, path := range map[string]string{b.ways: s.ways, b.waysctl: s.waysctl} {
		if err := errors.Join(os.Remove(path), os.Link(from, path)); err != nil {
			t.Fatal(err)
		}
	}
	s.sensor(t, "all", "[tool_call]", "file: {path: "+s.log+", format: jsonl}", "delivery: at_least_once", fmt.Sprint("chain: ", chained))
	s.sensor(t, "hook", "[tool_call]", "http: {url: \""+server.URL+"\"}", "delivery: at_least_once")
	w := &tortured{site: s, t: t, to: to, accepted: map[string]bool{}, lines: map[string]int{}, numbers: map[string]map[int]string{"one": {}, "two": {}}, chained: chained}
	w.fire(t, call("one", "first", 10)) // compiles the index
	w.accepted["first"] = true
	return w
}

// shot starts a hook; it may be doomed, or be killed at any instant.
func (w *tortured) shot(session string, env string, killAfter time.Duration) {
	id := fmt.Sprint("t", w.next)
	w.next++
	cmd := w.command(w.t, call(session, id, 1+rand.IntN(20_000)),
		fmt.Sprintf("WAYS_DISPATCHER_IDLE=%dms", 5+rand.IntN(60)), env)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	if killAfter > 0 {
		timer := time.AfterFunc(killAfter, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case out.Len() != 0:
		w.t.Errorf("a hook said %q", out.Bytes())
	case err == nil:
		w.accepted[id] = true
	case errors.As(err, &exit) && exit.ExitCode() == -1:
		w.deaths++
	default:
		w.t.Errorf("a hook ended with %v", err)
	}
}

// killDispatcher kills a session's dispatcher, if it has said who it is.
func (w *tortured) killDispatcher(session string) {
	var info struct{ PID int }
	raw, err := os.ReadFile(filepath.Join(w.dirs.Session(session), "dispatcher.json"))
	if err != nil || json.Unmarshal(raw, &info) != nil {
		return
	}
	out, err := exec.Command("ps", "-ww", "-o", "command=", "-p", fmt.Sprint(info.PID)).Output()
	if err != nil || !strings.Contains(string(out), w.waysctl) {
		return // long gone
	}
	if syscall.Kill(info.PID, syscall.SIGKILL) == nil {
		w.deaths++
	}
}

// round does harm, and checks that it did none.
func (w *tortured) round() {
	before := w.deaths
	for tries := 0; w.deaths == before && tries < 20; tries++ {
		session := []string{"one", "two"}[rand.IntN(2)]
		switch rand.IntN(4) {
		case 0: // the hook at a failpoint, and the dispatcher that it starts
			w.shot(session, doomed+"=0.1", 0)
		case 1: // the hook at any instant
			w.shot(session, "", time.Duration(1+rand.IntN(6000))*time.Microsecond)
		case 2: // the dispatcher at any instant
			w.shot(session, "", 0)
			after(w.t, time.Duration(rand.IntN(30))*time.Millisecond)
			w.killDispatcher(session)
		case 3: // the dispatcher at a failpoint of its own
			place := []string{"spool.open", "spool.write", "spool.rename", "spool.sync", "spool.remove", "rule.sent"}[rand.IntN(6)]
			w.shot(session, doomed+"="+place+"=0.05", 0)
		}
	}
	w.settle()
	w.check()
}

// settle fires undisturbed hooks until all that was accepted has arrived. Each try
// waits longer than the one before: its own two records have to arrive too.
func (w *tortured) settle() {
	limit := time.After(exitLimit)
	for wait := 100 * time.Millisecond; ; wait *= 2 {
		for _, session := range []string{"one", "two"} {
			w.shot(session, "", 0)
		}
		pause := time.After(wait)
		tick := time.NewTicker(2 * time.Millisecond)
		for waiting := true; waiting; {
			select {
			case <-tick.C:
				if w.arrived() {
					tick.Stop()
					return
				}
			case <-pause:
				waiting = false
			case <-limit:
				w.t.Fatalf("missing: %v; %s", w.missing(), w.story())
			}
		}
		tick.Stop()
	}
}

func (w *tortured) arrived() bool { return len(w.missing()) == 0 }

// missing lists what was accepted and is not there; what is there is not looked
// for again.
func (w *tortured) missing() []string {
	w.read()
	w.to.mu.Lock()
	defer w.to.mu.Unlock()
	var list []string
	for id := range w.accepted {
		switch {
		case w.lines[id] == 0:
			list = append(list, id+" in the log")
		case w.to.calls[id] == 0:
			list = append(list, id+" at the server")
		default:
			delete(w.accepted, id)
		}
	}
	return list
}

// read takes in what was written to the log since the last time.
func (w *tortured) read() {
	f, err := os.Open(w.log)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.NewSectionReader(f, w.offset, 1<<40))
	if err != nil {
		w.t.Fatal(err)
	}
	raw = raw[:bytes.LastIndexByte(raw, '\n')+1]
	w.offset += int64(len(raw))
	for line := range bytes.Lines(raw) {
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			w.t.Fatalf("a line of the log: %v: %.300q", err, line)
		}
		if w.chained {
			link, ok := chain.Parse(bytes.TrimSuffix(line, []byte("\n")))
			if !ok || !link.Follows(w.head) {
				w.t.Errorf("%s breaks the chain behind number %d: %.300q", r.Data.ID, w.head.N, line)
			}
			w.head = link.Head()
		}
		w.lines[r.Data.ID]++
		if was, ok := w.numbers[r.Session][r.Seq]; ok && was != r.Data.ID {
			w.t.Errorf("number %d of %s is %s and %s", r.Seq, r.Session, was, r.Data.ID)
		}
		w.numbers[r.Session][r.Seq] = r.Data.ID
		if w.lines[r.Data.ID] > 1 {
			w.t.Errorf("%s is in the log %d times", r.Data.ID, w.lines[r.Data.ID])
		}
		if r.RuleSeq != r.Seq { // the rule takes every record
			w.t.Errorf("record %d of %s has rule_seq %d", r.Seq, r.Session, r.RuleSeq)
		}
	}
}

// check finds holes.
func (w *tortured) check() {
	w.to.mu.Lock()
	defer w.to.mu.Unlock()
	for _, f := range w.to.faults {
		w.t.Error(f)
	}
	for session, numbers := range w.numbers {
		for i := 1; i <= len(numbers); i++ {
			if _, ok := numbers[i]; !ok {
				w.t.Errorf("session %s has no number %d of %d; %s", session, i, len(numbers), w.story())
			}
		}
	}
}

// verify has the product check the chain, once nobody appends any more.
func (w *tortured) verify() {
	for _, session := range []string{"one", "two"} {
		w.waitGone(w.t, session)
	}
	said := string(w.run(w.t, "sensors", "verify", "all/log"))
	want := fmt.Sprintf("%s: ok\n  records read: %d, numbers 1 to %[2]d\n", w.log, w.head.N)
	if !strings.HasPrefix(said, want) {
		w.t.Errorf("verify says\n%s\nwant\n%s", said, want)
	}
}

// TestRounds is the crash harness: in each round a hook or a dispatcher is killed
// at a random instant, or dies at a random place around an operation on a file,
// while others work. After each, what was accepted has arrived at a log, once, and
// at a server, whole, numbered without a hole and under ids that do not change. The
// log of every second site is a chain, and no line breaks it.
//
//	go test -run TestRounds ./cmd/e2e -rounds 20000
func TestRounds(t *testing.T) {
	rounds := intFlag(roundsFlag)
	b := buildDoomed(t)
	var mu sync.Mutex
	deaths, records, twice := 0, 0, 0
	var sites sync.WaitGroup
	// Not by t.Parallel, which allows as many as there are processors: a site
	// mostly waits.
	for i := range roundSites {
		sites.Go(func() {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				w := newTortured(t, b, i%2 == 0)
				for range rounds / roundSites {
					w.round()
					if t.Failed() {
						return
					}
				}
				if w.chained {
					w.verify()
				}
				mu.Lock()
				defer mu.Unlock()
				deaths += w.deaths
				for _, n := range w.lines {
					records++
					if n > 1 {
						twice++
					}
				}
			})
		})
	}
	sites.Wait()
	if deaths < rounds/2 {
		t.Errorf("only %d processes died in %d rounds", deaths, rounds)
	}
	t.Logf("%d rounds, %d killed processes seen, %d records, %d of them more than once in the log", rounds, deaths, records, twice)
}
