package shard

import (
	"reflect"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/group/directory"
)

const (
	sec = time.Second
	ms  = time.Millisecond
)

// one, two and three are the members of the tests' group in their first incarnation; two2 and three2 are nodes 2 and
// 3 in the second.
var (
	one    = directory.Member{Node: 1, Incarnation: 1}
	two    = directory.Member{Node: 2, Incarnation: 1}
	three  = directory.Member{Node: 3, Incarnation: 1}
	two2   = directory.Member{Node: 2, Incarnation: 2}
	three2 = directory.Member{Node: 3, Incarnation: 2}
)

// state returns a state of the shard.
func state(epoch, version uint64, k int, master directory.Member, inSync ...directory.Member) directory.Shard {
	return directory.Shard{ID: 1, Epoch: epoch, Version: version, K: k, Master: master, InSync: inSync}
}

// tester drives one node.
type tester struct {
	*testing.T
	*Node
	now Time
}

// begin returns a registered node that has started at 0 with the log l and the state s0.
func begin(t *testing.T, self directory.Member, level directory.SyncLevel, l Log, s0 directory.Shard) *tester {
	t.Helper()
	n := &tester{t, New(0, Config{Level: level, Lease: sec, Lag: sec}, l), 0}
	n.step(Registered{self, s0})
	return n
}

// promoted returns node 1 at 1 s, as the serving master of epoch 1.
func promoted(t *testing.T, k int, inSync ...directory.Member) *tester {
	t.Helper()
	n := begin(t, one, directory.Memory, Log{}, directory.Shard{})
	n.step(Applied{state(1, 1, k, one, inSync...)})
	n.at(sec)
	if g := n.Gates(n.now); !g.Serving || g.Epoch != 1 {
		t.Fatalf("the gates of the master are %+v", g)
	}
	return n
}

func (n *tester) step(e Event) Output { return n.Step(n.now, e) }

// at passes ticks until an instant, as a process does that is not paused.
func (n *tester) at(now Time) Output {
	for n.now+sec/4 < now {
		n.now += sec / 4
		n.step(Tick{})
	}
	n.now = now
	return n.step(Tick{})
}

// write moves the end of the log to an offset.
func (n *tester) write(end uint64) { n.step(Appended{End: end, Synced: end}) }

// ack delivers an acknowledgement of the newest stamp.
func (n *tester) ack(from directory.Member, epoch, offset uint64) Output {
	return n.step(Acked{1, Ack{From: from, Epoch: epoch, Offset: offset, Sent: n.now}})
}

// committed fails the test unless the committed offset is want.
func (n *tester) committed(want uint64) {
	n.Helper()
	if g := n.Gates(n.now); g.Committed != want {
		n.Fatalf("committed is %d, want %d", g.Committed, want)
	}
}

// leased fails the test unless the node has the lease, or has not, as wanted.
func (n *tester) leased(want bool) {
	n.Helper()
	if g := n.Gates(n.now); g.Lease != want {
		n.Fatalf("at %v the lease is %v, want %v", n.now, g.Lease, want)
	}
}

// proposal fails the test unless the output has the wanted proposal; kind 0 means none.
func (n *tester) proposal(out Output, kind directory.Kind, m directory.Member) {
	n.Helper()
	var got directory.Command
	if out.Propose != nil {
		got = *out.Propose
	}
	if got.Kind != kind || kind != 0 && got.Member() != m {
		n.Fatalf("it proposes %+v, want %d of %v", got, kind, m)
	}
}

// acked returns the acknowledgement of an output.
func acked(t *testing.T, out Output) Ack {
	t.Helper()
	if out.Ack == nil {
		t.Fatalf("the node acknowledges nothing: %+v", out)
	}
	return *out.Ack
}

