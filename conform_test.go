package ebb_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/drivertest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
)

func TestMain(m *testing.M) {
	backends.Main(m)
}

// Short names for what the tests of both drivers share.
var (
	testContext = drivertest.Within
	must        = drivertest.Must
)

// open opens a URL for the length of a test.
func open(t testing.TB, url string, o ...ebb.Options) *ebb.Conn {
	t.Helper()
	c, err := ebb.Open(testContext(t), url, o...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ebbServer serves an embedded engine on a real port.
func ebbServer(t testing.TB) (addr string) {
	t.Helper()
	c := open(t, "mem://")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ebb.EngineOf(c).Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// servers are those that a client of the Redis protocol must not be able to tell
// apart.
var servers = []struct {
	name  string
	start func(t testing.TB) string
}{
	{"ebb", ebbServer},
	{"redis-server", func(t testing.TB) string { return realserver.Start(t, "redis-server") }},
}

// eachBackend runs a test on every backend that Open knows; on Sentinel and on a
// cluster where EBB_BACKENDS asks for it, as internal/testing/backends has it.
func eachBackend(t *testing.T, test func(t *testing.T, c *ebb.Conn)) {
	t.Run("mem", func(t *testing.T) { test(t, open(t, "mem://")) })
	t.Run("mem shared", func(t *testing.T) { test(t, open(t, "mem://"+t.Name()[:4]+"/5")) })
	for _, s := range servers {
		t.Run("redis to "+s.name, func(t *testing.T) { test(t, open(t, "redis://"+s.start(t)+"/2")) })
	}
	backends.Asked(t, []string{"ebb2", "ebb-scripts", "sentinel", "cluster", "redis8", "valkey9"}, func(t *testing.T, b *backends.Backend) {
		_, err := b.Do(testContext(t), "FLUSHDB")
		must(t, err)
		test(t, b.Conn)
	})
}

// check fails the test unless got is want and err nil.
func check[T comparable](t testing.TB, what string, want T) func(got T, err error) {
	return func(got T, err error) {
		t.Helper()
		if err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", what, got, err, want)
		}
	}
}

func wantErr(t testing.TB, what string, want error) func(_ any, err error) {
	return func(_ any, err error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
}

func TestStringsAndDeadlinesAreTheSameEverywhere(t *testing.T) {
	eachBackend(t, func(t *testing.T, c *ebb.Conn) {
		ctx := testContext(t)
		_, err := c.Get(ctx, "k")
		wantErr(t, "get of nothing", ebb.ErrNil)(nil, err)
		must(t, c.Set(ctx, "k", "v"))
		check(t, "get", "v")(c.Get(ctx, "k"))
		check(t, "ttl of a key without one", ebb.Forever)(c.TTL(ctx, "k"))
		_, err = c.TTL(ctx, "nothing")
		wantErr(t, "ttl of nothing", ebb.ErrNil)(nil, err)
		check(t, "expire", true)(c.Expire(ctx, "k", time.Hour))
		check(t, "expire of nothing", false)(c.Expire(ctx, "nothing", time.Hour))
		if d, err := c.TTL(ctx, "k"); err != nil || d > time.Hour || d < time.Hour-time.Minute {
			t.Errorf("ttl: %v, %v; want nearly an hour", d, err)
		}
		check(t, "persist", true)(c.Persist(ctx, "k"))
		check(t, "persist again", false)(c.Persist(ctx, "k"))

		must(t, c.Set(ctx, "k", "w", ebb.SetOptions{XX: true, TTL: time.Hour}))
		wantErr(t, "NX on a key", ebb.ErrNotSet)(nil, c.Set(ctx, "k", "x", ebb.SetOptions{NX: true}))
		wantErr(t, "XX on a missing key", ebb.ErrNotSet)(nil, c.Set(ctx, "other", "x", ebb.SetOptions{XX: true}))
		wantErr(t, "NX on a key, as text", ebb.ErrNotSet)(nil, c.SetText(ctx, "k", "x", ebb.SetOptions{NX: true}))
		must(t, c.SetText(ctx, "k", "text", ebb.SetOptions{KeepTTL: true}))
		check(t, "get of a text", "text")(c.Get(ctx, "k"))
		wantErr(t, "two values of options", ebb.ErrArgument)(nil, c.SetText(ctx, "k", "x", ebb.SetOptions{}, ebb.SetOptions{}))
		must(t, c.Set(ctx, "k", 42, ebb.SetOptions{KeepTTL: true}))
		if d, err := c.TTL(ctx, "k"); err != nil || d <= 0 {
			t.Errorf("KeepTTL: %v, %v", d, err)
		}
		check(t, "incrby", int64(40))(c.IncrBy(ctx, "k", -2))
		check(t, "incr", int64(41))(c.Incr(ctx, "k"))
		check(t, "incrbyfloat", 41.5)(c.IncrByFloat(ctx, "k", 0.5))
		check(t, "append", int64(6))(c.Append(ctx, "k", []byte("!!")))
		var reply ebb.ReplyError
		if _, err = c.Incr(ctx, "k"); !errors.As(err, &reply) || reply.Code() != "ERR" {
			t.Errorf("incr of text: %v", err)
		}
		check(t, "setnx", true)(c.SetNX(ctx, "fresh", true, time.Minute))
		check(t, "setnx again", false)(c.SetNX(ctx, "fresh", true, time.Minute))
		check(t, "getex", "1")(c.GetEx(ctx, "fresh", 0))
		check(t, "ttl after getex", ebb.Forever)(c.TTL(ctx, "fresh"))
		check(t, "getdel", "1")(c.GetDel(ctx, "fresh"))
		must(t, c.MSet(ctx, "{t}a", 1, "{t}b", 2.5))
		vals, err := c.MGet(ctx, "{t}a", "{t}none", "{t}b")
		if err != nil || len(vals) != 3 || vals[0].Str != "1" || !vals[1].IsNull() || vals[2].Str != "2.5" {
			t.Errorf("mget: %v, %v", vals, err)
		}
		check(t, "type", "string")(c.Type(ctx, "{t}a"))
		must(t, c.Rename(ctx, "{t}a", "{t}c"))
		check(t, "exists", int64(2))(c.Exists(ctx, "{t}a", "{t}b", "{t}c"))
		check(t, "expireat", true)(c.ExpireAt(ctx, "{t}c", time.Unix(1, 0)))
		check(t, "exists after a deadline in the past", int64(0))(c.Exists(ctx, "{t}c"))
		check(t, "del", int64(1))(c.Del(ctx, "{t}a", "{t}b"))
		must(t, c.Ping(ctx))
	})
}

func TestScanYieldsEveryKey(t *testing.T) {
	eachBackend(t, func(t *testing.T, c *ebb.Conn) {
		ctx := testContext(t)
		const n = 1000
		var b ebb.Batch
		for i := range n {
			b.Do("SET", fmt.Sprintf("user:%d", i), i)
		}
		b.Do("SET", "other", "")
		replies, err := c.Pipeline(ctx, &b)
		must(t, err)
		if len(replies) != n+1 || replies[n].Str != "OK" {
			t.Fatalf("%d replies, the last %v", len(replies), replies[len(replies)-1])
		}
		seen := map[string]bool{}
		for key, err := range c.Scan(ctx, "user:*") {
			must(t, err)
			seen[key] = true
		}
		if len(seen) != n || !seen["user:999"] {
			t.Errorf("%d keys of %d", len(seen), n)
		}
		check(t, "dbsize", int64(n+1))(c.DBSize(ctx))
	})
}

func TestScansOfAKeyYieldEveryElement(t *testing.T) {
	eachBackend(t, func(t *testing.T, c *ebb.Conn) {
		ctx := testContext(t)
		const n = 1000 // more than one call reads, and more than a packed encoding holds
		var b ebb.Batch
		for i := range n {
			name := fmt.Sprintf("user:%d", i)
			b.Do("HSET", "{s}h", name, i)
			b.Do("SADD", "{s}s", name)
			b.Do("ZADD", "{s}z", float64(i)+0.5, name)
		}
		b.Do("HSET", "{s}h", "other", "")
		b.Do("SADD", "{s}s", "other")
		b.Do("ZADD", "{s}z", "-inf", "other")
		b.Do("HSET", "{s}small", "a", "1", "b", "2")
		_, err := c.Pipeline(ctx, &b)
		must(t, err)

		fields, members, scores := map[string]string{}, map[string]bool{}, map[string]float64{}
		for f, err := range c.HScan(ctx, "{s}h", "user:*") {
			must(t, err)
			fields[f.Field] = f.Value
		}
		for m, err := range c.SScan(ctx, "{s}s", "user:*") {
			must(t, err)
			members[m] = true
		}
		for m, err := range c.ZScan(ctx, "{s}z", "") {
			must(t, err)
			scores[m.Member] = m.Score
		}
		if len(fields) != n || len(members) != n || len(scores) != n+1 {
			t.Errorf("%d fields, %d members, %d scores", len(fields), len(members), len(scores))
		}
		for i := range n {
			name := fmt.Sprintf("user:%d", i)
			if fields[name] != strconv.Itoa(i) || !members[name] || scores[name] != float64(i)+0.5 {
				t.Fatalf("%s: %q, %v, %v", name, fields[name], members[name], scores[name])
			}
		}
		if !math.IsInf(scores["other"], -1) {
			t.Errorf("-inf: %v", scores["other"])
		}

		var small []ebb.HashField
		for f, err := range c.HScan(ctx, "{s}small", "") {
			must(t, err)
			small = append(small, f)
		}
		if len(small) != 2 {
			t.Errorf("a small hash: %v", small)
		}
		for range c.SScan(ctx, "{s}s", "") {
			break // the caller may stop
		}
		for m, err := range c.SScan(ctx, "{s}none", "") {
			t.Errorf("no such key: %q, %v", m, err)
		}
		calls := 0
		for f, err := range c.HScan(ctx, "{s}z", "") {
			var reply ebb.ReplyError
			if calls++; !errors.As(err, &reply) || reply.Code() != "WRONGTYPE" || f != (ebb.HashField{}) {
				t.Errorf("another type: %v, %v", f, err)
			}
		}
		if calls != 1 {
			t.Errorf("an error ends the iteration: %d calls", calls)
		}
	})
}

func TestTransactionsAreTheSameEverywhere(t *testing.T) {
	eachBackend(t, func(t *testing.T, c *ebb.Conn) {
		ctx := testContext(t)
		var b ebb.Batch
		b.Do("SET", "k", "text")
		b.Do("INCR", "k")
		b.Do("GET", "{k}none")
		b.Do("GET", "k")
		for name, run := range map[string]func(context.Context, *ebb.Batch) ([]ebb.Value, error){"pipeline": c.Pipeline, "tx": c.Tx} {
			r, err := run(ctx, &b)
			if err != nil || len(r) != 4 || r[0].Str != "OK" || r[1].Err() == nil || !r[2].IsNull() || r[3].Str != "text" {
				t.Errorf("%s: %v, %v", name, r, err)
			}
		}
		b.Reset()
		b.Do("SET", "k", "lost")
		b.Do("GET")
		_, err := c.Tx(ctx, &b)
		var reply ebb.ReplyError
		if !errors.As(err, &reply) || reply.Code() != "EXECABORT" {
			t.Errorf("a refused command: %v, want EXECABORT", err)
		}
		check(t, "k after EXECABORT", "text")(c.Get(ctx, "k"))

		swap := func(meddle bool) error {
			return c.Watch(ctx, func(w *ebb.Watched) error {
				v, err := w.Do(ctx, "GET", "k")
				must(t, err)
				if meddle {
					must(t, c.Set(ctx, "k", "meddled"))
				}
				var b ebb.Batch
				b.Do("SET", "k", v.Str+"+")
				_, err = w.Tx(ctx, &b)
				return err
			}, "k")
		}
		must(t, swap(false))
		check(t, "k", "text+")(c.Get(ctx, "k"))
		wantErr(t, "a watched key changes", ebb.ErrConflict)(nil, swap(true))
		check(t, "k", "meddled")(c.Get(ctx, "k"))
	})
}

func TestMessagesAndExpiredEventsArriveInOrder(t *testing.T) {
	eachBackend(t, func(t *testing.T, c *ebb.Conn) {
		ctx := testContext(t)
		_, err := c.Do(ctx, "CONFIG", "SET", "notify-keyspace-events", "Ex")
		must(t, err)
		events, err := c.PSubscribe(ctx, "__keyevent@*__:expired", "__nothing__")
		must(t, err)
		defer events.Close()
		news, err := c.Subscribe(ctx, "news", "weather")
		must(t, err)
		defer news.Close()

		for i := range 20 {
			check(t, "publish", int64(1))(c.Publish(ctx, "news", i))
		}
		i := 0
		for m, err := range news.All(ctx) {
			must(t, err)
			if m.Channel != "news" || m.Pattern != "" || m.Payload != fmt.Sprint(i) {
				t.Fatalf("message %d: %+v", i, m)
			}
			if i++; i == 20 {
				break
			}
		}
		must(t, c.SetTTL(ctx, "short", "lived", time.Millisecond))
		m, err := events.Next(ctx)
		if err != nil || m.Payload != "short" || m.Pattern != "__keyevent@*__:expired" {
			t.Errorf("expired: %+v, %v", m, err)
		}

		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		_, err = news.Next(short)
		wantErr(t, "nothing comes", context.DeadlineExceeded)(nil, err)
		must(t, news.Close())
		_, err = news.Next(ctx)
		wantErr(t, "next after close", ebb.ErrClosed)(nil, err)
		for { // a server notices soon
			n, err := c.Publish(ctx, "news", "late")
			must(t, err)
			if n == 0 {
				break
			}
		}
	})
}

func TestASubscriberThatSleepsIsLetGo(t *testing.T) {
	c := open(t, "mem://")
	ctx := testContext(t)
	_, err := c.Do(ctx, "CONFIG", "SET", "client-output-buffer-limit", "pubsub 1mb 0 0")
	must(t, err)
	s, err := c.Subscribe(ctx, "news")
	must(t, err)
	page := make([]byte, 64<<10)
	for sent := 0; ; sent++ {
		n, err := c.Publish(ctx, "news", page)
		must(t, err)
		if n == 0 {
			break
		}
		if sent > 1e5 {
			t.Fatal("messages pile up without end")
		}
	}
	_, err = s.Next(ctx)
	if err == nil || errors.Is(err, ebb.ErrClosed) || ctx.Err() != nil {
		t.Errorf("next: %v; want the reason", err)
	}
}

func TestClosingEndsWhatWaits(t *testing.T) {
	eachBackend(t, func(t *testing.T, c *ebb.Conn) {
		ctx := testContext(t)
		s, err := c.Subscribe(ctx, "silence")
		must(t, err)
		waits := make(chan error, 1)
		go func() {
			_, err := s.Next(ctx)
			waits <- err
		}()
		must(t, c.Close())
		wantErr(t, "next", ebb.ErrClosed)(nil, <-waits)
		_, err = c.Do(ctx, "PING")
		wantErr(t, "do", ebb.ErrClosed)(nil, err)
		_, err = c.Subscribe(ctx, "silence")
		wantErr(t, "subscribe", ebb.ErrClosed)(nil, err)
		_, err = c.Block(ctx, "PING")
		wantErr(t, "block", ebb.ErrClosed)(nil, err)
		wantErr(t, "watch", ebb.ErrClosed)(nil, c.Watch(ctx, func(*ebb.Watched) error { return nil }, "k"))
		var b ebb.Batch
		b.Do("PING")
		_, err = c.Tx(ctx, &b)
		wantErr(t, "tx", ebb.ErrClosed)(nil, err)
		must(t, c.Close())
	})
}

// TestGoRedisWorksUnchanged is a program of go-redis's, on either server.
func TestGoRedisWorksUnchanged(t *testing.T) {
	for _, s := range servers {
		for _, proto := range []int{2, 3} {
			t.Run(fmt.Sprintf("%s RESP%d", s.name, proto), func(t *testing.T) {
				c := redis.NewClient(&redis.Options{Addr: s.start(t), Protocol: proto})
				defer c.Close()
				goRedisProgram(t, testContext(t), c)
			})
		}
	}
}

func goRedisProgram(t *testing.T, ctx context.Context, c *redis.Client) {
	must(t, c.ConfigSet(ctx, "notify-keyspace-events", "KEA").Err())
	events := c.PSubscribe(ctx, "__keyspace@0__:visits")
	defer events.Close()
	_, err := events.Receive(ctx)
	must(t, err)

	check(t, "set", "OK")(c.Set(ctx, "greeting", "hello", 0).Result())
	check(t, "get", "hello")(c.Get(ctx, "greeting").Result())
	wantErr(t, "get of nothing", redis.Nil)(nil, c.Get(ctx, "nothing").Err())
	check(t, "expire", true)(c.Expire(ctx, "greeting", time.Minute).Result())
	if d, err := c.TTL(ctx, "greeting").Result(); err != nil || d <= 30*time.Second || d > time.Minute {
		t.Errorf("ttl: %v, %v", d, err)
	}

	var incr *redis.IntCmd
	_, err = c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range 100 {
			p.Set(ctx, fmt.Sprintf("user:%d", i), i, time.Hour)
		}
		incr = p.Incr(ctx, "visits")
		return nil
	})
	must(t, err)
	check(t, "incr", int64(1))(incr.Result())
	_, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		incr = p.Incr(ctx, "visits")
		p.PExpire(ctx, "visits", time.Millisecond)
		return nil
	})
	must(t, err)
	check(t, "incr in MULTI", int64(2))(incr.Result())
	var got []string
	for len(got) < 4 {
		m, err := events.ReceiveMessage(ctx)
		must(t, err)
		got = append(got, m.Payload)
	}
	if want := []string{"incrby", "incrby", "expire", "expired"}; !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}

	n := 0
	for it := c.Scan(ctx, 0, "user:*", 10).Iterator(); it.Next(ctx); n++ {
	}
	check(t, "keys scanned", 100)(n, nil)
	err = c.Watch(ctx, func(tx *redis.Tx) error {
		must(t, c.Set(ctx, "greeting", "meddled", 0).Err())
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Set(ctx, "greeting", "mine", 0).Err() })
		return err
	}, "greeting")
	wantErr(t, "a watched key changes", redis.TxFailedErr)(nil, err)
}
