package commands_test

import (
	"testing"

	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/testing/rdbtest"
	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/resp"
)

// Each damaged payload that RESTORE accepts, as its checksum was made afterwards, becomes a normal value: no
// command that reads or writes it panics, the engine stays consistent, and RESTORE accepts its dump again.
func FuzzRestoreThenUse(f *testing.F) {
	for _, p := range rdbtest.Payloads(f, "../rdb/testdata", "*") {
		if n := len(p.Dump); n > sealed && n < 4096 {
			f.Add(p.Dump[:n-sealed], p.Dump[n-sealed])
		}
	}
	for _, dump := range ownDumps(f) {
		f.Add(dump[:len(dump)-sealed], dump[len(dump)-sealed])
	}
	f.Fuzz(func(t *testing.T, value []byte, version uint8) {
		if len(value) < 1<<16 {
			restoreThenUse(t, string(rdb.Seal(append([]byte(nil), value...), int(version))))
		}
	})
}

// ownDumps returns payloads of each type that Redis does not have, and of items with deadlines.
func ownDumps(f *testing.F) (dumps [][]byte) {
	e, err := transcript.NewEngine()
	if err != nil {
		f.Fatal(err)
	}
	defer e.Close()
	for _, c := range [][]string{
		{"DQ.CONFIG", "queue", "MAXDELIVERIES", "3", "DEADLETTER", "{queue}:dead", "MAXLEN", "10"},
		{"DQ.ADD", "queue", "a", "job", "DELAY", "1000"}, {"DQ.ADD", "queue", "b", "job", "PRIORITY", "3", "EXPIRE", "5000"},
		{"DQ.ADD", "queue", "c", "x", "UNIQUE", "9000"}, {"DQ.POP", "queue", "LEASE", "100"},
		{"RL.TAKE", "gcra", "5", "1000"}, {"RL.RESERVE", "gcra", "5", "1000", "COST", "5"}, {"RL.RESERVE", "gcra", "5", "1000"},
		{"RL.TAKE", "log", "5", "1000", "ALGO", "log"}, {"RL.TAKE", "log", "5", "1000", "ALGO", "log", "COST", "2"},
		{"RL.TAKE", "window", "5", "1000", "ALGO", "window"}, {"RL.TAKE", "fixed", "5", "1000", "ALGO", "fixed"},
		{"LOCK.ACQUIRE", "lock", "owner", "1000"}, {"LOCK.ACQUIRE", "shared", "a", "1000", "SHARED"},
		{"LOCK.ACQUIRE", "shared", "b", "2000", "SHARED"},
		{"SEM.ACQUIRE", "semaphore", "a", "3", "1000"}, {"SEM.ACQUIRE", "semaphore", "b", "3", "1000", "COUNT", "2"},
		{"BF.RESERVE", "bloom", "0.01", "100"}, {"BF.MADD", "bloom", "a", "b"},
		{"HSET", "hash", "f", "v", "g", "w"}, {"HPEXPIRE", "hash", "1000", "FIELDS", "1", "f"},
		{"ZADDEX", "zset", "PX", "1000", "MEMBERS", "2", "1", "a", "2", "b"}, {"RPUSHEX", "list", "PX", "1000", "ELEMENTS", "2", "a", "b"},
		{"SADDEX", "set", "PX", "1000", "MEMBERS", "2", "a", "b"},
		{"XADD", "stream", "1-1", "f", "v"}, {"XADD", "stream", "1-2", "f", "w"}, {"XGROUP", "CREATE", "stream", "g", "0"},
		{"XREADGROUP", "GROUP", "g", "c", "STREAMS", "stream", ">"},
	} {
		if v, err := e.Do(1, c...); err != nil || v.Kind == resp.KindError {
			f.Fatalf("%q: %v %s", c, err, v.Str)
		}
	}
	for _, key := range []string{"queue", "gcra", "log", "window", "fixed", "lock", "shared", "semaphore", "bloom", "hash",
		"zset", "list", "set", "stream"} {
		v, err := e.Do(1, "DUMP", key)
		if err != nil || v.Kind != resp.KindBulk || len(v.Str) <= sealed {
			f.Fatalf("DUMP %s: %v %v", key, err, v)
		}
		dumps = append(dumps, []byte(v.Str))
	}
	return dumps
}

