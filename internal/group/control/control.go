// Package control runs a node's part in choosing the master. It founds the group, registers the node, sends
// heartbeats to all other nodes, forwards the node's proposals to the leader of the directory, and, on the leader,
// promotes another node when the master is silent.
//
//	                       ┌─ heartbeats, group-timeout/10 apart ────▶ each other node:  shard.Controller
//	Report ─▶ Control ─────┤
//	Propose ───────────────┴─ to the leader ─▶ voter.Propose ─▶ the directory ─▶ Registered, Applied
//
// No client data passes through it, and it knows nothing of replication: internal/group/shard decides what a master
// proposes and what a node may do.
//
// The first start. A node whose voter has no state waits until it is in a group. The first node of the list founds
// the group once all others have answered that they are in none, so the first start needs all nodes. A node that has
// lost its file finds the others in a group, and the leader admits it.
//
// Invariants:
//
//   - Registered is called once, before the first Applied. One goroutine makes both calls.
//   - Only the leader of the directory admits, adds and promotes nodes. The voter refuses proposals of a node that no longer leads.
//
// Start reading at Open, then lead.go.
package control

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/group/port"
	"github.com/ebbdb/ebb/internal/group/settings"
	"github.com/ebbdb/ebb/internal/group/shard"
	"github.com/ebbdb/ebb/internal/group/voter"
)

// theShard is the only shard: a group has one so far.
const theShard directory.ShardID = 1

// heartbeatsInTimeout is the number of heartbeats that a node sends within group-timeout. A node counts as silent
// only after all of them were lost.
const heartbeatsInTimeout = 10

// ErrNoLeader is the error of Propose while this node knows no leader.
var ErrNoLeader = errors.New("no node leads the group's directory: a majority of the nodes must reach each other")

// Config configures a node's part. FS, Dial, Server, Client, Logger and Random are optional.
type Config struct {
	Group *settings.Settings
	Data  bool // the node has data and can be in the in-sync set; false: a witness
	// Clients is the address at which the node serves clients, host:port; "" for a witness. Sentinel is the port of
	// Sentinel's protocol; 0: none.
	Clients  string
	Sentinel int
	// Register is the node's Register command, made by shard.Restart, with Process and Level set.
	Register directory.Command
	Now      func() shard.Time // the node's monotonic clock
	// Report returns the content of the next heartbeat. It is called often, and concurrently.
	Report func() shard.Report
	// Heartbeat is called for each valid heartbeat as it arrives; nil: not called.
	Heartbeat func(shard.Report)
	// Registered is called once with the directory's answer to Register, which is the node's initial state. Applied
	// is called after each change of the directory.
	Registered func(directory.Member, []directory.Shard)
	Applied    func([]directory.Shard)

	FS             disk.FS // nil: the system's
	Dir            string  // the folder of the voter's file
	Random         func() uint64
	Listeners      []net.Listener // for the group's port
	Dial           func(ctx context.Context, address string) (net.Conn, error)
	Server, Client *tls.Config
	Logger         *slog.Logger
}

// Control is a node's part in its group. It is safe for concurrent use.
type Control struct {
	conf   Config
	tick   time.Duration
	voter  *voter.Voter
	port   *port.Port
	warned bool          // create has logged that several nodes have data; leadLoop's own
	opened chan struct{} // closed when voter and port are set
	news   chan struct{} // signals a change of heard; capacity 1
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu         sync.Mutex // guards the fields below
	controller *shard.Controller
	newest     map[directory.NodeID]received
	heard      map[directory.ShardID]directory.Shard // states that other nodes have applied and this node's voter has not
}

// received is a heartbeat and the time of its arrival.
type received struct {
	heartbeat
	at shard.Time
}

// Open starts a node's part. The caller closes it.
func Open(c Config) (*Control, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	k := &Control{conf: c, tick: c.Group.Timeout / heartbeatsInTimeout, opened: make(chan struct{}),
		news: make(chan struct{}, 1), controller: shard.NewController(c.Group.Timeout), newest: map[directory.NodeID]received{},
		heard: map[directory.ShardID]directory.Shard{}}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	v, err := voter.Open(voter.Config{Node: c.Group.Self.ID, Address: c.Group.Self.Address, FS: c.FS, Dir: c.Dir, Timeout: c.Group.Timeout,
		Logger: c.Logger, Network: k.network, Random: c.Random})
	if err != nil {
		k.cancel()
		if k.port != nil {
			err = errors.Join(err, k.port.Close())
		}
		return nil, err
	}
	k.voter = v
	close(k.opened)
	k.done.Go(k.foundGroup)
	k.done.Go(k.watch)
	k.done.Go(k.leadLoop)
	for _, n := range c.Group.Nodes {
		if n.ID != c.Group.Self.ID {
			k.done.Go(func() { k.sendHeartbeats(n) })
		}
	}
	return k, nil
}

