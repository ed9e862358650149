package main

import (
	"fmt"
	"strings"

	"github.com/ebbdb/ebb/internal/loadgen"
)

// workload is a row of the table: what the server holds, and the requests that a connection repeats. Commands are
// separated by " ; " and words by blanks. A word may hold
//
//	{a} {b} {c}      twelve digits below keys. {a} in load: the command runs for each number
//	{d} {dd} {ddd}   one to three random digits
//	{n}              twelve random digits, which hardly repeat
//	{w}              the number of the connection
//	{x32} {x100}     32 bytes, 100 bytes; any number
//	{script}         the script of the row, and {sha} its SHA-1
//	{dump}           what DUMP replies to the key src:000000000000 of that server
//
// A placeholder has one value in all commands of a repetition. Each repetition leaves the data as large as it was, or grows
// them by little, so that a row is the same in every round.
type workload struct {
	name   string // the command as in COMMAND DOCS, and the variant
	keys   int    // default 10,000
	load   string
	run    string
	script string
}

// members returns n names of one, two or three digits: m0 to m9, m00 to m99, m000 to m999.
func members(n int) string { return repeated(n, func(i string) string { return "m" + i }) }

// integerTexts returns n integers in decimal.
func integerTexts(n int) string {
	return repeated(n, func(i string) string { return strings.TrimLeft(i[:len(i)-1], "0") + i[len(i)-1:] })
}

// fields returns n fields with values.
func fields(n int) string {
	return repeated(n, func(i string) string { return "f" + i + " value:" + i })
}

// scored returns n members with scores from 0 on.
func scored(n int) string { return repeated(n, func(i string) string { return i + " m" + i }) }

// equal returns n members with the score 0.
func equal(n int) string { return repeated(n, func(i string) string { return "0 m" + i }) }

// elements returns n elements of 16 bytes.
func elements(n int) string {
	return repeated(n, func(i string) string { return "element:" + strings.Repeat("0", 8-len(i)) + i })
}

// places returns n members with positions of a city's size.
func places(n int) string {
	return repeated(n, func(i string) string {
		var v int
		_, _ = fmt.Sscan(i, &v)
		return fmt.Sprintf("%.4f %.4f m%s", 13.3+float64(v%10)/50, 52.4+float64(v/10)/100, i)
	})
}

func repeated(n int, word func(i string) string) string {
	width := len(fmt.Sprint(n - 1))
	words := make([]string, n)
	for i := range words {
		words[i] = word(fmt.Sprintf("%0*d", width, i))
	}
	return strings.Join(words, " ")
}

// keyNames returns n keys with the prefix.
func keyNames(prefix string) string { return prefix + ":{a} " + prefix + ":{b} " + prefix + ":{c}" }

// sized returns a row for each size of container. In load and run, LIST stands for the elements, which list makes, DIGITS for the
// digits of one of them, POSITION, HALF and LAST for positions, and MIDDLE for the element at HALF.
func sized(name string, list func(int) string, load, run string, sizes ...int) []workload {
	digits := map[int]string{10: "{d}", 100: "{dd}", 1000: "{ddd}"}
	indexes := map[int]string{10: "{d}", 100: "5{d}", 1000: "4{dd}"}
	rows := make([]workload, len(sizes))
	for i, n := range sizes {
		fill := strings.NewReplacer("LIST", list(n), "DIGITS", digits[n], "POSITION", indexes[n], "HALF", fmt.Sprint(n/2),
			"MIDDLE", fmt.Sprintf("element:%08d", n/2), "LAST", fmt.Sprint(n-1))
		rows[i] = workload{name: fmt.Sprintf("%s of %d", name, n), keys: 30_000 / n, load: fill.Replace(load), run: fill.Replace(run)}
	}
	return rows
}

func joined(lists ...[]workload) (rows []workload) {
	for _, l := range lists {
		rows = append(rows, l...)
	}
	return rows
}

// workloads returns the workloads, by group of commands.
func workloads() []workload {
	return joined(stringRows, bitRows, hashRows(), setRows(), streamRows, listRows(), zsetRows(), geoRows(), keyRows(),
		deadlineRows, scriptRows, otherRows)
}

const someStrings = "SET k:{a} {x32}"

var stringRows = []workload{
	{name: "GET", load: someStrings, run: "GET k:{a}"},
	{name: "GET of 10 kB", keys: 100, load: "SET k:{a} {x10000}", run: "GET k:{a}"},
	{name: "SET", run: "SET k:{a} {x32}"},
	{name: "SET EX", run: "SET k:{a} {x32} EX 3600"},
	{name: "SET of 10 kB", keys: 100, run: "SET k:{a} {x10000}"},
	{name: "SETNX", run: "SETNX k:{a} {x32} ; DEL k:{a}"},
	{name: "SETEX", run: "SETEX k:{a} 3600 {x32}"},
	{name: "PSETEX", run: "PSETEX k:{a} 3600000 {x32}"},
	{name: "GETSET", load: someStrings, run: "GETSET k:{a} {x32}"},
	{name: "GETEX", load: someStrings, run: "GETEX k:{a} EX 3600"},
	{name: "GETDEL", run: "SET k:{a} {x32} ; GETDEL k:{a}"},
	{name: "APPEND", load: someStrings, run: "APPEND k:{a} x"},
	{name: "STRLEN", load: someStrings, run: "STRLEN k:{a}"},
	{name: "GETRANGE", load: someStrings, run: "GETRANGE k:{a} 4 11"},
	{name: "SUBSTR", load: someStrings, run: "SUBSTR k:{a} 4 11"},
	{name: "SETRANGE", load: someStrings, run: "SETRANGE k:{a} 4 {d}bcd"},
	{name: "INCR", run: "INCR k:{a}"},
	{name: "DECR", run: "DECR k:{a}"},
	{name: "INCRBY", run: "INCRBY k:{a} 7"},
	{name: "DECRBY", run: "DECRBY k:{a} 7"},
	{name: "INCRBYFLOAT", run: "INCRBYFLOAT k:{a} 0.5"},
	{name: "INCREX", run: "INCREX k:{a} BYINT 1 EX 3600"},
	{name: "MGET of 3", load: someStrings, run: "MGET " + keyNames("k")},
	{name: "MSET of 3", run: "MSET k:{a} {x32} k:{b} {x32} k:{c} {x32}"},
	{name: "MSETNX of 3", run: "MSETNX k:{a} {x32} k:{b} {x32} k:{c} {x32} ; DEL " + keyNames("k")},
	{name: "MSETEX of 3", run: "MSETEX 3 k:{a} {x32} k:{b} {x32} k:{c} {x32} EX 3600"},
	{name: "DELEX", run: "SET k:{a} v ; DELEX k:{a} IFEQ v"},
	{name: "DELIFEQ", run: "SET k:{a} v ; DELIFEQ k:{a} v"},
	{name: "DIGEST", load: someStrings, run: "DIGEST k:{a}"},
	{name: "LCS of 32", load: "SET k:{a} {a}{a}12345678", run: "LCS k:{a} k:{b}"},
	{name: "LCS LEN of 32", load: "SET k:{a} {a}{a}12345678", run: "LCS k:{a} k:{b} LEN"},
	{name: "LCS IDX of 32", load: "SET k:{a} {a}{a}12345678", run: "LCS k:{a} k:{b} IDX"},
}

