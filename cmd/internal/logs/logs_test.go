package logs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"ways/cmd/internal/cli"
	"ways/hooks/dirs"
)

type rig struct {
	t *testing.T
	d dirs.Dirs
}

func newRig(t *testing.T) rig {
	home := t.TempDir()
	return rig{t, dirs.Dirs{Home: home, State: filepath.Join(home, ".local/state/agent-ways"), Config: filepath.Join(home, ".config/agent-ways"), Cache: filepath.Join(home, ".cache/agent-ways")}}
}

func (r rig) write(path string, lines ...string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	for _, l := range lines {
		if _, err := f.WriteString(l); err != nil {
			r.t.Fatal(err)
		}
	}
}

func at(second int, level, session, message string) string {
	return fmt.Sprintf(`{"level":%q,"session":%q,"time":"2026-11-30T10:00:%02dZ","message":%q}`+"\n", level, session, second, message)
}

func (r rig) run(args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	code = Run(cli.Env{Getenv: func(name string) string {
		if name == "HOME" {
			return r.d.Home
		}
		return ""
	}, Stdout: &out, Stderr: &errs}, args)
	return out.String(), errs.String(), code
}

func messages(t *testing.T, text string) []string {
	t.Helper()
	var out []string
	for line := range strings.Lines(text) {
		var l struct{ Message string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		out = append(out, l.Message)
	}
	return out
}

// Logs of sessions, put aside or not, of blocking rules and of hooks are one log.
func TestMerged(t *testing.T) {
	r := newRig(t)
	a, b := r.d.Session("a"), r.d.Session("b c")
	r.write(filepath.Join(a, "dispatcher-2026-11-30T09-00-00.000.log"), at(1, "info", "a", "one"), at(5, "warn", "a", "five"))
	r.write(filepath.Join(a, "dispatcher.log"), at(6, "info", "a", "six"), at(9, "error", "a", "nine"))
	r.write(filepath.Join(a, "blocking.log"), at(4, "info", "a", "four"), at(3, "info", "a", "three")) // two processes
	r.write(filepath.Join(b, "dispatcher.log"), at(2, "debug", "b c", "two"), at(7, "info", "b c", "seven"), "\n", at(8, "info", "b c", "eight"), `{"half`)
	r.write(filepath.Join(r.d.State, "hook.log.1"), `{"time":"2026-11-30T10:00:00.5Z","level":"warn","message":"zero","reason":"empty"}`+"\n")
	r.write(filepath.Join(r.d.State, "hook.log"), `{"time":"2026-11-30T10:00:10Z","level":"warn","message":"ten","reason":"empty","session":"a"}`+"\n")
	r.write(filepath.Join(a, "unrelated.log"), at(1, "info", "a", "no"))
	if err := os.Symlink("/etc/passwd", filepath.Join(b, "blocking.log")); err != nil {
		t.Fatal(err)
	}
	all := strings.Fields("zero one two three four five six seven eight nine ten")
	for _, row := range []struct {
		args []string
		want []string
	}{
		{nil, all},
		{[]string{"--level", "warn"}, []string{"zero", "five", "nine", "ten"}},
		{[]string{"--session", "b c"}, []string{"two", "seven", "eight"}},
		{[]string{"--session", "a", "--level", "ERROR"}, []string{"nine"}},
		{[]string{"--since", "2026-11-30T10:00:09Z", "--json"}, []string{"nine", "ten"}},
		{[]string{"--since", "0s"}, nil},
		{[]string{"--session", "nobody"}, nil},
	} {
		out, errs, code := r.run(row.args...)
		if got := messages(t, out); !slices.Equal(got, row.want) || errs != "" || code != cli.OK {
			t.Errorf("%v: %q, %q, %d; want %q", row.args, got, errs, code, row.want)
		}
	}
	for _, args := range [][]string{{"--level", "loud"}, {"--since", "yesterday"}, {"word"}} {
		if _, errs, code := r.run(args...); code != cli.Usage || errs == "" {
			t.Errorf("%v: %q, %d", args, errs, code)
		}
	}
}

func TestRules(t *testing.T) {
	r := newRig(t)
	line := func(fields, message string) string {
		return `{"level":"info","time":"2026-11-30T10:00:00Z",` + fields + `,"message":"` + message + "\"}\n"
	}
	r.write(filepath.Join(r.d.Session("a"), "dispatcher.log"),
		line(`"rule":"audit/log"`, "1"), line(`"rule":"audit/http"`, "2"), line(`"rule":"audit2/log"`, "3"),
		line(`"actor":"rule/audit/log"`, "4"), line(`"supervisor":"rule/audit/http"`, "5"), line(`"actor":"meter"`, "6"))
	for rule, want := range map[string][]string{"audit/log": {"1", "4"}, "audit": {"1", "2", "4", "5"}, "aud": nil, "audit2": {"3"}} {
		out, _, _ := r.run("--rule", rule)
		if got := messages(t, out); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", rule, got, want)
		}
	}
}

