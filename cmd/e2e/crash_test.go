package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"ways/hooks/launch"
)

// kill kills the session's dispatcher, if there is one that was not killed
// before, and waits until the kernel has taken its lock back: a hook that comes
// while it is dying takes it for a living one. It returns the process's id.
func (s site) kill(t *testing.T, session string, before int) int {
	t.Helper()
	dir := s.dirs.Session(session)
	var info struct {
		PID int `json:"pid"`
	}
	raw, err := os.ReadFile(filepath.Join(dir, "dispatcher.json"))
	if err != nil || json.Unmarshal(raw, &info) != nil || info.PID == before {
		return before // not as far yet
	}
	if err := syscall.Kill(info.PID, syscall.SIGKILL); err != nil {
		t.Fatalf("kill %d: %v", info.PID, err)
	}
	eventually(t, exitLimit, func() bool {
		lock, err := launch.TryLock(dir)
		if err == nil {
			lock.Close()
		}
		return err == nil
	}, s.story)
	return info.PID
}

// TestKilledDispatcher kills the dispatcher 200 times, at any instant of its
// life. With one more event behind that, every record is in the log, perhaps
// more than once, and every line is whole.
func TestKilledDispatcher(t *testing.T) {
	s := newSite(t, "WAYS_DISPATCHER_IDLE=20s")
	ids := map[string]bool{}
	kills, n, last := 0, 0, 0
	for kills < 200 {
		id := fmt.Sprint("t", n)
		n++
		ids[id] = true
		s.fire(t, call("s", id, 1+rand.IntN(60_000)))
		after(t, time.Duration(rand.IntN(20))*time.Millisecond)
		if now := s.kill(t, "s", last); now != last {
			last = now
			kills++
		}
		if t.Failed() {
			return
		}
	}
	ids["last"] = true
	s.fire(t, call("s", "last", 10))
	s.waitCalls(t, ids)
	seqs := map[int]string{}
	for _, r := range lines(t, s.log) {
		if was, ok := seqs[r.Seq]; ok && was != r.Data.ID {
			t.Errorf("number %d is of %s and of %s", r.Seq, was, r.Data.ID)
		}
		seqs[r.Seq] = r.Data.ID
		if r.RuleSeq != r.Seq { // the rule takes every record
			t.Errorf("record %d has rule_seq %d", r.Seq, r.RuleSeq)
		}
	}
	for i := 1; i <= n+1; i++ {
		if seqs[i] == "" {
			t.Errorf("no record has number %d", i)
		}
	}
	if got := s.counts(t); len(got) != 0 {
		t.Errorf("refused: %v", got)
	}
	t.Logf("%d records, %d lines", n+1, len(lines(t, s.log)))
}

// TestKilledHooks kills hooks at any instant. What is in the log is whole, and
// numbered without a hole; a hook that was not killed is in it.
func TestKilledHooks(t *testing.T) {
	s := newSite(t, "WAYS_DISPATCHER_IDLE=20s")
	s.fire(t, call("s", "first", 10))
	ids := map[string]bool{"first": true}
	killed := 0
	for i := range 150 {
		cmd := s.command(t, call("s", fmt.Sprint("t", i), 50_000))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		after(t, time.Duration(rand.IntN(4000))*time.Microsecond)
		_ = cmd.Process.Kill()
		if cmd.Wait() == nil {
			ids[fmt.Sprint("t", i)] = true
		} else {
			killed++
		}
	}
	ids["last"] = true
	s.fire(t, call("s", "last", 10))
	s.waitCalls(t, ids)
	list := lines(t, s.log)
	numbered(t, list, "s", len(list))
	if killed == 0 || len(ids) < 3 {
		t.Errorf("%d hooks killed, %d lived", killed, len(ids))
	}
	t.Logf("%d hooks killed, %d lived, %d records", killed, len(ids), len(list))
}

// TestNoRecordIsLeftAlone lets dispatchers that leave at once race with hooks: a
// record is never left with nobody to send it.
func TestNoRecordIsLeftAlone(t *testing.T) {
	s := newSite(t, "WAYS_DISPATCHER_IDLE=1ms")
	dir := s.dirs.Session("s")
	const rounds, hooks = 100, 3
	for round := range rounds {
		atOnce(hooks, func(i int) {
			after(t, time.Duration(rand.IntN(4000))*time.Microsecond)
			s.fire(t, call("s", fmt.Sprintf("r%d-%d", round, i), 10))
		})
		want := (round + 1) * hooks
		eventually(t, exitLimit, func() bool {
			if len(lines(t, s.log)) >= want {
				return true
			}
			// Nobody runs: whoever did had its last look before this, or never.
			if lock, err := launch.TryLock(dir); err == nil {
				lock.Close()
				if got := len(lines(t, s.log)); got < want {
					t.Fatalf("round %d: %d records of %d, and no dispatcher; %s", round, got, want, s.story())
				}
			}
			return false
		}, func() string {
			return fmt.Sprintf("round %d: %d records of %d; %s", round, len(lines(t, s.log)), want, s.story())
		})
	}
	numbered(t, lines(t, s.log), "s", rounds*hooks)
}

// TestTornFragments: a fragment that a killed dispatcher left in the log is
// moved aside, and what it was part of is delivered again.
func TestTornFragments(t *testing.T) {
	s := newSite(t, "WAYS_DISPATCHER_IDLE=20s")
	ids, last := map[string]bool{}, 0
	for i := range 30 {
		id := fmt.Sprint("t", i)
		ids[id] = true
		s.fire(t, call("s", id, 1<<20))
		after(t, time.Duration(rand.IntN(40))*time.Millisecond)
		last = s.kill(t, "s", last)
	}
	ids["last"] = true
	s.fire(t, call("s", "last", 10))
	s.waitCalls(t, ids)
	torn, err := filepath.Glob(filepath.Join(s.dirs.State, "targets", "*.torn"))
	if err != nil {
		t.Fatal(err)
	}
	size := int64(0)
	for _, path := range torn {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	t.Logf("%d bytes of fragments were moved aside", size)
}
