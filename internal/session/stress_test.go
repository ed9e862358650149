package session_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/modeltest"
	"github.com/ebbdb/ebb/internal/testing/services"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/resp"
)

var (
	stressTime = flag.Duration("stress.time", 0, "how long the stress test runs; 0: a fixed number of rounds")
	stressSeed = flag.Uint64("stress.seed", 0, "of the stress test's random numbers; 0: see package draw")
)

const (
	stressClients = 8
	stressKeys    = 24
	stressShards  = 4
	stressRounds  = 400 // of each client
)

// Clients do everything at once, while directives change and keys are evicted, expire and are flushed.
// Afterwards the engine's structures must be sound, its memory freed, and its effects must give the same
// data.
func TestEverythingAtOnceLeavesASoundEngine(t *testing.T) {
	before := runtime.NumGoroutine()
	seed := draw.Seed(t, *stressSeed)
	s := newStress(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var clients, others sync.WaitGroup
	for i := range uint64(stressClients) {
		clients.Go(func() { s.client(ctx, rand.New(rand.NewPCG(seed, i)), seed+i) })
	}
	others.Go(func() { s.administrator(ctx, rand.New(rand.NewPCG(seed, 1000))) })
	others.Go(func() { s.follow(ctx) })
	clients.Wait()
	cancel()
	others.Wait()

	s.db.LimitMemory(0) // nothing is evicted from here on
	if n := s.db.Waiters(); n != 0 {
		t.Errorf("%d places in lines are taken, although no client waits", n)
	}
	if err := s.db.Check(); err != nil {
		t.Error(err)
	}
	if err := s.replica.Follow(s.db); err != nil {
		t.Error(err)
	}
	s.empty()
	s.close()
	if !comes(func() bool { return runtime.NumGoroutine() <= before }) { // the goroutines of timers end by themselves
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
	}
}

// comes waits for the work of other goroutines, and reports whether it was done.
func comes(done func() bool) bool {
	late := time.After(tier.Patience)
	for !done() {
		select {
		case <-late:
			return false
		default:
			runtime.Gosched()
		}
	}
	return true
}

// Whatever keys a command is given, whole or damaged, it finds them locked: the engine panics at a key that
// is not.
func TestNoCommandTouchesAKeyThatIsNotLocked(t *testing.T) {
	s := newStress(t)
	defer s.close()
	c := s.svc.NewSession(nil)
	defer c.Closed(nil)
	for id, spec := range s.specs {
		if !spec.HasKeys() || !tier.Share(id) {
			continue
		}
		rng := spec.Source(5)
		for i := range 60 {
			args := command.Generate(rng, spec, &command.Pools{Keys: stressNames, Doubles: []float64{0.001}, Most: 6})
			if i%2 > 0 {
				args = command.Damage(rng, args, 1+strings.Count(spec.Name, "|"))
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // do not wait for waiting commands
			_, _ = c.DoContext(ctx, args...)
			if i%10 == 0 {
				s.fill(c, rng)
			}
		}
	}
}

// fill makes small containers, so that commands have something to work on.
func (s *stress) fill(c *session.Session, rng *rand.Rand) {
	for range 20 {
		if args := s.big(rng); len(args) < 40 {
			ctx, cancel := context.WithCancel(s.t.Context())
			cancel()
			_, _ = services.AskContext(ctx, c, args...)
		}
	}
}

// stress is an engine on the system's clock with few shards.
type stress struct {
	t       *testing.T
	db      *engine.DB
	svc     *session.Service
	replica *modeltest.Replica
	specs   []*command.Spec
}

// unfit are commands that end or stop more than their own client, or contact other servers.
var unfit = map[string]bool{
	"shutdown": true, "debug": true, "monitor": true, "sync": true, "psync": true, "replicaof": true, "slaveof": true,
	"failover": true, "migrate": true, "client|pause": true, "client|reply": true, "client|kill": true, "quit": true, "wait": true,
	"waitaof": true, "acl|setuser": true, "acl|deluser": true,
	"subscribe": true, "psubscribe": true, "ssubscribe": true, "config|set": true, "flushall": true, "flushdb": true, "multi": true,
	"replconf": true, "select": true, "auth": true, "hello": true, "reset": true,
}

func newStress(t *testing.T) *stress {
	s := &stress{t: t}
	cfg, err := config.Load(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	hooks := &session.Hooks{}
	s.db = engine.Open(engine.Options{Hooks: hooks, Shards: stressShards, RecordEffects: true})
	if s.svc, err = session.NewService(session.Options{DB: s.db, Table: servercmd.Table, Config: cfg}, hooks); err != nil {
		t.Fatal(err)
	}
	if s.replica, err = modeltest.NewReplica(); err != nil {
		t.Fatal(err)
	}
	table := s.svc.Table()
	for id := range table.Len() {
		spec := table.Spec(id)
		if name, _, _ := strings.Cut(spec.Name, "|"); spec.Run != nil && !unfit[spec.Name] && !unfit[name] {
			s.specs = append(s.specs, spec)
		}
	}
	return s
}

func (s *stress) close() {
	s.replica.Close()
	s.svc.Close()
	s.db.Close()
}

// empty flushes, and waits until the memory is freed.
func (s *stress) empty() {
	c := s.svc.NewSession(nil)
	defer c.Closed(nil)
	services.Ask(c, "CONFIG", "SET", "maxmemory", "0")
	services.Ask(c, "FLUSHALL")
	if n := s.db.UsedMemory() - s.db.Charged(); n != 0 { // scripts and libraries stay
		s.t.Errorf("%d bytes are in use after FLUSHALL", n)
	}
	const most = 1 << 20 // slabs that Chunks keeps, and the clients' own
	held := func() int { used, _ := s.db.HeldMemory(); return used }
	if !comes(func() bool { return held() <= most }) {
		used := held()
		s.t.Errorf("%d bytes of slabs are held after FLUSHALL", used)
	}
	if err := s.db.Check(); err != nil {
		s.t.Error(err)
	}
}

// follow runs the effects in the replica, at the clients' pace so that they do not pile up, and compares the
// two now and then while the clients continue.
func (s *stress) follow(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		run := s.replica.Run
		if i%50 == 49 {
			run = s.replica.Follow
		}
		if err := run(s.db); err != nil {
			s.t.Error(err)
			return
		}
		runtime.Gosched()
	}
}

// client sends random requests, some of which wait.
func (s *stress) client(ctx context.Context, rng *rand.Rand, seed uint64) {
	g := modeltest.NewGenerator(seed, s.svc.Table(), func(name string) bool { return s.svc.Table().LookupFull(name) != nil })
	g.Own = true
	c := s.svc.NewSession(nil)
	defer func() { c.Closed(nil) }()
	for range draw.Rounds(*stressTime, stressRounds) {
		switch rng.IntN(40) {
		case 0:
			c.Closed(nil)
			c = s.svc.NewSession(nil)
			s.send(ctx, c, rng, s.greeting(rng))
		case 1, 2, 3, 4, 5, 6, 7, 8:
			s.send(ctx, c, rng, s.fromGrammar(rng))
		case 9, 10, 11, 12, 13, 14, 15:
			s.send(ctx, c, rng, s.big(rng))
		default:
			for _, op := range g.Sequence(10) {
				s.send(ctx, c, rng, op.Args)
			}
		}
	}
}

// send runs a request. One that waits is cancelled after a while.
func (s *stress) send(ctx context.Context, c *session.Session, rng *rand.Rand, args []string) {
	if len(args) == 0 || strings.EqualFold(args[0], "flushall") && rng.IntN(50) > 0 ||
		strings.EqualFold(args[0], "flushdb") && rng.IntN(20) > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(1+rng.IntN(20))*time.Millisecond)
	defer cancel()
	_, _ = services.AskContext(ctx, c, args...)
}

func (s *stress) greeting(rng *rand.Rand) []string {
	return [][]string{
		{"HELLO", "3"}, {"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "l"}, {"SELECT", "1"}, {"CLIENT", "NO-TOUCH", "ON"},
		{"CLIENT", "TRACKING", "ON", "REDIRECT", strconv.Itoa(rng.IntN(50))},
	}[rng.IntN(5)]
}

func (s *stress) fromGrammar(rng *rand.Rand) []string {
	spec, own := command.Pick(rng, s.specs)
	raw := command.Generate(own, spec, &command.Pools{Keys: stressNames, Most: 5})
	if own.IntN(4) == 0 {
		raw = command.Damage(own, raw, 1+strings.Count(spec.Name, "|"))
	}
	args := make([]string, len(raw))
	for i, a := range raw {
		args[i] = string(a)
	}
	return args
}

// stressNames are the keys of big containers: of each type, in several shards.
var stressNames = func() (all []string) {
	for i := range stressKeys {
		all = append(all, string("hlszx"[i%5])+strconv.Itoa(i/5))
	}
	return all
}()

// big makes a request that writes or removes many items, or a whole container.
func (s *stress) big(rng *rand.Rand) []string {
	name := func() string { return stressNames[rng.IntN(len(stressNames))] }
	key, other := name(), name()
	n := 1 + rng.IntN(1+rng.IntN(400))
	switch rng.IntN(16) {
	case 0:
		return [][]string{{"RENAME", key, other}, {"MOVE", key, "1"}, {"COPY", key, other, "REPLACE"}, {"COPY", key, other, "DB", "1", "REPLACE"},
			{"SWAPDB", "0", "1"}, {"UNLINK", key, other}, {"DEL", key}, {"RENAMENX", key, other}}[rng.IntN(8)]
	case 1:
		return []string{"PEXPIRE", key, strconv.Itoa(1 + rng.IntN(100))}
	case 2:
		return []string{"RESTORE", key, strconv.Itoa(rng.IntN(2) * (1 + rng.IntN(100))), s.timedHash(rng, n), "REPLACE"}
	case 3:
		return s.trim(rng, key)
	}
	first, each := []string{"HSET", key}, func() []string { return []string{stressItem(rng), stressItem(rng)} }
	switch remove := rng.IntN(3) == 0; key[0] {
	case 'h':
		if remove {
			first, each = []string{"HDEL", key}, func() []string { return []string{stressItem(rng)} }
		}
	case 'l':
		first, each = []string{[]string{"RPUSH", "LPUSH"}[rng.IntN(2)], key}, func() []string { return []string{stressItem(rng)} }
	case 's':
		first, each = []string{"SADD", key}, func() []string { return []string{stressItem(rng)} }
		if remove {
			first[0] = "SREM"
		}
	case 'z':
		first, each = []string{"ZADD", key}, func() []string { return []string{strconv.Itoa(rng.IntN(5)), stressItem(rng)} }
		if remove {
			first, each = []string{"ZREM", key}, func() []string { return []string{stressItem(rng)} }
		}
	case 'x':
		first = []string{"XADD", key, "*"}
		n = min(n, 20)
	}
	for range n {
		first = append(first, each()...)
	}
	return first
}

// trim removes many items at once.
func (s *stress) trim(rng *rand.Rand, key string) []string {
	n := strconv.Itoa(rng.IntN(300))
	switch key[0] {
	case 'h':
		return []string{"HGETALL", key}
	case 'l':
		return [][]string{{"LTRIM", key, n, "-50"}, {"LPOP", key, n}, {"RPOP", key, n}, {"LTRIM", key, "0", n},
			{"LMPOP", "2", key, "l1", "LEFT", "COUNT", "50"}, {"BLMOVE", key, "l0", "LEFT", "RIGHT", "0.005"},
			{"BRPOP", key, "l2", "0.01"}, {"BLMPOP", "0", "2", key, "l3", "RIGHT", "COUNT", "3"},
			{"LMOVEM", key, "l1", "LEFT", "RIGHT", "COUNT", n, "OBO"},
			{"BLMOVEM", key, "l0", "LEFT", "LEFT", "0.005", "EXACTLY", "3", "OBO"}}[rng.IntN(10)]
	case 's':
		return [][]string{{"SPOP", key, n}, {"SINTERSTORE", key, "s0", "s1"}, {"SUNIONSTORE", key, "s0", "s1", "s2"},
			{"SDIFFSTORE", key, "s1", "s2"}}[rng.IntN(4)]
	case 'z':
		return [][]string{{"ZPOPMIN", key, n}, {"ZREMRANGEBYRANK", key, n, "-1"}, {"ZREMRANGEBYSCORE", key, "1", "2"},
			{"BZPOPMAX", key, "z0", "0.003"}, {"ZUNIONSTORE", key, "3", "z0", "z1", "s0"},
			{"BZMPOP", "0", "2", key, "z3", "MIN", "COUNT", "3"}, {"ZRANGESTORE", key, "z1", "0", "100"},
			{"ZPOPDUE", "2", key, "z2", "COUNT", "3", "BLOCK", "3"}, {"ZMOVEDUE", key, "l0", "LEFT", "BLOCK", "5"},
			{"ZMOVEDUE", key, "z1", "SCORE", "3", "COUNT", n, "BLOCK", "4"}}[rng.IntN(10)]
	}
	return [][]string{{"XTRIM", key, "MAXLEN", n}, {"XREAD", "BLOCK", "0", "STREAMS", key, "x0", "$", "$"},
		{"XGROUP", "CREATE", key, "g", "0", "MKSTREAM"},
		{"XREADGROUP", "GROUP", "g", "c", "BLOCK", "5", "COUNT", "10", "STREAMS", key, ">"}, {"XAUTOCLAIM", key, "g", "d", "0", "0"},
		{"XGROUP", "DESTROY", key, "g"},
		{"XTRIM", key, "MAXLEN", "~", n}}[rng.IntN(7)]
}

func stressItem(rng *rand.Rand) string {
	switch rng.IntN(200) {
	case 0:
		return strings.Repeat("x", rng.IntN(100_000))
	case 1, 2, 3:
		return strings.Repeat("y", rng.IntN(300))
	}
	if rng.IntN(3) == 0 {
		return "item-" + strconv.Itoa(rng.IntN(1000))
	}
	return strconv.Itoa(rng.IntN(1000))
}

// timedHash is the payload of a hash some of whose fields expire within 100 ms.
func (s *stress) timedHash(rng *rand.Rand, n int) string {
	now := s.db.Clock().Micros() / 1000
	var e rdb.Encoder
	e.BeginHash(n, now+1)
	for i := range n {
		deadline := int64(0)
		if i == 0 || rng.IntN(2) == 0 {
			deadline = now + 1 + rng.Int64N(100)
		}
		e.Field([]byte(strconv.Itoa(i)), []byte(stressItem(rng)), deadline)
	}
	e.EndHash()
	return string(rdb.Seal(e.Buf, e.Version()))
}

// administrator changes directives, flushes now and then, and checks the structures.
func (s *stress) administrator(ctx context.Context, rng *rand.Rand) {
	c := s.svc.NewSession(nil)
	defer func() { c.Closed(nil) }()
	for ctx.Err() == nil {
		d := stressDirectives[rng.IntN(len(stressDirectives))]
		if v := services.Ask(c, "CONFIG", "SET", d[0], d[1+rng.IntN(len(d)-1)]); v.Kind == resp.KindError {
			s.t.Error(d, v)
		}
		switch rng.IntN(30) {
		case 0:
			services.Ask(c, "FLUSHALL")
		case 1:
			services.Ask(c, "SWAPDB", "0", "2")
		case 2:
			for _, id := range rng.Perm(stressClients * 4) {
				services.Ask(c, "CLIENT", "UNBLOCK", fmt.Sprint(id), []string{"TIMEOUT", "ERROR"}[rng.IntN(2)])
			}
		case 3:
			s.db.SetActiveExpiry(rng.IntN(3) > 0)
		case 4, 5, 6:
			if err := s.db.Check(); err != nil {
				s.t.Error(err)
				return
			}
		}
		for range rng.IntN(2000) {
			runtime.Gosched()
		}
	}
}

var stressDirectives = [][]string{
	{"maxmemory", "0", "0", "0", "1000000", "5000000", "300000"},
	{"maxmemory-policy", "noeviction", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl", "allkeys-lru",
		"allkeys-lfu", "allkeys-random"},
	{"hash-max-listpack-entries", "0", "4", "64", "512"}, {"hash-max-listpack-value", "0", "8", "64", "100000"},
	{"list-max-listpack-size", "-5", "-2", "-1", "1", "2", "16", "128"},
	{"set-max-intset-entries", "0", "4", "64", "512"}, {"set-max-listpack-entries", "0", "4", "128", "1000"},
	{"set-max-listpack-value", "0", "8", "64", "100000"},
	{"zset-max-listpack-entries", "0", "4", "128", "1000"}, {"zset-max-listpack-value", "0", "8", "64", "100000"},
	{"stream-node-max-bytes", "0", "100", "4096"}, {"stream-node-max-entries", "0", "1", "7", "100"},
	{"notify-keyspace-events", "", "KEA", "KEAmn"},
}
