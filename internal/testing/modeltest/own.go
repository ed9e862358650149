package modeltest

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/resp"
)

// OwnGenerator makes random sequences over all commands on keys, those that
// redis-server does not have included, with short times to live everywhere. Where a
// request needs what an earlier reply said, or the time, it holds a placeholder,
// which a Memory replaces: so a sequence can be run again, and shortened.
type OwnGenerator struct {
	// Told leaves out requests that set expiry rules, so that a test can count the entries
	// of toldRule.
	Told bool
	// NoLimiters leaves limiters out: a limiter that is full again expires without an entry
	// in a rule's stream.
	NoLimiters bool

	rng     *rand.Rand // that of classic, which each step of a sequence sets
	classic *Generator // of Redis's commands
	specs   []*command.Spec
	own     []*command.Spec // those of specs that redis-server does not have
}

// NewOwnGenerator returns a generator of requests to the commands of a table.
func NewOwnGenerator(seed uint64, table *command.Table) *OwnGenerator {
	g := &OwnGenerator{classic: NewGenerator(seed, table, func(name string) bool { return table.LookupFull(name) != nil })}
	g.classic.Own = true
	g.next()
	for id := range table.Len() {
		s := table.Spec(id)
		if s.Run == nil || s.Name == "migrate" || s.Name == "wait" || s.Name == "waitaof" {
			continue
		}
		switch s.Group {
		case command.GroupBloom, command.GroupExpiry, command.GroupLimiter, command.GroupLock, command.GroupSemaphore, command.GroupQueue:
			g.own = append(g.own, s)
		case command.GroupGeneric, command.GroupString, command.GroupBitmap, command.GroupHash, command.GroupList, command.GroupSet,
			command.GroupSortedSet, command.GroupStream, command.GroupHyperLogLog, command.GroupGeo:
		default:
			continue
		}
		g.specs = append(g.specs, s)
		if slices.Contains(freshCommands, s.Name) || strings.Contains(s.Name, "expire") || strings.Contains(s.Name, "persist") ||
			strings.HasSuffix(s.Name, "ex") {
			g.own = append(g.own, s)
		}
	}
	return g
}

