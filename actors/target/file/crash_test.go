package file_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"ways/actors/target"
	"ways/actors/target/audit"
	"ways/actors/target/checkpoint"
	"ways/actors/target/file"
	"ways/config/plan"
	"ways/hooks/chain"
)

// house is a chained log, all that is kept outside of it, and the sessions that
// write it.
type house struct {
	t        *testing.T
	dir, log string
	keeper   *checkpoint.Keeper
	sync     bool
	every    uint64
	// rash: closing makes no checkpoint.
	rash bool
	// together is how many records are delivered at once; 0 for one.
	together int
	// sessions have the last record that was delivered; accepted are all.
	last     map[string]int
	accepted map[string]bool
}

func newHouse(t *testing.T, dir string) *house {
	t.Helper()
	h := &house{t: t, dir: dir, log: filepath.Join(dir, "log"), every: 25, last: map[string]int{}, accepted: map[string]bool{}}
	h.keeper = checkpoint.New(filepath.Join(dir, "state"), h.keyFile())
	return h
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (h *house) options() file.Options {
	return file.Options{
		StateDir: filepath.Join(h.dir, "state"), Getenv: func(string) string { return "" }, Sync: h.sync, Chain: true,
		Checkpoints: file.Checkpoints{Every: h.every, AtClose: !h.rash, Write: func(name string, head chain.Head) error {
			// Not synced: what dies here is a process, and thousands of them do.
			signed, err := h.keeper.Sign(name, head)
			if err != nil {
				return err
			}
			path := checkpoint.File(filepath.Join(h.dir, "state"), name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return err
			}
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
			if err != nil {
				return err
			}
			_, err = f.Write(append([]byte{'\n'}, signed...))
			return errors.Join(err, f.Close())
		}},
	}
}

func (h *house) config() plan.File { return plan.File{Path: h.log, Format: "jsonl"} }

// run delivers records of a session until one fails or the process dies; again is
// how many of those that were accepted come once more, as after the death of a
// dispatcher that had not noted them down.
func (h *house) run(session string, to *file.Target, again, count int) (died bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			if _, killed := v.(file.Died); !killed {
				panic(v)
			}
			file.Abandon(to)
			died = true
		}
	}()
	for n := max(1, h.last[session]+1-again); count > 0; {
		var ds []target.Dispatch
		for range min(count, max(1, h.together)) {
			ds = append(ds, file.Record(session, n+len(ds)))
		}
		accepted, err := to.DeliverAll(context.Background(), ds)
		if (err == nil) != (accepted == len(ds)) {
			h.t.Fatalf("%d of %d records were accepted, with the error %v", accepted, len(ds), err)
		}
		for range accepted {
			h.accepted[fmt.Sprintf("%s:%d", session, n)] = true
			h.last[session] = max(h.last[session], n)
			n++
		}
		if err != nil {
			return false, errors.Join(err, to.Close())
		}
		count -= accepted
	}
	return false, to.Close()
}

// logs are the log and what it was rotated to, oldest first.
func (h *house) logs() []string {
	var files []string
	for n := range 1000 {
		path := fmt.Sprintf("%s.%d", h.log, n)
		if _, err := os.Stat(path); err != nil {
			break
		}
		files = append(files, path)
	}
	return append(files, h.log)
}

// check checks all that holds at any time: accepted records are there once, the
// others at most once, and the chain verifies. A log in which a writer died just
// now may be recoverable; calm says that none did.
func (h *house) check(what string, calm bool) audit.Status {
	h.t.Helper()
	seen := map[string]int{}
	for _, name := range h.logs() {
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		must(h.t, err)
		for line := range bytes.Lines(text) {
			_, rest, _ := bytes.Cut(line, []byte(`"session":"`))
			session, rest, _ := bytes.Cut(rest, []byte(`","seq":`))
			seq, _, whole := bytes.Cut(rest, []byte(`,"data":`))
			if !whole || !bytes.HasSuffix(line, []byte("}\n")) {
				if !calm && !bytes.HasSuffix(line, []byte("\n")) {
					continue // torn, and the next writer's to move aside
				}
				h.t.Fatalf("%s: no record: %q", what, line)
			}
			seen[string(session)+":"+string(seq)]++
		}
	}
	for id := range h.accepted {
		if seen[id] != 1 {
			h.t.Fatalf("%s: record %s was accepted and is there %d times", what, id, seen[id])
		}
	}
	for id, n := range seen {
		if n > 1 {
			h.t.Fatalf("%s: record %s is there %d times", what, id, n)
		}
	}
	r := h.verify()
	if r.Status == audit.Tampered || r.Status == audit.Incomplete || calm && r.Status != audit.OK {
		h.t.Fatalf("%s: %+v", what, r)
	}
	return r.Status
}

