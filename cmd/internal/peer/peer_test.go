package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ways/config/problem"
	"ways/config/sensors"
)

// plain is a stream of n small records.
func plain(n int) stream {
	var s stream
	for i := range n {
		s.add(fmt.Appendf(nil, `{"v":1,%s%d,"data":{"text":"number %d \"quoted\""}}`, marker(), i+1, i+1))
	}
	return s
}

// sent is record n as a ways rule sends it.
func (s stream) sent(n int) []byte {
	line := s.lines[n-1]
	return append(bytes.Clone(line[:len(line)-1]), fmt.Sprintf(`,"rule":"peer/all","rule_seq":%d}`, n)...)
}

// exported is one line of the Collector's file with the records named.
func (s stream) exported(t *testing.T, seqs ...int) []byte {
	t.Helper()
	var logs []string
	for _, n := range seqs {
		body, err := json.Marshal(string(s.lines[n-1]))
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, fmt.Sprintf(`{"observedTimeUnixNano":"1","body":{"stringValue":%s}}`, body))
	}
	return fmt.Appendf(nil, `{"resourceLogs":[{"resource":{},"scopeLogs":[{"scope":{},"logRecords":[%s]}]}]}`, strings.Join(logs, ","))
}

func seqs(came []arrival) []int {
	list := []int{}
	for _, a := range came {
		list = append(list, a.Seq)
	}
	return list
}

func TestJudge(t *testing.T) {
	whole := func(list ...int) []arrival {
		var came []arrival
		for _, seq := range list {
			came = append(came, arrival{Seq: seq, Intact: true})
		}
		return came
	}
	for _, row := range []struct {
		name string
		came []arrival
		n    int
		want verdict
		text string
	}{
		{"all", whole(1, 2, 3), 3, verdict{}, "each once, in order"},
		{"nothing of nothing", nil, 0, verdict{}, "each once, in order"},
		{"nothing", nil, 2, verdict{Missing: 2}, "2 missing"},
		{"many missing", nil, 1234, verdict{Missing: 1234}, "1,234 missing"},
		{"a hole", whole(1, 3), 3, verdict{Missing: 1}, "1 missing"},
		{"the end is missing", whole(1, 2), 4, verdict{Missing: 2}, "2 missing"},
		{"one again at once", whole(1, 1, 2), 2, verdict{Doubled: 1}, "1 doubled"},
		{"a stretch again", whole(1, 2, 3, 2, 3, 4), 4, verdict{Doubled: 2}, "2 doubled"},
		{"two swapped", whole(2, 1, 3), 3, verdict{Misplaced: 1}, "1 out of order"},
		{"one late", whole(2, 3, 4, 1), 4, verdict{Misplaced: 1}, "1 out of order"},
		{"the first two late", whole(3, 1, 2), 3, verdict{Misplaced: 2}, "2 out of order"},
		{"other bytes", []arrival{{Seq: 1}, {Seq: 2, Intact: true}}, 2, verdict{Changed: 1}, "1 changed"},
		{"never handed over", whole(1, 0, 9, 2), 2, verdict{Changed: 2}, "2 changed"},
		{
			"again under its id, and under another", []arrival{
				{Seq: 1, Intact: true, ID: "a"},
				{Seq: 1, Intact: true, ID: "a"},
				{Seq: 2, Intact: true, ID: "b"},
				{Seq: 2, Intact: true, ID: "c"},
				{Seq: 3, Intact: true},
				{Seq: 3, Intact: true},
			}, 3, verdict{Doubled: 3, Known: 1}, "3 doubled, 1 of them under their id",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := judge(row.came, row.n)
			if got != row.want || got.String() != row.text {
				t.Errorf("%+v %q, want %+v %q", got, got, row.want, row.text)
			}
		})
	}
	total := verdict{1, 2, 3, 4, 5, 6}.sum(verdict{10, 20, 30, 40, 50, 60})
	if want := (verdict{11, 22, 33, 44, 55, 66}); total != want {
		t.Errorf("the sum is %+v, want %+v", total, want)
	}
}

