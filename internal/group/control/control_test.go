package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/group/settings"
	"github.com/ebbdb/ebb/internal/group/shard"
	"github.com/ebbdb/ebb/internal/group/voter"
	"github.com/ebbdb/ebb/internal/memnet"
	"github.com/ebbdb/ebb/internal/testing/crashfs"
	"github.com/ebbdb/ebb/internal/testing/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

const timeout = 2 * time.Second

// world is a group in virtual time. Its nodes run the real code except for the data: a node reports a log of a given
// length, and is master when the directory says so.
type world struct {
	*testing.T
	list  []settings.Node
	disks map[directory.NodeID]*crashfs.FS
	nodes map[directory.NodeID]*node
	began time.Time
	names uint64 // the last number that Random returned
	// By node number: min-sync-replicas, masterauth if it is not "s", and the logs.
	ks      [4]int
	secrets [4]string
	logs    [4]*slog.Logger

	mu        sync.Mutex // guards the fields below
	listeners map[string]*memnet.Listener
	cut       map[string]bool // addresses that are cut off in both directions
	conns     map[string][]net.Conn
}

// node is a node of the world.
type node struct {
	*Control
	id      directory.NodeID
	process uint64
	data    bool

	mu    sync.Mutex // guards the fields below
	self  directory.Member
	since uint64 // the epoch in the answer to its Register
	shard directory.Shard
	end   uint64
}

// bubble runs a test in virtual time, with a list of n nodes.
func bubble(t *testing.T, n int, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, disks: map[directory.NodeID]*crashfs.FS{}, nodes: map[directory.NodeID]*node{}, began: time.Now(),
			listeners: map[string]*memnet.Listener{}, cut: map[string]bool{}, conns: map[string][]net.Conn{}}
		for i := range n {
			w.list = append(w.list, settings.Node{ID: directory.NodeID(i + 1), Address: fmt.Sprintf("host%d:7379", i+1)})
		}
		defer func() {
			for id := range w.nodes {
				w.stop(id)
			}
		}()
		test(w)
	})
}

// dial connects a node to an address.
func (w *world) dial(from, to string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.listeners[to]
	if l == nil || w.cut[from] || w.cut[to] {
		return nil, fmt.Errorf("connection from %s to %s refused", from, to)
	}
	c, err := l.Dial()
	if err == nil {
		w.conns[from], w.conns[to] = append(w.conns[from], c), append(w.conns[to], c)
	}
	return c, err
}

func (w *world) address(id directory.NodeID) string { return w.list[id-1].Address }

// part cuts a node off, or reconnects it.
func (w *world) part(id directory.NodeID, off bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut[w.address(id)] = off
	for _, c := range w.conns[w.address(id)] {
		c.Close()
	}
	w.conns[w.address(id)] = nil
}

// start starts a node whose log ends at end.
func (w *world) start(id directory.NodeID, data bool, end uint64) *node {
	w.Helper()
	if w.disks[id] == nil {
		w.disks[id] = crashfs.New(uint64(id))
	}
	n := &node{id: id, data: data, end: end, process: w.random()}
	l := memnet.Listen(w.address(id))
	w.mu.Lock()
	w.listeners[w.address(id)] = l
	w.mu.Unlock()
	register := shard.Restart(id, nil, false, false)
	register.Process = n.process
	c, err := Open(Config{Group: &settings.Settings{Name: "ebb", Nodes: w.list, Self: w.list[id-1], Timeout: timeout,
		Secret: cmp.Or(w.secrets[id], "s"), K: w.ks[id]}, Logger: w.logs[id], Data: data, Register: register,
		Now: func() shard.Time { return time.Since(w.began) }, Report: n.report, Registered: n.registered,
		Applied: n.applied, FS: w.disks[id], Dir: "/data/group", Random: w.random, Listeners: []net.Listener{l},
		Dial: func(_ context.Context, to string) (net.Conn, error) { return w.dial(w.address(id), to) }})
	if err != nil {
		w.Fatal(err)
	}
	n.Control = c
	w.nodes[id] = n
	return n
}

