//go:build !linux

package realserver

import "syscall"

// orphans returns nil: on this system, servers continue after a test process was killed.
func orphans() *syscall.SysProcAttr { return nil }
