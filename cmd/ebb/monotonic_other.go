//go:build !linux

package main

import "time"

// sinceBoot returns a clock of the time since now. It uses the monotonic clock, which may stand still while the
// machine sleeps.
func sinceBoot() func() time.Duration {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}

// monotonic returns nil: systemd runs only on Linux.
func monotonic() []string { return nil }
