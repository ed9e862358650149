package group

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/group/settings"
	"github.com/ebbdb/ebb/internal/group/shard"
	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/services"
)

const secondUs = int64(1e6)

func TestAShiftMovesByOnePercentAndNotBeyond(t *testing.T) {
	for _, to := range []int64{-3 * secondUs, -1, 0, 7, 3 * secondUs} {
		machine := clock.NewManual(time.UnixMicro(1e15))
		c := newEngineClock(machine)
		c.slew(to)
		for range 400 {
			before := c.Micros()
			machine.Advance(time.Second)
			if d := c.Micros() - before; d < secondUs*99/100 || d > secondUs*101/100 {
				t.Fatalf("to %d: it has advanced by %d us in a second", to, d)
			}
		}
		if got := c.Micros() - machine.Micros(); got != to {
			t.Errorf("after 400 s the shift is %d, want %d", got, to)
		}
		c.slew(0)
		if got := c.Micros() - machine.Micros(); got != to {
			t.Errorf("a new aim has moved the shift from %d to %d", to, got)
		}
		c.set(5)
		if got := c.Micros() - machine.Micros(); got != 5 {
			t.Errorf("the shift was set to %d, want 5", got)
		}
		before := c.Micros()
		if c.NotBefore(before + 9); c.Micros() != before+9 {
			t.Errorf("NotBefore of 9 us later: %d us later", c.Micros()-before)
		}
	}
}

// A late heartbeat shows too small a lead. The greatest lead of the newest heartbeats counts.
func TestTheHeartbeatThatWasLeastLateTellsTheTime(t *testing.T) {
	var d difference
	for i, x := range []struct {
		epoch       uint64
		ahead, want int64
		ok          bool
	}{
		{1, 30, 30, false}, {1, 20, 30, true}, {1, -900, 30, true}, {1, 29, 30, true}, {1, 10, 29, true}, {1, 31, 31, true},
		{2, -50, -50, false}, {2, -49, -49, true},
	} {
		d.add(x.epoch, x.ahead)
		if got, ok := d.best(); got != x.want || ok != x.ok {
			t.Errorf("after heartbeat %d: %d, %v, want %d, %v", i, got, ok, x.want, x.ok)
		}
	}
}

// followerOfOne returns node 2 of a group, its machine's clock, and node 1, which is the master of epoch 3.
func followerOfOne() (m *Member, machine *clock.Manual, one directory.Member) {
	one = directory.Member{Node: 1, Incarnation: 1}
	m = New(Options{Group: &settings.Settings{Lease: time.Second, Lag: time.Second}, Now: func() time.Duration { return 0 }})
	m.log = oplog.New(0)
	machine = clock.NewManual(time.UnixMicro(1e15))
	m.Clock(machine)
	m.registered(directory.Member{Node: 2, Incarnation: 1}, []directory.Shard{ledByOne(3)})
	return m, machine, one
}

func ledByOne(epoch uint64) directory.Shard {
	one := directory.Member{Node: 1, Incarnation: 1}
	return directory.Shard{ID: 1, Epoch: epoch, Version: epoch, Master: one, InSync: []directory.Member{one, {Node: 2, Incarnation: 1}}}
}

func TestOnlyTheMasterTellsTheTime(t *testing.T) {
	m, machine, one := followerOfOne()
	at := machine.Micros() + 30*secondUs
	for _, r := range []shard.Report{
		{From: one, Master: 3},           // carries no time
		{From: one, Master: 2, Time: at}, // from an older epoch
		{From: directory.Member{Node: 1, Incarnation: 2}, Master: 3, Time: at}, // of a newer incarnation than the master's
		{From: directory.Member{Node: 3, Incarnation: 1}, Master: 3, Time: at}, // from a node that is not the master
		{From: one, Time: at}, // its sender is not the master yet
		{From: directory.Member{Node: 1, Incarnation: 1}, Master: 10, Time: at}, // from a later epoch
	} {
		if m.heartbeat(r); m.ahead.n != 0 {
			t.Fatalf("%+v tells the time", r)
		}
	}
	m.heartbeat(shard.Report{From: one, Master: 3, Time: at})
	m.heartbeat(shard.Report{From: one, Master: 3, Time: at})
	if got, ok := m.ahead.best(); got != 30*secondUs || !ok {
		t.Errorf("the master is ahead by %d us, %v", got, ok)
	}
	m.svc = services.Start(t)
	if r := m.report(); r.Time != machine.Micros() {
		t.Errorf("the heartbeat has the time %d, want %d", r.Time, machine.Micros())
	}
}

// A master that was replaced has no estimate of the next master's time until it receives that master's heartbeats.
func TestAnOlderMasterDoesNotTellTheTime(t *testing.T) {
	m, machine, one := followerOfOne()
	for range samples {
		m.heartbeat(shard.Report{From: one, Master: 3, Time: machine.Micros() + settable/2})
	}
	if m.keepTime(); m.clock.shift.Load().to != settable/2 {
		t.Fatalf("the clock moves to %d, want to %d", m.clock.shift.Load().to, int64(settable/2))
	}
	m.resume() // it has led epoch 4
	m.applied([]directory.Shard{ledByOne(5)})
	if m.keepTime(); m.clock.shift.Load().to != 0 {
		t.Errorf("heartbeats of epoch 3 move the clock to %d in epoch 5", m.clock.shift.Load().to)
	}
}

// Setting the clock stops all shards while their deadlines are moved, so varying latency of the network must not
// cause it.
func TestHeartbeatsThatAreLateDoNotSetTheClockAgain(t *testing.T) {
	m, machine, one := followerOfOne()
	var said bytes.Buffer
	m.opt.Logger = slog.New(slog.NewTextHandler(&said, nil))
	m.db = engine.Open(engine.Options{Clock: m.clock})
	defer m.db.Close()
	random := rand.New(rand.NewPCG(draw.Seed(t, 0), 3))
	for range 1000 {
		machine.Advance(200 * time.Millisecond)
		late := 5e3 + random.Int64N(55e3)
		m.heartbeat(shard.Report{From: one, Master: 3, Time: machine.Micros() + 30*secondUs - late})
		m.keepTime()
	}
	if n := strings.Count(said.String(), "the engine's time was set"); n != 1 {
		t.Errorf("the clock was set %d times, want once: %s", n, said.String())
	}
	if off := m.clock.present() - 30*secondUs; off > 0 || off < -60e3 {
		t.Errorf("the clock is off by %d us", off)
	}
}
