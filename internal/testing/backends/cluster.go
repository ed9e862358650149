package backends

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// Cluster is a cluster of redis-server on this machine, with three masters and three
// replicas. The roles of the nodes change with failovers: call Master. Its methods are
// safe for concurrent use.
type Cluster struct {
	t   testing.TB
	net *network // nil: the nodes reach each other directly

	mu    sync.Mutex // guards what follows
	nodes []*node
}

// node is a server of a cluster.
type node struct {
	*realserver.Process
	admin     *ebb.Conn
	id        string
	dead      bool
	port, bus int // the ports at which the nodes and clients find it
}

const (
	clusterMasters = 3
	clusterSlots   = 16384
	// nodeTimeout is the silence of a node after which the others take it for dead, in
	// milliseconds. A failover takes about a second longer. With less, a busy machine has
	// failovers that no test caused.
	nodeTimeout = "1500"
)

// settled is the limit of a wait until a cluster, or a group of sentinels, agrees.
var settled = tier.Patience * 3 / 2

// NewCluster starts a cluster, waits until its nodes agree, and ends it with the
// test.
func NewCluster(t testing.TB) *Cluster {
	t.Helper()
	return newCluster(t, nil)
}

// NewPartableCluster starts a cluster as NewCluster does, on a network that Part can
// partition.
func NewPartableCluster(t testing.TB) *Cluster {
	t.Helper()
	return newCluster(t, newNetwork(t))
}

func newCluster(t testing.TB, network *network) *Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), settled)
	defer cancel()
	c := &Cluster{t: t, net: network}
	for i := range 2 * clusterMasters {
		bus := realserver.FreePort(t)
		p := realserver.NewProcess(t, "redis-server", "--save", "", "--appendonly", "yes", "--appendfsync", "no",
			"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", nodeTimeout,
			"--cluster-port", strconv.Itoa(bus), "--cluster-require-full-coverage", "no",
			"--cluster-replica-validity-factor", "0", "--cluster-allow-replica-migration", "no", "--repl-diskless-sync-delay", "0")
		n := &node{Process: p, port: p.Port, bus: bus}
		if network != nil {
			n.port, n.bus = network.gate(t, i, n.port), network.gate(t, i, n.bus)
			p.Args("--bind-source-addr", host(i), "--cluster-announce-ip", "127.0.0.1",
				"--cluster-announce-port", strconv.Itoa(n.port), "--cluster-announce-bus-port", strconv.Itoa(n.bus))
		}
		p.Start()
		c.nodes = append(c.nodes, n)
		n.open(t)
		n.id = c.text(ctx, i, "CLUSTER", "MYID")
		c.text(ctx, i, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
	}
	for i := range clusterMasters {
		c.text(ctx, i, "CLUSTER", "ADDSLOTSRANGE", i*clusterSlots/clusterMasters, (i+1)*clusterSlots/clusterMasters-1)
	}
	for _, n := range c.nodes[1:] {
		c.text(ctx, 0, "CLUSTER", "MEET", "127.0.0.1", n.port, n.bus)
	}
	c.until("the nodes have met", func() bool {
		for i := range c.nodes {
			known := c.ask(ctx, i, "CLUSTER", "NODES")
			if strings.Count(known, "\n") != len(c.nodes) || strings.Contains(known, "handshake") {
				return false
			}
		}
		return true
	})
	for i := range clusterMasters {
		c.text(ctx, clusterMasters+i, "CLUSTER", "REPLICATE", c.nodes[i].id)
	}
	c.until("the cluster is whole", c.whole)
	return c
}

// open makes the connection over which a node is managed.
func (n *node) open(t testing.TB) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	admin, err := ebb.Open(ctx, "redis://"+n.Addr()+"/0?pool_size=2")
	if err != nil {
		t.Fatal(err)
	}
	n.admin = admin
	t.Cleanup(func() { _ = admin.Close() })
}

// text runs a command on a node, and ends the test if it fails.
func (c *Cluster) text(ctx context.Context, i int, args ...any) string {
	c.t.Helper()
	v, err := c.nodes[i].admin.Do(ctx, args...)
	if err != nil {
		c.t.Fatalf("node %d: %v: %v", i, args, err)
	}
	return v.Str
}

// ask returns the reply of a command on a node; "" if the command fails.
func (c *Cluster) ask(ctx context.Context, i int, args ...any) string {
	v, _ := c.nodes[i].admin.Do(ctx, args...)
	return v.Str
}

// until waits until ok returns true, and fails the test if it does not in time.
func (c *Cluster) until(what string, ok func() bool) {
	c.t.Helper()
	waitUntil(c.t, what, ok)
}

