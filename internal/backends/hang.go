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
	"github.com/ebbdb/ebb/internal/realserver"
	"github.com/ebbdb/ebb/internal/wires"
)

// Hang makes the backend of a test fall silent, in one of two ways:
//
//	stopped   the server says nothing: its connections stay open, new ones are made,
//	          what is sent is kept, and is done when it goes on
//	cut       the network says nothing: what is sent vanishes, either way, for good;
//	          connections of before are never heard of again, not even that they
//	          ended; a new connection waits, and succeeds afterwards
//
// Begin and End take turns; the end of the test is an End.
type Hang struct {
	Way string
	// Other is another program's connection: it hangs with a server that is stopped,
	// and not where the network of this one is cut.
	Other *ebb.Conn

	begin, end func()
}

// Begin makes the backend fall silent.
func (h *Hang) Begin() { h.begin() }

// End ends the silence.
func (h *Hang) End() { h.end() }

// Patience is the read timeout of a Hangs test's connections: it bounds calls without a
// deadline.
const Patience = 500 * time.Millisecond

// hanging is the part of a URL that says so. The pool is so large that no call waits for
// a connection: the timers with which go-redis does it go from one bubble to the next.
var hanging = fmt.Sprintf("read_timeout=%v&dial_timeout=%v&pool_size=1000", Patience, Patience)

// Hangs runs a test on each kind of backend that can hang, in both ways: real servers,
// and on kind mem a server in the test's bubble, over connections in memory, where it
// may hang for hours. Of kinds sentinel and cluster the network is cut, and no server
// stops. The Conn is a client of that server on each.
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

// hangs reports whether a kind can: servers that are ours to stop, and of several servers,
// where one that stops is soon replaced, the network of a program.
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
	h := &Hang{Way: way, Other: b.mem.Conn, begin: func() { w.Cut() }, end: w.Join}
	if way == "stopped" {
		h.begin, h.end = b.mem.Hang, b.mem.GoOn
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

// HangsOver is Hangs for another driver than goredis, to a server of the test's own, in
// one way. open opens it, with Patience for timeouts.
func HangsOver(t *testing.T, p *realserver.Process, way string, open func(ctx context.Context, dial Dial) (*ebb.Conn, error), test func(t *testing.T, b *Backend, h *Hang)) {
	t.Run(way, func(t *testing.T) {
		b := &Backend{Kind: "another door", t: t, nr: theHouse.next(), site: site{url: "redis://" + p.Addr()}}
		b.Conn = b.Open()
		b.hangProcess(t, p, way, open, test)
	})
}

func (b *Backend) hangProcess(t *testing.T, p *realserver.Process, way string, open func(ctx context.Context, dial Dial) (*ebb.Conn, error), test func(t *testing.T, b *Backend, h *Hang)) {
	w := &wires.Wires{Dial: (&net.Dialer{}).DialContext, Within: Patience}
	h := &Hang{Way: way, Other: b.Conn, begin: func() { w.Cut() }, end: w.Join}
	if way == "stopped" {
		h.begin, h.end = func() { p.Pause(t) }, func() { p.Resume(t) }
	}
	b.hang(t, h, w, open, test)
}

// through opens a URL.
func through(url string) func(ctx context.Context, dial Dial) (*ebb.Conn, error) {
	return func(ctx context.Context, dial Dial) (*ebb.Conn, error) {
		return ebb.Open(ctx, url, ebb.Options{Dial: dial})
	}
}

func (b *Backend) hang(t *testing.T, h *Hang, w *wires.Wires, open func(ctx context.Context, dial Dial) (*ebb.Conn, error), test func(t *testing.T, b *Backend, h *Hang)) {
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
