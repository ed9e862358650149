package voter

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/testing/crashfs"
	"github.com/ebbdb/ebb/internal/testing/draw"
)

func TestVotersAgreeOnTheDirectory(t *testing.T) {
	bubble(t, func(g *group) {
		g.found(3)
		g.nodes(3)
		if epoch := g.promote(2); epoch != 2 {
			t.Errorf("the first Promote begins epoch %d, want 2", epoch)
		}
		g.propose(directory.Command{Kind: directory.Promote, Shard: 1, Epoch: 1, Version: 1, Node: 3}, directory.Stale)
		g.agree()
		for id, v := range g.voters {
			if s := v.Shards(); len(s) != 1 || s[0].Master.Node != 2 || len(s[0].InSync) != 3 || len(v.Nodes()) != 3 {
				t.Errorf("voter %d has %+v of %d nodes", id, s, len(v.Nodes()))
			}
		}
	})
}

func TestOnlyTheLeaderTakesProposals(t *testing.T) {
	bubble(t, func(g *group) {
		g.found(3)
		leader := g.leader()
		for _, v := range g.voters {
			if v == leader {
				continue
			}
			if _, err := v.Propose(directory.Command{Kind: directory.AddNode, Node: 1}); !errors.Is(err, ErrNotLeader) {
				t.Errorf("%v: %v, want %v", v.Self(), err, ErrNotLeader)
			}
			if s, ok := v.Leader(); !ok || s != leader.Self() {
				t.Errorf("%v calls %v the leader, want %v", v.Self(), s, leader.Self())
			}
			if err := v.Admit(Server{Node: 9, Store: 9, Address: "h:1"}); !errors.Is(err, ErrNotLeader) {
				t.Errorf("%v admits a voter: %v", v.Self(), err)
			}
		}
		long := directory.Command{Kind: directory.AddNode, Node: 1, Address: strings.Repeat("a", maxCommand)}
		if _, err := leader.Propose(long); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%v, want %v", err, ErrTooLarge)
		}
	})
}

func TestALeaderThatIsCutOffAnswersNothing(t *testing.T) {
	bubble(t, func(g *group) {
		g.found(3)
		g.nodes(3)
		g.agree()
		old := g.leader()
		g.cut(old.Self().Node)
		began := time.Now()
		a, err := old.Propose(directory.Command{Kind: directory.Register, Node: 1, Incarnation: 7, Process: 7})
		if err == nil {
			t.Errorf("a leader without a majority answers %+v", a)
		}
		if took := time.Since(began); took > timeout/2 {
			t.Errorf("the voter returned the error after %v, want at most %v", took, timeout/2)
		}
		next := g.leader(old.Self().Node)
		if took := time.Since(began); took > timeout {
			t.Errorf("the next leader was there after %v, want at most %v", took, timeout)
		}
		g.until("the old leader knows", func() bool { return !old.Leading() })
		if _, err := next.Propose(directory.Command{Kind: directory.Register, Node: 2, Incarnation: 5, Process: 5}); err != nil {
			t.Fatal(err)
		}
		g.join(old.Self().Node)
		g.agree()
		for _, n := range old.Nodes() {
			if want := map[directory.NodeID]uint64{1: 1, 2: 5, 3: 1}[n.ID]; n.Incarnation != want {
				t.Errorf("node %d has registered incarnation %d, want %d", n.ID, n.Incarnation, want)
			}
		}
	})
}

func TestChangesAreSignalled(t *testing.T) {
	bubble(t, func(g *group) {
		g.found(3)
		g.nodes(3)
		g.agree()
		for _, v := range g.voters {
			select {
			case <-v.Changed():
			default:
			}
		}
		epoch := g.promote(3)
		for id, v := range g.voters {
			<-v.Changed()
			if s := v.Shards()[0]; s.Epoch != epoch {
				t.Errorf("voter %d was told of a change, and is in epoch %d, want %d", id, s.Epoch, epoch)
			}
		}
	})
}

