//go:build !linux

package disk

import "os"

// syncData is fsync; on Darwin the drive's cache is flushed too.
func syncData(f *os.File) error { return f.Sync() }
