package port

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/internal/memnet"
	"github.com/ebbdb/ebb/internal/testing/certtest"
	"github.com/ebbdb/ebb/internal/testing/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

const limit = 2 * time.Second

// world is a network of ports in virtual time.
type world struct {
	*testing.T
	listeners map[string]*memnet.Listener
	open      []*Port
}

func bubble(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, listeners: map[string]*memnet.Listener{}}
		defer func() {
			for _, p := range w.open {
				if err := p.Close(); err != nil && !errors.Is(err, ErrClosed) {
					t.Error(err)
				}
			}
		}()
		test(w)
	})
}

func (w *world) dial(_ context.Context, address string) (net.Conn, error) {
	l := w.listeners[address]
	if l == nil {
		return nil, fmt.Errorf("connection to %s refused", address)
	}
	return l.Dial()
}

// config returns the configuration of a port at an address. Its handler answers with the sender's name and the
// request.
func (w *world) config(address, self string) Config {
	l := memnet.Listen(address)
	w.listeners[address] = l
	return Config{Self: self, Group: "ebb", Secret: "s", Listeners: []net.Listener{l}, Dial: w.dial, Timeout: limit,
		Handler: func(_ context.Context, from string, request []byte) []byte {
			return append([]byte(from+": "), request...)
		}}
}

func (w *world) start(c Config) *Port {
	w.Helper()
	p, err := Open(c)
	if err != nil {
		w.Fatal(err)
	}
	w.open = append(w.open, p)
	return p
}

// count returns the number of connections in the handshake, and of those behind it.
func (p *Port) count() (raw, peers int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.raw), len(p.peers)
}

// two starts the ports a and b.
func (w *world) two(change func(*Config)) (a, b *Port) {
	w.Helper()
	ca, cb := w.config("a", "1.x"), w.config("b", "2.y")
	if change != nil {
		change(&ca)
		change(&cb)
	}
	return w.start(ca), w.start(cb)
}

// certificate returns TLS configurations of both sides with one certificate, which each side verifies.
func certificate(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	cert, key := certtest.Make(t, "group")
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	verify := func(s tls.ConnectionState) error {
		_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		return err
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert, VerifyConnection: verify},
		&tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true, VerifyConnection: verify}
}

func (w *world) call(p *Port, address, to, request, want string) {
	w.Helper()
	if got, err := p.Call(context.Background(), address, to, []byte(request)); err != nil || string(got) != want {
		w.Fatalf("%q, %v, want %q", got, err, want)
	}
}

func (w *world) fails(p *Port, address, to, want string) {
	w.Helper()
	if got, err := p.Call(context.Background(), address, to, nil); err == nil || !strings.Contains(err.Error(), want) {
		w.Errorf("%q, %v, want an error with %q", got, err, want)
	}
}

func TestNodesCallEachOther(t *testing.T) {
	server, client := certificate(t)
	for name, change := range map[string]func(*Config){
		"plain": nil,
		"TLS":   func(c *Config) { c.Server, c.Client = server, client },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				a, b := w.two(change)
				w.call(a, "b", "2.y", "hello", "1.x: hello")
				w.call(a, "b", "", "any node", "1.x: any node")
				w.call(b, "a", "1.x", "", "2.y: ")
				for range 3 {
					w.call(a, "b", "2.y", "again", "1.x: again")
				}
				if _, n := b.count(); n != 3 {
					t.Errorf("%d connections at b, want 2 of a, and one of its own", n)
				}
				long := strings.Repeat("x", maxFrame-len("1.x: "))
				w.call(a, "b", "2.y", long, "1.x: "+long)
			})
		})
	}
}

func TestStreamsCarryBytesInBothDirections(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two(nil)
		l := b.Streams()
		c, err := a.DialStream(context.Background(), "b", "2.y")
		if err != nil {
			t.Fatal(err)
		}
		d, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []struct{ from, to net.Conn }{{c, d}, {d, c}} {
			if _, err := x.from.Write([]byte("bytes")); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 5)
			if _, err := io.ReadFull(x.to, got); err != nil || string(got) != "bytes" {
				t.Fatalf("%q, %v", got, err)
			}
		}
		if l.Addr().String() != "b" {
			t.Errorf("the address is %v", l.Addr())
		}
		if _, err := a.DialStream(context.Background(), "b", ""); !errors.Is(err, ErrRefused) {
			t.Errorf("a stream to whichever node is there: %v", err)
		}
		c.Close()
		if _, err := d.Read(make([]byte, 1)); err == nil {
			t.Error("the stream goes on behind its end")
		}
		l.Close()
		if _, err := l.Accept(); !errors.Is(err, ErrClosed) {
			t.Errorf("Accept behind Close: %v", err)
		}
	})
}