func TestARestartContinuesFromTheFile(t *testing.T) {
	bubble(t, func(g *group) {
		g.found(3)
		g.nodes(3)
		g.promote(2)
		g.agree()
		want := g.leader().image()
		names := map[directory.NodeID]Server{}
		for id, v := range g.voters {
			names[id] = v.Self()
		}
		for _, end := range []func(directory.NodeID){g.stop, g.crash, g.stop} { // from the second round on there are snapshots
			for id := range names {
				end(id)
			}
			for id := range names {
				if v := g.start(id); v.Self() != names[id] || !v.Founded() {
					t.Fatalf("voter %d comes back as %v, founded %v; want %v", id, v.Self(), v.Founded(), names[id])
				}
			}
			g.agree()
			if got := g.leader().image(); got != want {
				t.Fatal("the state is another one")
			}
			if err := g.voters[1].Found([]Server{names[1]}); !errors.Is(err, ErrFounded) {
				t.Fatalf("a voter of a group begins another one: %v", err)
			}
			for _, v := range g.voters {
				if err := v.raft.Snapshot().Error(); err != nil {
					t.Fatal(err)
				}
			}
			g.promote(3)
			g.promote(2)
			g.agree()
			want = g.leader().image()
		}
	})
}

func TestTheSystemsFilesServeAsWell(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "group")
	bubble(t, func(g *group) {
		open := func() *Voter {
			c := g.config(1)
			c.FS, c.Dir = nil, dir
			v, err := Open(c)
			if err != nil {
				t.Fatal(err)
			}
			g.voters[1] = v
			return v
		}
		v := open()
		if err := v.Found([]Server{v.Self()}); err != nil {
			t.Fatal(err)
		}
		g.nodes(1)
		if err := g.leader().raft.Snapshot().Error(); err != nil {
			t.Fatal(err)
		}
		g.propose(directory.Command{Kind: directory.Register, Node: 1, Incarnation: 2, Process: 2}, 0)
		want := v.image()
		g.stop(1)
		open()
		if got := g.leader().image(); got != want {
			t.Error("the state is another one")
		}
	})
}

func TestOneVoterOfThreeMayBeDown(t *testing.T) {
	bubble(t, func(g *group) {
		g.found(3)
		g.nodes(3)
		g.agree()
		g.crash(3)
		g.promote(2)
		g.start(3)
		g.agree()
	})
}

// Acknowledged commands survive power cuts of some voters, or of all.
func TestNoPowerCutLosesWhatWasAcknowledged(t *testing.T) {
	r := draw.Rand(t)
	for range draw.Rounds(0, 40) {
		bubble(t, func(g *group) {
			g.found(3)
			g.nodes(3)
			acknowledged := map[uint64]directory.NodeID{} // the acknowledged master of each epoch
			newest := uint64(0)
			for range 12 {
				for range r.IntN(4) {
					id := directory.NodeID(1 + r.IntN(3))
					newest = g.promote(id)
					acknowledged[newest] = id
				}
				down := 1 + r.IntN(3)
				first := r.IntN(3)
				for i := range down {
					g.crash(directory.NodeID((first+i)%3 + 1))
				}
				for i := range down {
					g.start(directory.NodeID((first+i)%3 + 1))
				}
				s := g.leader().Shards()[0]
				if s.Epoch < newest || s.Epoch == newest && newest > 0 && s.Master.Node != acknowledged[newest] {
					t.Fatalf("after power cuts %+v, and epoch %d of node %d was acknowledged", s, newest, acknowledged[newest])
				}
			}
			g.agree()
		})
	}
}

