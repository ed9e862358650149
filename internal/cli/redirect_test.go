package cli

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

// cluster is two nodes: the second has the keys a, and the key b is on its way there.
// It returns the first.
func cluster(t *testing.T) string {
	second := ""
	asked := map[int]bool{}
	second = serve(t, listen(t), func(conn int, args []string) string {
		switch {
		case args[0] == "ASKING":
			asked[conn] = true
			return "+OK\r\n"
		case len(args) > 1 && args[1] == "b" && !asked[conn]:
			return "-MOVED 3300 127.0.0.1:1\r\n"
		}
		return fmt.Sprintf("$%d\r\n%s\r\n", len(args[0])+2, "2 "+args[0])
	})
	_, port, _ := net.SplitHostPort(second)
	return serve(t, listen(t), func(conn int, args []string) string {
		switch {
		case args[0] == "MULTI":
			return "+OK\r\n"
		case len(args) < 2:
			return "+1\r\n"
		case args[1] == "a":
			return "-MOVED 15495 127.0.0.1:" + port + "\r\n"
		case args[1] == "here": // the node does not know its own name
			return "-MOVED 15495 :" + port + "\r\n"
		case args[1] == "b":
			return "-ASK 3300 " + second + "\r\n"
		}
		return "$1\r\n1\r\n"
	})
}

func TestDashCFollowsRedirectionsAsRedisCLIDoes(t *testing.T) {
	for _, format := range formats {
		for _, c := range []struct {
			stdin string
			args  []string
		}{
			{"", []string{"get", "a"}},
			{"", []string{"-e", "get", "b"}},
			{"get x\nget a\nget x\n", nil},
			{"get b\n", nil},
		} {
			// Each program goes to nodes of its own, whose ports are made equal.
			var got [2]outcome
			for i, run := range []func(*testing.T, string, string, ...string) outcome{ours, theirs} {
				addr := cluster(t)
				got[i] = run(t, addr, c.stdin, append([]string{"-c", format}, c.args...)...)
				for _, o := range []*string{&got[i].out, &got[i].err} {
					for line := range strings.Lines(*o) {
						if _, port, ok := strings.Cut(strings.TrimSpace(line), "located at 127.0.0.1:"); ok {
							*o = strings.ReplaceAll(*o, port, "PORT")
						}
					}
				}
			}
			compare(t, got[0], got[1], c.stdin, append([]string{format}, c.args...))
			if !strings.Contains(got[0].out, "2 get") {
				t.Errorf("%q: %v", c.args, got[0])
			}
		}
	}
}

func TestATransactionIsNotTakenToAnotherNode(t *testing.T) {
	got := ours(t, cluster(t), "MULTI\nget a\nget x\n", "-c")
	if !strings.Contains(got.out, "MOVED 15495") || !strings.HasSuffix(got.out, "\n1\n") {
		t.Errorf("%v", got)
	}
	if got := ours(t, cluster(t), "", "-c", "-r", "2", "get", "here"); got != (outcome{out: "2 get\n2 get\n"}) {
		t.Errorf("a node that does not know its name: %v", got)
	}
	if got := ours(t, cluster(t), "", "get", "a"); !strings.HasPrefix(got.out, "MOVED 15495") {
		t.Errorf("without -c: %v", got)
	}
}

func TestNodesThatDisagreeDoNotHoldTheCommandForEver(t *testing.T) {
	n := 0
	l := listen(t)
	addr := serve(t, l, func(int, []string) string {
		n++
		return "-MOVED 1 " + l.Addr().String() + "\r\n"
	})
	if got := ours(t, addr, "", "-c", "get", "a"); !strings.HasPrefix(got.out, "MOVED 1 ") || n != maxRedirects+1 {
		t.Errorf("%d times: %v", n, got)
	}
}
