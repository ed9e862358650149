package commands_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/limiter"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/modeltest"
	"github.com/ebbdb/ebb/internal/testing/services"
)

// If a connection closes between its grant and the reply, the next client in line gets the grant.
func TestATurnThatWasNotTakenPassesOn(t *testing.T) {
	for algo := range limiter.Algos {
		t.Run(algo.String(), func(t *testing.T) {
			var hooks session.Hooks
			clock := clock.NewManual(time.UnixMilli(1_700_000_000_000))
			db := engine.Open(engine.Options{Hooks: &hooks, Clock: clock, RecordEffects: true})
			defer db.Close()
			s, err := session.NewService(session.Options{DB: db, Table: servercmd.Table}, &hooks)
			services.Must(t, err)
			defer s.Close()
			own := s.NewSession(nil)
			defer own.Closed(nil)

			rate := []string{"5", "60000"}
			words := func(head string, tail ...string) []string {
				return append(append([]string{head, "k"}, rate...), append(tail, "ALGO", algo.String())...)
			}
			services.Ask(own, words("RL.TAKE", "COST", "5")...)
			dies := services.Waiting(t, s, words("RL.WAIT", "0", "COST", "3")...)
			next := services.Waiting(t, s, words("RL.WAIT", "0", "COST", "4")...)
			clock.Advance(80 * time.Second) // the first client gets the grant, and the next must wait
			if v := services.Ask(own, "RL.INFO", "k"); v.Elems[17].Int != 1 {
				t.Fatalf("not one waits: %v", v)
			}
			dies.Session.Closed(io.EOF)
			clock.Advance(10 * time.Second) // the weighted window still counts some of the first five
			left := map[limiter.Algo]string{limiter.Window: "0"}[algo]
			if left == "" {
				left = "1"
			}
			out, _ := next.Reply()
			if !strings.HasPrefix(out, "*5\r\n:1\r\n:5\r\n:"+left+"\r\n") {
				t.Errorf("the next one gets %q", out)
			}
			if n := db.Waiters(); n != 0 {
				t.Errorf("%d places in lines are still taken", n)
			}
			services.Must(t, db.Check())
			services.Must(t, modeltest.CheckEffects(db))
		})
	}
}