func waitUntil(t testing.TB, what string, ok func() bool) {
	t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for end := time.After(settled); !ok(); {
		select {
		case <-look.C:
		case <-end:
			t.Fatalf("not within %v: %s", settled, what)
		}
	}
}

// whole reports whether all nodes run, every node sees all slots served by a master with a
// replica, and all replicas are in sync.
func (c *Cluster) whole() bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i, n := range c.nodes {
		if n.dead {
			return false
		}
		if !strings.Contains(c.ask(ctx, i, "CLUSTER", "INFO"), "cluster_state:ok") {
			return false
		}
		masters, replicas := 0, 0
		for line := range strings.Lines(c.ask(ctx, i, "CLUSTER", "NODES")) {
			f := strings.Fields(line)
			switch {
			case len(f) < 8 || strings.Contains(f[2], "fail") || f[7] != "connected":
				return false
			case strings.Contains(f[2], "master") && len(f) > 8:
				masters++
			case strings.Contains(f[2], "slave"):
				replicas++
			}
		}
		if masters != clusterMasters || replicas != clusterMasters {
			return false
		}
		info := c.ask(ctx, i, "INFO", "replication")
		if !strings.Contains(info, "role:master") && !strings.Contains(info, "master_link_status:up") {
			return false
		}
	}
	return true
}

// URL returns what ebb.Open opens.
func (c *Cluster) URL() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return "redis+cluster://" + strings.Join(c.addrs(), ",")
}

// Addrs returns the addresses of the nodes for clients.
func (c *Cluster) Addrs() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.addrs()
}

func (c *Cluster) addrs() (all []string) {
	for _, n := range c.nodes {
		all = append(all, net.JoinHostPort("127.0.0.1", strconv.Itoa(n.port)))
	}
	return all
}

// Slot returns the hash slot of a key.
func (c *Cluster) Slot(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slot(key)
}

func (c *Cluster) slot(key string) int {
	i := c.alive()
	v, err := c.nodes[i].admin.Do(context.Background(), "CLUSTER", "KEYSLOT", key)
	if err != nil {
		c.t.Fatal(err)
	}
	return int(v.Int)
}

// alive returns a node that runs.
func (c *Cluster) alive() int {
	i := slices.IndexFunc(c.nodes, func(n *node) bool { return !n.dead })
	if i < 0 {
		c.t.Fatal("all nodes of the cluster are dead")
	}
	return i
}

// Master returns the number of the node that has a slot, from the nodes' own entries; -1
// if no running node has it.
func (c *Cluster) Master(slot int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.master(slot)
}

// Masters returns the numbers of the running nodes that have slots.
func (c *Cluster) Masters() (all []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.nodes {
		if f := c.myself(i); len(f) > 8 && strings.Contains(f[2], "master") {
			all = append(all, i)
		}
	}
	return all
}

func (c *Cluster) master(slot int) int {
	found, newest := -1, -1
	for i := range c.nodes {
		f := c.myself(i)
		if len(f) < 9 || !strings.Contains(f[2], "master") || !slices.ContainsFunc(f[8:], func(r string) bool { return inRange(r, slot) }) {
			continue
		}
		// A restarted node may not know yet that another one has replaced it.
		if epoch, err := strconv.Atoi(f[6]); err == nil && epoch > newest {
			found, newest = i, epoch
		}
	}
	return found
}

// myself returns the fields of a node's own line in its CLUSTER NODES; none for a dead
// node.
func (c *Cluster) myself(i int) []string {
	if c.nodes[i].dead {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for line := range strings.Lines(c.ask(ctx, i, "CLUSTER", "NODES")) {
		if f := strings.Fields(line); len(f) > 7 && strings.Contains(f[2], "myself") {
			return f
		}
	}
	return nil
}

// inRange reports whether "a-b" or "a" has a slot.
func inRange(r string, slot int) bool {
	from, to, isRange := strings.Cut(r, "-")
	if !isRange {
		to = from
	}
	a, err := strconv.Atoi(from)
	b, err2 := strconv.Atoi(to)
	return err == nil && err2 == nil && a <= slot && slot <= b
}

// Kill ends a node as kill -9 does. Its replica takes over its slots.
func (c *Cluster) Kill(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[i].Process.Kill()
	c.nodes[i].dead = true
}

// Restart starts a node that was killed, with its files, and does not wait until
// the others take it back.
func (c *Cluster) Restart(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restart(i)
}

func (c *Cluster) restart(i int) {
	if c.nodes[i].dead {
		c.nodes[i].Start()
		c.nodes[i].dead = false
	}
}

// Pause suspends the process of a node. Its connections stay open, and it does not reply
// until Resume. If the pause is long enough, its replica takes over its slots.
func (c *Cluster) Pause(i int) { c.nodes[i].Pause(c.t) }

// Resume lets a node continue after Pause. It first serves the requests that were sent
// meanwhile, and then learns that other nodes have its slots.
func (c *Cluster) Resume(i int) { c.nodes[i].Resume(c.t) }

// Part stops all bytes between these nodes and the others, until Join; clients reach all
// of them. The cluster must come from NewPartableCluster.
func (c *Cluster) Part(nodes ...int) { c.net.part(nodes...) }

// Join ends a partition. The bytes that were sent meanwhile arrive.
func (c *Cluster) Join() { c.net.part() }

// KillMaster kills the master of a key, after its replica has all earlier writes, and
// returns its number.
func (c *Cluster) KillMaster(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	var i int
	c.until("a master serves "+key, func() bool { i = c.master(c.slot(key)); return i >= 0 })
	replicated(c.t, c.nodes[i].admin, "{"+tag(key)+"}:fault")
	c.nodes[i].Process.Kill()
	c.nodes[i].dead = true
	return i
}

// tag returns the part of a key that decides its slot.
func tag(key string) string {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if t, _, ok := strings.Cut(rest, "}"); ok && t != "" {
			return t
		}
	}
	return key
}

