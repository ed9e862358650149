package voter

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/testing/crashfs"
	"github.com/ebbdb/ebb/internal/testing/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

const timeout = 2 * time.Second // group-timeout

// group runs the voters of a group in virtual time, connected by raft's network in memory.
type group struct {
	*testing.T
	disks  map[directory.NodeID]*crashfs.FS
	voters map[directory.NodeID]*Voter
	cables map[directory.NodeID]*raft.InmemTransport
	next   uint64 // the identity of the next file
}

// bubble runs a test in virtual time, and closes the voters.
func bubble(t *testing.T, test func(g *group)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := &group{T: t, disks: map[directory.NodeID]*crashfs.FS{}, voters: map[directory.NodeID]*Voter{},
			cables: map[directory.NodeID]*raft.InmemTransport{}}
		defer func() {
			for id := range g.voters {
				g.stop(id)
			}
		}()
		test(g)
	})
}

func (g *group) config(id directory.NodeID) Config {
	if g.disks[id] == nil {
		g.disks[id] = crashfs.New(uint64(id))
	}
	return Config{Node: id, Address: "host" + string(rune('0'+id)) + ":7379", FS: g.disks[id], Dir: "/data/group", Timeout: timeout,
		Network: func(self Server) (Transport, error) {
			_, cable := raft.NewInmemTransportWithTimeout(self.address(), timeout/10)
			g.cables[id] = cable
			return cable, nil
		},
		Random: func() uint64 { g.next++; return g.next }}
}

// start starts a voter and connects it to the others.
func (g *group) start(id directory.NodeID) *Voter {
	g.Helper()
	v, err := Open(g.config(id))
	if err != nil {
		g.Fatal(err)
	}
	g.voters[id] = v
	g.join(id)
	return v
}

// join connects a voter to all others.
func (g *group) join(id directory.NodeID) {
	for other, cable := range g.cables {
		if other != id && g.voters[other] != nil {
			cable.Connect(g.cables[id].LocalAddr(), g.cables[id])
			g.cables[id].Connect(cable.LocalAddr(), cable)
		}
	}
}

// cut disconnects a voter from all others.
func (g *group) cut(id directory.NodeID) {
	g.cables[id].DisconnectAll()
	for other, cable := range g.cables {
		if other != id {
			cable.Disconnect(g.cables[id].LocalAddr())
		}
	}
}

func (g *group) stop(id directory.NodeID) {
	g.Helper()
	g.cut(id)
	if err := g.voters[id].Close(); err != nil {
		g.Errorf("voter %d: %v", id, err)
	}
	delete(g.voters, id)
	delete(g.cables, id)
}

// crash cuts a voter's power. Only its disk remains.
func (g *group) crash(id directory.NodeID) {
	g.Helper()
	left := g.disks[id].Crash()
	g.cut(id)
	_ = g.voters[id].Close() // its disk is dead
	delete(g.voters, id)
	delete(g.cables, id)
	g.disks[id] = left
}

// found starts the voters 1 to n and founds a group.
func (g *group) found(n int) {
	g.Helper()
	var all []Server
	for id := directory.NodeID(1); id <= directory.NodeID(n); id++ {
		all = append(all, g.start(id).Self())
	}
	if err := g.voters[1].Found(all); err != nil {
		g.Fatal(err)
	}
}

// until waits until ok returns true, for 30 virtual seconds at most.
func (g *group) until(what string, ok func() bool) {
	g.Helper()
	for range 600 {
		if ok() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	g.Fatalf("not within 30 s: %s", what)
}

// pass lets time pass.
func (g *group) pass(d time.Duration) { time.Sleep(d) }

// leader waits until a voter not listed in without leads, and returns it.
func (g *group) leader(without ...directory.NodeID) (found *Voter) {
	g.Helper()
	g.until("a leader", func() bool {
		for id, v := range g.voters {
			if v.Leading() && (len(without) == 0 || id != without[0]) && v.Barrier() == nil {
				found = v
				return true
			}
		}
		return false
	})
	return found
}

// propose proposes a command to the leader, and again if the leader changes.
func (g *group) propose(c directory.Command, want directory.Refusal) directory.Answer {
	g.Helper()
	var a directory.Answer
	g.until("an answer", func() bool {
		var err error
		if a, err = g.leader().Propose(c); err != nil && !errors.Is(err, ErrNotLeader) {
			g.Fatal(err)
		}
		return err == nil
	})
	if a.Refused != want {
		g.Fatalf("%+v: %v, want %v", c, a.Refused, want)
	}
	return a
}

// nodes adds the nodes 1 to n to the directory, and a shard of all of them with master 1.
func (g *group) nodes(n int) {
	g.Helper()
	var members []directory.Member
	for id := directory.NodeID(1); id <= directory.NodeID(n); id++ {
		g.propose(directory.Command{Kind: directory.AddNode, Node: id, Address: "a", Voter: true, Data: true}, 0)
		g.propose(directory.Command{Kind: directory.Register, Node: id, Incarnation: 1, Process: 1}, 0)
		members = append(members, directory.Member{Node: id, Incarnation: 1})
	}
	g.propose(directory.Command{Kind: directory.Create, Shard: 1, Node: 1, Members: members}, 0)
}

// promote makes a node the master, and returns the new epoch.
func (g *group) promote(id directory.NodeID) uint64 {
	g.Helper()
	s := g.leader().Shards()[0]
	a := g.propose(directory.Command{Kind: directory.Promote, Shard: 1, Epoch: s.Epoch, Version: s.Version, Node: id}, 0)
	return a.Shards[0].Epoch
}

// image returns the voter's encoded state.
func (v *Voter) image() string {
	defer v.machine.locked()()
	return string(v.machine.state.Snapshot())
}

// agree waits until all voters have the same state.
func (g *group) agree() {
	g.Helper()
	g.until("all voters have one state", func() bool {
		want := g.leader().image()
		for _, v := range g.voters {
			if v.image() != want {
				return false
			}
		}
		return true
	})
}