func (w *world) random() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names++
	return w.names
}

func (w *world) stop(id directory.NodeID) {
	w.Helper()
	if err := w.nodes[id].Close(); err != nil {
		w.Errorf("node %d: %v", id, err)
	}
	w.mu.Lock()
	delete(w.listeners, w.address(id))
	w.mu.Unlock()
	delete(w.nodes, id)
}

// crash cuts a node's power.
func (w *world) crash(id directory.NodeID) {
	w.Helper()
	w.part(id, true)
	left := w.disks[id].Crash()
	_ = w.nodes[id].Close() // its disk is dead
	w.mu.Lock()
	delete(w.listeners, w.address(id))
	w.mu.Unlock()
	delete(w.nodes, id)
	w.disks[id] = left
	w.part(id, false)
}

func (n *node) report() shard.Report {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := shard.Report{From: n.self, End: n.end}
	if n.self.Incarnation != 0 && n.shard.Master == n.self && n.shard.Epoch > n.since {
		r.Master = n.shard.Epoch
	}
	return r
}

func (n *node) registered(self directory.Member, all []directory.Shard) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.self = self
	if len(all) > 0 {
		n.shard, n.since = all[0], all[0].Epoch
	}
}

func (n *node) applied(all []directory.Shard) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(all) > 0 && all[0].Version > n.shard.Version {
		n.shard = all[0]
	}
}

// until waits until ok returns true, for a virtual minute at most.
func (w *world) until(what string, ok func() bool) (took time.Duration) {
	w.Helper()
	began := time.Now()
	for range 1200 {
		if ok() {
			return time.Since(began)
		}
		time.Sleep(50 * time.Millisecond)
	}
	for id, n := range w.nodes {
		w.Logf("node %d: %+v, %+v", id, n.report(), n.Shards())
	}
	w.Fatalf("not within a minute: %s", what)
	return 0
}

// master waits until a node reports that it is the master, and returns it.
func (w *world) master(without directory.NodeID) (m *node, took time.Duration) {
	w.Helper()
	took = w.until("a master", func() bool {
		for id, n := range w.nodes {
			if id != without && n.report().Master != 0 {
				m = n
				return true
			}
		}
		return false
	})
	return m, took
}

// expand makes the master add a node to the in-sync set.
func (w *world) expand(m *node, id directory.NodeID) {
	w.Helper()
	w.until("the node is in sync", func() bool {
		n := w.nodes[id]
		n.mu.Lock()
		self := n.self
		n.mu.Unlock()
		m.mu.Lock()
		s := m.shard
		m.mu.Unlock()
		if s.In(self) {
			return true
		}
		if self.Incarnation != 0 {
			_, _ = m.Propose(context.Background(), directory.Command{Kind: directory.Expand, Shard: theShard, Epoch: s.Epoch, Version: s.Version,
				Node: id, Incarnation: self.Incarnation})
		}
		return false
	})
}

// group starts a group of three nodes with data, waits until all are in sync, and returns its master.
func (w *world) group() *node {
	w.Helper()
	for id := directory.NodeID(1); id <= 3; id++ {
		w.start(id, true, 0)
	}
	m, _ := w.master(0)
	for id := range w.nodes {
		w.expand(m, id)
	}
	return m
}

func TestAGroupBeginsByItself(t *testing.T) {
	bubble(t, 3, func(w *world) {
		w.start(1, true, 0)
		w.start(3, false, 0) // a witness
		time.Sleep(5 * timeout)
		for id, n := range w.nodes {
			if n.voter.Founded() {
				t.Errorf("node %d is in a group before all nodes were there", id)
			}
		}
		w.start(2, true, 100)
		m, took := w.master(0)
		if m.id != 2 {
			t.Errorf("the master is node %d, want that with the data", m.id)
		}
		if took > 3*timeout {
			t.Errorf("the group has begun after %v, want at most %v", took, 3*timeout)
		}
		w.until("all nodes know", func() bool {
			for _, n := range w.nodes {
				if len(n.Shards()) != 1 || n.Shards()[0].Master.Node != 2 || len(n.voter.Nodes()) != 3 {
					return false
				}
			}
			return true
		})
		if all := w.nodes[1].voter.Nodes(); !all[0].Data || !all[1].Data || all[2].Data || !all[2].Voter {
			t.Errorf("the nodes are %+v", all)
		}
	})
}

