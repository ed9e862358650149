package instance

import (
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/group"
	"github.com/ebbdb/ebb/internal/group/settings"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/resp"
)

// shiftedClock is the clock of a machine that is ahead.
type shiftedClock struct {
	*clock.System
	ahead time.Duration
}

func (c shiftedClock) Micros() int64 { return c.System.Micros() + c.ahead.Microseconds() }

// startGroup starts a group of two servers and a witness. It returns the addresses of the servers and of the
// witness's sentinel-port. The clock of the second server is ahead by ahead.
func startGroup(t *testing.T, ahead time.Duration) (servers [2]string, sentinel string) {
	t.Helper()
	var ports []string
	var list []string
	for range 3 {
		ports = append(ports, strconv.Itoa(realserver.FreePort(t)))
		list = append(list, "127.0.0.1:"+ports[len(ports)-1])
	}
	began := time.Now()
	for i, own := range ports {
		port, other := strconv.Itoa(realserver.FreePort(t)), strconv.Itoa(realserver.FreePort(t))
		cfg, err := config.Load([]string{"--port", port, "--bind", "127.0.0.1", "--group", strings.Join(list, ","), "--group-port", own,
			"--sentinel-port", other, "--group-timeout", "1000", "--sync-lease", "500"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		g, err := settings.Read(cfg, func(string) (bool, error) { return true, nil })
		if err != nil {
			t.Fatal(err)
		}
		o := group.Options{Group: g, Now: func() time.Duration { return time.Since(began) }, Dir: t.TempDir(), Random: draw.Rand(t).Uint64,
			Logger: slog.New(slog.DiscardHandler), Bind: cfg.Bind()}
		if i == 2 {
			w, err := group.OpenWitness(o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = w.Close() })
			return servers, net.JoinHostPort("127.0.0.1", other)
		}
		o.Clients = net.JoinHostPort("127.0.0.1", port)
		in, err := Start(t.Context(), Options{Config: cfg, Group: group.New(o), Clock: shiftedClock{clock.NewSystem(), time.Duration(i) * ahead}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { shutDown(t, in) })
		servers[i] = o.Clients
	}
	return servers, sentinel
}

// once sends a command on a new connection, because a replaced master closes its connections.
func once(t *testing.T, addr string, args ...string) resp.Value {
	t.Helper()
	c := connect(t, addr)
	defer c.Conn.Close()
	c.send(args...)
	return (<-c.soon()).Value
}

// span is the interval in which an event happened.
type span struct{ from, to time.Time }

// apart returns the distance of two spans, or 0 if they overlap.
func (s span) apart(other span) time.Duration {
	return max(s.from.Sub(other.to), other.from.Sub(s.to), 0)
}

// ends returns the deadline of the key k by a server's clock, or false if it has none.
func ends(t *testing.T, addr string) (span, bool) {
	t.Helper()
	began := time.Now()
	v := once(t, addr, "PTTL", "k")
	left := time.Duration(v.Int) * time.Millisecond
	return span{began.Add(left), time.Now().Add(left + time.Millisecond)}, v.Kind == resp.KindInt && v.Int > 0
}

// The deadline of a key is on the master's clock. A member whose own clock is far off uses the master's time: as a
// replica for hiding expired keys, and after its promotion.
func TestDeadlinesStayWhereTheyAreThoughClocksAreApart(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"30 s ahead": 30 * time.Second, "30 s behind": -30 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers, sentinel := startGroup(t, ahead)
			says := func(i int, line string) bool {
				return strings.Contains(once(t, servers[i], "INFO", "replication").Str, line)
			}
			tier.Eventually(t, "the first server leads, and both are in sync", func() bool {
				return says(0, "group_state:leading") && says(0, "group_in_sync:2")
			})
			tier.Eventually(t, "a key is stored", func() bool { return once(t, servers[0], "SET", "k", "v", "PX", "60000").Str == "OK" })
			want, ok := ends(t, servers[0])
			if !ok {
				t.Fatal("the key has no deadline")
			}
			const most = 50 * time.Millisecond
			tier.Eventually(t, "the replica has the master's time", func() bool {
				got, ok := ends(t, servers[1])
				return ok && got.apart(want) < most
			})
			failed := time.Now()
			tier.Eventually(t, "the witness passes the order on", func() bool {
				return once(t, sentinel, "SENTINEL", "FAILOVER", "ebb").Str == "OK"
			})
			tier.Eventually(t, "the second server leads", func() bool { return says(1, "group_state:leading") })
			got, ok := ends(t, servers[1])
			if !ok {
				t.Fatal("the next master has no deadline")
			}
			slewed := time.Since(failed) / 100
			if d := got.apart(want); d > most+slewed {
				t.Errorf("at the failover the deadline has moved by %v, want at most %v", d, most+slewed)
			}
			tier.Eventually(t, "the first server follows, and has the time of the second", func() bool {
				was, ok := ends(t, servers[1])
				got, ok2 := ends(t, servers[0])
				return ok && ok2 && got.apart(was) < most
			})
		})
	}
}