// network opens the group's port, and returns raft's transport on it.
func (k *Control) network(self voter.Server) (voter.Transport, error) {
	c, g := &k.conf, k.conf.Group
	var nodes []string
	for _, n := range g.Nodes {
		nodes = append(nodes, n.Address)
	}
	p, err := port.Open(port.Config{Self: self.Name(), Group: g.Name, Secret: g.Secret, Nodes: nodes, Listeners: c.Listeners,
		Server: c.Server, Client: c.Client, Dial: c.Dial, Timeout: g.Timeout, Handler: k.answer, Logger: c.Logger})
	if err != nil {
		return nil, err
	}
	k.port = p
	return voter.Over(p, self, g.Timeout/4, c.Logger), nil
}

// Close ends the node's part and waits for its goroutines.
func (k *Control) Close() error {
	k.cancel()
	err := errors.Join(k.voter.Close(), k.port.Close())
	k.done.Wait()
	return err
}

// Self returns the name of this node's voter.
func (k *Control) Self() voter.Server { return k.voter.Self() }

// Shards returns the newest states of the shards that this node knows, from its own voter or from another node's
// answers.
func (k *Control) Shards() []directory.Shard {
	all := k.voter.Shards()
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, s := range all {
		if h := k.heard[s.ID]; h.Version > s.Version {
			all[i] = h
		}
	}
	return all
}

// learn stores the states that another node's voter has applied, if that node has a vote here. After a silence, raft
// may take ten seconds to send its log to this node, because it waits longer after each attempt. Without learn, a
// replaced master would not hear of it meanwhile. A node without a vote here may be of an earlier group with the same
// secret.
func (k *Control) learn(from directory.NodeID, all []directory.Shard) {
	known := map[directory.ShardID]uint64{}
	for _, s := range k.Shards() {
		known[s.ID] = s.Version
	}
	all = slices.DeleteFunc(all, func(s directory.Shard) bool { return s.Version <= known[s.ID] })
	if len(all) == 0 {
		return
	}
	voters, _ := k.voter.Voters() // no voters after an error: the voter has ended
	k.mu.Lock()
	defer k.mu.Unlock()
	if !slices.Contains(voters, k.newest[from].server) {
		return
	}
	for _, s := range all {
		if s.Version > k.heard[s.ID].Version { // another node may have sent a newer one meanwhile
			k.heard[s.ID] = s
		}
	}
	select {
	case k.news <- struct{}{}:
	default:
	}
}

// Nodes returns the nodes of the directory as this node has applied it.
func (k *Control) Nodes() []directory.Node { return k.voter.Nodes() }

// Removed reports whether an operator has removed a node, as far as this node knows.
func (k *Control) Removed(id directory.NodeID) bool { return k.voter.Removed(id) }

// Voters returns the nodes that have a vote, as far as this node knows.
func (k *Control) Voters() (all []directory.NodeID) {
	servers, _ := k.voter.Voters() // no voters after an error: the voter has ended
	for _, s := range servers {
		all = append(all, s.Node)
	}
	return all
}

// Leader returns the node that leads the directory as far as this node knows, or 0.
func (k *Control) Leader() directory.NodeID {
	s, ok := k.voter.Leader()
	if !ok {
		return 0
	}
	return s.Node
}

// Peer is a node of the group, as its heartbeats at this node describe it. The node itself is one of its Peers.
type Peer struct {
	settings.Node
	Data           bool
	Clients        string        // host:port; "" for a witness, or before its first heartbeat
	Sentinel       int           // port of Sentinel's protocol; 0: none
	SinceHeartbeat time.Duration // since its last heartbeat, or since this node started
	Silent         bool          // it has sent no heartbeat for group-timeout
	Report         shard.Report
}

// Peers returns the nodes of the list, in its order.
func (k *Control) Peers() (all []Peer) {
	now := k.conf.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, n := range k.conf.Group.Nodes {
		h := k.newest[n.ID]
		p := Peer{Node: n, Data: h.data, Clients: h.clients, Sentinel: int(h.sentinel), SinceHeartbeat: now - h.at, Report: h.report}
		p.Silent = p.SinceHeartbeat >= k.conf.Group.Timeout || h.server.Node == 0
		all = append(all, p)
	}
	return all
}