// If the leader's number counted instead, it could be that of a witness, whose directive has no other use.
func TestTheFirstMasterSaysHowManyMembersItNeeds(t *testing.T) {
	for id := directory.NodeID(1); id <= 3; id++ {
		bubble(t, 3, func(w *world) {
			w.ks = [4]int{0, 0, 1, 2}
			for n := directory.NodeID(1); n <= 3; n++ {
				end := uint64(0)
				if n == id {
					end = 10
				}
				w.start(n, true, end)
			}
			m, _ := w.master(0)
			if s := m.Shards()[0]; s.Master.Node != id || s.K != w.ks[id] {
				t.Errorf("node %d is master and k is %d, want node %d and its %d", s.Master.Node, s.K, id, w.ks[id])
			}
		})
	}
}

func TestAGroupDoesNotBeginWithTheDataOfTwo(t *testing.T) {
	bubble(t, 3, func(w *world) {
		w.start(1, true, 10)
		w.start(2, true, 100)
		w.start(3, true, 0)
		w.until("the directory has all nodes", func() bool {
			all := w.nodes[3].voter.Nodes()
			return len(all) == 3 && all[0].Incarnation > 0 && all[1].Incarnation > 0 && all[2].Incarnation > 0
		})
		time.Sleep(5 * timeout)
		if s := w.nodes[3].Shards(); len(s) > 0 {
			t.Errorf("the group has begun: %+v", s)
		}
	})
}

func TestASilentMasterIsReplaced(t *testing.T) {
	for name, silence := range map[string]func(w *world, id directory.NodeID){
		"a power cut":  (*world).crash,
		"a partition":  func(w *world, id directory.NodeID) { w.part(id, true) },
		"a clean stop": (*world).stop,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 3, func(w *world) {
				old := w.group()
				for id, n := range w.nodes {
					n.mu.Lock()
					n.end = uint64(10 * (4 - id)) // of the remaining nodes the first has the longest log
					n.mu.Unlock()
				}
				time.Sleep(2 * timeout)
				if m, _ := w.master(0); m != old {
					t.Fatalf("node %d has replaced a master that is there", m.id)
				}
				silence(w, old.id)
				next, took := w.master(old.id)
				if want := map[directory.NodeID]directory.NodeID{1: 2, 2: 1, 3: 1}[old.id]; next.id != want {
					t.Errorf("node %d is promoted, want that with the longest log, %d", next.id, want)
				}
				if took < timeout/2 || took > 2*timeout {
					t.Errorf("the next master was there after %v, want about %v", took, timeout)
				}
				if w.nodes[old.id] == nil {
					old = w.start(old.id, true, 0)
				} else {
					w.part(old.id, false)
				}
				w.until("the old master knows", func() bool {
					s := old.Shards()
					return len(s) == 1 && s[0].Master.Node == next.id && old.report().Master == 0
				})
				w.expand(next, old.id)
			})
		})
	}
}

// raft waits for some seconds before it sends its log to a node that was unreachable for long.
func TestAMasterThatWasAwayHearsAtOnceThatItIsReplaced(t *testing.T) {
	bubble(t, 3, func(w *world) {
		old := w.group()
		w.part(old.id, true)
		next, _ := w.master(old.id)
		time.Sleep(12 * timeout)
		w.part(old.id, false)
		back := time.Now()
		w.until("the old master knows", func() bool {
			return old.Shards()[0].Master.Node == next.id && old.report().Master == 0
		})
		if took := time.Since(back); took > timeout/2 {
			t.Errorf("the old master knows after %v, want three heartbeats at most, each %v", took, timeout/heartbeatsInTimeout)
		}
	})
}

