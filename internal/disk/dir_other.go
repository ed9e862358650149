//go:build !unix

package disk

// syncDir does nothing: these systems do not open directories, and keep names
// themselves.
func syncDir(string) error { return nil }
