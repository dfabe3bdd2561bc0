package command

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ways/config/plan"
)

// number reads a process's number.
func number(t *testing.T, from fifo) int {
	t.Helper()
	n, err := strconv.Atoi(from.line(t))
	must(t, err)
	return n
}

// noProcessLeft checks that this process has no child, dead or alive, and that no
// process anywhere carries a consumer's marker of these tests.
func noProcessLeft(t *testing.T) {
	t.Helper()
	for _, pid := range children() {
		p, _ := stat(pid)
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		t.Errorf("left: child %d, state %c, %q", pid, p.state, name)
	}
	for _, pid := range processes() {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && variable(env, Marker) != "" && variable(env, markerOwner) == owner() {
			t.Errorf("left: process %d with the markers of a consumer", pid)
		}
	}
}

// Descendants that leave the group come back to a subreaper, whichever way they
// left; then they are killed and reaped as well.
func TestDescendantsThatLeftTheGroup(t *testing.T) {
	for _, row := range []struct {
		name, script, want string
	}{
		{"setsid, exits", "setsid sleep 60 >/dev/null 2>&1 & exit 0", ""},
		{"setsid, holds the pipes", "setsid sleep 60 & exit 0", ""},
		{"setsid, runs on", "setsid sleep 60 & exec sleep 60", "killed timeout"},
		{"double fork", "(setsid sh -c 'sleep 60 & exit 0' &) ; exit 0", ""},
		{"double fork, runs on", "(setsid sh -c 'sleep 60 & exit 0' &) ; exec sleep 60", "killed timeout"},
		{"a session with children", "setsid sh -c 'sleep 60 & sleep 60 & wait' & exit 0", ""},
		{"sessions within sessions", "setsid sh -c 'setsid sh -c \"setsid sleep 60 & sleep 60\" & sleep 60' & exec sleep 60", "killed timeout"},
		{"a group of its own", "set -m; sleep 60 & exit 0", ""},
		{"stopped in a session", "setsid sh -c 'kill -STOP $$' & exec sleep 60", "killed timeout"},
		{"session and a cleared environment, exits", "env -i setsid sleep 60 & exit 0", ""},
		{"session and a cleared environment, runs on", "env -i setsid sleep 60 & exec sleep 60", "killed timeout"},
		{"a group and a cleared environment, runs on", "set -m; env -i sleep 60 & exec sleep 60", "killed timeout"},
		{"zombies of a session", "setsid sh -c 'true & true & exec sleep 60' & exec sleep 60", "killed timeout"},
		{"dead orphans", "(setsid true &); (true &); sleep 0.05", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := descriptors(t)
			timeout := 10 * time.Second
			if row.want != "" {
				timeout = 150 * time.Millisecond
			}
			start := time.Now()
			wantOutcome(t, shell(t, row.script).Deliver(within(t, timeout), dispatch(1, "{}")), row.want)
			if took := time.Since(start); took > 4*time.Second {
				t.Errorf("it took %v", took)
			}
			noProcessLeft(t)
			if after := descriptors(t); after != before {
				t.Errorf("%d descriptors, %d before", after, before)
			}
		})
	}
}

// In a process that is no subreaper, somebody who got away cannot be found once
// the program has exited; it does not hold the dispatch up either. While the
// program runs it is found below it.
func TestWithoutASubreaper(t *testing.T) {
	must(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0))
	defer func() { must(t, BecomeSubreaper()) }()
	for _, row := range []struct {
		after, want string
		gone        bool
	}{
		{"exit 0", "", false},
		{"exec sleep 60", "killed timeout", true},
	} {
		before := descriptors(t)
		up, away := newFIFO(t), newFIFO(t)
		to := shell(t, fmt.Sprintf("setsid sh -c 'echo $$ > %s; echo > %s; exec sleep 60' & read x < %s; %s",
			up.path, away.path, away.path, row.after))
		timeout := 10 * time.Second
		if row.gone {
			timeout = 150 * time.Millisecond
		}
		start := time.Now()
		wantOutcome(t, to.Deliver(within(t, timeout), dispatch(1, "{}")), row.want)
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("%s: it took %v", row.after, took)
		}
		if after := descriptors(t); after != before+2 { // the FIFOs are still open
			t.Errorf("%s: %d descriptors, %d before", row.after, after, before)
		}
		fd, err := unix.PidfdOpen(number(t, up), 0)
		if row.gone && err == unix.ESRCH {
			continue
		}
		must(t, err)
		if !row.gone {
			must(t, unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0))
		}
		// Readable means that the process has ended.
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 5000)
		if err != nil || n != 1 {
			t.Errorf("%s: the process that got away lives: %d, %v", row.after, n, err)
		}
		must(t, unix.Close(fd))
	}
}

