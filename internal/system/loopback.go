package system

import (
	"net"
	"net/netip"
)

// LoopbackHost reports whether a host is this machine for its own programs alone: "localhost", or a loopback address.
func LoopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// LoopbackPeer reports whether the address of a peer, an IP address with a port, is a loopback one: the peer is on this machine.
func LoopbackPeer(addr string) bool {
	peer, err := netip.ParseAddrPort(addr)
	return err == nil && peer.Addr().Unmap().IsLoopback()
}
