package command_test

import (
	"testing"

	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/rdb/rdbtest"
	"github.com/ebbdb/ebb/internal/transcript"
	"github.com/ebbdb/ebb/resp"
)

// A payload that RESTORE takes, however it was damaged before it was sealed, is a
// value like any other: no command that reads or writes it panics, the engine is
// sound afterwards, and its dump is taken again.
func FuzzRestoreThenUse(f *testing.F) {
	for _, p := range rdbtest.Payloads(f, "../internal/rdb/testdata", "*") {
		if n := len(p.Dump); n > sealed && n < 4096 {
			f.Add(p.Dump[:n-sealed], p.Dump[n-sealed])
		}
	}
	f.Fuzz(func(t *testing.T, value []byte, version uint8) {
		if len(value) < 1<<16 {
			restoreThenUse(t, string(rdb.Seal(append([]byte(nil), value...), int(version))))
		}
	})
}

// sealed is how many bytes follow a value in a payload: version and checksum.
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
	{"TYPE", "k"}, {"OBJECT", "ENCODING", "k"}, {"MEMORY", "USAGE", "k"}, {"DEBUG", "DIGEST-VALUE", "k"}, {"SORT", "k", "ALPHA"}, {"SORT_RO", "k", "LIMIT", "0", "3"},
	{"GET", "k"}, {"STRLEN", "k"}, {"GETRANGE", "k", "1", "-2"}, {"BITCOUNT", "k"}, {"BITPOS", "k", "1"}, {"GETBIT", "k", "7"}, {"PFCOUNT", "k"}, {"PFCOUNT", "k", "copy"}, {"LCS", "k", "copy"},
	{"HGETALL", "k"}, {"HLEN", "k"}, {"HGET", "k", "a"}, {"HRANDFIELD", "k", "-3", "WITHVALUES"}, {"HRANDFIELD", "k", "3"}, {"HSCAN", "k", "0", "COUNT", "1000"}, {"HSTRLEN", "k", "a"},
	{"LRANGE", "k", "0", "-1"}, {"LRANGE", "k", "-3", "-2"}, {"LLEN", "k"}, {"LINDEX", "k", "1"}, {"LINDEX", "k", "-1"}, {"LPOS", "k", "a", "COUNT", "0", "RANK", "-1"},
	{"SMEMBERS", "k"}, {"SCARD", "k"}, {"SISMEMBER", "k", "1"}, {"SRANDMEMBER", "k", "-3"}, {"SRANDMEMBER", "k", "2"}, {"SSCAN", "k", "0", "COUNT", "1000"}, {"SINTER", "k", "copy"}, {"SUNION", "k", "copy"}, {"SDIFF", "k", "copy"},
	{"ZRANGE", "k", "0", "-1", "WITHSCORES"}, {"ZRANGE", "k", "-inf", "+inf", "BYSCORE", "REV"}, {"ZRANGE", "k", "-", "+", "BYLEX"}, {"ZCARD", "k"}, {"ZSCORE", "k", "a"}, {"ZRANK", "k", "a"}, {"ZCOUNT", "k", "-1", "1"},
	{"ZLEXCOUNT", "k", "-", "+"}, {"ZRANDMEMBER", "k", "-3", "WITHSCORES"}, {"ZSCAN", "k", "0", "COUNT", "1000"}, {"ZINTER", "2", "k", "copy"}, {"ZUNION", "2", "k", "copy", "WITHSCORES"}, {"ZDIFF", "2", "k", "copy"},
	{"GEOPOS", "k", "a"}, {"GEOHASH", "k", "a"}, {"GEOSEARCH", "k", "FROMLONLAT", "0", "0", "BYRADIUS", "20000", "km", "WITHDIST", "WITHCOORD"},
	{"XRANGE", "k", "-", "+"}, {"XREVRANGE", "k", "+", "-", "COUNT", "3"}, {"XLEN", "k"}, {"XREAD", "STREAMS", "k", "0"}, {"XINFO", "STREAM", "k", "FULL", "COUNT", "0"}, {"XINFO", "STREAM", "k"}, {"XINFO", "GROUPS", "k"},
	{"XINFO", "CONSUMERS", "k", "g"}, {"XPENDING", "k", "g"}, {"XPENDING", "k", "g", "-", "+", "100"},
}

var changesOfAnyValue = [][]string{
	{"XREADGROUP", "GROUP", "g", "c", "STREAMS", "k", ">"}, {"XREADGROUP", "GROUP", "g", "c", "STREAMS", "k", "0"}, {"XAUTOCLAIM", "k", "g", "d", "0", "0"}, {"XCLAIM", "k", "g", "d", "0", "1-1", "FORCE"}, {"XACK", "k", "g", "1-1"},
	{"XADD", "k", "*", "a", "b"}, {"XDEL", "k", "1-1"}, {"XGROUP", "CREATE", "k", "h", "0"}, {"XGROUP", "DELCONSUMER", "k", "g", "c"}, {"XTRIM", "k", "MAXLEN", "1"}, {"XSETID", "k", "9999999999999-1"}, {"XGROUP", "DESTROY", "k", "g"},
	{"APPEND", "k", "x"}, {"SETRANGE", "k", "3", "yy"}, {"SETBIT", "k", "9", "1"}, {"INCR", "k"}, {"PFADD", "k", "a", "b"}, {"PFMERGE", "copy", "k"},
	{"HSET", "k", "a", "1", "new", "value"}, {"HINCRBY", "k", "a", "3"}, {"HDEL", "k", "a", "b"}, {"LPUSH", "k", "a"}, {"RPUSH", "k", "b", "b"}, {"LSET", "k", "1", "c"}, {"LINSERT", "k", "AFTER", "c", "d"}, {"LREM", "k", "0", "b"},
	{"LMOVE", "k", "k", "LEFT", "RIGHT"}, {"LTRIM", "k", "1", "-2"}, {"LPOP", "k", "2"}, {"RPOP", "k"}, {"SADD", "k", "a", "1", "99999"}, {"SREM", "k", "1"}, {"SPOP", "k", "2"}, {"SMOVE", "k", "copy", "a"}, {"SUNIONSTORE", "k", "k", "copy"},
	{"ZADD", "k", "1", "a", "2", "b"}, {"ZINCRBY", "k", "1.5", "a"}, {"ZREM", "k", "b"}, {"ZPOPMIN", "k", "2"}, {"ZPOPMAX", "k"}, {"ZREMRANGEBYSCORE", "k", "0", "1"}, {"ZREMRANGEBYRANK", "k", "0", "1"}, {"ZUNIONSTORE", "k", "2", "k", "copy"},
	{"RENAME", "k", "l"}, {"MOVE", "l", "1"}, {"UNLINK", "copy"}, {"SORT", "other", "ALPHA", "STORE", "sorted"},
}
