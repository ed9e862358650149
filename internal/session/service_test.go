package session_test

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/services"
	"github.com/ebbdb/ebb/internal/wire"
)

func TestProtectedModeKeepsStrangersOut(t *testing.T) {
	open := services.Start(t, "--protected-mode", "no")
	guarded := services.Start(t)
	locked := services.Start(t, "--requirepass", "secret")
	for _, x := range []struct {
		s             *session.Service
		network, addr string
		in            bool
	}{
		{guarded, "tcp", "192.0.2.1:5000", false},
		{guarded, "tls", "[2001:db8::1]:5000", false},
		{guarded, "tcp", "127.0.0.1:5000", true},
		{guarded, "tcp", "127.1.2.3:5000", true},
		{guarded, "tcp", "[::1]:5000", true},
		{guarded, "tcp", "[::ffff:127.0.0.1]:5000", true},
		{guarded, "unix", "/tmp/s:0", true},
		{open, "tcp", "192.0.2.1:5000", true},
		{locked, "tcp", "192.0.2.1:5000", true},
	} {
		p := services.Dial(t, x.s, x.network, x.addr)
		got := p.Send("QUIT")
		if in := got == "+OK\r\n"; in != x.in || !in && !strings.HasPrefix(got, "-DENIED Redis is running in protected mode") {
			t.Errorf("%s %s: %q", x.network, x.addr, got)
		}
		if !p.Killed.Load() {
			t.Errorf("%s %s: the connection stays open", x.network, x.addr)
		}
	}
}

func TestDebugIsForClientsThatMayUseIt(t *testing.T) {
	for _, x := range []struct {
		option, addr string
		ok           bool
	}{{"no", "127.0.0.1:1", false}, {"local", "127.0.0.1:1", true}, {"local", "192.0.2.1:1", false}, {"yes", "192.0.2.1:1", true}} {
		s := services.Start(t, "--enable-debug-command", x.option, "--protected-mode", "no")
		got := services.Dial(t, s, "tcp", x.addr).Send("DEBUG", "SLEEP", "0")
		if (got == "+OK\r\n") != x.ok || !x.ok && !strings.HasPrefix(got, "-ERR DEBUG command not allowed.") {
			t.Errorf("%s from %s: %q", x.option, x.addr, got)
		}
	}
}

func TestAnUnfinishedRequestIsBounded(t *testing.T) {
	s := services.Start(t, "--client-query-buffer-limit", "1mb")
	p := services.Dial(t, s, "unix", "s:0")
	head := "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3000000\r\n"
	if got := p.Raw([]byte(head + strings.Repeat("x", 1<<20))); got != "" || !p.Killed.Load() {
		t.Errorf("a request of 3 MB: %q, closed: %v", got, p.Killed.Load())
	}
}

func TestWhatWaitsForExecIsBounded(t *testing.T) {
	s := services.Start(t, "--client-query-buffer-limit", "1mb")
	p := services.Dial(t, s, "unix", "s:0")
	p.Send("MULTI")
	for range 30 {
		p.Send("SET", "k", strings.Repeat("x", 50_000))
		if p.Killed.Load() {
			return
		}
	}
	t.Error("1.5 MB wait for EXEC")
}

func TestASlowSubscriberIsClosed(t *testing.T) {
	s := services.Start(t, "--client-output-buffer-limit", "pubsub 1mb 0 0")
	sub, pub := services.Dial(t, s, "unix", "s:0"), services.Dial(t, s, "unix", "s:0")
	sub.Send("SUBSCRIBE", "ch")
	for range 30 {
		pub.Send("PUBLISH", "ch", strings.Repeat("x", 50_000))
		if sub.Killed.Load() {
			return
		}
	}
	t.Error("1.5 MB wait for a subscriber")
}

