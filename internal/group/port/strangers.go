package port

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// Any machine that reaches the port can begin a handshake, so the handshakes are divided among addresses. Strangers
// share most of them, with a few for each address; the rest is reserved for addresses of nodes. An address belongs to
// a node if the list has it, if this node has reached a node there, or if a node has proved itself from there. The
// last two cover nodes whose list entry is a host name, and nodes that connect from a different address.
const (
	// maxPending is the number of handshakes that may run at once. A group has far fewer nodes.
	maxPending = 64
	// maxStrangers is the share of maxPending that addresses of strangers may use.
	maxStrangers = 48
	// maxOfOne is the share of maxStrangers that one address may use: a node at a new address opens connections for
	// calls, heartbeats and raft.
	maxOfOne = 4
	// maxKnown is the number of addresses of nodes that the port remembers. A group has at most 7 nodes.
	maxKnown = 64
	// firstPart is the fraction 1/4 of Timeout within which a peer's first byte must arrive. Nodes send it at once.
	firstPart = 4
)

// handshakes counts the handshakes that are under way. The zero value is ready, and safe for concurrent use.
type handshakes struct {
	mu        sync.Mutex // guards the fields below
	known     map[netip.Addr]bool
	all       int
	strangers map[netip.Prefix]int // handshakes of unknown addresses, by origin
	strange   int                  // the sum of strangers
}

// begin counts a handshake of a peer. It reports false if there is no room for one; otherwise the caller calls end
// once.
func (h *handshakes) begin(peer net.Addr) (end func(), ok bool) {
	from, ok := origin(peer)
	ip, _ := address(peer)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all >= maxPending {
		return nil, false
	}
	if !ok || h.known[ip] { // connections within the process have no IP address, and count as known
		h.all++
		return func() { h.end(nil) }, true
	}
	if h.strange >= maxStrangers || h.strangers[from] >= maxOfOne {
		return nil, false
	}
	if h.strangers == nil {
		h.strangers = map[netip.Prefix]int{}
	}
	h.all++
	h.strange++
	h.strangers[from]++
	return func() { h.end(&from) }, true
}

// end counts the end of a handshake. stranger is the origin of a stranger, or nil.
func (h *handshakes) end(stranger *netip.Prefix) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all--
	if stranger == nil {
		return
	}
	h.strange--
	if h.strangers[*stranger]--; h.strangers[*stranger] == 0 {
		delete(h.strangers, *stranger)
	}
}

// learn records that a node uses an address.
func (h *handshakes) learn(node net.Addr) {
	ip, ok := address(node)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !ok || len(h.known) >= maxKnown {
		return
	}
	if h.known == nil {
		h.known = map[netip.Addr]bool{}
	}
	h.known[ip] = true
}

// learnAll records the IP addresses of a list of host:port. Host names are learned when they are dialled.
func (h *handshakes) learnAll(list []string) {
	for _, s := range list {
		if at, err := netip.ParseAddrPort(s); err == nil {
			h.learn(net.TCPAddrFromAddrPort(at))
		}
	}
}

// origin returns the network by which strangers are counted: the address itself, or for IPv6 its network of 64 bits,
// because one peer usually owns all addresses of it. It reports false if a is not an IP address.
func origin(a net.Addr) (p netip.Prefix, ok bool) {
	ip, ok := address(a)
	if !ok {
		return p, false
	}
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	p, err := ip.Prefix(bits)
	return p, err == nil
}

func address(a net.Addr) (ip netip.Addr, ok bool) {
	at, err := netip.ParseAddrPort(a.String())
	return at.Addr().Unmap().WithZone(""), err == nil
}

// hasty is a connection that closes unless its first byte arrives in time.
type hasty struct {
	net.Conn
	late  *time.Timer
	begun bool // the first Read has returned; the reader's own
}

func newHasty(c net.Conn, limit time.Duration) *hasty {
	return &hasty{Conn: c, late: time.AfterFunc(limit, func() { c.Close() })}
}

// Read implements net.Conn.
func (c *hasty) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.begun && (n > 0 || err != nil) {
		c.begun = true
		c.late.Stop()
	}
	return n, err
}