const (
	someBits = "SET k:{a} {x100}"
	aLotBits = "SET k:{a} {x10000}"
)

var bitRows = []workload{
	{name: "SETBIT", load: someBits, run: "SETBIT k:{a} 3{dd} 1"},
	{name: "GETBIT", load: someBits, run: "GETBIT k:{a} 3{dd}"},
	{name: "BITCOUNT of 100 bytes", load: someBits, run: "BITCOUNT k:{a}"},
	{name: "BITCOUNT of 10 kB", keys: 100, load: aLotBits, run: "BITCOUNT k:{a}"},
	{name: "BITPOS of 100 bytes", load: "SETBIT k:{a} 799 1", run: "BITPOS k:{a} 1"},
	{name: "BITPOS of 10 kB", keys: 100, load: "SETBIT k:{a} 79999 1", run: "BITPOS k:{a} 1"},
	{name: "BITOP AND of 100 bytes", load: someBits, run: "BITOP AND d:{a} k:{a} k:{b}"},
	{name: "BITOP OR of 10 kB", keys: 100, load: aLotBits, run: "BITOP OR d:{a} k:{a} k:{b}"},
	{name: "BITOP XOR of 10 kB", keys: 100, load: aLotBits, run: "BITOP XOR d:{a} k:{a} k:{b} k:{c}"},
	{name: "BITOP NOT of 10 kB", keys: 100, load: aLotBits, run: "BITOP NOT d:{a} k:{a}"},
	{name: "BITFIELD GET", load: someBits, run: "BITFIELD k:{a} GET u8 #1{d}"},
	{name: "BITFIELD SET", load: someBits, run: "BITFIELD k:{a} SET u8 #1{d} 77"},
	{name: "BITFIELD INCRBY", load: someBits, run: "BITFIELD k:{a} OVERFLOW SAT INCRBY i16 #{d} 1 INCRBY u4 1{d} 1"},
	{name: "BITFIELD_RO", load: someBits, run: "BITFIELD_RO k:{a} GET u8 #1{d}"},
	{name: "PFADD", load: "PFADD k:{a} " + members(10), run: "PFADD k:{a} m{d}"},
	{name: "PFADD of new members", keys: 1000, run: "PFADD k:{a} {n}"},
	{name: "PFCOUNT of 10", load: "PFADD k:{a} " + members(10), run: "PFCOUNT k:{a}"},
	{name: "PFCOUNT of 3 keys", keys: 1000, load: "PFADD k:{a} " + members(100), run: "PFCOUNT " + keyNames("k")},
	{name: "PFCOUNT after PFADD", keys: 100, load: "PFADD k:{a} " + members(1000), run: "PFADD k:{a} {n} ; PFCOUNT k:{a}"},
	{name: "PFMERGE of 2 keys", keys: 1000, load: "PFADD k:{a} " + members(100), run: "PFMERGE d:{a} k:{a} k:{b}"},
}

func hashRows() []workload {
	const load = "HSET k:{a} LIST"
	return joined(
		sized("HSET", fields, load, "HSET k:{a} fDIGITS changed:{d}", 10, 100, 1000),
		sized("HSET of new fields", fields, "", "HSET k:{a} LIST ; DEL k:{a}", 10, 100),
		sized("HSETNX", fields, load, "HSETNX k:{a} fDIGITS v", 10),
		sized("HMSET", fields, load, "HMSET k:{a} f{d} v f{dd} v", 100),
		sized("HGET", fields, load, "HGET k:{a} fDIGITS", 10, 100, 1000),
		sized("HMGET", fields, load, "HMGET k:{a} fDIGITS f0 f1 nothing f00 f01", 10, 100, 1000),
		sized("HGETALL", fields, load, "HGETALL k:{a}", 10, 100, 1000),
		sized("HKEYS", fields, load, "HKEYS k:{a}", 10, 100, 1000),
		sized("HVALS", fields, load, "HVALS k:{a}", 10, 100, 1000),
		sized("HLEN", fields, load, "HLEN k:{a}", 10, 1000),
		sized("HSTRLEN", fields, load, "HSTRLEN k:{a} fDIGITS", 10, 1000),
		sized("HEXISTS", fields, load, "HEXISTS k:{a} fDIGITS", 10, 1000),
		sized("HDEL", fields, load, "HSET k:{a} fDIGITS v ; HDEL k:{a} fDIGITS", 10, 100, 1000),
		sized("HINCRBY", fields, "", "HINCRBY k:{a} fDIGITS 1", 10, 100, 1000),
		sized("HINCRBYFLOAT", fields, "", "HINCRBYFLOAT k:{a} fDIGITS 0.5", 10, 1000),
		sized("HRANDFIELD", fields, load, "HRANDFIELD k:{a}", 10, 1000),
		sized("HRANDFIELD 5", fields, load, "HRANDFIELD k:{a} 5 WITHVALUES", 10, 100, 1000),
		sized("HRANDFIELD -5", fields, load, "HRANDFIELD k:{a} -5", 10, 1000),
		sized("HSCAN", fields, load, "HSCAN k:{a} 0", 10, 100, 1000),
		sized("HSCAN MATCH", fields, load, "HSCAN k:{a} 0 MATCH *1 COUNT 100", 100, 1000),
	)
}

