package servercmd_test

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/services"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// cachingClient is a RESP3 client that caches values as long as the invalidation messages allow it.
type cachingClient struct {
	t     *testing.T
	s     *session.Session
	cache map[string]string
	asked []string // the keys of GETs whose replies have not arrived yet
}

func newCachingClient(t *testing.T, svc *session.Service, options ...string) *cachingClient {
	c := &cachingClient{t: t, s: svc.NewSession(services.Quiet{}), cache: map[string]string{}}
	c.send("HELLO", "3")
	c.send(append([]string{"CLIENT", "TRACKING", "ON"}, options...)...)
	return c
}

func (c *cachingClient) send(args ...string) {
	c.serve(wire.AppendCommand(nil, args...))
}

// get reads keys in one batch, without looking into the cache.
func (c *cachingClient) get(keys ...string) {
	var in []byte
	for _, k := range keys {
		in = wire.AppendCommand(in, "GET", k)
	}
	c.asked = append(c.asked, keys...)
	c.serve(in)
}

func (c *cachingClient) serve(in []byte) {
	n, out, _ := c.s.Serve(in, nil)
	if n != len(in) {
		c.t.Errorf("served %d of %d bytes", n, len(in))
	}
	c.take(out)
}

// drain processes the messages that are queued.
func (c *cachingClient) drain() { c.take(c.s.TakePushes(nil)) }

// take processes the server's output in its order.
func (c *cachingClient) take(out []byte) {
	r := bufio.NewReader(bytes.NewReader(out))
	for {
		v, err := wire.ReadValue(r)
		switch {
		case err != nil:
			return
		case v.Kind == resp.KindPush:
			c.invalidate(v)
		case len(c.asked) > 0:
			c.cache[c.asked[0]] = v.Str
			c.asked = c.asked[1:]
		}
	}
}

func (c *cachingClient) invalidate(v resp.Value) {
	if len(v.Elems) != 2 || v.Elems[0].Str != "invalidate" {
		c.t.Errorf("a message reads %v", v)
		return
	}
	if v.Elems[1].IsNull() {
		clear(c.cache)
	}
	for _, k := range v.Elems[1].Elems {
		delete(c.cache, k.Str)
	}
}

// writeAtRandom changes keys by each kind of command that can.
func writeAtRandom(s *session.Session, rng *rand.Rand, keys []string, n int) {
	for i := range n {
		k, other := keys[rng.IntN(len(keys))], keys[rng.IntN(len(keys))]
		v := fmt.Sprint(rng.Int32())
		switch rng.IntN(12) {
		case 0:
			services.Ask(s, "DEL", k)
		case 1:
			services.Ask(s, "MSET", k, v, other, v)
		case 2:
			services.Ask(s, "SET", k, v, "PX", "1")
		case 3:
			services.Ask(s, "RENAME", k, other)
		case 4:
			services.Ask(s, "MULTI")
			services.Ask(s, "SET", k, v)
			services.Ask(s, "APPEND", other, "x")
			services.Ask(s, "EXEC")
		case 5:
			services.Ask(s, "APPEND", k, "y")
		case 6:
			if i%50 == 0 {
				services.Ask(s, "FLUSHALL")
			}
		case 7:
			services.Ask(s, "COPY", k, other, "REPLACE")
		default:
			services.Ask(s, "SET", k, v)
		}
	}
}

// Once a client has read all messages, it caches no outdated value, even while other clients write.
func TestCachesAreNotStaleOnceTheirMessagesAreRead(t *testing.T) {
	for _, mode := range [][]string{nil, {"BCAST"}, {"BCAST", "PREFIX", "a", "PREFIX", "b"}} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			svc := services.At(t, nil)
			var keys []string
			for i := range 20 {
				keys = append(keys, fmt.Sprintf("%c%d", 'a'+i%2, i))
			}
			const writers, readers = 3, 3
			var writing, reading sync.WaitGroup
			stop := make(chan struct{})
			clients := make([]*cachingClient, readers)
			for i := range clients {
				c := newCachingClient(t, svc, mode...)
				clients[i] = c
				reading.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(i), 1))
					for {
						select {
						case <-stop:
							return
						default:
						}
						c.get(keys[rng.IntN(len(keys))], keys[rng.IntN(len(keys))])
						c.drain()
					}
				})
			}
			for i := range writers {
				s := svc.NewSession(nil)
				writing.Go(func() { writeAtRandom(s, rand.New(rand.NewPCG(uint64(i), 2)), keys, 1500) })
			}
			writing.Wait()
			close(stop)
			reading.Wait()
			checkCaches(t, svc, clients, keys)
		})
	}
}

