package backends

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// Group is a master and a replica of redis-server, and three sentinels that watch them.
// One goroutine uses it.
type Group struct {
	t         testing.TB
	nodes     []*realserver.Process
	sentinels []*realserver.Process
	admins    []*ebb.Conn // of the nodes
	watch     []*ebb.Conn // of the sentinels
	dead      int         // the node that was killed; -1: none
}

const masterName = "shop"

const sentinelConfig = `port %d
bind 127.0.0.1
dir %s
sentinel monitor ` + masterName + ` 127.0.0.1 %d 2
sentinel down-after-milliseconds ` + masterName + ` 1000
sentinel failover-timeout ` + masterName + ` 4000
sentinel parallel-syncs ` + masterName + ` 1
`

// NewGroup starts a group, waits until the sentinels agree, and ends it with the test.
func NewGroup(t testing.TB) *Group {
	t.Helper()
	g := &Group{t: t, dead: -1}
	for i := range 2 {
		p := realserver.NewProcess(t, "redis-server", "--save", "", "--appendonly", "yes", "--appendfsync", "no",
			"--repl-diskless-sync-delay", "0")
		g.nodes = append(g.nodes, p)
		if i == 0 {
			p.Start()
		} else {
			p.Start("--replicaof", fmt.Sprintf("127.0.0.1 %d", g.nodes[0].Port))
		}
		g.admins = append(g.admins, openAdmin(t, p.Addr()))
	}
	for range 3 {
		p := realserver.NewProcess(t, "redis-sentinel")
		p.Config = fmt.Sprintf(sentinelConfig, p.Port, p.Dir, g.nodes[0].Port)
		p.Start()
		g.sentinels = append(g.sentinels, p)
		g.watch = append(g.watch, openAdmin(t, p.Addr()))
	}
	waitUntil(t, "the sentinels see a master and its replica", g.whole)
	return g
}

func openAdmin(t testing.TB, addr string) *ebb.Conn {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := ebb.Open(ctx, "redis://"+addr+"?pool_size=2")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// URL returns what ebb.Open opens.
func (g *Group) URL() string {
	var addrs []string
	for _, p := range g.sentinels {
		addrs = append(addrs, p.Addr())
	}
	return "redis+sentinel://" + strings.Join(addrs, ",") + "/" + masterName
}

// whole reports whether all sentinels see a master with one good replica, and two
// other sentinels.
func (g *Group) whole() bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, s := range g.watch {
		m, err := s.Do(ctx, "SENTINEL", "MASTER", masterName)
		if err != nil || field(m, "flags") != "master" || field(m, "num-other-sentinels") != "2" {
			return false
		}
		r, err := s.Do(ctx, "SENTINEL", "REPLICAS", masterName)
		if err != nil || len(r.Elems) != 1 || field(r.Elems[0], "flags") != "slave" || field(r.Elems[0], "master-link-status") != "ok" {
			return false
		}
	}
	return true
}

// field returns a field of a map, or of an array of pairs.
func field(v ebb.Value, name string) string {
	for i := 0; i+1 < len(v.Elems); i += 2 {
		if v.Elems[i].Str == name {
			return v.Elems[i+1].Str
		}
	}
	return ""
}

// Master returns the number of the node that the first sentinel names.
func (g *Group) Master() int {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	v, err := g.watch[0].Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName)
	if err == nil && len(v.Elems) == 2 {
		for i, p := range g.nodes {
			if p.Addr() == v.Elems[0].Str+":"+v.Elems[1].Str {
				return i
			}
		}
	}
	return -1
}

// KillMaster kills the master, after its replica has all earlier writes. It does not wait
// for the failover.
func (g *Group) KillMaster() {
	i := g.Master()
	if i < 0 || g.dead >= 0 {
		g.t.Fatal("there is no master to kill")
	}
	replicated(g.t, g.admins[i], "backends:fault")
	g.nodes[i].Kill()
	g.dead = i
}

// FailOver has the replica take over from the master, which lives on. It takes the sentinels some seconds to make that a replica. old is
// the connection to it.
func (g *Group) FailOver() (old *ebb.Conn) {
	i := g.Master()
	if i < 0 || g.dead >= 0 {
		g.t.Fatal("there is no master that could hand over")
	}
	replicated(g.t, g.admins[i], "backends:fault")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := g.watch[0].Do(ctx, "SENTINEL", "FAILOVER", masterName); err != nil {
		g.t.Fatal(err)
	}
	return g.admins[i]
}

// Repair restarts the killed server as a replica of the new master, and waits until the
// sentinels agree.
func (g *Group) Repair() {
	if g.dead >= 0 {
		var master int
		waitUntil(g.t, "the sentinels have another master", func() bool { master = g.Master(); return master >= 0 && master != g.dead })
		g.nodes[g.dead].Start("--replicaof", fmt.Sprintf("127.0.0.1 %d", g.nodes[master].Port))
		g.dead = -1
	}
	waitUntil(g.t, "the sentinels agree again", g.whole)
}

func sentinelSite(t testing.TB) site {
	g := NewGroup(t)
	return site{url: g.URL(), group: g, fault: g.KillMaster, repair: g.Repair}
}
