package httplimit

import (
	"net/http"
	"net/netip"
	"strings"
)

// ByAddress returns a key function that tells requests apart by the address that they
// come from: an IPv4 address, or the /64 of an IPv6 address, which is what one
// subscriber has.
//
// Without proxies that is the address of the connection. With n trusted proxies it is
// the n-th address from the right in X-Forwarded-For: what the outermost of them has
// written; any client can make up the addresses left of it. A request that has passed fewer
// is counted by the address of its connection.
func ByAddress(proxies int) func(r *http.Request) string {
	return func(r *http.Request) string {
		if proxies > 0 {
			if a, ok := forwarded(r, proxies); ok {
				return network(a)
			}
		}
		return KeyOf(r.RemoteAddr)
	}
}

// KeyOf is what ByAddress makes of the address of a connection, with or without a
// port. What is no address, such as that of a unix socket, stays as it is.
func KeyOf(remoteAddr string) string {
	if a, ok := address(remoteAddr); ok {
		return network(a)
	}
	return remoteAddr
}

// forwarded returns the n-th address from the right.
func forwarded(r *http.Request, n int) (netip.Addr, bool) {
	fields := r.Header.Values("X-Forwarded-For")
	for i := len(fields) - 1; i >= 0; i-- {
		list := strings.Split(fields[i], ",")
		if n <= len(list) {
			return address(strings.TrimSpace(list[len(list)-n]))
		}
		n -= len(list)
	}
	return netip.Addr{}, false
}

// address reads an address, with or without a port.
func address(s string) (netip.Addr, bool) {
	if p, err := netip.ParseAddrPort(s); err == nil {
		return p.Addr(), true
	}
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	return a, err == nil
}

// network is what counts of an address.
func network(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if a.Is4() {
		return a.String()
	}
	const subscriber = 64
	p, _ := a.Prefix(subscriber) // it has as many bits
	return p.String()
}
