//go:build !linux

package clock

// suspended returns 0. On other systems the monotonic clock counts the suspension, or the system
// does not report it.
func suspended() int64 { return 0 }