func setRows() []workload {
	const load = "SADD k:{a} LIST"
	const three = "3 k:{a} k:{b} k:{c}"
	return joined(
		sized("SADD", members, load, "SADD k:{a} mDIGITS", 10, 100, 1000),
		sized("SADD of new members", members, "", "SADD k:{a} LIST ; DEL k:{a}", 10, 100),
		sized("SADD of new numbers", integerTexts, "", "SADD k:{a} LIST ; DEL k:{a}", 10, 100),
		sized("SREM", members, load, "SADD k:{a} mDIGITS ; SREM k:{a} mDIGITS", 10, 100, 1000),
		sized("SCARD", members, load, "SCARD k:{a}", 10, 1000),
		sized("SISMEMBER", members, load, "SISMEMBER k:{a} mDIGITS", 10, 100, 1000),
		sized("SISMEMBER of numbers", integerTexts, load, "SISMEMBER k:{a} {d}", 10, 1000),
		sized("SMISMEMBER 10", members, load, "SMISMEMBER k:{a} m0 m1 m2 m33 m44 m55 m666 m777 m888 m99", 10, 100, 1000),
		sized("SMEMBERS", members, load, "SMEMBERS k:{a}", 10, 100, 1000),
		sized("SMEMBERS of numbers", integerTexts, load, "SMEMBERS k:{a}", 10, 100, 1000),
		sized("SMOVE", members, load, "SMOVE k:{a} d:{a} mDIGITS ; SMOVE d:{a} k:{a} mDIGITS", 10, 1000),
		sized("SPOP", members, load, "SPOP k:{a} ; SADD k:{a} {n}", 10, 100, 1000),
		sized("SPOP 5", members, load, "SPOP k:{a} 5 ; SADD k:{a} {n} {n}a {n}b {n}c {n}d", 10, 100, 1000),
		sized("SRANDMEMBER", members, load, "SRANDMEMBER k:{a}", 10, 1000),
		sized("SRANDMEMBER 5", members, load, "SRANDMEMBER k:{a} 5", 10, 100, 1000),
		sized("SRANDMEMBER -5", members, load, "SRANDMEMBER k:{a} -5", 10, 1000),
		sized("SSCAN", members, load, "SSCAN k:{a} 0", 10, 100, 1000),
		sized("SINTER", members, load, "SINTER k:{a} k:{b}", 10, 100, 1000),
		sized("SINTER of numbers", integerTexts, load, "SINTER k:{a} k:{b}", 10, 100, 1000),
		sized("SINTER of two", members, load+" ; SADD few m1 m2", "SINTER k:{a} few", 10, 1000),
		sized("SINTERCARD", members, load, "SINTERCARD "+three, 10, 100, 1000),
		sized("SINTERSTORE", members, load, "SINTERSTORE d:{a} k:{a} k:{b}", 10, 100, 1000),
		sized("SUNION", members, load, "SUNION k:{a} k:{b}", 10, 100, 1000),
		sized("SUNION of numbers", integerTexts, load, "SUNION k:{a} k:{b}", 10, 100, 1000),
		sized("SUNIONSTORE", members, load, "SUNIONSTORE d:{a} k:{a} k:{b}", 10, 100, 1000),
		sized("SUNIONSTORE of numbers", integerTexts, load, "SUNIONSTORE d:{a} k:{a} k:{b}", 10, 100, 1000),
		sized("SDIFF", members, load+" ; SADD few m1 m2", "SDIFF k:{a} few", 10, 100, 1000),
		sized("SDIFFSTORE", members, load+" ; SADD few m1 m2", "SDIFFSTORE d:{a} k:{a} few", 10, 100, 1000),
	)
}

func listRows() []workload {
	const load = "RPUSH k:{a} LIST"
	return joined(
		sized("LPUSH", elements, load, "LPUSH k:{a} {x16} ; RPOP k:{a}", 10, 1000),
		sized("RPUSH", elements, load, "RPUSH k:{a} {x16} ; LPOP k:{a}", 10, 1000),
		sized("RPUSH of new elements", elements, "", "RPUSH k:{a} LIST ; DEL k:{a}", 10, 100),
		sized("LPUSHX", elements, load, "LPUSHX k:{a} {x16} ; RPOP k:{a}", 10),
		sized("RPUSHX", elements, load, "RPUSHX k:{a} {x16} ; LPOP k:{a}", 10),
		sized("LPOP", elements, load, "LPOP k:{a} ; LPUSH k:{a} {x16}", 10, 1000),
		sized("LPOP 5", elements, load, "LPOP k:{a} 5 ; RPUSH k:{a} 1 2 3 4 5", 10, 1000),
		sized("RPOP", elements, load, "RPOP k:{a} ; RPUSH k:{a} {x16}", 10, 1000),
		sized("LLEN", elements, load, "LLEN k:{a}", 10, 1000),
		sized("LRANGE", elements, load, "LRANGE k:{a} 0 -1", 10, 100, 1000),
		sized("LRANGE of the middle", elements, load, "LRANGE k:{a} HALF LAST", 100, 1000),
		sized("LINDEX", elements, load, "LINDEX k:{a} POSITION", 10, 100, 1000),
		sized("LSET", elements, load, "LSET k:{a} POSITION {x16}", 10, 100, 1000),
		sized("LINSERT", elements, load, "LINSERT k:{a} BEFORE element:00000005 {x16} ; LPOP k:{a} ; LPUSH k:{a} element:00000005",
			10, 100, 1000),
		sized("LREM", elements, load, "RPUSH k:{a} removed ; LREM k:{a} 1 removed", 10, 100, 1000),
		sized("LREM from the end", elements, load, "RPUSH k:{a} removed ; LREM k:{a} -1 removed", 10, 1000),
		sized("LTRIM", elements, load, "LPUSH k:{a} {x16} ; LTRIM k:{a} 0 LAST", 10, 1000),
		sized("LPOS", elements, load, "LPOS k:{a} MIDDLE", 10, 100, 1000),
		sized("LMOVE", elements, load, "LMOVE k:{a} d:{a} LEFT RIGHT ; LMOVE d:{a} k:{a} LEFT RIGHT", 10, 1000),
		sized("RPOPLPUSH", elements, load, "RPOPLPUSH k:{a} k:{a}", 10, 1000),
		sized("LMPOP", elements, load, "LMPOP 2 k:{a} k:{b} LEFT ; RPUSH k:{a} {x16}", 10),
		[]workload{
			{name: "BLPOP", run: "RPUSH k:{w} v ; BLPOP k:{w} 1"},
			{name: "BRPOP", run: "RPUSH k:{w} v ; BRPOP k:{w} 1"},
			{name: "BLMOVE", load: "RPUSH k:{a} " + elements(10), run: "BLMOVE k:{a} k:{a} LEFT RIGHT 1"},
			{name: "BRPOPLPUSH", load: "RPUSH k:{a} " + elements(10), run: "BRPOPLPUSH k:{a} k:{a} 1"},
			{name: "BLMPOP", run: "RPUSH k:{w} v ; BLMPOP 1 1 k:{w} LEFT"},
		})
}

