package grouptest

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// network connects the nodes and the clients, and can be cut. Each node runs in its own network namespace. Its
// loopback has a relay for each port of each other node. A relay forwards bytes in each direction that is not cut:
//
//	node 1 ─▶ 127.0.0.1:B in its namespace ─ relay ─▶ 127.0.0.1:B in node 2's namespace, where node 2 listens
//
// A cut holds bytes back, as a network does that loses packets. They arrive when the cut ends, unless the connection
// was closed before. A connection that is dialled during a cut is established when both directions are open.
type network struct {
	spaces []*os.File // namespaces: index 0 is the test's own, with the clients; index i is that of node i
	done   sync.WaitGroup
	ctx    context.Context
	cancel context.CancelFunc

	mu    sync.Mutex // guards the fields below
	ports map[int]place
	cuts  map[path]chan struct{} // each channel is closed when its cut ends
	open  map[net.Conn]struct{}
}

// clients is the index of the clients' side; nodes count from 1.
const clients = 0

// line is the purpose of a port.
type line int

const (
	data     line = iota // clients and replicas
	peers                // the group's port
	sentinel             // Sentinel's protocol
)

var lines = []line{data, peers, sentinel}

// place is the node and the purpose of a port.
type place struct {
	node int
	line line
}

// path is a direction between two sides: from sends the bytes, whichever side has dialled.
type path struct {
	from, to int
	line     line
}

// mayCut returns the reason for which this process cannot create network namespaces or mount file systems; nil: it
// can.
func mayCut() error {
	f, err := namespace()
	if err == nil {
		err = f.Close()
	}
	return err
}

// namespace creates a network namespace whose loopback interface is up.
func namespace() (f *os.File, err error) {
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	defer own.Close()
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	defer back(own)
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(s)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return nil, err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo); err != nil {
		return nil, err
	}
	return os.Open("/proc/thread-self/ns/net")
}

// back returns a locked thread to the process's namespace. If that fails, the thread stays locked and ends with its
// goroutine.
func back(own *os.File) {
	if unix.Setns(int(own.Fd()), unix.CLONE_NEWNET) == nil {
		runtime.UnlockOSThread()
	}
}

// newNetwork returns a network for some nodes. The end of the test closes it, after the nodes.
func newNetwork(t *testing.T, nodes int) *network {
	t.Helper()
	n := &network{ports: map[int]place{}, cuts: map[path]chan struct{}{}, open: map[net.Conn]struct{}{}}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	t.Cleanup(n.close)
	n.spaces = append(n.spaces, must[*os.File](t)(os.Open("/proc/thread-self/ns/net")))
	for range nodes {
		n.spaces = append(n.spaces, must[*os.File](t)(namespace()))
	}
	return n
}

func (n *network) close() {
	n.cancel()
	n.mu.Lock()
	for c := range n.open {
		_ = c.Close()
	}
	n.mu.Unlock()
	n.done.Wait()
	for _, f := range n.spaces {
		_ = f.Close()
	}
}

// in calls f on a thread in a side's namespace. Sockets and processes that f creates stay in it.
func (n *network) in(side int, f func() error) error {
	runtime.LockOSThread()
	if err := unix.Setns(int(n.spaces[side].Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer back(n.spaces[clients])
	return f()
}

// add makes a port of a node reachable from all other sides.
func (n *network) add(port int, at place) error {
	for side := range n.spaces {
		if side == at.node {
			continue
		}
		var l net.Listener
		err := n.in(side, func() (err error) {
			l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			return err
		})
		if err != nil {
			return err
		}
		context.AfterFunc(n.ctx, func() { _ = l.Close() })
		n.done.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					if n.ctx.Err() != nil {
						return
					}
					continue
				}
				n.done.Go(func() { n.relay(side, at, port, c.(*net.TCPConn)) })
			}
		})
	}
	return nil
}

// relay connects a connection accepted on one side to its port, until both directions have ended.
func (n *network) relay(from int, at place, port int, dialled *net.TCPConn) {
	forth, reply := path{from, at.node, at.line}, path{at.node, from, at.line}
	if !n.keep(dialled) {
		return
	}
	defer n.drop(dialled)
	if !n.passes(forth) || !n.passes(reply) {
		return
	}
	var there net.Conn
	err := n.in(at.node, func() (err error) {
		there, err = new(net.Dialer).DialContext(n.ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		return err
	})
	if err != nil {
		_ = dialled.SetLinger(0) // the dialler sees a refused connection
		return
	}
	if !n.keep(there) {
		return
	}
	defer n.drop(there)
	var both sync.WaitGroup
	both.Go(func() { n.carry(forth, dialled, there.(*net.TCPConn)) })
	n.carry(reply, there.(*net.TCPConn), dialled)
	both.Wait()
}

// keep records a connection. It reports false if the network is closed.
func (n *network) keep(c net.Conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ctx.Err() != nil {
		_ = c.Close()
		return false
	}
	n.open[c] = struct{}{}
	return true
}

func (n *network) drop(c net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.open, c)
	_ = c.Close()
}

// passes waits until a path is not cut. It reports false if the network is closed before.
func (n *network) passes(p path) bool {
	for {
		n.mu.Lock()
		cut := n.cuts[p]
		n.mu.Unlock()
		if cut == nil {
			return n.ctx.Err() == nil
		}
		select {
		case <-cut:
		case <-n.ctx.Done():
			return false
		}
	}
}

// carry copies bytes until the source ends. An end or a reset of one side is passed to the other side.
func (n *network) carry(p path, from, to *net.TCPConn) {
	b := make([]byte, 64<<10)
	for n.passes(p) {
		size, err := from.Read(b)
		if !n.passes(p) { // the path was cut while Read waited
			return
		}
		if _, failed := to.Write(b[:size]); failed != nil {
			_ = from.SetLinger(0)
			_ = from.Close()
			return
		}
		switch {
		case errors.Is(err, io.EOF):
			_ = to.CloseWrite()
			return
		case err != nil:
			_ = to.SetLinger(0)
			_ = to.Close()
			return
		}
	}
}

// cut cuts paths until the function that it returns is called.
func (n *network) cut(paths []path) (heal func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ended := make(chan struct{})
	for _, p := range paths {
		n.cuts[p] = ended
	}
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, p := range paths {
			delete(n.cuts, p)
		}
		close(ended)
	}
}
