package counters_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"ways/metrics/counters"
)

// stateEnv, set in the environment, makes the test binary a dispatcher that
// counts in that state directory, for the session that sessionEnv names.
const (
	stateEnv   = "WAYS_COUNTERS_TEST_STATE"
	sessionEnv = "WAYS_COUNTERS_TEST_SESSION"
)

func TestMain(m *testing.M) {
	if state := os.Getenv(stateEnv); state != "" {
		if err := dispatcher(state, os.Getenv(sessionEnv)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// dispatcher counts one by one and says how far it is saved; every few it ends, as
// an idle one does, and begins anew.
func dispatcher(state, session string) error {
	s := counters.NewStore(state)
	for n := 0; ; {
		l := s.Open(session, session, time.Now())
		if err := l.Begin(time.Now()); err != nil {
			return err
		}
		for range 4 {
			n++
			count(l, 1)
			if err := l.Save(time.Now()); err != nil {
				return err
			}
			fmt.Println(n)
		}
		if err := l.End(time.Now()); err != nil {
			return err
		}
	}
}

// Dispatchers of three sessions are killed over and over, at whatever they are
// doing, while somebody else reads: no number ever goes backwards, nothing that
// was saved is lost, and nothing counts twice.
func TestKilledDispatchers(t *testing.T) {
	dir := state(t)
	s := counters.NewStore(dir)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const sessions, kills = 3, 5
	saved := make([]int, sessions)
	var working sync.WaitGroup
	for i := range sessions {
		working.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for range kills {
				cmd := exec.CommandContext(t.Context(), self)
				cmd.Env = append(os.Environ(), stateEnv+"="+dir, sessionEnv+"=s"+strconv.Itoa(i))
				cmd.Stderr = os.Stderr
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Error(err)
					return
				}
				if err := cmd.Start(); err != nil {
					t.Error(err)
					return
				}
				lines, n := bufio.NewScanner(out), 0
				for range 1 + random.IntN(9) {
					if lines.Scan() {
						n, _ = strconv.Atoi(lines.Text())
					}
				}
				_ = cmd.Process.Kill()
				for lines.Scan() { // what it had said by then
					n, _ = strconv.Atoi(lines.Text())
				}
				_ = cmd.Wait()
				saved[i] += n
			}
		})
	}
	ended := make(chan struct{})
	go func() { working.Wait(); close(ended) }()
	var before uint64
	reads := 0
	look := func() {
		sum := total(t, s)
		r := sum.Rule("a/b")
		if r.Delivered < before || r.Failed != 2*r.Delivered || r.Duration.Count != r.Delivered {
			t.Errorf("%d delivered, %d failed, %d timed; %d before", r.Delivered, r.Failed, r.Duration.Count, before)
		}
		before = max(before, r.Delivered)
		reads++
	}
	tick := time.NewTicker(5 * time.Millisecond) // readers without a pause would keep out those who fold
	defer tick.Stop()
	for running := true; running; {
		select {
		case <-ended:
			running = false
		case <-tick.C:
		}
		look()
	}
	want := uint64(0)
	for _, n := range saved {
		want += uint64(n)
	}
	// A dispatcher killed between saving and saying so is one ahead of its word.
	if before < want || before > want+sessions*kills {
		t.Errorf("sum is %d, %d were said to be saved", before, want)
	}
	if reads < 10 {
		t.Errorf("only %d reads", reads)
	}
}