func zsetRows() []workload {
	const load = "ZADD k:{a} LIST"
	const two = "2 k:{a} k:{b}"
	return joined(
		sized("ZADD", scored, load, "ZADD k:{a} {dd} mDIGITS", 10, 100, 1000),
		sized("ZADD of new members", scored, "", "ZADD k:{a} LIST ; DEL k:{a}", 10, 100),
		sized("ZINCRBY", scored, load, "ZINCRBY k:{a} 1 mDIGITS", 10, 100, 1000),
		sized("ZREM", scored, load, "ZADD k:{a} 5 mDIGITS ; ZREM k:{a} mDIGITS", 10, 100, 1000),
		sized("ZCARD", scored, load, "ZCARD k:{a}", 10, 1000),
		sized("ZSCORE", scored, load, "ZSCORE k:{a} mDIGITS", 10, 100, 1000),
		sized("ZMSCORE", scored, load, "ZMSCORE k:{a} mDIGITS m0 m11 m222", 10, 100, 1000),
		sized("ZRANK", scored, load, "ZRANK k:{a} mDIGITS", 10, 100, 1000),
		sized("ZREVRANK", scored, load, "ZREVRANK k:{a} mDIGITS", 10, 100, 1000),
		sized("ZRANDMEMBER", scored, load, "ZRANDMEMBER k:{a}", 10, 1000),
		sized("ZRANDMEMBER 5", scored, load, "ZRANDMEMBER k:{a} 5 WITHSCORES", 10, 100, 1000),
		sized("ZRANDMEMBER -5", scored, load, "ZRANDMEMBER k:{a} -5", 10, 1000),
		sized("ZSCAN", scored, load, "ZSCAN k:{a} 0", 10, 100, 1000),
		sized("ZRANGE", scored, load, "ZRANGE k:{a} 0 -1", 10, 100, 1000),
		sized("ZRANGE of 10 WITHSCORES", scored, load, "ZRANGE k:{a} {d} 1{d} WITHSCORES", 10, 100, 1000),
		sized("ZRANGE BYSCORE", scored, load, "ZRANGE k:{a} {d} 1{d} BYSCORE", 10, 100, 1000),
		sized("ZRANGESTORE", scored, load, "ZRANGESTORE d:{a} k:{a} {d} 1{d}", 10, 100, 1000),
		sized("ZRANGEBYSCORE", scored, load, "ZRANGEBYSCORE k:{a} {d} 1{d}", 10, 100, 1000),
		sized("ZRANGEBYSCORE LIMIT", scored, load, "ZRANGEBYSCORE k:{a} {d} +inf LIMIT 0 3", 10, 1000),
		sized("ZRANGEBYLEX", equal, load, "ZRANGEBYLEX k:{a} [m3 (m5", 10, 100, 1000),
		sized("ZREVRANGE", scored, load, "ZREVRANGE k:{a} 0 9", 10, 1000),
		sized("ZREVRANGEBYSCORE", scored, load, "ZREVRANGEBYSCORE k:{a} 1{d} {d}", 10, 1000),
		sized("ZREVRANGEBYLEX", equal, load, "ZREVRANGEBYLEX k:{a} (m5 [m3", 10, 1000),
		sized("ZCOUNT", scored, load, "ZCOUNT k:{a} {d} {dd}", 10, 100, 1000),
		sized("ZCOUNT of half", scored, load, "ZCOUNT k:{a} {d} HALF", 10, 100, 1000),
		sized("ZLEXCOUNT", equal, load, "ZLEXCOUNT k:{a} [m3 (m5", 10, 100, 1000),
		sized("ZREMRANGEBYRANK", scored, load, "ZREMRANGEBYRANK k:{a} 0 0 ; ZADD k:{a} 50 {n}", 10, 100, 1000),
		sized("ZREMRANGEBYSCORE", scored, load, "ZADD k:{a} -1 {n} ; ZREMRANGEBYSCORE k:{a} -2 -1", 10, 100, 1000),
		sized("ZREMRANGEBYLEX", equal, load, "ZADD k:{a} 0 a{n} ; ZREMRANGEBYLEX k:{a} [a (b", 10, 100, 1000),
		sized("ZPOPMIN", scored, load, "ZPOPMIN k:{a} ; ZADD k:{a} 50 {n}", 10, 100, 1000),
		sized("ZPOPMAX", scored, load, "ZPOPMAX k:{a} ; ZADD k:{a} 50 {n}", 10, 1000),
		sized("ZMPOP", scored, load, "ZMPOP 1 k:{a} MIN ; ZADD k:{a} 50 {n}", 10, 1000),
		[]workload{
			{name: "BZPOPMIN", run: "ZADD k:{w} 1 m ; BZPOPMIN k:{w} 1"},
			{name: "BZPOPMAX", run: "ZADD k:{w} 1 m ; BZPOPMAX k:{w} 1"},
			{name: "BZMPOP", run: "ZADD k:{w} 1 m ; BZMPOP 1 1 k:{w} MIN"},
		},
		sized("ZUNION", scored, load, "ZUNION "+two, 10, 100, 1000),
		sized("ZINTER", scored, load, "ZINTER "+two, 10, 100, 1000),
		sized("ZDIFF", scored, load+" ; ZADD few 1 m1 2 m2", "ZDIFF 2 k:{a} few", 10, 100, 1000),
		sized("ZINTERCARD", scored, load, "ZINTERCARD "+two, 10, 100, 1000),
		sized("ZUNIONSTORE", scored, load, "ZUNIONSTORE d:{a} "+two, 10, 100, 1000),
		sized("ZUNIONSTORE WEIGHTS", scored, load, "ZUNIONSTORE d:{a} "+two+" WEIGHTS 2 3", 100),
		sized("ZINTERSTORE", scored, load, "ZINTERSTORE d:{a} "+two, 10, 100, 1000),
		sized("ZDIFFSTORE", scored, load+" ; ZADD few 1 m1 2 m2", "ZDIFFSTORE d:{a} 2 k:{a} few", 10, 100, 1000),
	)
}

