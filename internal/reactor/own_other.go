//go:build !linux

package reactor

import "net"

// Own returns nc.
func Own(nc net.Conn) net.Conn { return nc }