func (h *house) verify() audit.Report {
	h.t.Helper()
	state := filepath.Join(h.dir, "state")
	known, err := file.Inspect(context.Background(), state, h.log)
	if errors.Is(err, fs.ErrNotExist) {
		return audit.Report{Status: audit.OK}
	}
	must(h.t, err)
	in := audit.Input{Files: h.logs(), Current: h.log, Known: &known, Chain: known.Name}
	if _, err := os.Stat(h.log); errors.Is(err, fs.ErrNotExist) && known.Head.N == 0 {
		return audit.Report{Status: audit.OK}
	}
	if notes, err := os.ReadFile(checkpoint.File(state, known.Name)); err == nil {
		key, err := checkpoint.Verifier(h.keyFile())
		must(h.t, err)
		in.Checkpoints = []*checkpoint.Reader{checkpoint.NewReader(bytes.NewReader(notes), key)}
	}
	r, err := audit.Verify(in)
	must(h.t, err)
	return r
}

// keyFile is one for all houses of a test.
func (h *house) keyFile() string { return filepath.Join(filepath.Dir(h.dir), "keys", "checkpoint") }

// calls is more than a delivery ever makes.
const calls = 60

// street is a directory for many houses.
func street(t *testing.T) func() *house {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	n := 0
	return func() *house {
		n++
		return newHouse(t, filepath.Join(dir, strconv.Itoa(n)))
	}
}

// Each call to the disk goes wrong in turn, in each way, for the first record of
// a log and for a later one, synced and not. Then the record is delivered again,
// and others after it: each is there once, whatever happened.
func TestEveryCallGoesWrong(t *testing.T) {
	build := street(t)
	tried := map[int]int{}
	for _, before := range []int{0, 3} {
		for way := range 2 * file.Ways {
			how, together := way%file.Ways, 1
			if way >= file.Ways {
				together = 20 // one append, and a second one of what that had no room for
			}
			for at := 1; at < calls; at++ {
				what := fmt.Sprintf("%d records before, %d at once, call %d, way %d", before, together, at, how)
				h := build()
				h.sync, h.every = at%2 == 0, 2
				if together > 1 {
					h.every = 18
				}
				h.together = together
				if before > 0 {
					to, _ := file.NewFaulty(h.config(), h.options(), 0, 0)
					_, err := h.run("a", to, 0, before)
					must(t, err)
				}
				to, disk := file.NewFaulty(h.config(), h.options(), at, how)
				died, err := h.run("b", to, 0, together)
				if disk.Calls > calls {
					t.Fatalf("%s: %d calls to the disk: it spins", what, disk.Calls)
				}
				if disk.Calls < at {
					tried[how] = max(tried[how], disk.Calls)
					break
				}
				if died != (how >= file.DieBefore) {
					t.Fatalf("%s: died: %v", what, died)
				}
				if err != nil && !strings.Contains(err.Error(), h.log) {
					t.Errorf("%s: the error does not name the file: %v", what, err)
				}
				h.check(what, false)
				for _, session := range []string{"c", "b", "a"} {
					to, _ := file.NewFaulty(h.config(), h.options(), 0, 0)
					_, err := h.run(session, to, 1, together+1)
					must(t, err)
					h.check(what+", then "+session, true)
				}
			}
		}
	}
	for how, n := range tried {
		if n < 15 {
			t.Errorf("way %d was tried at %d calls only", how, n)
		}
	}
}

