package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ways/actors/target"
	"ways/config/plan"
)

// roleDisk mounts a file system of 256 KiB on args[0], in a mount namespace of
// its own, and fills it, frees it and goes on.
func roleDisk(args []string) int {
	dir := args[0]
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		fmt.Println("mount:", err)
		return 1
	}
	log := filepath.Join(dir, "log")
	to := roleTarget(filepath.Join(dir, "state"), log)
	say := func(n, size int) {
		err := to.Deliver(context.Background(), dispatch(n, `{"prompt":"`+strings.Repeat("x", size)+`"}`))
		var e *target.Error
		if errors.As(err, &e) {
			err = fmt.Errorf("%s %s", e.Kind, e.Reason)
		}
		text, readErr := os.ReadFile(log)
		fmt.Println(n, err, strings.Count(string(text), "\n"), strings.HasSuffix(string(text), "}\n"), readErr)
	}
	say(1, 100_000)
	say(2, 200_000) // does not fit
	say(3, 1000)    // does
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 256<<10), 0o600); err == nil {
		fmt.Println("the filler fitted")
	}
	say(4, 10_000) // nothing fits
	say(4, 10_000)
	if err := os.Remove(filepath.Join(dir, "filler")); err != nil {
		fmt.Println(err)
	}
	say(4, 10_000)
	return 0
}

// A full disk cuts no record in two: what was begun is taken back, and the log
// goes on when there is room again.
func TestFullDisk(t *testing.T) {
	cmd := role(t.Context(), "disk", t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.Output()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
		t.Log("this machine gives no user namespace; TestFileSizeLimit alone covers a write that ends half way")
		return
	}
	must(t, err)
	want := `1 <nil> 1 true <nil>
2 failed disk_full 1 true <nil>
3 <nil> 2 true <nil>
4 failed disk_full 2 true <nil>
4 failed disk_full 2 true <nil>
4 <nil> 3 true <nil>
`
	if string(out) != want {
		t.Errorf("outcomes:\n%swant:\n%s", out, want)
	}
}

// A device that is always full is no log; it is not even opened.
func TestTheFullDeviceIsRefused(t *testing.T) {
	to := newFixture(t).target(t, plan.File{Path: "/dev/full"})
	wantError(t, to.Deliver(t.Context(), dispatch(1, "{}")), target.Refused, "not_regular")
}
