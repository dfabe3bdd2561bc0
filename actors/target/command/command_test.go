package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ways/actors/target"
	"ways/config/plan"
	"ways/hooks/redact"
)

// roleVar makes the test binary run as a dispatcher that can be killed, with the
// session in sessionVar.
const (
	roleVar    = "WAYS_COMMAND_TEST_ROLE"
	sessionVar = "WAYS_COMMAND_TEST_SESSION"
)

func TestMain(m *testing.M) {
	if err := errors.Join(BecomeSubreaper(), HideDescriptors()); err != nil {
		panic(err)
	}
	if script := os.Getenv(roleVar); script != "" {
		roleDispatcher(script)
		return
	}
	os.Exit(m.Run())
}

// roleDispatcher runs one command that does not end by itself.
func roleDispatcher(script string) {
	to, err := New(plan.Command{Argv: []string{"sh", "-c", script}, Input: "stdin"}, Options{Getenv: os.Getenv})
	if err != nil {
		panic(err)
	}
	d := dispatch(1, "{}")
	d.Session = os.Getenv(sessionVar)
	fmt.Println(to.Deliver(context.Background(), d))
}

func dispatch(n int, data string) target.Dispatch {
	record := fmt.Sprintf(`{"v":1,"section":"user_prompt","seq":%d,"data":%s}`, n, data)
	return target.Dispatch{
		ID:   fmt.Sprintf("the-session/s/r/%d", n),
		Rule: "s/r", Session: "the-session", Seq: uint64(n), Attempt: 1,
		Body: redact.Plain([]byte(record), redact.Envelope{Rule: "s/r", RuleSeq: uint64(n)}),
	}
}

// env is the dispatcher's environment in these tests.
func env(name string) string {
	return map[string]string{
		"PATH": "/usr/bin:/bin", "HOME": "/home/nobody", "LANG": "C.UTF-8", "LC_TIME": "C",
		"XDG_STATE_HOME": "/s", "ANTHROPIC_API_KEY": "provider-key", "TOKEN": "t0ken",
	}[name]
}

func newTarget(t *testing.T, cfg plan.Command) *Target {
	t.Helper()
	if cfg.Input == "" {
		cfg.Input = "stdin"
	}
	made, err := New(cfg, Options{Home: "/home/nobody", Getenv: env})
	if err != nil {
		t.Fatal(err)
	}
	return made.(*Target)
}

func shell(t *testing.T, script string) *Target {
	t.Helper()
	return newTarget(t, plan.Command{Argv: []string{"sh", "-c", script}})
}

// within returns a context with a rule's timeout.
func within(t *testing.T, timeout time.Duration) context.Context {
	ctx, cancel := context.WithTimeoutCause(t.Context(), timeout, target.ErrExpired)
	t.Cleanup(cancel)
	return ctx
}