func TestWhatAllMembersAcknowledgedIsCommitted(t *testing.T) {
	n := promoted(t, 1, one, two, three)
	n.write(10)
	n.ack(two, 1, 10)
	n.committed(0)
	n.ack(three, 1, 7)
	n.committed(7)
	n.ack(three, 1, 10)
	n.committed(10)
	n.ack(three, 1, 9) // an older one arrives late
	n.committed(10)
}

func TestAMasterOfLevelDiskCountsWhatItHasSynced(t *testing.T) {
	n := begin(t, one, directory.Disk, Log{}, directory.Shard{})
	n.step(Applied{state(1, 1, 0, one, one)})
	n.at(sec)
	n.step(Appended{End: 10, Synced: 4})
	n.committed(4)
	n.step(Appended{End: 10, Synced: 10})
	n.committed(10)
}

func TestNothingCommitsWithFewerThanKAndOneMembers(t *testing.T) {
	n := promoted(t, 1, one, two)
	n.write(5)
	n.ack(two, 1, 5)
	n.committed(5)
	n.step(Applied{state(1, 2, 1, one, one)}) // node 2 has registered with a new incarnation
	n.write(9)
	n.committed(5)
	n.step(Applied{state(1, 3, 0, one, one)}) // SetK
	n.committed(9)
}

func TestAcknowledgementsOfOtherEpochsAndOlderIncarnationsDoNotCount(t *testing.T) {
	n := promoted(t, 1, one, two)
	n.write(5)
	n.ack(two, 2, 5)
	n.ack(two, 0, 5)
	n.committed(0)
	n.ack(two2, 1, 5) // incarnation 1 is in sync in the state
	n.committed(0)
	n.ack(two, 1, 5) // a late message of incarnation 1
	n.committed(0)
	n.step(Applied{state(1, 2, 1, one, one, two2)})
	n.committed(5)
}

func TestAnAdditionIsCountedFromBeforeItsProposalUntilItIsOver(t *testing.T) {
	n := promoted(t, 0, one)
	n.write(5)
	n.committed(5)
	out := n.ack(two, 1, 5)
	n.proposal(out, directory.Expand, two)
	n.write(8)
	n.committed(5)
	n.ack(two, 1, 6)
	n.committed(6)
	n.step(Applied{state(1, 2, 0, one, one)}) // the Expand was refused, or another change came first
	n.committed(8)
}

func TestARemovedMemberIsWaitedForUntilTheStateHasChanged(t *testing.T) {
	n := promoted(t, 1, one, two, three)
	n.write(5)
	n.ack(two, 1, 5)
	n.ack(three, 1, 3)
	out := n.step(Leaving{three})
	n.proposal(out, directory.Shrink, three)
	n.committed(3)
	n.step(Applied{state(1, 2, 1, one, one, two)})
	n.committed(5)
}

func TestAMemberThatLeavesIsNotAddedUntilItGreetsAgainOrLagIsOver(t *testing.T) {
	for _, greets := range []bool{true, false} {
		n := promoted(t, 1, one, two, three)
		n.write(5)
		n.ack(two, 1, 5)
		n.ack(three, 1, 5)
		n.proposal(n.step(Leaving{three}), directory.Shrink, three)
		n.proposal(n.step(Leaving{two}), 0, two) // k+1 remain even without node 2
		n.proposal(n.step(Applied{state(1, 2, 1, one, one, two)}), 0, three)
		n.proposal(n.ack(three, 1, 5), 0, three)
		if greets {
			n.proposal(n.step(Greeted{2, three, 1}), directory.Expand, three)
			continue
		}
		n.now += sec
		n.ack(two, 1, 5)
		n.proposal(n.ack(three, 1, 5), 0, three)
		n.now += ms
		n.proposal(n.ack(three, 1, 5), directory.Expand, three)
	}
}

