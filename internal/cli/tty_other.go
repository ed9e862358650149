//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package cli

import "os"

// IsTerminal reports whether f is a terminal; here it cannot tell.
func IsTerminal(*os.File) bool { return false }
