package adminhttp

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// guard accepts requests whose Host is a name of this server, and refuses others with 421.
// So a page of another site cannot read this server's pages by making its own name resolve
// to this server's address (DNS rebinding). It runs before every page.
//
// On a connection to a loopback address, Host may be localhost, a loopback address, or the
// configured host. On another connection it may be the configured host or the address of
// the connection. Any port is allowed. /healthz and /metrics answer programs with any
// Host, because Prometheus and load balancers use names of services. A browser is not such
// a program: it sends Origin or Sec-Fetch-Site, which a page cannot remove.
type guard struct {
	host string // that the server was told to listen on
	next http.Handler
}

func (g guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !g.admits(r) {
		http.Error(w, "this server has no such name: use its address, or the name that the directive http has", http.StatusMisdirectedRequest)
		return
	}
	g.next.ServeHTTP(w, r)
}

func (g guard) admits(r *http.Request) bool {
	if (r.URL.Path == "/healthz" || r.URL.Path == "/metrics") && !fromBrowser(r) {
		return true
	}
	host := hostname(r.Host)
	if host == "" {
		return false
	}
	if g.host != "" && strings.EqualFold(host, g.host) {
		return true
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	at := address(local)
	if at.IsLoopback() && strings.EqualFold(host, "localhost") {
		return true
	}
	asked, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	asked = asked.Unmap()
	return at.IsLoopback() && asked.IsLoopback() || at.IsValid() && asked == at
}

// fromBrowser reports whether a browser has sent the request for a page. For the pages
// of others it sends one of these headers, or both.
func fromBrowser(r *http.Request) bool {
	for name := range r.Header {
		if name == "Origin" || strings.HasPrefix(name, "Sec-Fetch-") {
			return true
		}
	}
	return false
}

// hostname returns the host in a Host header, without the port and the brackets; "" if the
// header is neither a host nor a host and a port.
func hostname(host string) string {
	name, port, err := net.SplitHostPort(host)
	if err == nil {
		if port == "" {
			return ""
		}
		return name
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		if !ok {
			return ""
		}
		return inner
	}
	if strings.Contains(host, ":") {
		return ""
	}
	return host
}

// address returns the IP address of a TCP address, the zero Addr for others.
func address(a net.Addr) netip.Addr {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}
