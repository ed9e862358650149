package goredis_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/drivertest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

func TestSlotsMoveWhileCallsRun(t *testing.T) {
	backends.Asked(t, []string{"cluster"}, func(t *testing.T, b *backends.Backend) {
		k := b.Cluster()
		ctx := b.Context()
		_, err := b.Do(ctx, "FLUSHALL")
		must(t, err)
		key := "{moving}:n"
		n := drivertest.NewTally(t, b.Conn, key)
		defer n.Stop()
		n.Start(4)
		var batches int64
		n.Go(func() { // keys that are there, and keys that are not, in one batch
			for i := 0; !n.Over(); i++ {
				var batch ebb.Batch
				fresh := fmt.Sprintf("{moving}:%d", i)
				batch.Do("INCR", "{moving}:batches")
				batch.Do("SET", fresh, i, "PX", 60000)
				batch.Do("GET", fresh)
				batch.Do("SET", "elsewhere", i)
				r, err := b.Pipeline(ctx, &batch)
				if err == nil && strings.HasPrefix(r[1].Str, "MOVED ") {
					continue // the node got the slot between this and the next, which ran
				}
				if err != nil || len(r) != 4 || r[0].Int != int64(i)+1 || r[1].Str != "OK" || r[2].String() != fmt.Sprint(i) || r[3].Str != "OK" {
					t.Errorf("batch %d: %v, %v", i, r, err)
					return
				}
				batches++
			}
		})
		n.Go(func() {
			for i := 0; !n.Over(); i++ {
				var batch ebb.Batch
				batch.Do("INCR", "{moving}:a")
				batch.Do("INCR", "{moving}:b")
				r, err := b.Tx(ctx, &batch)
				var refused ebb.ReplyError
				switch {
				case err == nil && r[0].Int != r[1].Int:
					t.Errorf("not as one: %v", r)
				case err != nil && (!errors.Is(err, ebb.ErrUnavailable) || !errors.As(err, &refused)):
					t.Errorf("transaction %d: %v", i, err)
				}
			}
		})
		for range 6 {
			slot := k.Slot(key)
			must(t, k.MoveSlot(slot, another(k, slot)))
			n.More(50)
		}
		n.Verify()
		if n.Unsure() != 0 || batches == 0 {
			t.Errorf("a move alone leaves nothing unsure: %d; %d batches", n.Unsure(), batches)
		}
	})
}

// another returns a master that does not have a slot.
func another(k *backends.Cluster, slot int) int {
	has := k.Master(slot)
	for _, i := range k.Masters() {
		if i != has {
			return i
		}
	}
	return -1
}

func TestKeysThatAreOnTheirWayAreAskedFor(t *testing.T) {
	backends.Asked(t, []string{"cluster"}, func(t *testing.T, b *backends.Backend) {
		k := b.Cluster()
		ctx := b.Context()
		_, err := b.Do(ctx, "FLUSHALL")
		must(t, err)
		must(t, b.Set(ctx, "{way}:old", "here"))
		slot := k.Slot("{way}")
		m, err := k.BeginMove(slot, another(k, slot))
		must(t, err)
		check(t, "a key that has not moved", "here")(b.Get(ctx, "{way}:old"))
		must(t, b.Set(ctx, "{way}:new", "there"))
		check(t, "a key that was made there", "there")(b.Get(ctx, "{way}:new"))
		_, err = b.MGet(ctx, "{way}:old", "{way}:new")
		wantErr(t, "keys here and there", ebb.ErrUnavailable)(nil, err)
		var batch ebb.Batch
		batch.Do("SET", "{way}:tx", 1)
		batch.Do("INCR", "{way}:tx")
		r, err := b.Tx(ctx, &batch)
		if err != nil || len(r) != 2 || r[1].Int != 2 {
			t.Errorf("a transaction on new keys: %v, %v", r, err)
		}
		v, err := b.Script(ctx, ebb.NewScript("return redis.call('INCR', KEYS[1])"), []string{"{way}:tx"})
		if err != nil || v.Int != 3 {
			t.Errorf("a script on a new key: %v, %v", v, err)
		}
		taken := make(chan error, 1)
		go func() { // waits at the old node, and goes along
			v, err := b.Block(ctx, "BLPOP", "{way}:jobs", 0)
			if s, _ := v.AsStrings(); err == nil && (len(s) != 2 || s[1] != "job") {
				err = fmt.Errorf("took %v", v)
			}
			taken <- err
		}()
		must(t, m.Keys())
		must(t, m.End())
		check(t, "a key that has moved", "here")(b.Get(ctx, "{way}:old"))
		_, err = b.Do(ctx, "RPUSH", "{way}:jobs", "job")
		must(t, err)
		must(t, <-taken)
	})
}

