//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package cli

import "os"

// IsTerminal reports whether f is a terminal; on this system it is always false.
func IsTerminal(*os.File) bool { return false }