// Without a majority no node is promoted; with a majority again, one is.
func TestAMinorityPromotesNothing(t *testing.T) {
	bubble(t, 3, func(w *world) {
		old := w.group()
		for id := range w.nodes {
			if id != old.id {
				w.part(id, true)
			}
		}
		w.part(old.id, true)
		time.Sleep(10 * timeout)
		for id, n := range w.nodes {
			if s := n.Shards()[0]; s.Master.Node != old.id {
				t.Errorf("node %d: %+v", id, s)
			}
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			if a, err := n.Propose(ctx, directory.Command{Kind: directory.Register, Node: 1, Incarnation: 99}); err == nil {
				t.Errorf("node %d has an answer alone: %+v", id, a)
			}
			cancel()
		}
		for id := range w.nodes {
			w.part(id, false)
		}
		w.master(0)
	})
}

// A node that has lost its voter's file gets a vote again, and the group then works without another node.
func TestANodeThatHasLostItsFileIsAdmitted(t *testing.T) {
	for id := directory.NodeID(1); id <= 3; id++ {
		t.Run(fmt.Sprint("node ", id), func(t *testing.T) {
			bubble(t, 3, func(w *world) {
				w.group()
				before := w.nodes[id].Self()
				w.stop(id)
				w.disks[id] = crashfs.New(99)
				n := w.start(id, true, 0)
				if n.Self() == before {
					t.Fatalf("%v has lost its file", n.Self())
				}
				var m *node
				w.until("it is in sync again", func() bool {
					m, _ = w.master(0)
					n.mu.Lock()
					known := n.self.Incarnation == 2
					n.mu.Unlock()
					return known
				})
				w.expand(m, id)
				all, err := m.voter.Voters()
				if err != nil || len(all) != 3 {
					t.Fatalf("%v, %v", all, err)
				}
				for _, s := range all {
					if s == before {
						t.Errorf("%v still has a vote", s)
					}
				}
				w.crash(id%3 + 1)
				w.master(id%3 + 1)
				w.until("the nodes that are left agree", func() bool {
					_, err := n.Propose(context.Background(), directory.Command{Kind: directory.AddNode, Node: id, Address: w.address(id),
						Voter: true, Data: true})
					return err == nil
				})
			})
		})
	}
}

func TestARestartedNodeIsANewMember(t *testing.T) {
	bubble(t, 3, func(w *world) {
		old := w.group()
		w.crash(old.id)
		back := w.start(old.id, true, 0)
		w.until("it is registered", func() bool { return back.report().From.Incarnation == 2 })
		m, _ := w.master(0)
		if m.id == old.id || m.report().Master < 2 {
			t.Errorf("node %d goes on as the master of epoch %d", m.id, m.report().Master)
		}
	})
}

func TestAnotherListIsNotCounted(t *testing.T) {
	bubble(t, 3, func(w *world) {
		m := w.group()
		for want, s := range map[string]voter.Server{
			"number 2 in its own list": {Node: 2, Store: 1, Address: w.address(3)},
			"not in this node's list":  {Node: 9, Store: 1, Address: "host9:7379"},
		} {
			if err := m.receive(heartbeat{server: s, report: shard.Report{From: directory.Member{Node: s.Node}}}); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v, want an error with %q", s, err, want)
			}
		}
	})
}