func TestNothingIsCountedTwiceWhenAMasterDies(t *testing.T) {
	backends.Asked(t, []string{"sentinel", "cluster", "redis", "ebb3"}, func(t *testing.T, b *backends.Backend) {
		key := "{" + b.Name("n") + "}"
		ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
		defer cancel()
		n := drivertest.NewTally(t, b.Conn, key)
		defer n.Stop()
		waits := make(chan error, 1)
		go func() {
			_, err := b.Block(ctx, "BLPOP", key+"jobs", 0)
			waits <- err
		}()
		n.Add(20)
		at := b.Conn
		if k := b.Cluster(); k != nil {
			at = open(t, "redis://"+k.Addrs()[k.Master(k.Slot(key))])
		}
		b.Until("the call waits", func() bool {
			v, err := at.Do(ctx, "INFO", "clients")
			must(t, err)
			return !strings.Contains(v.Str, "blocked_clients:0\r\n")
		})
		// What a master acknowledges alone dies with it: the calls begin after it.
		b.FaultAt(key)
		n.Start(3)
		n.More(20)
		n.Verify()
		wantErr(t, "a call that waited at the dead", ebb.ErrUnavailable)(nil, <-waits)
		var v ebb.Value
		b.Until("Block works again", func() bool {
			var err error
			if _, err = b.Do(ctx, "RPUSH", key+"jobs", "job"); err != nil {
				return false
			}
			v, err = b.Block(ctx, "BLPOP", key+"jobs", 1)
			return err == nil
		})
		if s, _ := v.AsStrings(); len(s) != 2 {
			t.Errorf("BLPOP: %v", v)
		}
		// The scripts of a server that was started again are unknown to it.
		if v, err := b.Script(ctx, ebb.NewScript("return redis.call('EXISTS', KEYS[1])"), []string{key}); err != nil || v.Int != 1 {
			t.Errorf("script: %v, %v", v, err)
		}
	})
}

func TestASubscriptionOutlivesItsServer(t *testing.T) {
	backends.Asked(t, []string{"sentinel", "cluster", "redis", "ebb3"}, func(t *testing.T, b *backends.Backend) {
		ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
		defer cancel()
		name := "{" + b.Name("news") + "}"
		plain, err := b.Subscribe(ctx, name)
		must(t, err)
		sharded, err := b.SSubscribe(ctx, name)
		must(t, err)
		b.FaultAt(name)
		for what, s := range map[string]*ebb.Subscription{"SUBSCRIBE": plain, "SSUBSCRIBE": sharded} {
			for i := range 2 {
				if _, err := s.Next(ctx); !errors.Is(err, ebb.ErrInterrupted) {
					t.Fatalf("%s, notice %d: %v", what, i+1, err)
				}
			}
			b.Until(what+" hears again", func() bool {
				if what == "SUBSCRIBE" {
					_, err = b.Publish(ctx, name, "x")
				} else {
					_, err = b.Do(ctx, "SPUBLISH", name, "x")
				}
				if err != nil {
					return false
				}
				short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
				defer cancel()
				m, err := s.Next(short)
				return err == nil && m.Payload == "x" && m.Channel == name
			})
		}
	})
}

