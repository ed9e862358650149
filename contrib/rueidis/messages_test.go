package rueidisebb_test

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"net"
	"testing"

	rueidisebb "github.com/ebbdb/ebb/contrib/rueidis"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/drivertest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
)

var messages = flag.Int("messages", 0, "how many numbered messages each test of subscriptions sends; 0: 20,000, or 5,000 with -short")

func TestEveryMessageComesOrAnInterruptionTellsOfIt(t *testing.T) {
	each(t, func(t *testing.T, p *realserver.Process) {
		ctx := testContext(t)
		from := open(t, p)
		_, err := from.Do(ctx, "CONFIG", "SET", "notify-keyspace-events", "E$")
		must(t, err)
		kinds := []struct {
			name      string
			publish   func(b *ebb.Batch, text string)
			subscribe func(c *ebb.Conn) (*ebb.Subscription, error)
		}{
			{"Subscribe", func(b *ebb.Batch, text string) { b.Do("PUBLISH", "news", text) },
				func(c *ebb.Conn) (*ebb.Subscription, error) { return c.Subscribe(ctx, "news") }},
			{"PSubscribe", func(b *ebb.Batch, text string) { b.Do("PUBLISH", "a-longer-name:of-one", text) },
				func(c *ebb.Conn) (*ebb.Subscription, error) { return c.PSubscribe(ctx, "a-longer-name:*") }},
			{"events of keys", func(b *ebb.Batch, text string) { b.Do("SET", text, 1) },
				func(c *ebb.Conn) (*ebb.Subscription, error) { return c.Subscribe(ctx, "__keyevent@0__:set") }},
		}
		for _, kind := range kinds {
			for _, resp2 := range []bool{false, true} {
				for _, cuts := range []int{0, 5} {
					t.Run(fmt.Sprintf("%s, RESP2 %v, %d cuts", kind.name, resp2, cuts), func(t *testing.T) {
						shears := &drivertest.Shears{Most: 64}
						o := to(p)
						o.AlwaysRESP2, o.DisableCache = resp2, resp2
						o.DialCtxFn = func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
							return shears.Connect(ctx, "tcp", addr)
						}
						c, err := rueidisebb.Open(ctx, o)
						must(t, err)
						defer func() { must(t, c.Close()) }()
						s, err := kind.subscribe(c)
						must(t, err)
						m := drivertest.Messages{N: drivertest.Many(*messages), Cuts: cuts, Shears: shears, Publish: kind.publish}
						m.Next = func(ctx context.Context) (string, error) {
							m, err := s.Next(ctx)
							return m.Payload, err
						}
						m.Run(t, from).Check(t, m.N, cuts)
					})
				}
			}
		}
	})
}