func TestMessagesAreReadAsTheyWereWritten(t *testing.T) {
	server := voter.Server{Node: 3, Store: 7, Address: "h:1"}
	b := heartbeat{server: server, data: true, clients: "h:6379", sentinel: 26379, k: 2,
		report: shard.Report{From: directory.Member{Node: 3, Incarnation: 300}, Master: 9, End: 1 << 40, Time: 1 << 50, Stuck: true}}
	wire := b.append(nil)
	if got, err := parseHeartbeat(wire[1:]); err != nil || got != b || wire[0] != kindHeartbeat {
		t.Errorf("%+v, %v, want %+v", got, err, b)
	}
	b.report.Stuck, b.report.Proven = false, true
	if got, err := parseHeartbeat(b.append(nil)[1:]); err != nil || got != b {
		t.Errorf("%+v, %v, want %+v", got, err, b)
	}
	for i := range wire {
		if i > 0 {
			if got, err := parseHeartbeat(wire[1:i]); err == nil {
				t.Errorf("%d of %d bytes are read as %+v", i, len(wire), got)
			}
		}
	}
	h := hello{server, true}
	wire = h.append(nil)
	if got, err := parseHello(wire); err != nil || got != h {
		t.Errorf("%+v, %v, want %+v", got, err, h)
	}
	for i := range wire {
		if got, err := parseHello(wire[:i]); err == nil {
			t.Errorf("%d of %d bytes are read as %+v", i, len(wire), got)
		}
	}
	a := directory.Answer{Refused: directory.Stale, Shards: []directory.Shard{{ID: 1, Epoch: 2, Version: 3}}}
	if got, err := parseOutcome(appendOutcome(nil, a, nil)); err != nil || got.Refused != a.Refused || got.Shards[0].Version != 3 {
		t.Errorf("%+v, %v, want %+v", got, err, a)
	}
	if _, err := parseOutcome(appendOutcome(nil, a, fmt.Errorf("so: %w", voter.ErrNotLeader))); !errors.Is(err, voter.ErrNotLeader) {
		t.Errorf("%v, want %v", err, voter.ErrNotLeader)
	}
	if _, err := parseOutcome(appendOutcome(nil, a, errors.New("why"))); err == nil || !strings.Contains(err.Error(), "why") {
		t.Errorf("%v, want an error with its reason", err)
	}
	for _, bad := range [][]byte{nil, {9}} {
		if a, err := parseOutcome(bad); err == nil {
			t.Errorf("%v is read as %+v", bad, a)
		}
	}
}

// A node whose list is in a different order has a different number.
func TestANodeRegistersItselfAlone(t *testing.T) {
	bubble(t, 3, func(w *world) {
		m := w.group()
		leader := m
		w.until("a leader", func() bool {
			for _, n := range w.nodes {
				if n.voter.Leading() {
					leader = n
				}
			}
			return leader.voter.Leading()
		})
		before := w.nodes[3].report().From
		c := directory.Command{Kind: directory.Register, Node: 3, Incarnation: before.Incarnation + 1, Process: 99}
		ask := func(from string) error {
			_, err := parseOutcome(leader.answer(context.Background(), from, directory.AppendCommand([]byte{kindPropose}, c)))
			return err
		}
		if err := ask("3.00000000000000ff"); err == nil {
			t.Error("a stranger registers node 3")
		}
		if s := leader.Shards()[0]; !s.In(before) {
			t.Errorf("node 3 is no longer in sync: %+v", s)
		}
		if err := ask(w.nodes[3].Self().Name()); err != nil {
			t.Errorf("node 3 itself: %v", err)
		}
	})
}

func TestTheMasterAloneChangesTheInSyncSet(t *testing.T) {
	bubble(t, 3, func(w *world) {
		m := w.group()
		var leader *node
		w.until("a leader that has the newest state", func() bool {
			for _, n := range w.nodes {
				if n.voter.Leading() && len(n.Shards()) == 1 && len(n.Shards()[0].InSync) == 3 {
					leader = n
				}
			}
			return leader != nil
		})
		other := directory.NodeID(1)
		if other == m.id {
			other = 2
		}
		s := leader.Shards()[0]
		c := directory.Command{Kind: directory.Shrink, Shard: s.ID, Epoch: s.Epoch, Version: s.Version, Node: other,
			Incarnation: w.nodes[other].report().From.Incarnation}
		ask := func(from string) (directory.Answer, error) {
			return parseOutcome(leader.answer(context.Background(), from, directory.AppendCommand([]byte{kindPropose}, c)))
		}
		for _, from := range []string{w.nodes[other].Self().Name(), "9.00000000000000ff"} {
			if a, err := ask(from); err == nil {
				t.Errorf("%s removes a member: %+v", from, a)
			}
		}
		if a, err := ask(m.Self().Name()); err != nil || a.Refused != 0 {
			t.Errorf("the master: %+v, %v", a, err)
		}
	})
}