func TestFind(t *testing.T) {
	s := plain(12)
	now := time.Unix(7, 0)
	// As in the Collector's protobuf: the record's bytes with others around them.
	protobuf := slices.Concat([]byte{0x0a, 0x12}, s.lines[10], []byte{0x0a, 0xff, 0x12}, s.lines[2], []byte{0x00})
	for _, row := range []struct {
		name string
		raw  []byte
		want []arrival
	}{
		{"nothing", nil, nil},
		{"no record", []byte(`{"session":"other","seq":1}`), nil},
		{"one of ways", s.sent(12), []arrival{{Seq: 12, At: now, Intact: true}}},
		{"two of the Collector", protobuf, []arrival{{Seq: 11, At: now, Intact: true}, {Seq: 3, At: now, Intact: true}}},
		{"masked", bytes.Replace(s.sent(1), []byte("number 1"), []byte("number X"), 1), []arrival{{Seq: 1, At: now}}},
		{"cut off", s.lines[4][:len(s.lines[4])-3], []arrival{{Seq: 5, At: now}}},
		{"its beginning is missing", s.lines[4][6:], []arrival{{Seq: 5, At: now}}},
		{"a number that is none of ours", append(marker(), "13,"...), []arrival{{Seq: 13, At: now}}},
		{"no number", append(marker(), "x"...), []arrival{{At: now}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := s.find(row.raw, now); !slices.Equal(got, row.want) {
				t.Errorf("found %+v, want %+v", got, row.want)
			}
		})
	}
}

func TestReadFile(t *testing.T) {
	s := plain(6)
	line := func(n ...int) string { return string(s.exported(t, n...)) }
	for _, row := range []struct {
		name, text string
		otlp       bool
		want       []int
		torn       int
	}{
		{"empty", "", false, []int{}, 0},
		{"of ways", string(s.sent(1)) + "\n" + string(s.sent(2)) + "\n", false, []int{1, 2}, 0},
		{"of ways, cut off", string(s.sent(1)) + "\n" + string(s.sent(2)[:90]), false, []int{1}, 1},
		{"of the Collector", line(1, 2) + "\n" + line(3) + "\n", true, []int{1, 2, 3}, 0},
		{"of the Collector, without its last end of line", line(1, 2) + "\n" + line(3), true, []int{1, 2, 3}, 0},
		{"of the Collector, an end of line was lost", line(1, 2) + line(3, 4) + "\n" + line(5) + "\n", true, []int{1, 2, 3, 4, 5}, 1},
		{"of the Collector, cut off", line(1, 2) + "\n" + line(3)[:40] + "\n" + line(4) + "\n", true, []int{1, 2, 4}, 1},
		{"of the Collector, an empty line", line(1) + "\n\n", true, []int{1}, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "out")
			if err := os.WriteFile(path, []byte(row.text), 0o600); err != nil {
				t.Fatal(err)
			}
			came, torn, err := s.readFile(path, row.otlp)
			if err != nil {
				t.Fatal(err)
			}
			if got := seqs(came); !slices.Equal(got, row.want) || torn != row.torn {
				t.Errorf("%v and %d torn, want %v and %d", got, torn, row.want, row.torn)
			}
			for _, a := range came {
				if !a.Intact {
					t.Errorf("record %d is not intact", a.Seq)
				}
			}
		})
	}
	if _, _, err := s.readFile(filepath.Join(t.TempDir(), "none"), false); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestScanner cuts a text at every place: each number is found once.
