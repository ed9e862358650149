package instance

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/tier"
)

// plainKeyspace returns keyspaceOf without the keys of types that redis-server lacks.
func plainKeyspace(c client) map[string]string {
	c.t.Helper()
	all := keyspaceOf(c, false)
	maps.DeleteFunc(all, func(_, text string) bool { return strings.HasPrefix(text, "delayqueue ") })
	return all
}

// samePlainKeyspaces waits until a plain replica has its master's offset and plain data. It checks that at least
// least keys were compared.
func samePlainKeyspaces(t *testing.T, master, replica client, least int) {
	t.Helper()
	var want, got map[string]string
	defer func() {
		for _, k := range slices.Sorted(maps.Keys(merged(want, got))) {
			if want[k] != got[k] {
				t.Errorf("%q:\nthe master:  %s\nthe replica: %s", k, want[k], got[k])
			}
		}
	}()
	tier.Eventually(t, "the replica holds the plain data of its master", func() bool {
		if field(master, "replication", "master_repl_offset") != field(replica, "replication", "master_repl_offset") {
			return false
		}
		want, got = plainKeyspace(master), keyspaceOf(replica, false)
		return maps.Equal(want, got)
	})
	if len(want) < least {
		t.Errorf("%d keys were compared, want at least %d", len(want), least)
	}
}

// setRulesAndQueues creates queues that deliver to streams, and rules that write to queues: one queue for workers,
// and one that delivers its jobs to a stream.
func setRulesAndQueues(c client) {
	c.t.Helper()
	for _, args := range [][]string{
		{"DQ.CONFIG", "{news}", "DELIVER", "{news}:s"}, {"XGROUP", "CREATE", "{news}:s", "g", "0", "MKSTREAM"},
		{"DQ.CONFIG", "{gone}", "DELIVER", "{gone}:s"}, {"DQ.CONFIG", "{turn}", "DELIVER", "{turn}:s"}, {"DQ.ADD", "{turn}", "first", "payload"},
		{"EXPIRY", "RULE", "SET", "messages", "MATCH", "session:*", "TO", "QUEUE", "{gone}", "WITHVALUE"},
		{"EXPIRY", "RULE", "SET", "jobs", "MATCH", "session:*", "TO", "QUEUE", "work", "PRIORITY", "3", "WITHVALUE"},
		{"EXPIRY", "RULE", "SET", "record", "MATCH", "session:*", "TO", "ended", "WITHVALUE"},
	} {
		c.must(args...)
	}
}

// deliverAndExpire turns jobs into stream entries and expirations into jobs, in all ways that the log distinguishes,
// and waits for all of them. round is a different number for each call, from 1.
func deliverAndExpire(c client, round int) {
	c.t.Helper()
	n := strconv.Itoa(round)
	before := func(key string) int64 { return c.must("XLEN", key).Int }
	jobs := func() int { return len(c.must("DQ.PEEK", "work", "STATE", "ALL", "COUNT", "1000").Elems) }
	news, gone, ended, work := before("{news}:s"), before("{gone}:s"), before("ended"), jobs()
	for _, args := range [][]string{
		{"DQ.ADD", "{news}", "now" + n, "payload"}, {"DQ.ADD", "{news}", "soon" + n, "payload", "DELAY", "20"},
		{"DQ.ADD", "{news}", "late" + n, "payload", "DELAY", "100000000"}, {"DQ.ADD", "{news}", "never" + n, "payload", "DELAY", "100000000"},
		{"DQ.CANCEL", "{news}", "never" + n},
		{"MULTI"}, {"SET", "inside" + n, "1"}, {"DQ.ADD", "{news}", "inside" + n, "payload"}, {"DQ.ADD", "{news}", "second" + n, "p"}, {"EXEC"},
		{"EVAL", "redis.call('DQ.ADD', KEYS[1], 'script' .. ARGV[1], 'p') return redis.call('SET', KEYS[2], ARGV[1])", "2",
			"{news}", "{news}:plain", n},
		{"XREADGROUP", "GROUP", "g", "worker", "COUNT", "2", "STREAMS", "{news}:s", ">"},
		{"SET", "session:" + n, "value", "PX", "20"}, {"HSET", "session:h" + n, "f", "v", "g", "w"},
		{"HPEXPIRE", "session:h" + n, "20", "FIELDS", "1", "f"},
		{"SADDEX", "session:s" + n, "PX", "20", "MEMBERS", "2", "a", "\xff"}, {"SADD", "session:s" + n, "stays"},
		{"DQ.SCHEDULE", "{news}", "tick" + n, "p", "EVERY", "10"},
	} {
		c.must(args...)
	}
	tier.Eventually(c.t, "jobs became entries, and expirations became jobs and entries", func() bool {
		return before("{news}:s") >= news+8 && before("{gone}:s") == gone+4 && before("ended") == ended+4 && jobs() == work+4
	})
	c.must("DQ.UNSCHEDULE", "{news}", "tick"+n)

	// Workers take jobs of expirations, and a queue returns its leased jobs before it delivers.
	job := c.must("DQ.POP", "work", "LEASE", "100000").Elems[0].Elems
	c.must("DQ.ACK", "work", job[0].Str, strconv.FormatInt(job[3].Int, 10))
	c.must("DQ.ADD", "{back}", "job"+n, "payload")
	job = c.must("DQ.POP", "{back}", "LEASE", "100000").Elems[0].Elems
	c.must("DQ.CONFIG", "{back}", "DELIVER", "{back}:s")
	c.must("DQ.NACK", "{back}", job[0].Str, strconv.FormatInt(job[3].Int, 10))
	c.must("DQ.CONFIG", "{back}", "DELIVER", "")

	// A key of another type in the place of the stream suspends the delivery. After the suspension the waiting jobs
	// are delivered.
	turn := before("{turn}:s")
	c.must("RENAME", "{turn}:s", "{turn}:kept")
	c.must("SET", "{turn}:s", "another type")
	c.must("DQ.ADD", "{turn}", "held"+n, "payload")
	c.must("RENAME", "{turn}:kept", "{turn}:s")
	tier.Eventually(c.t, "the queue goes on", func() bool { return before("{turn}:s") > turn })
	c.must("XTRIM", "{turn}:s", "MAXLEN", "2")

	// Keys of queues are created, removed and replaced by other types.
	c.must("SET", "{news}:was"+n, "plain")
	c.must("COPY", "{news}", "{news}:was"+n, "REPLACE")
	c.must("DQ.ADD", "{news}:was"+n, "copy"+n, "payload")
	c.must("SET", "{news}:kind"+n, "plain")
	c.must("RENAME", "{news}:was"+n, "{news}:kind"+n)
	payload := c.must("DUMP", "{news}:kind"+n).Str
	c.must("SET", "{news}:restored"+n, "plain")
	c.must("RESTORE", "{news}:restored"+n, "0", payload, "REPLACE")
	c.must("DEL", "{news}:restored"+n)
	c.must("SET", "{news}:kind"+n, "plain again")
	c.must("MOVE", "{back}", "2")
}

