package backends

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/wires"
)

// Hang makes the backend of a test hang, in one of two ways:
//
//	stopped   the server does not reply: its connections stay open, it accepts new ones,
//	          and it runs the requests when it continues
//	cut       the network drops all bytes in both directions; the old
//	          connections no longer deliver anything, not even their
//	          end; a new connection waits, and succeeds afterwards
//
// The caller calls Begin and End in turn; the end of the test calls End.
type Hang struct {
	Way string
	// Other is the connection of another program. It hangs if the server is stopped, and
	// does not hang if the network is cut.
	Other *ebb.Conn

	// Begin makes the backend hang, and End lets it continue.
	Begin, End func()
}

// Patience is the read timeout of the connections in a Hangs test. It limits calls without
// a deadline.
const Patience = 500 * time.Millisecond

// hanging is the part of a URL with these timeouts. The pool is so large that no call
// waits for a connection: the timers with which go-redis does it go from one bubble to the
// next.
var hanging = fmt.Sprintf("read_timeout=%v&dial_timeout=%v&pool_size=1000", Patience, Patience)

// Hangs runs a test on each kind of backend that can hang, in both ways: real servers, and
// on kind mem a server in the test's bubble, over connections in memory, where it may hang
// for hours. For the kinds sentinel and cluster it cuts the network, and stops no server.
// The Conn is a client of that server on each.
func Hangs(t *testing.T, test func(t *testing.T, b *Backend, h *Hang)) {
	for _, way := range []string{"stopped", "cut"} {
		t.Run(way, func(t *testing.T) {
			only(t, func(k kind) bool { return k.name == virtual }, func(t *testing.T, b *Backend) {
				hangHere(t, b, way, test)
			})
			only(t, func(k kind) bool { return k.hangs(way) }, func(t *testing.T, b *Backend) { hangThere(t, b, way, test) })
		})
	}
}

// hangs reports whether a kind can hang in this way. Servers that the test has started can
// be stopped. For several servers, where another one soon replaces a stopped one, only the
// network of a program can be cut.
func (k kind) hangs(way string) bool {
	switch k.name {
	case "sentinel", "cluster":
		return way == "cut"
	}
	return strings.HasPrefix(k.name, "ebb") || k.name == "redis"
}

func hangHere(t *testing.T, b *Backend, way string, test func(t *testing.T, b *Backend, h *Hang)) {
	synctest.Wait()
	w := &wires.Wires{Dial: b.mem.Dial, Within: Patience}
	h := &Hang{Way: way, Other: b.mem.Conn, Begin: func() { w.Cut() }, End: w.Join}
	if way == "stopped" {
		h.Begin, h.End = b.mem.Hang, b.mem.GoOn
	}
	b.hang(t, h, w, through("redis://ebbtest?"+hanging), test)
}

func hangThere(t *testing.T, b *Backend, way string, test func(t *testing.T, b *Backend, h *Hang)) {
	url := b.site.url + "?" + hanging
	if strings.Contains(b.site.url, "?") {
		url = b.site.url + "&" + hanging
	}
	b.hangProcess(t, b.site.process, way, through(url), test)
}

// Dial makes a connection, as ebb.Options.Dial does.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// HangsOver runs a Hangs test over a driver other than goredis, with a server of the
// test's own, in one way. open opens a connection with Patience for its timeouts.
func HangsOver(t *testing.T, p *realserver.Process, way string, open func(ctx context.Context, dial Dial) (*ebb.Conn, error),
	test func(t *testing.T, b *Backend, h *Hang)) {
	t.Run(way, func(t *testing.T) {
		b := &Backend{Kind: "another driver", t: t, nr: servers.next(), site: site{url: "redis://" + p.Addr()}}
		b.Conn = b.Open()
		b.hangProcess(t, p, way, open, test)
	})
}

func (b *Backend) hangProcess(t *testing.T, p *realserver.Process, way string, open func(ctx context.Context, dial Dial) (*ebb.Conn, error),
	test func(t *testing.T, b *Backend, h *Hang)) {
	w := &wires.Wires{Dial: (&net.Dialer{}).DialContext, Within: Patience}
	h := &Hang{Way: way, Other: b.Conn, Begin: func() { w.Cut() }, End: w.Join}
	if way == "stopped" {
		h.Begin, h.End = func() { p.Pause(t) }, func() { p.Resume(t) }
	}
	b.hang(t, h, w, open, test)
}

// through returns a function that opens a URL through a dial function.
func through(url string) func(ctx context.Context, dial Dial) (*ebb.Conn, error) {
	return func(ctx context.Context, dial Dial) (*ebb.Conn, error) {
		return ebb.Open(ctx, url, ebb.Options{Dial: dial})
	}
}

func (b *Backend) hang(t *testing.T, h *Hang, w *wires.Wires, open func(ctx context.Context, dial Dial) (*ebb.Conn, error),
	test func(t *testing.T, b *Backend, h *Hang)) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := open(ctx, w.Connect)
	for errors.Is(err, ebb.ErrUnavailable) && ctx.Err() == nil { // it is less patient than a busy machine is quick
		c, err = open(ctx, w.Connect)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if b.site.wrap != nil {
		c = b.site.wrap(c)
	}
	defer func() {
		h.End()
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if b.Virtual() {
			b.Pass(2 * time.Second) // go-redis looks each second whether its pool is closed
		}
	}()
	b.Conn = c
	test(t, b, h)
}
