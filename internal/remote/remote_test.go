package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/routing"
	"github.com/ebbdb/ebb/resp"
)

func TestAShutGateWaitsForTheLastCall(t *testing.T) {
	for range 200 {
		g := NewGate()
		var calls sync.WaitGroup
		shut := make(chan struct{})
		for range 8 {
			calls.Go(func() {
				for g.Enter() {
					g.Leave()
				}
				<-shut // no call enters a gate that is still open
			})
		}
		if !g.Enter() {
			t.Fatal("an open gate refuses a call")
		}
		if !g.Shut() || g.Shut() {
			t.Fatal("the first call of Shut is not told apart")
		}
		close(shut)
		calls.Wait()
		select {
		case <-g.last:
			t.Fatal("the gate does not wait for a call that is inside")
		default:
		}
		g.Leave()
		g.Wait()
	}
}

func TestWhatMayHaveRunIsNotSentAgain(t *testing.T) {
	refused := conn.Value{Kind: resp.KindError, Str: "READONLY You can't write against a read only replica."}
	moving := conn.Value{Kind: resp.KindError, Str: "TRYAGAIN Multiple keys request during rehashing of slot"}
	away := fmt.Errorf("%w: no route", conn.ErrUnavailable)
	closed := make(chan struct{})
	close(closed)
	for name, x := range map[string]struct {
		p    Policy
		a    Answer
		want bool
	}{
		"a reply":                               {Policy{Follows: true}, Of(conn.Value{Kind: resp.KindInt}), false},
		"an error that says nothing ran":        {Policy{}, Of(moving), true},
		"a replica, whose master may come":      {Policy{Follows: true}, Of(refused), true},
		"a single server that is a replica":     {Policy{}, Of(refused), false},
		"no connection, the address may change": {Policy{Follows: true}, Answer{Err: away}, true},
		"no connection to a single server":      {Policy{}, Answer{Err: away}, false},
		"a connection that another call opened": {Policy{}, Answer{Err: away, Stray: true}, true},
		"it may have run":                       {Policy{Follows: true}, Answer{Err: away, Ran: true}, false},
		"a closed driver":                       {Policy{Follows: true, Closed: closed}, Answer{Err: away}, false},
	} {
		if got := x.p.Again(t.Context(), x.a); got != x.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	p := Policy{Name: "driver"}
	tries := 0
	_, err := p.Persist(ended, "GET", func() Answer { tries++; return Of(moving) })
	if tries != 1 || !errors.Is(err, context.Canceled) || !errors.Is(err, conn.ErrUnavailable) ||
		!strings.HasPrefix(err.Error(), "driver: GET: ") {
		t.Errorf("after the context's end: %d tries, %v", tries, err)
	}
	tries = 0
	v, err := p.Persist(t.Context(), "GET", func() Answer {
		if tries++; tries < 3 {
			return Of(moving)
		}
		return Of(conn.Value{Kind: resp.KindInt, Int: 7})
	})
	if tries != 3 || err != nil || v.Int != 7 {
		t.Errorf("%d tries: %v, %v", tries, v, err)
	}
}

func TestAWriteThatTooFewReplicasHaveIsAnError(t *testing.T) {
	w := Replicas{N: 2, Within: time.Millisecond + 1}
	done := Answer{V: conn.Value{Kind: resp.KindBulk, Str: "OK"}, Ran: true}
	on := func(n int64) Answer { return Of(conn.Value{Kind: resp.KindInt, Int: n}) }
	if got := w.Check(done, on(2)); got.Err != nil {
		t.Errorf("on both: %v", got.Err)
	}
	for _, waited := range []Answer{on(1), {Err: errors.New("cut")}, Of(conn.Value{Kind: resp.KindError, Str: "ERR no"})} {
		if got := w.Check(done, waited); !errors.Is(got.Err, conn.ErrNotReplicated) {
			t.Errorf("%+v: %v", waited, got.Err)
		}
	}
	if got := w.Check(Answer{V: done.V}, on(0)); got.Err != nil {
		t.Errorf("of a command that has not run: %v", got.Err)
	}
	if w.Millis() != 2 || (Replicas{}).Millis() != 1 {
		t.Errorf("milliseconds: %d, %d", w.Millis(), Replicas{}.Millis())
	}
}

func TestEachMasterGetsItsOwnCursor(t *testing.T) {
	var sent []string
	word := func(s string) string { return s }
	_, err := FanOut(routing.FanOutOf("scan", "b:1/17"), []string{"SCAN", "b:1/17", "COUNT", "5"}, word, []string{"a:1", "b:1"},
		func(at int, args []string) (conn.Value, error) {
			sent = append(sent, fmt.Sprint(at, args))
			return conn.Value{}, errors.New("enough")
		})
	if err == nil || !slices.Equal(sent, []string{"1 [SCAN 17 COUNT 5]"}) {
		t.Errorf("%v, %v", sent, err)
	}
}
