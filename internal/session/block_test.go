package session_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/services"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/wire"
)

func TestWaitsEndToTheMillisecond(t *testing.T) {
	services.Bubble(t, func(s *session.Service) {
		var done sync.WaitGroup
		for _, ms := range []int{1, 7, 255, 256, 257, 1500, 65536, 70001, 3600000} {
			done.Go(func() {
				c := s.NewSession(nil)
				defer c.Closed(nil)
				began := time.Now()
				v := services.Ask(c, "BLPOP", "l", fmt.Sprint(float64(ms)/1000))
				passed := time.Since(began)
				if !v.IsNull() || passed < time.Duration(ms)*time.Millisecond || passed > time.Duration(ms+1)*time.Millisecond {
					t.Errorf("a wait for %d ms ended after %v with %v", ms, passed, v)
				}
			})
		}
		done.Wait()
	})
}

func TestACancelledWaitTakesNothing(t *testing.T) {
	services.Bubble(t, func(s *session.Service) {
		c, other := s.NewSession(nil), s.NewSession(nil)
		defer c.Closed(nil)
		defer other.Closed(nil)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if v, err := services.AskContext(ctx, c, "BLMOVE", "l", "m", "LEFT", "LEFT", "0"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the wait ended with %v, %v", v, err)
		}
		services.Ask(other, "RPUSH", "l", "a")
		if n := services.Ask(c, "LLEN", "l"); n.Int != 1 {
			t.Errorf("%d elements are left", n.Int)
		}
		if v, err := services.AskContext(ctx, c, "BLPOP", "l", "0"); err != nil || len(v.Elems) != 2 {
			t.Errorf("BLPOP did not take the element that the list has: %v, %v", v, err)
		}
	})
}

func TestClosingTheServiceEndsEmbeddedWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hooks session.Hooks
		db := engine.Open(engine.Options{Hooks: &hooks})
		s, err := session.NewService(session.Options{DB: db, Table: servercmd.Table}, &hooks)
		if err != nil {
			t.Fatal(err)
		}
		var done sync.WaitGroup
		done.Go(func() {
			if _, err := services.AskContext(context.Background(), s.NewSession(nil), "BLPOP", "l", "0"); !errors.Is(err, engine.ErrClosed) {
				t.Errorf("the wait ended with %v", err)
			}
		})
		synctest.Wait()
		s.Close()
		done.Wait()
		db.Close()
	})
}

func TestAClientThatDiedIsHandedNothing(t *testing.T) {
	e := services.Played(t)
	for n := 2; n <= 4; n++ {
		services.Must(t, e.Send(n, []string{"BLPOP", "l", "0"}))
	}
	services.Must(t, e.Hangup(2))
	services.Must(t, e.Hangup(3))
	if v, err := e.Do(1, "RPUSH", "l", "a"); err != nil || v.Int != 1 {
		t.Fatal(v, err)
	}
	if v, ok := e.Next(4); !ok || len(v.Elems) != 2 || v.Elems[1].Str != "a" {
		t.Errorf("the third in line got %v", v)
	}
	if n := e.DB.Waiters(); n != 0 {
		t.Errorf("%d places in lines are still taken", n)
	}
}

func TestAThousandAreServedInTheirOrder(t *testing.T) {
	e := services.Played(t)
	clients := 1000
	if tier.Short() {
		clients = 200
	}
	for n := range clients {
		services.Must(t, e.Send(n+2, []string{"BLPOP", "l", "0"}))
	}
	for n := range clients {
		services.Must(t, e.Send(1, []string{"RPUSH", "l", fmt.Sprint(n)}))
		v, ok := e.Next(n + 2)
		if !ok || v.Elems[1].Str != fmt.Sprint(n) {
			t.Fatalf("client %d got %v", n, v)
		}
	}
}

// Many clients push, wait, give up and move elements between lists at once. No element is lost or delivered
// twice.
func TestNothingIsLostBetweenManyWaiters(t *testing.T) {
	var hooks session.Hooks
	db := engine.Open(engine.Options{Hooks: &hooks})
	s, err := session.NewService(session.Options{DB: db, Table: servercmd.Table}, &hooks)
	services.Must(t, err)
	defer db.Close()
	defer s.Close()

	const each, workers = 400, 4
	var pushed, taken sync.Map
	var left atomic.Int64
	left.Store(each * workers)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var pushers, takers sync.WaitGroup
	for w := range workers {
		pushers.Go(func() {
			c := s.NewSession(nil)
			defer c.Closed(nil)
			for i := range each {
				e := fmt.Sprintf("%d-%d", w, i)
				pushed.Store(e, true)
				services.Ask(c, "RPUSH", []string{"a", "b", "c"}[i%3], e)
			}
		})
		takers.Go(func() {
			c := s.NewSession(nil)
			defer c.Closed(nil)
			for i := 0; left.Load() > 0; i++ {
				sub, stop := context.WithCancel(ctx)
				if i%3 != 0 {
					takers.Go(stop) // gives up at some moment
				}
				v, err := services.AskContext(sub, c, "BLPOP", "c", "b", "d", "0")
				stop()
				if err != nil {
					continue
				}
				if _, twice := taken.LoadOrStore(v.Elems[1].Str, true); twice {
					t.Errorf("%s came twice", v.Elems[1].Str)
				}
				if left.Add(-1) == 0 {
					cancel()
				}
			}
		})
		takers.Go(func() { // a chain that ends in d
			c := s.NewSession(nil)
			defer c.Closed(nil)
			from, to := []string{"a", "b"}[w%2], []string{"c", "d"}[w%2]
			for ctx.Err() == nil {
				_, _ = services.AskContext(ctx, c, "BLMOVE", from, to, "LEFT", "RIGHT", "0")
			}
		})
	}
	pushers.Wait()
	takers.Wait()
	pushed.Range(func(e, _ any) bool {
		if _, ok := taken.Load(e); !ok {
			t.Errorf("%v is lost", e)
		}
		return true
	})
	if n := db.Waiters(); n != 0 {
		t.Errorf("%d places in lines are still taken", n)
	}
}

