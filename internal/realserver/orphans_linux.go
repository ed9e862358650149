package realserver

import "syscall"

// orphans makes a server die with a test process that was killed or has panicked.
func orphans() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