func geoRows() []workload {
	const load = "GEOADD k:{a} LIST"
	return joined(
		sized("GEOADD", places, load, "GEOADD k:{a} 13.4 52.5{d} mDIGITS", 10, 100, 1000),
		sized("GEOPOS", places, load, "GEOPOS k:{a} mDIGITS", 10, 1000),
		sized("GEODIST", places, load, "GEODIST k:{a} mDIGITS m1 km", 10, 1000),
		sized("GEOHASH", places, load, "GEOHASH k:{a} mDIGITS", 10, 1000),
		sized("GEOSEARCH BYRADIUS", places, load, "GEOSEARCH k:{a} FROMLONLAT 13.4 52.5 BYRADIUS 5 km", 10, 100, 1000),
		sized("GEOSEARCH ASC COUNT", places, load, "GEOSEARCH k:{a} FROMLONLAT 13.4 52.5 BYRADIUS 50 km ASC COUNT 10 WITHDIST", 10, 100, 1000),
		sized("GEOSEARCH BYBOX", places, load, "GEOSEARCH k:{a} FROMLONLAT 13.4 52.5 BYBOX 10 10 km", 10, 100, 1000),
		sized("GEOSEARCHSTORE", places, load, "GEOSEARCHSTORE d:{a} k:{a} FROMLONLAT 13.4 52.5 BYRADIUS 5 km", 10, 100),
		sized("GEORADIUS", places, load, "GEORADIUS k:{a} 13.4 52.5 5 km", 10, 100),
		sized("GEORADIUS_RO", places, load, "GEORADIUS_RO k:{a} 13.4 52.5 5 km", 100),
		sized("GEORADIUSBYMEMBER", places, load, "GEORADIUSBYMEMBER k:{a} mDIGITS 2 km", 10, 100),
		sized("GEORADIUSBYMEMBER_RO", places, load, "GEORADIUSBYMEMBER_RO k:{a} mDIGITS 2 km", 100),
	)
}

// eachKind returns rows for each type of container and each size, which run reads as src:{a}.
func eachKind(name, run string, sizes ...int) (rows []workload) {
	for _, k := range []struct {
		kind, add string
		list      func(int) string
	}{
		{"hash", "HSET", fields}, {"set", "SADD", members}, {"set of numbers", "SADD", integerTexts}, {"list", "RPUSH", elements},
		{"zset", "ZADD", scored},
	} {
		rows = append(rows, sized(name+" "+k.kind, k.list, k.add+" src:{a} LIST", run, sizes...)...)
	}
	return rows
}

func keyRows() []workload {
	const stream = "XADD src:{a} 1-1 f value ; XADD src:{a} 1-2 f value ; XADD src:{a} 1-3 f value ; XGROUP CREATE src:{a} g 0"
	return joined(
		[]workload{
			{name: "DEL", run: "SET k:{a} v ; DEL k:{a}"},
			{name: "UNLINK", run: "SET k:{a} v ; UNLINK k:{a}"},
			{name: "EXISTS", load: someStrings, run: "EXISTS " + keyNames("k")},
			{name: "TOUCH", load: someStrings, run: "TOUCH " + keyNames("k")},
			{name: "TYPE", load: someStrings, run: "TYPE k:{a}"},
			{name: "RENAME", run: "SET k:{w} v ; RENAME k:{w} d:{w}"},
			{name: "RENAMENX", run: "SET k:{w} v ; RENAMENX k:{w} d:{w} ; DEL d:{w}"},
			{name: "MOVE", run: "SELECT 0 ; SET k:{w} v ; MOVE k:{w} 1 ; SELECT 1 ; DEL k:{w}"},
			{name: "KEYS", keys: 100, load: someStrings, run: "KEYS k:*{d}"},
			{name: "SCAN", load: someStrings, run: "SCAN 0"},
			{name: "SCAN MATCH", load: someStrings, run: "SCAN 0 MATCH *{d} COUNT 100"},
			{name: "SCAN TYPE", load: someStrings, run: "SCAN 0 TYPE string COUNT 100"},
			{name: "RANDOMKEY", load: someStrings, run: "RANDOMKEY"},
			{name: "DBSIZE", load: someStrings, run: "DBSIZE"},
			{name: "OBJECT ENCODING", load: someStrings, run: "OBJECT ENCODING k:{a}"},
			{name: "OBJECT IDLETIME", load: someStrings, run: "OBJECT IDLETIME k:{a}"},
			{name: "OBJECT REFCOUNT", load: someStrings, run: "OBJECT REFCOUNT k:{a}"},
			{name: "MEMORY USAGE", load: someStrings, run: "MEMORY USAGE k:{a}"},
			{name: "COPY string", load: "SET src:{a} {x32}", run: "COPY src:{a} d:{a} REPLACE"},
			{name: "DUMP string", load: "SET src:{a} {x32}", run: "DUMP src:{a}"},
			{name: "DUMP string of 10 kB", keys: 100, load: "SET src:{a} {x10000}", run: "DUMP src:{a}"},
			{name: "DUMP number", load: "SET src:{a} 12345", run: "DUMP src:{a}"},
			{name: "RESTORE string", load: "SET src:{a} {x32}", run: "RESTORE d:{a} 0 {dump} REPLACE"},
			{name: "RESTORE string of 10 kB", keys: 100, load: "SET src:{a} {x10000}", run: "RESTORE d:{a} 0 {dump} REPLACE"},
			{name: "RESTORE-ASKING", load: "SET src:{a} {x32}", run: "RESTORE-ASKING d:{a} 0 {dump} REPLACE"},
			{name: "COPY stream of 3", load: stream, run: "COPY src:{a} d:{a} REPLACE"},
			{name: "DUMP stream of 3", load: stream, run: "DUMP src:{a}"},
			{name: "RESTORE stream of 3", load: stream, run: "RESTORE d:{a} 0 {dump} REPLACE"},
		},
		eachKind("COPY", "COPY src:{a} d:{a} REPLACE", 10, 100, 1000),
		eachKind("DUMP", "DUMP src:{a}", 10, 100, 1000),
		eachKind("RESTORE", "RESTORE d:{a} 0 {dump} REPLACE", 10, 100, 1000),
		sized("SORT of numbers", integerTexts, "RPUSH k:{a} LIST", "SORT k:{a}", 10, 100, 1000),
		sized("SORT DESC LIMIT", integerTexts, "RPUSH k:{a} LIST", "SORT k:{a} DESC LIMIT 0 10", 10, 100, 1000),
		sized("SORT ALPHA", members, "SADD k:{a} LIST", "SORT k:{a} ALPHA", 10, 100, 1000),
		sized("SORT STORE", integerTexts, "RPUSH k:{a} LIST", "SORT k:{a} STORE d:{a}", 10, 100, 1000),
		sized("SORT BY GET", integerTexts, "RPUSH k:{a} LIST ; SET weight:1 5 ; SET weight:2 3",
			"SORT k:{a} BY weight:* GET weight:* GET #", 10, 100),
		sized("SORT_RO", integerTexts, "RPUSH k:{a} LIST", "SORT_RO k:{a}", 10, 100),
	)
}

