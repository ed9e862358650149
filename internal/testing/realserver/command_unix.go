//go:build unix

package realserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// group gives the program a process group of its own, which the end of its context kills.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = orphans()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.Cancel = func() error {
		all := started(cmd.Process.Pid) // a worker of celery has a session of its own
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		for _, pid := range all {
			_ = syscall.Kill(pid, syscall.SIGKILL) // most have ended with the group
		}
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}

// started returns the processes that a process has started, with theirs, except those whose parent has ended. It needs Linux's /proc;
// elsewhere it returns none.
func started(pid int) (all []int) {
	names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, name := range names {
		text, _ := os.ReadFile(name)
		for _, word := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				all = append(all, child)
				all = append(all, started(child)...)
			}
		}
	}
	return all
}
