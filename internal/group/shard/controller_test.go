package shard

import (
	"testing"

	"github.com/ebbdb/ebb/internal/group/directory"
)

// promotes fails the test unless the controller proposes the Promote of node want; 0 means none.
func promotes(t *testing.T, c *Controller, now Time, s directory.Shard, want directory.NodeID) {
	t.Helper()
	got, ok := c.Decide(now, s)
	if got.Node != want || ok != (want != 0) {
		t.Fatalf("at %v it proposes %+v, want node %d", now, got, want)
	}
	if ok && (got.Kind != directory.Promote || got.Epoch != s.Epoch || got.Version != s.Version || !got.Drop) {
		t.Fatalf("the controller proposes %+v in the state %+v", got, s)
	}
}

func TestTheControllerPromotesTheFurthestMemberInSyncOfASilentMaster(t *testing.T) {
	c, s := NewController(2*sec), state(1, 5, 1, one, one, two, three)
	c.Receive(0, Report{From: one, Master: 1, End: 9})
	promotes(t, c, 0, s, 0)
	promotes(t, c, 1900*ms, s, 0)
	c.Receive(1950*ms, Report{From: two, End: 7})
	c.Receive(1950*ms, Report{From: three, End: 8})
	c.Receive(1950*ms, Report{From: directory.Member{Node: 4, Incarnation: 1}, End: 99}) // not in sync
	promotes(t, c, 2*sec, s, 3)
	c.Receive(2*sec, Report{From: one, Master: 1, End: 9})
	promotes(t, c, 2100*ms, s, 0)
}

func TestAMasterOfAnOlderEpochOrIncarnationIsSilent(t *testing.T) {
	s := state(2, 5, 0, two, one, two)
	for name, r := range map[string]Report{
		"of an older epoch":     {From: two, Master: 1},
		"restarted, as replica": {From: two, Master: 0},
	} {
		c := NewController(2 * sec)
		promotes(t, c, 0, s, 0)
		c.Receive(2*sec, r)
		promotes(t, c, 2*sec, s, 2)
		c.Receive(2*sec, Report{From: two2, Master: 2}) // a new incarnation is not in sync
		promotes(t, c, 2*sec, s, 0)
		c.Receive(2*sec, Report{From: one, End: 1})
		if promotes(t, c, 2*sec, s, 1); t.Failed() {
			t.Log(name)
		}
	}
}

func TestTheControllerGivesANewMasterTime(t *testing.T) {
	c := NewController(2 * sec)
	c.Receive(3*sec, Report{From: one})
	promotes(t, c, 3*sec, state(1, 1, 0, two, one, two), 0)
	c.Receive(5*sec, Report{From: one})
	promotes(t, c, 5*sec, state(2, 2, 0, two, one, two), 0)
	promotes(t, c, 6900*ms, state(2, 2, 0, two, one, two), 0)
	promotes(t, c, 6999*ms, state(2, 2, 0, two, one, two), 0)
	c.Receive(7*sec, Report{From: one})
	promotes(t, c, 7*sec, state(2, 2, 0, two, one, two), 1)
}

func TestAStuckMasterIsReplacedIfEnoughOthersAreNot(t *testing.T) {
	c, s := NewController(2*sec), state(1, 5, 1, one, one, two, three)
	report := func(now Time, master, others bool) {
		c.Receive(now, Report{From: one, Master: 1, End: 9, Stuck: master})
		c.Receive(now, Report{From: two, End: 7})
		c.Receive(now, Report{From: three, End: 8, Stuck: others})
	}
	promotes(t, c, 0, s, 0)
	report(1*sec, true, false)
	promotes(t, c, 1*sec, s, 0)
	report(2*sec, false, false)
	promotes(t, c, 2*sec, s, 0)
	report(3900*ms, true, false)
	promotes(t, c, 3900*ms, s, 0)
	report(4*sec, true, true) // a single other member that is not stuck is fewer than k+1
	promotes(t, c, 4*sec, s, 0)
	report(4100*ms, true, false)
	promotes(t, c, 4100*ms, s, 3)
}

