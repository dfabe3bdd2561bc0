package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// descriptors lists what a process has open, as kinds: which pipe or socket it is
// does not matter. Regular files are left out, since a rule may keep its log.
func descriptors(t *testing.T, pid int) []string {
	t.Helper()
	inode := regexp.MustCompile(`:\[\d+\]$`)
	var list []string
	for _, link := range openFiles(pid) {
		if info, err := os.Stat(link); err == nil && info.Mode().IsRegular() {
			continue
		}
		list = append(list, inode.ReplaceAllString(link, ""))
	}
	if len(list) == 0 {
		t.Fatalf("process %d cannot be looked into", pid)
	}
	slices.Sort(list)
	return list
}

func openFiles(pid int) []string {
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	var list []string
	for _, fd := range fds {
		if link, err := os.Readlink(fd); err == nil {
			list = append(list, link)
		}
	}
	return list
}

// leftBehind lists the processes of this installation, but for the one named:
// those that have its home in their environment, on their command line or among
// their open files, and the children of the one named, dead or alive.
func (s site) leftBehind(t *testing.T, but int) []string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, path := range stats {
		dir := filepath.Dir(path)
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() || pid == but {
			continue
		}
		stat, _ := os.ReadFile(path)
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		cmdline = bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '})
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 2 {
			continue // it is gone
		}
		ours := bytes.Contains(environ, []byte(s.home)) || bytes.Contains(cmdline, []byte(s.home)) ||
			but != 0 && fields[1] == strconv.Itoa(but) ||
			slices.ContainsFunc(openFiles(pid), func(link string) bool { return strings.HasPrefix(link, s.home) })
		if ours {
			list = append(list, fmt.Sprintf("%d %s %s", pid, fields[0], cmdline))
		}
	}
	return list
}
