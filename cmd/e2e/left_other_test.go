//go:build !linux

package e2e

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// descriptors lists nothing: only Linux says what another process has open.
func descriptors(*testing.T, int) []string { return nil }

// leftBehind lists the processes with the installation's home on their command
// line, but for the one named.
func (s site) leftBehind(t *testing.T, but int) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ps", "-axww", "-o", "pid=,command=").Output()
	if err != nil {
		t.Fatalf("listing processes: %v", err)
	}
	var list []string
	for line := range strings.Lines(string(out)) {
		pid, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.Contains(line, s.home) && pid != strconv.Itoa(but) && pid != strconv.Itoa(os.Getpid()) {
			list = append(list, line)
		}
	}
	return list
}