// replicated returns when a replica has all earlier writes.
func replicated(t testing.TB, c *ebb.Conn, key string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var b ebb.Batch
	b.Do("SET", key, "", "PX", 1000)
	b.Do("WAIT", 1, 5000)
	r, err := c.Pipeline(ctx, &b)
	if err != nil || len(r) != 2 || r[1].Int < 1 {
		t.Logf("no replica has confirmed what was written: %v, %v", r, err)
	}
}

// Repair restarts the dead nodes and waits until the cluster is whole.
func (c *Cluster) Repair() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.nodes {
		c.restart(i)
	}
	c.until("the cluster is whole again", c.whole)
}

// Move is the move of a slot from one node to another.
type Move struct {
	c        *Cluster
	slot     int
	from, to int
}

// BeginMove begins the move of a slot to a node. From then on, clients request and create
// keys that are not on the old node at the new node.
func (c *Cluster) BeginMove(slot, to int) (*Move, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	m := &Move{c: c, slot: slot, from: c.master(slot), to: to}
	if m.from < 0 || m.from == to {
		return nil, fmt.Errorf("slot %d is with node %d and cannot move to %d", slot, m.from, to)
	}
	if _, err := c.nodes[to].admin.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", c.nodes[m.from].id); err != nil {
		return nil, err
	}
	_, err := c.nodes[m.from].admin.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", c.nodes[to].id)
	return m, err
}

// Keys moves the present keys of the slot.
func (m *Move) Keys() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		v, err := m.c.nodes[m.from].admin.Do(ctx, "CLUSTER", "GETKEYSINSLOT", m.slot, 20)
		if err != nil || len(v.Elems) == 0 {
			return err
		}
		args := []any{"MIGRATE", "127.0.0.1", m.c.nodes[m.to].Port, "", 0, 5000, "KEYS"}
		for _, k := range v.Elems {
			args = append(args, k.Str)
		}
		if _, err := m.c.nodes[m.from].admin.Do(ctx, args...); err != nil {
			return err
		}
	}
}

// End gives the slot to the new node, and tells the masters.
func (m *Move) End() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	order := []int{m.to, m.from}
	for i := range m.c.nodes {
		if i != m.to && i != m.from && !m.c.nodes[i].dead && strings.Contains(m.c.ask(ctx, i, "INFO", "replication"), "role:master") {
			order = append(order, i)
		}
	}
	for _, i := range order {
		if _, err := m.c.nodes[i].admin.Do(ctx, "CLUSTER", "SETSLOT", m.slot, "NODE", m.c.nodes[m.to].id); err != nil {
			return err
		}
	}
	return nil
}

// MoveSlot moves a slot with its keys, while clients use it.
func (c *Cluster) MoveSlot(slot, to int) error {
	m, err := c.BeginMove(slot, to)
	if err != nil {
		return err
	}
	if err := m.Keys(); err != nil {
		return err
	}
	return m.End()
}

// clusterSite returns the cluster that tests share. Its fault kills a master, another one
// each time, and waits for nothing.
func clusterSite(t testing.TB) site {
	c := NewCluster(t)
	next := 0
	return site{url: c.URL(), cluster: c, repair: c.Repair, fault: func() {
		next = (next + clusterSlots/clusterMasters) % clusterSlots
		for i := 0; ; i++ { // a key of that slot's master
			key := strconv.Itoa(i)
			if c.Master(c.Slot(key)) == c.Master(next) {
				c.KillMaster(key)
				return
			}
		}
	}}
}
