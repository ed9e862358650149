package realserver

import "syscall"

// orphans makes the kernel kill a server when its test process was killed or has panicked.
func orphans() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
