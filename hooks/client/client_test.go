package client_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"ways/hooks/client"
)

func TestGone(t *testing.T) {
	if (client.Client{}).Gone() || (client.Client{}).Known() {
		t.Error("the unknown client is gone, or known")
	}
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := client.Of(cmd.Process.Pid)
	if c.PID != cmd.Process.Pid || c.Gone() {
		t.Errorf("a living process: %+v, gone %v", c, c.Gone())
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if !c.Gone() {
		t.Error("a killed process is not gone")
	}
	if c.Start != 0 {
		other := client.Of(os.Getpid())
		if other.Start++; !other.Gone() {
			t.Error("another process of the number counts as the client")
		}
	}
}

// TestShell: of a hook that is wired as a command line, the client is above the
// shell.
func TestShell(t *testing.T) {
	if client.Of(os.Getpid()).Start == 0 {
		t.Log("no names of processes here")
		return
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "echo $$; read x")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var buf [32]byte
	n, err := stdout.Read(buf[:])
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		t.Fatal(err)
	}
	if got := client.Of(pid); got.PID != os.Getpid() {
		t.Errorf("the client of a hook below a shell: %+v, want process %d", got, os.Getpid())
	}
	in.Close()
	_ = cmd.Wait()
}
