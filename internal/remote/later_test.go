package remote

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/drivers"
)

func TestWhatIsGivenBackIsGivenBackAgainTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Later
		began := time.Now()
		runs := make(chan time.Duration, 3)
		l.Run(func(life context.Context) {
			if life.Err() != nil {
				t.Error("its driver has ended")
			}
			runs <- time.Since(began)
		})
		for _, want := range []time.Duration{250 * time.Millisecond, 2 * time.Second} {
			if got := <-runs; got != want {
				t.Errorf("it ran after %v, want %v", got, want)
			}
		}
		l.Close()
		l.Run(func(context.Context) { t.Error("it ran after Close") })
		time.Sleep(time.Minute)
		if len(l.planned) > 0 {
			t.Errorf("%d are planned", len(l.planned))
		}
	})
}

func TestCloseWaitsForTheFirstRepeatAndDropsTheSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Later
		early, late := 0, 0
		l.Run(func(context.Context) { early++ })
		time.Sleep(time.Second)
		began := time.Now()
		l.Run(func(life context.Context) {
			late++
			<-life.Done() // the server is silent
		})
		l.Close()
		if took := time.Since(began); took != laterPauses[0]+laterGrace {
			t.Errorf("Close took %v", took)
		}
		if early != 1 || late != 1 {
			t.Errorf("they ran %d and %d times, want once each", early, late)
		}
	})
}

func TestPlannedRepeatsHaveABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Later
		ran := make(chan struct{}, 2*mostLater)
		for range mostLater + 100 {
			l.Run(func(context.Context) { ran <- struct{}{} })
		}
		time.Sleep(time.Second)
		if len(ran) != mostLater {
			t.Errorf("%d ran, want %d", len(ran), mostLater)
		}
		l.Close()
	})
}

func TestOnlyACallThatWasSentAndGotNoReplyIsTakenBackLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Later
		p := Policy{Name: "ebb", Later: &l}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		lost := fmt.Errorf("%w: cut", conn.ErrUnavailable)
		for what, c := range map[string]struct {
			ctx  context.Context
			a    Answer
			want bool
		}{
			"a cut":              {t.Context(), Answer{Err: lost, Ran: true}, true},
			"an end":             {over, Answer{Err: context.Canceled, Ran: true}, true},
			"nothing was sent":   {t.Context(), Answer{Err: lost}, false},
			"an end before":      {over, Answer{Err: context.Canceled}, false},
			"closed":             {t.Context(), Answer{Err: conn.ErrClosed, Ran: true}, false},
			"a conflict":         {t.Context(), Answer{Err: conn.ErrConflict, Ran: true}, false},
			"a reply":            {t.Context(), Answer{Ran: true}, false},
			"a reply, at an end": {over, Answer{Ran: true}, false},
		} {
			_, err := p.Result(c.ctx, "X", c.a)
			if !errors.Is(err, c.a.Err) {
				t.Errorf("%s: %v", what, err)
			}
			if got := drivers.RepeatLater(fmt.Errorf("acquire: %w", err), func(context.Context) {}); got != c.want {
				t.Errorf("%s: it is taken back later: %v, want %v", what, got, c.want)
			}
		}
		l.Close()
	})
}
