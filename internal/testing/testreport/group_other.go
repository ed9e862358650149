//go:build !unix

package main

import (
	"os/exec"
	"syscall"
)

// group does nothing: this system has no process groups.
func group(*exec.Cmd) {}

// endGroup ends the step's process; what that has started ends by itself.
func endGroup(cmd *exec.Cmd, _ syscall.Signal) error { return cmd.Process.Kill() }
