package session_test

import (
	"io"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/testing/services"
)

// Above sync-held-max bytes of replies that wait for the group, requests stay unread, until fewer bytes wait.
func TestRepliesThatWaitForAGroupAreBounded(t *testing.T) {
	value := strings.Repeat("v", 600)
	reply := "$600\r\n" + value + "\r\n"
	get := services.Request("GET", "k")
	for name, frees := range map[string]func(t *testing.T, g *grouped, holder *services.Peer){
		"the members have acknowledged": func(t *testing.T, g *grouped, holder *services.Peer) {
			g.commit(g.log.End())
			holder.Gets(t, reply)
		},
		"a client has left":              func(_ *testing.T, _ *grouped, holder *services.Peer) { holder.Session.Closed(io.EOF) },
		"the server is no longer master": func(t *testing.T, g *grouped, holder *services.Peer) { g.depose(); holder.Loses(t) },
		"the bound has changed": func(t *testing.T, g *grouped, _ *services.Peer) {
			services.Must(t, g.Config.Change(true, "sync-held-max", "0"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := joined(t, "--sync-held-max", "1000")
			writer, first, second, third := g.dial(t), g.dial(t), g.dial(t), g.dial(t)
			writer.Held(t, services.Request("SET", "k", value))
			for _, p := range []*services.Peer{first, second} {
				if n, out, v := p.Session.Serve(get, nil); n != len(get) || len(out) > 0 || v != reactor.Park {
					t.Fatalf("a read below the bound: %d bytes are read, %q, %v; want all of them, and the reply held", n, out, v)
				}
			}
			for range 2 { // a session that is woken for another reason waits again
				if n, out, v := third.Session.Serve(get, nil); n != 0 || len(out) > 0 || v != reactor.Park {
					t.Fatalf("a read above the bound: %d bytes are read, %q, %v; want none", n, out, v)
				}
			}
			for _, args := range [][]string{{"PING"}, {"REPLCONF", "listening-port", "1"}, {"GROUP", "STATUS"}, {"CONFIG", "GET", "sync-held-max"}} {
				request := services.Request(args...)
				n, out, v := g.dial(t).Session.Serve(append(request, get...), nil)
				if n != len(request) || len(out) == 0 || v != reactor.Yield {
					t.Errorf("%q above the bound, before a read: %d bytes are read, %q, %v; want %d, and a reply", args, n, out, v, len(request))
				}
			}
			frees(t, g, first)
			third.Wait()
			if n, _, _ := third.Session.Serve(get, nil); n != len(get) {
				t.Errorf("%d bytes are read when there is room again, want all", n)
			}
		})
	}
}