// wantOutcome checks an error against "kind reason", or "" for a delivery.
func wantOutcome(t *testing.T, err error, want string) {
	t.Helper()
	got := ""
	var e *target.Error
	if errors.As(err, &e) {
		got = string(e.Kind) + " " + e.Reason
	} else if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("outcome = %q (%v), want %q", got, err, want)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheRecordOnStdin(t *testing.T) {
	to := shell(t, "cat; echo said >&2")
	d := dispatch(1, `{"prompt":"a b"}`)
	wantOutcome(t, to.Deliver(t.Context(), d), "")
	if got, want := to.LastOutput(), (Output{Stdout: string(d.Body.Bytes()) + "\n", Stderr: "said\n"}); got != want {
		t.Errorf("output = %+v, want %+v", got, want)
	}
	if to.Describe() != "sh" {
		t.Errorf("Describe = %q", to.Describe())
	}
}

func TestArguments(t *testing.T) {
	to := newTarget(t, plan.Command{
		Argv:  []string{"printf", "<%s>", "{data.prompt}", "-{seq}-{nope}", "{{x}}", "$HOME `id` ; *", "{data}"},
		Input: "args",
	})
	d := dispatch(7, `{"prompt":"a\u0000b \"c\"\n$(id)"}`)
	wantOutcome(t, to.Deliver(t.Context(), d), "")
	want := "<a\ufffdb \"c\"\n$(id)><-7-><{x}><$HOME `id` ; *>" + `<{"prompt":"a\u0000b \"c\"\n$(id)"}>`
	if got := to.LastOutput().Stdout; got != want {
		t.Errorf("arguments = %q, want %q", got, want)
	}

	// stdin is empty then, and argv is as written with input: stdin.
	cat := newTarget(t, plan.Command{Argv: []string{"cat"}, Input: "args"})
	wantOutcome(t, cat.Deliver(t.Context(), d), "")
	if got := cat.LastOutput().Stdout; got != "" {
		t.Errorf("stdin held %q", got)
	}
	plain := newTarget(t, plan.Command{Argv: []string{"printf", "%s", "{seq}"}})
	wantOutcome(t, plain.Deliver(t.Context(), d), "")
	if got := plain.LastOutput().Stdout; got != "{seq}" {
		t.Errorf("argv with input: stdin = %q", got)
	}
}

func TestArgumentSize(t *testing.T) {
	for _, row := range []struct {
		size, times int
		want        string
	}{
		{argumentLimit, 1, ""},
		{argumentLimit + 1, 1, "refused argument_too_long"},
		{argumentLimit, 100, "refused argument_too_long"}, // together past any ARG_MAX
	} {
		argv := []string{"true"}
		for range row.times {
			argv = append(argv, "{data.prompt}")
		}
		to := newTarget(t, plan.Command{Argv: argv, Input: "args"})
		wantOutcome(t, to.Deliver(t.Context(), dispatch(1, `{"prompt":"`+strings.Repeat("x", row.size)+`"}`)), row.want)
	}
}

func TestTheEnvironmentIsCleared(t *testing.T) {
	to := newTarget(t, plan.Command{
		Argv: []string{"env"},
		Env: []plan.Pair{
			{Name: "AUTH", Value: "Bearer ${TOKEN}"},
			{Name: "LANG", Value: "en"},
			{Name: Marker, Value: ""},
			{Name: "EMPTY", Value: ""},
		},
	})
	wantOutcome(t, to.Deliver(t.Context(), dispatch(3, "{}")), "")
	want := strings.Join([]string{
		"PATH=/usr/bin:/bin", "HOME=/home/nobody", "LANG=en", "LC_TIME=C", "XDG_STATE_HOME=/s",
		"AUTH=Bearer t0ken", "WAYS_CONSUMER=1", "EMPTY=", "WAYS_RULE=s/r", "WAYS_SESSION=the-session",
		"WAYS_SEQ=3", "WAYS_DELIVERY_ID=the-session/s/r/3", "WAYS_OWNER=" + owner(), "",
	}, "\n")
	if got := to.LastOutput().Stdout; got != want {
		t.Errorf("environment:\n%swant:\n%s", got, want)
	}
}

func TestWhatCannotBeRun(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	for _, row := range []struct {
		name string
		cfg  plan.Command
		want string
	}{
		{"no such name", plan.Command{Argv: []string{"no-such-program"}}, "refused not_found"},
		{"no such path", plan.Command{Argv: []string{dir + "/none"}}, "refused not_found"},
		{"no such path under home", plan.Command{Argv: []string{"~/none"}}, "refused not_found"},
		{"relative path", plan.Command{Argv: []string{"./there"}, Cwd: dir}, ""},
		{"relative path from /", plan.Command{Argv: []string{"./there"}}, "refused not_found"},
		{"name in a relative PATH", plan.Command{Argv: []string{"there"}, Cwd: dir, Env: []plan.Pair{{Name: "PATH", Value: ".::" + dir + "x"}}}, "refused not_found"},
		{"name in the rule's PATH", plan.Command{Argv: []string{"there"}, Env: []plan.Pair{{Name: "PATH", Value: dir + ":/bin"}}}, ""},
		{"not executable", plan.Command{Argv: []string{file("plain", "#!/bin/sh\n", 0o644)}}, "refused not_executable"},
		{"directory", plan.Command{Argv: []string{dir}}, "refused not_executable"},
		{"neither program nor script", plan.Command{Argv: []string{file("text", "hello", 0o755)}}, "refused not_executable"},
		{"no interpreter", plan.Command{Argv: []string{file("lost", "#!/no/such/shell\n", 0o755)}}, "refused not_executable"},
		{"no cwd", plan.Command{Argv: []string{"true"}, Cwd: dir + "/none"}, "refused bad_cwd"},
		{"cwd is a file", plan.Command{Argv: []string{"true"}, Cwd: file("there", "#!/bin/sh\nexit 0\n", 0o755)}, "refused bad_cwd"},
		{"relative cwd", plan.Command{Argv: []string{"true"}, Cwd: "x"}, "refused bad_cwd"},
		{"missing variable in cwd", plan.Command{Argv: []string{"true"}, Cwd: "/${NONE}"}, "refused missing_variable"},
		{"missing variable in env", plan.Command{Argv: []string{"true"}, Env: []plan.Pair{{Name: "A", Value: "${NONE}"}}}, "refused missing_variable"},
		{"malformed variable", plan.Command{Argv: []string{"true"}, Env: []plan.Pair{{Name: "A", Value: "${"}}}, "refused bad_env"},
		{"name with =", plan.Command{Argv: []string{"true"}, Env: []plan.Pair{{Name: "A=B", Value: ""}}}, "refused bad_env"},
		{"NUL in a value", plan.Command{Argv: []string{"true"}, Env: []plan.Pair{{Name: "A", Value: "\x00"}}}, "refused bad_env"},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := descriptors(t)
			wantOutcome(t, newTarget(t, row.cfg).Deliver(t.Context(), dispatch(1, "{}")), row.want)
			if after := descriptors(t); after != before {
				t.Errorf("%d descriptors, %d before", after, before)
			}
		})
	}
}