func TestScanner(t *testing.T) {
	s := plain(11)
	text := bytes.Join(s.lines, []byte("\n"))
	want := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	for at := range text {
		scan := scanner{mark: marker()}
		got := append(scan.next(text[:at]), scan.next(text[at:])...)
		if !slices.Equal(got, want) {
			t.Fatalf("cut at %d: %v", at, got)
		}
	}
	scan := scanner{mark: marker()}
	var got []int
	for i := range text {
		got = append(got, scan.next(text[i:i+1])...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("byte by byte: %v", got)
	}
}

func FuzzFind(f *testing.F) {
	s := plain(3)
	f.Add(s.sent(1), 5)
	f.Add(append(marker(), "99999999999999999999999999,"...), 2)
	f.Add([]byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{}]}]}]}`), 0)
	f.Fuzz(func(t *testing.T, raw []byte, at int) {
		found := s.find(raw, time.Time{})
		if want := bytes.Count(raw, marker()); len(found) != want {
			t.Errorf("%d found, the mark is there %d times", len(found), want)
		}
		_, _, _ = bodies(raw)
		scan := scanner{mark: marker()}
		cut := min(max(at, 0), len(raw))
		pieces := append(scan.next(raw[:cut]), scan.next(raw[cut:])...)
		// What is not ended is not reported yet.
		if len(pieces) > len(found) {
			t.Errorf("%d in two pieces, %d in one", len(pieces), len(found))
		}
	})
}

func TestStream(t *testing.T) {
	const n = 120
	s, err := newStream(filepath.Join("..", "..", "..", "testdata", "claude-code"), "/home/dev/proj", n)
	if err != nil {
		t.Fatal(err)
	}
	distinct := map[string]bool{}
	for i, line := range s.lines {
		var rec struct {
			V       int    `json:"v"`
			Session string `json:"session"`
			Seq     int    `json:"seq"`
			Project string `json:"project"`
		}
		if err := json.Unmarshal(line, &rec); err != nil {
			t.Fatalf("record %d: %v", i+1, err)
		}
		if rec.V != 1 || rec.Session != session || rec.Seq != i+1 || rec.Project != "/home/dev/proj" {
			t.Fatalf("record %d is %s", i+1, line)
		}
		distinct[string(line)] = true
		if got := s.find(line, time.Time{}); len(got) != 1 || got[0].Seq != i+1 || !got[0].Intact {
			t.Fatalf("record %d is found as %+v", i+1, got)
		}
	}
	if len(distinct) != n || len(s.drafts) != n {
		t.Errorf("%d different records, %d drafts; want %d", len(distinct), len(s.drafts), n)
	}
	if least, middle, most, mean := s.sizes(); least < 300 || most > 2*mostPayload || middle < least || mean > most {
		t.Errorf("sizes %d, %d, %d, %d", least, middle, most, mean)
	}
	for i, d := range s.between(3, 5) {
		if got := d.Append(nil, uint64(3+i)); !bytes.Equal(got, s.lines[2+i]) {
			t.Errorf("the spool gets %s, the file %s", got, s.lines[2+i])
		}
	}
	path := filepath.Join(t.TempDir(), "records")
	if err := os.WriteFile(path, s.text(1, n), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := loadStream(path)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(again.lines, s.lines, bytes.Equal) || !slices.Equal(again.starts, s.starts) {
		t.Error("the stream is another one after a file")
	}
	if _, err := newStream(t.TempDir(), "/p", 1); err == nil || !strings.Contains(err.Error(), "no recorded payload") {
		t.Errorf("a directory without payloads: %v", err)
	}
}

func TestExport(t *testing.T) {
	s := plain(1)
	body, err := export(s.lines[0])
	if err != nil {
		t.Fatal(err)
	}
	list, values, err := bodies(body)
	if err != nil || values != 1 || len(list) != 1 || list[0] != string(s.lines[0]) {
		t.Errorf("what is pushed holds %q, %d values, %v", list, values, err)
	}
}

// TestSink posts as ways and as the Collector do.
func TestSink(t *testing.T) {
	s := plain(4)
	server := httptest.NewServer(newSink(s))
	defer server.Close()
	counted := make(chan string, 1)
	go func() {
		resp, err := http.Get(server.URL + "/count?more=3")
		if err != nil {
			counted <- err.Error()
			return
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		counted <- fmt.Sprint(string(text), err)
	}()
	send := func(path, id string, body []byte) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if id != "" {
			req.Header.Set("Webhook-Id", id)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
	send("/", "id-1", s.sent(1))
	send("/", "id-1", s.sent(1))
	select {
	case text := <-counted:
		t.Fatalf("3 records were counted when 1 had come: %q", text)
	default:
	}
	send("/v1/logs", "", slices.Concat([]byte{0x0a}, s.lines[3], []byte{0x0a}, s.lines[2]))
	if got := <-counted; got != "3\n<nil>" {
		t.Errorf("counted %q", got)
	}
	remote := &remoteSink{url: server.URL}
	rep, torn, err := remote.result()
	if err != nil || torn != 0 || rep.Requests != 3 || !slices.Equal(seqs(rep.Came), []int{1, 1, 4, 3}) {
		t.Errorf("%+v, %d torn, %v", rep, torn, err)
	}
	want := verdict{Missing: 1, Doubled: 1, Known: 1, Misplaced: 1}
	if got := judge(rep.Came, 4); got != want {
		t.Errorf("the verdict is %+v, want %+v", got, want)
	}
	if have, err := remote.wait(t.Context(), 2); have != 3 || err != nil {
		t.Errorf("%d came, %v", have, err)
	}
}

func TestServeSink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "records")
	s := plain(2)
	if err := os.WriteFile(path, bytes.Join(s.lines, []byte("\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	in, hold := io.Pipe()
	out, says := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- serveSink(path, in, says) }()
	var url string
	if _, err := fmt.Fscanln(out, &url); err != nil {
		t.Fatal(err)
	}
	if err := post(url, s.sent(2)); err != nil {
		t.Fatal(err)
	}
	if have, err := (&remoteSink{url: url}).wait(t.Context(), 1); have != 1 || err != nil {
		t.Errorf("%d came, %v", have, err)
	}
	hold.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestWatch follows a file that is made, and grows by pieces of lines.
func TestWatch(t *testing.T) {
	s := plain(40)
	for _, row := range []struct {
		name  string
		otlp  bool
		every time.Duration
	}{{"of ways, at once", false, atOnce}, {"of ways, now and then", false, time.Millisecond}, {"of the Collector, at once", true, atOnce}} {
		t.Run(row.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "out")
			w, err := watchFile(path, s, row.otlp, row.every)
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for n := 1; n <= 40; n += 2 {
				text := slices.Concat(s.sent(n), []byte("\n"), s.sent(n+1), []byte("\n"))
				if row.otlp {
					text = append(s.exported(t, n, n+1), '\n')
				}
				for _, piece := range [][]byte{text[:70], text[70:]} {
					if _, err := f.Write(piece); err != nil {
						t.Fatal(err)
					}
				}
			}
			if have, err := w.wait(t.Context(), 40); have != 40 || err != nil {
				t.Fatalf("%d came, %v", have, err)
			}
			rep, torn, err := w.result()
			if v := judge(rep.Came, 40); err != nil || torn != 0 || v != (verdict{}) {
				t.Errorf("%s, %d torn, %v", v, torn, err)
			}
			if first, last := span(firsts(rep.Came)); first.Before(begin) || last.After(time.Now()) || last.Before(first) {
				t.Errorf("they came from %v to %v", first, last)
			}
			if err := w.close(); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := watchFile(filepath.Join(t.TempDir(), "none", "out"), s, false, atOnce); err == nil && isLinux() {
		t.Error("a directory that is not there is watched")
	}
}

// isLinux: there, processes are measured.
func isLinux() bool {
	_, err := os.Stat("/proc/self/status")
	return err == nil
}

func TestTimes(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	first := firsts([]arrival{{Seq: 2, At: at(30)}, {Seq: 1, At: at(10)}, {Seq: 2, At: at(50)}, {Seq: 3, At: at(40)}})
	if len(first) != 3 || !first[2].Equal(at(30)) {
		t.Errorf("first arrivals %v", first)
	}
	if begin, end := span(first); !begin.Equal(at(10)) || !end.Equal(at(40)) {
		t.Errorf("they came from %v to %v", begin, end)
	}
}

func TestProcText(t *testing.T) {
	status := []byte("Name:\tways ctl\nVmPeak:\t  9999 kB\nVmHWM:\t   123 kB\nVmRSS:\t    45 kB\nThreads:\t8\n")
	for name, want := range map[string]int64{"VmHWM": 123 << 10, "VmRSS": 45 << 10} {
		if got, err := statusBytes(status, name); got != want || err != nil {
			t.Errorf("%s is %d, %v", name, got, err)
		}
	}
	for _, name := range []string{"VmSwap", "Threads", "Vm"} {
		if _, err := statusBytes(status, name); err == nil {
			t.Errorf("%s was found", name)
		}
	}
	stat := []byte("12 (a) R 1) S 1 2 3 4 5 6 7 8 9 10 250 50 13 14 20 0\n")
	if got, err := statTime(stat); got != 3*time.Second || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "12 (a) S 1", "12 (a) S 1 2 3 4 5 6 7 8 9 10 x 50 1 2"} {
		if _, err := statTime([]byte(text)); err == nil {
			t.Errorf("%q has a time", text)
		}
	}
}

// TestProcess measures a real process on Linux, and ends it in both ways.
func TestProcess(t *testing.T) {
	sh := func(script string) *process {
		p, err := startProcess([]string{"/bin/sh", "-c", script}, []string{"PATH=" + os.Getenv("PATH")}, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	waits := `trap 'exit 0' TERM; echo ready >&2; while :; do sleep 0.02; done`
	ready := func(p *process) {
		for p.said() != "ready" {
			if time.Since(p.started) > 20*time.Second {
				t.Fatal("the shell does not start")
			}
		}
	}
	p := sh(waits)
	ready(p)
	used, err := p.stop()
	if isLinux() {
		if err != nil || used.peak < 100<<10 || used.cpu < 0 {
			t.Errorf("it took %+v, %v", used, err)
		}
	} else if err == nil {
		t.Error("memory is known without /proc")
	}
	p = sh(waits)
	ready(p)
	if err := p.kill(); err != nil {
		t.Error(err)
	}
	p = sh("echo it failed >&2; exit 3")
	_, _ = p.cmd.Process.Wait()
	if err := p.kill(); err == nil || !strings.Contains(err.Error(), "it failed") {
		t.Errorf("killing what had ended: %v", err)
	}
}

func TestTake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l := &lab{lock: path}
	other, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	try := func(how int) error { return syscall.Flock(int(other.Fd()), how|syscall.LOCK_NB) }
	for _, row := range []struct {
		how               int
		exclusive, shared bool // what another can have meanwhile
	}{{syscall.LOCK_EX, false, false}, {syscall.LOCK_SH, false, true}, {syscall.LOCK_UN, true, true}} {
		release, err := l.take(row.how)
		if err != nil {
			t.Fatal(err)
		}
		for how, can := range map[int]bool{syscall.LOCK_EX: row.exclusive, syscall.LOCK_SH: row.shared} {
			if err := try(how); (err == nil) != can {
				t.Errorf("under lock %d another's %d: %v", row.how, how, err)
			}
			_ = try(syscall.LOCK_UN)
		}
		release()
		if err := try(syscall.LOCK_EX); err != nil {
			t.Errorf("lock %d was not given back: %v", row.how, err)
		}
		_ = try(syscall.LOCK_UN)
	}
	if release, err := (&lab{}).take(syscall.LOCK_EX); err != nil {
		t.Error(err)
	} else {
		release()
	}
}

// TestSides: each side has a name of its own, a valid sensor file, and
// configuration files that are there.
func TestSides(t *testing.T) {
	for name, sides := range map[string][]side{"backlog": throughputSides(), "rest": restSides(), "lag": lagSides(), "kills": killSides()} {
		names := map[string]bool{}
		for _, s := range sides {
			if names[s.what()] {
				t.Errorf("%s: two sides are called %s", name, s.what())
			}
			names[s.what()] = true
			if s.ways() {
				to := filepath.Join(t.TempDir(), "out.jsonl")
				if s.http {
					to = "http://127.0.0.1:1"
				}
				for _, mistake := range problem.Errors(sensors.Check("peer", []byte(s.sensor(to)))) {
					t.Errorf("%s: %v", s.what(), mistake)
				}
				continue
			}
			configs := filepath.Join("..", "..", "..", ".ci", "collector")
			for _, arg := range s.arguments(configs) {
				if path, ok := strings.CutPrefix(arg, "file:"); ok {
					if _, err := os.Stat(path); err != nil {
						t.Errorf("%s: %v", s.what(), err)
					}
				}
			}
		}
	}
}

func TestTables(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	ours, theirs := rival(true, "best_effort", "none"), peer("", true, "http.yaml")
	sides := []side{ours, theirs}
	lives := map[string][]started{
		ours.what():   {{ms(20), usage{ms(30), 9 << 20}}},
		theirs.what(): {{ms(300), usage{ms(100), 30 << 20}}, {ms(310), usage{ms(110), 30 << 20}}, {ms(290), usage{ms(90), 30 << 20}}},
	}
	rounds := map[string][]worked{
		ours.what():   {{whole: ms(2000), between: ms(1000), life: usage{ms(230), 10 << 20}, requests: 2001}},
		theirs.what(): {{whole: ms(1000), between: ms(500), life: usage{ms(120), 40 << 20}, requests: 21, verdict: verdict{Misplaced: 7}}},
	}
	for _, row := range []struct{ name, got, want string }{
		{
			"backlog", workedTable(sides, 2001, rounds, lives), `| side | records/s, with the start | records/s, first to last | CPU, µs a record | most memory, MB | requests a run | what arrived, all runs |
