package crashtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/modeltest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/resp"
)

// A chain is servers of which each replicates the one before, through proxies that spoil
// the connections, while the first is written to and servers are killed and stopped. When
// all is quiet, all servers must hold the same data.
type chain struct {
	t       *testing.T
	kinds   []string
	nodes   []*realserver.Process
	proxies []*proxy // proxies[i] stands before nodes[i], for nodes[i+1]
	rnd     *rand.Rand
	own     bool // all are ebb
	newer   bool // the first is a server whose digests are others
	flow    *flow
}

// modes are ways to keep files and to send snapshots.
var modes = []struct {
	name string
	args []string
}{
	{"memory-diskless", []string{"--save", "", "--appendonly", "no", "--repl-diskless-sync", "yes"}},
	{"aof-disk", []string{"--save", "", "--appendonly", "yes", "--repl-diskless-sync", "no"}},
	{"always-diskless", []string{"--save", "", "--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync", "yes"}},
	{"rdb-disk", []string{"--save", "3600 1", "--appendonly", "no", "--repl-diskless-sync", "no"}},
}

const oldRedis, us = "redis-server", "ebb"

// TestReplicasUnderCutsAndRestartsHoldTheSame tests all guarantees of replication:
// whatever happens to connections and servers, a replica ends with its master's
// data, at the same offset, and has refused nothing.
func TestReplicasUnderCutsAndRestartsHoldTheSame(t *testing.T) {
	t.Parallel()
	for i, kinds := range [][]string{
		{oldRedis, us}, {us, oldRedis}, {us, us}, {oldRedis, us, oldRedis}, {us, us, oldRedis}, {us, us, us},
	} {
		for j, m := range modes {
			if *rounds == 0 && (i+j)%len(modes) != 0 {
				continue // one way each, unless it is to run at length
			}
			t.Run(strings.Join(kinds, "-")+"/"+m.name, func(t *testing.T) {
				t.Parallel()
				replicate(t, kinds, m.args)
			})
		}
	}
}

func replicate(t *testing.T, kinds, args []string) {
	seed := draw.Seed(t, 0)
	c := newChain(t, kinds, args, seed)
	n := roundsOr(2)
	for round := range n {
		c.storm()
		c.quiet(round)
		if t.Failed() {
			t.Fatalf("seed %d, round %d", seed, round)
		}
	}
	cuts, full, partial := int64(0), int64(0), int64(0)
	for i, p := range c.proxies {
		cuts += p.cuts.Load()
		full += number(t, field(t, c.nodes[i], "sync_full"))
		partial += number(t, field(t, c.nodes[i], "sync_partial_ok"))
	}
	t.Logf("%d rounds, %d requests, %d cuts; since the last restarts %d full and %d partial synchronisations", n,
		c.flow.n.Load(), cuts, full, partial)
}

func newChain(t *testing.T, kinds, args []string, seed uint64) *chain {
	c := &chain{t: t, kinds: kinds, rnd: rand.New(rand.NewPCG(seed, 5)),
		own: !slices.ContainsFunc(kinds, func(k string) bool { return k != us })}
	args = append(args, "--repl-diskless-sync-delay", "0", "--enable-debug-command", "yes", "--repl-timeout", "20")
	for i, kind := range kinds {
		path := kind
		if kind == us {
			path = realserver.Ebb(t)
		}
		p := realserver.NewProcess(t, path, args...)
		c.nodes = append(c.nodes, p)
		if i > 0 {
			p.Args("--replicaof", fmt.Sprint("127.0.0.1 ", c.proxies[i-1].Port))
		}
		p.Start()
		if i < len(kinds)-1 {
			c.proxies = append(c.proxies, newProxy(t, p.Addr(), seed+uint64(i)))
		}
	}
	client := redis.NewClient(&redis.Options{Addr: c.nodes[0].Addr(), MaxRetries: -1, ReadTimeout: tier.Patience})
	defer client.Close()
	fill(t, client, 2000)
	c.flow = newFlow(t, c.nodes[0], seed, c.own)
	return c
}