// A redis-server that follows ebb gets the stream entries of delivered jobs, and the plain data that keys of queues
// replaced or left, but no queue. The link stays up, and a cut does not lead to a full synchronisation.
func TestRedisFollowsDeliveriesAndQueuesOfRules(t *testing.T) {
	for name, options := range map[string][]string{
		"several event loops": nil, "one event loop": {"--io-loops", "1"}, "an append-only file": {"--appendonly", "yes"},
	} {
		t.Run(name, func(t *testing.T) {
			if options != nil && options[0] == "--appendonly" {
				options = append(slices.Clone(options), "--dir", t.TempDir())
			}
			in := startMaster(t, options...)
			addr := in.Addrs()[0].String()
			c := connect(t, addr)
			setRulesAndQueues(c)
			deliverAndExpire(c, 1)
			p, r := redisReplica(t, addr)
			follows(t, c, 1)
			samePlainKeyspaces(t, c, r, 10)
			deliverAndExpire(c, 2)
			samePlainKeyspaces(t, c, r, 13)

			c.must("CLIENT", "KILL", "TYPE", "replica")
			deliverAndExpire(c, 3)
			follows(t, c, 1)
			samePlainKeyspaces(t, c, r, 16)
			if got := field(c, "stats", "sync_full") + " " + field(c, "stats", "sync_partial_ok"); got != "1 1" {
				t.Errorf("full and partial synchronisations: %s, want 1 1", got)
			}
			for _, key := range []string{"{news}", "{gone}", "{turn}", "work"} {
				if r.must("EXISTS", key).Int != 0 {
					t.Errorf("the replica has the queue %s", key)
				}
			}
			if log, _ := os.ReadFile(p.Log()); bytes.Contains(log, []byte("CRITICAL")) {
				t.Errorf("the replica says: %s", log)
			}

			// The promoted replica has the messages, and its clients continue with the consumer group.
			r.must("REPLICAOF", "NO", "ONE")
			r.must("XADD", "{news}:s", "*", "f", "v")
			if got := r.must("XREADGROUP", "GROUP", "g", "worker", "COUNT", "1000", "STREAMS", "{news}:s", ">"); len(got.Elems) != 1 {
				t.Errorf("the group goes on with %v", got)
			}
			for _, entry := range r.must("XRANGE", "{gone}:s", "-", "+").Elems {
				if id := entry.Elems[1].Elems[1].Str; !strings.HasPrefix(id, "messages:session:") {
					t.Errorf("an entry has the id %s", fmt.Sprint(entry))
				}
			}
		})
	}
}