func TestANodeRefusesWhatIsNotForIt(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start(w.config("a", "1.x"))
		w.start(w.config("b", "2.y"))
		other := w.config("c", "3.z")
		other.Group = "web"
		w.start(other)
		stranger := w.config("d", "4.s")
		stranger.Secret = "another"
		s := w.start(stranger)
		w.fails(a, "b", "2.before", "it is 2.y")
		w.fails(a, "a", "", "the same node")
		w.fails(a, "c", "", `belongs to group "web"`)
		w.fails(a, "d", "", "another secret")
		w.fails(s, "a", "", "another secret")
		w.fails(a, "nowhere", "", "nowhere refused")
		for _, at := range []string{"b", "c", "d"} {
			if _, err := a.Call(context.Background(), at, "9.q", nil); !errors.Is(err, ErrRefused) {
				t.Errorf("%s: %v, want %v", at, err, ErrRefused)
			}
		}
	})
}

// A peer that does not know the secret, but acts as if it did, is detected.
func TestANodeProvesThatItKnowsTheSecret(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start(w.config("a", "1.x"))
		l := memnet.Listen("false")
		w.listeners["false"] = l
		var served sync.WaitGroup
		defer served.Wait()
		served.Go(func() {
			c, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if _, _, err := readHello(c); err != nil {
				t.Error(err)
			}
			_, _ = c.Write(make([]byte, nonceSize))
			_, _ = io.ReadFull(c, make([]byte, proofSize))
			_, _ = c.Write(make([]byte, 1+proofSize))
		})
		w.fails(a, "false", "", "does not know the group's secret")
	})
}

// A proof is not valid with another random number, for another node, or on another TLS connection.
func TestAProofServesOnce(t *testing.T) {
	bubble(t, func(w *world) {
		p := w.start(w.config("a", "1.x"))
		h := hello{kind: kindCalls, group: "ebb", from: "2.y", to: "1.x"}
		said, nonce := h.appendTo(nil), make([]byte, nonceSize)
		all := [][]byte{p.proof(dials, nil, said, nonce), p.proof(accepts, nil, said, nonce)}
		nonce[0]++
		all = append(all, p.proof(dials, nil, said, nonce), p.proof(dials, make([]byte, 32), said, nonce))
		h.to = "1.z"
		all = append(all, p.proof(dials, nil, h.appendTo(nil), nonce))
		h.nonce[0]++
		all = append(all, p.proof(dials, nil, h.appendTo(nil), nonce))
		p.conf.Secret = "another"
		all = append(all, p.proof(dials, nil, h.appendTo(nil), nonce))
		for i := range all {
			for j := range i {
				if bytes.Equal(all[i], all[j]) {
					t.Errorf("the proofs %d and %d are the same", j, i)
				}
			}
		}
	})
}

func TestAPeerThatIsSilentOrTalksNonsenseIsClosed(t *testing.T) {
	hi := hello{kind: kindCalls, group: "ebb", from: "2.y"}
	whole := hi.appendTo(nil)
	for name, x := range map[string]struct {
		said []byte
		wait time.Duration
	}{
		"nothing":              {nil, limit / firstPart},
		"half a greeting":      {whole[:len(whole)-1], limit},
		"a greeting, no proof": {whole, limit},
		"a wrong proof":        {append(append([]byte(nil), whole...), make([]byte, proofSize)...), 0},
		"another protocol":     {[]byte("GET / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n\r\n\r\n\r\n"), 0},
		"a newer version":      {append([]byte(magic+"\x02"), whole[len(magic)+1:]...), 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				w.start(w.config("a", "1.x"))
				c, err := w.dial(context.Background(), "a")
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				began := time.Now()
				if _, err := c.Write(x.said); err != nil {
					t.Fatal(err)
				}
				got, _ := io.ReadAll(c)
				if took := time.Since(began); took != x.wait {
					t.Errorf("closed after %v, want %v", took, x.wait)
				}
				if len(got) > nonceSize && got[nonceSize] == 0 {
					t.Error("the peer was let in")
				}
			})
		})
	}
}

// crowd is a listener whose connections have addresses that the test chooses.
type crowd struct {
	*memnet.Listener
	from chan string // the address of the next connection, host:port
}

func (l crowd) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return c, err
	}
	return of{c, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(<-l.from))}, nil
}

type of struct {
	net.Conn
	from net.Addr
}