// checkCaches compares the caches of the clients with the data.
func checkCaches(t *testing.T, svc *session.Service, clients []*cachingClient, keys []string) {
	s := svc.NewSession(nil)
	for _, k := range keys {
		services.Ask(s, "PERSIST", k) // so that nothing expires from here on
	}
	for i, c := range clients {
		c.drain()
		for k, v := range c.cache {
			if now := services.Ask(s, "GET", k).Str; now != v {
				t.Errorf("client %d holds %s = %q, and it is %q", i, k, v, now)
			}
		}
		c.s.Closed(nil)
	}
	if n, k, items, prefixes := svc.Admin().Tracker.Sizes(); n+k+items+prefixes != 0 {
		t.Errorf("when all are gone %d clients, %d keys, %d items, %d prefixes are left", n, k, items, prefixes)
	}
}

// The table stays within its limit while many clients write and read, and a key that the server drops from
// the table leaves the caches too.
func TestTheTableOfTrackedKeysIsBounded(t *testing.T) {
	const limit = 50
	svc := services.At(t, nil)
	if err := svc.Config.Change(true, "tracking-table-max-keys", fmt.Sprint(limit)); err != nil {
		t.Fatal(err)
	}
	c := newCachingClient(t, svc)
	for i := range 10 * limit {
		c.get(fmt.Sprint("k", i))
	}
	c.drain()
	bound := limit + svc.DB.Shards()
	if _, keys, _, _ := svc.Admin().Tracker.Sizes(); keys > int64(bound) {
		t.Errorf("%d keys are remembered, with a bound of %d", keys, limit)
	}
	if len(c.cache) > bound {
		t.Errorf("the client holds %d keys", len(c.cache))
	}
}

// A lowered limit takes effect without another read, and the clients receive the keys that were dropped.
func TestALoweredBoundOfTrackedKeysHolds(t *testing.T) {
	services.Bubble(t, func(svc *session.Service) {
		c := newCachingClient(t, svc)
		for i := range 1000 {
			c.get(fmt.Sprint("k", i))
		}
		if err := svc.Config.Change(true, "tracking-table-max-keys", "10"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		c.drain()
		if _, keys, _, _ := svc.Admin().Tracker.Sizes(); keys != 10 || len(c.cache) != 10 {
			t.Errorf("%d keys are remembered, and the client holds %d, with a bound of 10", keys, len(c.cache))
		}
	})
}

// rueidis sends a cached read as one batch with a transaction. The server tracks its keys, and sends the
// reply before the message that a later write causes.
func TestACachedReadInATransactionIsRemembered(t *testing.T) {
	svc := services.At(t, nil)
	writer := svc.NewSession(nil)
	services.Ask(writer, "SET", "k", "v", "PX", "100000")
	c := newCachingClient(t, svc, "OPTIN")
	var in []byte
	for _, args := range [][]string{{"CLIENT", "CACHING", "YES"}, {"MULTI"}, {"PTTL", "k"}, {"GET", "k"}, {"EXEC"}, {"GET", "other"}} {
		in = wire.AppendCommand(in, args...)
	}
	_, out, _ := c.s.Serve(in, nil)
	if !bytes.Contains(out, []byte("+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:")) || !bytes.HasSuffix(out, []byte("\r\n$1\r\nv\r\n_\r\n")) {
		t.Errorf("the replies are %q", out)
	}
	services.Ask(writer, "MSET", "other", "1", "k", "w")
	const want = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n"
	if got := c.s.TakePushes(nil); string(got) != want {
		t.Errorf("the messages are %q", got)
	}
}

func BenchmarkSetWithoutTracking(b *testing.B) {
	s := services.At(b, nil).NewSession(services.Quiet{})
	in := wire.AppendCommand(nil, "SET", "key", "value")
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		_, out, _ = s.Serve(in, out[:0])
	}
}