// A voter whose disk is full is silent, and recovers by itself. Plain raft would end the process.
func TestAFullDiskSilencesAVoter(t *testing.T) {
	bubble(t, func(g *group) {
		g.found(3)
		g.nodes(3)
		g.agree()
		full := g.leader().Self().Node%3 + 1
		g.disks[full].SetCapacity(0)
		g.promote(2)
		for range 3 { // new terms
			old := g.leader(full)
			g.cut(old.Self().Node)
			g.until("it has stepped down", func() bool { return !old.Leading() })
			g.join(old.Self().Node)
		}
		g.promote(3)
		g.disks[full].SetCapacity(-1)
		g.agree()
		full = g.leader().Self().Node%3 + 1
		g.disks[full].SetCapacity(0)
		old := g.leader(full)
		g.cut(old.Self().Node)
		g.pass(4 * timeout)
		g.join(old.Self().Node)
		g.pass(timeout)
		g.stop(full) // it does not wait for the disk
		g.promote(2)
	})
}

// A voter that needs entries from before the start of the log gets a snapshot.
func TestAVoterThatWasAwayGetsASnapshot(t *testing.T) {
	bubble(t, func(g *group) {
		g.found(3)
		g.nodes(3)
		g.agree()
		var away directory.NodeID
		for id, v := range g.voters {
			if !v.Leading() {
				away = id
			}
		}
		g.cut(away)
		for range 3 {
			g.promote(2)
			g.promote(1)
		}
		for id, v := range g.voters {
			if id == away {
				continue
			}
			if err := v.raft.ReloadConfig(raft.ReloadableConfig{TrailingLogs: 0, SnapshotInterval: time.Minute, SnapshotThreshold: snapshotAfter,
				HeartbeatTimeout: timeout / 4, ElectionTimeout: timeout / 4}); err != nil {
				t.Fatal(err)
			}
			if err := v.raft.Snapshot().Error(); err != nil {
				t.Fatal(err)
			}
		}
		if first, err := g.leader(away).store.FirstIndex(); err != nil || first < 10 {
			t.Fatalf("the log begins at %d, %v: it still has all", first, err)
		}
		g.join(away)
		g.agree()
	})
}

// The classic mistake: a voter that comes back without its file votes again in a term in which it has voted, and so
// elects a leader that lacks committed commands.
func TestAVoterWithoutItsFileHasNoVote(t *testing.T) {
	bubble(t, func(g *group) {
		g.found(3)
		g.nodes(3)
		g.agree()
		leader := g.leader()
		var behind, lost directory.NodeID
		for id, v := range g.voters {
			switch {
			case v == leader:
			case behind == 0:
				behind = id
			default:
				lost = id
			}
		}
		g.cut(behind)
		s := leader.Shards()[0]
		promote := directory.Command{Kind: directory.Promote, Shard: 1, Epoch: s.Epoch, Version: s.Version, Node: 2}
		if _, err := leader.Propose(promote); err != nil {
			t.Fatal(err)
		}
		before := g.voters[lost].Self()
		g.stop(lost)
		g.disks[lost] = crashfs.New(9)
		back := g.start(lost)
		g.cut(leader.Self().Node)
		if back.Self() == before || back.Founded() {
			t.Fatalf("a voter without its file is %v, founded %v", back.Self(), back.Founded())
		}
		for range 200 {
			g.pass(timeout / 20)
			if g.voters[behind].Leading() {
				t.Fatal("a voter that lacks what was committed leads, by the vote of one that has forgotten it")
			}
		}
		g.join(leader.Self().Node)
		g.until("the voter is admitted in the place of the one before", func() bool {
			return g.leader(lost).Admit(back.Self()) == nil
		})
		if err := g.leader().Admit(back.Self()); err != nil {
			t.Errorf("admitted again: %v", err)
		}
		g.agree()
		all, err := g.leader().Voters()
		if err != nil || len(all) != 3 {
			t.Fatalf("%v, %v", all, err)
		}
		for _, s := range all {
			if s == before {
				t.Errorf("%v still has a vote", s)
			}
		}
	})
}