// Propose sends a command to the leader of the directory, and returns the answer. After ErrNoLeader and
// voter.ErrNotLeader the command was not applied; after any other error it may be applied later.
func (k *Control) Propose(ctx context.Context, c directory.Command) (directory.Answer, error) {
	if err := k.justified(c); err != nil {
		return directory.Answer{}, err
	}
	a, err := k.voter.Propose(c)
	if !errors.Is(err, voter.ErrNotLeader) {
		return a, err
	}
	leader, ok := k.voter.Leader()
	if !ok || leader == k.voter.Self() {
		return a, ErrNoLeader
	}
	b, err := k.port.Call(ctx, leader.Address, leader.Name(), directory.AppendCommand([]byte{kindPropose}, c))
	if err != nil {
		return a, err
	}
	return parseOutcome(b)
}

// answer answers a call of another node. from is the name of its voter.
func (k *Control) answer(ctx context.Context, from string, request []byte) []byte {
	select {
	case <-k.opened:
	case <-ctx.Done():
		return nil
	}
	if len(request) == 0 {
		return nil
	}
	switch body := request[1:]; request[0] {
	case kindHello:
		return hello{k.voter.Self(), k.voter.Founded()}.append(nil)
	case kindHeartbeat:
		h, err := parseHeartbeat(body)
		if err == nil {
			err = k.receive(h)
		}
		if err != nil {
			k.conf.Logger.Warn("ignored the heartbeat of a node of the group", "error", err)
		}
		return appendOutcome(nil, directory.Answer{Shards: k.Shards()}, nil)
	case kindPropose:
		c, err := directory.DecodeCommand(body)
		if err == nil {
			err = k.mayPropose(from, c)
		}
		if err != nil {
			return appendOutcome(nil, directory.Answer{}, err)
		}
		a, err := k.voter.Propose(c)
		return appendOutcome(nil, a, err)
	}
	return nil
}

// mayPropose returns an error for a command that the sending node must not propose: the Register of another node,
// which would take that node out of the in-sync set, or an Expand or Shrink in the epoch of another master. A node
// without valid heartbeats may propose nothing: its list is in a different order, so its number is another node's
// here.
func (k *Control) mayPropose(from string, c directory.Command) error {
	node := directory.NodeID(0)
	k.mu.Lock()
	for id, h := range k.newest {
		if h.server.Name() == from {
			node = id
		}
	}
	k.mu.Unlock()
	switch c.Kind {
	case directory.Register:
		if node == c.Node && node != 0 {
			return nil
		}
		return fmt.Errorf("cannot register node %d for %s, which has sent no valid heartbeat as that node", c.Node, from)
	case directory.Expand, directory.Shrink:
		for _, s := range k.voter.Shards() {
			if s.ID == c.Shard && s.Epoch == c.Epoch && s.Master.Node != node {
				return fmt.Errorf("%s is not the master: only the master changes the in-sync set", from)
			}
		}
	}
	if node == 0 {
		return fmt.Errorf("%s proposes a change of the directory, but has sent no valid heartbeat", from)
	}
	return k.justified(c)
}

// justified returns an error for an operator's command that a running node rules out: RemoveNode of that node, or
// Recover while a member in sync is alive, because that one has all acknowledged writes. Both the node that the
// operator asked and the leader check this: each may have heartbeats that the other lacks.
func (k *Control) justified(c directory.Command) error {
	if c.Kind != directory.RemoveNode && c.Kind != directory.Recover {
		return nil
	}
	for _, p := range k.Peers() {
		switch {
		case p.Silent:
		case c.Kind == directory.RemoveNode && c.Node == p.ID:
			return fmt.Errorf("node %d at %s is alive: stop it first", p.ID, p.Address)
		case c.Kind == directory.Recover && slices.ContainsFunc(k.Shards(), func(s directory.Shard) bool {
			return s.ID == c.Shard && s.In(p.Report.From)
		}):
			return fmt.Errorf("the node at %s is in sync and alive: promote it, which loses nothing", p.Clients)
		}
	}
	return nil
}

// receive stores a node's heartbeat, if the node's number and address are those of the list.
func (k *Control) receive(h heartbeat) error {
	if err := k.listed(h.server); err != nil {
		return err
	}
	if k.conf.Heartbeat != nil {
		k.conf.Heartbeat(h.report)
	}
	now := k.conf.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.newest[h.server.Node] = received{h, now}
	k.controller.Receive(now, h.report)
	return nil
}