// sealed is the number of bytes that follow a value in a payload: version and checksum.
const sealed = 10

func restoreThenUse(t *testing.T, payload string) {
	e, err := transcript.NewEngine()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	do := func(args ...string) resp.Value {
		v, err := e.Do(1, args...)
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		if args[0] == "RESTORE" || v.Kind != resp.KindError {
			if err := e.DB.Check(); err != nil {
				t.Fatalf("after %q: %v", args, err)
			}
		}
		return v
	}
	if v := do("RESTORE", "k", "0", payload); v.Kind == resp.KindError {
		return
	}
	do("COPY", "k", "copy")
	do("COPY", "k", "other")
	for _, args := range usesOfAnyValue {
		do(args...)
	}
	if v := do("DUMP", "k"); v.Kind == resp.KindBulk {
		if w := do("RESTORE", "again", "0", v.Str); w.Kind == resp.KindError {
			t.Fatalf("its own dump is refused: %s\n%q", w.Str, v.Str)
		}
	}
	for _, args := range changesOfAnyValue {
		do(args...)
	}
	do("FLUSHALL")
}

var usesOfAnyValue = [][]string{
	{"TYPE", "k"}, {"OBJECT", "ENCODING", "k"}, {"MEMORY", "USAGE", "k"}, {"DEBUG", "DIGEST-VALUE", "k"}, {"SORT", "k", "ALPHA"},
	{"SORT_RO", "k", "LIMIT", "0", "3"},
	{"GET", "k"}, {"STRLEN", "k"}, {"GETRANGE", "k", "1", "-2"}, {"BITCOUNT", "k"}, {"BITPOS", "k", "1"},
	{"GETBIT", "k", "7"}, {"PFCOUNT", "k"},
	{"PFCOUNT", "k", "copy"}, {"LCS", "k", "copy"},
	{"HGETALL", "k"}, {"HLEN", "k"}, {"HGET", "k", "a"}, {"HRANDFIELD", "k", "-3", "WITHVALUES"}, {"HRANDFIELD", "k", "3"},
	{"HSCAN", "k", "0", "COUNT", "1000"},
	{"HSTRLEN", "k", "a"},
	{"LRANGE", "k", "0", "-1"}, {"LRANGE", "k", "-3", "-2"}, {"LLEN", "k"}, {"LINDEX", "k", "1"}, {"LINDEX", "k", "-1"},
	{"LPOS", "k", "a", "COUNT", "0", "RANK", "-1"},
	{"SMEMBERS", "k"}, {"SCARD", "k"}, {"SISMEMBER", "k", "1"}, {"SRANDMEMBER", "k", "-3"}, {"SRANDMEMBER", "k", "2"},
	{"SSCAN", "k", "0", "COUNT", "1000"}, {"SINTER", "k", "copy"}, {"SUNION", "k", "copy"}, {"SDIFF", "k", "copy"},
	{"ZRANGE", "k", "0", "-1", "WITHSCORES"}, {"ZRANGE", "k", "-inf", "+inf", "BYSCORE", "REV"},
	{"ZRANGE", "k", "-", "+", "BYLEX"}, {"ZCARD", "k"},
	{"ZSCORE", "k", "a"}, {"ZRANK", "k", "a"}, {"ZCOUNT", "k", "-1", "1"},
	{"ZLEXCOUNT", "k", "-", "+"}, {"ZRANDMEMBER", "k", "-3", "WITHSCORES"}, {"ZSCAN", "k", "0", "COUNT", "1000"}, {"ZINTER", "2", "k", "copy"},
	{"ZUNION", "2", "k", "copy", "WITHSCORES"}, {"ZDIFF", "2", "k", "copy"},
	{"GEOPOS", "k", "a"}, {"GEOHASH", "k", "a"}, {"GEOSEARCH", "k", "FROMLONLAT", "0", "0", "BYRADIUS", "20000",
		"km", "WITHDIST", "WITHCOORD"},
	{"XRANGE", "k", "-", "+"}, {"XREVRANGE", "k", "+", "-", "COUNT", "3"}, {"XLEN", "k"}, {"XREAD", "STREAMS", "k", "0"},
	{"XINFO", "STREAM", "k", "FULL", "COUNT", "0"}, {"XINFO", "STREAM", "k"}, {"XINFO", "GROUPS", "k"},
	{"DQ.INFO", "k"}, {"DQ.PEEK", "k", "COUNT", "9"}, {"RL.INFO", "k"}, {"LOCK.INFO", "k"}, {"SEM.INFO", "k"},
	{"BF.INFO", "k"}, {"BF.EXISTS", "k", "a"},
	{"BF.CARD", "k"},
	{"RL.TAKE", "k", "5", "1000"}, {"RL.TAKE", "k", "5", "1000", "ALGO", "log"}, {"RL.TAKE", "k", "7", "2000", "ALGO", "window"},
	{"RL.TAKE", "k", "7", "2000", "ALGO", "fixed"},
	{"XINFO", "CONSUMERS", "k", "g"}, {"XPENDING", "k", "g"}, {"XPENDING", "k", "g", "-", "+", "100"},
}

