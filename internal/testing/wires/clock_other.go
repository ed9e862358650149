//go:build !unix

package wires

import "time"

// machineTime returns the machine's time, but for a bubble, where it is not to be had.
func machineTime() time.Time { return time.Now() }