func (c of) RemoteAddr() net.Addr { return c.from }

// crowded starts two ports as two does, and lets b accept connections from any address. silent opens a connection
// that sends nothing.
func (w *world) crowded(nodes []string, test func(a, b *Port, from chan string, silent func(from string) net.Conn)) {
	w.Helper()
	from := make(chan string, 1)
	a, b := w.two(func(c *Config) {
		if c.Self == "2.y" {
			c.Listeners[0], c.Nodes = crowd{w.listeners["b"], from}, nodes
		}
	})
	test(a, b, from, func(address string) net.Conn {
		from <- address
		c, err := w.dial(context.Background(), "b")
		if err != nil {
			w.Fatal(err)
		}
		synctest.Wait()
		return c
	})
}

func (p *Port) underWay() int {
	p.pending.mu.Lock()
	defer p.pending.mu.Unlock()
	return p.pending.all
}

func TestSilentConnectionsKeepNoNodeOut(t *testing.T) {
	const node = "10.0.0.1:5"
	for name, of := range map[string]func(i int) string{
		"of one machine":   func(int) string { return "192.0.2.1:5" },
		"of one network":   func(i int) string { return fmt.Sprintf("[2001:db8::%x]:5", i+1) },
		"of many machines": func(i int) string { return fmt.Sprintf("192.0.2.%d:5", i+1) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				w.crowded([]string{"name.of.another:7379", "10.0.0.1:7379"}, func(a, b *Port, from chan string, silent func(string) net.Conn) {
					for i := range maxPending {
						defer silent(of(i)).Close()
					}
					want := maxOfOne
					if name == "of many machines" {
						want = maxStrangers
					}
					if raw, _ := b.count(); b.underWay() != want || raw != want {
						t.Errorf("%d handshakes and %d connections of strangers, want %d", b.underWay(), raw, want)
					}
					from <- node
					w.call(a, "b", "2.y", "let me in", "1.x: let me in")
					time.Sleep(limit / firstPart)
					synctest.Wait()
					if n := b.underWay(); n != 0 {
						t.Errorf("%d handshakes are left", n)
					}
				})
			})
		})
	}
}

// The list may have host names, and a node may connect from a different address. The port learns an address when it
// reaches the node, or when the node proves itself.
func TestThePortLearnsTheAddressesOfNodes(t *testing.T) {
	for _, proves := range []bool{true, false} {
		bubble(t, func(w *world) {
			w.crowded([]string{"name.of.a:7379"}, func(a, b *Port, from chan string, silent func(string) net.Conn) {
				if proves {
					from <- "10.0.0.1:5"
					w.call(a, "b", "2.y", "", "1.x: ")
				} else {
					b.conf.Dial = func(ctx context.Context, address string) (net.Conn, error) {
						c, err := w.dial(ctx, address)
						return of{c, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}}, err
					}
					w.call(b, "a", "", "", "2.y: ")
				}
				for i := range maxPending {
					defer silent(fmt.Sprintf("192.0.2.%d:5", i+1)).Close()
				}
				from <- "10.0.0.1:6"
				c, err := a.connect(context.Background(), kindCalls, target{"b", "2.y"})
				if err != nil {
					t.Fatalf("a node that is known (it has proved itself: %v) is kept out: %v", proves, err)
				}
				c.Close()
			})
		})
	}
}

func TestHandshakesAreBounded(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two(nil)
		for range maxPending + 10 {
			c, err := w.dial(context.Background(), "b")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
		synctest.Wait()
		if raw, _ := b.count(); b.underWay() != maxPending || raw != maxPending {
			t.Errorf("%d handshakes and %d connections, want %d", b.underWay(), raw, maxPending)
		}
		if _, err := a.Call(context.Background(), "b", "2.y", nil); err == nil {
			t.Error("there was room for one more")
		}
		time.Sleep(limit / firstPart)
		synctest.Wait()
		w.call(a, "b", "2.y", "there is room again", "1.x: there is room again")
	})
}

