package modeltest

import (
	"strconv"

	"github.com/ebbdb/ebb/internal/command"
)

// The pools of containers. A request for a type mostly takes one of that type's
// keys, and now and then any, so that commands meet values of the wrong type.
var (
	typedKeys = map[command.Group][]string{
		command.GroupHash: {"h1", "{t}h"}, command.GroupList: {"l1", "l2", "{t}l"}, command.GroupSet: {"s1", "s2", "{t}s"},
		command.GroupSortedSet: {"z1", "z2", "{t}z"}, command.GroupStream: {"x1", "{t}x"}, command.GroupHyperLogLog: {"p1", "p2"},
		command.GroupGeo: {"g1", "z1"},
	}
	items = []string{"a", "b", "c", "d", "e", "f", "1", "2", "3", "-5", "1000000", "70000", "x y", "",
		"a long member that is not packed, as it has more than 64 bytes of text"}
	scores = []string{"0", "1", "1", "2", "-3", "2.5", "1e10", "inf", "-inf", "100", "0.1"}
	places = [][]string{{"13.361389", "38.115556", "Palermo"}, {"15.087269", "37.502669", "Catania"}, {"-0.127", "51.507", "London"},
		{"2.352", "48.856", "Paris"}, {"179.9", "-0.5", "east"}, {"-179.9", "0.5", "west"}}
	ids = []string{"1-1", "1-2", "2-0", "3-5", "5-1", "7", "9-9", "100-1", "0-1"}
)

// typed returns a key for commands of a group.
func (g *Generator) typed(group command.Group) string {
	if g.rng.IntN(25) == 0 {
		return g.key()
	}
	return g.one(typedKeys[group]...)
}

func (g *Generator) item() string  { return g.one(items...) }
func (g *Generator) score() string { return g.one(scores...) }
func (g *Generator) index() string { return g.one("0", "1", "2", "5", "-1", "-2", "-100", "100") }
func (g *Generator) count() string { return g.one("0", "1", "2", "3", "100", "-1") }

// many returns n values of f, one after the other.
func many(n int, f func() []string) (all []string) {
	for range n {
		all = append(all, f()...)
	}
	return all
}

func (g *Generator) items(limit int) []string {
	return many(1+g.rng.IntN(limit), func() []string { return []string{g.item()} })
}

// maybe returns the words half of the time.
func (g *Generator) maybe(words ...string) []string {
	if g.rng.IntN(2) == 0 {
		return words
	}
	return nil
}

func join(parts ...[]string) (all []string) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// container makes a request for a data type other than strings.
func (g *Generator) container() []string {
	switch g.rng.IntN(13) {
	case 0, 1:
		return g.hash()
	case 2, 3:
		return g.list()
	case 4, 5:
		return g.set()
	case 6, 7, 8:
		return g.zset()
	case 9, 10:
		return g.stream()
	case 11:
		return g.geo()
	}
	return g.sketch()
}

func (g *Generator) hash() []string {
	k := g.typed(command.GroupHash)
	if g.has("hexpire") && g.rng.IntN(3) == 0 {
		return g.fields(k)
	}
	switch g.rng.IntN(12) {
	case 0, 1, 2:
		return join([]string{g.one("HSET", "HMSET"), k}, many(1+g.rng.IntN(5), func() []string { return []string{g.item(), g.val()} }))
	case 3:
		return []string{"HSETNX", k, g.item(), g.val()}
	case 4:
		return join([]string{g.one("HDEL", "HMGET"), k}, g.items(4))
	case 5:
		return []string{"HINCRBY", k, g.item(), g.one("1", "-3", "9223372036854775807", "x")}
	case 6:
		return []string{"HINCRBYFLOAT", k, g.item(), g.one("0.5", "-2", "1e3", "x")}
	case 7:
		return []string{g.one("HGET", "HEXISTS", "HSTRLEN"), k, g.item()}
	case 8:
		return []string{g.one("HGETALL", "HKEYS", "HVALS", "HLEN"), k}
	case 9:
		return join([]string{"HSCAN", k, "0"}, g.maybe("MATCH", "*a*"), g.maybe("COUNT", "1000"))
	case 10:
		return []string{"HDEL", k, "a", "b", "c", "d", "e", "f", "1", "2", "3", "-5", "1000000", "70000", "x y", "", items[len(items)-1]}
	}
	return []string{"HRANDFIELD", k, "1000"}
}

