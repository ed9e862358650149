package commands_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/modeltest"
	"github.com/ebbdb/ebb/internal/testing/services"
	"github.com/ebbdb/ebb/resp"
)

func TestAJobThatDidNotArriveGoesBackAsItWas(t *testing.T) {
	clock := clock.NewManual(time.UnixMilli(1_700_000_000_000))
	var hooks session.Hooks
	db := engine.Open(engine.Options{Hooks: &hooks, Clock: clock, RecordEffects: true})
	defer db.Close()
	s, err := session.NewService(session.Options{DB: db, Table: servercmd.Table}, &hooks)
	services.Must(t, err)
	defer s.Close()
	gone, other := services.Waiting(t, s, "DQ.POP", "q", "COUNT", "2", "BLOCK", "0"), s.NewSession(nil)
	defer other.Closed(nil)
	for _, id := range []string{"a", "b"} {
		services.Ask(other, "DQ.ADD", "q", id, "payload", "DELAY", "20", "EXPIRE", "100")
	}
	clock.Advance(30 * time.Millisecond)
	if v := services.Ask(other, "DQ.PEEK", "q"); len(v.Elems) != 0 {
		t.Fatalf("the waiting client was not served: %v", v)
	}
	gone.Session.Closed(io.EOF)
	v := services.Ask(other, "DQ.POP", "q", "COUNT", "9")
	if len(v.Elems) != 2 {
		t.Fatalf("%v", v)
	}
	for i, id := range []string{"a", "b"} {
		if j := v.Elems[i].Elems; j[0].Str != id || j[2].Int != 1 || j[4].Int != 1_700_000_000_020 {
			t.Errorf("%v", j)
		}
	}
	services.Must(t, db.Check())
	services.Must(t, modeltest.CheckEffects(db))
}

// job is a job in the reply of DQ.POP.
type job struct {
	id         string
	deliveries int64
	token      string
	due        int64
}

func jobsOf(v resp.Value) (all []job) {
	for _, e := range v.Elems {
		all = append(all, job{e.Elems[0].Str, e.Elems[2].Int, fmt.Sprint(e.Elems[3].Int), e.Elems[4].Int})
	}
	return all
}

// ledger collects what producers and consumers observe about the jobs.
type ledger struct {
	mu    sync.Mutex // guards the fields below
	done  map[string]int
	last  map[string]int64 // the highest token of a delivery so far
	until map[string]int64 // the last ms of the lease: no other delivery may come until then
	fault string
}

// delivered records a delivery, and whether it breaks a rule. Consumers call it some time after the delivery,
// so only the tokens show which of two deliveries came first.
func (l *ledger) delivered(j job, token, now int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.done[j.id] > 0 && token > l.last[j.id]:
		l.fault = fmt.Sprintf("%s is delivered though it is done", j.id)
	case now < j.due:
		l.fault = fmt.Sprintf("%s is delivered %d ms early", j.id, j.due-now)
	case token > l.last[j.id] && now <= l.until[j.id]:
		l.fault = fmt.Sprintf("%s is delivered again %d ms before its lease is over", j.id, l.until[j.id]-now)
	}
	if token > l.last[j.id] {
		l.last[j.id], l.until[j.id] = token, now+jobLease
	}
}

// givenBack records that a job may be delivered again from now on.
func (l *ledger) givenBack(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until[id] = 0
}

// Producers add jobs. Consumers acknowledge or reject jobs, crash, or lose their connection while they wait.
// Every job is done exactly once, and the queue delivers it to no second consumer while one has a lease on
// it.
func TestEveryJobIsDoneExactlyOnce(t *testing.T) {
	services.Bubble(t, func(s *session.Service) {
		const producers, consumers, each = 4, 8, 60
		l := &ledger{done: map[string]int{}, last: map[string]int64{}, until: map[string]int64{}}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var work sync.WaitGroup
		for p := range producers {
			work.Go(func() {
				c, rng := s.NewSession(nil), rand.New(rand.NewPCG(uint64(p), 1))
				defer c.Closed(nil)
				for i := range each {
					services.Ask(c, "DQ.ADD", "q", fmt.Sprint(p, "-", i), "payload", "DELAY", fmt.Sprint(rng.IntN(50)),
						"PRIORITY", fmt.Sprint(rng.IntN(10)))
				}
			})
		}
		for n := range consumers {
			work.Go(func() { l.consume(ctx, cancel, s, rand.New(rand.NewPCG(uint64(n), 2)), producers*each) })
		}
		work.Wait()
		synctest.Wait() // until the queue has all jobs back that did not arrive
		if l.fault != "" {
			t.Error(l.fault)
		}
		for id, n := range l.done {
			if n != 1 {
				t.Errorf("%s was done %d times", id, n)
			}
		}
		if len(l.done) != producers*each {
			t.Errorf("%d jobs were done, of %d", len(l.done), producers*each)
		}
		services.Must(t, s.DB.Check())
		c := s.NewSession(nil)
		defer c.Closed(nil)
		if v := services.Ask(c, "EXISTS", "q"); v.Int != 0 {
			t.Errorf("something is left: %v", services.Ask(c, "DQ.INFO", "q"))
		}
	})
}

const jobLease = 40

// consume takes jobs until all are done.
func (l *ledger) consume(ctx context.Context, cancel func(), s *session.Service, rng *rand.Rand, all int) {
	c := s.NewSession(nil)
	defer func() { c.Closed(nil) }()
	for ctx.Err() == nil {
		wait, stop := ctx, func() {}
		if rng.IntN(3) == 0 { // the client may give up while it waits
			wait, stop = context.WithTimeout(ctx, time.Duration(rng.IntN(3000))*time.Microsecond)
		}
		v, err := services.AskContext(wait, c, "DQ.POP", "q", "COUNT", fmt.Sprint(1+rng.IntN(3)), "LEASE", fmt.Sprint(jobLease), "BLOCK", "0")
		stop()
		if err != nil {
			c.Closed(nil)
			c = s.NewSession(nil)
			continue
		}
		now := s.DB.Clock().Micros() / 1000
		for _, j := range jobsOf(v) {
			var token int64
			fmt.Sscan(j.token, &token)
			l.delivered(j, token, now)
			l.settle(c, rng, j, token)
		}
		l.mu.Lock()
		if len(l.done) == all || l.fault != "" {
			cancel()
		}
		l.mu.Unlock()
	}
}

// settle acknowledges or rejects a job, or crashes, at random.
func (l *ledger) settle(c *session.Session, rng *rand.Rand, j job, token int64) {
	switch rng.IntN(4) {
	case 0: // the consumer crashes: the job is due again when the lease has ended
	case 1:
		l.givenBack(j.id)
		services.Ask(c, "DQ.NACK", "q", j.id, j.token, "DELAY", fmt.Sprint(rng.IntN(20)))
	default:
		if rng.IntN(4) == 0 {
			time.Sleep(time.Duration(rng.IntN(2*jobLease)) * time.Millisecond) // the bubble's time
		}
		if services.Ask(c, "DQ.ACK", "q", j.id, j.token).Int == 1 {
			l.mu.Lock()
			l.done[j.id]++
			if l.last[j.id] > token {
				l.fault = fmt.Sprintf("%s is done by one whose lease was another's", j.id)
			}
			l.mu.Unlock()
		}
	}
}