// Whatever stands in a log, JSON comes out, nothing is lost without a word, and a
// terminal is told nothing.
func TestHostileLines(t *testing.T) {
	r := newRig(t)
	r.write(filepath.Join(r.d.Session("a"), "dispatcher.log"),
		at(1, "info", "a", "good"), "no json at all \x1b[2J\xff\n", `{"a":1} {"b":2}`+"\n", "[1]\n", "{\"level\":\"info\",\"message\":\"esc \\u001b]0;title\\u0007\"}\n", strings.Repeat("x", 3<<20)+"\n", at(2, "info", "a", "last"))
	out, _, _ := r.run()
	got := messages(t, out)
	bad := "a line of the log is no JSON"
	if len(got) < 8 || !slices.Equal(got[:5], []string{"good", bad, bad, bad, "esc \x1b]0;title\a"}) || got[len(got)-1] != "last" {
		t.Errorf("%q", got)
	}
	for line := range strings.Lines(out) {
		l := Parse([]byte(line), "", time.Time{})
		if strings.ContainsAny(l.Text(), "\x1b\a\n") {
			t.Errorf("on a terminal: %q", l.Text())
		}
	}
}

func TestText(t *testing.T) {
	l := Parse([]byte(`{"level":"warn","time":"2026-11-30T10:00:00.1234Z","session":"3a091c4c-5872","rule":"a/b","message":"not delivered","seq":7,"error":"it said \"no\"","empty":"","n":null,"o":{"k":[1]}}`), "", time.Time{})
	l.Time = l.Time.In(time.Local)
	want := l.Time.Format("2006-01-02 15:04:05") + `.123 WARN  3a091c4c a/b not delivered seq=7 error="it said \"no\"" empty="" n=null o="{\"k\":[1]}"`
	if l.Text() != want {
		t.Errorf("%s\nwant %s", l.Text(), want)
	}
	if l.Level != zerolog.WarnLevel {
		t.Errorf("level %v", l.Level)
	}
}

// Following goes on where reading ended, finds sessions that are new, and loses
// nothing to rotation, with no line twice.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		old, log := r.d.Session("old"), filepath.Join(r.d.Session("a"), "dispatcher.log")
		r.write(filepath.Join(old, "dispatcher.log"), at(1, "info", "old", "1"))
		r.write(log, at(2, "info", "a", "2"), `{"level":"info","time":"2026-11-30T10:00:03Z",`)
		r.write(filepath.Join(r.d.State, "pending", "a"), "a")
		in, out := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		v := view{env: cli.Env{Stdout: out, Stderr: io.Discard}, d: r.d, out: bufio.NewWriter(out)}
		ended := make(chan error, 1)
		go func() {
			ended <- v.show(ctx, true)
			out.Close()
		}()
		lines := bufio.NewReader(in)
		expect := func(want ...string) {
			t.Helper()
			for _, w := range want {
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				if got := messages(t, line); got[0] != w {
					t.Fatalf("got %q, want %q", got, w)
				}
			}
		}
		expect("1", "2")
		r.write(log, `"message":"3"}`+"\n")
		expect("3")
		// A session that is new.
		r.write(filepath.Join(r.d.Session("b"), "dispatcher.log"), at(4, "info", "b", "4"))
		expect("4")
		// Rotation, with lines on both sides.
		r.write(log, at(5, "info", "a", "5"))
		if err := os.Rename(log, filepath.Join(r.d.Session("a"), "dispatcher-2026-11-30T10-00-00.000.log")); err != nil {
			t.Fatal(err)
		}
		r.write(log, at(6, "info", "a", "6"))
		expect("5", "6")
		// The hooks' log, which did not exist.
		r.write(filepath.Join(r.d.State, "hook.log"), `{"time":"2026-11-30T10:00:07Z","message":"7"}`+"\n")
		expect("7")
		// A past session that is no longer past: the sweep finds it.
		r.write(filepath.Join(old, "dispatcher.log"), at(8, "info", "old", "8"))
		expect("8")
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
			t.Errorf("rest %q, %v", rest, err)
		}
	})
}

// A reader that has gone ends it, also when nothing is written any more.
func TestReaderGone(t *testing.T) {
	r := newRig(t)
	r.write(filepath.Join(r.d.Session("a"), "dispatcher.log"), at(1, "info", "a", "1"))
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	v := view{env: cli.Env{Stdout: out, Stderr: io.Discard}, d: r.d, out: bufio.NewWriter(out)}
	ended := make(chan error, 1)
	go func() { ended <- v.show(t.Context(), true) }()
	if _, err := bufio.NewReader(in).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	in.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	out.Close()
}

// Files that are not logs are passed over with a word, and hold nothing up.
func TestNotRegular(t *testing.T) {
	r := newRig(t)
	path := filepath.Join(r.d.Session("a"), "dispatcher.log")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	r.write(filepath.Join(r.d.Session("b"), "dispatcher.log"), at(1, "info", "b", "1"))
	out, _, code := r.run()
	if got := messages(t, out); !slices.Equal(got, []string{"1"}) || code != cli.OK {
		t.Errorf("%q, %d", got, code)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(at(1, "info", "a", "one")))
	f.Add([]byte(`{"level":7,"time":"x","message":{"a":"` + "\xff" + `"}}`))
	f.Add([]byte("{\"a\":\"\\ud800\"}\n{}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		l := Parse(raw, "/p", time.Unix(1, 0))
		if !json.Valid(l.Raw) || bytes.ContainsRune(l.Raw, '\n') {
			t.Fatalf("%q", l.Raw)
		}
		if text := l.Text(); strings.ContainsAny(text, "\n\x1b\r\x07\x7f") {
			t.Fatalf("%q", text)
		}
	})
}