func (g *Generator) list() []string {
	k, to := g.typed(command.GroupList), g.typed(command.GroupList)
	side := func() string { return g.one("LEFT", "RIGHT") }
	switch g.rng.IntN(16) {
	case 0, 1, 2:
		return join([]string{g.one("LPUSH", "RPUSH", "RPUSH", "LPUSHX", "RPUSHX"), k}, g.items(6))
	case 3:
		return join([]string{g.one("LPOP", "RPOP"), k}, g.maybe(g.one("0", "1", "2", "100", "-1")))
	case 4:
		return []string{"LRANGE", k, g.index(), g.index()}
	case 5:
		return []string{"LINDEX", k, g.index()}
	case 6:
		return []string{"LSET", k, g.index(), g.item()}
	case 7:
		return []string{"LINSERT", k, g.one("BEFORE", "AFTER"), g.item(), g.item()}
	case 8:
		return []string{"LREM", k, g.one("0", "1", "-1", "2", "-2"), g.item()}
	case 9:
		return []string{"LTRIM", k, g.index(), g.index()}
	case 10:
		return join([]string{"LPOS", k, g.item()}, g.maybe("RANK", g.one("1", "2", "-1", "-2", "0")), g.maybe("COUNT", g.one("0", "1", "2")),
			g.maybe("MAXLEN", g.one("0", "3", "1000")))
	case 11:
		return []string{"LMOVE", k, to, side(), side()}
	case 12:
		return []string{"RPOPLPUSH", k, to}
	case 13:
		return join([]string{"LMPOP", "2", k, to, side()}, g.maybe("COUNT", g.one("1", "2", "100", "0")))
	case 14:
		return []string{"LLEN", k}
	}
	return join([]string{g.one("SORT", "SORT_RO"), g.one(k, g.typed(command.GroupSet), g.typed(command.GroupSortedSet)), "ALPHA"},
		g.maybe("LIMIT", "1", "3"), g.maybe(g.one("DESC", "ASC")))
}

func (g *Generator) set() []string {
	k, b := g.typed(command.GroupSet), g.typed(command.GroupSet)
	switch g.rng.IntN(13) {
	case 0, 1, 2:
		return join([]string{"SADD", k}, g.items(6))
	case 3:
		return join([]string{"SADD", k}, many(1+g.rng.IntN(9), func() []string { return []string{strconv.Itoa(g.rng.IntN(40) - 10)} }))
	case 4:
		return join([]string{"SREM", k}, g.items(5))
	case 5:
		return []string{"SISMEMBER", k, g.item()}
	case 6:
		return join([]string{"SMISMEMBER", k}, g.items(3))
	case 7:
		return []string{"SMOVE", k, b, g.item()}
	case 8:
		return []string{g.one("SINTER", "SUNION", "SDIFF"), k, b}
	case 9:
		return []string{g.one("SINTERSTORE", "SUNIONSTORE", "SDIFFSTORE"), g.typed(command.GroupSet), k, b}
	case 10:
		return join([]string{"SINTERCARD", "2", k, b}, g.maybe("LIMIT", g.one("0", "1", "2", "-1")))
	case 11:
		return []string{g.one("SPOP", "SRANDMEMBER"), k, "1000"}
	}
	return []string{g.one("SMEMBERS", "SCARD"), k}
}