// When the member announces that it is about to stop, a proposal of the master may be in flight.
func TestAMemberLeavesWhenTheProposalInFlightIsOver(t *testing.T) {
	n := promoted(t, 1, one, two)
	n.proposal(n.ack(three, 1, 0), directory.Expand, three)
	n.ack(two, 1, 0)
	n.proposal(n.step(Leaving{two}), 0, two)
	n.proposal(n.step(Applied{state(1, 2, 1, one, one, two, three)}), directory.Shrink, two)
}

func TestOneProposalIsInFlightAndIsSentAgain(t *testing.T) {
	n := promoted(t, 0, one)
	n.proposal(n.ack(two, 1, 0), directory.Expand, two)
	n.proposal(n.ack(three, 1, 0), 0, three)
	n.proposal(n.at(n.now+sec/4), directory.Expand, two)
	n.proposal(n.at(n.now+sec/8), 0, two)
	n.ack(two, 1, 0)
	n.ack(three, 1, 0)
	n.proposal(n.step(Applied{state(1, 1, 0, one, one)}), 0, two) // a state of the version that the proposal named
	n.proposal(n.step(Applied{state(1, 2, 0, one, one, two)}), directory.Expand, three)
}

func TestAMemberThatIsSilentLeavesIfEnoughFreshOnesRemain(t *testing.T) {
	n := promoted(t, 1, one, two, three)
	n.write(5)
	n.at(n.now + 900*ms)
	n.ack(two, 1, 5)
	n.ack(three, 1, 2) // it is alive, but does not keep up
	n.proposal(n.at(n.now+50*ms), 0, three)
	n.ack(three, 1, 2)
	n.proposal(n.at(n.now+100*ms), directory.Shrink, three)
}

// A paused master hears its members again only after its first step.
func TestAMasterThatWasPausedRemovesNoMemberBeforeItHasHeardThem(t *testing.T) {
	n := promoted(t, 0, one, two, three)
	n.ack(two, 1, 0)
	n.ack(three, 1, 0)
	n.now += 3 * sec
	n.proposal(n.step(Tick{}), 0, two)
	n.proposal(n.ack(two, 1, 0), 0, three)
	n.proposal(n.at(n.now+sec), 0, three)
	n.ack(two, 1, 0)
	n.proposal(n.at(n.now+ms), directory.Shrink, three)
}

func TestWithTooFewFreshMembersNoneLeavesAndNothingIsWritten(t *testing.T) {
	n := promoted(t, 1, one, two)
	n.write(5)
	if g := n.Gates(n.now); !g.Writable {
		t.Fatalf("the gates are %+v", g)
	}
	n.proposal(n.at(n.now+1100*ms), 0, two)
	if g := n.Gates(n.now); g.Writable || !g.Serving {
		t.Errorf("without a fresh replica the gates are %+v", g)
	}
	n.proposal(n.step(Leaving{two}), 0, two)
	n.ack(two, 1, 5)
	if g := n.Gates(n.now); !g.Writable || g.Committed != 5 {
		t.Errorf("with the replica again the gates are %+v", g)
	}
}

// If two of three members are silent and k = 1, neither may leave: only one fresh member would remain.
func TestFreshMembersCountNotMembers(t *testing.T) {
	n := promoted(t, 1, one, two, three)
	n.write(5)
	n.proposal(n.at(n.now+1100*ms), 0, two)
}

func TestANodeJoinsWhenItHoldsTheFloorAndAllThatIsCommitted(t *testing.T) {
	n := begin(t, one, directory.Memory, Log{End: 8, Synced: 8}, directory.Shard{})
	n.step(Applied{state(1, 1, 0, one, one)})
	n.at(sec)
	n.proposal(n.ack(two, 1, 7), 0, two) // 7 of the 8 below the floor
	n.proposal(n.ack(two, 1, 8), directory.Expand, two)
}

