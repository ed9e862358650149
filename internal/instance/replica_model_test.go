package instance

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/testing/modeltest"
	"github.com/ebbdb/ebb/resp"
)

// replicaRounds random sequences of replicaOps operations run on a master, with a cut of the link after about every
// cutEvery operations.
const (
	replicaRounds = 4
	replicaOps    = 400
	cutEvery      = 60
)

// A replica has the same data as its master after random operations and cuts of the link.
func TestWhateverIsDoneReachesTheReplica(t *testing.T) {
	t.Parallel() // the test mostly waits
	table, err := servercmd.DefaultTable()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("of redis-server", func(t *testing.T) {
		at := startRedis(t)
		known := dialTCP(t, at)
		has := func(name string) bool {
			return !known.must("COMMAND", "INFO", strings.ReplaceAll(name, " ", "|")).Elems[0].IsNull()
		}
		for seed := range uint64(replicaRounds) {
			random(t, at, modeltest.NewGenerator(seed, table, has), seed, nil)
		}
	})
	t.Run("of ebb", func(t *testing.T) {
		at := startNode(t)
		for seed := range uint64(replicaRounds) {
			g := modeltest.NewGenerator(100+seed, table, func(name string) bool { return table.LookupFull(name) != nil })
			g.Own = true
			random(t, at, g, seed, ours)
		}
	})
}

// ours are commands on types that only ebb has, and on deadlines of items.
var ours = [][]string{
	{"RL.TAKE", "own:limit", "10", "1000"}, {"RL.TAKE", "own:limit", "10", "1000", "COST", "3"},
	{"LOCK.ACQUIRE", "own:lock", "w1", "20"}, {"LOCK.ACQUIRE", "own:lock", "w2", "60000"},
	{"SEM.ACQUIRE", "own:sem", "w1", "3", "30"}, {"SEM.ACQUIRE", "own:sem", "w2", "3", "60000"},
	{"DQ.ADD", "own:queue", "job", "payload"}, {"DQ.POP", "own:queue", "LEASE", "20"}, {"BF.ADD", "own:bloom", "x"},
	{"HSET", "own:h", "f", "v", "g", "w"}, {"HPEXPIRE", "own:h", "15", "FIELDS", "1", "f"},
	{"SADD", "own:s", "a", "b"}, {"SPEXPIRE", "own:s", "15", "MEMBERS", "1", "a"},
	{"RPUSH", "own:l", "a", "b", "c"}, {"LPEXPIRE", "own:l", "15", "INDEXES", "1", "1"},
	{"DEL", "own:lock"}, {"SET", "own:slide", "v", "PX", "40"},
}

// random runs a sequence on a master, and compares the master with a new replica.
func random(t *testing.T, at string, g *modeltest.Generator, seed uint64, own [][]string) {
	t.Helper()
	master, replica := dialTCP(t, at), dialTCP(t, startNode(t))
	master.must("FLUSHALL")
	follow(t, replica, at)
	rng := rand.New(rand.NewPCG(seed, 3))
	conns := map[int]client{}
	for _, o := range g.Sequence(replicaOps) {
		switch {
		case o.Wait > 0:
			<-time.After(o.Wait)
			continue
		case o.Blocks || o.Hangup || len(o.Args) == 0:
			continue
		case rng.IntN(cutEvery) == 0:
			master.must("CLIENT", "KILL", "TYPE", "replica")
		}
		c, ok := conns[o.Conn]
		if !ok {
			c = dialTCP(t, at)
			conns[o.Conn] = c
		}
		c.ask(o.Args...)
		if len(own) > 0 && rng.IntN(3) == 0 {
			unknown(t, own[rng.IntN(len(own))], master)
		}
	}
	caughtUp(t, master, replica)
	if t.Failed() {
		t.Fatalf("seed %d", seed)
	}
}

// unknown sends a command that may be refused.
func unknown(t *testing.T, args []string, c client) {
	t.Helper()
	if v := c.ask(args...); v.Kind == resp.KindError && slices.ContainsFunc([]string{"unknown command", "syntax", "wrong number"},
		func(s string) bool { return strings.Contains(v.Str, s) }) {
		t.Fatalf("%q: %s", args, v.Str)
	}
}
