package browsertest_test

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/console/browsertest"
	"github.com/ebbdb/ebb/internal/loadgen"
	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// trio is a group of three processes with consoles.
type trio struct {
	t     *testing.T
	nodes []*realserver.Process
	urls  []string // of the consoles
}

// startTrio starts a group with k = 1 whose master is node 1, and waits until all nodes are in sync.
func startTrio(t *testing.T) *trio {
	t.Helper()
	g := &trio{t: t}
	var peers []string
	for range 3 {
		p, own, http := realserver.NewProcess(t, realserver.Ebb(t)), realserver.FreePort(t), realserver.FreePort(t)
		p.Args("--group-port", strconv.Itoa(own), "--sentinel-port", strconv.Itoa(realserver.FreePort(t)),
			"--http", fmt.Sprint("127.0.0.1:", http), "--min-sync-replicas", "1")
		peers = append(peers, net.JoinHostPort("127.0.0.1", strconv.Itoa(own)))
		g.nodes, g.urls = append(g.nodes, p), append(g.urls, fmt.Sprintf("http://127.0.0.1:%d/console/#/server", http))
	}
	for _, p := range g.nodes {
		p.Args("--group", strings.Join(peers, ","))
		if err := p.Begin(); err != nil {
			t.Fatal(err)
		}
	}
	browsertest.Wait(t, "all nodes are in sync", func() bool {
		return g.says(0, "group_state:leading", "group_in_sync:3", "group_voters:3")
	})
	return g
}

// try runs a command at a node, on a connection of its own: a node that ceases to be the master closes those of its clients.
func (g *trio) try(i int, args ...any) (v conn.Value, err error) {
	c, err := loadgen.Target{Addr: g.nodes[i].Addr()}.Open(g.t.Context())
	if err != nil {
		return v, err
	}
	defer func() { _ = c.Close() }()
	if v, err = c.Do(g.t.Context(), args...); err == nil {
		err = v.Err()
	}
	return v, err
}

// do runs a command at a node. An error reply fails the test.
func (g *trio) do(i int, args ...any) {
	g.t.Helper()
	if _, err := g.try(i, args...); err != nil {
		g.t.Fatalf("%v: %v", args[0], err)
	}
}

// says reports whether GROUP STATUS of a node has all texts.
func (g *trio) says(i int, texts ...string) bool {
	v, err := g.try(i, "GROUP", "STATUS")
	for _, text := range texts {
		if err != nil || !strings.Contains(v.Str, text+"\r\n") {
			return false
		}
	}
	return true
}

// views opens the screen Server of a node: wide and light, or also dark and narrow if the test takes screenshots.
func (g *trio) views(i int) (pages []*browsertest.Page) {
	all := []browsertest.Options{{Width: 1400, Height: 1000}}
	if os.Getenv(browsertest.ShotEnv) != "" {
		all = append(all, browsertest.Options{Width: 1400, Height: 1000, Dark: true},
			browsertest.Options{Width: 390, Height: 1500, Mobile: true},
			browsertest.Options{Width: 390, Height: 1500, Mobile: true, Dark: true})
	}
	for _, o := range all {
		p := browsertest.Open(g.t, g.urls[i], o)
		p.Allow(`^failed: .* net::ERR_`) // its node may be killed
		p.Allow(`^status (409|503): `)
		pages = append(pages, p)
	}
	return pages
}

// shows waits until pages show a row of each node that matches a pattern, and takes a screenshot of each.
func shows(pages []*browsertest.Page, shot string, patterns ...string) {
	for _, p := range pages {
		for i, pattern := range patterns {
			p.Eventually(fmt.Sprintf(`/%s/.test(%s.innerText.replace(/\s+/g, ' '))`, pattern, nodeRow(i+1)))
		}
	}
	for i, p := range pages {
		p.Shot("group-" + shot + []string{"-light", "-dark", "-phone-light", "-phone-dark"}[i])
	}
}

// nodeRow is an expression for the row of a node.
func nodeRow(n int) string {
	const rows = `$$('#screen table[aria-label="Nodes of the group"] tbody tr')`
	return fmt.Sprintf(rows+`.find((e) => e.querySelector('b').innerText === '%d')`, n)
}