// The keys of the own families; a few letters of each say what they mostly hold.
// Dead letters have their queue's hash tag.
var (
	ownKeys = map[command.Group][]string{
		command.GroupLimiter: {"r1", "r2"}, command.GroupLock: {"k1", "k2"}, command.GroupSemaphore: {"m1"},
		command.GroupQueue: {"{q}1", "{q}2", "{q}3"}, command.GroupBloom: {"b1", "b2"},
	}
	ownPool = []string{"r1", "r2", "k1", "k2", "m1", "{q}1", "{q}2", "{q}3", "b1", "b2", "a", "h1", "l1", "s1", "z1", "x1",
		"{t}h", "{t}l", "{t}s", "{t}z"}
	spans   = []string{"1", "2", "16", "17", "18", "20", "100", "999", "1000", "1001", "5000", "60000", "100000", "3600000"}
	shorts  = []string{"1", "1", "2", "60", "3600"}
	letters = []string{"a", "b", "c", "1"}
	ownArgs = map[string][]string{
		"seconds": shorts, "milliseconds": spans, "unix-time-seconds": {"$s+1", "$s+60", "$s+0", "$s-1"},
		"unix-time-milliseconds": {"$ms+17", "$ms+1", "$ms+0", "$ms+1000", "$ms-1", "$ms+60000"},
		// The clock goes hours ahead: with a short interval a schedule would add a job for each step, and each
		// effect looks at the whole queue.
		"interval": {"9", "60000", "1800000", "3600000", "86400000"}, "expression": {"* * * * *", "0 * * * *", "30 3 * * 1-5", "61 * * * *"},
		"zone": {"UTC", "Europe/Berlin", "Nowhere"}, "from": {"$ms+0", "$ms+17", "$ms-60000"}, "until": {"$ms+60000", "$ms+3600000", "$ms-1"},
		"late":  {"1", "1000", "3600000"},
		"lease": spans, "period-ms": {"1", "17", "1000", "60000"}, "period": {"1", "60"},
		"timeout-ms": {"0", "1", "17", "1000", "60000"}, "timeout": {"0", "0.001", "1", "0.017"},
		"limit": {"1", "2", "5"}, "burst": {"1", "2", "10"}, "cost": {"0", "1", "1", "2"}, "max_burst": {"0", "1", "5"},
		"max-burst": {"0", "1", "5"}, "tokens-per-period": {"1", "5"}, "quantity": {"1", "2"},
		"at": {"$ms+17", "$ms+1000", "$ms-1"}, "delay": {"0", "1", "17", "1000", "60000"}, "expire": {"1", "17", "999", "5000"},
		"unique": {"1", "17", "1000", "60000"}, "ttl": {"0", "1", "17", "1000", "60000"},
		"owner": letters, "id": {"a", "b", "c", "*", "$jobid", "$jobid", "$res"}, "token": {"$token", "$token", "$job", "$job", "1"},
		"permits": {"1", "2"}, "payload": {"x", "y"}, "priority": {"0", "5", "9"}, "maxdeliveries": {"0", "1", "2"},
		"maxlen": {"0", "1", "3", "100"}, "max-items": {"1", "3", "100"},
		"field": letters, "member": letters, "element": letters, "item": letters, "index": {"0", "1", "-1", "2", "7"},
		"value": {"1", "2.5", "x", "a longer value, with blanks"},
		"error": {"0.01", "0.5"}, "error_rate": {"0.01", "0.5"}, "capacity": {"1", "10", "100"}, "expansion": {"1", "2"},
		"generations": {"1", "2", "4"}, "iterator": {"$iter", "0", "1"}, "data": {"$chunk"},
		"serialized-value": {"$dump"}, "destination-db": {"0", "1", "2"}, "db": {"0", "1", "2"}, "index1": {"0", "1", "2"},
		"index2": {"0", "1", "2"}, "name": {"one", "two"}, "pattern": {"*", "h*", "[a-m]*", "{*", "?1"}, "percent": {"0", "10", "100"},
		"maxbytes": {"0", "3", "1000"}, "type": {"hash", "lock", "limiter", "delayqueue", "semaphore", "MBbloom--", "string"},
		"group": {"g"}, "groupname": {"g"},
		"consumer": {"c"}, "consumername": {"c"},
		"min-idle-time": {"0", "17", "1000"}, "offset": {"0", "1", "7"}, "cursor": {"0"}, "threshold": {"0", "2"},
	}
	waits = []time.Duration{0, time.Millisecond, 17 * time.Millisecond, 999 * time.Millisecond, time.Second, time.Minute, time.Hour}
)

// next begins a step of a sequence: see Generator.next.
func (g *OwnGenerator) next() {
	g.classic.next()
	g.rng = g.classic.rng
}

// Sequence makes about n operations. An Op without arguments and Wait is a point at which
// the test compares the whole state.
func (g *OwnGenerator) Sequence(n int) (ops []Op) {
	if g.rng.IntN(5) == 0 {
		ops = append(ops, Op{Conn: 1, Args: []string{"DEBUG", "SET-ACTIVE-EXPIRE", "0"}})
	}
	for len(ops) < n {
		g.next()
		ops = append(ops, g.some()...)
	}
	return append(ops, Op{})
}

// some makes the operations of a step.
func (g *OwnGenerator) some() []Op {
	switch g.rng.IntN(30) {
	case 0, 1, 2:
		return []Op{{Wait: waits[g.rng.IntN(len(waits))]}}
	case 3:
		return g.transaction()
	case 4:
		return []Op{{Conn: 1 + g.rng.IntN(connections), Hangup: true}}
	case 5, 6, 7:
		return []Op{{}}
	}
	return []Op{{Conn: g.conn(), Args: g.Request()}}
}

// toldRule is the expiry rule that records all expirations of a database.
var toldRule = []string{"EXPIRY", "RULE", "SET", "told", "MATCH", "*", "TO", "told", "MAXLEN", "10000000", "WITHVALUE"}

func (g *OwnGenerator) conn() int { return 1 + g.rng.IntN(connections) }