// storm writes to the first server, and lets things happen, one at a time.
func (c *chain) storm() {
	for _, p := range c.proxies {
		p.calm.Store(false)
	}
	stop := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() { c.flow.run(stop) })
	for range 3 + c.rnd.IntN(4) {
		from := c.flow.n.Load()
		c.happen()
		tier.Eventually(c.t, "writes go on", func() bool { return c.flow.n.Load() > from+200 })
	}
	close(stop)
	writing.Wait()
}

// happen does something to a server.
func (c *chain) happen() {
	i := c.rnd.IntN(len(c.nodes))
	p := c.nodes[i]
	switch c.rnd.IntN(9) {
	case 0:
		p.Kill()
		p.Start()
	case 1:
		p.Stop()
		p.Start()
	case 2:
		if i > 0 { // a master for a moment, and back
			ask(c.t, p, "REPLICAOF", "NO", "ONE")
			ask(c.t, p, "REPLICAOF", "127.0.0.1", strconv.Itoa(c.proxies[i-1].Port))
		}
	case 3:
		c.try(p, "CLIENT", "KILL", "TYPE", []string{"replica", "master"}[c.rnd.IntN(2)])
	case 4:
		c.try(p, "BGREWRITEAOF")
	case 5:
		c.try(p, "CONFIG", "SET", "repl-diskless-sync", []string{"yes", "no"}[c.rnd.IntN(2)])
	case 6:
		c.try(c.nodes[0], "FLUSHALL")
	}
}

// try sends a request whose refusal does not matter.
func (c *chain) try(p *realserver.Process, args ...string) {
	if conn, err := dial(p.Addr()); err == nil {
		_, _ = conn.do(args...)
		_ = conn.Close()
	}
}

// quiet waits until all servers have the whole stream, and compares.
func (c *chain) quiet(round int) {
	t := c.t
	for _, p := range c.proxies {
		p.calm.Store(true)
	}
	c.flow.settle()
	var why string
	defer func() {
		if t.Failed() {
			for i, p := range c.nodes {
				t.Logf("%d, %s: %s\n%s", i, c.kinds[i], ask(t, p, "INFO", "replication").Str, p.Said())
			}
		}
	}()
	for end := time.Now().Add(2 * tier.Patience); ; { // a link that is dead is given up after 20 s
		if why = c.differs(); why == "" {
			break
		}
		if time.Now().After(end) {
			t.Errorf("round %d: %s", round, why)
			break
		}
		pauseFor(20 * time.Millisecond)
	}
	for i, p := range c.nodes {
		if text := complaints(t, p); text != "" {
			t.Errorf("%d, %s, complains: %s", i, c.kinds[i], text)
		}
	}
}

func pauseFor(d time.Duration) { <-time.After(d) }

// differs says what is not the same everywhere.
func (c *chain) differs() string {
	t := c.t
	for i, p := range c.nodes[1:] {
		if s := field(t, p, "master_link_status"); s != "up" {
			return fmt.Sprintf("the link of %d is %s", i+1, s)
		}
	}
	sum := ask(t, c.nodes[0], "DEBUG", "DIGEST").Str
	for i, p := range c.nodes[1:] {
		// Again for each: the comparison with the one before reads keys, and a sliding
		// deadline that has moved by a tenth of its span is in the stream.
		offset := field(t, c.nodes[0], "master_repl_offset")
		if o := field(t, p, "master_repl_offset"); o != offset {
			return fmt.Sprintf("the offset of %d is %s, that of the first %s", i+1, o, offset)
		}
		if d := ask(t, p, "DEBUG", "DIGEST").Str; d != sum && !c.newer {
			return fmt.Sprintf("the digest of %d is %s, that of the first %s: %s", i+1, d, sum, c.difference(c.nodes[0], p))
		}
		if text := c.difference(c.nodes[0], p); text != "" {
			return fmt.Sprintf("%d differs from the first: %s", i+1, text)
		}
	}
	return ""
}