func TestShutdownIsPassedOn(t *testing.T) {
	called := make(chan struct{}, 1)
	db := engine.Open(engine.Options{})
	defer db.Close()
	s, err := session.NewService(session.Options{DB: db, Table: servercmd.Table, Shutdown: func() { called <- struct{}{} }}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p := services.Dial(t, s, "unix", "s:0")
	if got := p.Send("SHUTDOWN", "NOSAVE"); got != "" {
		t.Errorf("%q", got)
	}
	<-called
}

// door is a listener that only records its calls.
type door struct {
	open    map[string]bool
	taken   string
	clients int
	alive   time.Duration
}

func (d *door) Add(addr string) (func(), error) {
	if addr == d.taken {
		return nil, errors.New("address already in use")
	}
	d.open[addr] = true
	return func() { delete(d.open, addr) }, nil
}
func (d *door) SetMaxClients(n int)          { d.clients = n }
func (d *door) Refused() int64               { return 0 }
func (d *door) SetKeepAlive(v time.Duration) { d.alive = v }

func TestConfigSetReachesTheListeners(t *testing.T) {
	s := services.Start(t, "--port", "7000")
	d := &door{open: map[string]bool{}, taken: "127.0.0.1:7002"}
	if err := s.Open(d); err != nil {
		t.Fatal(err)
	}
	p := services.Dial(t, s, "unix", "s:0")
	check := func(request, reply, addrs string) {
		t.Helper()
		if got := p.Send(strings.Fields(request)...); got != reply {
			t.Errorf("%s: %q", request, got)
		}
		if got := fmt.Sprint(d.open); got != addrs {
			t.Errorf("%s: listens on %s, want %s", request, got, addrs)
		}
	}
	check("PING", "+PONG\r\n", "map[127.0.0.1:7000:true [::1]:7000:true]")
	check("CONFIG SET port 7001", "+OK\r\n", "map[127.0.0.1:7001:true [::1]:7001:true]")
	check("CONFIG SET port 7002", "-ERR CONFIG SET failed (possibly related to argument 'port') - address already in use\r\n",
		"map[127.0.0.1:7001:true [::1]:7001:true]")
	check("CONFIG SET maxclients 7 tcp-keepalive 9", "+OK\r\n", "map[127.0.0.1:7001:true [::1]:7001:true]")
	if d.clients != 7 || d.alive != 9*time.Second {
		t.Errorf("maxclients %d, tcp-keepalive %v", d.clients, d.alive)
	}
	check("CONFIG SET port 0", "+OK\r\n", "map[]")
}

// Commands about other sessions run while these sessions work, connect and disconnect.
func TestSessionsLookAtEachOther(t *testing.T) {
	s := services.Start(t, "--notify-keyspace-events", "KEA", "--enable-debug-command", "yes")
	requests := strings.Split(`CLIENT LIST|CLIENT INFO|CLIENT SETNAME x|CLIENT KILL TYPE pubsub|CLIENT PAUSE 0|CLIENT UNPAUSE|INFO everything|
SUBSCRIBE a b|PSUBSCRIBE *|UNSUBSCRIBE|PUNSUBSCRIBE|PUBLISH a x|PUBSUB NUMSUB a|PUBSUB CHANNELS|SET k v PX 1|GET k|WATCH k|MULTI|EXEC|RESET|HELLO 3|
CLIENT NO-EVICT ON|CLIENT NO-TOUCH ON|CLIENT SETINFO LIB-NAME x|SELECT 3|CONFIG SET maxmemory 0|CONFIG SET timeout 10|CONFIG RESETSTAT|MEMORY STATS|
DEBUG DIGEST|DEBUG POPULATE 10|CONFIG SET requirepass ""|CLIENT REPLY ON|CLIENT LIST TYPE normal`, "|")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for range 20 {
				p := services.Connect(s, "unix", "s:0")
				for range 30 {
					if p.Killed.Load() {
						break
					}
					p.Send(strings.Fields(strings.ReplaceAll(requests[rng.IntN(len(requests))], `""`, ""))...)
					p.Session.IdleCheck(0)
				}
				p.Session.Closed(nil)
			}
		})
	}
	wg.Wait()
}

// Equal strings, with and without deadlines and in several databases, have the digests that redis-server
// computes.
func TestDigestIsThatOfRedis(t *testing.T) {
	conn, err := net.Dial("tcp", realserver.Start(t, "redis-server", "--enable-debug-command", "yes"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	ours := services.Dial(t, services.Start(t, "--enable-debug-command", "yes"), "unix", "s:0")
	both := func(words ...string) {
		t.Helper()
		if _, err := conn.Write(wire.AppendCommand(nil, words...)); err != nil {
			t.Fatal(err)
		}
		want, err := wire.ReadValue(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := wire.ReadValue(bufio.NewReader(strings.NewReader(ours.Send(words...))))
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: %v, redis-server says %v", words, got, want)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		key := fmt.Sprintf("k%d\x00\xff", rng.IntN(50))
		switch rng.IntN(6) {
		case 0:
			both("SELECT", fmt.Sprint([]int{0, 1, 9, 15}[rng.IntN(4)]))
		case 1:
			both("SET", key, fmt.Sprint(rng.IntN(1000)))
		case 2:
			both("SET", key, strings.Repeat("long ", rng.IntN(50)), "PX", fmt.Sprint(1e7+rng.IntN(1e7)))
		case 3:
			both("EXPIRE", key, fmt.Sprint(1000+rng.IntN(1000)))
		case 4:
			both("DEL", key)
		case 5:
			both("DEBUG", "DIGEST-VALUE", key, "k1\x00\xff")
		}
		both("DEBUG", "DIGEST")
	}
	both("FLUSHALL")
	both("DEBUG", "DIGEST")
}