func (g *Generator) bound() string {
	return g.one("-inf", "+inf", "0", "1", "(1", "2.5", "(2", "-5", "100")
}
func (g *Generator) lexBound() string { return g.one("-", "+", "[a", "(a", "[c", "(f", "[zz") }

func (g *Generator) zset() []string {
	k, b := g.typed(command.GroupSortedSet), g.typed(command.GroupSortedSet)
	pairs := func() []string {
		return many(1+g.rng.IntN(5), func() []string { return []string{g.score(), g.item()} })
	}
	with, limit := g.maybe("WITHSCORES"), g.maybe("LIMIT", g.one("0", "1", "2"), g.one("2", "-1", "0", "100"))
	weights := func(args ...string) []string {
		return join(args, g.maybe("WEIGHTS", g.one("1", "2", "-1", "0", "inf"), g.one("1", "0.5")),
			g.maybe("AGGREGATE", g.one("SUM", "MIN", "MAX")))
	}
	switch g.rng.IntN(26) {
	case 0, 1, 2, 3:
		return join([]string{"ZADD", k}, pairs())
	case 4:
		return join([]string{"ZADD", k}, g.maybe(g.one("NX", "XX")), g.maybe(g.one("GT", "LT")), g.maybe("CH"), pairs())
	case 5:
		return join([]string{"ZADD", k}, g.maybe(g.one("NX", "XX", "GT", "LT")), []string{"INCR", g.score(), g.item()})
	case 6:
		return []string{"ZINCRBY", k, g.score(), g.item()}
	case 7:
		return join([]string{"ZREM", k}, g.items(4))
	case 8:
		return []string{g.one("ZSCORE", "ZRANK", "ZREVRANK"), k, g.item()}
	case 9:
		return join([]string{"ZMSCORE", k}, g.items(3))
	case 10:
		return []string{"ZCOUNT", k, g.bound(), g.bound()}
	case 11:
		return join([]string{"ZRANGE", k, g.index(), g.index()}, g.maybe("REV"), with)
	case 12:
		return join([]string{"ZRANGE", k, g.bound(), g.bound(), "BYSCORE"}, g.maybe("REV"), limit, with)
	case 13:
		return join([]string{g.one("ZRANGEBYSCORE", "ZREVRANGEBYSCORE"), k, g.bound(), g.bound()}, with, limit)
	case 14, 15, 18:
		return g.lex()
	case 16:
		return []string{"ZREMRANGEBYRANK", k, g.index(), g.index()}
	case 17:
		return []string{"ZREMRANGEBYSCORE", k, g.bound(), g.bound()}
	case 19:
		return join([]string{g.one("ZPOPMIN", "ZPOPMAX"), k}, g.maybe(g.count()))
	case 20:
		return join([]string{"ZMPOP", "2", k, b, g.one("MIN", "MAX")}, g.maybe("COUNT", g.one("1", "2", "100", "0")))
	case 21:
		return weights(g.one("ZUNIONSTORE", "ZINTERSTORE"), g.typed(command.GroupSortedSet), "2", k, g.one(b, g.typed(command.GroupSet)))
	case 22:
		return join(weights(g.one("ZUNION", "ZINTER"), "2", k, g.one(b, g.typed(command.GroupSet))), with)
	case 23:
		return []string{"ZDIFFSTORE", g.typed(command.GroupSortedSet), "2", k, b}
	case 24:
		return join([]string{"ZRANGESTORE", g.typed(command.GroupSortedSet), k},
			g.words([]string{g.index(), g.index()}, []string{g.bound(), g.bound(), "BYSCORE"}), g.maybe("REV"))
	}
	return join([]string{g.one("ZCARD", "ZINTERCARD", "ZDIFF"), k}, g.maybe("2", b))
}

// lexKey is a sorted set whose scores are all the same: of others ranges by
// member are unspecified.
const lexKey = "zl"