func TestAMasterThatIsStuckFromItsStartStaysLonger(t *testing.T) {
	c, masters := NewController(2*sec), []directory.Member{one, two, one, two, one, two, one, two}
	since, got := Time(0), []Time(nil)
	for epoch, now := 1, Time(0); epoch <= len(masters); now += 100 * ms {
		master := masters[epoch-1]
		for _, m := range []directory.Member{one, two, three} {
			r := Report{From: m, End: 1}
			if m == master {
				r.Master, r.Stuck = uint64(epoch), true
			}
			c.Receive(now, r)
		}
		if _, ok := c.Decide(now, state(uint64(epoch), 5, 0, master, one, two, three)); ok {
			got, since = append(got, now-since), now
			epoch++
		}
	}
	want := []Time{2 * sec, 4 * sec, 8 * sec, 16 * sec, 32 * sec, 60 * sec, 60 * sec, 60 * sec}
	for i, d := range got { // a new epoch begins at the next call
		if d < want[i] || d > want[i]+200*ms {
			t.Errorf("the masters were replaced after %v, want %v", got, want)
			break
		}
	}
	now := since + 70*sec
	s := state(9, 5, 0, one, one, two, three)
	promotes(t, c, now, s, 0)
	c.Receive(now+2*sec, Report{From: one, Master: 9, Proven: true})
	promotes(t, c, now+2*sec, s, 0)
	for _, r := range []Report{{From: one, Master: 9, Stuck: true}, {From: two}, {From: three}} {
		c.Receive(now+4*sec, r)
	}
	if promotes(t, c, now+4*sec, s, 3); t.Failed() { // it has not been the master yet
		t.Log("a master that has proven itself ends the patience")
	}
}

// A new master is not stuck before sync-lag is over. That proves nothing.
func TestAMasterThatIsNotStuckYetDoesNotEndThePatience(t *testing.T) {
	c := NewController(2 * sec)
	since, got := Time(0), []Time(nil)
	masters := []directory.Member{one, two, three, one, two}
	for epoch, now := 1, Time(0); epoch <= len(masters); now += 100 * ms {
		master := masters[epoch-1]
		for _, m := range []directory.Member{one, two, three} {
			r := Report{From: m, End: 1}
			if m == master {
				r.Master, r.Stuck = uint64(epoch), now-since > 2300*ms // its promise, and sync-lag
			}
			c.Receive(now, r)
		}
		if c, ok := c.Decide(now, state(uint64(epoch), 5, 0, master, one, two, three)); ok {
			if next := masters[epoch%len(masters)]; epoch < len(masters) && c.Node != next.Node {
				t.Errorf("after node %d it promotes node %d, want %d: each in turn", master.Node, c.Node, next.Node)
			}
			got, since = append(got, now-since), now
			epoch++
		}
	}
	for i, d := range got {
		if want := 2300*ms + 2*sec<<i; d < want || d > want+300*ms {
			t.Errorf("the masters were replaced after %v, want the next one after twice the patience", got)
			break
		}
	}
}

// Members that were stuck as masters come last, however much they have.
func TestAStuckMasterIsNotPromotedAgainBeforeOthers(t *testing.T) {
	c := NewController(2 * sec)
	report := func(now Time, epoch uint64, master directory.Member) {
		for i, m := range []directory.Member{one, two, three} {
			r := Report{From: m, End: uint64(9 - i)}
			if m == master {
				r.Master, r.Stuck = epoch, true
			}
			c.Receive(now, r)
		}
	}
	first, second := state(1, 5, 1, one, one, two, three), state(2, 6, 1, two, one, two, three)
	promotes(t, c, 0, first, 0)
	report(2*sec, 1, one)
	promotes(t, c, 2*sec, first, 2)
	promotes(t, c, 3*sec, second, 0)
	report(9*sec, 2, two)
	promotes(t, c, 9*sec, second, 3)
}

// A leader that has not looked for a while does not take that while for the time that the master was stuck.
func TestThePatienceCountsHeartbeatsThatArriveBetweenLooks(t *testing.T) {
	c, s := NewController(2*sec), state(1, 5, 0, one, one, two)
	promotes(t, c, 0, s, 0)
	c.Receive(9900*ms, Report{From: one, Master: 1, Proven: true})
	c.Receive(10*sec, Report{From: one, Master: 1, Stuck: true})
	c.Receive(10*sec, Report{From: two})
	promotes(t, c, 10*sec, s, 0)
	c.Receive(11900*ms, Report{From: one, Master: 1, Stuck: true})
	c.Receive(11900*ms, Report{From: two})
	promotes(t, c, 11900*ms, s, 2)
}

func TestWhereAllMembersAreStuckASilentMasterIsReplaced(t *testing.T) {
	c, s := NewController(2*sec), state(1, 5, 0, one, one, two, three)
	promotes(t, c, 0, s, 0)
	c.Receive(2*sec, Report{From: two, End: 7, Stuck: true})
	c.Receive(2*sec, Report{From: three, End: 8, Stuck: true})
	promotes(t, c, 2*sec, s, 3)
	c.Receive(2*sec, Report{From: two, End: 7})
	promotes(t, c, 2*sec, s, 2)
}
