package crashtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// group is a master, a replica and three sentinels that watch them.
type group struct {
	nodes     []*realserver.Process
	sentinels []*realserver.Process
}

const sentinelConfig = `port %d
bind 127.0.0.1
dir %s
sentinel monitor shop 127.0.0.1 %d 2
sentinel down-after-milliseconds shop 800
sentinel failover-timeout shop 4000
sentinel parallel-syncs shop 1
`

// startGroup starts a group whose master and replica run a program with these arguments.
func startGroup(t *testing.T, program string, args ...string) *group {
	t.Helper()
	g := &group{}
	for i := range 2 {
		p := realserver.NewProcess(t, program, append([]string{"--repl-diskless-sync-delay", "0"}, args...)...)
		g.nodes = append(g.nodes, p)
		if i == 0 {
			p.Start()
		} else {
			p.Start("--replicaof", fmt.Sprintf("127.0.0.1 %d", g.nodes[0].Port))
		}
	}
	for range 3 {
		p := realserver.NewProcess(t, "redis-sentinel")
		p.Config = fmt.Sprintf(sentinelConfig, p.Port, p.Dir, g.nodes[0].Port)
		p.Start()
		g.sentinels = append(g.sentinels, p)
	}
	return g
}

// addrs returns the addresses at which the sentinels listen.
func (g *group) addrs() (all []string) {
	for _, p := range g.sentinels {
		all = append(all, p.Addr())
	}
	return all
}

// master returns the master that a sentinel names.
func (g *group) master(ctx context.Context) (*realserver.Process, error) {
	s := redis.NewSentinelClient(&redis.Options{Addr: g.sentinels[0].Addr()})
	defer s.Close()
	addr, err := s.GetMasterAddrByName(ctx, "shop").Result()
	if err != nil {
		return nil, err
	}
	for _, p := range g.nodes {
		if p.Addr() == strings.Join(addr, ":") {
			return p, nil
		}
	}
	return nil, fmt.Errorf("sentinel names %s, which is not a server's", addr)
}

// healthy reports whether all sentinels see a master with one good replica, and two
// other sentinels.
func (g *group) healthy(ctx context.Context) bool {
	for _, p := range g.sentinels {
		s := redis.NewSentinelClient(&redis.Options{Addr: p.Addr()})
		m, err := s.Master(ctx, "shop").Result()
		replicas, err2 := s.Replicas(ctx, "shop").Result()
		_ = s.Close()
		if err != nil || err2 != nil || m["flags"] != "master" || m["num-other-sentinels"] != "2" || len(replicas) != 1 ||
			replicas[0]["flags"] != "slave" || replicas[0]["master-link-status"] != "ok" {
			return false
		}
	}
	return true
}

// journal is a client that writes numbers to a list, each with WAIT 1, and knows
// which ones a replica has acknowledged.
type journal struct {
	c    *redis.Client
	next int64

	mu    sync.Mutex // guards what follows
	safe  []int64
	since time.Time // a master was killed
	first time.Time // the first write after that was acknowledged
}

func (j *journal) run(ctx context.Context) {
	for ctx.Err() == nil {
		j.next++
		began := time.Now()
		var pushed *redis.IntCmd
		var waited *redis.IntCmd
		conn := j.c.Conn()
		pushed = conn.RPush(ctx, "journal", j.next)
		if pushed.Err() == nil {
			waited = conn.Wait(ctx, 1, 500*time.Millisecond)
		}
		_ = conn.Close()
		if pushed.Err() != nil {
			continue
		}
		j.mu.Lock()
		if j.first.IsZero() && began.After(j.since) {
			j.first = time.Now()
		}
		if waited.Err() == nil && waited.Val() >= 1 {
			j.safe = append(j.safe, j.next)
		}
		j.mu.Unlock()
	}
}

// acked returns the numbers that a replica has acknowledged.
func (j *journal) acked() []int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.safe)
}

// killed notes that the master is gone.
func (j *journal) killed() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.since, j.first = time.Now(), time.Time{}
}

// pause returns the time for which no write was acknowledged after killed; ok is false while none
// is.
func (j *journal) pause() (d time.Duration, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.first.Sub(j.since), !j.first.IsZero()
}