func TestMessagesAreBounded(t *testing.T) {
	bubble(t, func(w *world) {
		ca, cb := w.config("a", "1.x"), w.config("b", "2.y")
		cb.Handler = func(_ context.Context, _ string, request []byte) []byte { return make([]byte, maxFrame+len(request)) }
		a, b := w.start(ca), w.start(cb)
		if _, err := a.Call(context.Background(), "b", "", make([]byte, maxFrame+1)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("a request: %v, want %v", err, ErrTooLarge)
		}
		if _, err := a.Call(context.Background(), "b", "", []byte{1}); err == nil {
			t.Error("an answer of more than maxFrame bytes arrives")
		}
		c, err := a.connect(context.Background(), kindCalls, target{"b", ""})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte{0xff, 0xff, 0xff, 0xff}); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(c); err != nil || len(got) != 0 {
			t.Errorf("a request of 4 GiB: %q, %v; want the end of the connection", got, err)
		}
		c.Close()
		synctest.Wait()
		if _, n := b.count(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}

func TestACallEndsInTime(t *testing.T) {
	bubble(t, func(w *world) {
		ca, cb := w.config("a", "1.x"), w.config("b", "2.y")
		cb.Handler = func(ctx context.Context, _ string, _ []byte) []byte { <-ctx.Done(); return nil }
		a := w.start(ca)
		b := w.start(cb)
		began := time.Now()
		if _, err := a.Call(context.Background(), "b", "", nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != limit {
			t.Errorf("%v after %v, want the limit of %v", err, time.Since(began), limit)
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit/4)
		defer cancel()
		began = time.Now()
		if _, err := a.Call(ctx, "b", "", nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != limit/4 {
			t.Errorf("%v after %v, want that of the context, %v", err, time.Since(began), limit/4)
		}
		// The rest of a frame must arrive within the limit, too.
		c, err := a.connect(context.Background(), kindCalls, target{"b", ""})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * limit) // an idle connection stays open
		began = time.Now()
		if _, err := c.Write([]byte{0, 0, 0, 2, 'x'}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(c); err != nil || time.Since(began) != limit {
			t.Errorf("%v after %v, want the end after %v", err, time.Since(began), limit)
		}
		c.Close()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestAClosedPortLeavesNothing(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two(nil)
		l := b.Streams()
		w.call(a, "b", "2.y", "x", "1.x: x")
		c, err := a.DialStream(context.Background(), "b", "2.y")
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); !errors.Is(err, ErrClosed) {
			t.Errorf("the second Close: %v", err)
		}
		if _, err := l.Accept(); !errors.Is(err, ErrClosed) {
			t.Errorf("Accept: %v", err)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("a stream of a closed port goes on")
		}
		if _, err := b.Call(context.Background(), "a", "1.x", nil); !errors.Is(err, ErrClosed) && !errors.Is(err, context.Canceled) {
			t.Errorf("a call of a closed port: %v", err)
		}
		w.fails(a, "b", "2.y", "2.y at b")
	})
}

// Calls reach a restarted node although the idle connections to its previous process are broken.
func TestARestartedNodeIsReachedAgain(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two(nil)
		w.call(a, "b", "2.y", "x", "1.x: x")
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		w.start(w.config("b", "2.y"))
		if _, err := a.Call(context.Background(), "b", "2.y", nil); err == nil {
			t.Error("the connection to the process before has not ended")
		}
		w.call(a, "b", "2.y", "x", "1.x: x")
	})
}

func TestAnIncompleteConfigIsRefused(t *testing.T) {
	l := memnet.Listen("a")
	defer l.Close()
	handler := func(context.Context, string, []byte) []byte { return nil }
	whole := Config{Self: "1.x", Group: "ebb", Listeners: []net.Listener{l}, Timeout: limit, Handler: handler}
	for want, spoil := range map[string]func(*Config){
		"the name of this node": func(c *Config) { c.Self = "" },
		"has 256 bytes":         func(c *Config) { c.Self = strings.Repeat("x", 256) },
		"group-name":            func(c *Config) { c.Group = "" },
		"a Timeout":             func(c *Config) { c.Timeout = 0 },
		"for both":              func(c *Config) { c.Server = &tls.Config{} },
		"a handler":             func(c *Config) { c.Handler = nil },
	} {
		c := whole
		spoil(&c)
		if p, err := Open(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v, want an error about %q", p, err, want)
		}
	}
}

// An IPv6 node is identified by its whole address: other machines share its network.
func TestANeighbourOfANodeIsAStranger(t *testing.T) {
	node, neighbour := &net.TCPAddr{IP: net.ParseIP("fd00::1")}, &net.TCPAddr{IP: net.ParseIP("fd00::2")}
	var h handshakes
	h.learn(node)
	for range maxOfOne {
		if _, ok := h.begin(neighbour); !ok {
			t.Fatal("a stranger has no place")
		}
	}
	if _, ok := h.begin(neighbour); ok {
		t.Errorf("a stranger has more than %d handshakes", maxOfOne)
	}
	for range maxOfOne + 1 {
		if _, ok := h.begin(node); !ok {
			t.Fatal("strangers in its network keep a node out")
		}
	}
}
