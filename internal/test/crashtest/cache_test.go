package crashtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/cache"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// source is the data that a cache caches: a number that grows. A writer increases it, and then invalidates the cache.
type source struct {
	version atomic.Int64
	floor   atomic.Int64 // the version of the last deletion from the cache that has returned nil
	fresh   atomic.Int64 // the same for deletions and for values made stale

	mu     sync.Mutex // guards what follows
	old    []string   // values that were read although a later version was invalidated before
	tokens map[int64]bool
	twice  []int64 // tokens that were given to two loaders
	reads  int
	stored int
	lost   int // values that were not stored, because their token had ended
	errors int
}

func raise(a *atomic.Int64, v int64) {
	for was := a.Load(); was < v && !a.CompareAndSwap(was, v); was = a.Load() {
	}
}

// read notes a value, and the floors from before the read.
func (s *source) read(how, value string, floor int64) {
	v, err := strconv.ParseInt(value, 10, 64)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if err != nil || v < floor {
		s.old = append(s.old, how+" read "+value+" after the deletion of "+strconv.FormatInt(floor, 10))
	}
}

// elected notes a token.
func (s *source) elected(token int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tokens[token] {
		s.twice = append(s.twice, token)
	}
	s.tokens[token] = true
}

func (s *source) note(n *int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*n++
}

// The times of the raw key: a loader that hangs outlives its lease.
const (
	chaosFresh, chaosTTL  = 60 * time.Millisecond, 2 * time.Second
	chaosLease, chaosHang = 250 * time.Millisecond, 400 * time.Millisecond
)

// load plays one reader of the key with ebb's commands. If it is elected, it loads: it may die, hang or fail.
func (s *source) load(ctx context.Context, c *ebb.Conn, rng *rand.Rand) error {
	floor, fresh := s.floor.Load(), s.fresh.Load()
	r, err := c.Block(ctx, "GETFRESH", "raw", "LEASE", chaosLease.Milliseconds(), "WAIT", 200)
	if err != nil {
		return err
	}
	state, value, token := r.Elems[0].Str, r.Elems[1], r.Elems[2].Int
	if !value.IsNull() {
		if state == "fresh" {
			floor = fresh
		}
		s.read("GETFRESH", value.Str, floor)
	}
	if state != "refresh" {
		return nil
	}
	s.elected(token)
	v := s.version.Load()
	switch rng.IntN(8) {
	case 0: // the loader dies
		return nil
	case 1: // it fails
		_, err := c.Do(ctx, "UNLEASE", "raw", token)
		return err
	case 2: // it hangs
		pauseFor(chaosHang)
	default:
		pauseFor(time.Duration(rng.IntN(8)) * time.Millisecond)
	}
	err = c.Set(ctx, "raw", strconv.FormatInt(v, 10), ebb.SetOptions{TTL: chaosTTL, Fresh: chaosFresh, Token: token})
	switch err {
	case nil:
		s.note(&s.stored)
	case ebb.ErrNotSet:
		s.note(&s.lost)
		err = nil
	}
	return err
}

// get plays one call of package cache.
func (s *source) get(ctx context.Context, x *cache.Cache[string, string], rng *rand.Rand) error {
	floor, hangs := s.floor.Load(), rng.IntN(8) == 0
	v, err := x.Get(ctx, "home", func(context.Context, string) (string, error) {
		v := s.version.Load()
		if hangs {
			pauseFor(chaosHang)
		}
		pauseFor(time.Duration(v%5) * time.Millisecond)
		return strconv.FormatInt(v, 10), nil
	})
	if err == nil {
		s.read("Cache.Get", v, floor)
	}
	return err
}

// TestACacheSurvivesKillsAndFailovers kills the master and the replica of a cache, and has Sentinel promote the
// replica, while programs read, load and invalidate. Invalidations wait for the replica. A value that a program reads
// is never older than the last invalidation that had returned, whatever loaders do, and no token is given twice.
func TestACacheSurvivesKillsAndFailovers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{realserver.Redis7, us} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := name
			if name == us {
				program = realserver.Ebb(t)
			}
			rng := rand.New(rand.NewPCG(draw.Seed(t, 0), 0))
			g := startGroup(t, program, "--appendonly", "yes", "--appendfsync", "always")
			tier.Eventually(t, "the sentinels see a master and its replica", func() bool { return g.healthy(t.Context()) })
			cacheChaos(t, g, rng, name == us)
		})
	}
}