func (g *Generator) lex() []string {
	limit := g.maybe("LIMIT", g.one("0", "1", "2"), g.one("2", "-1", "0", "100"))
	switch g.rng.IntN(7) {
	case 0, 1:
		return join([]string{"ZADD", lexKey}, many(1+g.rng.IntN(5), func() []string { return []string{"0", g.item()} }))
	case 2:
		return join([]string{g.one("ZRANGEBYLEX", "ZREVRANGEBYLEX"), lexKey, g.lexBound(), g.lexBound()}, limit)
	case 3:
		return join([]string{"ZRANGE", lexKey, g.lexBound(), g.lexBound(), "BYLEX"}, g.maybe("REV"), limit)
	case 4:
		return []string{"ZREMRANGEBYLEX", lexKey, g.lexBound(), g.lexBound()}
	case 5:
		return join([]string{"ZRANGESTORE", g.typed(command.GroupSortedSet), lexKey, g.lexBound(), g.lexBound(), "BYLEX"}, g.maybe("REV"))
	}
	return []string{"ZLEXCOUNT", lexKey, g.lexBound(), g.lexBound()}
}

func (g *Generator) streamID() string { return g.one(ids...) }

func (g *Generator) stream() []string {
	k := g.typed(command.GroupStream)
	group, consumer := g.one("g", "g", "other"), g.one("c1", "c2")
	edge := func() string { return g.one("-", "+", "(1-1", "(3", g.streamID(), "1") }
	switch g.rng.IntN(20) {
	case 0, 1, 2, 3:
		return join([]string{"XADD", k}, g.maybe("NOMKSTREAM"), g.maybe("MAXLEN", g.one("2", "5", "100")), []string{g.streamID()},
			many(1+g.rng.IntN(3), func() []string { return []string{g.item(), g.val()} }))
	case 4:
		return []string{"XADD", k, g.one("8-*", "100-*", strconv.Itoa(g.rng.IntN(1000))+"-"+strconv.Itoa(g.rng.IntN(5))), g.item(), g.val()}
	case 5:
		return join([]string{"XRANGE", k, edge(), edge()}, g.maybe("COUNT", g.one("1", "2", "0")))
	case 6:
		return join([]string{"XREVRANGE", k, edge(), edge()}, g.maybe("COUNT", g.one("1", "2", "0")))
	case 7:
		return []string{"XDEL", k, g.streamID(), g.streamID()}
	case 8:
		return []string{"XTRIM", k, g.one("MAXLEN", "MINID"), g.one("0", "2", "5", "100")}
	case 9:
		return join([]string{"XREAD"}, g.maybe("COUNT", "2"), []string{"STREAMS", k, g.one("0", "$", g.streamID())})
	case 10:
		return join([]string{"XGROUP", "CREATE", k, group, g.one("0", "$", g.streamID())}, g.maybe("MKSTREAM"))
	case 11:
		return g.words([]string{"XGROUP", "SETID", k, group, g.one("0", "$", g.streamID())}, []string{"XGROUP", "DESTROY", k, group},
			[]string{"XGROUP", "CREATECONSUMER", k, group, consumer}, []string{"XGROUP", "DELCONSUMER", k, group, consumer})
	case 12, 13:
		return join([]string{"XREADGROUP", "GROUP", group, consumer}, g.maybe("COUNT", g.one("1", "2")), g.maybe("NOACK"),
			[]string{"STREAMS", k, g.one(">", ">", "0", g.streamID())})
	case 14:
		return []string{"XACK", k, group, g.streamID(), g.streamID()}
	case 15:
		return []string{"XPENDING", k, group}
	case 16:
		return join([]string{"XCLAIM", k, group, consumer, g.one("0", "1000000"), g.streamID(), g.streamID()}, g.maybe("FORCE"),
			g.maybe("JUSTID"), g.maybe("RETRYCOUNT", "3"), g.maybe("TIME", "1000"))
	case 17:
		return join([]string{"XAUTOCLAIM", k, group, consumer, g.one("0", "1000000"), g.one("0", g.streamID())},
			g.maybe("COUNT", g.one("1", "2")), g.maybe("JUSTID"))
	case 18:
		return []string{"XSETID", k, g.one(append(ids, "50000-1")...)}
	}
	return []string{"XLEN", k}
}