const (
	aHash   = "HSET k:{a} f0 v f1 v f2 v f3 v f4 v f5 v f6 v f7 v f8 v f9 v"
	timedHa = aHash + " ; HEXPIRE k:{a} 3600 FIELDS 10 f0 f1 f2 f3 f4 f5 f6 f7 f8 f9"
	future  = "4000000000"
)

var deadlineRows = []workload{
	{name: "EXPIRE", load: someStrings, run: "EXPIRE k:{a} 36{dd}"},
	{name: "PEXPIRE", load: someStrings, run: "PEXPIRE k:{a} 36000{dd}"},
	{name: "EXPIREAT", load: someStrings, run: "EXPIREAT k:{a} 40000000{dd}"},
	{name: "PEXPIREAT", load: someStrings, run: "PEXPIREAT k:{a} 40000000000{dd}"},
	{name: "TTL", load: someStrings + " EX 3600", run: "TTL k:{a}"},
	{name: "PTTL", load: someStrings + " EX 3600", run: "PTTL k:{a}"},
	{name: "EXPIRETIME", load: someStrings + " EX 3600", run: "EXPIRETIME k:{a}"},
	{name: "PEXPIRETIME", load: someStrings + " EX 3600", run: "PEXPIRETIME k:{a}"},
	{name: "PERSIST", load: someStrings, run: "EXPIRE k:{a} 3600 ; PERSIST k:{a}"},
	{name: "HEXPIRE", load: aHash, run: "HEXPIRE k:{a} 36{dd} FIELDS 1 f{d}"},
	{name: "HPEXPIRE", load: aHash, run: "HPEXPIRE k:{a} 36000{dd} FIELDS 1 f{d}"},
	{name: "HEXPIREAT", load: aHash, run: "HEXPIREAT k:{a} " + future + " FIELDS 1 f{d}"},
	{name: "HPEXPIREAT", load: aHash, run: "HPEXPIREAT k:{a} " + future + "000 FIELDS 1 f{d}"},
	{name: "HTTL", load: timedHa, run: "HTTL k:{a} FIELDS 1 f{d}"},
	{name: "HPTTL", load: timedHa, run: "HPTTL k:{a} FIELDS 1 f{d}"},
	{name: "HEXPIRETIME", load: timedHa, run: "HEXPIRETIME k:{a} FIELDS 1 f{d}"},
	{name: "HPEXPIRETIME", load: timedHa, run: "HPEXPIRETIME k:{a} FIELDS 1 f{d}"},
	{name: "HPERSIST", load: timedHa, run: "HPERSIST k:{a} FIELDS 1 f{d} ; HEXPIRE k:{a} 3600 FIELDS 1 f{d}"},
	{name: "HSETEX", load: aHash, run: "HSETEX k:{a} EX 3600 FIELDS 1 f{d} v"},
	{name: "HGETEX", load: aHash, run: "HGETEX k:{a} EX 36{dd} FIELDS 1 f{d}"},
	{name: "HGETDEL", load: aHash, run: "HGETDEL k:{a} FIELDS 1 f{d} ; HSET k:{a} f{d} v"},
	{name: "HGETALL with deadlines", load: timedHa, run: "HGETALL k:{a}"},
}

const (
	aStream = "XADD k:{a} 1-0 f value ; XADD k:{a} 1-1 f value ; XADD k:{a} 1-2 f value ; XADD k:{a} 1-3 f value ; XADD k:{a} 1-4 f value ; " +
		"XADD k:{a} 1-5 f value ; XADD k:{a} 1-6 f value ; XADD k:{a} 1-7 f value ; XADD k:{a} 1-8 f value ; XADD k:{a} 1-9 f value"
	aGroup  = aStream + " ; XGROUP CREATE k:{a} g 0"
	pending = aGroup + " ; XREADGROUP GROUP g c COUNT 100 STREAMS k:{a} >"
)