func cacheChaos(t *testing.T, g *group, rng *rand.Rand, native bool) {
	ctx := t.Context()
	running, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	raw, cached := &source{tokens: map[int64]bool{}}, &source{}
	loop := func(s *source, do func(rng *rand.Rand) error) {
		own := rand.New(rand.NewPCG(rng.Uint64(), 0))
		all.Go(func() {
			for running.Err() == nil {
				if err := do(own); err != nil && running.Err() == nil {
					s.note(&s.errors)
				}
				pauseFor(time.Duration(own.IntN(4)) * time.Millisecond)
			}
		})
	}
	for range 3 {
		c, err := ebb.Open(ctx, "redis+sentinel://"+strings.Join(g.addrs(), ",")+"/shop/0?dial_timeout=1s&read_timeout=2s")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		c = c.Replicated(1, time.Second)
		x, err := cache.New(c, "page", cache.Options[string, string]{Fresh: chaosFresh, TTL: chaosTTL, Lease: chaosLease})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(x.Close)
		for range 2 {
			loop(cached, func(rng *rand.Rand) error { return cached.get(running, x, rng) })
		}
		loop(cached, func(rng *rand.Rand) error {
			return cached.invalidate(running, rng, func() error { return x.Delete(running, "home") },
				func() error { return x.Stale(running, "home") })
		})
		if !native {
			continue
		}
		for range 2 {
			loop(raw, func(rng *rand.Rand) error { return raw.load(running, c, rng) })
		}
		loop(raw, func(rng *rand.Rand) error {
			del := func() error { _, err := c.Del(running, "raw"); return err }
			stale := func() error { _, err := c.Do(running, "STALE", "raw"); return err }
			return raw.invalidate(running, rng, del, stale)
		})
	}
	sources := map[string]*source{"package cache": cached}
	if native {
		sources["GETFRESH"] = raw
	}
	for round := range roundsOr(1) {
		g.chaos(t, sources, round)
	}
	stop()
	all.Wait()
	for name, s := range sources {
		s.check(t, name)
	}
}

// invalidate makes a new version, and deletes the cached one or makes it stale.
func (s *source) invalidate(ctx context.Context, rng *rand.Rand, del, stale func() error) error {
	pauseFor(time.Duration(20+rng.IntN(60)) * time.Millisecond)
	v := s.version.Add(1)
	way, floor := del, &s.floor
	if rng.IntN(2) == 0 {
		way, floor = stale, &s.fresh
	}
	for ctx.Err() == nil {
		if err := way(); err != nil {
			s.note(&s.errors)
			pauseFor(5 * time.Millisecond)
			continue
		}
		raise(floor, v)
		raise(&s.fresh, v)
		return nil
	}
	return nil
}

// chaos kills the replica, kills the master and starts it at once, and kills it until the replica is promoted.
func (g *group) chaos(t *testing.T, sources map[string]*source, round int) {
	t.Helper()
	ctx := t.Context()
	goesOn := func() {
		for name, s := range sources {
			s.mu.Lock()
			reads := s.reads
			s.mu.Unlock()
			v := s.floor.Load()
			tier.Eventually(t, name+" goes on", func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				return s.reads > reads+100 && s.floor.Load() > v+5
			})
		}
	}
	for what := range 3 {
		goesOn()
		m, err := g.master(ctx)
		if err != nil {
			t.Fatal(err)
		}
		switch what {
		case 0:
			replica := g.other(m)
			replica.Kill()
			replica.Start("--replicaof", fmt.Sprint("127.0.0.1 ", m.Port))
		case 1:
			m.Kill()
			m.Start()
		case 2:
			m.Kill()
			tier.Eventually(t, "another master is named", func() bool { return g.moved(ctx, m) })
			m.Start("--replicaof", fmt.Sprint("127.0.0.1 ", g.other(m).Port))
		}
		tier.Eventually(t, "all are there again", func() bool { return g.healthy(ctx) })
		t.Logf("round %d: %s", round, []string{"the replica was killed", "the master was killed", "the replica was promoted"}[what])
	}
	goesOn()
}

// other returns the other one of the two servers.
func (g *group) other(p *realserver.Process) *realserver.Process {
	if g.nodes[0] == p {
		return g.nodes[1]
	}
	return g.nodes[0]
}

// check fails the test for what must not be.
func (s *source) check(t *testing.T, name string) {
	t.Helper()
	t.Logf("%s: %d reads, %d versions, %d tokens, %d values stored, %d not stored, %d errors", name, s.reads,
		s.version.Load(), len(s.tokens), s.stored,
		s.lost, s.errors)
	if len(s.old) > 0 {
		t.Errorf("%s: %d values are older than their invalidation, such as: %s", name, len(s.old), s.old[0])
	}
	if len(s.twice) > 0 {
		t.Errorf("%s: %d tokens were given twice, such as %d", name, len(s.twice), s.twice[0])
	}
}
