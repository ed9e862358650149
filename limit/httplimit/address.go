package httplimit

import (
	"net/http"
	"net/netip"
	"strings"
)

// ByAddress returns a key function that identifies the client of a request by its address: an IPv4 address,
// or the /64 network of an IPv6 address, the size that one subscriber usually gets.
//
// Without proxies it uses the address of the connection. With n trusted proxies it uses the
// n-th address from the right in X-Forwarded-For, which the outermost trusted proxy wrote; any
// client can forge the addresses to the left of it. If the header has fewer addresses, it uses
// the address of the connection.
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

// KeyOf returns the key that ByAddress makes of the address of a connection, with or without a
// port. It returns text that is not an IP address, such as that of a unix socket, unchanged.
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

// network returns the part of an address that identifies the subscriber.
func network(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if a.Is4() {
		return a.String()
	}
	const subscriber = 64
	p, _ := a.Prefix(subscriber) // a valid address has that number of bits
	return p.String()
}
