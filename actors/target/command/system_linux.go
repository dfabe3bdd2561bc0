package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// BecomeSubreaper makes orphans below this process its children (Linux: prctl
// PR_SET_CHILD_SUBREAPER), so that a command's descendants which leave its group
// are found. It is called once, when a process starts that will run commands; on
// other systems it does nothing.
func BecomeSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("command: becoming the subreaper: %w", err)
	}
	return nil
}

func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func onFirstThread() bool { return unix.Gettid() == os.Getpid() }

// owner names this process among all that ever had its number.
func owner() string {
	self, err := stat(os.Getpid())
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d.%d", os.Getpid(), self.start)
}

// group is a program and all that came of it.
type group struct {
	leader   int
	delivery string
	// seen are descendants that were alive when the group was killed, by number,
	// with their start times.
	seen map[int]uint64
}

// kill ends the group, whose leader is alive or dead but not reaped, and what is
// below it outside the group.
func (g *group) kill() {
	g.seen = map[int]uint64{}
	below(g.leader, g.seen)
	_ = syscall.Kill(-g.leader, syscall.SIGKILL)
	for pid, start := range g.seen {
		killExactly(pid, start)
	}
}

// sweep kills and reaps what the leader left, until nothing of it is found or
// limit has passed. The leader is dead and not reaped.
func (g *group) sweep(limit time.Duration) {
	until := time.Now().Add(limit)
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 10*time.Millisecond) {
		_ = syscall.Kill(-g.leader, syscall.SIGKILL)
		if g.sweepOnce() == 0 || time.Now().After(until) {
			return
		}
		<-time.After(pause)
	}
}

// sweepOnce returns how many processes of the group it found among this
// process's adopted children.
func (g *group) sweepOnce() int {
	found := 0
	self, err := stat(os.Getpid())
	if err != nil {
		return 0
	}
	children, certain, whole := adopted()
	if !whole {
		found++ // look again
	}
	for _, pid := range children {
		child, err := stat(pid)
		if err != nil || pid == g.leader || child.parent != os.Getpid() || !g.owns(child, self, certain) {
			continue
		}
		found++
		// A child of ours keeps its number until we reap it.
		_ = syscall.Kill(pid, syscall.SIGKILL)
		var status syscall.WaitStatus
		_, _ = syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
	}
	return found
}

// owns reports whether an adopted child came of the group. certain is true when
// the list of adopted children cannot hold one that this process started.
func (g *group) owns(child, self process, certain bool) bool {
	if child.group == g.leader || g.seen[child.pid] == child.start && child.start != 0 {
		return true
	}
	left := child.session != self.session
	if child.state == 'Z' {
		// Dead and without an environment. Whose it was does not matter, as long
		// as it is nobody's who still waits for it.
		return left || certain && child.group == child.pid
	}
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", child.pid))
	if err == nil && variable(env, Marker) != "" {
		return g.delivery != "" && variable(env, markerID) == g.delivery
	}
	// It cleared its environment. It is an orphan of some command: nothing else
	// here makes any in a session or a group of its own but this program itself.
	// If it may be another's, that one's sweep will find it.
	return (left || certain && child.group != self.group) && child.start >= self.start &&
		!sameProgram(child.pid) && !g.othersRunSince(child.start)
}

// othersRunSince reports whether this process runs a command of another dispatch
// that began by start: one to which an orphan of that age could belong.
func (g *group) othersRunSince(start uint64) bool {
	for _, pid := range children() {
		if pid == g.leader {
			continue
		}
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil || variable(env, Marker) == "" || variable(env, markerID) == g.delivery {
			continue
		}
		if p, err := stat(pid); err == nil && p.start <= start {
			return true
		}
	}
	return false
}

func sameProgram(pid int) bool {
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	ours, ourErr := os.Readlink("/proc/self/exe")
	return err == nil && ourErr == nil && theirs == ours
}

func variable(env []byte, name string) string {
	for pair := range bytes.SplitSeq(env, []byte{0}) {
		if value, ok := bytes.CutPrefix(pair, []byte(name+"=")); ok {
			return string(value)
		}
	}
	return ""
}

