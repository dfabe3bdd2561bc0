package file

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"ways/actors/target"
	"ways/actors/target/checkpoint"
	"ways/config/plan"
	"ways/hooks/chain"
)

// The test binary runs itself as the processes of these tests: roleVar names
// what it is to do, argsVar what with.
const (
	roleVar = "WAYS_FILE_TEST_ROLE"
	argsVar = "WAYS_FILE_TEST_ARGS"
)

func TestMain(m *testing.M) {
	args := strings.Split(os.Getenv(argsVar), "\n")
	switch os.Getenv(roleVar) {
	case "":
		os.Exit(m.Run())
	case "write":
		os.Exit(roleWrite(args))
	case "disk":
		os.Exit(roleDisk(args))
	case "chain":
		os.Exit(roleChain(args))
	case "limited":
		os.Exit(roleLimited(args))
	}
	os.Exit(3)
}

func role(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"="+name, argsVar+"="+strings.Join(args, "\n"),
		// A binary built with -race waits a second before it exits.
		"GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	return cmd
}

func roleTarget(state, log string) target.Target {
	to, err := New(plan.File{Path: log, Format: "jsonl"}, Options{
		StateDir: state, Getenv: func(string) string { return "" },
	})
	if err != nil {
		panic(err)
	}
	return to
}

// roleWrite delivers args[3] records of args[4] bytes, numbered from args[2], and
// says "w <n>" before and "d <n>" after each.
func roleWrite(args []string) int {
	to := roleTarget(args[0], args[1])
	from, _ := strconv.Atoi(args[2])
	count, _ := strconv.Atoi(args[3])
	size, _ := strconv.Atoi(args[4])
	filler := strings.Repeat(string(rune('a'+from%26)), size)
	for n := from; n < from+count; n++ {
		d := dispatch(n, `{"prompt":"`+filler+`"}`)
		d.Session = args[2] // each process is the dispatcher of a session of its own
		fmt.Println("w", n)
		if err := to.Deliver(context.Background(), d); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println("d", n)
	}
	return 0
}

// roleChain is a session's dispatcher: it delivers chained records from args[4] on
// until it is killed, and says each number once it is accepted.
func roleChain(args []string) int {
	keeper := checkpoint.New(args[0], args[2])
	to, err := New(plan.File{Path: args[1], Format: "jsonl"}, Options{
		StateDir: args[0], Getenv: func(string) string { return "" }, Chain: true,
		Checkpoints: Checkpoints{Every: 50, Write: func(name string, h chain.Head) error {
			_, err := keeper.Write(name, h)
			return err
		}},
	})
	if err != nil {
		panic(err)
	}
	from, _ := strconv.Atoi(args[4])
	for n := from; ; n++ {
		if err := to.Deliver(context.Background(), Record(args[3], n)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(n)
	}
}

// roleLimited delivers under a limit on the size of files, so that writes end
// half way; the limit is this process's alone.
func roleLimited(args []string) int {
	// Without this the signal that goes with EFBIG would be the default one.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGXFSZ)
	to := roleTarget(args[0], args[1])
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		panic(err)
	}
	set := func(limit uint64) {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: old.Max}); err != nil {
			panic(err)
		}
	}
	say := func(n int, size int) {
		d := dispatch(n, `{"prompt":"`+strings.Repeat("x", size)+`"}`)
		d.Unordered = true
		err := to.Deliver(context.Background(), d)
		var e *target.Error
		if errors.As(err, &e) {
			fmt.Println(n, e.Kind, e.Reason)
			return
		}
		fmt.Println(n, err)
	}
	set(100_000)
	say(1, 1000)
	say(2, 200_000)
	say(2, 200_000)
	say(3, 1000)
	set(old.Cur)
	say(2, 200_000)
	return 0
}

// lines checks that the log is whole lines, each a record, and returns how often
// each record is there.
func lines(t *testing.T, log string) map[int]int {
	t.Helper()
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen := map[int]int{}
	r := bufio.NewReaderSize(f, 1<<20)
	for at := 1; ; at++ {
		line, err := r.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return seen
		}
		if err != nil {
			t.Fatalf("line %d: %v after %d bytes", at, err, len(line))
		}
		// The filler is one letter many times; it is taken out first, since
		// decoding megabytes of it is most of the test's time.
		head, rest, ok := bytes.Cut(line, []byte(`"prompt":"`))
		end := bytes.IndexByte(rest, '"')
		if !ok || end < 1 || bytes.Count(rest[:end], rest[:1]) != end {
			t.Fatalf("line %d of %d bytes is not one record: %.80q", at, len(line), line)
		}
		var record struct{ Seq int }
		if err := json.Unmarshal(slices.Concat(head, []byte(`"prompt":"`), rest[end:]), &record); err != nil {
			t.Fatalf("line %d of %d bytes: %v: %.80q", at, len(line), err, line)
		}
		seen[record.Seq]++
	}
}

