package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/pubsub"
	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/wire"
)

// loopConn is a connection of a network loop; the test plays the loop.
type loopConn struct {
	quietConn
	woken chan struct{}
	kill  chan error
}

func newLoopConn() *loopConn {
	return &loopConn{woken: make(chan struct{}, 1), kill: make(chan error, 8)}
}

func (c *loopConn) Kill(err error) { c.kill <- err }

func (c *loopConn) Wake() {
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

// loopService is a service with one network loop.
func loopService(t *testing.T, options ...string) *Service {
	t.Helper()
	hooks := &Hooks{}
	db := engine.Open(engine.Options{Clock: clock.NewManual(time.Unix(1700000000, 0)), Hooks: hooks})
	svc, err := NewService(Options{DB: db, Table: testTable, Loops: 1}, hooks)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { svc.Close(); db.Close() })
	for i := 0; i < len(options); i += 2 {
		if v := do(svc.NewSession(nil), "CONFIG", "SET", options[i], options[i+1]); v.Str != "OK" {
			t.Fatal(v)
		}
	}
	return svc
}

// beside sends a request and reports whether it ran in the background; it returns the reply.
func (c *loopConn) beside(s *Session, args ...string) (reply string, beside bool) {
	in := wire.AppendCommand(nil, args...)
	n, out, v := s.Serve(in, nil)
	for v == reactor.Park {
		beside = true
		<-c.woken
		_, out, v = s.Serve(in[n:], out)
	}
	return string(out), beside
}

func numbered(words []string, prefix string, n int) []string {
	for i := range n {
		words = append(words, fmt.Sprint(prefix, i))
	}
	return words
}

// Requests with many arguments do not run on a network loop, whatever the command, and neither do commands
// that walk a long list of the client's.
func TestLongListsAreWalkedBesideTheLoops(t *testing.T) {
	svc := loopService(t)
	const many = ManyArgs + 10
	for _, x := range []struct {
		name  string
		setup [][]string
		ask   []string
		want  string // the beginning of the reply
	}{
		{"WATCH", nil, numbered([]string{"WATCH"}, "k", many), "+OK"},
		{"UNWATCH leaves the keys to others", [][]string{numbered([]string{"WATCH"}, "k", many), {"MULTI"}, {"GET", "k1"}},
			[]string{"EXEC"}, "*1\r\n$-1"},
		{"SUBSCRIBE", nil, numbered([]string{"SUBSCRIBE"}, "c", many), "*3\r\n$9\r\nsubscribe"},
		{"PSUBSCRIBE", nil, numbered([]string{"PSUBSCRIBE"}, "p*", many), "*3\r\n$10\r\npsubscribe"},
		{"PUNSUBSCRIBE", [][]string{numbered([]string{"PSUBSCRIBE"}, "p*", many)}, []string{"PUNSUBSCRIBE"},
			"*3\r\n$12\r\npunsubscribe\r\n$3\r\np*0\r\n:4105"},
		{"RESET", [][]string{numbered([]string{"SUBSCRIBE"}, "c", many)}, []string{"RESET"}, "+RESET"},
		{"CLIENT TRACKING", nil, trackingOf(many), "+OK"},
		{"CLIENT TRACKING OFF", [][]string{trackingOf(many)}, []string{"CLIENT", "TRACKING", "OFF"}, "+OK"},
		{"CLIENT TRACKINGINFO", [][]string{trackingOf(many)}, []string{"CLIENT", "TRACKINGINFO"}, "*6"},
		{"CLIENT KILL", nil, numbered([]string{"CLIENT", "KILL", "ID"}, "9", many), ":0"},
		{"CLIENT LIST", nil, numbered([]string{"CLIENT", "LIST", "ID"}, "9", many), "$0"},
		{"MGET", nil, numbered([]string{"MGET"}, "k", many), "*4106"},
		{"EXEC of a long command", [][]string{{"MULTI"}, numbered([]string{"MGET"}, "k", many)}, []string{"EXEC"}, "*1\r\n*4106"},
		{"EVAL", nil, numbered([]string{"EVAL", "return #KEYS", "4000"}, "k", many), ":4000"},
		{"ACL SETUSER", nil, numbered([]string{"ACL", "SETUSER", "u"}, "~p", many), "+OK"},
	} {
		c := newLoopConn()
		s := svc.NewSession(c)
		for _, words := range x.setup {
			c.beside(s, words...)
		}
		got, beside := c.beside(s, x.ask...)
		if !beside || !strings.HasPrefix(got, x.want) {
			t.Errorf("%s: in the background: %v, %.60q", x.name, beside, got)
		}
		s.Closed(nil)
	}
	svc.background.Wait()
	if n := svc.pubsub.Sizes(); n != [3]int{} || svc.pubsub.Active() || svc.DB.Watches() != 0 || svc.tracking.Active() {
		t.Errorf("left over: %v topics, subscriptions: %v, %d watches", n, svc.pubsub.Active(), svc.DB.Watches())
	}
}

