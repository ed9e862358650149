package embedredis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/embed"
	"github.com/ebbdb/ebb/embed/embedredis"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

func TestMain(m *testing.M) { backends.Main(m) }

func Example() {
	ctx := context.Background()
	c, err := embed.Open(ctx, "mem://")
	if err != nil {
		panic(err)
	}
	defer c.Close()

	client, err := embedredis.Client(c)
	if err != nil {
		panic(err)
	}
	defer client.Close()

	_ = c.SetTTL(ctx, "session:1", "ann", 30*time.Minute)
	fmt.Println(client.Get(ctx, "session:1").Result())
	_ = client.Incr(ctx, "visits").Err()
	fmt.Println(c.Get(ctx, "visits"))
	// Output:
	// ann <nil>
	// 1 <nil>
}

func open(t *testing.T, url string, o ...embed.Options) *conn.Conn {
	t.Helper()
	c, err := embed.Open(t.Context(), url, o...)
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

func client(t *testing.T, c *conn.Conn, o ...*redis.Options) *redis.Client {
	t.Helper()
	client, err := embedredis.Client(c, o...)
	must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAClientHasTheConnsDataAndDatabase(t *testing.T) {
	c, ctx := open(t, "mem://embedredis/3"), t.Context()
	r := client(t, c)
	must(t, r.Set(ctx, "k", "v", 0).Err())
	if s, err := c.Get(ctx, "k"); s != "v" || err != nil {
		t.Errorf("the Conn reads %q, %v", s, err)
	}
	other := client(t, c, &redis.Options{DB: 5, Protocol: 2, Addr: "nowhere.invalid:1"})
	if err := other.Get(ctx, "k").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("database 5 has the key of database 3: %v", err)
	}
	must(t, other.Set(ctx, "five", 5, 0).Err())
	five := open(t, "mem://embedredis/5")
	if s, err := five.Get(ctx, "five"); s != "5" || err != nil {
		t.Errorf("database 5: %q, %v", s, err)
	}
	view := client(t, c.Replicated(1, time.Second))
	if s, err := view.Get(ctx, "k").Result(); s != "v" || err != nil {
		t.Errorf("of a view: %q, %v", s, err)
	}
}

func TestPipelinesTransactionsAndSubscriptionsWork(t *testing.T) {
	c, ctx := open(t, "mem://"), t.Context()
	r := client(t, c)
	sub := r.Subscribe(ctx, "news")
	defer func() { _ = sub.Close() }()
	_, err := sub.Receive(ctx)
	must(t, err)
	_, err = c.Publish(ctx, "news", "hello")
	must(t, err)
	m, err := sub.ReceiveMessage(ctx)
	if err != nil || m.Payload != "hello" {
		t.Errorf("%v, %v", m, err)
	}
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for range 50 {
				if _, err := r.TxPipelined(ctx, func(p redis.Pipeliner) error {
					p.Incr(ctx, "n")
					return p.RPush(ctx, "l", 1).Err()
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	if n, err := c.Get(ctx, "n"); n != "400" || err != nil {
		t.Errorf("%q, %v", n, err)
	}
}

func TestAClientThatIsClosedLeavesNothingBehind(t *testing.T) {
	c, ctx := open(t, "mem://"), t.Context()
	for range 3 { // the server ends with the last connection, and begins again
		r, err := embedredis.Client(c)
		must(t, err)
		must(t, r.Ping(ctx).Err())
		must(t, r.Close())
		if err := r.Ping(ctx).Err(); !errors.Is(err, redis.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
	must(t, c.Ping(ctx)) // Main fails the package if a goroutine is left
}

func TestClosingTheConnEndsItsClients(t *testing.T) {
	ctx := t.Context()
	c, err := embed.Open(ctx, "mem://")
	must(t, err)
	r := client(t, c, &redis.Options{MaxRetries: -1, DialerRetries: 1})
	must(t, r.Ping(ctx).Err())
	must(t, c.Close())
	if err := r.Ping(ctx).Err(); err == nil {
		t.Error("a closed engine answers")
	}
}

func TestAClientWorksInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c := open(t, "mem://")
		r, err := embedredis.Client(c)
		must(t, err)
		must(t, r.Set(ctx, "k", "v", time.Minute).Err())
		if v, err := c.Do(ctx, "CLIENT", "LIST"); err != nil || !strings.Contains(v.String(), "embedded-client") {
			t.Errorf("the engine does not list its client: %v, %v", v, err)
		}
		<-time.After(time.Minute + time.Millisecond)
		if err := r.Get(ctx, "k").Err(); !errors.Is(err, redis.Nil) {
			t.Errorf("after its deadline: %v", err)
		}
		must(t, r.Close())
		<-time.After(time.Second) // go-redis has a goroutine that notices Close late
		if v, err := c.Do(ctx, "CLIENT", "LIST"); err != nil || strings.Contains(v.String(), "embedded-client") {
			t.Errorf("after Close the engine has clients: %v, %v", v, err)
		}
	})
}

// remote is a Driver that leads to no engine.
type remote struct{ conn.Driver }

func TestAConnWithoutAnEngineIsRefused(t *testing.T) {
	c := open(t, "mem://")
	for _, x := range []*conn.Conn{nil, conn.New(remote{c.Driver()})} {
		if _, err := embedredis.Client(x); !errors.Is(err, conn.ErrRemote) {
			t.Errorf("%v, want ErrRemote", err)
		}
	}
}
