package chained

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"ways/actors/target"
	"ways/hooks/chain"
)

// roleVar makes this binary a dispatcher: it holds the state directory, the
// session, and the record to begin with.
const roleVar = "WAYS_CHAINED_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		send(strings.Split(role, "\n"))
	}
	os.Exit(m.Run())
}

// printer is a consumer that prints what it gets.
type printer struct{ *consumer }

func (printer) Deliver(_ context.Context, d target.Dispatch) error {
	_, err := fmt.Printf("%s\n", d.Body.Bytes())
	return err
}

// send delivers until it is killed, and says each number that was accepted.
func send(role []string) {
	to := New(printer{&consumer{}}, Options{StateDir: role[0], Rule: "s/r"})
	from, _ := strconv.Atoi(role[2])
	for n := from; ; n++ {
		if err := to.Deliver(context.Background(), dispatch(role[1], n, "x")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(n)
	}
}

// Dispatchers are killed while they send; what they sent twice is the same bytes,
// and all of it is one chain.
func TestKilledSenders(t *testing.T) {
	state := t.TempDir()
	const bursts, processes = 15, 3
	next := make([]int, processes)
	sent := map[uint64][]byte{}
	twice := 0
	for burst := range bursts {
		var wait sync.WaitGroup
		said := make([][][]byte, processes)
		for p := range processes {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), roleVar+"="+strings.Join([]string{state, fmt.Sprint("session", p), strconv.Itoa(max(0, next[p]-1))}, "\n"))
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			wait.Go(func() {
				lines := bufio.NewScanner(out)
				for lines.Scan() {
					said[p] = append(said[p], bytes.Clone(lines.Bytes()))
					if len(said[p]) == 3+burst*(p+1)%17 {
						_ = cmd.Process.Kill()
					}
				}
				if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
					t.Errorf("a sender was not killed: %v", err)
				}
			})
		}
		wait.Wait()
		for p := range processes {
			for _, line := range said[p] {
				l, ok := chain.Parse(line)
				if !ok {
					if n, err := strconv.Atoi(string(line)); err == nil {
						next[p] = n + 1
					}
					continue
				}
				if before := sent[l.N]; before != nil && !bytes.Equal(before, line) {
					t.Fatalf("number %d is two records:\n%s\n%s", l.N, before, line)
				} else if before != nil {
					twice++
				}
				sent[l.N] = line
			}
		}
	}
	head, err := Head(t.Context(), state, "s/r")
	must(t, err)
	at, missing := chain.Head{}, 0
	for n := uint64(1); n <= head.N; n++ {
		l, ok := chain.Parse(sent[n])
		if !ok {
			missing++ // its sender was killed between the two
			at = chain.Head{}
			continue
		}
		if at.N > 0 && !l.Follows(at) || !l.Whole() {
			t.Fatalf("record %d does not follow", n)
		}
		at = l.Head()
	}
	if twice == 0 || len(sent) < bursts*processes || missing > processes {
		t.Errorf("%d sent, %d twice, %d never", len(sent), twice, missing)
	}
}
