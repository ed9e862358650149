//go:build !unix

package main

import (
	"fmt"
	"os"
	"runtime"
)

const daemonReady = "ready"

// parentOf returns nil: no program is a child of daemonize here.
func parentOf() *os.File { return nil }

// daemonize says that this system has no sessions to start a server in.
func daemonize([]byte) error {
	return fmt.Errorf("daemonize yes does not work on %s: say daemonize no, and run the server as a service", runtime.GOOS)
}
