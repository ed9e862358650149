package servercmd_test

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/services"
	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// A grant to a client that has left is taken back after the pause, not during it.
func TestAPausedServerTakesNothingBack(t *testing.T) {
	for _, x := range []struct {
		name              string
		first, wait, give []string
		look              []string
		again             []string // waits until it gets the returned grant
	}{
		{"DQ.POP", nil, []string{"DQ.POP", "q", "BLOCK", "0"}, []string{"DQ.ADD", "q", "j", "x"},
			[]string{"DQ.PEEK", "q", "STATE", "LEASED"}, []string{"DQ.POP", "q", "BLOCK", "0"}},
		{"LOCK.ACQUIRE", []string{"LOCK.ACQUIRE", "l", "a", "9000"}, []string{"LOCK.ACQUIRE", "l", "b", "9000000", "WAIT", "0"}, nil,
			[]string{"LOCK.INFO", "l"}, []string{"LOCK.ACQUIRE", "l", "c", "9000", "WAIT", "0"}},
	} {
		for name, end := range map[string]func(p *services.Peer){
			"closed": func(p *services.Peer) { p.Session.Closed(io.EOF) },
			"unsent": func(p *services.Peer) { p.Reply(); p.Session.Unsent(); p.Session.Closed(io.EOF) },
		} {
			t.Run(x.name+" "+name, func(t *testing.T) {
				// Time stands still: LOCK.INFO replies with the remaining time of a lease.
				s := services.At(t, clock.NewManual(transcript.Start))
				own := s.NewSession(nil)
				defer own.Closed(nil)
				must := func(words ...string) resp.Value {
					t.Helper()
					v := services.Ask(own, words...)
					if err := v.Err(); err != nil {
						t.Fatal(words, err)
					}
					return v
				}
				var token int64
				if x.first != nil {
					token = must(x.first...).Int
				}
				dies := services.Waiting(t, s, x.wait...)
				if x.give != nil {
					must(x.give...)
				} else {
					must("LOCK.RELEASE", "l", "a", fmt.Sprint(token))
				}
				must("CLIENT", "PAUSE", "100000", "WRITE")
				before := must(x.look...).String()
				end(dies)
				if after := must(x.look...).String(); after != before {
					t.Errorf("during the pause %v replies %s, before %s", x.look, after, before)
				}
				must("CLIENT", "UNPAUSE")
				if v := must(x.again...); v.IsNull() {
					t.Error("nothing went back")
				}
			})
		}
	}
}

// During a CLIENT PAUSE the data does not change: neither time nor the end of another client's wait serves a
// waiter before the pause is over.
func TestAPausedServerServesNoWaiter(t *testing.T) {
	due := []string{"EVAL", "local t = redis.call('TIME') redis.call('ZADD', KEYS[1], t[1] + t[2] / 1e6 + 0.3, 'm')", "1", "z"}
	for _, x := range []struct {
		name   string
		first  []string
		behind []string // waits in front of last, for 300 ms
		last   []string
	}{
		{"ZPOPDUE", due, nil, []string{"ZPOPDUE", "1", "z", "BLOCK", "0"}},
		{"ZMOVEDUE", due, nil, []string{"ZMOVEDUE", "z", "l", "LEFT", "BLOCK", "0"}},
		{"DQ.POP", []string{"DQ.ADD", "q", "j", "x", "DELAY", "300"}, nil, []string{"DQ.POP", "q", "BLOCK", "0"}},
		{"LOCK.ACQUIRE", []string{"LOCK.ACQUIRE", "l", "a", "300"}, nil, []string{"LOCK.ACQUIRE", "l", "b", "9000", "WAIT", "9000"}},
		{"SEM.ACQUIRE", []string{"SEM.ACQUIRE", "s", "a", "2", "90000"},
			[]string{"SEM.ACQUIRE", "s", "b", "2", "90000", "COUNT", "2", "WAIT", "300"},
			[]string{"SEM.ACQUIRE", "s", "c", "2", "90000", "WAIT", "9000"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			services.Bubble(t, func(s *session.Service) {
				c := s.NewSession(nil)
				defer c.Closed(nil)
				began := time.Now()
				if v := services.Ask(c, x.first...); v.Err() != nil {
					t.Fatal(v)
				}
				var done sync.WaitGroup
				wait := func(words []string, check func(v resp.Value, passed time.Duration)) {
					if words == nil {
						return
					}
					done.Go(func() {
						c := s.NewSession(nil)
						defer c.Closed(nil)
						check(services.Ask(c, words...), time.Since(began))
					})
					synctest.Wait()
				}
				wait(x.behind, func(v resp.Value, passed time.Duration) {
					if !v.IsNull() || passed > 400*time.Millisecond {
						t.Errorf("the first in line got %v after %v", v, passed)
					}
				})
				wait(x.last, func(v resp.Value, passed time.Duration) {
					if v.IsNull() || v.Err() != nil || passed < time.Second || passed > 1010*time.Millisecond {
						t.Errorf("the waiter got %v after %v", v, passed)
					}
				})
				if v := services.Ask(c, "CLIENT", "PAUSE", "1000", "WRITE"); v.Err() != nil {
					t.Fatal(v)
				}
				done.Wait()
			})
		})
	}
}

// A command that waits for the end of the pause does not run after its client has left, whenever that was.
func TestAPausedServerForgetsClientsThatHaveGone(t *testing.T) {
	for name, batch := range map[string][][]string{
		"one command": {{"SET", "k", "v"}}, "two": {{"SET", "k", "v"}, {"SET", "l", "v"}}, "after a read": {{"GET", "k"}, {"SET", "k", "v"}},
		"a transaction": {{"MULTI"}, {"SET", "k", "v"}, {"EXEC"}}, "a script": {{"EVAL", "redis.call('SET', KEYS[1], 'v')", "1", "k"}},
	} {
		for _, early := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", gone before: ", early), func(t *testing.T) {
				s := services.At(t, clock.NewManual(transcript.Start))
				own := s.NewSession(nil)
				defer own.Closed(nil)
				s.Pause(100_000, false)
				p := services.Dial(t, s, "tcp", "127.0.0.1:5000")
				var in []byte
				for _, words := range batch {
					in = wire.AppendCommand(in, words...)
				}
				if early {
					p.Session.PeerClosed()
				}
				if _, _, v := p.Session.Serve(in, nil); v != reactor.Park {
					t.Fatal("it does not wait:", v)
				}
				p.Session.PeerClosed()
				if !p.Killed.Load() {
					t.Error("the connection stays open")
				}
				if info := services.Ask(own, "INFO", "clients").Str; !strings.Contains(info, "blocked_clients:0\r\n") {
					t.Error(info)
				}
			})
		}
	}
}
