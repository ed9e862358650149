package crashtest

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/modeltest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

var (
	ownFor  = flag.Duration("crash.own", 0, "how long the server is killed under random requests to all commands; 0: a fixed number of rounds")
	ownSeed = flag.Uint64("crash.seed", 0, "the seed of the first of these rounds; 0: see package draw")
)

// TestAKilledServerTakesItsOwnFiles kills the real program, again and again in one
// directory, while clients send it random requests to all commands, with short times to
// live everywhere; while it loads, clients watch keys and look at them. Each start must
// take the files, and so must DEBUG LOADAOF after it.
func TestAKilledServerTakesItsOwnFiles(t *testing.T) {
	table, err := servercmd.DefaultTable()
	if err != nil {
		t.Fatal(err)
	}
	seed := draw.Seed(t, *ownSeed)
	rnd := rand.New(rand.NewPCG(seed, 3))
	var p *realserver.Process
	var requests atomic.Int64
	rounds, starts, reloads := 0, 0, 0
	for rounds = range draw.Rounds(*ownFor, 8) {
		if rounds%20 == 0 { // another directory, another policy
			p = realserver.NewProcess(t, realserver.Ebb(t), "--appendonly", "yes", "--appendfsync", []string{"everysec", "always"}[rounds/20%2],
				"--auto-aof-rewrite-min-size", "200kb", "--save", "", "--enable-debug-command", "yes", "--maxmemory", []string{"0", "3mb"}[rounds/40%2],
				"--maxmemory-policy", "allkeys-random")
		}
		if err := startWatched(p, rnd); err != nil {
			t.Fatalf("round %d of seed %d: the start was refused: %v\n%s", rounds, seed, err, p.Said())
		}
		starts++
		if rounds%3 == 0 {
			reload := []string{"LOADAOF", "RELOAD"}[rounds/3%2]
			if v, err := once(p.Addr(), "DEBUG", reload); err != nil || v.Err() != nil {
				t.Fatalf("round %d of seed %d: DEBUG %s: %v %v\n%s", rounds, seed, reload, v, err, p.Said())
			}
			reloads++
		}
		life := time.Now().Add(time.Duration(50+rnd.IntN(500)) * time.Millisecond)
		var clients sync.WaitGroup
		for i := range uint64(6) {
			g := modeltest.NewOwnGenerator(seed+uint64(rounds)*6+i, table)
			clients.Go(func() { requests.Add(play(p.Addr(), g.Sequence(4000), life)) })
		}
		clients.Wait()
		p.Kill()
	}
	rounds++
	t.Logf("%d rounds: %d starts and %d reloads of %d requests, none was refused", rounds, starts, reloads, requests.Load())
}

// startWatched starts the program, and sends it what a server takes while it loads
// until it has loaded.
func startWatched(p *realserver.Process, rnd *rand.Rand) error {
	if err := p.Begin(); err != nil {
		return err
	}
	keys := []string{"r1", "r2", "k1", "k2", "m1", "{q}1", "{q}2", "{q}3", "b1", "b2", "a", "h1", "l1", "s1", "z1", "x1",
		"{t}h", "{t}l", "{t}s", "{t}z"}
	ended := p.Ended()
	for {
		c, err := net.Dial("tcp", p.Addr())
		if err == nil {
			err = watchUntilLoaded(c, keys, rnd)
			_ = c.Close()
			if err == nil {
				return nil
			}
		}
		select {
		case <-ended:
			return fmt.Errorf("the server has ended (%w)", err)
		case <-time.After(time.Millisecond):
		}
	}
}

// watchUntilLoaded returns nil when GET is answered by something else than LOADING.
func watchUntilLoaded(c net.Conn, keys []string, rnd *rand.Rand) error {
	r := bufio.NewReader(c)
	key := func() string { return keys[rnd.IntN(len(keys))] }
	for {
		requests := [][]string{append([]string{"WATCH"}, keys...), {"MULTI"}, {"PING"}, {"EXEC"}, {"DEBUG", "OBJECT", key()},
			{"DEBUG", "DIGEST-VALUE", key(), key()}, {"WATCH", key()}, {"DEBUG", "SET-ACTIVE-EXPIRE", "1"}, {"BLPOP", key(), "0.001"},
			{"CONFIG", "SET", "maxmemory-samples", "5"}, {"UNWATCH"}, {"TYPE", key()}}
		var b []byte
		for _, args := range requests {
			b = wire.AppendCommand(b, args...)
		}
		if _, err := c.Write(b); err != nil {
			return err
		}
		var last resp.Value
		for range requests {
			var err error
			if last, err = wire.ReadValue(r); err != nil {
				return err
			}
		}
		if !strings.HasPrefix(last.Str, "LOADING") {
			return nil
		}
	}
}

// once sends one command.
func once(addr string, args ...string) (resp.Value, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return resp.Value{}, err
	}
	defer c.Close()
	if _, err := c.Write(wire.AppendCommand(nil, args...)); err != nil {
		return resp.Value{}, err
	}
	return wire.ReadValue(bufio.NewReader(c))
}

// played is the time that the reply to one request may take before the connection is given
// up: it waits.
const played = 20 * time.Millisecond

// play sends the requests of a sequence until a time, each after the reply to the one
// before, and returns how many were answered. A request that waits costs its connection.
func play(addr string, ops []modeltest.Op, until time.Time) (answered int64) {
	memory := modeltest.Memory{}
	var c net.Conn
	var r *bufio.Reader
	defer func() {
		if c != nil {
			_ = c.Close()
		}
	}()
	for _, o := range ops {
		now := time.Now()
		if now.After(until) {
			return answered
		}
		args := memory.Resolve(o.Args, now.UnixMilli())
		if len(args) == 0 || strings.EqualFold(args[0], "CLIENT") {
			continue
		}
		if c == nil {
			var err error
			if c, err = net.Dial("tcp", addr); err != nil {
				return answered
			}
			r = bufio.NewReader(c)
		}
		v, err := func() (resp.Value, error) {
			if err := c.SetDeadline(now.Add(played)); err != nil {
				return resp.Value{}, err
			}
			if _, err := c.Write(wire.AppendCommand(nil, args...)); err != nil {
				return resp.Value{}, err
			}
			return wire.ReadValue(r)
		}()
		if err != nil {
			_ = c.Close()
			c = nil
			continue
		}
		answered++
		memory.Learn(args, v)
	}
	return answered
}