var changesOfAnyValue = [][]string{
	{"XREADGROUP", "GROUP", "g", "c", "STREAMS", "k", ">"}, {"XREADGROUP", "GROUP", "g", "c", "STREAMS", "k", "0"},
	{"XAUTOCLAIM", "k", "g", "d", "0", "0"},
	{"XCLAIM", "k", "g", "d", "0", "1-1", "FORCE"}, {"XACK", "k", "g", "1-1"},
	{"XADD", "k", "*", "a", "b"}, {"XDEL", "k", "1-1"}, {"XGROUP", "CREATE", "k", "h", "0"}, {"XGROUP", "DELCONSUMER", "k", "g", "c"},
	{"XTRIM", "k", "MAXLEN", "1"}, {"XSETID", "k", "9999999999999-1"}, {"XGROUP", "DESTROY", "k", "g"},
	{"APPEND", "k", "x"}, {"SETRANGE", "k", "3", "yy"}, {"SETBIT", "k", "9", "1"}, {"INCR", "k"}, {"PFADD", "k", "a", "b"},
	{"PFMERGE", "copy", "k"}, {"HSET", "k", "a", "1", "new", "value"}, {"HINCRBY", "k", "a", "3"}, {"HDEL", "k", "a", "b"},
	{"LPUSH", "k", "a"}, {"RPUSH", "k", "b", "b"}, {"LSET", "k", "1", "c"}, {"LINSERT", "k", "AFTER", "c", "d"}, {"LREM", "k", "0", "b"},
	{"LMOVE", "k", "k", "LEFT", "RIGHT"}, {"LTRIM", "k", "1", "-2"}, {"LPOP", "k", "2"}, {"RPOP", "k"},
	{"SADD", "k", "a", "1", "99999"}, {"SREM", "k", "1"},
	{"SPOP", "k", "2"}, {"SMOVE", "k", "copy", "a"}, {"SUNIONSTORE", "k", "k", "copy"},
	{"ZADD", "k", "1", "a", "2", "b"}, {"ZINCRBY", "k", "1.5", "a"}, {"ZREM", "k", "b"}, {"ZPOPMIN", "k", "2"}, {"ZPOPMAX", "k"},
	{"ZREMRANGEBYSCORE", "k", "0", "1"}, {"ZREMRANGEBYRANK", "k", "0", "1"}, {"ZUNIONSTORE", "k", "2", "k", "copy"},
	{"RL.RESERVE", "k", "5", "1000"}, {"RL.CANCEL", "k", "1"}, {"LOCK.ACQUIRE", "k", "z", "100"}, {"LOCK.ACQUIRE", "k", "owner", "100"},
	{"LOCK.ACQUIRE", "k", "y", "100", "SHARED"}, {"SEM.ACQUIRE", "k", "z", "9", "100"},
	{"SEM.RELEASE", "k", "a"}, {"BF.ADD", "k", "q"}, {"DQ.ADD", "k", "new", "job"}, {"DQ.POP", "k", "COUNT", "3", "LEASE", "50"},
	{"DQ.CANCEL", "k", "a"},
	{"DQ.CONFIG", "k", "MAXLEN", "1"},
	{"HPERSIST", "k", "FIELDS", "1", "f"}, {"ZPERSIST", "k", "MEMBERS", "1", "a"},
	{"RENAME", "k", "l"}, {"MOVE", "l", "1"}, {"UNLINK", "copy"}, {"SORT", "other", "ALPHA", "STORE", "sorted"},
}
