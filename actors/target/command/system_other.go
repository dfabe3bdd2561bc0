//go:build !linux

package command

import (
	"context"
	"syscall"
	"time"
)

// BecomeSubreaper does nothing here: only Linux hands a command's orphans over.
func BecomeSubreaper() error { return nil }

// KillOrphans does nothing here and returns 0.
func KillOrphans(context.Context, string) int { return 0 }

func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func onFirstThread() bool { return false }

func owner() string { return "" }

// group is a program and what stayed in its process group.
type group struct {
	leader   int
	delivery string
}

// kill ends the group, whose leader is alive or dead but not reaped.
func (g *group) kill() { _ = syscall.Kill(-g.leader, syscall.SIGKILL) }

// sweep ends what the leader left in its group.
func (g *group) sweep(time.Duration) { g.kill() }