// adopted returns the children that this process did not start: the kernel hands
// orphans to a process's first thread, and commands are started from others.
// Where it has no such list, all children are returned, and certain is false. The
// list is not whole when some may be missing from it.
func adopted() (list []int, certain, whole bool) {
	pid := strconv.Itoa(os.Getpid())
	b, whole, err := childrenFile("/proc/self/task/" + pid + "/children")
	if err != nil {
		return children(), false, true
	}
	return numbers(b), true, whole
}

// childrenFile reads a list of children. The kernel passes over some while others
// before them in the list are reaped (proc_pid_task_children(5)); those would
// still be in it then, so that two readings that are the same are whole.
func childrenFile(path string) (list []byte, whole bool, err error) {
	last, err := os.ReadFile(path)
	for range 4 {
		var b []byte
		if err == nil {
			b, err = os.ReadFile(path)
		}
		if err != nil || bytes.Equal(b, last) {
			return last, true, err
		}
		last = b
	}
	return last, false, nil
}

// children returns all children of this process.
func children() []int { return childrenOf(os.Getpid()) }

func childrenOf(parent int) []int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if len(lists) > 0 {
		var all []int
		for _, list := range lists {
			b, _, err := childrenFile(list)
			if err == nil {
				all = append(all, numbers(b)...)
			}
		}
		return all
	}
	var all []int
	for _, pid := range processes() {
		if p, err := stat(pid); err == nil && p.parent == parent {
			all = append(all, pid)
		}
	}
	return all
}

// below adds the descendants of pid to into.
func below(pid int, into map[int]uint64) {
	for _, child := range childrenOf(pid) {
		p, err := stat(child)
		if _, known := into[child]; err != nil || known {
			continue
		}
		into[child] = p.start
		below(child, into)
	}
}

// killExactly kills the process pid if it is still the one that began at start.
func killExactly(pid int, start uint64) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	// The descriptor means one process for good; now see which.
	if p, err := stat(pid); err == nil && p.start == start {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}

func numbers(b []byte) []int {
	var list []int
	for word := range strings.FieldsSeq(string(b)) {
		if n, err := strconv.Atoi(word); err == nil {
			list = append(list, n)
		}
	}
	return list
}

func processes() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close() //nolint:errcheck // only read
	names, _ := dir.Readdirnames(-1)
	return numbers([]byte(strings.Join(names, " ")))
}

// process is what /proc/<pid>/stat says (proc_pid_stat(5)).
type process struct {
	pid, parent, group, session int
	state                       byte
	start                       uint64 // in ticks since the system's start
}

func stat(pid int) (process, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, err
	}
	// The name in parentheses can hold anything, so count from its end.
	end := bytes.LastIndexByte(b, ')')
	fields := strings.Fields(string(b[end+1:]))
	if end < 0 || len(fields) < 20 {
		return process{}, errors.New("command: /proc/<pid>/stat has too few fields")
	}
	p := process{pid: pid, state: fields[0][0]}
	for i, into := range map[int]*int{1: &p.parent, 2: &p.group, 3: &p.session} {
		if *into, err = strconv.Atoi(fields[i]); err != nil {
			return process{}, err
		}
	}
	p.start, err = strconv.ParseUint(fields[19], 10, 64)
	return p, err
}

// KillOrphans kills what the commands of a session's dead dispatchers left
// behind: processes with this user's markers whose owner is gone. A dispatcher
// calls it when it starts. It returns how many it killed, and ends with ctx.
func KillOrphans(ctx context.Context, session string) int {
	killed := 0
	for _, pid := range processes() {
		if ctx.Err() != nil {
			break
		}
		p, err := stat(pid)
		if err != nil || p.state == 'Z' {
			continue
		}
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil || variable(env, Marker) == "" || variable(env, markerSession) != session {
			continue
		}
		if !ownerGone(variable(env, markerOwner)) {
			continue
		}
		killExactly(pid, p.start)
		killed++
	}
	return killed
}

func ownerGone(owner string) bool {
	number, start, ok := strings.Cut(owner, ".")
	pid, err := strconv.Atoi(number)
	if !ok || err != nil {
		return false
	}
	p, err := stat(pid)
	if errors.Is(err, os.ErrNotExist) {
		return true
	}
	return err == nil && (strconv.FormatUint(p.start, 10) != start || p.state == 'Z')
}