func (g *OwnGenerator) transaction() []Op {
	conn := g.conn()
	ops := []Op{{Conn: conn, Args: []string{"MULTI"}}}
	if g.rng.IntN(3) == 0 {
		ops = []Op{{Conn: conn, Args: []string{"WATCH", g.key()}}, {Wait: waits[g.rng.IntN(4)]}, ops[0]}
	}
	for range 1 + g.rng.IntN(6) {
		ops = append(ops, Op{Conn: conn, Args: g.Request()})
		switch g.rng.IntN(12) {
		case 0:
			ops = append(ops, Op{Conn: g.conn(), Args: g.Request()})
		case 1:
			ops = append(ops, Op{Wait: waits[g.rng.IntN(len(waits))]})
		}
	}
	return append(ops, Op{Conn: conn, Args: []string{"EXEC"}})
}

func (g *OwnGenerator) key() string { return ownPool[g.rng.IntN(len(ownPool))] }

// Request makes a request, now and then one within a script.
func (g *OwnGenerator) Request() []string {
	args := g.request()
	if g.rng.IntN(10) == 0 {
		args = append([]string{"EVAL", callOf, "0"}, args...)
	}
	return args
}

func (g *OwnGenerator) request() []string {
	switch n := g.rng.IntN(20); {
	case n < 3:
		return g.classic.request()
	case n < 6:
		return g.whole()
	case n < 7:
		return g.classic.blocking()
	case n < 9:
		return g.fill()
	case n < 14:
		return g.fromGrammar(g.own)
	case n < 15:
		return g.due()
	case n < 16:
		return g.fresh()
	}
	return g.fromGrammar(g.specs)
}

// due makes a request about members of sorted sets whose scores are times, and about lists that they move to.
func (g *OwnGenerator) due() []string {
	one := func(of ...string) string { return of[g.rng.IntN(len(of))] }
	set, list := one("z1", "z1", "{t}z"), one("l1", "l1", "{t}l")
	options := func() (o []string) {
		for _, x := range [][]string{{"COUNT", one("1", "2", "30")}, {"UNIT", one("s", "ms", "us", "4096", "0.001")},
			{"AGE", one("0", "17", "1000")},
			{"BLOCK", one("0", "1", "17", "1000", "60000")}, {"BLOCK", one("0", "1000")}} {
			if g.rng.IntN(3) == 0 {
				o = append(o, x...)
			}
		}
		return o
	}
	howMany := [][]string{nil, {one("COUNT", "EXACTLY"), one("1", "2", "3", "30"), one("OBO", "BULK")}}[g.rng.IntN(2)]
	switch g.rng.IntN(8) {
	case 0, 1:
		return []string{"ZADD", set, one("$s+1", "$s+60", "$s+0", "$ms+17", "$ms+1000", "1"), one(letters...),
			one("$s+1", "$s+2", "$ms-1"), one(letters...)}
	case 2:
		return join([]string{"ZPOPDUE", "1", set}, options())
	case 3:
		return join([]string{"ZPOPDUE", "2", "z1", "{t}z"}, options(), []string{"PEEK"}[:g.rng.IntN(2)])
	case 4:
		return join([]string{"ZMOVEDUE", set, list, one("LEFT", "RIGHT")}, options())
	case 5:
		return join([]string{"ZMOVEDUE", set, one("z1", "{t}z"), "SCORE", one("0", "17", "1000")}, options())
	case 6:
		return join([]string{"LMOVEM", list, one("l1", "{t}l"), one("LEFT", "RIGHT"), one("LEFT", "RIGHT")}, howMany)
	}
	return join([]string{"BLMOVEM", list, one("l1", "{t}l"), one("LEFT", "RIGHT"), one("LEFT", "RIGHT"), one("0", "0.017", "1")}, howMany)
}

// freshCommands are the commands about values with two deadlines.
var freshCommands = []string{"getfresh", "stale", "unlease"}

