package voter

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"testing"

	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/group/port"
	"github.com/ebbdb/ebb/internal/memnet"
)

// In this test the voters reach each other through the ports of their nodes.
func TestVotersAgreeThroughTheirPorts(t *testing.T) {
	bubble(t, func(g *group) {
		quiet := slog.New(slog.DiscardHandler)
		listeners := map[string]*memnet.Listener{}
		dial := func(_ context.Context, address string) (net.Conn, error) {
			if l := listeners[address]; l != nil {
				return l.Dial()
			}
			return nil, fmt.Errorf("connection to %s refused", address)
		}
		var ports []*port.Port
		defer func() {
			for _, p := range ports {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			}
		}()
		var all []Server
		for id := directory.NodeID(1); id <= 3; id++ {
			c := g.config(id)
			c.Network = func(self Server) (Transport, error) {
				listeners[self.Address] = memnet.Listen(self.Address)
				p, err := port.Open(port.Config{Self: self.Name(), Group: "ebb", Secret: "s", Timeout: timeout, Dial: dial,
					Listeners: []net.Listener{listeners[self.Address]}, Handler: func(context.Context, string, []byte) []byte { return nil }})
				if err != nil {
					return nil, err
				}
				ports = append(ports, p)
				return Over(p, self, timeout/4, quiet), nil
			}
			v, err := Open(c)
			if err != nil {
				t.Fatal(err)
			}
			g.voters[id] = v
			all = append(all, v.Self())
		}
		defer func() {
			for id, v := range g.voters {
				if err := v.Close(); err != nil {
					t.Error(err)
				}
				delete(g.voters, id)
			}
		}()
		if err := g.voters[1].Found(all); err != nil {
			t.Fatal(err)
		}
		g.nodes(3)
		g.promote(2)
		g.agree()
		leader := g.leader()
		for id, v := range g.voters {
			if s, ok := v.Leader(); !ok || s != leader.Self() {
				t.Errorf("voter %d calls %v the leader, want %v", id, s, leader.Self())
			}
		}
		if err := leader.raft.Snapshot().Error(); err != nil {
			t.Fatal(err)
		}
		// A newly admitted voter receives the whole state.
		leader = g.leader()
		gone := leader.Self().Node%3 + 1
		if err := leader.Dismiss(gone); err != nil {
			t.Fatal(err)
		}
		if err := leader.Admit(g.voters[gone].Self()); err != nil {
			t.Fatal(err)
		}
		g.agree()
		if err := g.leader().StepDown(); err != nil {
			t.Fatal(err)
		}
		g.agree()
	})
}
