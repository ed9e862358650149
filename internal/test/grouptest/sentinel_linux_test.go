package grouptest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/realserver"
)

var beside = flag.Bool("group.redis", false, "play the rounds with redis-server under redis-sentinel too, and count what is lost")

// TestTheRoundsFindTheLossesOfRedis plays rounds with servers that promise less, to show that the clients detect
// losses. It kills the master, which has no files, and restarts it before its Sentinels notice. The replicas then
// copy the empty master.
func TestTheRoundsFindTheLossesOfRedis(t *testing.T) {
	realserver.Program(t, realserver.Redis7)
	realserver.Program(t, "redis-sentinel")
	p := &plan{modes: modes, faults: chosen(), rounds: *rounds, begin: sentinelSite}
	if !*beside {
		p.modes, p.rounds = modes[:1], 1
		p.faults = []fault{{kind: "restart of the master at once", begin: func(f *field) (string, func()) {
			return f.kills(f.master, time.Millisecond)
		}}}
	}
	p.play(t)
	lost := 0
	for _, x := range p.all {
		lost += x.lost
	}
	if lost == 0 && !*beside {
		t.Error("no write was lost")
	}
}

// errAlone means that a write has reached only the master.
var errAlone = errors.New("WAIT 1 has counted no replica")

// waiting writes to redis-server. Each write is acknowledged by the reply to WAIT.
func waiting(ctx context.Context, c *redis.Client, args ...any) (any, error) {
	pipe := c.Pipeline()
	v, n := pipe.Do(ctx, args...), pipe.Do(ctx, "WAIT", 1, 1000)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	if copies, err := n.Int64(); err != nil || copies < 1 {
		return nil, errAlone
	}
	return v.Result()
}

const serverConfig = `port %d
bind 127.0.0.1
dir %s
save ""
repl-diskless-sync-delay 0
appendonly %s
appendfsync %s
`

const sentinelConfig = `port %d
bind 127.0.0.1
dir %s
sentinel monitor ebb 127.0.0.1 %d 2
sentinel down-after-milliseconds ebb %d
sentinel failover-timeout ebb 4000
sentinel parallel-syncs ebb 2
`

// sentinelSite starts redis-server on the machines, with a redis-sentinel beside each, and one alone on an extra
// machine if their number is even.
func sentinelSite(t *testing.T, m mode, n *network) *site {
	g := &group{T: t}
	s := &site{T: t, net: n, servers: m.servers, write: waiting, connect: g.connect}
	s.view = func(c *ebb.Conn) *ebb.Conn { return c.Replicated(1, time.Second) }
	only, fsync := "no", "everysec"
	for i, word := range m.args {
		switch word {
		case "--appendonly":
			only = m.args[i+1]
		case "--appendfsync":
			fsync = m.args[i+1]
		}
	}
	for i := range m.servers | 1 {
		var all machine
		if i < m.servers {
			p := realserver.NewProcess(t, realserver.Redis7)
			all, g.nodes = append(all, p), append(g.nodes, p)
			if n != nil {
				disk(t, p)
				n.settle(t, i+1, p, map[int]line{p.Port: data})
			}
			p.Config = fmt.Sprintf(serverConfig, p.Port, p.Dir, only, fsync)
			if i > 0 {
				p.Config += "replicaof 127.0.0.1 " + strconv.Itoa(g.nodes[0].Port) + "\n"
			}
		}
		p := realserver.NewProcess(t, "redis-sentinel")
		all, g.sentinels = append(all, p), append(g.sentinels, p.Addr())
		p.Config = fmt.Sprintf(sentinelConfig, p.Port, p.Dir, g.nodes[0].Port, groupTimeout.Milliseconds())
		if n != nil {
			n.settle(t, i+1, p, map[int]line{p.Port: sentinel})
		}
		s.machines = append(s.machines, all)
		for _, p := range all {
			if err := p.Begin(); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.url = "redis+sentinel://" + strings.Join(g.sentinels, ",") + "/ebb"
	s.master = func() int { return slices.Index(g.nodes, g.master()) }
	s.settled = func() bool { return g.watched(m.servers) }
	return s
}

// watched reports whether all Sentinels see the same master, all replicas, and each other.
func (g *group) watched(servers int) bool {
	seen := map[string]bool{}
	for _, addr := range g.sentinels {
		c := redis.NewSentinelClient(&redis.Options{Addr: addr, MaxRetries: -1})
		master, err := c.Master(g.Context(), "ebb").Result()
		replicas, err2 := c.Replicas(g.Context(), "ebb").Result()
		_ = c.Close()
		if err != nil || err2 != nil || master["flags"] != "master" || master["num-other-sentinels"] != "2" || len(replicas) != servers-1 {
			return false
		}
		for _, r := range replicas {
			if r["flags"] != "slave" || r["master-link-status"] != "ok" || r["master-port"] != master["port"] {
				return false
			}
		}
		seen[net.JoinHostPort(master["ip"], master["port"])] = true
	}
	p := g.master()
	return len(seen) == 1 && p != nil && g.info(p)["connected_slaves"] == strconv.Itoa(servers-1)
}
