package browsertest_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/ebbdb/ebb/console/browsertest"
)

// trio is the group of node 1, its master, which has lost node 2 and refuses writes.
type trio struct{}

func (trio) Lease() bool { return true }

func (trio) Info(put func(name string, value any)) {
	put("group_state", "leading")
	put("group_node", 1)
	put("group_epoch", int64(7))
	put("group_master", 1)
	put("group_min_sync_replicas", 2)
	put("group_in_sync", 2)
	put("group_self_in_sync", true)
	put("group_accepted_losses", int64(0))
	put("group_writable", false)
	put("group_lease", true)
	put("group_member0", "node=2,incarnation=1,in_sync=0,linked=0,offset=0,behind_bytes=9,behind_ms=12")
	put("group_member1", "node=3,incarnation=1,in_sync=1,linked=1,offset=9,behind_bytes=0,behind_ms=0")
	put("group_leader", 3)
	put("group_voters", 3)
}

func TestAMemberOfAGroupOffersPromoteInThePlaceOfFailover(t *testing.T) {
	s := browsertest.Serve(t)
	replica := browsertest.Serve(t, "--replicaof", fmt.Sprintf("127.0.0.1 %s", s.Addr[len("127.0.0.1:"):]))
	browsertest.Wait(t, "the replica follows", func() bool {
		v := replica.Do("ROLE")
		return len(v.Elems) > 3 && v.Elems[3].Str == "connected"
	})
	p := browsertest.Open(t, s.URL+"#/server", browsertest.Options{})
	p.Eventually(button("Fail over to a replica"))
	p.Eventually(`!text('#screen .facts').includes('Epoch')`)

	s.Service().JoinGroup(trio{})
	log := s.Service().DB.Log()
	log.SetCommitted(log.Holds().Term(), math.MaxInt64) // no reply waits
	const promote = "Make node 3 the master"
	p.Eventually(button(promote))
	if n := p.Number(`byText('button', 'Fail over').length + byText('button', 'Make node').length`); n != 1 {
		t.Errorf("the page has %v buttons that change the master, want 1", n)
	}
	for _, fact := range []string{`Group\s+master`, `Writes\s+refused \(NOREPLICAS\)`, `Master \(node\)\s+1`, `Epoch\s+7`, `Nodes in sync\s+2`,
		`\(k\)\s+2`, `Directory led by node\s+3`, `Nodes with a vote\s+3`} {
		p.Eventually(`/` + fact + `/.test(text('#screen'))`)
	}
	p.Shot("group-server")
	p.Click(button(promote))
	p.Eventually(`text('dialog[open] pre.command') === 'GROUP PROMOTE 3'`)
	p.Press(kb.Escape)
	p.Screen("now")
	p.Eventually(`text('#screen .attention').includes('NOREPLICAS')`)

	s.Do("ACL", "SETUSER", "default", "-group|promote")
	q := browsertest.Open(t, s.URL+"#/server", browsertest.Options{Width: 390, Height: 844, Mobile: true, Lang: "zh-CN"})
	q.Eventually(`/写入\s+拒绝（NOREPLICAS）/.test(text('#screen'))`)
	q.Eventually(`(` + button("让节点 3 成为主节点") + `).disabled && (` + button("让节点 3 成为主节点") + `).title.includes('group|promote')`)
	if over := q.Number(`document.documentElement.scrollWidth - innerWidth`); over > 0 {
		t.Errorf("the page is %v px wider than the phone", over)
	}
	q.Shot("group-server-phone-zh")
}
