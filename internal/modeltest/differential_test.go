package modeltest

import (
	"flag"
	"testing"
	"time"

	"github.com/ebbdb/ebb/command"
	"github.com/ebbdb/ebb/internal/draw"
	"github.com/ebbdb/ebb/internal/realserver"
)

var (
	diffTime = flag.Duration("diff.time", 3*time.Second, "how long random sequences are compared with redis-server")
	diffSeed = flag.Uint64("diff.seed", 0, "the seed of the first sequence; 0: see package draw")
	diffLen  = flag.Int("diff.len", 100, "operations in a sequence")
)

// confirmations is how often a fault must show again: replies at the very
// millisecond of a deadline differ once in a while.
const confirmations = 3

// mostFaults is after how many a campaign ends.
const mostFaults = 5

func TestRandomSequencesAreAnsweredAsByRedis(t *testing.T) {
	in, err := Serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.Close)
	c := &Campaign{Ours: in.Addr, Theirs: realserver.Start(t, "redis-server", "--enable-debug-command", "yes")}
	both := c.common(t)
	table, err := command.DefaultTable()
	if err != nil {
		t.Fatal(err)
	}
	replica, err := NewReplica()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(replica.Close)

	seed := draw.Seed(t, *diffSeed)
	began, sequences, ops, passing, faults := time.Now(), 0, 0, 0, 0
	for ; time.Since(began) < *diffTime && faults < mostFaults; seed++ {
		g := NewGenerator(seed, table, both)
		c.Small = seed%2 == 0
		seq := g.Sequence(*diffLen)
		fault, err := c.Run(seq)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := replica.Follow(in.DB); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		sequences, ops = sequences+1, ops+len(seq)
		if fault == nil {
			continue
		}
		if !c.confirm(seq) {
			passing++
			t.Logf("seed %d: did not show again: %s: %s / %s", seed, fault.What, fault.Ours, fault.Theirs)
			continue
		}
		seq = Shrink(seq, 300, func(s []Op) bool { f, err := c.Run(s); return err == nil && f != nil })
		for range 5 {
			if f, err := c.Run(seq); err == nil && f != nil {
				fault = f
				break
			}
		}
		faults++
		t.Error(Report(fault, seq, seed))
	}
	t.Logf("%d sequences, %d operations; %d faults did not show again", sequences, ops, passing)
}

// confirm reports whether a sequence fails each time.
func (c *Campaign) confirm(seq []Op) bool {
	for range confirmations {
		if f, err := c.Run(seq); err != nil || f == nil {
			return false
		}
	}
	return true
}

// common learns which commands both ends have.
func (c *Campaign) common(t *testing.T) func(name string) bool {
	t.Helper()
	known := map[string]int{}
	for _, addr := range []string{c.Ours, c.Theirs} {
		p, err := dial(addr)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		table, err := command.DefaultTable()
		if err != nil {
			t.Fatal(err)
		}
		for id := range table.Len() {
			name := table.Spec(id).Name
			v, err := p.do("COMMAND", "INFO", name)
			if err != nil {
				t.Fatal(err)
			}
			if len(v.Elems) == 1 && !v.Elems[0].IsNull() {
				known[name]++
			}
		}
		if v, err := p.do("DEBUG", "DIGEST"); err == nil && v.Err() == nil {
			known["debug digest"]++
		}
	}
	c.HasDigest = known["debug digest"] == 2
	for _, must := range []string{"psubscribe", "publish", "config|set", "hello", "select", "type", "pttl", "flushall"} {
		if known[must] < 2 {
			t.Fatalf("one of the two servers does not know %s", must)
		}
	}
	return func(name string) bool { return known[name] == 2 }
}
