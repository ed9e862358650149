package shard

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/group/directory"
)

// is fails the test unless the node is in state want.
func (n *tester) is(want State) {
	n.Helper()
	if got := n.Status(n.now).State; got != want {
		n.Fatalf("at %v it is %v, want %v", n.now, got, want)
	}
}

func TestTheStatesOfANode(t *testing.T) {
	n := &tester{t, New(0, Config{Lease: sec, Lag: sec}, Log{}), 0}
	n.is(Starting)
	n.step(Connected{5})
	n.is(Starting)
	n.step(Registered{one, state(1, 1, 1, two, one, two, three)})
	n.is(Searching)
	n.step(Connected{6})
	n.is(Searching)
	n.step(Answered{6, 1, true})
	n.is(Loading)
	n.step(Loaded{6, 10, 10})
	n.is(Following)
	n.step(Closed{6})
	n.is(Searching)
	n.now = sec / 2
	n.step(Applied{state(2, 2, 1, one, one, two, three)})
	n.is(Promoted)
	n.at(sec)
	n.is(Recovering)
	n.ack(two, 2, 10)
	n.is(Recovering)
	n.ack(three, 2, 10)
	n.is(Leading)
	n.step(HandOver{2})
	n.is(HandingOver)
	n.step(Applied{state(3, 3, 1, two, one, two, three)})
	n.is(Searching)
}

func TestAReplicaOfAnOlderEpochSearches(t *testing.T) {
	n := begin(t, one, directory.Memory, Log{}, state(1, 1, 1, two, one, two))
	n.step(Connected{6})
	n.step(Answered{6, 1, false})
	n.is(Following)
	n.step(Applied{state(2, 2, 1, three, one, two, three)})
	n.is(Searching)
}

func TestAMasterKnowsHowFarTheOthersAre(t *testing.T) {
	n := promoted(t, 1, one, two, three)
	four := directory.Member{Node: 4, Incarnation: 3}
	n.write(10)
	n.step(Greeted{2, two, 1})
	n.ack(two, 1, 10)
	n.ack(three, 1, 7)
	n.ack(four, 1, 4)
	n.at(1500 * ms)
	want := []Progress{
		{Member: two, InSync: true, Linked: true, Acked: 10},
		{Member: three, InSync: true, Acked: 7, Behind: 3, Since: 500 * ms},
		{Member: four, Acked: 4, Behind: 6, Since: 500 * ms},
	}
	if got := n.Status(n.now).Members; !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, want %+v", got, want)
	}
	n.ack(four, 1, 10)
	if got := n.Status(n.now).Members[2]; got.Change != directory.Expand || got.InSync || got.Behind != 0 || got.Since != 0 {
		t.Errorf("a node that is to join: %+v", got)
	}
}

func TestInfoShowsTheStateOfANode(t *testing.T) {
	lines := func(n *tester) string {
		var all []string
		n.Status(n.now).Info(func(name string, value any) {
			all = append(all, fmt.Sprintf("%s:%v", strings.TrimPrefix(name, "group_"), value))
		})
		return strings.Join(all, " ")
	}
	n := promoted(t, 1, one, two)
	n.write(10)
	n.ack(two, 1, 7)
	if got, want := lines(n), "state:leading node:1 incarnation:1 epoch:1 master:1 min_sync_replicas:1 in_sync:2 self_in_sync:true "+
		"accepted_losses:0 writable:true lease:true committed_offset:7 floor_offset:0 "+
		"member0:node=2,incarnation=1,in_sync=1,linked=0,offset=7,behind_bytes=3,behind_ms=0"; got != want {
		t.Errorf("a master:\n%s, want\n%s", got, want)
	}
	r := begin(t, two, directory.Memory, Log{}, state(3, 9, 0, one, one))
	if got, want := lines(r), "state:searching node:2 incarnation:1 epoch:3 master:1 min_sync_replicas:0 in_sync:1 self_in_sync:false "+
		"accepted_losses:0 member0:node=1,incarnation=1,in_sync=1"; got != want {
		t.Errorf("a replica:\n%s, want\n%s", got, want)
	}
}