func TestWorkingDirectory(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for cwd, want := range map[string]string{"": "/\n", dir: dir + "\n"} {
		to := newTarget(t, plan.Command{Argv: []string{"pwd"}, Cwd: cwd})
		wantOutcome(t, to.Deliver(t.Context(), dispatch(1, "{}")), "")
		if got := to.LastOutput().Stdout; got != want {
			t.Errorf("cwd %q: %q, want %q", cwd, got, want)
		}
	}
}

func TestNewRefusesWhatNoSensorFileMayHold(t *testing.T) {
	for _, cfg := range []plan.Command{
		{Input: "stdin"},
		{Argv: []string{""}, Input: "stdin"},
		{Argv: []string{"x"}, Input: "file"},
		{Argv: []string{"x", "{"}, Input: "args"},
	} {
		if _, err := New(cfg, Options{}); err == nil {
			t.Errorf("New(%+v) took it", cfg)
		}
	}
}

// Consumers that misbehave, each a real program. They end by themselves or are
// killed; then no process and no descriptor is left.
func TestHostileConsumers(t *testing.T) {
	big := `{"prompt":"` + strings.Repeat("x", 1<<20) + `"}`
	for _, row := range []struct {
		name, script, want string
	}{
		{"exits with 0", "exit 0", ""},
		{"exits with 1", "exit 1", "failed exit_1"},
		{"exits with 137", "exit 137", "failed exit_137"},
		{"killed by a signal", "kill -KILL $$", "failed signal_KILL"},
		{"crashes", "kill -SEGV $$", "failed signal_SEGV"},
		{"reads a little", "head -c 10 >/dev/null", ""},
		{"closes stdin", "exec <&-; exec sleep 0.05", ""},
		{"closes all three", "exec <&- >&- 2>&-; exit 0", ""},
		{"writes to a closed stdout", "exec >&-; echo x; exit 3", "failed exit_3"},
		{"much on stderr", "head -c 3000000 /dev/zero >&2", ""},
		{"much on stdout before it reads", "head -c 3000000 /dev/zero; cat >/dev/null", ""},
		{"echoes while it reads", "cat; exit 4", "failed exit_4"},
		{"never reads, never ends", "exec sleep 60", "killed timeout"},
		{"reads, never ends", "cat >/dev/null; exec sleep 60", "killed timeout"},
		{"closes everything, never ends", "exec <&- >&- 2>&-; exec sleep 60", "killed timeout"},
		{"ignores every signal it may", "trap '' TERM INT HUP QUIT PIPE; while :; do sleep 60; done", "killed timeout"},
		{"stops itself", "kill -STOP $$", "killed timeout"},
		{"writes without end", "exec yes", "killed timeout"},
		{"errs without end", "exec yes >&2", "killed timeout"},
		{"a tree of children", "sleep 60 & (sleep 60 & sleep 60) & wait", "killed timeout"},
		{"forks without end", "f() { sleep 60 & }; while :; do f; done 2>/dev/null", "killed timeout"},
		{"forks and exits", "sleep 60 >/dev/null 2>&1 </dev/null & exit 0", ""},
		{"a grandchild holds the pipes", "sleep 60 & exit 0", ""},
		{"a grandchild holds the pipes after a failure", "sleep 60 & exit 5", "failed exit_5"},
		{"a stopped grandchild", "sh -c 'kill -STOP $$' & exit 0", ""},
		{"the parent of a zombie", "sh -c 'exit 0' & exec sleep 60", "killed timeout"},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := descriptors(t)
			to := shell(t, row.script)
			timeout := 10 * time.Second
			if strings.HasPrefix(row.want, "killed") {
				timeout = 150 * time.Millisecond
			}
			start := time.Now()
			wantOutcome(t, to.Deliver(within(t, timeout), dispatch(1, big)), row.want)
			if took := time.Since(start); took > 4*time.Second {
				t.Errorf("it took %v", took)
			}
			// The rule goes on with its next record at once.
			noProcessLeft(t)
			if after := descriptors(t); after != before {
				t.Errorf("%d descriptors, %d before", after, before)
			}
			if out := to.LastOutput(); len(out.Stdout) > 4*tailSize+5 || len(out.Stderr) > 4*tailSize+5 {
				t.Errorf("%d and %d bytes of output kept", len(out.Stdout), len(out.Stderr))
			}
		})
	}
}

