package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// inspect looks at a dispatcher's descriptors, directory and environment.
func inspect(t *testing.T, s site, pid int) {
	t.Helper()
	proc := fmt.Sprintf("/proc/%d", pid)
	if cwd, err := os.Readlink(proc + "/cwd"); err != nil || cwd != "/" {
		t.Errorf("it runs in %s, %v", cwd, err)
	}
	stat, err := os.ReadFile(proc + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
	if session, tty := fields[3], fields[4]; session != fmt.Sprint(pid) || tty != "0" {
		t.Errorf("session %s, terminal %s", session, tty)
	}
	entries, err := os.ReadDir(proc + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join(proc, "fd", e.Name()))
		if err != nil {
			continue // closed meanwhile
		}
		standard := slices.Contains([]string{"0", "1", "2"}, e.Name())
		switch {
		case standard && to == "/dev/null":
		case !standard && strings.HasPrefix(to, "anon_inode:"), !standard && strings.HasPrefix(to, "/sys/fs/cgroup/"): // the runtime's
		case !standard && strings.HasPrefix(to, s.dirs.State+"/"):
		case !standard && to == s.log:
		case !standard && to == "/dev/null": // a consumer's standard streams
		case !standard && strings.HasPrefix(to, "pipe:"): // of a consumer that runs
			t.Logf("descriptor %s is %s", e.Name(), to)
		default:
			t.Errorf("descriptor %s is %s", e.Name(), to)
		}
	}
	env, err := os.ReadFile(proc + "/environ")
	if err != nil {
		t.Fatal(err)
	}
	kept := false
	for kv := range strings.SplitSeq(string(env), "\x00") {
		if strings.HasPrefix(kv, "CLAUDE") {
			t.Errorf("it has %s", kv)
		}
		kept = kept || kv == "KEPT=yes"
	}
	if !kept {
		t.Error("it has lost the user's variables")
	}
}
