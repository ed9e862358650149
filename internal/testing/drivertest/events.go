package drivertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

// EventsOfMasters checks that a subscription receives the events of expired keys that
// begin with key: first from the key's master, and then from the replica that takes over,
// while no node ends and no connection is lost.
func EventsOfMasters(t testing.TB, c *ebb.Conn, k *backends.Cluster, key string) {
	t.Helper()
	ctx := Within(t)
	s, err := c.Subscribe(ctx, "__keyevent@0__:expired")
	Must(t, err)
	defer func() { Must(t, s.Close()) }()
	from := k.Addrs()[k.Master(k.Slot(key))]
	for _, addr := range k.Addrs() {
		node, err := ebb.Open(ctx, "redis://"+addr)
		Must(t, err)
		_, err = node.Do(ctx, "CONFIG", "SET", "notify-keyspace-events", "Ex")
		Must(t, err)
		role, err := node.Do(ctx, "ROLE")
		Must(t, err)
		if role.Elems[0].Str == "slave" && net.JoinHostPort(role.Elems[1].Str, role.Elems[2].String()) == from {
			_, err = node.Do(ctx, "CLUSTER", "FAILOVER")
			Must(t, err)
		}
		Must(t, node.Close())
	}
	Until(t, "the replica is the master", func() bool { m := k.Master(k.Slot(key)); return m >= 0 && k.Addrs()[m] != from })
	n := 0
	Until(t, "an event of the new master is heard", func() bool {
		n++
		_ = c.SetTTL(ctx, fmt.Sprint(key, n), "v", time.Millisecond) // the event may still be on its way
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		m, err := s.Next(short)
		if err != nil && !errors.Is(err, ebb.ErrInterrupted) && short.Err() == nil {
			t.Fatal(err)
		}
		return err == nil && strings.HasPrefix(m.Payload, key)
	})
}
