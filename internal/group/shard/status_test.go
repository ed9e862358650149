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
	if got, want := lines(n), "state:leading node:1 incarnation:1 epoch:1 version:1 master:1 min_sync_replicas:1 in_sync:2 "+
		"self_in_sync:true accepted_losses:0 writable:true lease:true committed_offset:7 floor_offset:0 "+
		"member0:node=2,incarnation=1,in_sync=1,linked=0,offset=7,behind_bytes=3,behind_ms=0"; got != want {
		t.Errorf("a master:\n%s, want\n%s", got, want)
	}
	r := begin(t, two, directory.Memory, Log{}, state(3, 9, 0, one, one))
	if got, want := lines(r), "state:searching node:2 incarnation:1 epoch:3 version:9 master:1 min_sync_replicas:0 in_sync:1 "+
		"self_in_sync:false accepted_losses:0 member0:node=1,incarnation=1,in_sync=1"; got != want {
		t.Errorf("a replica:\n%s, want\n%s", got, want)
	}
}

// stuck fails the test unless the master is stuck as wanted.
func (n *tester) stuck(want bool) {
	n.Helper()
	if s := n.Status(n.now); s.Stuck != want || want && s.Proven() {
		n.Fatalf("at %v the master is stuck: %v, want %v: %+v", n.now, s.Stuck, want, s.Gates)
	}
}

func TestAMasterWhoseMembersAreGoneIsStuck(t *testing.T) {
	n := promoted(t, 1, one, two, three)
	if n.Status(n.now).Proven() {
		t.Error("a master that no member has acknowledged is proven")
	}
	n.write(10)
	n.ack(two, 1, 10)
	n.ack(three, 1, 10)
	n.stuck(false)
	if !n.Status(n.now).Proven() {
		t.Error("a master that all members have acknowledged is not proven")
	}
	n.at(2 * sec)
	n.stuck(false)
	n.at(2001 * ms) // nothing is written, and nothing could be
	n.stuck(true)
	n.ack(two, 1, 10)
	n.ack(three, 1, 10)
	n.stuck(false)
	n.step(HandOver{2})
	n.at(9 * sec)
	n.stuck(false) // it waits for the directory
}

// The members have acknowledged all that the log held at no time for longer than sync-lag, so the master refuses writes. They come nearer.
func TestAMasterWhoseMembersComeNearerIsNotStuck(t *testing.T) {
	n := promoted(t, 1, one, two, three)
	n.write(1000)
	for i := range 20 {
		n.at(sec + Time(i+1)*500*ms)
		n.ack(two, 1, uint64(i+1)*10)
		n.ack(three, 1, uint64(i+1)*20)
		n.stuck(false)
	}
	if n.Gates(n.now).Writable {
		t.Error("the master takes writes")
	}
	n.at(n.now + 1001*ms)
	n.stuck(true)
}

// A disk that hangs returns no error.
func TestAMasterWhoseFilesDoNotGetOnIsStuck(t *testing.T) {
	n := begin(t, one, directory.Disk, Log{}, directory.Shard{})
	n.step(Applied{state(1, 1, 1, one, one, two, three)})
	n.at(sec)
	for i := range 30 {
		n.at(sec + Time(i)*100*ms)
		n.step(Appended{End: 100, Synced: uint64(min(i, 5))})
		n.ack(two, 1, 100)
		n.ack(three, 1, 100)
		n.stuck(i > 15)
	}
}
