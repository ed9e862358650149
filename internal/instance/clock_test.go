package instance

import (
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// settable is a clock that a test sets, as a group sets a member's.
type settable struct {
	*clock.System
	ahead atomic.Int64 // us
}

func (c *settable) Micros() int64 { return c.System.Micros() + c.ahead.Load() }

// set sets how far the engine's clock of an instance is ahead of the machine's.
func (c *settable) set(in *Instance, ahead time.Duration) {
	tx := in.db.BeginAll(0)
	defer tx.Commit()
	c.ahead.Store(ahead.Microseconds())
	tx.Retime()
}

// A member's clock is its master's, which may be far from its machine's. Setting the clock changes no interval that
// is under way.
func TestIntervalsDoNotChangeWhenTheClockIsSet(t *testing.T) {
	t.Parallel()
	master, replica, rg := linkedMembers(t)
	m, c, idle := connect(t, master.address()), connect(t, replica.address()), connect(t, replica.address())
	m.must("XADD", "s", "*", "f", "v")
	c.must("CONFIG", "SET", "timeout", "1000", "repl-timeout", "1000")
	idle.must("PING")
	for _, ahead := range []time.Duration{10 * time.Second, -10 * time.Second, time.Hour, -time.Hour} {
		c.must("CLIENT", "PAUSE", "100", "WRITE") // holds back the master's stream
		rg.clock.set(replica, ahead)
		began := time.Now()
		c.must("XREAD", "BLOCK", "100", "STREAMS", "s", "$")
		if took := time.Since(began); took < 90*time.Millisecond {
			t.Errorf("the clock is set to %v: a wait of 100 ms ends after %v", ahead, took)
		}
		m.must("SET", "k", ahead.String())
		tier.Eventually(t, "the pause is over", func() bool { return c.must("GET", "k").Str == ahead.String() })
		seen := rg.acks.Load()
		tier.Eventually(t, "the link is looked at", func() bool { return rg.acks.Load() >= seen+2 })
		_, age, _ := strings.Cut(idle.must("CLIENT", "INFO").Str, " age=")
		age, _, _ = strings.Cut(age, " ")
		if n, err := strconv.Atoi(age); err != nil || n < 0 || n > 600 {
			t.Errorf("the clock is set to %v: the age of a client is %q", ahead, age)
		}
	}
	if rg.noted("closed") {
		t.Error("the link to the master has ended")
	}
}
