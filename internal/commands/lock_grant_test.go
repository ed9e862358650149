package commands_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/services"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

func askInt(t *testing.T, s *session.Session, words ...string) int64 {
	t.Helper()
	v := services.Ask(s, words...)
	if v.Kind != resp.KindInt {
		t.Fatalf("%q: %v", words, v)
	}
	return v.Int
}

// If a connection ends between the grant and its reply, the next client in line gets the lock.
func TestAGrantThatWasNotTakenPassesOn(t *testing.T) {
	for _, c := range []struct{ name, acquire, release string }{
		{"lock", "LOCK.ACQUIRE k %s 60000", "LOCK.RELEASE k a %d"},
		{"shared", "LOCK.ACQUIRE k %s 60000", "LOCK.RELEASE k a %d"},
		{"semaphore", "SEM.ACQUIRE k %s 3 60000 COUNT 2", "SEM.RELEASE k a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := services.At(t, nil)
			own := s.NewSession(nil)
			defer own.Closed(nil)
			acquire := func(owner string) []string {
				w := strings.Fields(fmt.Sprintf(c.acquire, owner) + " WAIT 0")
				if c.name == "shared" && owner == "b" {
					w = append(w, "SHARED")
				}
				return w
			}
			token := askInt(t, own, acquire("a")...)
			dies := services.Waiting(t, s, acquire("b")...)
			next := services.Waiting(t, s, acquire("c")...)
			release := c.release
			if strings.Contains(release, "%d") {
				release = fmt.Sprintf(release, token)
			}
			if n := askInt(t, own, strings.Fields(release)...); n != 1 {
				t.Fatal("a does not hold it")
			}
			dies.Session.Closed(io.EOF)
			out, _ := next.Reply()
			if got, err := strconv.ParseInt(strings.Trim(out, ":\r\n"), 10, 64); err != nil || got <= token+1 {
				t.Errorf("the next one gets %q after %d", out, token)
			}
			next.Session.Closed(io.EOF) // the reply has arrived, so the client keeps the lock
			if v := services.Ask(own, "EXISTS", "k"); v.Int != 1 {
				t.Error("a grant whose reply was taken is gone")
			}
		})
	}
}

// A client believes that its connection is dead, and requests the lock again on another one. It keeps the
// lock when the old connection ends.
func TestAClientThatAskedAgainKeepsTheLock(t *testing.T) {
	s := services.At(t, nil)
	own := s.NewSession(nil)
	defer own.Closed(nil)
	token := askInt(t, own, "LOCK.ACQUIRE", "k", "a", "60000")
	old := services.Waiting(t, s, "LOCK.ACQUIRE", "k", "b", "60000", "WAIT", "0")
	again := services.Waiting(t, s, "LOCK.ACQUIRE", "k", "b", "60000", "WAIT", "0")
	askInt(t, own, "LOCK.RELEASE", "k", "a", strconv.FormatInt(token, 10))
	old.Session.Closed(io.EOF)
	got, _ := again.Reply()
	if v := services.Ask(own, "LOCK.RENEW", "k", "b", strings.Trim(got, ":\r\n"), "1000"); v.Int != 1 {
		t.Errorf("b got %q, and lost it: %v", got, v)
	}
	again.Session.Closed(io.EOF)
}

// A grant whose reply could not be written goes back. A grant whose reply was written, or which another
// request of the client followed, does not, even if the connection ends next.
func TestAReplyThatWasNotSentGivesNothing(t *testing.T) {
	for _, c := range []struct {
		name  string
		after func(p *services.Peer)
		there int64
	}{
		{"not sent", func(p *services.Peer) { p.Session.Unsent() }, 0},
		{"sent", func(*services.Peer) {}, 1},
		{"followed", func(p *services.Peer) { p.Send("PING"); p.Session.Unsent() }, 1},
	} {
		s := services.At(t, nil)
		own := s.NewSession(nil)
		defer own.Closed(nil)
		token := askInt(t, own, "LOCK.ACQUIRE", "k", "a", "60000")
		p := services.Waiting(t, s, "LOCK.ACQUIRE", "k", "b", "60000", "WAIT", "0")
		askInt(t, own, "LOCK.RELEASE", "k", "a", strconv.FormatInt(token, 10))
		p.Reply()
		c.after(p)
		p.Session.Closed(io.EOF)
		if v := services.Ask(own, "EXISTS", "k"); v.Int != c.there {
			t.Errorf("%s: the lock is there %d times", c.name, v.Int)
		}
	}
}