// difference compares key by key, deadlines included.
func (c *chain) difference(a, b *realserver.Process) string {
	mine, theirs := c.state(a), c.state(b)
	var out []string
	for k, v := range mine {
		if w := theirs[k]; !v.like(w) {
			out = append(out, fmt.Sprintf("%s: %v, %v", k, v, w))
		}
	}
	for k, w := range theirs {
		if _, ok := mine[k]; !ok {
			out = append(out, fmt.Sprintf("%s is on the replica alone: %v", k, w))
		}
	}
	if len(out) > 8 {
		out = append(out[:8], fmt.Sprintf("and %d more", len(out)-8))
	}
	return strings.Join(out, "\n")
}

// facts are the facts that the test knows of a key.
type facts struct {
	kind, sum string
	deadline  int64  // ms
	items     string // deadlines of items
	left      int64
}

func (f facts) String() string {
	return fmt.Sprintf("%s %.300s expires %d items %.200q", f.kind, f.sum, f.deadline, f.items)
}

// like allows for sliding deadlines, of which the log hears when a tenth of the span
// is gone.
func (f facts) like(g facts) bool {
	d := f.deadline - g.deadline
	return f.kind == g.kind && f.sum == g.sum && f.items == g.items && (f.deadline < 0) == (g.deadline < 0) &&
		d >= 0 && d <= max(f.left, 0)/9+50
}

// itemCommands are the commands that return the deadlines of items.
var itemCommands = map[string][3]string{
	"hash": {"HKEYS", "HPEXPIRETIME", "FIELDS"}, "set": {"SMEMBERS", "SPEXPIRETIME", "MEMBERS"}, "zset": {"ZRANGE", "ZPEXPIRETIME", "MEMBERS"},
}