func (g *Generator) geo() []string {
	k := g.typed(command.GroupGeo)
	place := func() []string { return places[g.rng.IntN(len(places))] }
	switch g.rng.IntN(6) {
	case 0, 1:
		return join([]string{"GEOADD", k}, g.maybe(g.one("NX", "XX")), g.maybe("CH"), place(), place())
	case 2:
		return []string{"GEODIST", k, place()[2], place()[2], g.one("m", "km", "ft", "mi")}
	case 3:
		return []string{g.one("GEOHASH", "GEOPOS"), k, place()[2], place()[2]}
	case 4:
		return join([]string{"GEOSEARCH", k, "FROMLONLAT"}, place()[:2],
			g.words([]string{"BYRADIUS", g.one("200", "2000", "20000"), "km"}, []string{"BYBOX", "400", g.one("400", "4000"), "km"}),
			[]string{g.one("ASC", "DESC")}, g.maybe("COUNT", "2"), g.maybe("WITHDIST"), g.maybe("WITHHASH"), g.maybe("WITHCOORD"))
	}
	return []string{"GEOSEARCHSTORE", g.typed(command.GroupGeo), k, "FROMMEMBER", place()[2], "BYRADIUS", "3000", "km"}
}

// sketch is for HyperLogLogs, and for what crosses types.
func (g *Generator) sketch() []string {
	k := g.typed(command.GroupHyperLogLog)
	switch g.rng.IntN(6) {
	case 0, 1:
		return join([]string{"PFADD", k}, g.items(5))
	case 2:
		return join([]string{"PFCOUNT", k}, g.maybe(g.typed(command.GroupHyperLogLog)))
	case 3:
		return []string{"PFMERGE", k, g.typed(command.GroupHyperLogLog)}
	case 4:
		return []string{g.one("GET", "STRLEN"), k}
	}
	return []string{"OBJECT", "ENCODING", g.one("h1", "l1", "s1", "z1", "x1", "{t}z", "{t}s")}
}

// blocking makes a request that waits, for one of the connections that do
// nothing else. It waits for ever: the campaign unblocks it in the end.
func (g *Generator) blocking() []string {
	l, z := g.typed(command.GroupList), g.typed(command.GroupSortedSet)
	switch g.rng.IntN(8) {
	case 0, 1:
		return []string{g.one("BLPOP", "BRPOP"), l, g.typed(command.GroupList), "0"}
	case 2:
		return []string{"BLMOVE", l, g.typed(command.GroupList), g.one("LEFT", "RIGHT"), g.one("LEFT", "RIGHT"), "0"}
	case 3:
		return []string{"BRPOPLPUSH", l, g.typed(command.GroupList), "0"}
	case 4:
		return []string{"BLMPOP", "0", "2", l, g.typed(command.GroupList), g.one("LEFT", "RIGHT"), "COUNT", g.one("1", "2")}
	case 5:
		return []string{g.one("BZPOPMIN", "BZPOPMAX"), z, g.typed(command.GroupSortedSet), "0"}
	case 6:
		return []string{"BZMPOP", "0", "2", z, g.typed(command.GroupSortedSet), g.one("MIN", "MAX")}
	}
	if g.Server != 0 && g.rng.IntN(2) == 0 {
		return []string{"XREADGROUP", "GROUP", "g", "c1", "BLOCK", "0", "STREAMS", g.typed(command.GroupStream), ">"}
	}
	return []string{"XREAD", "BLOCK", "0", "STREAMS", g.typed(command.GroupStream), "$"}
}
