package command

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// HideDescriptors keeps the descriptors that this process inherited from the
// programs it starts: all but the first three are marked close-on-exec. What this
// process opens itself is marked already. A process that will run commands calls
// it once when it starts; a consumer would otherwise hold pipes of the client.
func HideDescriptors() error {
	names, err := os.ReadDir("/dev/fd")
	if err != nil {
		return fmt.Errorf("command: listing the descriptors: %w", err)
	}
	for _, name := range names {
		if fd, err := strconv.Atoi(name.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}
