package console

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/embedded"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
)

// leader is the group of a master, with the nodes 1 to 3.
type leader struct{ writable bool }

func (leader) Lease() bool { return true }

func (g leader) Info(put func(name string, value any)) {
	put("group_state", "leading")
	put("group_node", 2)
	put("group_incarnation", int64(1))
	put("group_epoch", int64(7))
	put("group_version", int64(12))
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

// trio is a group of which this server is node 2. lines are those of GROUP STATUS, after those of INFO.
type trio struct {
	session.Member
	info  func(put func(name string, value any))
	lines []string
}

func (g trio) Lease() bool                           { return true }
func (g trio) Info(put func(name string, value any)) { g.info(put) }
func (g trio) Status(put func(name string, value any)) {
	g.info(put)
	for i, line := range g.lines {
		put("group_peer"+strconv.Itoa(i), line)
	}
}

func (g trio) Numbers() (n admin.GroupNumbers) { return n }

// inGroup returns a bench whose server is a member of a group.
func inGroup(t *testing.T, g session.Member, o Options) *bench {
	t.Helper()
	var hooks session.Hooks
	db := engine.Open(engine.Options{Hooks: &hooks})
	t.Cleanup(db.Close)
	svc, err := session.NewService(session.Options{DB: db, Table: servercmd.Table, Group: g}, &hooks)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(svc.Close)
	return newBenchOn(t, embedded.Lend(svc), nil, o)
}

// peers are the lines about the nodes 1, a server that has been silent for 3 s, 2, and 3, a witness.
var peers = []string{
	"node=1,address=a:7379,clients=a:6379,voter=1,data=1,incarnation=3,level=memory,removed=0,silent=1," +
		"heard_ms=3000,master_of_epoch=0,offset=5",
	"node=2,address=b:7379,clients=b:6379,voter=1,data=1,incarnation=1,level=memory,removed=0,silent=0," +
		"heard_ms=90,master_of_epoch=7,offset=8",
	"node=3,address=c:7379,clients=,voter=1,data=0,incarnation=1,level=memory,removed=0,silent=0," +
		"heard_ms=90,master_of_epoch=0,offset=0",
}

// groups is the answer of api/group.
type groups struct {
	Group  *memberRow
	Nodes  []nodeRow
	Listed bool
	Denied []string
}

func TestTheMasterShowsItsGroupAsGROUPSTATUSDoes(t *testing.T) {
	b := inGroup(t, trio{info: leader{writable: true}.Info, lines: peers}, Options{})
	var got groups
	b.get("api/group", &got)
	g := got.Group
	if g == nil || g.Writable == nil || g.Lease == nil {
		t.Fatalf("a member has %+v", g)
	}
	if !*g.Writable || !*g.Lease || g.State != "leading" || g.Node != 2 || !g.IsIn || g.Epoch != 7 || g.Version != 12 || g.Master != 2 ||
		g.InSync != 2 || g.K != 1 || g.Leader != 3 || g.Voters != 3 || g.Losses != 0 || !got.Listed {
		t.Errorf("a member has %+v", g)
	}
	// The line about node 3 in INFO names a replica in sync, which the list does not contradict.
	want := []nodeRow{
		{Node: 1, Addr: "a:6379", Role: "out", Silent: 3000, Incarnation: 3, Link: "down", Offset: "5", Behind: -1, Since: -1},
		{Node: 2, Addr: "b:6379", IsThis: true, Role: "master", Silent: -1, Incarnation: 1, Offset: "9", Behind: -1, Since: -1},
		{Node: 3, Addr: "c:7379", IsPort: true, Role: "insync", Silent: -1, Incarnation: 1, Link: "up", Offset: "9", Next: true},
	}
	if !slices.Equal(got.Nodes, want) {
		t.Errorf("the nodes are\n%+v, want\n%+v", got.Nodes, want)
	}
	var replication struct{ Grouped bool }
	if b.get("api/replication", &replication); !replication.Grouped {
		t.Error("api/replication does not say that the server is in a group")
	}
	var m me
	if b.get("api/me", &m); !m.Grouped {
		t.Error("api/me does not say that the server is in a group")
	}
}

// The roles of nodes by their lines.
func TestTheRolesOfTheNodesOfAGroup(t *testing.T) {
	member := map[string]string{"group_node": "2", "group_master": "1", "group_incarnation": "4", "group_state": "following",
		"group_self_in_sync": "1", "group_member0": "node=1,incarnation=3,in_sync=1"}
	master := map[string]string{"group_node": "2", "group_master": "2", "group_incarnation": "4", "group_state": "leading",
		"group_self_in_sync": "1", "group_writable": "1",
		"group_member0": "node=1,incarnation=3,in_sync=0,linked=1,offset=60,behind_bytes=50,behind_ms=7"}
	const three = "node=3,"
	const one, two = "node=1,clients=a:1,voter=1,data=1,incarnation=3,", "node=2,clients=b:1,voter=1,data=1,incarnation=4,"
	for _, x := range []struct {
		what  string
		info  map[string]string
		lines []string
		want  string
	}{
		{"a member of a healthy group", member, []string{one + "offset=70", two + "offset=60", three + "voter=1,data=0"},
			"1 master 70 / 2 insync up 60 next / 3 witness"},
		{"a member whose master is silent", with(member, "group_state", "searching"),
			[]string{one + "silent=1,heard_ms=900,offset=70", two + "offset=60", three + "voter=1,data=0,silent=1,heard_ms=70"},
			"1 master 70 silent=900 / 2 insync down 60 next / 3 witness silent=70"},
		{"a member that loads", with(with(member, "group_state", "loading"), "group_self_in_sync", "0"),
			[]string{one, two, three + "voter=1,data=0"},
			"1 master / 2 catching loading / 3 witness"},
		{"a master with a node that catches up", master, []string{one + "offset=1", two, three + "silent=1"},
			"1 catching up 60 behind=50/7/0.50 / 2 master 110 / 3  down silent=0"},
		{"a node that has not registered, and a removed one", master, []string{"node=1,data=1,voter=1", two, three + "removed=1,silent=1"},
			"1 catching up 60 behind=50/7/0.50 / 2 master 110 / 3 removed silent=0"},
		{"a node that starts", member, []string{one, two, three + "data=1"}, "1 master / 2 insync up next / 3 starting"},
		{"a user without GROUP STATUS", master, nil, "1 catching up 60 behind=50/7/0.50 / 2 master 110"},
		{"a server that loads its data", map[string]string{"group_node": "0", "group_state": "starting"}, nil, ""},
	} {
		info := maps.Clone(x.info)
		for i, line := range x.lines {
			info["group_peer"+strconv.Itoa(i)] = line
		}
		var got []string
		for _, r := range nodesOf(info, 100) {
			got = append(got, inWords(r))
		}
		if all := strings.Join(got, " / "); all != x.want {
			t.Errorf("%s shows\n%s, want\n%s", x.what, all, x.want)
		}
	}
}

// with returns a copy of a map with another value.
func with(f map[string]string, name, value string) map[string]string {
	f = maps.Clone(f)
	f[name] = value
	return f
}

// inWords returns a row in a few words.
func inWords(r nodeRow) string {
	words := fmt.Sprint(r.Node, " ", r.Role)
	for _, w := range []string{r.Link, r.Offset} {
		if w != "" {
			words += " " + w
		}
	}
	if r.Behind >= 0 {
		words += fmt.Sprintf(" behind=%d/%d/%.2f", r.Behind, r.Since, r.Share)
	}
	if r.Silent >= 0 {
		words += fmt.Sprint(" silent=", r.Silent)
	}
	if r.Next {
		words += " next"
	}
	return words
}

// Without the permission for GROUP STATUS, a user sees the nodes that INFO names; without that for INFO, nothing.
func TestTheGroupOfAUserWithFewPermissions(t *testing.T) {
	b := inGroup(t, trio{info: leader{writable: true}.Info, lines: peers},
		Options{Access: func(*http.Request) (string, bool) { return "support", true }})
	b.admin("ACL", "SETUSER", "support", "on", "nopass", "-@all", "+info")
	var got groups
	b.get("api/group", &got)
	if got.Group == nil || got.Listed || len(got.Nodes) != 3 || got.Nodes[0].Addr != "" || got.Nodes[0].Silent >= 0 || len(got.Denied) > 0 {
		t.Errorf("with INFO alone: %+v", got)
	}
	b.admin("ACL", "SETUSER", "support", "-info", "+group|status")
	got = groups{}
	if b.get("api/group", &got); got.Group == nil || !got.Listed || len(got.Nodes) != 3 || len(got.Denied) > 0 {
		t.Errorf("with GROUP STATUS alone: %+v", got)
	}
	b.admin("ACL", "SETUSER", "support", "-group|status")
	got = groups{}
	if b.get("api/group", &got); got.Group != nil || len(got.Nodes) > 0 || !slices.Equal(got.Denied, []string{"GROUP STATUS", "INFO"}) {
		t.Errorf("with neither: %+v", got)
	}
}

func TestAServerWithoutAGroupHasNone(t *testing.T) {
	b := newBench(t, Options{})
	if status, body := b.ask("GET", "api/group", ""); status != http.StatusConflict || !strings.Contains(body, "belongs to no group") {
		t.Errorf("api/group: %d %s", status, body)
	}
	var m me
	if b.get("api/me", &m); m.Grouped {
		t.Error("api/me says that the server is in a group")
	}
	if _, body := b.ask("GET", "api/replication", ""); !strings.Contains(body, `"grouped":false`) {
		t.Errorf("api/replication: %s", body)
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