// listed returns an error unless a voter's number and address are those of a node of the list.
func (k *Control) listed(s voter.Server) error {
	for _, n := range k.conf.Group.Nodes {
		switch {
		case n.ID == s.Node && n.Address == s.Address:
			return nil
		case n.ID == s.Node, n.Address == s.Address:
			return fmt.Errorf("the node at %s is number %d in its own list, but %s is number %d here: group must be the same list on all nodes",
				s.Address, s.Node, n.Address, n.ID)
		}
	}
	return fmt.Errorf("node %d at %s is not in this node's list: group must be the same list on all nodes", s.Node, s.Address)
}

// heartbeat returns the next heartbeat of this node.
func (k *Control) heartbeat() heartbeat {
	r := k.conf.Report()
	r.From.Node = k.conf.Group.Self.ID
	return heartbeat{server: k.voter.Self(), data: k.conf.Data, clients: k.conf.Clients, sentinel: uint64(k.conf.Sentinel),
		k: uint64(k.conf.Group.K), report: r}
}

// sendHeartbeats sends heartbeats to another node until k is closed. It logs once if that node refuses this one
// because of its secret or its group-name.
func (k *Control) sendHeartbeats(to settings.Node) {
	said := ""
	for k.sleep() {
		ctx, cancel := context.WithTimeout(k.ctx, k.conf.Group.Timeout/2)
		b, err := k.port.Call(ctx, to.Address, "", k.heartbeat().append(nil))
		cancel()
		switch {
		case err == nil:
			said = ""
			if a, err := parseOutcome(b); err == nil {
				k.learn(to.ID, a.Shards)
			}
		case errors.Is(err, port.ErrRefused) && err.Error() != said:
			said = err.Error()
			k.conf.Logger.Warn("a node of the group refuses the heartbeats of this node", "error", err)
		case k.ctx.Err() == nil:
			k.conf.Logger.Debug("a node of the group does not answer", "node", to.Address, "error", err)
		}
	}
}

// sleep waits for a tick. It reports false when k is closed.
func (k *Control) sleep() bool {
	t := time.NewTimer(k.tick)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-k.ctx.Done():
		return false
	}
}

// foundGroup founds the group if this node is the first of the list and no node is in a group yet.
func (k *Control) foundGroup() {
	if k.conf.Group.Self.ID != k.conf.Group.Nodes[0].ID {
		return
	}
	for !k.voter.Founded() {
		all, ok := k.askOthers()
		if ok {
			err := k.voter.Found(all)
			if err == nil {
				k.conf.Logger.Info("this node has founded the group", "nodes", len(all))
				return
			}
			k.conf.Logger.Warn("the group cannot be founded", "error", err)
		}
		if !k.sleep() {
			return
		}
	}
}

// askOthers returns the voters of all nodes. ok is false unless all have answered and none is in a group.
func (k *Control) askOthers() (all []voter.Server, ok bool) {
	for _, n := range k.conf.Group.Nodes {
		if n.ID == k.conf.Group.Self.ID {
			all = append(all, k.voter.Self())
			continue
		}
		b, err := k.port.Call(k.ctx, n.Address, "", []byte{kindHello})
		var h hello
		if err == nil {
			h, err = parseHello(b)
		}
		if err == nil {
			err = k.listed(h.server)
		}
		if err == nil && h.server.Node != n.ID {
			err = fmt.Errorf("the node at %s is number %d in its own list; want %d", n.Address, h.server.Node, n.ID)
		}
		switch {
		case err != nil && k.ctx.Err() == nil:
			k.conf.Logger.Info("the group waits for its first start, which needs all nodes: one does not answer", "node", n.Address, "error", err)
			return nil, false
		case err != nil, h.founded:
			return nil, false // the leader of that group will admit this node
		}
		all = append(all, h.server)
	}
	return all, true
}

// watch registers this node, and then reports each change of the directory.
func (k *Control) watch() {
	if !k.register() {
		return
	}
	for {
		select {
		case <-k.voter.Changed():
			k.conf.Applied(k.Shards())
		case <-k.news:
			k.conf.Applied(k.Shards())
		case <-k.ctx.Done():
			return
		}
	}
}

// register proposes the node's Register until the directory has accepted it. It reports false if k is closed before.
func (k *Control) register() bool {
	for c := k.conf.Register; ; {
		a, err := k.Propose(k.ctx, c)
		switch {
		case err != nil:
			k.conf.Logger.Debug("this node is not registered yet", "error", err)
		case a.Refused == directory.OldMember:
			c = shard.Again(c, a)
			continue
		case a.Refused == 0:
			k.conf.Registered(directory.Member{Node: c.Node, Incarnation: c.Incarnation}, a.Shards)
			return true
		}
		if !k.sleep() {
			return false
		}
	}
}