func TestTheLeaseIsCountedFromTheSending(t *testing.T) {
	n := promoted(t, 1, one, two)
	n.leased(false)
	s := n.Stamp(n.now)
	n.at(n.now + 300*ms)
	n.step(Acked{1, Ack{From: two, Epoch: 1, Sent: s.Sent}})
	n.leased(true)
	n.at(s.Sent + 979*ms)
	n.leased(true)
	n.at(s.Sent + 980*ms) // 98 % of it: the replica's clock may be faster
	n.leased(false)
}

func TestTheLeaseNeedsAnAdditionThatIsNotOver(t *testing.T) {
	n := promoted(t, 0, one)
	n.leased(true)
	s := n.Stamp(n.now)
	n.proposal(n.ack(two, 1, 0), directory.Expand, two)
	n.leased(true)
	n.at(s.Sent + sec)
	n.leased(false)
	n.ack(two, 1, 0)
	n.leased(true)
}

func TestAPromotedNodeWaitsForItsPromise(t *testing.T) {
	n := begin(t, two, directory.Memory, Log{}, state(1, 1, 1, one, one, two))
	n.now = 2 * sec
	n.step(Connected{1})
	n.step(Answered{1, 1, false})
	n.now += 100 * ms
	n.step(Streamed{Link: 1, Stamp: Stamp{Sent: 77 * sec}, End: 3, Synced: 3})
	n.step(Applied{state(2, 2, 1, two, one, two)})
	n.at(n.now + 999*ms)
	if g := n.Gates(n.now); g.Epoch != 2 || g.Serving || g.Lease || g.Writable {
		t.Errorf("before its promise is over the gates are %+v", g)
	}
	n.at(n.now + ms)
	if g := n.Gates(n.now); !g.Serving || g.Committed != 0 || g.Floor != 3 {
		t.Errorf("afterwards the gates are %+v", g)
	}
}

// While an operator changes sync-lease, a replica may have a shorter one than its master.
func TestAPromiseHoldsForTheLeaseOfTheMaster(t *testing.T) {
	n := begin(t, two, directory.Memory, Log{}, state(1, 1, 1, one, one, two))
	n.step(Connected{9})
	n.step(Answered{9, 1, false})
	n.step(Streamed{Link: 9, Stamp: Stamp{Sent: 5, Lease: 10 * sec}})
	n.step(Applied{state(2, 2, 1, two, one, two)})
	n.at(10*sec - 1)
	if n.Gates(n.now).Serving {
		t.Error("the node serves while the previous master relies on its promise")
	}
	n.at(10 * sec)
	if !n.Gates(n.now).Serving {
		t.Error("the node does not serve when its promise is over")
	}
}

func TestARestartedNodeCountsAPromise(t *testing.T) {
	n := begin(t, two, directory.Disk, Log{}, state(1, 1, 1, one, one, two))
	n.step(Applied{state(2, 2, 1, two, one, two)})
	n.at(999 * ms)
	if n.Gates(n.now).Serving {
		t.Error("the node serves within a lease of its start")
	}
	n.at(sec)
	if !n.Gates(n.now).Serving {
		t.Error("the node does not serve a lease after its start")
	}
}

func TestARestartedMasterDoesNotGoOnInItsEpoch(t *testing.T) {
	s := state(3, 7, 0, one, one)
	n := begin(t, one, directory.Disk, Log{End: 4, Synced: 4}, s)
	n.at(5 * sec)
	if g := n.Gates(n.now); g.Epoch != 0 || n.Master() != 0 {
		t.Fatalf("after a restart the gates are %+v", g)
	}
	n.step(Applied{state(4, 8, 0, one, one)})
	if g := n.Gates(n.now); g.Epoch != 4 || !g.Serving {
		t.Errorf("after a Promote the gates are %+v", g)
	}
}

func TestAPromoteNamesAnIncarnation(t *testing.T) {
	n := begin(t, two2, directory.Memory, Log{}, state(1, 1, 0, one, one))
	n.step(Applied{state(2, 2, 0, two, two)}) // the state names its previous incarnation
	n.at(5 * sec)
	if g := n.Gates(n.now); g.Epoch != 0 {
		t.Errorf("the gates are %+v", g)
	}
}