| --- | ---: | ---: | ---: | ---: | ---: | --- |
| ways, http, ~best_effort~, ~redact: none~ | 1,000 | 2,000 | 100.0 | 10 | 2,001 | each once, in order |
| Collector, http, ~fsync: true~ | 2,001 | 4,000 | 10.0 | 40 | 21 | 7 out of order |
`,
		},
		{
			"rest", restTable(sides, lives, map[string][]idled{ours.what(): {{8 << 20, 3 << 20, 0}}, theirs.what(): {{33 << 20, 20 << 20, 0.005}}},
				func(s side) int64 { return map[bool]int64{true: 12 << 20, false: 43 << 20}[s.ways()] }),
			`| side | start to the first record, ms | CPU to start and to stop, ms | memory, idle, MB | of that its own, MB | CPU, idle, ms/s | program, MB |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
| ways, http, ~best_effort~, ~redact: none~ | 20 | 30 | 8 | 3 | 0 | 12.0 |
| Collector, http, ~fsync: true~ | 300 | 100 | 33 | 20 | 5 | 43.0 |
`,
		},
		{
			"lag", lagTable(sides, map[string][]lagged{ours.what(): {{lags: []float64{1, 3}, cpu: 0.01}, {lags: []float64{2}, cpu: 0.02, verdict: verdict{Missing: 1200}}}}),
			`| side | median, ms | p99, ms | longest, ms | CPU, ms/s | what arrived, all runs |
