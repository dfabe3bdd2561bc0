package client

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// shells are what a client puts between itself and a hook that is wired as a
// command line.
func shell(name []byte) bool {
	switch string(name) {
	case "sh", "dash", "bash", "zsh", "ksh", "ash", "busybox":
		return true
	}
	return false
}

// stat is what /proc/<pid>/stat says of a process, proc_pid_stat(5).
type stat struct {
	name   []byte
	state  byte
	parent int
	start  uint64
}

func read(pid int) (stat, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	// The name is in parentheses and may hold some itself.
	from, to := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if err != nil || from < 0 || to < from {
		return stat{}, false
	}
	fields := bytes.Fields(text[to+1:]) // from the third field on
	if len(fields) < 20 {
		return stat{}, false
	}
	s := stat{name: text[from+1 : to], state: fields[0][0]}
	s.parent, _ = strconv.Atoi(string(fields[1]))
	s.start, err = strconv.ParseUint(string(fields[19]), 10, 64)
	return s, err == nil
}

// Of returns the client of a hook whose parent is the process ppid: that one, or
// the one above the shells.
func Of(ppid int) Client {
	for range 3 {
		s, ok := read(ppid)
		if !ok {
			return Client{}
		}
		if !shell(s.name) {
			return Client{ppid, s.start}
		}
		ppid = s.parent
	}
	return Client{}
}

// Gone reports whether the client is certainly dead.
func (c Client) Gone() bool {
	if !c.Known() {
		return false
	}
	s, ok := read(c.PID)
	if ok {
		return s.start != c.Start || s.state == 'Z' || s.state == 'X'
	}
	return syscall.Kill(c.PID, 0) == syscall.ESRCH
}
