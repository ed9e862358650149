package realserver

import (
	"context"
	"os/exec"

	"github.com/ebbdb/ebb/internal/testing/tier"
)

// CommandContext is exec.CommandContext for a program that may start others. On Unix the end of ctx ends these too: the group of the
// program, and what it has started outside of its group. Wait does not wait for a program that keeps an output open after the first
// one has ended: after a sixth of tier.Patience it returns exec.ErrWaitDelay. The caller does not set cmd.SysProcAttr.
func CommandContext(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = tier.Patience / 6
	group(cmd)
	return cmd
}
