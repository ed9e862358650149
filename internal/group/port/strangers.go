package port

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// Handshakes are open to all that reach the port, so they are divided. Most of them are for strangers, few for each, and the rest is kept
// for addresses of nodes: those of the list, and those at which this node has reached a node, or from which one has proved itself. The
// latter are of nodes whose names are in the list, and of nodes that connect from elsewhere.
const (
	// maxPending is the number of handshakes that may run at once. A group has fewer nodes than that by far.
	maxPending = 64
	// maxStrangers of them may be of other addresses than those of nodes.
	maxStrangers = 48
	// maxOfOne is the number of them that one such address may have: a node with a new address begins calls, heartbeats and raft.
	maxOfOne = 4
	// maxKnown bounds the addresses of nodes that the port remembers. A group has at most 7 nodes.
	maxKnown = 64
	// firstPart is the part of Timeout within which the first byte of a peer arrives. Peers send it at once.
	firstPart = 4
)

// handshakes are those that are under way. The zero value is ready, and safe for concurrent use.
type handshakes struct {
	mu        sync.Mutex // guards what follows
	known     map[netip.Addr]bool
	all       int
	strangers map[netip.Prefix]int // by origin, those of addresses that are not known
	strange   int                  // their sum
}

// begin notes a handshake of a peer. It reports false if there is no room for it; otherwise the caller calls end once.
func (h *handshakes) begin(peer net.Addr) (end func(), ok bool) {
	from, ok := origin(peer)
	ip, _ := address(peer)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all >= maxPending {
		return nil, false
	}
	if !ok || h.known[ip] { // a network inside of the process has no strangers
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

// end notes the end of a handshake, with the origin of a stranger.
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

// learn notes that an address is a node's.
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

// learnAll notes the addresses of a list, which has host:port. Those with names are learned when they are dialled.
func (h *handshakes) learnAll(list []string) {
	for _, s := range list {
		if at, err := netip.ParseAddrPort(s); err == nil {
			h.learn(net.TCPAddrFromAddrPort(at))
		}
	}
}

// origin returns what a stranger counts as: its address, or for IPv6 the network of 64 bits, of which a peer has all addresses. It
// reports false for an address that is not of IP.
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

// hasty is a connection that is closed unless its first byte arrives in time.
type hasty struct {
	net.Conn
	late  *time.Timer
	begun bool // of its reader
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
