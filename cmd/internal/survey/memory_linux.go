package survey

import (
	"fmt"
	"os"
	"strconv"
)

// resident is how much memory a process has, in bytes; 0 when that is unknown.
func resident(pid int) int64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	var total, pages int64
	if _, err := fmt.Sscan(string(data), &total, &pages); err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