var streamRows = []workload{
	{name: "XADD", keys: 1000, run: "XADD k:{a} * field {x16}"},
	{name: "XADD MAXLEN", keys: 1000, run: "XADD k:{a} MAXLEN ~ 100 * field {x16}"},
	{name: "XADD MAXLEN exact", keys: 1000, run: "XADD k:{a} MAXLEN 100 * field {x16}"},
	{name: "XLEN", load: aStream, run: "XLEN k:{a}"},
	{name: "XRANGE of 10", load: aStream, run: "XRANGE k:{a} - +"},
	{name: "XRANGE COUNT 1", load: aStream, run: "XRANGE k:{a} 1-{d} + COUNT 1"},
	{name: "XREVRANGE of 10", load: aStream, run: "XREVRANGE k:{a} + -"},
	{name: "XREVRANGE COUNT 1", load: aStream, run: "XREVRANGE k:{a} + - COUNT 1"},
	{name: "XREAD of 10", load: aStream, run: "XREAD STREAMS k:{a} 0"},
	{name: "XREAD COUNT 1", load: aStream, run: "XREAD COUNT 1 STREAMS k:{a} 1-{d}"},
	{name: "XREADGROUP", load: aGroup, run: "XGROUP SETID k:{a} g 0 ; XREADGROUP GROUP g c COUNT 1 STREAMS k:{a} >"},
	{name: "XREADGROUP NOACK", load: aGroup, run: "XGROUP SETID k:{a} g 0 ; XREADGROUP GROUP g c COUNT 1 NOACK STREAMS k:{a} >"},
	{name: "XREADGROUP of pending entries", load: pending, run: "XREADGROUP GROUP g c STREAMS k:{a} 0"},
	{name: "XACK", load: pending, run: "XCLAIM k:{a} g c 0 1-{d} FORCE JUSTID ; XACK k:{a} g 1-{d}"},
	{name: "XACKDEL", load: pending, run: "XACKDEL k:{a} g KEEPREF IDS 1 9-1"},
	{name: "XCLAIM", load: pending, run: "XCLAIM k:{a} g d{d} 0 1-{d}"},
	{name: "XAUTOCLAIM", load: pending, run: "XAUTOCLAIM k:{a} g d 0 0 COUNT 3"},
	{name: "XPENDING", load: pending, run: "XPENDING k:{a} g"},
	{name: "XPENDING with a range", load: pending, run: "XPENDING k:{a} g - + 10"},
	{name: "XDEL", run: "XADD k:{w}:{a} 1-1 f v ; XADD k:{w}:{a} 1-2 f v ; XDEL k:{w}:{a} 1-1 ; DEL k:{w}:{a}"},
	{name: "XDELEX", load: aStream, run: "XDELEX k:{a} KEEPREF IDS 1 9-1"},
	{name: "XTRIM", load: aStream, run: "XADD k:{a} * f value ; XTRIM k:{a} MAXLEN 10"},
	{name: "XSETID", load: aStream, run: "XSETID k:{a} 2-{d}"},
	{name: "XGROUP CREATE", load: aStream, run: "XGROUP CREATE k:{a} n{w} 0 ; XGROUP DESTROY k:{a} n{w}"},
	{name: "XGROUP DESTROY", load: aStream, run: "XGROUP CREATE k:{a} n{w} 0 ; XGROUP DESTROY k:{a} n{w}"},
	{name: "XGROUP SETID", load: aGroup, run: "XGROUP SETID k:{a} g 1-{d}"},
	{name: "XGROUP CREATECONSUMER", load: aGroup, run: "XGROUP CREATECONSUMER k:{a} g n{w} ; XGROUP DELCONSUMER k:{a} g n{w}"},
	{name: "XGROUP DELCONSUMER", load: aGroup, run: "XGROUP CREATECONSUMER k:{a} g n{w} ; XGROUP DELCONSUMER k:{a} g n{w}"},
	{name: "XINFO STREAM", load: aGroup, run: "XINFO STREAM k:{a}"},
	{name: "XINFO STREAM FULL", load: pending, run: "XINFO STREAM k:{a} FULL"},
	{name: "XINFO GROUPS", load: aGroup, run: "XINFO GROUPS k:{a}"},
	{name: "XINFO CONSUMERS", load: pending, run: "XINFO CONSUMERS k:{a} g"},
}

var scriptRows = []workload{
	{name: "EVAL", run: "EVAL {script} 1 k:{a}", script: "return 1"},
	{name: "EVAL_RO", run: "EVAL_RO {script} 1 k:{a}", script: "return redis.call('GET', KEYS[1])"},
	{name: "EVALSHA", load: "SCRIPT LOAD {script}", run: "EVALSHA {sha} 1 k:{a}", script: "return redis.call('INCR', KEYS[1])"},
	{name: "EVALSHA of nothing", load: "SCRIPT LOAD {script}", run: "EVALSHA {sha} 0", script: "return 1"},
	{name: "EVALSHA_RO", load: someStrings + " ; SCRIPT LOAD {script}", run: "EVALSHA_RO {sha} 1 k:{a}",
		script: "return redis.call('GET', KEYS[1])"},
	{name: "EVALSHA limiter", load: "SCRIPT LOAD {script}", run: "EVALSHA {sha} 1 k:{a} 100 100 60", script: loadgen.LimiterScript},
	{name: "EVALSHA strings", load: "SCRIPT LOAD {script}", run: "EVALSHA {sha} 0 200", script: loadgen.StringsScript},
	{name: "EVALSHA calls", load: "SCRIPT LOAD {script}", run: "EVALSHA {sha} 1 k:{a} 100", script: loadgen.CallsScript},
	{name: "EVALSHA json", load: "SCRIPT LOAD {script}", run: "EVALSHA {sha} 0", script: loadgen.JSONScript},
	{name: "EVALSHA loop", load: "SCRIPT LOAD {script}", run: "EVALSHA {sha} 0",
		script: "local n = 0 for i = 1, 1000 do n = n + i end return n"},
	{name: "EVALSHA modulo", load: "SCRIPT LOAD {script}", run: "EVALSHA {sha} 0",
		script: "local n = 0 for i = 1, 1000 do n = n + i % 7 end return n"},
	{name: "EVALSHA power and division", load: "SCRIPT LOAD {script}", run: "EVALSHA {sha} 0",
		script: "local n = 0 for i = 1, 1000 do n = n + i / 7 - i ^ 2 end return tostring(n)"},
	{name: "EVALSHA table.sort", load: "SCRIPT LOAD {script}", run: "EVALSHA {sha} 0",
		script: "local t = {} for i = 1, 100 do t[i] = (i * 7919) % 101 end table.sort(t) return t[1]"},
	{name: "EVALSHA table.sort with a function", load: "SCRIPT LOAD {script}", run: "EVALSHA {sha} 0",
		script: "local t = {} for i = 1, 100 do t[i] = (i * 7919) % 101 end table.sort(t, function(a, b) return a > b end) return t[1]"},
	{name: "EVALSHA table.sort of strings", load: "SCRIPT LOAD {script}", run: "EVALSHA {sha} 0",
		script: "local t = {} for i = 1, 100 do t[i] = 'item:' .. (i * 7919) % 101 end table.sort(t) return t[1]"},
	{name: "EVALSHA table.insert", load: "SCRIPT LOAD {script}", run: "EVALSHA {sha} 0",
		script: "local t = {} for i = 1, 100 do table.insert(t, i) end for i = 1, 50 do table.remove(t) end return #t"},
	{name: "EVALSHA functions", load: "SCRIPT LOAD {script}", run: "EVALSHA {sha} 0",
		script: "local function f(n) if n < 2 then return n end return f(n - 1) + f(n - 2) end return f(12)"},
	{name: "EVALSHA pairs", load: "SCRIPT LOAD {script}", run: "EVALSHA {sha} 0",
		script: "local t = {} for i = 1, 100 do t['k' .. i] = i end local n = 0 for k, v in pairs(t) do n = n + v end return n"},
	{name: "EVALSHA cmsgpack", load: "SCRIPT LOAD {script}", run: "EVALSHA {sha} 0",
		script: "local t = {} for i = 1, 20 do t[i] = {id = i, name = 'item'} end return #cmsgpack.unpack(cmsgpack.pack(t))"},
	{name: "EVALSHA HGETALL", keys: 1000, load: "HSET k:{a} " + fields(100) + " ; SCRIPT LOAD {script}", run: "EVALSHA {sha} 1 k:{a}",
		script: "local l = redis.call('HGETALL', KEYS[1]) local n = 0 for i = 1, #l, 2 do n = n + #l[i + 1] end return n"},
	{name: "FCALL", load: "FUNCTION LOAD REPLACE {script}", run: "FCALL f 1 k:{a}",
		script: "#!lua name=sweep\nredis.register_function('f', function(keys) return redis.call('INCR', keys[1]) end)"},
	{name: "FCALL_RO", load: "FUNCTION LOAD REPLACE {script}", run: "FCALL_RO f 1 k:{a}",
		script: "#!lua name=sweep\nredis.register_function{function_name='f', callback=function(keys) return redis.call('GET', " +
			"keys[1]) end, flags={'no-writes'}}"},
	{name: "SCRIPT EXISTS", run: "SCRIPT EXISTS {sha}", script: "return 1"},
	{name: "SCRIPT LOAD", run: "SCRIPT LOAD {script}", script: "return 1"},
}