func TestAnEndedContext(t *testing.T) {
	stop := errors.New("stopping")
	for cause, want := range map[error]string{target.ErrExpired: "timed_out start", stop: "failed cancelled"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		wantOutcome(t, shell(t, "exit 0").Deliver(ctx, dispatch(1, "{}")), want)
	}
	// Cancelled for another reason while it runs: killed, and not the rule's fault.
	fifo := newFIFO(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		fifo.line(t)
		cancel(stop)
	}()
	wantOutcome(t, shell(t, "echo x > "+fifo.path+"; exec sleep 60").Deliver(ctx, dispatch(1, "{}")), "failed cancelled")
	noProcessLeft(t)
}

func TestTheErrorDoesNotRepeatTheOutput(t *testing.T) {
	to := shell(t, "echo t0ken >&2; exit 1")
	err := to.Deliver(t.Context(), dispatch(1, "{}"))
	wantOutcome(t, err, "failed exit_1")
	if strings.Contains(err.Error(), "t0ken") {
		t.Errorf("error = %v", err)
	}
	if got := to.LastOutput().Stderr; got != "t0ken\n" {
		t.Errorf("stderr = %q", got)
	}
	wantOutcome(t, to.Deliver(within(t, 0), dispatch(1, "{}")), "timed_out start")
	if got := to.LastOutput(); got != (Output{}) {
		t.Errorf("output of the run before: %+v", got)
	}
}