// fresh makes a request about strings with two deadlines and the leases of the clients that load them.
func (g *OwnGenerator) fresh() []string {
	one := func(of ...string) string { return of[g.rng.IntN(len(of))] }
	key := one("a", "a", "b", "l1")
	switch g.rng.IntN(10) {
	case 0, 1:
		return []string{"SET", key, one("1", "x", strings.Repeat("long", 30)), "PX", one("17", "1000", "60000"), "FRESH",
			one("1", "16", "999", "5000")}
	case 2, 3:
		return []string{"SET", key, one("2", "y"), "PX", one("1000", "60000"), "FRESH", one("1", "500"), "IFTOKEN", "$refresh"}
	case 4:
		return []string{"GETFRESH", key}
	case 5, 6:
		return []string{"GETFRESH", key, "LEASE", one("1", "17", "1000", "60000"), "WAIT", one("0", "17", "1000")}[:4+2*g.rng.IntN(2)]
	case 7:
		if g.rng.IntN(2) == 0 {
			return []string{"GETFRESH", key, "LEASE", one("17", "1000"), "OWNER", one("me", "you"), "WAIT", one("0", "17")}[:6+2*g.rng.IntN(2)]
		}
		return []string{"GETFRESH", key, "LEASE", one("17", "1000", "3600000"), "TOKEN", "$refresh"}
	case 8:
		return []string{"STALE", key, one("a", "b", "h1")}
	}
	if g.rng.IntN(4) == 0 {
		return []string{"UNLEASE", key, "OWNER", one("me", "you")}
	}
	return []string{one("UNLEASE", "UNLEASE", "APPEND", "INCR", "PEXPIRE"), key, one("$refresh", "17")}[:2+g.rng.IntN(2)]
}

// whole makes a request about a whole key, or all keys.
func (g *OwnGenerator) whole() []string {
	one := func(of ...string) string { return of[g.rng.IntN(len(of))] }
	switch g.rng.IntN(15) {
	case 0:
		return []string{one("RENAME", "RENAMENX"), g.key(), g.key()}
	case 1, 2:
		return []string{"COPY", g.key(), g.key(), "REPLACE", "DB", one("0", "1", "2")}[:4+2*g.rng.IntN(2)]
	case 3:
		return []string{"MOVE", g.key(), one("0", "1", "2")}
	case 4:
		return []string{"SWAPDB", one("0", "1", "2"), one("0", "1", "2")}
	case 5, 6:
		return []string{"DUMP", g.key()}
	case 7, 8:
		return []string{"RESTORE", g.key(), one("0", "17", "1000"), "$dump", "REPLACE"}
	case 9, 10:
		return []string{"PEXPIRE", g.key(), one(spans...), "SLIDE"}[:3+g.rng.IntN(2)]
	case 11:
		return []string{"SELECT", one("0", "0", "1", "2")}
	case 12:
		if g.rng.IntN(6) == 0 {
			return []string{one("FLUSHDB", "FLUSHALL")}
		}
		return []string{"CLIENT", "UNBLOCK", one("1", "2", "3", "4", "5"), one("TIMEOUT", "ERROR")}
	case 13:
		return []string{one("DEL", "UNLINK", "PERSIST", "TYPE"), g.key()}
	}
	if g.rng.IntN(2) == 0 {
		return []string{"CONFIG", "SET", one("hash-max-listpack-entries", "set-max-intset-entries", "set-max-listpack-entries",
			"zset-max-listpack-entries", "list-max-listpack-size", "stream-node-max-entries"), one("1", "3", "128")}
	}
	return []string{"DEBUG", "SET-ACTIVE-EXPIRE", one("0", "1", "1")}
}

