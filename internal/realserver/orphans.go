//go:build !linux

package realserver

import "syscall"

// orphans: elsewhere they outlive a test process that was killed.
func orphans() *syscall.SysProcAttr { return nil }
