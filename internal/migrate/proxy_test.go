package migrate

import (
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
)

// proxy forwards connections to a server until it cuts them.
type proxy struct {
	ln net.Listener
	wg sync.WaitGroup

	mu    sync.Mutex // guards what follows
	to    string
	open  []net.Conn
	gates []*sync.RWMutex // of the connections, each locked while it stalls
}

// stall holds what the server sends on the connections that are open, until release.
func (p *proxy) stall() (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	gates := slices.Clone(p.gates)
	for _, g := range gates {
		g.Lock()
	}
	return func() {
		for _, g := range gates {
			g.Unlock()
		}
	}
}

// gated writes when its gate is open.
type gated struct {
	io.Writer
	gate *sync.RWMutex
}

// Write implements io.Writer.
func (g gated) Write(b []byte) (int, error) {
	g.gate.RLock()
	defer g.gate.RUnlock()
	return g.Writer.Write(b)
}

func newProxy(t *testing.T, url string) *proxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{ln: ln, to: strings.TrimPrefix(url, "redis://")}
	p.wg.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			to := p.to
			p.mu.Unlock()
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			p.mu.Lock()
			gate := new(sync.RWMutex)
			p.open, p.gates = append(p.open, in, out), append(p.gates, gate)
			p.mu.Unlock()
			p.wg.Go(func() { _, _ = io.Copy(gated{in, gate}, out); in.Close() })
			p.wg.Go(func() { _, _ = io.Copy(out, in); out.Close() })
		}
	})
	t.Cleanup(func() { ln.Close(); p.cut(); p.wg.Wait() })
	return p
}

func (p *proxy) url() string { return "redis://" + p.ln.Addr().String() }

// lead forwards later connections to another server.
func (p *proxy) lead(url string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to = strings.TrimPrefix(url, "redis://")
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		c.Close()
	}
	p.open = nil
}
