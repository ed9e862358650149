//go:build !linux

package main

import "time"

// sinceBoot returns a clock: the time since now, by the monotonic clock, which may stand still while the machine sleeps.
func sinceBoot() func() time.Duration {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}

// monotonic returns nothing: systemd runs on Linux only.
func monotonic() []string { return nil }