// Many clients add jobs with due times, wait for them, give up and move them on at once. No job is lost,
// delivered twice, or delivered early.
func TestNoDueMemberIsLostBetweenManyThatWait(t *testing.T) {
	var hooks session.Hooks
	db := engine.Open(engine.Options{Hooks: &hooks})
	s, err := session.NewService(session.Options{DB: db, Table: servercmd.Table}, &hooks)
	services.Must(t, err)
	defer db.Close()
	defer s.Close()

	const each, workers = 300, 4
	var taken sync.Map
	var left atomic.Int64
	left.Store(each * workers)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	got := func(job, score string) {
		if due, err := strconv.ParseFloat(score, 64); err != nil || float64(db.Clock().Micros())/1e6 < due {
			t.Errorf("%s came at %d, it is due at %s (%v)", job, db.Clock().Micros(), score, err)
		}
		if _, twice := taken.LoadOrStore(job, true); twice {
			t.Errorf("%s came twice", job)
		}
		if left.Add(-1) == 0 {
			cancel()
		}
	}
	for w := range workers {
		all.Go(func() {
			c := s.NewSession(nil)
			defer c.Closed(nil)
			rng := rand.New(rand.NewPCG(uint64(w), 1))
			for i := range each {
				due := float64(db.Clock().Micros()+rng.Int64N(20_000)) / 1e6
				services.Ask(c, "ZADD", []string{"a", "b", "c"}[i%3], fmt.Sprint(due), fmt.Sprintf("%d-%d", w, i))
			}
		})
		all.Go(func() {
			c := s.NewSession(nil)
			defer c.Closed(nil)
			var stops sync.WaitGroup
			defer stops.Wait()
			for i := 0; ctx.Err() == nil; i++ {
				sub, stop := context.WithCancel(ctx)
				if i%3 != 0 {
					stops.Go(stop) // gives up at some moment
				}
				v, err := services.AskContext(sub, c, "ZPOPDUE", "3", "c", "b", "d", "COUNT", "2", "BLOCK", "0")
				stop()
				if err == nil {
					for _, e := range v.Elems[1].Elems {
						got(e.Elems[0].Str, e.Elems[1].Str)
					}
				}
			}
		})
		all.Go(func() { // a chain that ends in a list, and one within the sets
			c := s.NewSession(nil)
			defer c.Closed(nil)
			for ctx.Err() == nil {
				move := [][]string{{"ZMOVEDUE", "a", "list", "LEFT", "BLOCK", "0"}, {"ZMOVEDUE", "b", "d", "SCORE", "2", "BLOCK", "0"}}[w%2]
				_, _ = services.AskContext(ctx, c, move...)
			}
		})
		all.Go(func() {
			c := s.NewSession(nil)
			defer c.Closed(nil)
			for ctx.Err() == nil {
				if v, err := services.AskContext(ctx, c, "BLPOP", "list", "0"); err == nil {
					got(v.Elems[1].Str, "0")
				}
			}
		})
	}
	all.Wait()
	if n := left.Load(); n != 0 {
		t.Errorf("%d jobs did not come", n)
	}
	if err := db.Check(); err != nil { // it waits for the transactions that have served the last clients
		t.Error(err)
	}
	if n := db.Waiters(); n != 0 {
		t.Errorf("%d places in lines are still taken", n)
	}
}

// BenchmarkWaitAndServe is a BLPOP that waits behind others, and a push that
// serves the first of them.
func BenchmarkWaitAndServe(b *testing.B) {
	for _, others := range []int{0, 1000, 100000} {
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			var hooks session.Hooks
			db := engine.Open(engine.Options{Hooks: &hooks})
			s, err := session.NewService(session.Options{DB: db, Table: servercmd.Table}, &hooks)
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			defer s.Close()
			wait := wire.AppendCommand(nil, "BLPOP", "l", "10")
			line := make([]*services.Peer, others+1)
			for i := range line {
				line[i] = services.Connect(s, "tcp", "127.0.0.1:1")
				line[i].Session.Serve(wait, nil)
			}
			pusher := s.NewSession(nil)
			out := []byte(nil)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				pusher.Do([]byte("RPUSH"), []byte("l"), []byte("x"))
				p := line[i%len(line)]
				_, out, _ = p.Session.Serve(wait, out[:0])
				if len(out) == 0 {
					b.Fatal("not served")
				}
			}
		})
	}
}