// deathsVar is the environment variable that asks for another number of deaths.
const deathsVar = "WAYS_FILE_DEATHS"

// Sessions write one log in turn, and each dies or meets a full disk at a random
// call, while the log is rotated now and then: after each death every accepted
// record is there once, and the chain and its checkpoints agree.
func TestTwoThousandDeaths(t *testing.T) {
	deaths := 2000
	if n, err := strconv.Atoi(os.Getenv(deathsVar)); err == nil {
		deaths = n
	}
	const perHouse = 10
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	build := street(t)
	total, records, recovered := 0, 0, 0
	for range deaths / perHouse {
		h := build()
		h.sync = random.IntN(2) == 0
		rotated := 0
		for died := 0; died < perHouse; {
			session := fmt.Sprint("session", random.IntN(4))
			h.rash = random.IntN(8) > 0
			count := 1 + random.IntN(4)
			if h.together = 1 + random.IntN(2)*random.IntN(20); h.together > 1 {
				count += random.IntN(40)
			}
			to, _ := file.NewFaulty(h.config(), h.options(), 1+random.IntN(40), random.IntN(file.Ways))
			dead, err := h.run(session, to, random.IntN(3), count)
			if err != nil && !strings.Contains(err.Error(), h.log) {
				t.Errorf("the error does not name the file: %v", err)
			}
			if dead {
				died++
				total++
			}
			if !dead && died > 0 {
				continue // a round ends with a death
			}
			if h.check(fmt.Sprintf("death %d", total), false) == audit.Recoverable {
				recovered++
			}
			if random.IntN(25) == 0 {
				if os.Rename(h.log, fmt.Sprintf("%s.%d", h.log, rotated)) == nil {
					rotated++
				}
			}
		}
		for n := range 4 {
			to, _ := file.NewFaulty(h.config(), h.options(), 0, 0)
			_, err := h.run(fmt.Sprint("session", n), to, 2, 3+n*h.together)
			must(t, err)
		}
		h.check("at the end", true)
		records += len(h.accepted)
	}
	if total < deaths || recovered < deaths/100 {
		t.Errorf("%d deaths, %d of them with something to recover: too few", total, recovered)
	}
	t.Logf("%d deaths, %d with something to recover, %d records", total, recovered, records)
}

// Four processes at a time are killed with SIGKILL while they write one log.
func TestKilledProcesses(t *testing.T) {
	const bursts, processes = 40, 4
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	build := street(t)
	killed := 0
	for range bursts / 10 {
		h := build()
		state := filepath.Join(h.dir, "state")
		for range 10 {
			var wait sync.WaitGroup
			said := make([][]int, processes)
			enough := 1 + random.IntN(40)
			for p := range processes {
				session := fmt.Sprint("session", p)
				from := max(1, h.last[session]+1-random.IntN(3))
				cmd := file.Role(t.Context(), "chain", state, h.log, h.keyFile(), session, strconv.Itoa(from))
				out, err := cmd.StdoutPipe()
				must(t, err)
				must(t, cmd.Start())
				wait.Go(func() {
					lines := bufio.NewScanner(out)
					for lines.Scan() {
						if n, err := strconv.Atoi(lines.Text()); err == nil {
							said[p] = append(said[p], n)
						}
						if len(said[p]) == enough {
							_ = cmd.Process.Kill()
						}
					}
					if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
						t.Errorf("a writer was not killed: %v", err)
					}
				})
			}
			wait.Wait()
			for p := range processes {
				killed++
				session := fmt.Sprint("session", p)
				for _, n := range said[p] {
					h.accepted[fmt.Sprintf("%s:%d", session, n)] = true
					h.last[session] = max(h.last[session], n)
				}
			}
			h.check(fmt.Sprintf("%d processes killed", killed), false)
		}
		for p := range processes {
			to, _ := file.NewFaulty(h.config(), h.options(), 0, 0)
			_, err := h.run(fmt.Sprint("session", p), to, 2, 3)
			must(t, err)
		}
		h.check("at the end", true)
	}
}
