package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"ways/actors/target"
	"ways/config/plan"
	"ways/hooks/redact"
)

// dispatch returns a dispatch of a record that holds n, with an id of its own.
func dispatch(n int, data string) target.Dispatch {
	record := fmt.Sprintf(`{"v":1,"ts":"2026-01-02T03:04:05Z","section":"user_prompt","agent_type":"main","seq":%d,"data":%s}`, n, data)
	return target.Dispatch{
		ID:   fmt.Sprintf("session/rule/%d", n),
		Rule: "s/r", Session: "session", Seq: uint64(n), Attempt: 1,
		Body: redact.Plain([]byte(record), redact.Envelope{Rule: "s/r", RuleSeq: uint64(n)}),
	}
}

type fixture struct {
	dir, log string
	opts     Options
	vars     map[string]string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{dir: dir, log: filepath.Join(dir, "logs", "audit.jsonl"), vars: map[string]string{}}
	f.opts = Options{
		StateDir: filepath.Join(dir, "state"), Home: filepath.Join(dir, "home"),
		Getenv: func(name string) string { return f.vars[name] },
	}
	return f
}

func (f *fixture) target(t *testing.T, cfg plan.File) *Target {
	t.Helper()
	if cfg.Format == "" {
		cfg.Format = "jsonl"
	}
	made, err := New(cfg, f.opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := made.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return made.(*Target)
}

func deliver(t *testing.T, to *Target, d target.Dispatch) {
	t.Helper()
	if err := to.Deliver(t.Context(), d); err != nil {
		t.Fatalf("Deliver %s: %v", d.ID, err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func line(d target.Dispatch) string { return string(d.Body.Bytes()) + "\n" }

func wantError(t *testing.T, err error, kind target.Kind, reason string) *target.Error {
	t.Helper()
	var e *target.Error
	if !errors.As(err, &e) {
		t.Fatalf("error = %v, want a *target.Error", err)
	}
	if e.Kind != kind || e.Reason != reason {
		t.Fatalf("error = %v, want %s (%s)", err, kind, reason)
	}
	return e
}

func TestAppendsLinesToAPrivateFile(t *testing.T) {
	f := newFixture(t)
	to := f.target(t, plan.File{Path: f.log})
	one, two := dispatch(1, `{"prompt":"a\nb"}`), dispatch(2, `{"id":9007199254740993}`)
	deliver(t, to, one)
	deliver(t, to, two)
	if got, want := read(t, f.log), line(one)+line(two); got != want {
		t.Errorf("log = %q, want %q", got, want)
	}
	for path, want := range map[string]fs.FileMode{
		f.log: 0o600, filepath.Dir(f.log): fs.ModeDir | 0o700,
		filepath.Join(f.opts.StateDir, "targets"): fs.ModeDir | 0o700,
		to.journal.path: 0o600,
	} {
		info, err := os.Stat(path)
		if err != nil || info.Mode() != want {
			t.Errorf("%s: mode %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
	if to.Describe() != f.log {
		t.Errorf("Describe = %q", to.Describe())
	}
}

func TestPathIsFilledAtDispatch(t *testing.T) {
	f := newFixture(t)
	to := f.target(t, plan.File{Path: "~/${NAME}/x.jsonl"})
	e := wantError(t, to.Deliver(t.Context(), dispatch(1, "{}")), target.Refused, "missing_variable")
	if !strings.Contains(e.Error(), "${NAME}") {
		t.Errorf("the error does not name the variable: %v", e)
	}
	f.vars["NAME"] = "here"
	deliver(t, to, dispatch(1, "{}"))
	if got := read(t, filepath.Join(f.opts.Home, "here", "x.jsonl")); got != line(dispatch(1, "{}")) {
		t.Errorf("log = %q", got)
	}
	if to.Describe() != "~/${NAME}/x.jsonl" {
		t.Errorf("Describe = %q", to.Describe())
	}
}

func TestTextFormat(t *testing.T) {
	for _, row := range []struct{ name, template, data, want string }{
		{"default, a prompt", "", `{"prompt":"do it"}`, "2026-01-02T03:04:05Z main user_prompt: do it\n"},
		{"default, a reply", "", `{"text":"done"}`, "2026-01-02T03:04:05Z main user_prompt: done\n"},
		{"default, neither", "", `{"id":1,"name":"Bash"}`, "2026-01-02T03:04:05Z main user_prompt: {\"id\":1,\"name\":\"Bash\"}\n"},
		{"lines", "{data.prompt}", `{"prompt":"a\nb\r\n\nc\n\n"}`, "a\n    b\\r\n    \n    c\n"},
		{"controls", "{data.prompt}", `{"prompt":"\u001b]52;c;x\u0007\u202e\u009b\u0000"}`, "\\x1b]52;c;x\\x07\\u202e\\x9b\\x00\n"},
		{"missing, braces", "<{nope}{{{seq}}}>", `{}`, "<{1}>\n"},
	} {
		f := newFixture(t)
		to := f.target(t, plan.File{Path: f.log, Format: "text", Template: row.template})
		deliver(t, to, dispatch(1, row.data))
		if got := read(t, f.log); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

func TestNewRefusesWhatNoSensorFileMayHold(t *testing.T) {
	for _, row := range []struct {
		cfg  plan.File
		says string
	}{
		{plan.File{Path: "/x", Format: "xml"}, `"xml"`},
		{plan.File{Path: "/x", Format: "text", Template: "{ts"}, "byte 1"},
	} {
		if _, err := New(row.cfg, Options{}); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("New(%+v) = %v, want an error saying %q", row.cfg, err, row.says)
		}
	}
}

func TestPathsThatAreRefused(t *testing.T) {
	for _, row := range []struct {
		name, reason string
		path         func(t *testing.T, f *fixture) string
	}{
		{"FIFO without a reader", "not_regular", func(t *testing.T, f *fixture) string {
			path := filepath.Join(f.dir, "fifo")
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}},
		{"socket", "not_regular", func(t *testing.T, f *fixture) string {
			// A socket's path is short on every system; a test's directory is not.
			dir, err := os.MkdirTemp("", "s")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			path := filepath.Join(dir, "s")
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			return path
		}},
		{"directory", "is_directory", func(_ *testing.T, f *fixture) string { return f.dir }},
		{"the root", "is_directory", func(*testing.T, *fixture) string { return "/" }},
		{"null device", "not_regular", func(*testing.T, *fixture) string { return "/dev/null" }},
		{"symlink", "is_symlink", func(t *testing.T, f *fixture) string {
			write(t, f.log, "")
			return symlink(t, f.log, filepath.Join(f.dir, "link"))
		}},
		{"dangling symlink", "is_symlink", func(t *testing.T, f *fixture) string {
			return symlink(t, filepath.Join(f.dir, "nowhere"), filepath.Join(f.dir, "link"))
		}},
		{"symlink to a device", "is_symlink", func(t *testing.T, f *fixture) string {
			return symlink(t, "/dev/null", filepath.Join(f.dir, "link"))
		}},
		{"directories in a circle", "not_directory", func(t *testing.T, f *fixture) string {
			return filepath.Join(symlink(t, "circle", filepath.Join(f.dir, "circle")), "x")
		}},
		{"hard link", "hard_linked", func(t *testing.T, f *fixture) string {
			write(t, f.log, "")
			if err := os.Link(f.log, f.log+"2"); err != nil {
				t.Fatal(err)
			}
			return f.log
		}},
		{"below a file", "not_directory", func(t *testing.T, f *fixture) string {
			write(t, f.log, "")
			return filepath.Join(f.log, "x")
		}},
		{"long name", "name_too_long", func(_ *testing.T, f *fixture) string {
			return filepath.Join(f.dir, strings.Repeat("x", 300))
		}},
		{"relative", "bad_path", func(*testing.T, *fixture) string { return "audit.jsonl" }},
		{"missing variable", "missing_variable", func(*testing.T, *fixture) string { return "/${NONE}/x" }},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newFixture(t)
			path := row.path(t, f)
			before := descriptors(t)
			made, err := New(plan.File{Path: path, Format: "jsonl"}, f.opts)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				wantError(t, made.Deliver(t.Context(), dispatch(1, "{}")), target.Refused, row.reason)
			}
			if err := made.Close(); err != nil {
				t.Error(err)
			}
			if after := descriptors(t); after != before {
				t.Errorf("%d descriptors, %d before", after, before)
			}
		})
	}
}

func symlink(t *testing.T, to, path string) string {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// descriptors counts this process's open descriptors.
func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestFailureMapsEveryErrno(t *testing.T) {
	to := newFixture(t).target(t, plan.File{Path: "~/${SECRET}"})
	for errno, want := range map[syscall.Errno]struct {
		kind   target.Kind
		reason string
	}{
		syscall.ENOSPC: {target.Failed, "disk_full"},
		syscall.EDQUOT: {target.Failed, "disk_full"},
		syscall.EFBIG:  {target.Failed, "file_too_large"},
		syscall.EROFS:  {target.Failed, "read_only"},
		syscall.EIO:    {target.Failed, "io"},
		syscall.EACCES: {target.Refused, "permission"},
		syscall.EPERM:  {target.Refused, "permission"},
		syscall.ENXIO:  {target.Refused, "not_regular"},
	} {
		err := to.failure(t.Context(), to.Describe(), &fs.PathError{Op: "open", Path: "/filled/value", Err: errno})
		e := wantError(t, err, want.kind, want.reason)
		if strings.Contains(e.Error(), "/filled/value") || !strings.Contains(e.Error(), "~/${SECRET}: open: "+errno.Error()) {
			t.Errorf("%v: %v", errno, e)
		}
	}
}

// The log is replaced between two deliveries; the second goes to what is there.
func TestLogReplacedUnderUs(t *testing.T) {
	one, two := dispatch(1, "{}"), dispatch(2, "{}")
	for _, row := range []struct {
		name   string
		change func(t *testing.T, log string)
		want   string
	}{
		{"untouched", func(*testing.T, string) {}, line(one) + line(two)},
		{"deleted", func(t *testing.T, log string) { must(t, os.Remove(log)) }, line(two)},
		{"moved", func(t *testing.T, log string) { must(t, os.Rename(log, log+".1")) }, line(two)},
		{"moved and made anew", func(t *testing.T, log string) {
			must(t, os.Rename(log, log+".1"))
			write(t, log, "")
		}, line(two)},
		{"copied and cut", func(t *testing.T, log string) { must(t, os.Truncate(log, 0)) }, line(two)},
		{"edited by an editor", func(t *testing.T, log string) {
			write(t, log+".new", "edited\n")
			must(t, os.Rename(log+".new", log))
		}, "edited\n" + line(two)},
		{"directory deleted", func(t *testing.T, log string) { must(t, os.RemoveAll(filepath.Dir(log))) }, line(two)},
		{"foreign line appended", func(t *testing.T, log string) { appendTo(t, log, "foreign\n") }, line(one) + "foreign\n" + line(two)},
		{"foreign line not ended", func(t *testing.T, log string) { appendTo(t, log, "foreign") }, line(one) + "foreign\n" + line(two)},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newFixture(t)
			to := f.target(t, plan.File{Path: f.log})
			deliver(t, to, one)
			row.change(t, f.log)
			deliver(t, to, two)
			if got := read(t, f.log); got != row.want {
				t.Errorf("log = %q, want %q", got, row.want)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	_, err = f.WriteString(text)
	must(t, errors.Join(err, f.Close()))
}

// What a killed writer can leave, made by hand: the first line is whole, the
// second is under way when the writer dies.
func TestFragments(t *testing.T) {
	first, torn, next := dispatch(1, "{}"), dispatch(2, `{"prompt":"`+strings.Repeat("x", 2000)+`"}`), dispatch(3, "{}")
	for _, row := range []struct {
		name string
		// left is what follows the first line; change edits the intent.
		left   string
		change func(i *intent)
		want   string
		moved  string
	}{
		{"nothing written yet", "", nil, line(first) + line(next), ""},
		{"one byte", line(torn)[:1], nil, line(first) + line(next), line(torn)[:1]},
		{"inside the head", line(torn)[:100], nil, line(first) + line(next), line(torn)[:100]},
		{"behind the head", line(torn)[:1500], nil, line(first) + line(next), line(torn)[:1500]},
		{"all but the newline", string(torn.Body.Bytes()), nil, line(first) + line(next), string(torn.Body.Bytes())},
		{"whole", line(torn), nil, line(first) + line(torn) + line(next), ""},
		{"whole, a foreign line behind", line(torn) + "foreign\n", nil, line(first) + line(torn) + "foreign\n" + line(next), ""},
		{"foreign line glued on", line(torn)[:100] + "foreign\n", nil, line(first) + line(torn)[:100] + "foreign\n" + line(next), ""},
		{"not how the entry begins", strings.ToUpper(line(torn)[:100]), nil, line(first) + strings.ToUpper(line(torn)[:100]) + "\n" + line(next), ""},
		{"intent of another file", line(torn)[:100], func(i *intent) { i.log.inode++ }, line(first) + line(torn)[:100] + "\n" + line(next), ""},
		{"intent is done", line(torn)[:100], func(i *intent) { i.open = false }, line(first) + line(torn)[:100] + "\n" + line(next), ""},
		{"log shorter than the intent", "", func(i *intent) { i.begin += 50 }, line(first) + line(next), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newFixture(t)
			to := f.target(t, plan.File{Path: f.log})
			deliver(t, to, first)
			stat, err := os.Stat(f.log)
			must(t, err)
			must(t, to.journal.load())
			i := intentFor(to, torn, stat.Size())
			if row.change != nil {
				row.change(&i)
			}
			to.journal.intent = i
			must(t, to.journal.store())
			appendTo(t, f.log, row.left)

			// Another process comes next.
			deliver(t, f.target(t, plan.File{Path: f.log}), next)
			if got := read(t, f.log); got != row.want {
				t.Errorf("log = %q, want %q", got, row.want)
			}
			moved, err := os.ReadFile(to.journal.path + ".torn")
			if row.moved == "" {
				if !errors.Is(err, fs.ErrNotExist) {
					t.Fatalf("moved aside: %q, %v", moved, err)
				}
				return
			}
			must(t, err)
			label, fragment, _ := strings.Cut(string(moved), "\n")
			if fragment != row.moved+"\n" {
				t.Errorf("moved aside: %q, want %q", fragment, row.moved+"\n")
			}
			var said struct {
				Offset, Bytes, Of, Seq int64
			}
			must(t, json.Unmarshal([]byte(label), &said))
			if said.Offset != int64(len(line(first))) || said.Bytes != int64(len(row.moved)) ||
				said.Of != int64(len(line(torn))) || said.Seq != 2 {
				t.Errorf("label = %s", label)
			}
		})
	}
}

// intentFor is the intent of an append of d at begin.
func intentFor(to *Target, d target.Dispatch, begin int64) intent {
	entry := []byte(line(d))
	return intent{
		open: true, oneLine: true, known: true, log: to.logID, begin: begin, size: int64(len(entry)),
		sum: crc32.Checksum(entry, to.journal.table), prefix: entry[:prefixSize],
		writer: keyOf(d.Session, d.Rule), seq: d.Seq,
	}
}

// A fragment behind a foreign line that nobody ended begins with our newline.
func TestFragmentBehindAForeignLine(t *testing.T) {
	f := newFixture(t)
	write(t, f.log, "foreign")
	to := f.target(t, plan.File{Path: f.log})
	deliver(t, to, dispatch(1, "{}")) // leaves the journal open
	must(t, os.Truncate(f.log, int64(len("foreign\n{\"v\""))))
	if i := to.journal.intent; i.begin != int64(len("foreign")) || i.open {
		t.Fatalf("intent = %+v", i)
	}
	encodeMark(to.journal.buf[markAt:], 0, markNone, to.journal.table)
	must(t, to.disk.writeAt(to.journal.file, to.journal.buf[markAt:], markAt))
	deliver(t, f.target(t, plan.File{Path: f.log}), dispatch(2, "{}"))
	if got, want := read(t, f.log), "foreign\n"+line(dispatch(2, "{}")); got != want {
		t.Errorf("log = %q, want %q", got, want)
	}
}

func TestDamagedJournalIsNoJournal(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"empty":     func([]byte) []byte { return nil },
		"short":     func(b []byte) []byte { return b[:100] },
		"a bit":     func(b []byte) []byte { b[slotSize+20] ^= 1; return b },
		"its sum":   func(b []byte) []byte { b[slotSize+sumAt] ^= 1; return b },
		"NUL bytes": func(b []byte) []byte { return make([]byte, len(b)) },
		"too long":  func(b []byte) []byte { return append(b, b...) },
	} {
		f := newFixture(t)
		to := f.target(t, plan.File{Path: f.log})
		deliver(t, to, dispatch(1, "{}"))
		b, err := os.ReadFile(to.journal.path)
		must(t, err)
		must(t, os.WriteFile(to.journal.path, damage(b), 0o600))
		deliver(t, to, dispatch(2, "{}"))
		if got, want := read(t, f.log), line(dispatch(1, "{}"))+line(dispatch(2, "{}")); got != want {
			t.Errorf("%s: log = %q, want %q", name, got, want)
		}
	}
}

func TestTheSameDeliveryAgainIsNotWrittenAgain(t *testing.T) {
	d := dispatch(1, `{"prompt":"x"}`)
	for _, row := range []struct {
		name    string
		between func(t *testing.T, f *fixture)
		again   target.Dispatch
		want    string
	}{
		{"at once", nil, d, line(d)},
		{"another attempt", nil, func() target.Dispatch { a := d; a.Attempt = 2; return a }(), line(d)},
		{"a foreign line behind", func(t *testing.T, f *fixture) { appendTo(t, f.log, "foreign\n") }, d, line(d) + "foreign\n"},
		{"another session", nil, func() target.Dispatch { a := d; a.Session = "other"; return a }(), line(d) + line(d)},
		{"another rule", nil, func() target.Dispatch { a := d; a.Rule = "s/other"; return a }(), line(d) + line(d)},
		{"the log was moved", func(t *testing.T, f *fixture) { must(t, os.Rename(f.log, f.log+".1")) }, d, ""},
		{"the log was cut", func(t *testing.T, f *fixture) { must(t, os.Truncate(f.log, 3)) }, d, "{\"v"},
		{"no id", nil, func() target.Dispatch { a := d; a.ID = ""; return a }(), line(d) + line(d)},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newFixture(t)
			deliver(t, f.target(t, plan.File{Path: f.log}), d)
			if row.between != nil {
				row.between(t, f)
			}
			deliver(t, f.target(t, plan.File{Path: f.log}), row.again)
			if got := read(t, f.log); got != row.want {
				t.Errorf("log = %q, want %q", got, row.want)
			}
		})
	}
}

func TestTwoWaysToOneFileMeetAtOneLock(t *testing.T) {
	f := newFixture(t)
	write(t, f.log, "")
	link := symlink(t, filepath.Dir(f.log), filepath.Join(f.dir, "link"))
	a, b := f.target(t, plan.File{Path: f.log}), f.target(t, plan.File{Path: filepath.Join(link, "audit.jsonl")})
	deliver(t, a, dispatch(1, "{}"))
	deliver(t, b, dispatch(2, "{}"))
	if a.journal.path != b.journal.path {
		t.Errorf("locks %s and %s", a.journal.path, b.journal.path)
	}
}

func TestTheWaitForTheLockEndsWithItsContext(t *testing.T) {
	for _, row := range []struct {
		cause  error
		kind   target.Kind
		reason string
	}{
		{target.ErrExpired, target.TimedOut, "lock"},
		{errors.New("stopping"), target.Failed, "cancelled"},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			holder, waiter := f.target(t, plan.File{Path: f.log}), f.target(t, plan.File{Path: f.log})
			deliver(t, holder, dispatch(1, "{}"))
			must(t, holder.journal.lock(t.Context(), holder.journal.path))

			ctx, cancel := context.WithCancelCause(t.Context())
			start := time.Now()
			time.AfterFunc(3*time.Second, func() { cancel(row.cause) })
			wantError(t, waiter.Deliver(ctx, dispatch(2, "{}")), row.kind, row.reason)
			if took := time.Since(start); took != 3*time.Second {
				t.Errorf("gave up after %v, want 3s", took)
			}
			var released sync.WaitGroup
			released.Go(func() {
				time.Sleep(time.Second)
				holder.journal.unlock()
			})
			deliver(t, waiter, dispatch(3, "{}"))
			released.Wait()
			if got, want := read(t, f.log), line(dispatch(1, "{}"))+line(dispatch(3, "{}")); got != want {
				t.Errorf("log = %q, want %q", got, want)
			}
		})
	}
}

func TestAContextThatIsOverBeforeWritesNothing(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(target.ErrExpired)
	wantError(t, f.target(t, plan.File{Path: f.log}).Deliver(ctx, dispatch(1, "{}")), target.TimedOut, "lock")
	if _, err := os.Stat(f.log); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the log: %v", err)
	}
}

// Deleting a lock file must not leave two writers, each with a lock of its own.
func TestADeletedLockIsMadeAnew(t *testing.T) {
	f := newFixture(t)
	a, b := f.target(t, plan.File{Path: f.log}), f.target(t, plan.File{Path: f.log})
	deliver(t, a, dispatch(1, "{}"))
	must(t, os.RemoveAll(f.opts.StateDir))
	deliver(t, b, dispatch(2, "{}"))
	must(t, b.journal.lock(t.Context(), b.journal.path))
	for range 2 {
		if taken, err := a.journal.tryLock(); taken || err != nil {
			t.Errorf("a second lock: %v, %v", taken, err)
		}
	}
	b.journal.unlock()
	deliver(t, a, dispatch(3, "{}"))
}

func TestMovedAsideIsBounded(t *testing.T) {
	f := newFixture(t)
	to := f.target(t, plan.File{Path: f.log})
	deliver(t, to, dispatch(1, "{}"))
	for _, size := range []int{700_000, 200_000, 200_000, 3 << 20, 10} {
		must(t, to.journal.moveAside(&intent{size: 1 << 30}, []byte(strings.Repeat("x", size-1)+"y")))
		moved := read(t, to.journal.path+".torn")
		if len(moved) > tornLimit {
			t.Fatalf("%d bytes are kept", len(moved))
		}
		if size < tornLimit-1000 && !strings.HasSuffix(moved, "y\n") {
			t.Errorf("the fragment of %d bytes is not the last", size)
		}
	}
}

func TestSync(t *testing.T) {
	f := newFixture(t)
	f.opts.Sync = true
	to := f.target(t, plan.File{Path: f.log})
	deliver(t, to, dispatch(1, "{}"))
	deliver(t, to, dispatch(1, "{}"))
	deliver(t, to, dispatch(2, "{}"))
	if got, want := read(t, f.log), line(dispatch(1, "{}"))+line(dispatch(2, "{}")); got != want {
		t.Errorf("log = %q, want %q", got, want)
	}
}

func BenchmarkDeliver(b *testing.B) {
	made, err := New(plan.File{Path: filepath.Join(b.TempDir(), "x"), Format: "jsonl"}, Options{
		StateDir: b.TempDir(), Getenv: func(string) string { return "" },
	})
	if err != nil {
		b.Fatal(err)
	}
	d := dispatch(1, `{"prompt":"`+strings.Repeat("x", 1000)+`"}`)
	d.ID = ""
	for b.Loop() {
		if err := made.Deliver(b.Context(), d); err != nil {
			b.Fatal(err)
		}
	}
}