func TestTail(t *testing.T) {
	for _, row := range []struct {
		writes []string
		want   string
	}{
		{nil, ""},
		{[]string{"a", "b\n"}, "ab\n"},
		{[]string{strings.Repeat("x", tailSize)}, strings.Repeat("x", tailSize)},
		{[]string{strings.Repeat("x", tailSize), "y"}, "[...]" + strings.Repeat("x", tailSize-1) + "y"},
		{[]string{"abc", strings.Repeat("x", 3*tailSize) + "y"}, "[...]" + strings.Repeat("x", tailSize-1) + "y"},
		{[]string{strings.Repeat("x", keepSize) + "\nlast\n"}, "[...]last\n"},
		{[]string{strings.Repeat("é", tailSize)}, "[...]" + strings.Repeat("é", tailSize/2)},
		{[]string{"\x1b]52;c;x\x07\u202e"}, `\x1b]52;c;x\x07\u202e`},
	} {
		var kept tail
		for _, w := range row.writes {
			kept.add([]byte(w))
		}
		if got := kept.words(nil); got != row.want {
			t.Errorf("%.20q: %.40q, want %.40q", row.writes, got, row.want)
		}
	}
}

// What a program writes is masked before it is cut, wherever the cuts fall: of a
// secret that stands at the edge of what is kept, or of what is shown, nothing is
// left.
func TestOutputIsMaskedBeforeItIsCut(t *testing.T) {
	masker, err := redact.New(redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mask := func(b []byte) []byte { masked, _ := masker.Text(b); return masked }
	const token = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	key := "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat(strings.Repeat("Ab9+", 16)+"\n", 30) + "-----END RSA PRIVATE KEY-----\n"
	for _, secret := range []string{token, "password=" + token, key} {
		for _, edge := range []int{tailSize, keepSize} {
			for back := -len(secret) - 2; back <= 2; back += 7 {
				for _, fill := range []string{"x ", "words\n", "xxxxxxxx"} {
					after := strings.Repeat(fill, edge)[:edge+back]
					var kept tail
					kept.add([]byte(strings.Repeat(fill, 2*keepSize)[:2*keepSize] + "\n" + secret))
					kept.add([]byte("\n" + after))
					got := kept.words(mask)
					for i := 0; i+12 <= len(secret); i += 12 {
						if part := secret[i : i+12]; !strings.Contains(part, "-") && strings.Contains(got, part) {
							t.Fatalf("edge %d, %d back, %q: %q is left of %.20q", edge, back, fill, part, secret)
						}
					}
				}
			}
		}
	}
}

// Four rules at once, 500 kills: no zombie, no child, no descriptor is left.
func TestFiveHundredKills(t *testing.T) {
	before := descriptors(t)
	var rules sync.WaitGroup
	for r := range 4 {
		up := newFIFO(t)
		rules.Go(func() {
			to := shell(t, "sleep 60 & echo up > "+up.path+"; sleep 60")
			for n := range 125 {
				ctx, cancel := context.WithCancelCause(t.Context())
				rules.Go(func() {
					up.line(t)
					cancel(target.ErrExpired)
				})
				err := to.Deliver(ctx, dispatch(r*1000+n, "{}"))
				if target.KindOf(err) != target.Killed {
					t.Errorf("kill %d of rule %d: %v", n, r, err)
				}
			}
		})
	}
	rules.Wait()
	noProcessLeft(t)
	if after := descriptors(t); after != before+4 { // the FIFOs are still open
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

// fifo is how a program tells a test that it has come so far.
type fifo struct {
	path string
	read func() string
}

func (f fifo) line(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(f.read())
}

func BenchmarkDeliver(b *testing.B) {
	made, err := New(plan.Command{Argv: []string{"true"}, Input: "stdin"}, Options{Getenv: env})
	if err != nil {
		b.Fatal(err)
	}
	d := dispatch(1, "{}")
	for b.Loop() {
		if err := made.Deliver(b.Context(), d); err != nil {
			b.Fatal(err)
		}
	}
}
