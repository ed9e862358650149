package console

import (
	"slices"
	"testing"
)

// leader is the group of a master, with the nodes 1 to 3.
type leader struct{ writable bool }

func (leader) Lease() bool { return true }

func (g leader) Info(put func(name string, value any)) {
	put("group_state", "leading")
	put("group_node", 2)
	put("group_incarnation", int64(1))
	put("group_epoch", int64(7))
	put("group_master", 2)
	put("group_min_sync_replicas", 1)
	put("group_in_sync", 2)
	put("group_self_in_sync", true)
	put("group_accepted_losses", int64(0))
	put("group_writable", g.writable)
	put("group_lease", true)
	put("group_member0", "node=1,incarnation=3,in_sync=0,linked=0,offset=0,behind_bytes=9,behind_ms=12")
	put("group_member1", "node=3,incarnation=1,in_sync=1,linked=1,offset=9,behind_bytes=0,behind_ms=0")
	put("group_leader", 3)
	put("group_voters", 3)
}

// memberships is the part of api/replication that describes the group.
type memberships struct{ Group *memberRow }

func TestAMemberShowsItsGroupAsINFODoes(t *testing.T) {
	b := newBench(t, Options{})
	var alone memberships
	if b.get("api/replication", &alone); alone.Group != nil {
		t.Errorf("a server without a group has %+v", alone.Group)
	}
	b.svc.JoinGroup(leader{writable: true})
	var got memberships
	b.get("api/replication", &got)
	g := got.Group
	if g == nil || g.Writable == nil || g.Lease == nil {
		t.Fatalf("a member has %+v", g)
	}
	if !*g.Writable || !*g.Lease || g.State != "leading" || g.Node != 2 || !g.IsIn || g.Epoch != 7 || g.Master != 2 ||
		g.InSync != 2 || g.K != 1 || g.Leader != 3 || g.Voters != 3 || g.Losses != 0 {
		t.Errorf("a member has %+v", g)
	}
	if !slices.Equal(g.Next, []int64{3}) {
		t.Errorf("the nodes %v can become the master, want that in sync", g.Next)
	}
}

// A replica knows no offsets of other nodes, and is itself a candidate for promotion.
func TestAReplicaOffersTheNodesInSync(t *testing.T) {
	g := memberOf(map[string]string{"group_state": "following", "group_node": "3", "group_master": "2", "group_self_in_sync": "1",
		"group_member0": "node=1,incarnation=3,in_sync=1", "group_member1": "node=2,incarnation=1,in_sync=1"})
	if !slices.Equal(g.Next, []int64{1, 3}) || g.Writable != nil || g.Lease != nil || g.Voters != 0 {
		t.Errorf("a replica has %+v", g)
	}
}

func TestNowNamesAGroupThatRefusesWrites(t *testing.T) {
	b := newBench(t, Options{})
	codes := func() (all []string) {
		b.hub.tick()
		for _, a := range b.hub.latest.Attention {
			all = append(all, a.Code)
		}
		return all
	}
	if got := codes(); slices.Contains(got, "group") {
		t.Errorf("without a group: %q", got)
	}
	b.svc.JoinGroup(leader{writable: true})
	if got := codes(); slices.Contains(got, "group") {
		t.Errorf("while the group takes writes: %q", got)
	}
	b.svc.JoinGroup(leader{})
	if got := codes(); !slices.Contains(got, "group") {
		t.Errorf("while the group refuses writes: %q", got)
	}
}
