package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	everywhere(t, nil, func(t *testing.T, p *place) {
		const n = 20000
		c, r, _ := p.client()
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "ECHO %d\r\n", i)
		}
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = io.WriteString(c, text.String()) })
		defer wg.Wait()
		for i := range n {
			expect(t, r, fmt.Sprint(i))
		}
	})
}

func TestAPipelineMayBeSentWholeBeforeTheFirstReplyIsRead(t *testing.T) {
	over(t, sockets, nil, func(t *testing.T, p *place) {
		const n = 200
		c, r, _ := p.client()
		send(t, c, strings.Repeat("BIG 100000\r\n"+strings.Repeat("ECHO x\r\n", 5000), n/10))
		for range n / 10 {
			expect(t, r, strings.Repeat("b", 100000))
			for range 5000 {
				expect(t, r, "x")
			}
		}
	})
}

func TestARequestMayArriveInTenThousandPieces(t *testing.T) {
	everywhere(t, nil, func(t *testing.T, p *place) {
		c, r, _ := p.client()
		text := "$10000\r\n" + strings.Repeat("\x01", 10000) + "\r\n"
		for i := range len(text) {
			send(t, c, text[i:i+1])
		}
		expect(t, r, ":10000")
		for _, piece := range []string{"EC", "HO ", "a\r", "\nECHO b\r\nE", "CHO c\r\n"} {
			send(t, c, piece)
		}
		expect(t, r, "a", "b", "c")
	})
}

func TestALargeRequestIsServedWhole(t *testing.T) {
	everywhere(t, nil, func(t *testing.T, p *place) {
		const n = 8<<20 + 5
		c, r, s := p.client()
		for range 3 {
			send(t, c, fmt.Sprintf("ECHO a\r\n$%d\r\n%s\r\nECHO b\r\n", n, strings.Repeat("\x01", n)))
			expect(t, r, "a", fmt.Sprintf(":%d", n), "b")
		}
		if in, _ := s.conn.Buffered(); in != 0 {
			t.Errorf("the idle connection holds %d bytes", in)
		}
	})
}