func TestANodeDoesNothingBeforeItIsRegistered(t *testing.T) {
	n := &tester{t, New(0, Config{Lease: sec, Lag: sec}, Log{}), 5 * sec}
	events := []Event{Tick{}, Applied{state(1, 1, 0, one, one)}, Connected{1}, Greeted{2, two, 0}, HandOver{2}}
	for _, e := range events {
		if out := n.step(e); out.Ack != nil || out.Propose != nil || n.Gates(n.now) != (Gates{}) || n.Master() != 0 {
			t.Errorf("%T: %+v, %+v", e, out, n.Gates(n.now))
		}
	}
	if out := n.step(Connected{1}); !reflect.DeepEqual(out.Close, []Link{1}) {
		t.Errorf("a link is answered by %+v", out)
	}
}

func TestAReplicaFollowsAndAcknowledges(t *testing.T) {
	n := begin(t, two, directory.Disk, Log{End: 4, Synced: 4}, state(1, 1, 1, one, one, two))
	if n.Master() != 1 {
		t.Fatalf("the node connects to node %d", n.Master())
	}
	if n.step(Connected{9}); n.Accepts(9) || n.Self() != two || n.Epoch() != 1 {
		t.Errorf("the node takes a stream before the answer, or greets as %v with epoch %d", n.Self(), n.Epoch())
	}
	a := acked(t, n.step(Answered{9, 1, false}))
	if a != (Ack{two, 1, 4, 0}) || !n.Accepts(9) {
		t.Errorf("the acknowledgement is %+v", a)
	}
	a = acked(t, n.step(Streamed{Link: 9, Stamp: Stamp{Sent: 50}, End: 6, Synced: 4}))
	if a != (Ack{two, 1, 4, 50}) {
		t.Errorf("before the sync it acknowledges %+v", a)
	}
	a = acked(t, n.step(Appended{End: 6, Synced: 6}))
	if a != (Ack{two, 1, 6, 50}) {
		t.Errorf("after the sync it acknowledges %+v", a)
	}
}

func TestAReplicaKeepsItsDataUntilAFullResynchronisationIsComplete(t *testing.T) {
	old := Log{End: 4, Synced: 4}
	n := begin(t, two, directory.Memory, old, state(2, 2, 1, one, one))
	n.step(Connected{9})
	out := n.step(Answered{9, 2, true})
	if out.Ack != nil || n.Accepts(9) || !n.Loading(9) || n.log != old {
		t.Fatalf("the node does %+v, and has %+v", out, n.log)
	}
	n.step(Closed{9}) // the link ends
	n.step(Loaded{9, 6, 6})
	if n.log != old {
		t.Fatalf("without the link it has %+v", n.log)
	}
	n.step(Connected{10})
	n.step(Answered{10, 2, true})
	if a := acked(t, n.step(Loaded{10, 6, 6})); a.Offset != 6 {
		t.Errorf("the node acknowledges %+v", a)
	}
	if n.log != (Log{6, 6}) {
		t.Errorf("the node has %+v", n.log)
	}
}

func TestAReplicaRefusesAMasterOfAnOlderEpoch(t *testing.T) {
	n := begin(t, three, directory.Memory, Log{}, state(1, 1, 1, one, one, two, three))
	n.step(Connected{9})
	n.step(Applied{state(2, 2, 1, two, one, two, three)})
	if out := n.step(Answered{9, 1, false}); !reflect.DeepEqual(out.Close, []Link{9}) || out.Ack != nil {
		t.Errorf("the node answers %+v", out)
	}
	n.step(Connected{10})
	n.step(Answered{10, 2, false})
	out := n.step(Applied{state(3, 3, 1, one, one, two, three)})
	if !reflect.DeepEqual(out.Close, []Link{10}) || n.Accepts(10) {
		t.Errorf("at a later epoch it does %+v", out)
	}
}

