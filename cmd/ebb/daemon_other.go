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

// daemonize returns an error: this system has no sessions in which a server could start.
func daemonize([]byte) error {
	return fmt.Errorf("daemonize yes does not work on %s: set daemonize no, and run the server as a service", runtime.GOOS)
}
