package goredis

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// The old master lives on and does not announce the writes to the new one.
func TestASubscriptionFollowsThePoolToAnotherMaster(t *testing.T) {
	old, next := realserver.NewProcess(t, realserver.Ebb(t)), realserver.NewProcess(t, realserver.Ebb(t))
	old.Start()
	next.Start()
	var master atomic.Value
	master.Store(old.Addr())
	o := &redis.Options{Addr: failoverAddr, Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, master.Load().(string))
	}}
	settle(o)
	tune(o)
	client := redis.NewClient(o)
	defer client.Close()
	follows(t, client, func(ctx context.Context) {
		for client.PoolStats().IdleConns > 0 { // the connections to the old master are in use
			held := client.Conn()
			t.Cleanup(func() { _ = held.Close() })
			if err := held.Ping(ctx).Err(); err != nil {
				t.Fatal(err)
			}
		}
		master.Store(next.Addr())
	})
}

// NewFailoverClusterClient makes such a client, whose function asks Sentinel.
func TestASubscriptionOfAClusterClientFollowsItsMap(t *testing.T) {
	old, next := realserver.NewProcess(t, realserver.Ebb(t)), realserver.NewProcess(t, realserver.Ebb(t))
	old.Start()
	next.Start()
	var master atomic.Value
	master.Store(old.Addr())
	client := redis.NewClusterClient(&redis.ClusterOptions{ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
		return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: master.Load().(string)}}}}, nil
	}})
	defer client.Close()
	follows(t, client, func(ctx context.Context) {
		master.Store(next.Addr())
		if err := client.ForEachMaster(ctx, func(context.Context, *redis.Client) error { return nil }); err != nil { // it reads the map
			t.Fatal(err)
		}
	})
}

// follows has the master of a client move, and checks that the subscriptions move too.
func follows(t *testing.T, client redis.UniversalClient, move func(ctx context.Context)) {
	t.Helper()
	c := Wrap(client)
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
	defer cancel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(c.Ping(ctx))
	tracked, err := c.Track(ctx, "k")
	must(err)
	defer tracked.Close()
	channel, err := c.Subscribe(ctx, "news")
	must(err)
	defer channel.Close()
	move(ctx)
	must(c.Set(ctx, "k1", "v"))
	for what, s := range map[string]*conn.Subscription{"Track": tracked, "Subscribe": channel} {
		for n := range 2 { // when it ends, and when there is a new one
			if _, err := s.Next(ctx); !errors.Is(err, conn.ErrInterrupted) {
				t.Fatalf("%s: %v at call %d, want ErrInterrupted", what, err, n)
			}
		}
	}
	must(c.Set(ctx, "k2", "v"))
	if m, err := tracked.Next(ctx); err != nil || m.Payload != "k2" {
		t.Errorf("Track: %v, %v", m, err)
	}
	if _, err := c.Do(ctx, "PUBLISH", "news", "x"); err != nil {
		t.Fatal(err)
	}
	if m, err := channel.Next(ctx); err != nil || m.Payload != "x" {
		t.Errorf("Subscribe: %v, %v", m, err)
	}
}

// A server that accepts CLIENT TRACKING and sends nothing, as ebb 0.6 does for a redirection to the
// connection itself, is played by a connection that does not track.
func TestTrackIsUnsupportedIfNoInvalidationComes(t *testing.T) {
	p := realserver.NewProcess(t, realserver.Ebb(t))
	p.Start()
	client := redis.NewClient(&redis.Options{Addr: p.Addr()})
	d := newDriver(client, "test")
	d.owned = true
	c := conn.New(d)
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
	defer cancel()
	if err := c.Ping(ctx); err != nil {
		t.Fatal(err)
	}
	sources, a := subscribeOn(ctx, []subscriber{client}, conn.Channels, []string{conn.Tracking}, 10*time.Second)
	if a.Err != nil || len(sources) != 1 {
		t.Fatal(a.Err, a.V)
	}
	defer closeAll(sources)
	if err := (&tracker{d, []string{"k"}}).verify(ctx, sources, 100*time.Millisecond); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v, want errors.ErrUnsupported", err)
	}
}
