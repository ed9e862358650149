package backends

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// network connects the nodes of a cluster and its clients. Each node announces two proxies
// (gates): one for its port and one for its bus port. A gate identifies a caller by its
// source address, 127.0.0.(firstHost+i) for node i; every other caller is a client.
type network struct {
	ctx   context.Context
	conns sync.WaitGroup

	mu      sync.Mutex // guards what follows
	away    []int      // the nodes on the other side of a partition
	changed chan struct{}
}

const firstHost = 11

// aClient stands for a caller that is not a node; partitions do not affect it.
const aClient = -1

func newNetwork(t testing.TB) *network {
	// If the loopback network has one address only, partitions are not possible.
	l, err := net.Listen("tcp", host(0)+":0")
	if err != nil {
		realserver.Require(t, host(0)+" is not an address of this machine: "+err.Error())
	}
	_ = l.Close()
	ctx, stop := context.WithCancel(context.Background())
	n := &network{ctx: ctx, changed: make(chan struct{})}
	t.Cleanup(func() {
		stop()
		n.conns.Wait()
	})
	return n
}

func host(node int) string { return fmt.Sprint("127.0.0.", firstHost+node) }

// gate starts a gate for a port of a node, and returns the gate's port.
func (n *network) gate(t testing.TB, node, port int) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	context.AfterFunc(n.ctx, func() { _ = l.Close() })
	n.conns.Go(func() {
		for {
			caller, err := l.Accept()
			if err != nil {
				return
			}
			n.conns.Go(func() { n.serve(caller, node, net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) })
		}
	})
	return l.Addr().(*net.TCPAddr).Port
}

// serve forwards a connection to a node.
func (n *network) serve(caller net.Conn, node int, addr string) {
	defer caller.Close()
	from := aClient
	if ip := caller.RemoteAddr().(*net.TCPAddr).IP.To4(); ip != nil && ip[3] >= firstHost {
		from = int(ip[3]) - firstHost
	}
	if !n.pass(from, node) {
		return
	}
	called, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer called.Close()
	end := context.AfterFunc(n.ctx, func() {
		_ = caller.Close()
		_ = called.Close()
	})
	defer end()
	var back sync.WaitGroup
	back.Go(func() {
		n.carry(caller, called, from, node)
		_ = caller.Close()
	})
	n.carry(called, caller, from, node)
	_ = called.Close()
	back.Wait()
}

// carry copies bytes until one side ends. Bytes that are sent during a partition arrive
// after it.
func (n *network) carry(to io.Writer, from io.Reader, a, b int) {
	buf := make([]byte, 16<<10)
	for {
		size, err := from.Read(buf)
		if !n.pass(a, b) {
			return
		}
		if size > 0 {
			if _, err := to.Write(buf[:size]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass waits while a partition separates two nodes. It returns false when the network has
// ended.
func (n *network) pass(a, b int) bool {
	for {
		n.mu.Lock()
		parted := a != aClient && slices.Contains(n.away, a) != slices.Contains(n.away, b)
		changed := n.changed
		n.mu.Unlock()
		if !parted {
			return n.ctx.Err() == nil
		}
		select {
		case <-changed:
		case <-n.ctx.Done():
			return false
		}
	}
}

// part stops all bytes between these nodes and the others; without nodes it ends the
// partition.
func (n *network) part(nodes ...int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.away = nodes
	close(n.changed)
	n.changed = make(chan struct{})
}
