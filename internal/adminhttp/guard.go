package adminhttp

import (
	"cmp"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Guard refuses the requests that pages of other sites make a browser send, and tells browsers what the
// server's own pages may do. It runs before every page.
//
// It accepts requests whose Host is a name of this server, and refuses others with 421. So a page of
// another site cannot read this server's pages by making its own name resolve to this server's address (DNS
// rebinding). On a connection to a loopback address, Host may be localhost, a loopback address, or one of Hosts. On
// another connection it may be one of Hosts or the address of the connection. Any port is allowed.
//
// The paths of Programs answer programs on other machines with any Host, because Prometheus and load balancers use names of
// services. A browser is not such a program, see fromBrowser. On a connection from or to a loopback address their rule is that of
// all paths, except that Host may be missing, or any address. A browser of this machine reaches the server there, what it sends does
// not prove that it is one, and DNS rebinding is an attack on its user. A page of that attack has a name. An address is what a proxy
// beside the server passes on, such as that of a pod.
//
// A request that may change something, and that a page of another origin has sent, gets 403.
//
// The body of a request must arrive within 30 s.
type Guard struct {
	Hosts    []string // names of this server, without ports
	Programs []string // paths
	Next     http.Handler

	origins  http.CrossOriginProtection
	patience time.Duration // 0: bodyTime; tests have less
}

// headers are those of every answer. A page may set others in their place.
var headers = [...][2]string{
	{"Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src " +
		"'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for " +
		"'script'; trusted-types 'none'"},
	{"X-Content-Type-Options", "nosniff"},
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"Permissions-Policy", "accelerometer=(), autoplay=(), camera=(), display-capture=(), fullscreen=(), geolocation=(), " +
		"gyroscope=(), magnetometer=(), microphone=(), midi=(), payment=(), publickey-credentials-get=(), screen-wake-lock=(), " +
		"usb=(), xr-spatial-tracking=()"},
}

// ServeHTTP implements http.Handler.
func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, h := range headers {
		w.Header().Set(h[0], h[1])
	}
	within := cmp.Or(g.patience, bodyTime)
	defer boundBody(w, r, within)()
	if status, why := g.Check(r); status != 0 {
		Refuse(w, r, status, why)
		return
	}
	g.Next.ServeHTTP(w, r)
}

// Check returns the status and the reason with which a request is refused, 0 if it is not.
func (g *Guard) Check(r *http.Request) (status int, why string) {
	if !g.admits(r) {
		return http.StatusMisdirectedRequest, "this server has no such name: use its address, the name that the directive " +
			"http has, or one of http-hosts"
	}
	if err := g.origins.Check(r); err != nil {
		return http.StatusForbidden, "a page of another origin has sent this request"
	}
	return 0, ""
}

func (g *Guard) admits(r *http.Request) bool {
	at, here := connection(r)
	if slices.Contains(g.Programs, r.URL.Path) && (!here || r.Host == "" || isAddress(hostname(r.Host))) && !fromBrowser(r) {
		return true
	}
	host := hostname(r.Host)
	if host == "" {
		return false
	}
	if slices.ContainsFunc(g.Hosts, func(name string) bool { return name != "" && strings.EqualFold(host, name) }) {
		return true
	}
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

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// connection returns the address at which a request has arrived, and whether the client is one of this machine: one end of the
// connection is a loopback address. A connection whose addresses the server does not know counts as one of this machine.
func connection(r *http.Request) (at netip.Addr, here bool) {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if at = address(local); local != nil && local.Network() == "unix" {
		at = netip.AddrFrom4([4]byte{127, 0, 0, 1}) // as local as loopback
	}
	client, err := netip.ParseAddrPort(r.RemoteAddr)
	return at, !at.IsValid() || at.IsLoopback() || err != nil || client.Addr().Unmap().IsLoopback()
}

// fromBrowser reports whether a browser may have sent the request. It sends headers that no page can change
// (https://fetch.spec.whatwg.org/#forbidden-request-header): Origin and Sec-Fetch-Site, but neither for a page
// of HTTP that reads its own origin, which a page of DNS rebinding does; and Accept-Encoding with more than gzip, which
// is all that Prometheus, Go's client and Kubernetes send. A request for a range has another Accept-Encoding, and some browsers let
// a page choose User-Agent. So this is a second wall, not the only one.
func fromBrowser(r *http.Request) bool {
	for name := range r.Header {
		if name == "Origin" || strings.HasPrefix(name, "Sec-Fetch-") {
			return true
		}
	}
	for _, accepted := range r.Header.Values("Accept-Encoding") {
		for coding := range strings.SplitSeq(accepted, ",") {
			coding, _, _ = strings.Cut(coding, ";")
			switch strings.ToLower(strings.TrimSpace(coding)) {
			case "", "gzip", "identity":
			default:
				return true
			}
		}
	}
	return strings.HasPrefix(r.UserAgent(), "Mozilla/")
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