func TestTheNodesOfAGroupThroughAFailover(t *testing.T) {
	g := startTrio(t)
	for i := range 100 {
		g.do(0, "SET", fmt.Sprint("k", i), strings.Repeat("v", 100))
	}
	first, second := g.views(0), g.views(1)
	p := first[0]
	for _, fact := range []string{`Epoch\s+1`, `Group version\s+\d+`, `Directory led by node\s+\d`, `Nodes with a vote\s+3`,
		`Losses accepted by an operator\s+0`} {
		p.Eventually(`/` + fact + `/.test(text('#screen'))`)
	}
	p.Eventually(`!text('#screen').includes('Only the master knows') && !byText('button', 'Fail over').length`)
	shows(first, "1-healthy-master", `This server.*master.*1.*\d\d,\d\d\d`, `in sync.*up.*\d\d,\d\d\d.*up to date`,
		`in sync.*up.*up to date`)
	second[0].Eventually(`text('#screen').includes('Only the master knows')`)
	shows(second, "1-healthy-member", `master.*\d\d,\d\d\d`, `This server.*in sync.*up.*\d\d,\d\d\d`, `in sync.*\d\d,\d\d\d`)

	// A node that hangs falls behind.
	g.nodes[2].Pause(t)
	for range 40 {
		g.do(0, "SET", "large", strings.Repeat("v", 20_000))
	}
	shows(first, "2-behind-master", `master`, `up to date`, `not in sync.*silent for.*KiB,.*s`)
	if v := p.Number(nodeRow(3) + `.querySelector('meter').value`); v < 0.5 || v > 1 {
		t.Errorf("the bar of a node that lacks 800 kB of a backlog of 1 MiB is %v, want most of it", v)
	}
	g.nodes[2].Resume(t)
	shows(first[:1], "2-back-master", `master`, `up to date`, `in sync.*up to date`)

	// The master is killed. One of the others replaces it.
	third := g.views(2)
	third[len(third)-1].Eventually(nodeRow(3))
	g.nodes[0].Kill()
	searching := `!!$$('#screen .facts').find((e) => e.innerText.includes('searching for the master'))`
	for _, p := range slices.Concat(second, third) {
		p.Eventually(searching + ` || ` + nodeRow(1) + `.innerText.includes('silent')`)
	}
	shows(second, "3-failover-node2", `127`, `127`, `127`)
	shows(third, "3-failover-node3", `127`, `127`, `127`)
	next, other := 1, 2
	browsertest.Wait(t, "another node is the master", func() bool {
		if g.says(2, "group_state:leading") {
			next, other = 2, 1
		}
		return g.says(next, "group_state:leading", "group_in_sync:2")
	})
	pages := map[int][]*browsertest.Page{1: second, 2: third}
	want := map[int][]string{
		next:  {`not in sync silent for.*down`, "", ""},
		other: {`not in sync silent for`, "", ""},
	}
	want[next][next], want[next][other] = `This server master`, `in sync.*up.*up to date`
	want[other][next], want[other][other] = `master`, `This server in sync.*up`
	shows(pages[next], "4-after-master", want[next]...)
	shows(pages[other], "4-after-member", want[other]...)
	p = pages[next][0]
	p.Eventually(`/Epoch\s+2/.test(text('#screen'))`)

	promote := fmt.Sprintf("Make node %d the master", other+1)
	p.Eventually(button(promote))
	p.Click(button(promote))
	p.Eventually(fmt.Sprintf(`text('dialog[open] pre.command') === 'GROUP PROMOTE %d'`, other+1))
	p.Press(kb.Escape)

	g.fewPermissions(next, promote)
	g.refusesWrites(next, other)
}

// fewPermissions checks the table of a user without GROUP STATUS and GROUP PROMOTE, in Chinese on a phone.
func (g *trio) fewPermissions(i int, promote string) {
	g.t.Helper()
	q := browsertest.Open(g.t, g.urls[i], browsertest.Options{Width: 390, Height: 1500, Mobile: true, Lang: "zh-CN"})
	q.Allow(`^failed: .* net::ERR_`)
	q.Eventually(`/未同步\s+静默/.test(text('#screen'))`)
	q.Shot("group-5-zh")
	if over := q.Number(`document.documentElement.scrollWidth - innerWidth`); over > 0 {
		g.t.Errorf("the page is %v px wider than the phone", over)
	}
	g.do(i, "ACL", "SETUSER", "default", "-group|promote", "-group|status")
	p := browsertest.Open(g.t, g.urls[i], browsertest.Options{Width: 1400, Height: 1000})
	p.Allow(`^failed: .* net::ERR_`)
	p.Eventually(`text('#screen').includes('You do not have permission for GROUP STATUS')`)
	p.Eventually(`(` + button(promote) + `).disabled && (` + button(promote) + `).title.includes('group|promote')`)
	p.Shot("group-5-few-permissions")
	g.do(i, "ACL", "SETUSER", "default", "+group")
}

// refusesWrites kills the last replica, and checks that the console says that the master refuses writes.
func (g *trio) refusesWrites(master, replica int) {
	g.t.Helper()
	p := browsertest.Open(g.t, g.urls[master], browsertest.Options{Width: 1400, Height: 1000})
	p.Eventually(nodeRow(master + 1))
	g.nodes[replica].Kill()
	p.Eventually(`/Writes\s+refused \(NOREPLICAS\)/.test(text('#screen'))`)
	p.Shot("group-6-refuses")
	p.Screen("now")
	p.Eventually(`text('#screen .attention').includes('NOREPLICAS')`)
}
