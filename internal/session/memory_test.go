package session

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/settings"
	"github.com/ebbdb/ebb/internal/wire"
)

// Every list that a client can make long counts as used memory, with at least the size of its texts and at
// most 20 times that, and no longer counts after the client has left.
func TestEveryListOfAClientCountsAsUsedMemory(t *testing.T) {
	const n, text = 200, 100
	word := strings.Repeat("x", text)
	each := func(make func(i int) []string) (list [][]string) {
		for i := range n {
			list = append(list, make(i))
		}
		return list
	}
	library := func(i int) string {
		return fmt.Sprintf("#!lua name=l%d\nredis.register_function('f%d', function() return '%s' end)", i, i, word)
	}
	for _, x := range []struct {
		name      string
		grow      [][]string
		shrink    []string // nil: the client leaves
		ofTheirs  bool     // it counts in the client's own memory
		afterward int64    // bytes that stay
	}{
		{"WATCH", each(func(i int) []string { return []string{"WATCH", fmt.Sprint(word, i)} }), []string{"UNWATCH"}, true, 0},
		{"WATCH, and the client goes", each(func(i int) []string { return []string{"WATCH", fmt.Sprint(word, i)} }), nil, true, 0},
		{"SUBSCRIBE", each(func(i int) []string { return []string{"SUBSCRIBE", fmt.Sprint(word, i)} }), []string{"UNSUBSCRIBE"}, true, 0},
		{"PSUBSCRIBE", each(func(i int) []string { return []string{"PSUBSCRIBE", fmt.Sprint(word, i)} }), []string{"RESET"}, true, 0},
		{"SSUBSCRIBE", each(func(i int) []string { return []string{"SSUBSCRIBE", fmt.Sprint(word, i)} }), nil, true, 0},
		{"MULTI", append([][]string{{"MULTI"}}, each(func(i int) []string { return []string{"SET", "k", word} })...),
			[]string{"DISCARD"}, true, 0},
		{"MULTI, and the client goes", append([][]string{{"MULTI"}},
			each(func(i int) []string { return []string{"SET", "k", word} })...), nil, true, 0},
		{"prefixes", each(func(i int) []string {
			return []string{"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", fmt.Sprint(i, ":", word)}
		}), []string{"CLIENT", "TRACKING", "OFF"}, true, 0},
		{"tracked keys", append([][]string{{"CLIENT", "TRACKING", "ON"}},
			each(func(i int) []string { return []string{"GET", fmt.Sprint(word, i)} })...), nil, false,
			0},
		{"BLPOP", [][]string{append(numbered([]string{"BLPOP"}, word, n), "0")}, nil, true, 0},
		{"CLIENT SETNAME", [][]string{{"CLIENT", "SETNAME", strings.Repeat(word, n)}}, []string{"CLIENT", "SETNAME", ""}, true, 0},
		{"CLIENT SETINFO", [][]string{{"CLIENT", "SETINFO", "LIB-NAME", strings.Repeat(word, n)}}, nil, true, 0},
		{"FUNCTION LOAD", each(func(i int) []string { return []string{"FUNCTION", "LOAD", library(i)} }),
			[]string{"FUNCTION", "FLUSH"}, false, 0},
		{"SCRIPT LOAD", each(func(i int) []string { return []string{"SCRIPT", "LOAD", fmt.Sprintf("return '%s%d'", word, i)} }),
			[]string{"SCRIPT", "FLUSH"}, false,
			0},
		{"ACL SETUSER", each(func(i int) []string { return []string{"ACL", "SETUSER", fmt.Sprint("u", i), "~" + word} }),
			numbered([]string{"ACL", "DELUSER"}, "u", n), false, 0},
		{"rules of a user", each(func(i int) []string {
			return []string{"ACL", "SETUSER", "v", fmt.Sprint("~", word, i), fmt.Sprint("&", word, i)}
		}), []string{"ACL", "DELUSER", "v"}, false, 0},
	} {
		svc, _ := serviceWith(t)
		s := svc.NewSession(quietConn{})
		admin := svc.NewSession(nil)
		ask(t, s, "HELLO", "3")
		before, own := svc.DB.UsedMemory(), s.memory().total()
		for _, words := range x.grow {
			if got := ask(t, s, words...); strings.HasPrefix(got, "-") {
				t.Fatalf("%s: %s", x.name, got)
			}
		}
		got := svc.DB.UsedMemory() - before
		if got < n*text || got > 20*n*text {
			t.Errorf("%s: %d bytes more are used", x.name, got)
		}
		if more := s.memory().total() - own; x.ofTheirs && (more < n*text || more > 20*n*text) {
			t.Errorf("%s: the client takes up %d bytes more", x.name, more)
		}
		if info := do(admin, "INFO", "memory").Str; !strings.Contains(info, fmt.Sprintf("used_memory:%d\r\n", before+got)) {
			t.Errorf("%s: INFO says %.60q, want %d", x.name, info, before+got)
		}
		if x.shrink != nil {
			ask(t, s, x.shrink...)
		} else {
			s.Closed(nil)
		}
		if left := svc.DB.UsedMemory() - before; left != 0 {
			t.Errorf("%s: %d bytes are left", x.name, left)
		}
	}
}