// fill makes a request that adds items with a time to live.
func (g *OwnGenerator) fill() []string {
	t := spans[g.rng.IntN(len(spans))]
	n := 1 + g.rng.IntN(3)
	if g.rng.IntN(4) == 0 {
		n = 20 // enough for a large container where they are to be small
	}
	items := many(n, func() []string { return []string{strconv.Itoa(g.rng.IntN(2 * n))} })
	double := func(v string) (all []string) {
		for _, x := range items {
			all = append(all, x, v)
		}
		return all
	}
	scored := func() (all []string) {
		for _, x := range items {
			all = append(all, x, "m"+x)
		}
		return all
	}
	count := strconv.Itoa(n)
	switch g.rng.IntN(6) {
	case 0:
		return append([]string{"HSETEX", "h1", "PX", t, "FIELDS", count}, double("v")...)
	case 1:
		return append([]string{"SADDEX", "s1", "PX", t, "MEMBERS", count}, items...)
	case 2:
		return append([]string{"ZADDEX", "z1", "PX", t, "MEMBERS", count}, scored()...)
	case 3:
		return append([]string{[]string{"LPUSHEX", "RPUSHEX"}[g.rng.IntN(2)], "l1", "PX", t, "ELEMENTS", count}, items...)
	case 4:
		return []string{"HPEXPIRE", "h1", t, "FIELDS", "2", items[0], "a"}
	}
	return append([]string{"SPEXPIRE", "s1", t, "MEMBERS", count}, items...)
}

// fromGrammar makes a request to one of the commands, now and then a damaged one.
func (g *OwnGenerator) fromGrammar(specs []*command.Spec) []string {
	s, rng := command.Pick(g.rng, specs)
	keys := ownPool
	if own := ownKeys[s.Group]; own != nil && rng.IntN(8) > 0 {
		keys = own
	}
	if s.Name == "expiry|rule" && g.Told || s.Group == command.GroupLimiter && g.NoLimiters {
		return nil
	}
	raw := command.Generate(rng, s, &command.Pools{Keys: keys, Strings: letters, Patterns: []string{"*", "?1"},
		Ints: []int64{0, 1, 2, 5, -1}, Doubles: []float64{0, 1, 2.5}, Named: ownArgs})
	if rng.IntN(15) == 0 {
		raw = command.Damage(rng, raw, 1+strings.Count(s.Name, "|"))
	}
	args := make([]string, len(raw))
	for i, a := range raw {
		args[i] = string(a)
	}
	return args
}

// Memory holds values from earlier replies, by placeholder.
type Memory map[string]string

// Resolve replaces the placeholders of a request at an instant in ms.
func (m Memory) Resolve(args []string, now int64) []string {
	out := slices.Clone(args)
	for i, a := range out {
		if len(a) < 2 || a[0] != '$' {
			continue
		}
		switch {
		case strings.HasPrefix(a, "$ms"):
			n, _ := strconv.ParseInt(a[3:], 10, 64)
			out[i] = strconv.FormatInt(now+n, 10)
		case strings.HasPrefix(a, "$s+"), strings.HasPrefix(a, "$s-"):
			n, _ := strconv.ParseInt(a[2:], 10, 64)
			out[i] = strconv.FormatInt(now/1000+n, 10)
		case m[a] != "":
			out[i] = m[a]
		default:
			out[i] = "1"
		}
	}
	return out
}

// Learn stores the values of a reply that later requests may need.
func (m Memory) Learn(args []string, v resp.Value) {
	switch r := request(args); strings.ToUpper(r[0]) {
	case "DUMP":
		if v.Kind == resp.KindBulk && v.Str != "" {
			m["$dump"] = v.Str
		}
	case "LOCK.ACQUIRE":
		if v.Int > 0 {
			m["$token"] = strconv.FormatInt(v.Int, 10)
		}
	case "GETFRESH":
		if len(v.Elems) == 4 && v.Elems[2].Int > 0 {
			m["$refresh"] = strconv.FormatInt(v.Elems[2].Int, 10)
		}
	case "RL.RESERVE":
		if len(v.Elems) == 3 {
			m["$res"] = strconv.FormatInt(v.Elems[0].Int, 10)
		}
	case "DQ.POP":
		if len(v.Elems) > 0 && len(v.Elems[0].Elems) == 5 {
			job := v.Elems[0].Elems
			m["$jobid"], m["$job"] = job[0].Str, strconv.FormatInt(job[3].Int, 10)
		}
	case "BF.SCANDUMP":
		if len(v.Elems) == 2 {
			m["$iter"], m["$chunk"] = strconv.FormatInt(v.Elems[0].Int, 10), v.Elems[1].Str
		}
	}
}