func TestASlowServerCostsOnlyTheCallersTime(t *testing.T) {
	addr := realserver.Start(t, "redis-server")
	p := drivertest.NewProxy(t, addr)
	c := open(t, "redis://"+p.Addr()+"?read_timeout=60s")
	ctx := testContext(t)
	must(t, c.Set(ctx, "k", 0))
	direct := open(t, "redis://"+addr)
	tries, v := 0, ""
	for patience := 20 * time.Millisecond; v == "" || v == "0"; patience *= 2 { // a busy machine sends nothing in so short a time
		tries++
		p.Delay.Store(int64(15 * patience))
		short, cancel := context.WithTimeout(ctx, patience)
		_, err := c.Incr(short, "k")
		cancel()
		wantErr(t, "a slow reply", context.DeadlineExceeded)(nil, err)
		if errors.Is(err, ebb.ErrUnavailable) {
			t.Errorf("the backend is blamed: %v", err)
		}
		v, err = direct.Get(ctx, "k")
		must(t, err)
	}
	p.Delay.Store(0)
	n, err := c.Incr(ctx, "k")
	must(t, err)
	if n < 2 || n > int64(tries)+1 {
		t.Errorf("it ran, and once: %d after %d tries", n, tries)
	}

	// The reply is lost: the command has run, and is not sent again.
	p.Hang.Store(true)
	done := make(chan error, 1)
	go func() {
		_, err := c.Incr(ctx, "k")
		done <- err
	}()
	for want := fmt.Sprint(n + 1); v != want; {
		v, err = direct.Get(ctx, "k")
		must(t, err)
	}
	p.Cut()
	wantErr(t, "a reply that is lost", ebb.ErrUnavailable)(nil, <-done)
	p.Hang.Store(false)
	check(t, "a command whose reply was lost has run once", v)(c.Get(ctx, "k"))
}

func TestCallsEndWithTheirContextAtEveryPoint(t *testing.T) {
	p := drivertest.NewProxy(t, realserver.Start(t, "redis-server"))
	c := open(t, "redis://"+p.Addr()+"?read_timeout=10s")
	p.Hang.Store(true)
	var b ebb.Batch
	b.Do("PING")
	for what, call := range map[string]func(ctx context.Context) error{
		"do":        func(ctx context.Context) error { return c.Ping(ctx) },
		"block":     func(ctx context.Context) error { _, err := c.Block(ctx, "BLPOP", "k", 0); return err },
		"pipeline":  func(ctx context.Context) error { _, err := c.Pipeline(ctx, &b); return err },
		"tx":        func(ctx context.Context) error { _, err := c.Tx(ctx, &b); return err },
		"watch":     func(ctx context.Context) error { return c.Watch(ctx, func(*ebb.Watched) error { return nil }, "k") },
		"subscribe": func(ctx context.Context) error { _, err := c.Subscribe(ctx, "k"); return err },
		"script":    func(ctx context.Context) error { _, err := c.Script(ctx, ebb.NewScript("return 1"), nil); return err },
		"scan": func(ctx context.Context) error {
			for _, err := range c.Scan(ctx, "") {
				return err
			}
			return nil
		},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", what, err)
		}
		cancel()
		ctx, cancel = context.WithCancel(context.Background())
		cancel()
		if err := call(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled before: %v", what, err)
		}
	}
	// Without a deadline, in the middle.
	for what, call := range map[string]func(ctx context.Context) error{
		"block":     func(ctx context.Context) error { _, err := c.Block(ctx, "BLPOP", "k", 0); return err },
		"subscribe": func(ctx context.Context) error { _, err := c.Subscribe(ctx, "k"); return err },
	} {
		ctx, cancel := context.WithCancel(context.Background())
		later := time.AfterFunc(20*time.Millisecond, cancel)
		if err := call(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled: %v", what, err)
		}
		later.Stop()
		cancel()
	}
	p.Cut()
}

func TestAServerThatIsNotReadyIsUnavailable(t *testing.T) {
	master := realserver.Start(t, "redis-server")
	host, port, _ := net.SplitHostPort(master)
	replica := open(t, "redis://"+realserver.Start(t, "redis-server", "--replicaof", host+" "+port))
	ctx := testContext(t)
	err := replica.Set(ctx, "k", "v")
	var refused ebb.ReplyError
	if !errors.Is(err, ebb.ErrUnavailable) || !errors.As(err, &refused) || refused.Code() != "READONLY" {
		t.Errorf("a write to a replica: %v", err)
	}
	var b ebb.Batch
	b.Do("SET", "k", "v")
	_, err = replica.Tx(ctx, &b)
	wantErr(t, "a transaction on a replica", ebb.ErrUnavailable)(nil, err)
}