func trackingOf(n int) []string {
	words := []string{"CLIENT", "TRACKING", "ON", "BCAST"}
	for i := range n {
		words = append(words, "PREFIX", fmt.Sprintf("%d:", i))
	}
	return words
}

// The permissions for a request with many arguments are checked, wherever it runs.
func TestLongRequestsAreJudged(t *testing.T) {
	svc := loopService(t)
	c := newLoopConn()
	s := svc.NewSession(c)
	do(svc.NewSession(nil), "ACL", "SETUSER", "u", "on", "nopass", "~k*", "+@all")
	c.beside(s, "AUTH", "u", "x")
	words := numbered([]string{"MSET"}, "k", 2*ManyArgs)
	if got, beside := c.beside(s, words...); got != "+OK\r\n" || !beside {
		t.Errorf("%.60q, in the background: %v", got, beside)
	}
	words[ManyArgs+1] = "secret"
	if got, _ := c.beside(s, words...); !strings.HasPrefix(got, "-NOPERM") {
		t.Errorf("%.60q", got)
	}
	if n := do(svc.NewSession(nil), "EXISTS", "secret").Int; n != 0 {
		t.Error("the key is there")
	}
	if log := svc.acl.Log.Newest(10); len(log) != 1 || log[0].Object != "secret" {
		t.Errorf("ACL LOG has %d entries", len(log))
	}
}

// When a client disconnects, its subscriptions, watches and places in lines are removed in the background.
func TestAClientThatGoesLeavesItsListsBesideTheLoop(t *testing.T) {
	svc := loopService(t)
	for name, words := range map[string][]string{
		"patterns": numbered([]string{"PSUBSCRIBE"}, "p*", 2*ManyArgs),
		"prefixes": trackingOf(2 * ManyArgs),
		"watches":  numbered([]string{"WATCH"}, "k", 2*ManyArgs),
		"lists":    append(numbered([]string{"BLPOP"}, "l", 2*ManyArgs), "0"),
	} {
		c := newLoopConn()
		s := svc.NewSession(c)
		in := wire.AppendCommand(nil, words...)
		n, out, v := s.Serve(in, nil)
		if v != reactor.Park {
			t.Fatalf("%s: %v", name, v)
		}
		<-c.woken
		if name != "lists" {
			s.Serve(in[n:], out)
		}
		if svc.DB.Charged() < 2*ManyArgs*100 {
			t.Errorf("%s: %d bytes count as used", name, svc.DB.Charged())
		}
		if name == "prefixes" { // the session leaves its channels before its prefixes, with the lock of pub/sub
			s.Serve(wire.AppendCommand(nil, "SUBSCRIBE", "c"), nil)
		}
		// Closed must return although the test holds the locks of pub/sub and of all shards.
		svc.pubsub.Publish(pubsub.Channel, nil, nil, false, func() {
			tx := svc.DB.BeginAll(0)
			s.Closed(nil)
			tx.Commit()
		})
		svc.background.Wait()
		if svc.DB.Charged() != 0 || svc.DB.Waiters() != 0 || svc.DB.Watches() != 0 || svc.pubsub.Active() {
			t.Errorf("%s: %d bytes, %d places, %d watches are left; subscriptions: %v", name, svc.DB.Charged(), svc.DB.Waiters(),
				svc.DB.Watches(), svc.pubsub.Active())
		}
	}
}
