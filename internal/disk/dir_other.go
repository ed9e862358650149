//go:build !unix

package disk

// syncDir does nothing: these systems cannot open directories, and make names durable themselves.
func syncDir(string) error { return nil }