func TestFiftyProcessesIntoOneFile(t *testing.T) {
	f := newFixture(t)
	const processes, each = 50, 3
	var wait sync.WaitGroup
	for i := range processes {
		wait.Go(func() {
			cmd := role(t.Context(), "write", f.opts.StateDir, f.log, strconv.Itoa(1+i*each), strconv.Itoa(each), "200000")
			if err := cmd.Run(); err != nil {
				t.Errorf("writer %d: %v", i, err)
			}
		})
	}
	wait.Wait()
	seen := lines(t, f.log)
	if len(seen) != processes*each {
		t.Fatalf("%d records, want %d", len(seen), processes*each)
	}
	for n, times := range seen {
		if times != 1 {
			t.Errorf("record %d is there %d times", n, times)
		}
	}
}

// Writers are killed while they write; whatever they leave, the log stays whole
// lines, every record that was said to be delivered is in it, and the records
// that were not go in once when they are sent again.
func TestKilledWriters(t *testing.T) {
	f := newFixture(t)
	to := f.target(t, plan.File{Path: f.log})
	deliver(t, to, dispatch(999_998, `{"prompt":"a"}`)) // makes the journal that is watched
	const kills = 15
	delivered, pending := map[int]bool{}, map[int]bool{}
	torn := 0
	for k := range kills {
		cmd := role(t.Context(), "write", f.opts.StateDir, f.log, strconv.Itoa(1+k*1000), "1000", "10000000")
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, to.journal.load())
		stale := to.journal.generation
		must(t, cmd.Start())
		said := bufio.NewScanner(out)
		for said.Scan() && said.Text() != fmt.Sprint("w ", 1+k*1000+k%2) {
			note(said.Text(), delivered, pending)
		}
		note(said.Text(), delivered, pending)
		awaitWrite(t, to, stale, k%4 > 0)
		must(t, cmd.Process.Kill())
		for said.Scan() {
			note(said.Text(), delivered, pending)
		}
		_ = cmd.Wait() // killed, as was meant
		stat, err := to.log.Stat()
		must(t, err)
		must(t, to.journal.load())
		if i := &to.journal.intent; i.open && stat.Size() > i.begin && stat.Size() < i.end() {
			torn++
		}
	}

	deliver(t, to, dispatch(999_999, `{"prompt":"z"}`))
	seen := lines(t, f.log)
	for n := range delivered {
		if seen[n] != 1 {
			t.Errorf("record %d was delivered and is there %d times", n, seen[n])
		}
	}
	if torn == 0 {
		t.Fatalf("none of %d kills tore a line, so nothing was tried", kills)
	}
	aside, err := os.ReadFile(to.journal.path + ".torn")
	must(t, err)
	if !bytes.HasPrefix(aside, []byte(`{"bytes":`)) || len(aside) > tornLimit {
		t.Errorf("moved aside: %d bytes, %.80q", len(aside), aside)
	}
	t.Logf("%d kills, %d torn lines, %d records delivered, %d in doubt", kills, torn, len(delivered), len(pending))
}

func note(said string, delivered, pending map[int]bool) {
	what, number, _ := strings.Cut(said, " ")
	n, err := strconv.Atoi(number)
	if err != nil {
		return
	}
	switch what {
	case "w":
		pending[n] = true
	case "d":
		delete(pending, n)
		delivered[n] = true
	}
}

// awaitWrite returns when an append other than the stale one is under way: its
// intent is open and, with begun, some of it is in the log. It looks without a pause, since a write takes
// about a millisecond.
func awaitWrite(t *testing.T, to *Target, stale uint64, begun bool) {
	t.Helper()
	for t.Context().Err() == nil {
		must(t, to.journal.load())
		i := to.journal.intent
		if !i.open || to.journal.generation <= stale {
			continue
		}
		stat, err := to.log.Stat()
		must(t, err)
		if !begun || stat.Size() > i.begin {
			return
		}
	}
}

// The dispatcher dies right after the append, before its own bookkeeping, and
// the next one delivers the same record.
func TestAKilledWritersWholeLineIsNotWrittenTwice(t *testing.T) {
	f := newFixture(t)
	cmd := role(t.Context(), "write", f.opts.StateDir, f.log, "5", "1", "1000")
	must(t, cmd.Run())
	again := dispatch(5, `{"prompt":"`+strings.Repeat("f", 1000)+`"}`)
	again.Session = "5"
	deliver(t, f.target(t, plan.File{Path: f.log}), again)
	if seen := lines(t, f.log); len(seen) != 1 || seen[5] != 1 {
		t.Errorf("records = %v, want record 5 once", seen)
	}
}

// A write that ends half way is cut back, and the log takes the next record.
func TestFileSizeLimit(t *testing.T) {
	f := newFixture(t)
	out, err := role(t.Context(), "limited", f.opts.StateDir, f.log).Output()
	must(t, err)
	want := "1 <nil>\n2 failed file_too_large\n2 failed file_too_large\n3 <nil>\n2 <nil>\n"
	if string(out) != want {
		t.Errorf("outcomes:\n%swant:\n%s", out, want)
	}
	seen := lines(t, f.log)
	if len(seen) != 3 || seen[1] != 1 || seen[2] != 1 || seen[3] != 1 {
		t.Errorf("records = %v, want 1, 2 and 3 once each", seen)
	}
}
