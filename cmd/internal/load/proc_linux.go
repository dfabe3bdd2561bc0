package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// watch reads a process's counters.
func watch(pid int) (watched, error) {
	var w watched
	dir := fmt.Sprintf("/proc/%d", pid)
	threads, err := filepath.Glob(dir + "/task/*")
	if err != nil || len(threads) == 0 {
		return w, errors.Join(err, fs.ErrNotExist)
	}
	for _, thread := range threads {
		status, err := fields(thread + "/status")
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has ended
		}
		if err != nil {
			return w, err
		}
		w.sleeps += status["voluntary_ctxt_switches"]
		text, err := os.ReadFile(thread + "/schedstat")
		var ran int64
		if err == nil {
			_, err = fmt.Sscan(string(text), &ran)
		}
		if err != nil {
			return w, err
		}
		w.cpu += time.Duration(ran)
	}
	status, err := fields(dir + "/status")
	if err != nil {
		return w, err
	}
	w.resident, w.peak = status["VmRSS"]<<10, status["VmHWM"]<<10
	rollup, err := fields(dir + "/smaps_rollup")
	if err != nil {
		return w, err
	}
	w.proportional = rollup["Pss"] << 10
	io, err := fields(dir + "/io")
	w.writes = io["syscw"]
	return w, err
}

// held is the most memory that a process has held so far, in bytes.
func held(pid int) (int64, error) {
	status, err := fields(fmt.Sprintf("/proc/%d/status", pid))
	return status["VmHWM"] << 10, err
}

// fields reads "name: number" lines; others are passed over.
func fields(path string) (map[string]int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	found := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":")
		var n int64
		if _, err := fmt.Sscan(rest, &n); err == nil {
			found[name] = n
		}
	}
	return found, nil
}