// A client that brings the memory of all clients above maxmemory-clients runs no further command, not even of
// the same batch; the others continue.
func TestTheClientThatTakesUpTooMuchRunsNoFurtherCommand(t *testing.T) {
	word := strings.Repeat("x", 1000)
	for name, grow := range map[string][]string{
		"WATCH":          numbered([]string{"WATCH"}, word, 200),
		"SUBSCRIBE":      numbered([]string{"SUBSCRIBE"}, word, 200),
		"CLIENT SETNAME": {"CLIENT", "SETNAME", strings.Repeat(word, 200)},
		"prefixes":       {"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", strings.Repeat(word, 200)},
		"a long reply":   {"GETRANGE", "long", "0", "199999"},
	} {
		svc := loopService(t)
		do(svc.NewSession(nil), "SETRANGE", "long", "200000", "x")
		do(svc.NewSession(nil), "CONFIG", "SET", "maxmemory-clients", "100000")
		other := svc.NewSession(newLoopConn())
		c := newLoopConn()
		s := svc.NewSession(c)
		if got, _ := c.beside(s, "HELLO", "3"); strings.HasPrefix(got, "-") {
			t.Fatal(got)
		}
		in := wire.AppendCommand(wire.AppendCommand(nil, grow...), "INCR", "ran")
		s.Serve(in, nil)
		s.Serve(wire.AppendCommand(nil, "INCR", "ran"), nil)
		if n := do(svc.NewSession(nil), "EXISTS", "ran").Int; n != 0 {
			t.Errorf("%s: it ran %d commands more", name, n)
		}
		select {
		case err := <-c.kill:
			if err != errClientMemory {
				t.Errorf("%s: it is closed: %v", name, err)
			}
		default:
			t.Errorf("%s: it is not closed", name)
		}
		s.Closed(errClientMemory)
		if got := ask(t, other, "PING"); got != "+PONG\r\n" {
			t.Errorf("%s: another client gets %q", name, got)
		}
		if got := do(svc.NewSession(nil), "INFO", "stats").Str; !strings.Contains(got, "evicted_clients:1\r\n") {
			t.Errorf("%s: evicted_clients is not 1", name)
		}
	}
}

// An operator who sets maxmemory-clients below the memory of one connection can still connect and set it
// again; a client above the least bound is closed.
func TestALowBoundOfAllClientsClosesNoSmallOne(t *testing.T) {
	for _, limits := range [][]string{{"maxmemory-clients", "1"}, {"maxmemory", "1000", "maxmemory-clients", "1%"}} {
		svc := loopService(t)
		c := newLoopConn()
		admin := svc.NewSession(c)
		c.beside(admin, append([]string{"CONFIG", "SET"}, limits...)...)
		if got := ask(t, admin, "PING"); got != "+PONG\r\n" || len(c.kill) != 0 {
			t.Errorf("%v: the client that set it gets %q", limits, got)
		}
		if got := ask(t, svc.NewSession(newLoopConn()), "PING"); got != "+PONG\r\n" {
			t.Errorf("%v: a new client gets %q", limits, got)
		}
		large := newLoopConn()
		if ask(t, svc.NewSession(large), "CLIENT", "SETNAME", strings.Repeat("x", settings.LeastClientLimit)); len(large.kill) != 1 {
			t.Errorf("%v: the client that takes up %d bytes is not closed", limits, settings.LeastClientLimit)
		}
	}
}

// A client with few lists is not closed because of another client's lists, and one with CLIENT NO-EVICT
// stays.
func TestTheLargestClientGoesFirst(t *testing.T) {
	svc := loopService(t, "maxmemory-clients", "500000")
	word := strings.Repeat("x", 1000)
	kept, large, small := newLoopConn(), newLoopConn(), newLoopConn()
	keptS, largeS, smallS := svc.NewSession(kept), svc.NewSession(large), svc.NewSession(small)
	ask(t, keptS, "CLIENT", "NO-EVICT", "ON")
	ask(t, keptS, "CLIENT", "SETNAME", strings.Repeat(word, 300))
	ask(t, largeS, "CLIENT", "SETNAME", strings.Repeat(word, 150))
	ask(t, smallS, "CLIENT", "SETNAME", strings.Repeat(word, 60))
	if got := ask(t, largeS, "INCR", "ran"); got != "" {
		t.Errorf("the largest gets %q", got)
	}
	for _, s := range []*Session{keptS, smallS} {
		if got := ask(t, s, "PING"); got != "+PONG\r\n" {
			t.Errorf("another gets %q", got)
		}
	}
	if len(large.kill) != 1 || len(kept.kill)+len(small.kill) != 0 {
		t.Errorf("closed: the largest %d times, the others %d times", len(large.kill), len(kept.kill)+len(small.kill))
	}
}