// Orphans of one dispatch are not taken for another's.
func TestOrphansOfAnotherDispatchAreLeftAlone(t *testing.T) {
	up, quiet, last := newFIFO(t), newFIFO(t), newFIFO(t)
	slow := make(chan error, 1)
	var out Output
	go func() {
		to := shell(t, fmt.Sprintf(`(setsid sh -c 'echo $$ > %s; read x < %s; echo orphan > %s' &)
			cat >/dev/null; read x < %s; exit 0`, up.path, quiet.path, up.path, last.path))
		err := to.Deliver(t.Context(), dispatch(1, "{}"))
		out = to.LastOutput()
		slow <- err
	}()
	orphan := number(t, up)
	for n := 2; n < 12; n++ {
		wantOutcome(t, shell(t, "setsid sleep 60 & exit 0").Deliver(t.Context(), dispatch(n, "{}")), "")
	}
	if p, err := stat(orphan); err != nil || p.state == 'Z' {
		t.Fatalf("the orphan of the dispatch under way is gone: %v", err)
	}
	must(t, os.WriteFile(quiet.path, []byte("go\n"), 0))
	if said := up.line(t); said != "orphan" {
		t.Errorf("the orphan said %q", said)
	}
	must(t, os.WriteFile(last.path, []byte("go\n"), 0))
	wantOutcome(t, <-slow, "")
	if out.Stderr != "" {
		t.Errorf("stderr = %q", out.Stderr)
	}
	noProcessLeft(t)
}

// An orphan that cleared its environment could be of any dispatch under way: it
// is gone when the last that was there when it began is over.
func TestOrphansWithoutAnEnvironment(t *testing.T) {
	up, cleared, last := newFIFO(t), newFIFO(t), newFIFO(t)
	slow := make(chan error, 1)
	go func() {
		slow <- shell(t, fmt.Sprintf("echo up >%s; read x <%s; exit 0", up.path, last.path)).Deliver(t.Context(), dispatch(1, "{}"))
	}()
	if said := up.line(t); said != "up" {
		t.Fatalf("the slow dispatch said %q", said)
	}
	quick := make(chan error, 1)
	go func() {
		script := fmt.Sprintf("setsid env -i /bin/sh -c 'echo $$ >%s; exec sleep 60' & read x <%s; exit 0", up.path, cleared.path)
		quick <- shell(t, script).Deliver(t.Context(), dispatch(2, "{}"))
	}()
	orphan := number(t, up)
	must(t, os.WriteFile(cleared.path, []byte("go\n"), 0))
	wantOutcome(t, <-quick, "")
	if p, err := stat(orphan); err != nil || p.state == 'Z' {
		t.Errorf("an orphan that may be of the dispatch under way is gone: %v", err)
	}
	must(t, os.WriteFile(last.path, []byte("go\n"), 0))
	wantOutcome(t, <-slow, "")
	noProcessLeft(t)
}

