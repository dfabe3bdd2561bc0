package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// stopTime bounds how long a process may take to leave when asked to.
	stopTime = 30 * time.Second
	// ticks is how many parts of a second /proc counts processor time in; Linux has
	// told programs 100 on every platform that Go runs on.
	ticks = 100
)

// process is one life of a program that is measured.
type process struct {
	cmd     *exec.Cmd
	started time.Time
	errors  string
}

// usage is what an ended life took: processor time of its own and the kernel's on
// its behalf, and the most memory that was resident, in bytes.
type usage struct {
	cpu  time.Duration
	peak int64
}

// startProcess starts a program that is killed with this one's end at the latest
// by stop or kill. What it says on stderr goes to a file in dir.
func startProcess(argv, env []string, dir string) (*process, error) {
	path := filepath.Join(dir, "stderr")
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = env, dir, out, out
	p := &process{cmd: cmd, started: time.Now(), errors: path}
	return p, cmd.Start()
}

// stop asks the process to leave and waits until it has.
func (p *process) stop() (usage, error) {
	peak, err := p.memory("VmHWM")
	if err != nil {
		return usage{}, errors.Join(err, p.kill())
	}
	late := time.AfterFunc(stopTime, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return usage{}, errors.Join(err, p.kill())
	}
	if err := p.cmd.Wait(); err != nil {
		return usage{}, fmt.Errorf("%s: %w: %s", p.cmd.Path, err, p.said())
	}
	return usage{p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime(), peak}, nil
}

// kill ends the process as kill -9 does.
func (p *process) kill() error {
	err := p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it says "killed"
	if errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%s had ended by itself: %s", p.cmd.Path, p.said())
	}
	return err
}

// said is the end of what the process wrote on stderr.
func (p *process) said() string {
	text, err := os.ReadFile(p.errors)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(0, len(text)-2000):]))
}

// memory reads a size from /proc/PID/status, in bytes: VmRSS is what is resident
// now, VmHWM the most that was. What a parent gets from wait4 is no good for that:
// it begins with the parent's own.
func (p *process) memory(name string) (int64, error) {
	path := fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid)
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("%w (this comparison needs Linux): %s", err, p.said())
	}
	return statusBytes(text, name)
}

// statusBytes is a size in the text of /proc/PID/status.
func statusBytes(text []byte, name string) (int64, error) {
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) == 3 && fields[0] == name+":" && fields[2] == "kB" {
			kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("no %s among the process's sizes: %q", name, text)
}

// cpu is the processor time that the process has taken until now, to a hundredth
// of a second.
func (p *process) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	return statTime(text)
}

// statTime is the processor time in the text of /proc/PID/stat. The name in it can
// hold anything, brackets too.
func statTime(text []byte) (time.Duration, error) {
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("not what a process's stat looks like: %q", text)
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * time.Second / ticks, err
}
