package drivertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// Many returns the number of messages that a test sends: given, the value of a flag, if
// that is not 0; else 20,000, or 5,000 with -short.
func Many(given int) int {
	switch {
	case given != 0:
		return given
	case tier.Short():
		return 5_000
	}
	return 20_000
}

// Messages is a test with a stream of numbered messages. The subscriber must get each one,
// or an error that says that some may be missing.
type Messages struct {
	N    int // numbers from 0
	Cuts int // how often the subscriber's connections are cut on the way
	// Publish adds to a batch the command that publishes a text.
	Publish func(b *ebb.Batch, text string)
	// Next is the subscriber's method: it returns a published text, or an error, which is
	// ebb.ErrInterrupted if messages may be missing.
	Next func(ctx context.Context) (text string, err error)
	// Shears cut the connections.
	Shears *Shears
}

// Told is the result of Messages.
type Told struct {
	Received      int
	Interruptions int
	Reported      int // missing messages with an interruption at their place
	Silent        int // missing messages without one
}

func (r Told) String() string {
	return fmt.Sprintf("%d received, %d missing at %d interruptions, %d missing without one", r.Received,
		r.Reported, r.Interruptions, r.Silent)
}

const (
	together = 500    // messages are published as one pipeline
	lead     = 20_000 // messages may be on their way
)

// Run publishes all on a connection, and returns what the subscriber saw. It fails the
// test if a message comes twice, or before another.
func (m Messages) Run(t testing.TB, c *ebb.Conn) (r Told) {
	t.Helper()
	ctx := context.Background() // a campaign has no time limit
	var sent, seen, gaps atomic.Int64
	over := make(chan struct{})
	var publisher sync.WaitGroup
	publisher.Go(func() {
		for i, cuts := 0, 0; i < m.N; {
			var b ebb.Batch
			for end := min(i+together, m.N); i < end; i++ {
				m.Publish(&b, strconv.Itoa(i)+strings.Repeat(".", i%53))
			}
			if _, err := c.Pipeline(ctx, &b); err != nil {
				t.Errorf("publish %d: %v", i, err)
				break
			}
			sent.Store(int64(i))
			if cuts < m.Cuts && i >= m.N*(cuts+1)/(m.Cuts+1) {
				Until(t, "the subscriber is back", func() bool { return gaps.Load() >= int64(2*cuts) })
				cuts++
				m.Shears.Cut()
			}
			Until(t, "the subscriber follows", func() bool { return sent.Load()-seen.Load() < lead })
		}
		Until(t, "the subscriber hears the end", func() bool { // the message may be lost with a connection
			var b ebb.Batch
			m.Publish(&b, strconv.Itoa(m.N))
			_, err := c.Pipeline(ctx, &b)
			if err != nil {
				t.Errorf("publish the end: %v", err)
			}
			select {
			case <-over:
				return true
			default:
				return err != nil
			}
		})
	})
	next, told := 0, false
	for {
		text, err := m.Next(ctx)
		if errors.Is(err, ebb.ErrInterrupted) {
			r.Interruptions++
			told = true
			seen.Store(sent.Load()) // messages on their way may be lost
			gaps.Add(1)
			continue
		}
		if err != nil {
			t.Errorf("after %d: %v", next, err)
			break
		}
		n, err := strconv.Atoi(strings.TrimRight(text, "."))
		if err != nil || n < next {
			t.Errorf("%q came after %d: %v", text, next-1, err)
			break
		}
		if told {
			r.Reported += n - next
		} else {
			r.Silent += n - next
		}
		if n >= m.N {
			break
		}
		r.Received++
		next, told = n+1, false
		seen.Store(int64(next))
	}
	close(over)
	publisher.Wait()
	return r
}

// Check fails the test unless each of the n messages arrived or was reported by an
// interruption.
func (r Told) Check(t testing.TB, n, cuts int) {
	t.Helper()
	t.Log(r)
	if r.Silent != 0 || r.Received+r.Reported != n || r.Interruptions < 2*cuts-1 || cuts == 0 && r.Reported != 0 {
		t.Errorf("of %d: %v", n, r)
	}
}

// Shears makes connections whose reads return pieces of a few bytes, so that frames are
// cut at every place. It can also cut the connections.
type Shears struct {
	// Dial makes connections; the system's network if nil.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Most is the largest piece, in bytes; 0: no limit.
	Most int

	mu    sync.Mutex // guards conns
	conns map[*shorn]struct{}
}

// Connect dials.
func (s *Shears) Connect(ctx context.Context, network, addr string) (net.Conn, error) {
	dial := s.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	nc, err := dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := &shorn{Conn: nc, s: s, in: bufio.NewReaderSize(nc, 64<<10), draw: rand.New(rand.NewPCG(1, 2))}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		s.conns = map[*shorn]struct{}{}
	}
	s.conns[c] = struct{}{}
	return c, nil
}

// Cut closes all open connections.
func (s *Shears) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Conn.Close()
	}
	clear(s.conns)
}

// shorn is a connection that reads small pieces.
type shorn struct {
	net.Conn
	s    *Shears
	in   *bufio.Reader
	draw *rand.Rand
}

func (c *shorn) Read(p []byte) (int, error) {
	if n := c.s.Most; n > 0 {
		p = p[:min(len(p), 1+c.draw.IntN(n))]
	}
	return c.in.Read(p)
}

func (c *shorn) Close() error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if _, open := c.s.conns[c]; !open {
		return nil // it was cut
	}
	delete(c.s.conns, c)
	return c.Conn.Close()
}