// Any server could claim to be the master of an epoch that the directory has never had. A node that believed it would
// refuse each true master for ever.
func TestWhatAPeerSaysRaisesNoEpoch(t *testing.T) {
	n := begin(t, three, directory.Memory, Log{End: 4}, state(1, 1, 1, one, one, two, three))
	n.step(Connected{9})
	out := n.step(Answered{9, 1 << 60, true})
	if !reflect.DeepEqual(out.Close, []Link{9}) || n.Loading(9) || n.Epoch() != 1 {
		t.Errorf("a replica does %+v and knows epoch %d", out, n.Epoch())
	}
	m := promoted(t, 1, one, two)
	out = m.step(Greeted{7, two, 1 << 60})
	if g := m.Gates(m.now); g.Epoch != 1 || m.Epoch() != 1 || !reflect.DeepEqual(out.Close, []Link{7}) {
		t.Errorf("a master does %+v, its gates are %+v", out, g)
	}
}

func TestAnAcknowledgementOfWhatWasNotSentIsNone(t *testing.T) {
	for name, ack := range map[string]Ack{
		"of more than the log has":     {From: two, Epoch: 1, Offset: 6, Sent: sec},
		"of a stamp that was not sent": {From: two, Epoch: 1, Offset: 5, Sent: sec + 1},
	} {
		n := promoted(t, 1, one, two)
		n.write(5)
		if out := n.step(Acked{7, ack}); !reflect.DeepEqual(out.Close, []Link{7}) {
			t.Errorf("%s: it does %+v", name, out)
		}
		n.committed(0)
		n.leased(false)
		n.ack(two, 1, 5)
		n.committed(5)
		n.leased(true)
	}
}

func TestAMasterAnswersTheNewestIncarnationOfANode(t *testing.T) {
	n := promoted(t, 1, one, two)
	n.step(Greeted{7, three2, 1})
	out := n.step(Greeted{8, three, 1})
	if !reflect.DeepEqual(out.Close, []Link{8}) || out.Ack != nil {
		t.Errorf("an older incarnation gets %+v", out)
	}
	out = n.step(Greeted{9, three2, 1})
	if !reflect.DeepEqual(out.Close, []Link{7}) {
		t.Errorf("a second link gets %+v", out)
	}
}

func TestADeposedMasterAcknowledgesNothingAndFollows(t *testing.T) {
	n := promoted(t, 1, one, two)
	n.step(Greeted{7, two, 1})
	n.write(5)
	out := n.step(Applied{state(2, 2, 1, two, one, two)})
	if g := n.Gates(n.now); g != (Gates{}) || !reflect.DeepEqual(out.Close, []Link{7}) {
		t.Fatalf("the node's gates are %+v, it does %+v", g, out)
	}
	n.ack(two, 1, 5)
	n.committed(0)
	if n.Master() != 2 {
		t.Errorf("the node follows node %d", n.Master())
	}
}

func TestAHandOverGivesTheLeaseUpBeforeThePromote(t *testing.T) {
	n := promoted(t, 1, one, two)
	n.write(5)
	n.ack(two, 1, 3)
	n.leased(true)
	n.proposal(n.step(HandOver{2}), 0, two)
	if g := n.Gates(n.now); g.Writable {
		t.Error("the node writes during a hand-over")
	}
	n.leased(true)
	n.proposal(n.ack(two, 1, 5), directory.Promote, two)
	n.leased(false)
	if s := n.Stamp(n.now); !s.Released {
		t.Error("the node's stamp does not free the replica")
	}
	replica := begin(t, two, directory.Memory, Log{End: 5, Synced: 5}, state(1, 1, 1, one, one, two))
	replica.step(Connected{1})
	replica.step(Answered{1, 1, false})
	replica.step(Streamed{1, n.Stamp(n.now), 5, 5})
	replica.step(Applied{state(2, 2, 1, two, one, two)})
	if g := replica.Gates(replica.now); !g.Serving {
		t.Errorf("the gates of the new master are %+v", g)
	}
}

