//go:build !linux

package survey

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// psTime bounds how long ps is waited for.
const psTime = time.Second

// resident is how much memory a process has, in bytes; 0 when that is unknown.
func resident(pid int) int64 {
	ctx, cancel := context.WithTimeout(context.Background(), psTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ps", "-o", "rss=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return 0
	}
	kilobytes, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		return 0
	}
	return kilobytes << 10
}
