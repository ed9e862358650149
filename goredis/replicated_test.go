package goredis_test

import (
	"context"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/drivertest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

func TestReplicatedWritesOutliveAFailover(t *testing.T) {
	backends.Asked(t, []string{"sentinel", "cluster"}, func(t *testing.T, b *backends.Backend) {
		key := "{" + b.Name("n") + "}"
		ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
		defer cancel()
		_, err := b.Del(ctx, key)
		must(t, err)
		view := b.Replicated(1, time.Second)
		n := drivertest.NewTally(t, view, key)
		defer n.Stop()
		n.Start(4)
		n.More(100)
		b.FaultAt(key)
		b.Until("the replica is the master", func() bool { return b.Set(ctx, key+"up", 1) == nil })
		n.Verify()
	})
}

func TestAReplicatedViewIsTheSameConn(t *testing.T) {
	backends.Asked(t, []string{"mem", "file", "sentinel", "cluster"}, func(t *testing.T, b *backends.Backend) {
		testView(t, b.Conn)
	})
	testView(t, open(t, "mem://"))
	testView(t, open(t, "file://"+t.TempDir()))
}

func testView(t *testing.T, c *ebb.Conn) { drivertest.View(t, c.Replicated(1, 20*time.Second)) }

func TestAWriteThatNoReplicaHasIsToldApart(t *testing.T) {
	drivertest.NotReplicated(t, open(t, "redis://"+realserver.Start(t, "redis-server")))
}

func TestACommandForAllNodesAsksThemAll(t *testing.T) {
	backends.Asked(t, []string{"cluster"}, func(t *testing.T, b *backends.Backend) {
		drivertest.Wide(t, b.Conn)
		drivertest.Events(t, b.Conn)
	})
}