// The node that an operator asks may lack heartbeats that the leader has.
func TestTheLeaderRefusesWhatAnAliveNodeMakesNeedless(t *testing.T) {
	bubble(t, 3, func(w *world) {
		m := w.group()
		var leader *node
		w.until("a leader that has heard all", func() bool {
			for _, n := range w.nodes {
				if n.voter.Leading() && len(n.Shards()) == 1 && !slices.ContainsFunc(n.Peers(), func(p Peer) bool { return p.Silent }) {
					leader = n
				}
			}
			return leader != nil
		})
		asked := m.id%3 + 1
		s := leader.Shards()[0]
		for _, x := range []struct {
			c    directory.Command
			want string
		}{
			{directory.Command{Kind: directory.Recover, Shard: s.ID, Epoch: s.Epoch, Version: s.Version, Node: asked, AcceptLoss: true},
				"is in sync and alive: promote it"},
			{directory.Command{Kind: directory.RemoveNode, Node: asked%3 + 1}, "is alive: stop it first"},
		} {
			request := directory.AppendCommand([]byte{kindPropose}, x.c)
			a, err := parseOutcome(leader.answer(context.Background(), w.nodes[asked].Self().Name(), request))
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%+v: %+v, %v; want %q", x.c, a, err, x.want)
			}
			if _, err := w.nodes[asked].Propose(context.Background(), x.c); err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("the node that is asked: %v, want %q", err, x.want)
			}
		}
	})
}

// A node with another masterauth looks silent to the others. Both sides log the reason once.
func TestANodeThatIsRefusedSaysSoOnce(t *testing.T) {
	bubble(t, 3, func(w *world) {
		var said [4]strings.Builder
		w.secrets = [4]string{3: "other"}
		for id := directory.NodeID(1); id <= 3; id++ {
			w.logs[id] = slog.New(slog.NewTextHandler(&said[id], &slog.HandlerOptions{Level: slog.LevelWarn}))
			w.start(id, true, 0)
		}
		time.Sleep(5 * timeout)
		for id := directory.NodeID(1); id <= 3; id++ {
			w.stop(id)
		}
		for id, want := range [4]int{1: 1, 2: 1, 3: 2} { // one for each node with a different secret
			if n := strings.Count(said[id].String(), "masterauth must be the same"); n != want {
				t.Errorf("node %d says %d times that it is refused, want %d:\n%s", id, n, want, said[id].String())
			}
		}
	})
}

func TestARemovedNodeHasNoVoteAndDoesNotComeBack(t *testing.T) {
	bubble(t, 3, func(w *world) {
		m := w.group()
		gone := m.id%3 + 1
		w.stop(gone)
		w.until("it is removed", func() bool {
			_, _ = m.Propose(context.Background(), directory.Command{Kind: directory.RemoveNode, Node: gone}) // until a leader accepts it
			return m.Removed(gone)
		})
		left := func(n *node) bool {
			return n.Removed(gone) && len(n.Nodes()) == 2 && len(n.Voters()) == 2 && !slices.Contains(n.Voters(), gone)
		}
		w.until("it has no vote", func() bool { return left(w.nodes[m.id]) && left(w.nodes[6-m.id-gone]) })
		back := w.start(gone, true, 0)
		time.Sleep(5 * timeout)
		if r := back.report(); r.From.Incarnation != 0 {
			t.Errorf("a node that was removed is registered as %v", r.From)
		}
		if !left(m) {
			t.Errorf("the nodes are %+v, the voters %v", m.Nodes(), m.Voters())
		}
		if id := m.Leader(); id == 0 || id == gone {
			t.Errorf("node %d leads", id)
		}
		if m.Removed(m.id) || m.Removed(4) || m.Removed(0) {
			t.Error("a node counts as removed that is there, or never was")
		}
	})
}
