package adminhttp

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// guard lets in requests whose Host is a name of this server, and refuses the others
// with 421: a page of another site cannot read ours by having its own name resolve to
// our address (DNS rebinding). It stands before every page.
//
// A connection that arrived at a loopback address may ask for localhost, a loopback
// address, or the host that the server was told to listen on; another one for that host,
// or for an address of its own interface: the one that it arrived at. Any port
// will do. /healthz and /metrics answer programs by any name, because Prometheus and
// load balancers use names of services: a browser sends Origin or Sec-Fetch-Site, which
// a page cannot leave out.
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

// hostname is what a Host header names, without the port and the brackets; "" where it is
// not a host, or a host and a port.
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

// address is that of a TCP address, the zero Addr for others.
func address(a net.Addr) netip.Addr {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}