func TestAWrappedClientStaysOpen(t *testing.T) {
	addr := realserver.Start(t, "redis-server")
	ctx := testContext(t)
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer client.Close()
	c := ebb.Wrap(client)
	if caps := c.Capabilities(); caps.Server != "redis" || caps.Native || caps.Version == "" || !caps.Functions || caps.Cluster {
		t.Errorf("%+v", caps)
	}
	must(t, c.Set(ctx, "k", "v"))
	_, err := c.Do(ctx, "RPUSH", "jobs", "job")
	must(t, err)
	v, err := c.Block(ctx, "BLPOP", "jobs", 0)
	if err != nil || len(v.Elems) != 2 {
		t.Errorf("BLPOP: %v, %v", v, err)
	}
	s, err := c.Subscribe(ctx, "news")
	must(t, err)
	check(t, "publish", int64(1))(c.Publish(ctx, "news", "x"))
	_, err = s.Next(ctx)
	must(t, err)
	if !strings.Contains(c.String(), addr) {
		t.Error(c)
	}
	must(t, c.Close())
	check(t, "the client after Close", "v")(client.Get(ctx, "k").Result())
}

func TestAWrappedClientIsFoundOutWhenItAnswers(t *testing.T) {
	// No subscriber listens yet.
	p := realserver.NewProcess(t, "redis-server", "--save", "")
	client := redis.NewClient(&redis.Options{Addr: p.Addr(), MaxRetries: -1})
	defer client.Close()
	c := ebb.Wrap(client)
	defer c.Close()
	ctx := testContext(t)
	if caps := c.Capabilities(); caps != (ebb.Capabilities{}) {
		t.Errorf("%+v", caps)
	}
	wantErr(t, "ping", ebb.ErrUnavailable)(nil, c.Ping(ctx))
	p.Start()
	// A caller that acts on the empty Capabilities is refused: here it would send PUBLISH,
	// and the others SPUBLISH. It does not matter whose call is the first.
	refused := 0
	err := c.Ping(ctx)
	for ; errors.Is(err, ebb.ErrUnavailable); err = c.Ping(ctx) {
		refused++
	}
	must(t, err)
	if refused < 2 {
		t.Errorf("%d calls were refused", refused)
	}
	if caps := c.Capabilities(); caps.Server != "redis" {
		t.Errorf("%+v", caps)
	}
}

func TestAHastyFirstCallerFailsAlone(t *testing.T) {
	addr := realserver.Start(t, "redis-server")
	var dials atomic.Int64
	dialing, over := make(chan struct{}), make(chan struct{})
	defer close(over)
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if dials.Add(1) == 1 {
				close(dialing)
				<-over // go-redis dials on when the caller has left
				return nil, io.ErrUnexpectedEOF
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}})
	defer client.Close()
	c := ebb.Wrap(client)
	defer c.Close()
	hasty, cancel := context.WithCancel(testContext(t))
	defer cancel()
	var both sync.WaitGroup
	both.Go(func() {
		if err := c.Ping(hasty); err == nil {
			t.Error("it was answered")
		}
	})
	<-dialing
	patient := testContext(t)
	both.Go(func() {
		if err := c.Ping(patient); err != nil {
			t.Error(err)
		}
	})
	later := time.AfterFunc(50*time.Millisecond, cancel)
	defer later.Stop()
	both.Wait()
}

func TestAWrappedClusterClientIsACluster(t *testing.T) {
	backends.Asked(t, []string{"cluster"}, func(t *testing.T, b *backends.Backend) {
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: b.Cluster().Addrs()})
		defer client.Close()
		c := ebb.Wrap(client)
		defer c.Close()
		ctx := b.Context()
		if caps := c.Capabilities(); !caps.Cluster || !caps.ShardedPubSub {
			t.Errorf("%+v", caps)
		}
		var batch ebb.Batch
		for i := range 100 {
			batch.Do("SET", fmt.Sprintf("wrapped:%d", i), i, "PX", 60000)
		}
		r, err := c.Pipeline(ctx, &batch)
		if err != nil || len(r) != 100 || r[99].Str != "OK" {
			t.Errorf("%v, %v", r, err)
		}
		_, err = c.Tx(ctx, &batch)
		if !errors.Is(err, ebb.ErrArgument) || !strings.Contains(err.Error(), "{tag}") {
			t.Errorf("a transaction over slots: %v", err)
		}
		wantErr(t, "watch over slots", ebb.ErrArgument)(nil, c.Watch(ctx, func(*ebb.Watched) error { return nil }, "a", "b"))
	})
}
