package commands_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/history"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/testing/transcript"
)

// node is an engine with the commands and one client.
type node struct {
	db  *engine.DB
	svc *session.Service
	c   *session.Session
}

// newNode opens an engine whose containers take their large form from four items on.
func newNode(t interface{ Fatal(...any) }, clock *clock.Manual, record bool) *node {
	n := &node{db: engine.Open(engine.Options{Clock: clock, Shards: 2, RecordEffects: record})}
	cfg, err := config.Load([]string{"--enable-debug-command", "yes", "--hash-max-listpack-entries", "3", "--set-max-listpack-entries", "3",
		"--set-max-intset-entries", "2", "--zset-max-listpack-entries", "3", "--list-max-listpack-size", "4"}, nil)
	if err == nil {
		n.svc, err = session.NewService(session.Options{DB: n.db, Table: servercmd.Table, Config: cfg}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	n.c = n.svc.NewSession(nil)
	return n
}

func (n *node) close() {
	n.c.Closed(nil)
	n.svc.Close()
	n.db.Close()
}

// ask runs a command and returns its reply as text.
func (n *node) ask(args ...string) string {
	b := make([][]byte, len(args))
	for i, x := range args {
		b[i] = []byte(x)
	}
	return history.Flat(n.c.Do(b...))
}

// follower has a master and a replica that has applied the master's effects up to some transaction. Each look
// compares the replica with a reference: an engine that has applied the same effects but is not a replica. It
// removes what the replica only hides.
type follower struct {
	clock           *clock.Manual
	master, replica *node
	effects         []engine.Effect
	got             int // how many effects the replica has applied
	theme           []string
}

var hiddenKeys = []string{"a", "b"}

func newFollower(t *rapid.T) *follower {
	f := &follower{clock: clock.NewManual(transcript.Start)}
	f.master, f.replica = newNode(t, f.clock, true), newNode(t, f.clock, false)
	f.replica.db.SetReplica(true)
	f.theme = rapid.SampledFrom(hiddenThemes).Draw(t, "theme")
	return f
}

func (f *follower) close() {
	f.master.close()
	f.replica.close()
}

// feed applies the next effects of the master, or all of them, on the replica.
func (f *follower) feed(t *rapid.T, all bool) {
	f.effects = append(f.effects, f.master.db.Drain()...)
	to := len(f.effects)
	if !all {
		to = rapid.IntRange(f.got, to).Draw(t, "to")
	}
	for to < len(f.effects) && to > 0 && f.effects[to].Seq == f.effects[to-1].Seq {
		to++
	}
	if err := f.replica.svc.Replay(f.effects[f.got:to]); err != nil {
		t.Fatal(err)
	}
	f.got = to
}

// hiddenThemes are the requests of the master's client, by theme. Each test run draws one theme, so that its
// requests concern the same kinds of data. MS is a short time, K and O are keys, I and S items, P a position.
var hiddenThemes = [][]string{
	{"SET K v PX MS", "SET K 7", "INCR K", "GETEX K PX MS", "XADD K 1-* f I", "RL.TAKE K 3 MS",
		"BF.RESERVE K 0.01 10 WINDOW 20 GENERATIONS 2", "BF.ADD K I"},
	{"HSET K I 1 S 2", "HSET K a 1 b 2 c 3 d 4", "HPEXPIRE K MS FIELDS 2 I S", "HDEL K I", "HINCRBY K I 1", "HSETEX K PX MS FIELDS 1 I v",
		"HPERSIST K FIELDS 1 I"},
	{"SADD K I S", "SADD K a b c d", "SPEXPIRE K MS MEMBERS 2 I S", "SREM K I", "SPOP K", "SMOVE K O I", "SINTERSTORE K O O"},
	{"ZADD K 1 I 2 S", "ZADD K 1 a 2 b 3 c 4 d", "ZPEXPIRE K MS MEMBERS 2 I S", "ZREM K I", "ZINCRBY K 2 I", "ZPOPMIN K",
		"ZPOPDUE 1 K COUNT 2", "ZMOVEDUE K O SCORE 2 COUNT 3", "ZMOVEDUE K K SCORE 1"},
	{"RPUSH K I S", "RPUSH K a b c d", "LPEXPIRE K MS INDEXES 2 P 0", "LPOP K", "LSET K P I", "LREM K 0 I",
		"LTRIM K 1 -1", "LMOVE K O LEFT RIGHT",
		"LINSERT K BEFORE I S", "LMOVEM K O LEFT LEFT COUNT 3 OBO", "LMOVEM K K RIGHT RIGHT COUNT 3 OBO", "LMOVEM K O RIGHT LEFT EXACTLY 2 BULK"},
	{"LOCK.ACQUIRE K I MS SHARED", "LOCK.ACQUIRE K S MS SHARED", "LOCK.ACQUIRE K I MS", "LOCK.RENEW K I 1 MS"},
	{"SEM.ACQUIRE K I 3 MS", "SEM.ACQUIRE K S 3 MS", "SEM.RELEASE K I"},
	{"DQ.ADD K I p", "DQ.ADD K I p DELAY MS", "DQ.ADD K I p EXPIRE MS PRIORITY 2", "DQ.POP K LEASE MS",
		"DQ.POP K COUNT 2 LEASE MS", "DQ.CANCEL K I",
		"DQ.ADD K I p UNIQUE MS",
		"DQ.CONFIG K MAXDELIVERIES 2"},
}

// hiddenAlways are requests that every theme includes.
var hiddenAlways = []string{"PEXPIRE K MS", "PERSIST K", "DEL K", "RENAME K O", "COPY K O REPLACE", "FLUSHDB"}

// write sends some random requests with short deadlines from the master's client.
func (f *follower) write(t *rapid.T) {
	draw := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
	for range rapid.IntRange(1, 5).Draw(t, "writes") {
		from := f.theme
		switch rapid.IntRange(0, 11).Draw(t, "from") {
		case 0, 1:
			from = hiddenAlways
		case 2:
			from = slices.Concat(hiddenThemes...)
		}
		r := strings.NewReplacer("MS", draw("ms", "1", "3", "10", "40"), "K", draw("key", hiddenKeys...), "O", draw("other", hiddenKeys...),
			"I", draw("item", "1", "2", "x", "a"), "S", draw("second", "1", "2", "x", "b"), "P", draw("place", "0", "1", "2", "-1", "-2"))
		var args []string
		for i, w := range strings.Fields(draw("request", from...)) {
			if i > 0 && len(w) <= 2 {
				w = r.Replace(w)
			}
			args = append(args, w)
		}
		f.master.ask(args...)
	}
}

// reads returns the requests to which all nodes must reply the same. The replies to those with a * in front
// are unordered.
func (f *follower) reads() (all []string) {
	each := []string{"GET K", "STRLEN K", "EXISTS K", "TYPE K", "PTTL K", "PEXPIRETIME K", "GETRANGE K 0 1", "TOUCH K", "OBJECT REFCOUNT K",
		"HLEN K", "*HGETALL K", "*HKEYS K", "*HVALS K", "HMGET K 1 2 x a", "HPTTL K FIELDS 3 1 x a", "HEXISTS K x", "HSTRLEN K x",
		"SCARD K", "*SMEMBERS K", "SMISMEMBER K 1 2 x a", "SPTTL K MEMBERS 3 1 x a", "*SINTER K b", "*SUNION K b",
		"*SDIFF K b", "SINTERCARD 2 K b", "ZCARD K", "ZRANGE K 0 -1 WITHSCORES", "ZRANGE K 1 2 REV", "ZRANGE K -2 -1", "ZRANK K x",
		"ZREVRANK K b", "ZSCORE K x", "ZMSCORE K 1 a b", "ZCOUNT K 1 2",
		"ZRANGEBYSCORE K 1 3 LIMIT 1 2", "ZLEXCOUNT K - +", "ZPTTL K MEMBERS 3 1 x a", "ZDIFF 2 K b WITHSCORES", "ZUNION 2 K b",
		"LLEN K", "LRANGE K 0 -1", "LRANGE K 1 2", "LRANGE K -2 -1", "LINDEX K 0", "LINDEX K 1", "LINDEX K -1", "LPOS K x", "LPOS K x RANK -1",
		"LPTTL K INDEXES 2 0 1",
		"SORT_RO K ALPHA", "DEBUG DIGEST-VALUE K",
		"LOCK.INFO K", "SEM.INFO K", "RL.INFO K", "BF.MEXISTS K 1 2 x y", "BF.CARD K", "XLEN K",
		"DQ.PEEK K COUNT 10", "DQ.INFO K"}
	for _, k := range hiddenKeys {
		for _, r := range each {
			all = append(all, strings.ReplaceAll(r, " K", " "+k))
		}
		all = append(all, "*WHOLE HSCAN "+k, "*WHOLE SSCAN "+k, "*WHOLE ZSCAN "+k)
	}
	return append(all, "DBSIZE", "*KEYS *", "*WHOLE SCAN", "EXISTS a b a", "MGET a b", "EXPIRY NEXT", "EXPIRY SOON COUNT 100",
		"EXPIRY SOON COUNT 7 MATCH *", "EXPIRY FORECAST HORIZON 50 BUCKETS 7",
		"EXPIRY FORECAST HORIZON 50 BUCKETS 7 MATCH *")
}

// read returns the reply to one of the requests of reads.
func (n *node) read(request string) string {
	args := strings.Fields(strings.TrimPrefix(request, "*"))
	var got string
	if args[0] == "WHOLE" {
		cursor := "0"
		for {
			next, rest, _ := strings.Cut(n.ask(append(slices.Clone(args[1:]), cursor)...), " ")
			got += rest + " "
			if cursor = next; cursor == "0" || strings.HasPrefix(next, "WRONGTYPE") {
				break
			}
		}
	} else {
		got = n.ask(args...)
	}
	if request == "EXPIRY NEXT" { // several may expire at the same instant, and the reply has any of them
		got, _, _ = strings.Cut(got, " ")
	}
	if request[0] == '*' {
		words := strings.Fields(got)
		slices.Sort(words)
		return strings.Join(words, " ")
	}
	return got
}

// same compares the replies of two nodes to all reads.
func (f *follower) same(t *rapid.T, got, want *node, who string) {
	for _, r := range f.reads() {
		if g, w := got.read(r), want.read(r); g != w {
			t.Fatalf("%s\nthe replica says %s\n%s says  %s", r, g, who, w)
		}
	}
	n, _ := strconv.Atoi(want.ask("DBSIZE"))
	if k := got.ask("RANDOMKEY"); n == 0 && k != "" || n > 0 && want.ask("EXISTS", k) != "1" {
		t.Fatalf("RANDOMKEY of %d keys says %q", n, k)
	}
}

// look compares the replica with a reference that has applied the same effects.
func (f *follower) look(t *rapid.T) {
	ref := newNode(t, f.clock, false)
	defer ref.close()
	if err := ref.svc.Replay(f.effects[:f.got]); err != nil {
		t.Fatal(err)
	}
	before := f.replica.stored()
	f.same(t, f.replica, ref, "the reference")
	if after := f.replica.stored(); after != before {
		t.Fatalf("reads have changed the replica from\n%s to\n%s", before, after)
	}
}

// stored returns all data of a node, including expired keys.
func (n *node) stored() string {
	tx := n.db.BeginAll(0)
	defer tx.Commit()
	tx.Replaying()
	var all []string
	tx.Each(func(k engine.Key) {
		s := fmt.Sprintf("%s %v until %d %x:", k.Name(), k.Kind(), k.Deadline(), k.Payload())
		if k.Kind() == engine.String {
			s += string(k.Value())
		}
		var items []string
		k.Items(func(it engine.Item) {
			items = append(items, fmt.Sprintf(" %s=%s %v until %d", it.Key, it.Value, it.Score, it.Deadline))
		})
		if k.Kind() != engine.List {
			slices.Sort(items)
		}
		all = append(all, s+strings.Join(items, ","))
	})
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// A queue's dump lists the jobs in their order, the higher priority first. That holds for jobs as well whose
// lease the replica considers expired.
func TestAReplicaDumpsJobsInTheirTurn(t *testing.T) {
	clock := clock.NewManual(transcript.Start)
	master, replica, ref := newNode(t, clock, true), newNode(t, clock, false), newNode(t, clock, false)
	defer master.close()
	defer replica.close()
	defer ref.close()
	replica.db.SetReplica(true)
	master.ask("DQ.ADD", "q", "1", "p", "PRIORITY", "2")
	master.ask("DQ.POP", "q", "LEASE", "1")
	master.ask("DQ.ADD", "q", "2", "p")
	effects := master.db.Drain()
	clock.Advance(2 * time.Millisecond)
	for _, n := range []*node{replica, ref} {
		if err := n.svc.Replay(effects); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := replica.ask("DUMP", "q"), ref.ask("DUMP", "q"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// When the lease of a job ends, the job waits again, and later expires. EXPIRY SOON of a replica lists it
// before the master has ended the lease.
func TestAReplicaSeesWhatExpiresAfterALease(t *testing.T) {
	clock := clock.NewManual(transcript.Start)
	master, replica := newNode(t, clock, true), newNode(t, clock, false)
	defer master.close()
	defer replica.close()
	replica.db.SetReplica(true)
	master.ask("DQ.ADD", "q", "1", "p", "EXPIRE", "10")
	master.ask("DQ.POP", "q", "LEASE", "40")
	if err := replica.svc.Replay(master.db.Drain()); err != nil {
		t.Fatal(err)
	}
	clock.Advance(45 * time.Millisecond)
	want := master.ask("EXPIRY", "SOON")
	if got := replica.ask("EXPIRY", "SOON"); got != want || !strings.HasPrefix(want, "1 1700000000051 ") {
		t.Errorf("the replica says %q, the master %q", got, want)
	}
}

// At every instant a replica shows the data that results from its effects at that instant. It keeps hidden
// data until the master deletes it.
func TestReplicasHideWhatHasExpired(t *testing.T) {
	tier.Sequential(t)
	draw.Check(t, func(t *rapid.T) {
		f := newFollower(t)
		defer f.close()
		t.Repeat(map[string]func(*rapid.T){
			"write":  f.write,
			"feed":   func(t *rapid.T) { f.feed(t, false) },
			"follow": func(t *rapid.T) { f.feed(t, true) },
			"advance": func(t *rapid.T) {
				f.clock.Advance(time.Duration(rapid.IntRange(1, 30).Draw(t, "ms")) * time.Millisecond)
			},
			"look": f.look,
		})
		f.look(t)
		if err := f.replica.db.Check(); err != nil {
			t.Fatal(err)
		}
		if s := f.replica.db.Stats(); s.Expired+s.ExpiredLazily+s.ExpiredItems+s.LeasesExpired != 0 {
			t.Fatalf("a replica counts expirations: %+v", s)
		}
		if rapid.Bool().Draw(t, "promoted") {
			f.promote(t)
			return
		}
		f.clock.Advance(time.Second) // all deadlines pass
		f.feed(t, true)
		f.same(t, f.replica, f.master, "the master")
		if got, want := f.replica.stored(), f.master.stored(); got != want {
			t.Fatalf("after the master's effects the replica holds\n%s\nthe master\n%s", got, want)
		}
	})
}

// promote makes the replica a master, which immediately deletes the hidden data.
func (f *follower) promote(t *rapid.T) {
	ref := newNode(t, f.clock, false)
	defer ref.close()
	if err := ref.svc.Replay(f.effects[:f.got]); err != nil {
		t.Fatal(err)
	}
	f.replica.db.SetReplica(false)
	f.clock.Advance(time.Millisecond)
	if got, want := f.replica.stored(), ref.stored(); got != want {
		t.Fatalf("after its promotion it holds\n%s\nit should be\n%s", got, want)
	}
	if err := f.replica.db.Check(); err != nil {
		t.Fatal(err)
	}
	f.same(t, f.replica, ref, "the reference")
}
