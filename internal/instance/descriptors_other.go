//go:build !unix

package instance

// descriptorLimit returns how many files and sockets this process may have open; 0: the system names no limit.
func descriptorLimit() int64 { return 0 }