var otherRows = []workload{
	{name: "PING", run: "PING"},
	{name: "ECHO", run: "ECHO {x16}"},
	{name: "TIME", run: "TIME"},
	{name: "PUBLISH", run: "PUBLISH c:{a} {x16}"},
	{name: "SPUBLISH", run: "SPUBLISH c:{a} {x16}"},
	{name: "PUBSUB NUMSUB", run: "PUBSUB NUMSUB c:{a}"},
	{name: "MULTI", run: "MULTI ; SET k:{a} {x16} ; INCR n:{a} ; EXEC"},
	{name: "EXEC", run: "WATCH k:{a} ; MULTI ; SET k:{a} {x16} ; EXEC"},
	{name: "DISCARD", run: "MULTI ; SET k:{a} {x16} ; DISCARD"},
	{name: "WATCH", run: "WATCH k:{a} ; UNWATCH"},
	{name: "UNWATCH", run: "WATCH k:{a} ; UNWATCH"},
	{name: "SELECT", run: "SELECT 1 ; SELECT 0"},
	{name: "CONFIG GET", run: "CONFIG GET maxmemory"},
	{name: "COMMAND COUNT", run: "COMMAND COUNT"},
	{name: "COMMAND INFO", run: "COMMAND INFO GET"},
	{name: "COMMAND GETKEYS", run: "COMMAND GETKEYS MSET a b c d"},
	{name: "ACL WHOAMI", run: "ACL WHOAMI"},
	{name: "CLIENT ID", run: "CLIENT ID"},
	{name: "CLIENT INFO", run: "CLIENT INFO"},
	{name: "ROLE", run: "ROLE"},
	{name: "LASTSAVE", run: "LASTSAVE"},
	{name: "SLOWLOG LEN", run: "SLOWLOG LEN"},
	{name: "INFO", run: "INFO"},
}

// leftOut has the commands without a workload, with the reason. A name ending in * stands for all that begin so.
var leftOut = []struct{ reason, names string }{
	{"ebb's own, which no peer knows", "getfresh stale unlease ebb.fresh ebb.lease zpopdue zmovedue bztspop bztsmove " +
		"sexpire spexpire sexpireat spexpireat sttl spttl sexpiretime spexpiretime spersist zexpire zpexpire zexpireat zpexpireat zttl zpttl " +
		"zexpiretime zpexpiretime zpersist saddex expiremember expirememberat pexpirememberat fieldexpire fieldttl " +
		"lexpire lpexpire lexpireat lpexpireat lttl lpttl lexpiretime lpexpiretime lpersist zaddex lpushex rpushex " +
		"expiry|* rl.* cl.throttle gcra lock.* sem.* dq.*"},
	{"of a module, which the peers do not load", "bf.*"},
	{"of Redis 8.10, which no peer here is", "lmovem blmovem"},
	{"for tests of a server", "debug|* pfdebug pfselftest"},
	{"it deletes all data, or exchanges databases", "flushdb flushall swapdb"},
	{"it contacts another server", "migrate failover replicaof slaveof psync sync replconf wait waitaof"},
	{"it needs maxmemory-policy LFU", "object|freq"},
	{"help texts", "*|help"},
	{"administration: connections", "client|kill client|list client|pause client|unpause client|unblock"},
	{"state of the connection", "auth hello quit reset asking readonly readwrite client|caching client|getname client|getredir " +
		"client|no-evict client|no-touch client|reply client|setinfo client|setname client|tracking client|trackinginfo monitor " +
		"subscribe psubscribe ssubscribe unsubscribe punsubscribe sunsubscribe"},
	{"administration: users", "acl|cat acl|deluser acl|dryrun acl|genpass acl|getuser acl|list acl|load acl|log " +
		"acl|save acl|setuser acl|users"},
	{"administration: the server", "command command|docs command|getkeysandflags command|list config|resetstat config|rewrite config|set " +
		"hotkeys|* latency|* memory|doctor memory|malloc-stats memory|purge memory|stats module|* slowlog|get slowlog|reset shutdown " +
		"bgrewriteaof bgsave save lolwut"},
	{"administration: channels", "pubsub|channels pubsub|numpat pubsub|shardchannels pubsub|shardnumsub"},
	{"administration: a cluster, or a group", "cluster|* group|*"},
	{"administration: scripts", "script|debug script|flush script|kill script|show function|*"},
}