func TestADismissedNodeHasNoVote(t *testing.T) {
	bubble(t, func(g *group) {
		g.found(3)
		g.nodes(3)
		leader := g.leader()
		gone := leader.Self().Node%3 + 1
		if err := leader.Dismiss(gone); err != nil {
			t.Fatal(err)
		}
		all, err := leader.Voters()
		if err != nil || len(all) != 2 || all[0].Node == gone || all[1].Node == gone {
			t.Errorf("%v, %v", all, err)
		}
		if err := leader.Dismiss(gone); err != nil {
			t.Errorf("dismissed again: %v", err)
		}
	})
}

func TestACommandOfANewerVersionEndsAVoter(t *testing.T) {
	bubble(t, func(g *group) {
		g.found(1)
		g.nodes(1)
		leader := g.leader()
		newer := directory.AppendCommand(nil, directory.Command{Kind: directory.AddNode, Node: 2})
		newer[0] = 99
		f := leader.raft.Apply(newer, timeout)
		if err := f.Error(); err != nil {
			t.Fatal(err)
		}
		if err, ok := f.Response().(error); !ok || leader.Err() == nil || err.Error() != leader.Err().Error() {
			t.Fatalf("the answer is %v, and the voter ends by %v", f.Response(), leader.Err())
		}
		before := leader.image()
		if _, err := leader.Propose(directory.Command{Kind: directory.AddNode, Node: 2}); err == nil {
			t.Error("a voter that has left out a command answers the next one")
		}
		if leader.image() != before {
			t.Error("a voter that has left out a command applies the next one")
		}
		if err := leader.raft.Snapshot().Error(); err == nil {
			t.Error("the voter gives its state to others")
		}
	})
}

func TestAServerIsReadAsItIsShown(t *testing.T) {
	want := Server{Node: 3, Store: 0x9f86d081884c7d65, Address: "[::1]:7379"}
	if got, err := ParseServer(want.String()); err != nil || got != want {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "h:7379", "3@h:7379", "0.9f86d081884c7d65@h:1", "3.0000000000000000@h:1", "3.9f86@h:1",
		"3.9f86d081884c7d6x@h:1",
		"4294967296.9f86d081884c7d65@h:1"} {
		if got, err := ParseServer(bad); err == nil {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
	if _, err := parseServer("4.9f86d081884c7d65", want.address()); err == nil {
		t.Error("an address of another voter is taken")
	}
}

func TestAnIncompleteConfigIsRefused(t *testing.T) {
	network := func(Server) (Transport, error) { return nil, errors.New("the network is not there") }
	whole := Config{Node: 1, Address: "h:1", FS: crashfs.New(1), Dir: "/data", Timeout: timeout, Network: network}
	for want, spoil := range map[string]func(c *Config){
		"number":      func(c *Config) { c.Node = 0 },
		"at least":    func(c *Config) { c.Timeout = time.Millisecond },
		"a network":   func(c *Config) { c.Network = nil },
		"a directory": func(c *Config) { c.Dir = "" },
		"not there":   func(*Config) {},
		"read-only":   func(c *Config) { f := crashfs.New(1); f.SetReadOnly(true); c.FS = f },
	} {
		c := whole
		spoil(&c)
		if v, err := Open(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v: want an error about %q", v, err, want)
		}
	}
}

// A leader with a newer program adds a command that this voter cannot decode, and ends. This voter might be elected
// with an old copy of the directory.
func TestAVoterThatCannotReadTheDirectoryDoesNotLead(t *testing.T) {
	bubble(t, func(g *group) {
		g.found(3)
		g.nodes(3)
		old := g.leader()
		if old.Yield() {
			t.Fatal("a voter that can read all yields")
		}
		unlock := old.machine.locked()
		old.machine.err = errors.New("a command of a newer version")
		unlock()
		g.until("another voter leads", func() bool { return old.Yield() && !old.Leading() })
		if next := g.leader(old.Self().Node); next == old {
			t.Error("the voter leads")
		}
		g.propose(directory.Command{Kind: directory.Register, Node: 1, Incarnation: 2, Process: 2}, 0)
	})
}