func TestASlowReaderGetsEverything(t *testing.T) {
	everywhere(t, func(h *hub, o *Options) { h.turn = 100000; o.HighWater = 1 << 20 },
		func(t *testing.T, p *place) {
			const n, size = 60, 300000
			c, _, _ := p.client()
			send(t, c, strings.Repeat(fmt.Sprintf("BIG %d\r\n", size), n)+"QUIT\r\n")
			got, piece := 0, make([]byte, 10007)
			for {
				k, err := c.Read(piece)
				got += k
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if want := n*(size+2) + len("BYE\r\n"); got != want {
				t.Errorf("got %d bytes, want %d", got, want)
			}
			if err := receive(t, p.h.closed); err != nil {
				t.Errorf("closed with %v", err)
			}
		})
}

func TestASessionThatYieldsIsContinued(t *testing.T) {
	everywhere(t, func(h *hub, _ *Options) { h.turn = 1 }, func(t *testing.T, p *place) {
		c, r, _ := p.client()
		send(t, c, strings.Repeat("ECHO x\r\n", 1000))
		for range 1000 {
			expect(t, r, "x")
		}
	})
}

func TestAParkedConnectionKeepsItsOrder(t *testing.T) {
	everywhere(t, nil, func(t *testing.T, p *place) {
		c, r, s := p.client()
		send(t, c, "ECHO a\r\nPARK\r\nECHO b\r\nPARK\r\nECHO c\r\n")
		expect(t, r, "a")
		s.push("pushed\r\n") // wakes it for another reason
		expect(t, r, "pushed")
		send(t, c, "ECHO d\r\n")
		p.h.release <- struct{}{}
		expect(t, r, "DONE", "b")
		p.h.release <- struct{}{}
		expect(t, r, "DONE", "c", "d")
		other, or, _ := p.client()
		send(t, c, "PARK\r\n"+strings.Repeat("ECHO e\r\n", 5000))
		send(t, other, "ECHO others are served\r\n")
		expect(t, or, "others are served")
		p.h.release <- struct{}{}
		expect(t, r, "DONE", "e", "e")
	})
}

func TestAParkedSessionLearnsThatItsPeerLeft(t *testing.T) {
	everywhere(t, nil, func(t *testing.T, p *place) {
		c, _, s := p.client()
		send(t, c, "PARK\r\n")
		_ = c.Close()
		select {
		case <-p.h.left:
			s.conn.Kill(io.ErrUnexpectedEOF)
			if err := receive(t, p.h.closed); err != io.ErrUnexpectedEOF && err != io.EOF {
				t.Errorf("closed with %v", err)
			}
		case err := <-p.h.closed: // the system saw both directions end
			if err != io.EOF {
				t.Errorf("closed with %v", err)
			}
		}
	})
}

func TestAPeerThatOnlyStoppedSendingIsAnswered(t *testing.T) {
	over(t, sockets, nil, func(t *testing.T, p *place) {
		c, r, _ := p.client()
		half, ok := c.(interface{ CloseWrite() error })
		if !ok {
			t.Fatal("a socket has two ends")
		}
		send(t, c, "PARK\r\nBIG 9000000\r\n")
		_ = half.CloseWrite()
		receive(t, p.h.left)
		p.h.release <- struct{}{}
		expect(t, r, "DONE", strings.Repeat("b", 9000000))
		expectEnd(t, r)
		if err := receive(t, p.h.closed); err != io.EOF {
			t.Errorf("closed with %v", err)
		}
	})
}

func TestPushesFromManyGoroutinesAllArriveInTheirOrder(t *testing.T) {
	everywhere(t, nil, func(t *testing.T, p *place) {
		const producers, each, clients = 8, 300, 3
		var wg sync.WaitGroup
		defer wg.Wait()
		for range clients {
			c, r, s := p.client()
			for i := range producers {
				wg.Go(func() {
					for k := range each {
						s.push(fmt.Sprintf("push %d %d\r\n", i, k))
					}
				})
			}
			wg.Go(func() {
				for range each {
					if _, err := io.WriteString(c, "ECHO x\r\n"); err != nil {
						t.Error(err)
						return
					}
				}
			})
			wg.Go(func() {
				var next [producers]int
				echoes := 0
				for range (producers + 1) * each {
					line, err := r.ReadString('\n')
					if err != nil {
						t.Error(err)
						return
					}
					if line == "x\r\n" {
						echoes++
						continue
					}
					var i, k int
					if _, err := fmt.Sscanf(line, "push %d %d", &i, &k); err != nil || k != next[i] {
						t.Errorf("got %q, want push %d %d", line, i, next[i])
						return
					}
					next[i]++
				}
				if echoes != each {
					t.Errorf("%d echoes, want %d", echoes, each)
				}
			})
		}
	})
}

func TestKillEndsAConnectionAtOnce(t *testing.T) {
	everywhere(t, nil, func(t *testing.T, p *place) {
		reason := errors.New("told to")
		c, r, s := p.client()
		send(t, c, "PARK\r\n")
		s.conn.Kill(reason)
		if err := receive(t, p.h.closed); err != reason {
			t.Errorf("closed with %v", err)
		}
		expectEnd(t, r)
		s.conn.Kill(reason) // and again, when it is gone
		s.conn.Wake()
		_ = s.conn.RemoteAddr()
	})
}

func TestKillWithoutAnErrorWritesOutFirst(t *testing.T) {
	everywhere(t, nil, func(t *testing.T, p *place) {
		_, r, s := p.client()
		big := strings.Repeat("p", 3<<20)
		s.mu.Lock()
		s.pushes = append(s.pushes, big...)
		s.mu.Unlock()
		s.conn.Kill(nil)
		all, err := io.ReadAll(r)
		if err != nil || len(all) != len(big) {
			t.Errorf("got %d bytes, %v; want %d", len(all), err, len(big))
		}
		if err := receive(t, p.h.closed); err != nil {
			t.Errorf("closed with %v", err)
		}
	})
}

func TestPeersMayVanishAtAnyPoint(t *testing.T) {
	everywhere(t, nil, func(t *testing.T, p *place) {
		texts := []string{"", "E", "ECHO x\r\n", "$500000\r\nabc", "BIG 3000000\r\n", "PARK\r\n",
			"PARK\r\nECHO x\r\n", "QUIT\r\nECHO x\r\n", strings.Repeat("BIG 500000\r\n", 8)}
		const rounds = 3
		for range rounds {
			for _, reset := range []bool{false, true} {
				for _, text := range texts {
					c, _, s := p.client()
					if tcp, ok := c.(*net.TCPConn); ok && reset {
						_ = tcp.SetLinger(0)
					}
					if text != "" {
						send(t, c, text)
					}
					if reset {
						s.push("a push too\r\n")
					}
					_ = c.Close()
				}
			}
		}
		for range rounds * 2 * 2 {
			p.h.release <- struct{}{}
		}
		for range rounds * 2 * len(texts) {
			receive(t, p.h.closed)
		}
		if n := p.Clients(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}

func TestAClientThatDoesNotReadIsClosedAtTheOutputLimit(t *testing.T) {
	everywhere(t, func(h *hub, _ *Options) { h.limit = 1 << 20 }, func(t *testing.T, p *place) {
		_, _, s := p.client()
		piece := strings.Repeat("p", 100000)
		for {
			if s.unsent() < 4*p.h.limit { // the loop may have to wait for a processor
				s.push(piece)
			}
			select {
			case err := <-p.h.closed:
				if err != ErrOutputLimit {
					t.Errorf("closed with %v", err)
				}
				return
			case <-t.Context().Done():
				return
			default:
			}
		}
	})
}

func TestClientsBeyondTheMaximumAreTold(t *testing.T) {
	everywhere(t, func(_ *hub, o *Options) { o.MaxClients, o.Refusal = 2, []byte("FULL\r\n") },
		func(t *testing.T, p *place) {
			p.client()
			c, _, _ := p.client()
			if len(p.Addrs()) > 0 {
				third, err := io.ReadAll(p.dial())
				if string(third) != "FULL\r\n" || err != nil {
					t.Errorf("the third got %q, %v", third, err)
				}
			}
			_ = c.Close()
			receive(t, p.h.closed)
			c, r, _ := p.client()
			send(t, c, "ECHO welcome\r\n")
			expect(t, r, "welcome")
		})
}

func TestIdleSessionsAreClosed(t *testing.T) {
	everywhere(t, func(h *hub, _ *Options) { h.idle = true }, func(t *testing.T, p *place) {
		_, r, _ := p.client()
		expectEnd(t, r)
		if err := receive(t, p.h.closed); err != ErrIdle {
			t.Errorf("closed with %v", err)
		}
	})
}

func TestShutdownUnderLoadEndsEverything(t *testing.T) {
	everywhere(t, nil, func(t *testing.T, p *place) {
		const clients = 20
		var wg sync.WaitGroup
		for range clients {
			c, r, s := p.client()
			round := make(chan struct{}, 1)
			wg.Go(func() {
				defer close(round)
				for {
					signal(round)
					if _, err := io.WriteString(c, strings.Repeat("ECHO x\r\n", 10)); err != nil {
						return
					}
					for range 10 {
						if _, err := r.ReadString('\n'); err != nil {
							return
						}
					}
				}
			})
			wg.Go(func() {
				for range round {
					s.push("p\r\n")
					s.conn.Wake()
				}
			})
		}
		for p.h.served.Load() < 2000 {
			c, r, _ := p.client()
			send(t, c, "ECHO y\r\n")
			expect(t, r, "y")
			_ = c.Close()
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := p.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		wg.Wait()
		if n := p.Clients(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}

func TestShutdownWritesOutWhatWasReplied(t *testing.T) {
	everywhere(t, nil, func(t *testing.T, p *place) {
		const n = 20 << 20
		c, r, s := p.client()
		send(t, c, fmt.Sprintf("BIG %d\r\n", n))
		if _, err := r.Peek(1); err != nil {
			t.Fatal(err)
		}
		_ = s
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := p.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
		<-p.ctx.Done()
		expect(t, r, strings.Repeat("b", n))
		expectEnd(t, r)
		wg.Wait()
		if err := receive(t, p.h.closed); err != ErrShutdown {
			t.Errorf("closed with %v", err)
		}
	})
}

func TestShutdownDropsUnsentOutputWhenItsContextEnds(t *testing.T) {
	everywhere(t, nil, func(t *testing.T, p *place) {
		c, r, _ := p.client()
		send(t, c, fmt.Sprintf("BIG %d\r\n", 50<<20))
		if _, err := r.Peek(1); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := p.Shutdown(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("Shutdown returned %v", err)
			}
		})
		<-p.ctx.Done()
		cancel()
		wg.Wait()
		if err := receive(t, p.h.closed); err != ErrShutdown {
			t.Errorf("closed with %v", err)
		}
	})
}

func TestAddressesAreShownAsHostAndPort(t *testing.T) {
	everywhere(t, nil, func(t *testing.T, p *place) {
		c, _, s := p.client()
		switch s.conn.Network() {
		case "tcp":
			if s.conn.RemoteAddr() != c.LocalAddr().String() || s.conn.LocalAddr() != c.RemoteAddr().String() {
				t.Errorf("got %s and %s", s.conn.RemoteAddr(), s.conn.LocalAddr())
			}
		case "unix":
			if want := p.Addrs()[0].String() + ":0"; s.conn.RemoteAddr() != want || s.conn.LocalAddr() != want {
				t.Errorf("got %s and %s, want %s", s.conn.RemoteAddr(), s.conn.LocalAddr(), want)
			}
		}
	})
}