| --- | ---: | ---: | ---: | ---: | --- |
| ways, http, ~best_effort~, ~redact: none~ | 2.0 | 3.0 | 3.0 | 10 | 1,200 missing |
| Collector, http, ~fsync: true~ | 0.0 | 0.0 | 0.0 | 0 | each once, in order |
`,
		},
		{
			"kills", killTable(sides, map[string][]verdict{ours.what(): {{}, {Doubled: 1500, Known: 1500}}, theirs.what(): {{Torn: 1}, {Missing: 2, Misplaced: 3}}}),
			`| side | kills | lost | doubled | of those, under the id they had | out of order | torn lines | runs with each record once, in order |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| ways, http, ~best_effort~, ~redact: none~ | 2 | 0 | 1,500 | 1,500 | 0 | 0 | 1 of 2 |
| Collector, http, ~fsync: true~ | 2 | 2 | 0 | 0 | 3 | 1 | 1 of 2 |
`,
		},
	} {
		if want := strings.ReplaceAll(row.want, "~", "`"); row.got != want {
			t.Errorf("%s:\n%swant\n%s", row.name, row.got, want)
		}
	}
}

// TestInTurn: the sides take turns, and the first failure ends it and is named.
func TestInTurn(t *testing.T) {
	sides := []side{rival(false, "best_effort", "none"), peer("", false, "file.yaml")}
	var order []string
	results, err := inTurn(&lab{}, "test", sides, 2, 1, syscall.LOCK_EX, func(s side) (int, error) {
		order = append(order, strconv.FormatBool(s.ways()))
		return len(order), nil
	})
	if err != nil || !slices.Equal(order, []string{"true", "false", "true", "false"}) ||
		!slices.Equal(results[sides[0].what()], []int{1, 3}) || !slices.Equal(results[sides[1].what()], []int{2, 4}) {
		t.Errorf("order %v, results %v, %v", order, results, err)
	}
	broken := errors.New("broken")
	_, err = inTurn(&lab{}, "test", sides, 2, 2, syscall.LOCK_UN, func(s side) (int, error) {
		if s.ways() {
			return 0, nil
		}
		return 0, broken
	})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "test, Collector, file, `fsync: false`, round 1") {
		t.Errorf("the failure is %v", err)
	}
}

func TestRunRefuses(t *testing.T) {
	for _, row := range []struct {
		name string
		args []string
		want string
	}{
		{"no binaries", []string{"--bin", t.TempDir()}, "go tool task bench:collector"},
		{"one record", []string{"--records", "1"}, "at least 2"},
		{"no rounds", []string{"--rounds", "0"}, "at least 1"},
		{"no such part", []string{"--only", "backlog,lags"}, "--only lags: the parts are backlog, rest, lag, kills"},
		{"an unknown flag", []string{"--kill", "1"}, "unknown flag"},
		{"a sink without records", []string{"--sink", filepath.Join(t.TempDir(), "none")}, "no such file"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if err := run(t.Context(), row.args); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v, want an error that says %q", err, row.want)
			}
		})
	}
}