func TestAfterAHandOverThatFailedTheLeaseNeedsNewAcknowledgements(t *testing.T) {
	n := promoted(t, 1, one, two)
	before := n.Stamp(n.now)
	n.ack(two, 1, 0)
	n.proposal(n.step(HandOver{2}), directory.Promote, two)
	n.now += 10 * ms
	n.step(Applied{state(1, 2, 1, one, one, two)})
	n.step(Acked{1, Ack{From: two, Epoch: 1, Sent: before.Sent}})
	n.leased(false)
	if g := n.Gates(n.now); !g.Writable {
		t.Errorf("the gates are %+v", g)
	}
	n.ack(two, 1, 0) // its stamp was sent at the instant of the failure, and may have freed the replica
	n.leased(false)
	n.at(n.now + ms)
	n.ack(two, 1, 0)
	n.leased(true)
}

func TestAHandOverEndsWithAMemberThatIsNotFresh(t *testing.T) {
	n := promoted(t, 1, one, two)
	n.write(5)
	n.step(HandOver{3}) // not in sync
	if !n.Gates(n.now).Writable {
		t.Error("a hand-over to a node that is not in sync stops writes")
	}
	n.step(HandOver{2})
	n.at(n.now + 1100*ms)
	n.ack(two, 1, 5)
	if !n.Gates(n.now).Writable {
		t.Error("the hand-over goes on with a node that was silent")
	}
}

func TestAReplicaDoesNotAnswerAsMaster(t *testing.T) {
	n := begin(t, two, directory.Memory, Log{}, state(1, 1, 1, one, one, two))
	if out := n.step(Greeted{3, three, 1}); !reflect.DeepEqual(out.Close, []Link{3}) {
		t.Errorf("a greeting gets %+v", out)
	}
	n.ack(three, 1, 5)
	n.step(Leaving{three})
	n.step(HandOver{3})
	if n.Gates(n.now) != (Gates{}) || n.Proposal() != nil {
		t.Errorf("the node's gates are %+v", n.Gates(n.now))
	}
}

// An acknowledgement of an entry takes 50 ms, and one comes each 10 ms: the members never have all.
func TestMembersThatAreAlwaysAShortTimeBehindAreFresh(t *testing.T) {
	n := promoted(t, 1, one, two, three)
	for i := range 500 {
		n.at(sec + Time(i)*10*ms)
		n.write(uint64(i+1) * 10)
		for _, m := range []directory.Member{two, three} {
			n.proposal(n.ack(m, 1, uint64(max(i-4, 0))*10), 0, directory.Member{})
		}
		if !n.Gates(n.now).Writable {
			t.Fatalf("after %v the master takes no writes", n.now)
		}
	}
}

// The disk of a master hangs, or is full: members get nothing that it has not synced. It removes none of them, so that one can be promoted.
func TestAMasterWhoseDiskHangsRemovesNoMember(t *testing.T) {
	n := begin(t, one, directory.Disk, Log{}, directory.Shard{})
	n.step(Applied{state(1, 1, 1, one, one, two, three)})
	for i := range 400 {
		n.proposal(n.at(sec+Time(i)*10*ms), 0, directory.Member{})
		synced := uint64(min(i, 100)) * 10
		n.step(Appended{End: uint64(min(i, 105)) * 10, Synced: synced})
		n.proposal(n.ack(two, 1, synced), 0, directory.Member{})
		if i%10 == 5 { // the other one is a bit later
			n.proposal(n.ack(three, 1, synced), 0, directory.Member{})
		}
	}
	n.step(Appended{End: 1050, Synced: 1050})
	n.at(n.now + 10*ms)
	n.proposal(n.ack(two, 1, 1050), directory.Shrink, three) // the disk works again, and one member is silent
}
