package grouptest

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// The first start needs all nodes, so a group whose node was removed before it would never begin.
func TestNoNodeIsRemovedBeforeTheGroupHasBegun(t *testing.T) {
	t.Parallel()
	var list, ports []string
	for range 3 {
		ports = append(ports, strconv.Itoa(realserver.FreePort(t)))
		list = append(list, net.JoinHostPort("127.0.0.1", ports[len(ports)-1]))
	}
	g := &group{T: t}
	for _, port := range ports {
		p := realserver.NewProcess(t, realserver.Ebb(t))
		p.Args("--group-port", port, "--sentinel-port", "0", "--group", strings.Join(list, ","), "--group-timeout", "1000", "--sync-lease", "500",
			"--appendonly", "no")
		g.nodes = append(g.nodes, p)
	}
	for _, p := range g.nodes[:2] {
		if err := p.Begin(); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range g.nodes[:2] {
		g.eventually("GROUP REMOVE is refused by a node that has loaded its data", func() bool {
			out, err := g.operate(p, "remove", "3")
			if err == nil {
				t.Fatalf("GROUP REMOVE before the group has begun: %q", out)
			}
			return strings.Contains(out, "has not begun yet")
		})
	}
	if err := g.nodes[2].Begin(); err != nil {
		t.Fatal(err)
	}
	g.eventually("the group begins", func() bool {
		for _, p := range g.nodes {
			if i := g.info(p); i["group_state"] == "leading" && i["group_in_sync"] == "3" {
				return true
			}
		}
		return false
	})
}
