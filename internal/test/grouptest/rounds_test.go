package grouptest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

var rounds = flag.Int("group.rounds", 3, "how often the master is killed in each test")

// perRound is the number of writes that are acknowledged before the master is killed.
const perRound = 300

// journal is a client that appends numbers to a list of its own and counts in a key that all share. It knows what was acknowledged.
type journal struct {
	id   int
	c    *redis.Client
	load *load

	next  int64
	acked []int64 // of its list
	// failed counts writes that had an error: the outcome of some is not certain, and others could not be sent.
	failed int64
}

func (j *journal) key() string { return "journal" + strconv.Itoa(j.id) }

// load has the state that the journals share.
type load struct {
	acked atomic.Int64
	high  atomic.Int64 // the greatest number that INCR was acknowledged with

	mu     sync.Mutex        // guards what follows
	counts map[int64]int     // how often INCR returned a number
	first  map[int]time.Time // by round: when the first write that began after the kill was acknowledged
	killed time.Time         // zero: the master was not killed in this round
	round  int
	stale  []string
	woken  chan struct{} // cap 1: something was acknowledged
}

// ack notes a write that was acknowledged.
func (l *load) ack(began time.Time) {
	l.acked.Add(1)
	l.mu.Lock()
	if _, ok := l.first[l.round]; !ok && !l.killed.IsZero() && began.After(l.killed) {
		l.first[l.round] = time.Now()
	}
	l.mu.Unlock()
	select {
	case l.woken <- struct{}{}:
	default:
	}
}

// run writes until ctx ends.
func (j *journal) run(ctx context.Context) {
	for ctx.Err() == nil {
		j.next++
		began := time.Now()
		if err := j.c.RPush(ctx, j.key(), j.next).Err(); err != nil {
			j.failed++
			continue
		}
		j.acked = append(j.acked, j.next)
		j.load.ack(began)
		n, err := j.c.Incr(ctx, "counter").Result()
		if err != nil {
			j.failed++
			continue
		}
		j.load.ack(began)
		j.load.counted(n)
	}
}

// counted notes a number that INCR has returned.
func (l *load) counted(n int64) {
	l.mu.Lock()
	l.counts[n]++
	l.mu.Unlock()
	for {
		high := l.high.Load()
		if n <= high || l.high.CompareAndSwap(high, n) {
			return
		}
	}
}

// read reads the counter until ctx ends: it never is below what was acknowledged before the read began.
func (l *load) read(ctx context.Context, c *redis.Client) {
	for ctx.Err() == nil {
		before := l.high.Load()
		n, err := c.Get(ctx, "counter").Int64()
		if err != nil && !errors.Is(err, redis.Nil) {
			continue
		}
		if n < before {
			l.mu.Lock()
			l.stale = append(l.stale, fmt.Sprintf("%d was acknowledged, a read returns %d", before, n))
			l.mu.Unlock()
		}
	}
}

// check compares the list with what was acknowledged: all of that is there, once and in order, and nothing that was never written.
func (j *journal) check(ctx context.Context, c *redis.Client) error {
	text, err := c.LRange(ctx, j.key(), 0, -1).Result()
	if err != nil {
		return err
	}
	var there []int64
	for _, s := range text {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return err
		}
		if len(there) > 0 && n <= there[len(there)-1] {
			return fmt.Errorf("%s: %d follows %d", j.key(), n, there[len(there)-1])
		}
		there = append(there, n)
	}
	for _, n := range j.acked {
		if _, ok := slices.BinarySearch(there, n); !ok {
			return fmt.Errorf("%s: %d was acknowledged and is lost", j.key(), n)
		}
	}
	return nil
}

// modes are the groups that are killed.
var modes = map[string]struct {
	servers int
	args    []string
}{
	"3 nodes, in memory":            {3, []string{"--appendonly", "no", "--min-sync-replicas", "1"}},
	"3 nodes, appendfsync everysec": {3, []string{"--appendonly", "yes", "--appendfsync", "everysec", "--min-sync-replicas", "1"}},
	"3 nodes, on disk": {3, []string{"--appendonly", "yes", "--appendfsync", "always", "--sync-level", "disk",
		"--min-sync-replicas", "1"}},
	"2 nodes and a witness, in memory": {2, []string{"--appendonly", "no"}},
}

// TestNothingAcknowledgedIsLostWhenMastersAreKilled kills the master under load, again and again, and starts it again.
func TestNothingAcknowledgedIsLostWhenMastersAreKilled(t *testing.T) {
	for name, m := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kill(t, m.servers, m.args)
		})
	}
}

func kill(t *testing.T, servers int, args []string) {
	g := start(t, servers, args...)
	g.settled(servers)
	l := &load{counts: map[int64]int{}, first: map[int]time.Time{}, woken: make(chan struct{}, 1)}
	var journals []*journal
	for i := range 4 {
		j := &journal{id: i, c: g.connect(), load: l}
		defer j.c.Close()
		journals = append(journals, j)
	}
	reader := g.connect()
	defer reader.Close()
	table := "round  killed           acknowledged     errors  lost  twice  stale  until the next write\n"
	for l.round = range *rounds {
		table += g.round(l, journals, reader, servers)
	}
	t.Logf("\n%s", table)
}

// round kills the master once, and returns the line of the table.
func (g *group) round(l *load, journals []*journal, reader *redis.Client, servers int) string {
	ctx, cancel := context.WithCancel(g.Context())
	var running sync.WaitGroup
	for _, j := range journals {
		running.Go(func() { j.run(ctx) })
	}
	running.Go(func() { l.read(ctx, reader) })
	until := func(what string, enough func() bool) {
		g.Helper()
		g.eventually(what, enough)
	}
	before := l.acked.Load()
	until("writes are acknowledged", func() bool { return l.acked.Load() >= before+perRound })
	var master *realserver.Process
	until("a node is the master", func() bool { master = g.master(); return master != nil })
	l.mu.Lock()
	l.killed = time.Now()
	l.mu.Unlock()
	master.Kill()
	until("a write is acknowledged after the kill", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return !l.first[l.round].IsZero()
	})
	before = l.acked.Load()
	until("writes go on", func() bool { return l.acked.Load() >= before+perRound })
	if err := master.Begin(); err != nil {
		g.Fatal(err)
	}
	g.settled(servers)
	cancel()
	running.Wait()
	return g.verdict(l, journals, master)
}

// verdict compares what is there with what was acknowledged.
func (g *group) verdict(l *load, journals []*journal, killed *realserver.Process) string {
	lost, twice, failed := 0, 0, int64(0)
	for _, j := range journals {
		failed += j.failed
		if err := j.check(g.Context(), g.client); err != nil {
			lost++
			g.Errorf("round %d: %v", l.round, err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, times := range l.counts {
		if times > 1 {
			twice++
			g.Errorf("round %d: INCR has returned %d to %d clients: one of these writes was lost", l.round, n, times)
		}
	}
	for _, s := range l.stale {
		g.Errorf("round %d: %s", l.round, s)
	}
	line := fmt.Sprintf("%5d  %-15s  %12d  %9d  %4d  %5d  %5d  %v\n", l.round+1, killed.Addr(), l.acked.Load(), failed, lost, twice,
		len(l.stale), l.first[l.round].Sub(l.killed).Round(time.Millisecond))
	l.killed = time.Time{}
	return line
}