// Children that somebody else in this process started are not touched.
func TestOtherChildrenAreLeftAlone(t *testing.T) {
	plain := exec.CommandContext(t.Context(), "sleep", "60")
	own := exec.CommandContext(t.Context(), "sleep", "60")
	own.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	quick := exec.CommandContext(t.Context(), "sh", "-c", "exit 7")
	for _, cmd := range []*exec.Cmd{plain, own, quick} {
		onThreadOfItsOwn(func() { must(t, cmd.Start()) })
	}
	waitUntilDead(quick.Process.Pid)
	for n := range 5 {
		wantOutcome(t, shell(t, "setsid sleep 60 & env -i setsid sleep 60 & exit 0").Deliver(t.Context(), dispatch(n, "{}")), "")
	}
	if err := quick.Wait(); quick.ProcessState == nil || quick.ProcessState.ExitCode() != 7 {
		t.Errorf("the dead child's status was taken: %v", err)
	}
	for _, cmd := range []*exec.Cmd{plain, own} {
		if p, err := stat(cmd.Process.Pid); err != nil || p.state == 'Z' {
			t.Errorf("a child of somebody else was killed: %v", err)
		}
		must(t, cmd.Process.Kill())
		_ = cmd.Wait() // killed, as was meant
	}
	noProcessLeft(t)
}

// orphansSession is no other test run's.
func orphansSession() string { return fmt.Sprint("orphans-of-", os.Getpid()) }

// dispatcher starts a process that runs script as a command.
func dispatcher(t *testing.T, script string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"="+script, sessionVar+"="+orphansSession())
	cmd.Stderr = os.Stderr
	onThreadOfItsOwn(func() { must(t, cmd.Start()) })
	return cmd
}

// A command dies with its dispatcher, also one that is killed.
func TestACommandDoesNotOutliveItsDispatcher(t *testing.T) {
	up := newFIFO(t)
	cmd := dispatcher(t, "echo $$ > "+up.path+"; exec sleep 60")
	program := number(t, up)
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed, as was meant
	// It is ours now, as this process is a subreaper.
	waitUntilDead(program)
	var status syscall.WaitStatus
	if pid, err := syscall.Wait4(program, &status, 0, nil); pid != program || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Errorf("the program ended with %v, %v", status, err)
	}
	noProcessLeft(t)
}

func TestKillOrphans(t *testing.T) {
	up := newFIFO(t)
	script := fmt.Sprintf("sh -c 'echo $$ > %s; exec sleep 60' & setsid sh -c 'echo $$ > %s; exec sleep 60' & wait", up.path, up.path)
	cmd := dispatcher(t, script)
	left := []int{number(t, up), number(t, up)}

	if n := KillOrphans(t.Context(), orphansSession()); n != 0 {
		t.Errorf("%d killed while their dispatcher lives", n)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed, as was meant
	if n := KillOrphans(t.Context(), "another-session"); n != 0 {
		t.Errorf("%d killed for another session", n)
	}
	if n := KillOrphans(t.Context(), orphansSession()); n < len(left) {
		t.Errorf("%d killed, want at least %d", n, len(left))
	}
	for range 8 { // the two, and the shells above them
		if _, err := syscall.Wait4(-1, nil, 0, nil); err != nil {
			break
		}
	}
	for _, pid := range left {
		if err := syscall.Kill(pid, 0); err != unix.ESRCH {
			t.Errorf("process %d: %v", pid, err)
		}
	}
	noProcessLeft(t)
}

func TestTheProgramIsNobodysPipe(t *testing.T) {
	// No descriptor but the three reaches the program, and none is non-blocking.
	inherited, err := syscall.Dup(0) // without close-on-exec, as an inherited one is
	must(t, err)
	defer syscall.Close(inherited) //nolint:errcheck // nothing was written
	must(t, HideDescriptors())
	to := newTarget(t, plan.Command{Argv: []string{"sh", "-c", "ls /proc/$$/fd; cat /proc/self/fdinfo/0 /proc/self/fdinfo/1 | grep flags"}})
	wantOutcome(t, to.Deliver(t.Context(), dispatch(1, "{}")), "")
	got := to.LastOutput().Stdout
	names, flags, _ := strings.Cut(got, "flags")
	if strings.Join(strings.Fields(names), " ") != "0 1 2" {
		t.Errorf("descriptors: %q", names)
	}
	if strings.Contains(flags, "4000") || strings.Contains(flags, "4001") {
		t.Errorf("a descriptor does not block: %q", flags)
	}
}
