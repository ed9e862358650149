//go:build !linux

package disk

import "os"

// syncData calls fsync; on Darwin that also flushes the drive's cache.
func syncData(f *os.File) error { return f.Sync() }