// state returns the data of a server.
func (c *chain) state(p *realserver.Process) map[string]facts {
	t := c.t
	conn, err := dial(p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	do := func(args ...string) resp.Value {
		v, err := conn.do(args...)
		if err != nil && !strings.HasPrefix(err.Error(), "WRONGTYPE") {
			t.Fatalf("%q: %v", args, err)
		}
		return v
	}
	all := map[string]facts{}
	for db := range 3 {
		do("SELECT", strconv.Itoa(db))
		for _, k := range do("KEYS", "*").Elems {
			kind, digest := do("TYPE", k.Str).Str, do("DEBUG", "DIGEST-VALUE", k.Str).Elems
			f := facts{kind: kind, sum: digest[0].Str}
			if c.newer && (f.kind == "hash" || f.kind == "zset") {
				f.sum = contents(do, k.Str, f.kind)
			}
			if ic, ok := itemCommands[f.kind]; ok && c.own && !strings.HasPrefix(k.Str, "big:") {
				f.items = itemDeadlines(do, k.Str, ic)
			}
			// Behind what reads the key: that lets a sliding deadline slide, and the
			// log may hear of it, so a replica could be ahead of what was read before.
			if f.deadline = do("PEXPIRETIME", k.Str).Int; f.deadline == -2 {
				continue
			}
			f.left = f.deadline - time.Now().UnixMilli()
			all[fmt.Sprintf("db%d %q", db, k.Str)] = f
		}
	}
	for _, l := range do("FUNCTION", "LIST", "WITHCODE").Elems {
		all[fmt.Sprint("library ", l.Elems[1].Str)] = facts{kind: fmt.Sprint(l)}
	}
	return all
}

// contents are the items of a hash or a sorted set as text.
func contents(do func(...string) resp.Value, key, kind string) string {
	v := do("HGETALL", key)
	if kind == "zset" {
		v = do("ZRANGE", key, "0", "-1", "WITHSCORES")
	}
	var items []string
	for i := 0; i+1 < len(v.Elems); i += 2 {
		value := v.Elems[i+1].Str
		if f, err := strconv.ParseFloat(value, 64); err == nil && kind == "zset" {
			value = strconv.FormatFloat(f, 'g', -1, 64)
		}
		items = append(items, fmt.Sprintf("%q=%q", v.Elems[i].Str, value))
	}
	slices.Sort(items)
	return strings.Join(items, " ")
}

func itemDeadlines(do func(...string) resp.Value, key string, ic [3]string) string {
	list := []string{ic[0], key}
	if ic[0] == "ZRANGE" {
		list = append(list, "0", "-1")
	}
	var items []string
	for _, e := range do(list...).Elems {
		items = append(items, e.Str)
	}
	if len(items) == 0 {
		return ""
	}
	slices.Sort(items)
	v := do(append([]string{ic[1], key, ic[2], strconv.Itoa(len(items))}, items...)...)
	var b strings.Builder
	for i, e := range v.Elems {
		if e.Int > 0 {
			fmt.Fprintf(&b, "%s %d,", items[i], e.Int)
		}
	}
	return b.String()
}

// flow writes to a server, whatever happens to it.
type flow struct {
	addr  string
	own   bool
	n     atomic.Int64 // requests that were answered
	table *command.Table
	known map[string]bool // commands of the server
	seed  uint64
	rnd   *rand.Rand
	conns [8]*peer
	memo  modeltest.Memory
}

func newFlow(t *testing.T, p *realserver.Process, seed uint64, own bool) *flow {
	known := map[string]bool{}
	for _, e := range ask(t, p, "COMMAND", "LIST").Elems {
		known[e.Str] = true
	}
	table, err := servercmd.DefaultTable()
	if err != nil {
		t.Fatal(err)
	}
	return &flow{addr: p.Addr(), known: known, own: own, table: table, seed: seed, rnd: rand.New(rand.NewPCG(seed, 9)),
		memo: modeltest.Memory{}}
}

// run writes until stop is closed.
func (f *flow) run(stop <-chan struct{}) {
	for {
		f.seed++
		var ops []modeltest.Op
		if f.own {
			ops = modeltest.NewOwnGenerator(f.seed, f.table).Sequence(100)
		} else {
			ops = modeltest.NewGenerator(f.seed, f.table, func(name string) bool { return f.known[name] }).Sequence(100)
		}
		for i, o := range ops {
			select {
			case <-stop:
				return
			default:
			}
			if i%20 == 0 {
				f.heavy()
			}
			f.op(o)
		}
	}
}

// op sends what does not block, and does not change how the server works.
func (f *flow) op(o modeltest.Op) {
	if o.Hangup {
		f.hangUp(o.Conn)
		return
	}
	if len(o.Args) == 0 || o.Blocks {
		return
	}
	name := strings.ToLower(o.Args[0])
	if s := f.table.LookupFull(name); s == nil && name != "expiry" || s != nil &&
		(s.Has(command.Blocking) || s.Has(command.Slow) && name != "eval") || name == "debug" || name == "config" || name == "client" {
		return
	}
	f.say(o.Conn, f.memo.Resolve(o.Args, time.Now().UnixMilli()))
}

func (f *flow) hangUp(conn int) {
	if c := f.conns[conn]; c != nil {
		_ = c.Close()
		f.conns[conn] = nil
	}
}

// say sends requests on a connection, and learns from the replies. One that is lost
// is made again for the next.
func (f *flow) say(conn int, requests ...[]string) {
	c := f.conns[conn]
	if c == nil {
		var err error
		if c, err = dial(f.addr); err != nil {
			pauseFor(time.Millisecond)
			return
		}
		f.conns[conn] = c
	}
	replies, err := c.all(requests...)
	if err != nil {
		f.hangUp(conn)
		return
	}
	for i, v := range replies {
		if v.Err() == nil {
			f.memo.Learn(requests[i], v)
		}
	}
	f.n.Add(int64(len(replies)))
}

// heavy writes what is long: in it connections are cut.
func (f *flow) heavy() {
	k := fmt.Sprint("heavy:", f.rnd.IntN(50))
	switch f.rnd.IntN(8) {
	case 0:
		f.say(6, []string{"SET", k, strings.Repeat("long ", 1+f.rnd.IntN(40_000))})
	case 1:
		args := []string{"RPUSH", k}
		for i := range 1 + f.rnd.IntN(2000) {
			args = append(args, strconv.Itoa(i))
		}
		f.say(6, args)
	case 2:
		all := [][]string{{"MULTI"}}
		for i := range 1 + f.rnd.IntN(200) {
			all = append(all, []string{"HSET", "heavy:hash", fmt.Sprint("f", i), strings.Repeat("v", f.rnd.IntN(100))},
				[]string{"SELECT", strconv.Itoa(f.rnd.IntN(3))})
		}
		f.say(6, append(all, []string{"EXEC"})...)
	case 3:
		f.say(6, []string{"EVAL", "for i = 1, 100 do redis.call('SADD', KEYS[1], i * tonumber(ARGV[1])) end redis.call('PEXPIRE', KEYS[1], 700)",
			"1", k, strconv.Itoa(f.rnd.IntN(50))})
	case 4:
		for i := range 50 {
			f.say(6, []string{"SET", fmt.Sprint("short:", i), "v", "PX", strconv.Itoa(1 + f.rnd.IntN(300))})
		}
	case 5:
		n := f.rnd.IntN(3)
		f.say(6, []string{"FUNCTION", "LOAD", "REPLACE",
			fmt.Sprintf("#!lua name=lib%d\nredis.register_function('f%d', function() return %d end)", n, n, f.seed)})
	case 6:
		f.say(6, []string{"DEL", k}, []string{"SWAPDB", "1", "2"})
	case 7:
		f.say(6, []string{"PUBLISH", "c", "m"}, []string{"XADD", "heavy:stream", "MAXLEN", "100", "*", "f", "v"})
	}
}

// settle ends what connections have begun: what waits is gone with them.
func (f *flow) settle() {
	for i := range f.conns {
		f.hangUp(i)
	}
}

// TestRolesSwapWithoutAFullSynchronisation has two servers swap their roles again
// and again: the new master's stream goes on where the old one's ends, so the old
// master takes up from there.
func TestRolesSwapWithoutAFullSynchronisation(t *testing.T) {
	for _, kinds := range [][]string{{oldRedis, us}, {us, oldRedis}, {us, us}} {
		t.Run(strings.Join(kinds, "-"), func(t *testing.T) { swapRoles(t, kinds) })
	}
}

func swapRoles(t *testing.T, kinds []string) {
	c := newChain(t, kinds, []string{"--save", "", "--appendonly", "no", "--repl-ping-replica-period", "3600"}, 1)
	for _, p := range c.proxies {
		p.calm.Store(true)
	}
	// The proxies are gone: they stand before the first alone.
	master, replica := c.nodes[0], c.nodes[1]
	ask(t, replica, "REPLICAOF", "127.0.0.1", strconv.Itoa(master.Port))
	n := roundsOr(3)
	for round := range n {
		for i := range 50 {
			ask(t, master, "SET", fmt.Sprint("swap:", i), strconv.Itoa(round), "PX", "100000")
		}
		inStep(t, master, replica)
		full, partial := field(t, replica, "sync_full"), number(t, field(t, replica, "sync_partial_ok"))
		ask(t, replica, "REPLICAOF", "NO", "ONE")
		ask(t, replica, "SET", "swap:before", strconv.Itoa(round))
		ask(t, master, "REPLICAOF", "127.0.0.1", strconv.Itoa(replica.Port))
		master, replica = replica, master
		inStep(t, master, replica)
		if f, p := field(t, master, "sync_full"), number(t, field(t, master, "sync_partial_ok")); f != full || p != partial+1 {
			t.Fatalf("round %d: %s full and %d partial synchronisations after %s and %d", round, f, p, full, partial)
		}
		if why := c.difference(master, replica); why != "" {
			t.Fatalf("round %d: %s", round, why)
		}
	}
	for _, p := range c.nodes {
		if text := complaints(t, p); text != "" {
			t.Error(text)
		}
	}
	t.Logf("%d swaps", n)
}

// inStep waits until a replica has everything.
func inStep(t *testing.T, master, replica *realserver.Process) {
	t.Helper()
	tier.Eventually(t, "the replica has everything", func() bool {
		return field(t, replica, "master_link_status") == "up" &&
			field(t, replica, "master_repl_offset") == field(t, master, "master_repl_offset")
	})
}