// A client that half-closes its connection while its grant is on the way loses the grant, as one does that
// had half-closed it before.
func TestAHalfClosedConnectionIsGivenNothing(t *testing.T) {
	s := services.At(t, nil)
	own := s.NewSession(nil)
	defer own.Closed(nil)
	token := askInt(t, own, "LOCK.ACQUIRE", "k", "a", "60000")
	half := services.Waiting(t, s, "LOCK.ACQUIRE", "k", "b", "60000", "WAIT", "0")
	askInt(t, own, "LOCK.RELEASE", "k", "a", strconv.FormatInt(token, 10))
	half.Session.PeerClosed()
	if out, v := half.Reply(); out != "" || v != reactor.Close {
		t.Errorf("it gets %q, and then %v", out, v)
	}
	half.Session.Closed(nil)
	if v := services.Ask(own, "EXISTS", "k"); v.Int != 0 {
		t.Error("the lock is still held")
	}
}

// Many clients acquire, share, release, give up and disconnect at once. No client holds the lock together
// with one that holds it exclusively, tokens only grow, and each waiting client gets a reply.
func TestLocksUnderConcurrencyExclude(t *testing.T) {
	s := services.At(t, nil)
	const workers, rounds = 6, 150
	var alone, sharing atomic.Int64
	var last atomic.Int64
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(w)))
			c := s.NewSession(nil)
			defer c.Closed(nil)
			owner := fmt.Sprint("w", w)
			for range rounds {
				shared := rng.IntN(3) == 0
				words := []string{"LOCK.ACQUIRE", "k", owner, "60000", "WAIT", "0"}
				if shared {
					words = append(words, "SHARED")
				}
				switch rng.IntN(8) {
				case 0:
					killed(t, s, words, rng)
					continue
				case 1:
					ctx, cancel := context.WithCancel(context.Background())
					all.Go(cancel)
					v, err := services.AskContext(ctx, c, words...)
					cancel()
					if err != nil {
						continue
					}
					leave(t, c, owner, v.Int)
					continue
				}
				v := services.Ask(c, words...)
				if v.Kind != resp.KindInt {
					t.Errorf("%q: %v", words, v)
					return
				}
				if shared {
					sharing.Add(1)
				} else if alone.Add(1) != 1 {
					t.Error("two have the lock alone")
				}
				if alone.Load() > 0 && sharing.Load() > 0 {
					t.Error("a waiter that is alone has company")
				}
				if old := last.Swap(v.Int); !shared && old >= v.Int {
					t.Errorf("token %d came after %d", v.Int, old)
				}
				if shared {
					sharing.Add(-1)
				} else {
					alone.Add(-1)
				}
				leave(t, c, owner, v.Int)
			}
		})
	}
	all.Wait()
	c := s.NewSession(nil)
	defer c.Closed(nil)
	if v := services.Ask(c, "LOCK.INFO", "k"); !v.IsNull() {
		t.Errorf("the lock still has a holder: %v", v)
	}
	if n := s.DB.Waiters(); n != 0 {
		t.Errorf("%d places in lines are still taken", n)
	}
	services.Must(t, s.DB.Check())
}

func leave(t *testing.T, c *session.Session, owner string, token int64) {
	if v := services.Ask(c, "LOCK.RELEASE", "k", owner, strconv.FormatInt(token, 10)); v.Int != 1 {
		t.Errorf("%s did not hold the lock that it got: %v", owner, v)
	}
}

// killed sends a request on a connection that closes at a random moment before the reply.
func killed(t *testing.T, s *session.Service, words []string, rng *rand.Rand) {
	words[2] = fmt.Sprint(words[2], "-", rng.Uint64())
	p := services.Connect(s, "tcp", "127.0.0.1:1")
	_, out, v := p.Session.Serve(wire.AppendCommand(nil, words...), nil)
	if v != reactor.Park { // the reply is already there
		c := s.NewSession(nil)
		defer c.Closed(nil)
		token, _ := strconv.ParseInt(strings.Trim(string(out), ":\r\n"), 10, 64)
		leave(t, c, words[2], token)
	} else if rng.IntN(2) == 0 {
		<-p.Woken // the server has replied
	}
	p.Session.Closed(io.EOF)
}
