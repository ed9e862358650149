package grouptest

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// longestGap returns the longest time between two acknowledged writes while happens runs.
func (g *group) longestGap(happens func()) (gap time.Duration) {
	g.Helper()
	ctx, cancel := context.WithCancel(g.Context())
	var writing sync.WaitGroup
	acked := make(chan struct{}, 1)
	writing.Go(func() {
		last := time.Now()
		for ctx.Err() == nil {
			if g.client.Incr(ctx, "n").Err() != nil {
				continue
			}
			now := time.Now()
			gap, last = max(gap, now.Sub(last)), now
			select {
			case acked <- struct{}{}:
			default:
			}
		}
	})
	<-acked
	happens()
	for range 3 { // the first one may have been acknowledged before happens ended
		<-acked
	}
	cancel()
	writing.Wait()
	return gap
}

// When a server stops cleanly, writes do not wait until it has been silent for sync-lag. That holds for a member, and
// for the master, which is a member after it has handed the group over.
func TestWritesDoNotWaitForAServerThatStops(t *testing.T) {
	t.Parallel()
	const lag = 20 * time.Second
	g := start(t, 3, "--appendonly", "no", "--min-sync-replicas", "1", "--sync-lag", strconv.FormatInt(lag.Milliseconds(), 10),
		"--sync-timeout", strconv.FormatInt(lag.Milliseconds(), 10))
	for _, which := range []string{"a member", "the master"} {
		master := g.settled(3)
		stops := master
		for _, p := range g.nodes {
			if which == "a member" && p != master {
				stops = p
			}
		}
		var next *realserver.Process
		gap := g.longestGap(func() {
			stops.Stop()
			next = g.settled(2)
		})
		t.Logf("%s stops: the longest time between two acknowledged writes is %v", which, gap.Round(time.Millisecond))
		if gap > lag/4 {
			t.Errorf("%s stops: writes wait for %v", which, gap)
		}
		if next == stops {
			t.Error("the server that has stopped leads")
		}
		if err := stops.Begin(); err != nil {
			t.Fatal(err)
		}
	}
}