// TestSentinelFailsOverWithoutLoss kills the master under load, with kill -9, and
// has unmodified redis-sentinels promote the replica; the old master comes back as
// replica of the new one.
func TestSentinelFailsOverWithoutLoss(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	g := startGroup(t, realserver.Ebb(t))
	tier.Eventually(t, "the sentinels see a master and its replica", func() bool { return g.healthy(ctx) })
	c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "shop", SentinelAddrs: g.addrs(), MaxRetries: -1,
		DialTimeout: time.Second, ReadTimeout: 2 * time.Second, WriteTimeout: 2 * time.Second})
	defer c.Close()
	running, stop := context.WithCancel(ctx)
	defer stop()
	j := &journal{c: c}
	var done sync.WaitGroup
	done.Go(func() { j.run(running) })

	token := int64(0)
	for round := range roundsOr(1) {
		grown := grant(t, c, token)
		before := len(j.acked()) // and with what comes then, that the lock was given back
		tier.Eventually(t, "writes go on", func() bool { return len(j.acked()) > before+50 })
		m, err := g.master(ctx)
		if err != nil {
			t.Fatal(err)
		}
		m.Kill()
		j.killed()
		tier.Eventually(t, "writes go on at another master", func() bool { _, ok := j.pause(); return ok && g.moved(ctx, m) })
		pause, _ := j.pause()
		token = grant(t, c, grown)
		m.Start()
		tier.Eventually(t, "the old master follows the new one", func() bool { return g.healthy(ctx) })
		t.Logf("round %d: writes went on after %.1f s; token %d, then %d (+%.1f s)", round, pause.Seconds(), grown,
			token, float64(token-grown)/1e6)
	}
	stop()
	done.Wait()
	g.compare(t, j)
}

// moved reports whether a server other than m is master.
func (g *group) moved(ctx context.Context, m *realserver.Process) bool {
	now, err := g.master(ctx)
	return err == nil && now != m
}

// grant takes a lock, whose token must be greater than the one before, and gives it
// back.
func grant(t *testing.T, c *redis.Client, before int64) (token int64) {
	t.Helper()
	tier.Eventually(t, "the lock is granted", func() bool {
		var err error
		token, err = c.Do(t.Context(), "LOCK.ACQUIRE", "lock", "me", 60000).Int64()
		return err == nil && c.Do(t.Context(), "LOCK.RELEASE", "lock", "me", token).Err() == nil
	})
	if token <= before {
		t.Errorf("token %d after %d", token, before)
	}
	return token
}

// compare looks whether what a replica had acknowledged is there.
func (g *group) compare(t *testing.T, j *journal) {
	t.Helper()
	there := map[string]bool{}
	for _, v := range j.c.LRange(t.Context(), "journal", 0, -1).Val() {
		there[v] = true
	}
	safe := j.acked()
	lost := 0
	for _, n := range safe {
		if !there[fmt.Sprint(n)] {
			lost++
			t.Logf("lost: %d of %d", n, j.next)
		}
	}
	t.Logf("%d writes were acknowledged by WAIT 1; lost: %d", len(safe), lost)
	if lost > 0 {
		t.Errorf("%d of %d writes that WAIT 1 had acknowledged are lost", lost, len(safe))
		for _, p := range append(g.nodes, g.sentinels...) { // their logs show each change of a master
			t.Logf("%s said: %s", p.Addr(), p.Said())
		}
	}
}

// TestTwoMastersGrantDifferentTokens promotes the replica of a killed master that then restarts as a master, as it may
// do before a sentinel tells it otherwise. A token of the one must not be valid on the other.
func TestTwoMastersGrantDifferentTokens(t *testing.T) {
	master := realserver.NewProcess(t, realserver.Ebb(t), "--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync-delay", "0")
	master.Start()
	master.Kill()
	master.Start() // its tokens are ahead of the clock now, so that the next one follows from the last one
	replica := realserver.NewProcess(t, realserver.Ebb(t), "--replicaof", fmt.Sprint("127.0.0.1 ", master.Port))
	replica.Start()
	granted := map[int64]string{}
	for round := range 3 {
		for i := range 4 {
			ask(t, master, "LOCK.ACQUIRE", fmt.Sprint(round, "-", i), "me", "60000")
		}
		tier.Eventually(t, "the replica has all grants", func() bool { return ask(t, master, "WAIT", "1", "1000").Int == 1 })
		master.Kill()
		ask(t, replica, "REPLICAOF", "NO", "ONE")
		master.Start()
		for i := range 4 {
			for name, p := range map[string]*realserver.Process{"the old master": master, "the new master": replica} {
				token := ask(t, p, "LOCK.ACQUIRE", fmt.Sprint("both-", round, "-", i), "me", "60000").Int
				if before, twice := granted[token]; twice || token == 0 {
					t.Errorf("round %d: token %d is of %s, and of %s", round, token, name, before)
				}
				granted[token] = name
			}
		}
		ask(t, replica, "REPLICAOF", "127.0.0.1", fmt.Sprint(master.Port))
	}
}
