package instance

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
)

// Clients in a limiter's line end in several ways, among them the first one. The others are served in order, one in
// each period.
func TestALimiterPassesTheDeadBy(t *testing.T) {
	for _, portable := range []bool{false, true} {
		t.Run(fmt.Sprint("portable ", portable), func(t *testing.T) {
			clock := clock.NewManual(time.UnixMilli(1_700_000_000_000))
			s := newLineServer(t, portable, clock)
			admin := s.dial()
			admin.send("RL.TAKE", "k", "1", "60000").read()
			const clients = 40
			line := make([]*lineClient, clients)
			ids := make([]int64, clients)
			for i := range line {
				line[i] = s.dial()
				ids[i] = line[i].send("CLIENT", "ID").read().Int
				line[i].send("RL.WAIT", "k", "1", "60000", "0")
				s.waiters(int64(i + 1))
			}
			left := clients
			for i := range line {
				switch i % 4 {
				case 0:
					line[i].conn.Close()
				case 1:
					admin.send("CLIENT", "KILL", "ID", strconv.FormatInt(ids[i], 10)).read()
				case 2:
					if v := admin.send("CLIENT", "UNBLOCK", strconv.FormatInt(ids[i], 10)).read(); v.Int != 1 || line[i].read().Elems[0].Int != 0 {
						t.Error("the client was not unblocked")
					}
				default:
					continue
				}
				left--
				s.waiters(int64(left))
			}
			for i := 3; i < clients; i += 4 {
				waiting := admin.send("RL.INFO", "k").read().Elems[19].Elems
				if len(waiting) != left || waiting[0].Elems[0].Int != ids[i] {
					t.Fatalf("client %d with id %d is not the first of %d: %v", i, ids[i], left, waiting)
				}
				clock.Advance(59 * time.Second)
				if n := s.db.Waiters(); n != int64(left) {
					t.Fatalf("%d of %d wait a second before the turn", n, left)
				}
				clock.Advance(time.Second)
				left--
				s.waiters(int64(left))
				if v := line[i].read(); v.Elems[0].Int != 1 {
					t.Errorf("client %d: %v", i, v)
				}
			}
		})
	}
}

// A client that is killed in line does not take from the limiter.
func TestADeadClientTakesNothing(t *testing.T) {
	clock := clock.NewManual(time.UnixMilli(1_700_000_000_000))
	s := newLineServer(t, false, clock)
	admin, dies := s.dial(), s.dial()
	admin.send("RL.TAKE", "k", "1", "60000").read()
	dies.send("RL.WAIT", "k", "1", "60000", "0")
	s.waiters(1)
	dies.conn.Close()
	s.waiters(0)
	clock.Advance(time.Minute)
	if v := admin.send("RL.TAKE", "k", "1", "60000").read(); v.Elems[0].Int != 1 {
		t.Errorf("the limiter is not free: %v", v)
	}
}
