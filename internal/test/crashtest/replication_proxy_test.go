package crashtest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxy stands between a replica and its master, and spoils connections: it cuts
// them after a random number of bytes, in the middle of whatever is sent there,
// closes one direction alone, falls silent, delays, and splits what is sent.
type proxy struct {
	Port int

	target string
	l      net.Listener
	ctx    context.Context
	calm   atomic.Bool // new connections are left alone, and those that are there
	cuts   atomic.Int64
	conns  sync.WaitGroup

	mu  sync.Mutex // guards rnd
	rnd *rand.Rand
}

func newProxy(t *testing.T, target string, seed uint64) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &proxy{Port: l.Addr().(*net.TCPAddr).Port, target: target, l: l, ctx: ctx, rnd: rand.New(rand.NewPCG(seed, 3))}
	p.conns.Go(p.accept)
	t.Cleanup(func() {
		stop()
		_ = l.Close()
		p.conns.Wait()
	})
	return p
}

func (p *proxy) intN(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rnd.IntN(n)
}

func (p *proxy) accept() {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		p.conns.Go(func() { p.serve(c.(*net.TCPConn)) })
	}
}

// serve carries one connection of a replica.
func (p *proxy) serve(replica *net.TCPConn) {
	defer replica.Close()
	c, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	master := c.(*net.TCPConn)
	defer master.Close()
	ctx, end := context.WithCancel(p.ctx)
	defer end()
	defer context.AfterFunc(ctx, func() {
		_ = replica.Close()
		_ = master.Close()
	})()
	var both sync.WaitGroup
	both.Go(func() {
		p.carry(ctx, replica, master, p.life())
		end()
	})
	both.Go(func() {
		if p.intN(4) == 0 { // what the replica says is cut as well
			p.carry(ctx, master, replica, int64(p.intN(3000)))
		} else {
			p.carry(ctx, master, replica, -1)
		}
		end()
	})
	both.Wait()
}

// life is after how many bytes of the master's a connection ends: in its first
// words, in a snapshot, or in the stream.
func (p *proxy) life() int64 {
	switch p.intN(5) {
	case 0:
		return int64(p.intN(300))
	case 1:
		return int64(p.intN(5000))
	case 2, 3:
		return int64(p.intN(300_000))
	}
	return int64(p.intN(4_000_000))
}

// carry copies until life bytes are through, -1 for any number.
func (p *proxy) carry(ctx context.Context, to, from *net.TCPConn, life int64) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		for b := buf[:n]; len(b) > 0; {
			k := p.piece(ctx, len(b))
			if life >= 0 && !p.calm.Load() && int64(k) > life {
				_, _ = to.Write(b[:life])
				p.cut(ctx, to, from)
				return
			}
			if _, err := to.Write(b[:k]); err != nil {
				return
			}
			b = b[k:]
			if life >= 0 {
				life = max(life-int64(k), 0)
			}
		}
		if err != nil {
			return
		}
	}
}

// piece returns the number of n bytes that are sent at once, after a delay now and then.
func (p *proxy) piece(ctx context.Context, n int) int {
	if p.calm.Load() {
		return n
	}
	switch p.intN(20) {
	case 0:
		p.pause(ctx, 1+p.intN(20))
	case 1, 2, 3:
		return 1 + p.intN(min(n, 40))
	case 4, 5:
		return 1 + p.intN(n)
	}
	return n
}

func (p *proxy) pause(ctx context.Context, ms int) {
	t := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// cut ends a connection in one of several ways. The caller closes it afterwards.
func (p *proxy) cut(ctx context.Context, to, from *net.TCPConn) {
	p.cuts.Add(1)
	switch p.intN(4) {
	case 0: // a reset
		_ = to.SetLinger(0)
	case 1: // the receiver sees the end, and may go on to speak
		_ = to.CloseWrite()
		p.pause(ctx, p.intN(300))
	case 2: // silence, while the sender continues
		_ = from.SetReadDeadline(time.Now().Add(time.Duration(p.intN(300)) * time.Millisecond))
		_, _ = io.Copy(io.Discard, from)
	}
}

func (p *proxy) String() string { return fmt.Sprint(p.cuts.Load(), " cuts") }
