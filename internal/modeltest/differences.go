package modeltest

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/resp"
)

// difference is a way in which ebb's replies to some commands may differ from
// redis-server's, on purpose or by nature. same compares two replies under that
// allowance; nil means that they are not compared.
type difference struct {
	commands string
	reason   string
	same     func(ours, theirs resp.Value) bool
}

// differences is the one list of what is allowed to differ. Whatever is not on
// it must be equal.
var differences = []difference{
	{"pttl pexpiretime", "the two servers take their instants some time apart", within(200)},
	{"ttl expiretime", "the two servers take their instants some time apart", within(1)},
	{"keys", "the order is the table's", sameSet},
	{"randomkey", "random; only whether there is one", bothNull},
	{"dbsize", "redis-server counts the expired until it has removed them", nil},
	{"scan", "cursors are an implementation's own", nil},
	{"time", "the clock", nil},
	{"memory", "records are smaller", nil},
	{"object|idletime object|freq", "coarse clocks of another size", nil},
	{"object|refcount", "nothing is shared", nil},
	{"debug", "shows the inside", nil},
	{"lolwut", "a matter of taste", nil},
	{"object|encoding", "a short string that spells an integer is one, also after INCRBYFLOAT; what SETBIT leaves as it is keeps its encoding; sets and lists are as since Redis 7.2, and so are containers made by one command with many items", denser},
	{"hgetall hkeys hvals smembers sinter sunion sdiff hrandfield srandmember spop hscan sscan", "the order of large hashes and sets is the table's", sameItems},
	{"zscan", "the order of large sorted sets is the table's, and numbers are written in the shortest form", sameItems},
	{"zadd zincrby zscore zmscore zrange zrangebyscore zrevrange zrevrangebyscore zunion zinter zdiff zpopmin zpopmax zmpop bzpopmin bzpopmax bzmpop", "numbers are written in the shortest form that reads back, as since Redis 7.2", sameNumbers},
	{"geopos geosearch georadius georadiusbymember georadius_ro georadiusbymember_ro", "coordinates are written in the shortest form that reads back, as since Redis 8.0", sameNumbers},
	{"xpending xautoclaim xclaim xinfo|stream xinfo|groups", "times of deliveries, and sizes of another structure", sameButTimes},
	{"xinfo|consumers xgroup|createconsumer", "XREADGROUP and XCLAIM make their consumer before there is an entry for it, as since Redis 7.2", nil},
	{"xread", "XSETID and XGROUP DESTROY wake who waits on redis-server, with no entry to read", nothingRead},
	{"sort sort_ro", "texts end at a NUL byte when redis-server compares them", sortedWithNUL},
	{"bitcount bitpos", "as since Redis 7.2, arguments are checked even if there is no key", stricter},
}

// notSent are the commands that random sequences leave out.
var notSent = map[string]string{
	"wait": "blocks", "waitaof": "blocks", "migrate": "needs another server", "dump": "an encoding of its own",
	"restore": "needs a dump", "shutdown": "ends the server", "discard": "comes from the generator of MULTI",
	"exec": "comes from the generator of MULTI", "multi": "comes from the generator of MULTI",
	"xadd": "ids by the clock; the generator gives them", "xinfo|help": "texts are our own", "xgroup|help": "texts are our own",
	"xclaim": "the generator gives them", "xautoclaim": "likewise", "zrandmember": "random", "srandmember": "likewise", "hrandfield": "likewise", "spop": "likewise", "zlexcount": "unspecified unless all scores are the same", "zrangebylex": "likewise", "zrevrangebylex": "likewise", "zremrangebylex": "likewise", "pfdebug": "shows the inside", "pfselftest": "runs long",
	"object|freq": "an error that depends on the policy", "object|help": "texts are our own",
}

// ownWords are the options that redis-server 7.0.15 does not have.
var ownWords = []string{"JITTER", "SLIDE", "SPAN", "IFEQ", "IFNE", "IFDEQ", "IFDNE", "WITHSCORE", "NOVALUES", "WITHTTL"}

// allowance finds the difference that is allowed for a request.
func allowance(args []string) (d difference, ok bool) {
	head := strings.ToLower(args[0])
	full := head
	if len(args) > 1 {
		full += "|" + strings.ToLower(args[1])
	}
	for _, d := range differences {
		if names := strings.Fields(d.commands); slices.Contains(names, head) || slices.Contains(names, full) {
			return d, true
		}
	}
	return d, false
}

// sameReply compares the replies to a request.
func sameReply(args []string, ours, theirs resp.Value) bool {
	if equal(ours, theirs) {
		return true
	}
	args = request(args)
	if bothErrors(ours, theirs) && slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "\x00") }) {
		return true // C's texts end there
	}
	if slices.Contains([]string{"HSCAN", "SSCAN", "ZSCAN"}, strings.ToUpper(args[0])) && !(wholeScan(args, ours) && wholeScan(args, theirs)) {
		return ours.Kind == theirs.Kind // cursors are an implementation's own
	}
	d, ok := allowance(args)
	return ok && (d.same == nil && (ours.Kind == resp.KindError) == (theirs.Kind == resp.KindError) || d.same != nil && d.same(ours, theirs))
}

// wholeScan reports whether a walk came back with everything at once.
func wholeScan(args []string, v resp.Value) bool {
	return len(args) > 2 && args[2] == "0" && len(v.Elems) == 2 && v.Elems[0].Str == "0"
}

// equal compares replies exactly, their kinds included.
func equal(a, b resp.Value) bool {
	if a.Kind != b.Kind || a.Str != b.Str || a.Int != b.Int || len(a.Elems) != len(b.Elems) ||
		a.Float != b.Float && !(math.IsNaN(a.Float) && math.IsNaN(b.Float)) {
		return false
	}
	for i := range a.Elems {
		if !equal(a.Elems[i], b.Elems[i]) {
			return false
		}
	}
	return true
}

func within(slack int64) func(a, b resp.Value) bool {
	return func(a, b resp.Value) bool {
		return a.Kind == resp.KindInt && b.Kind == resp.KindInt && a.Int >= 0 && b.Int >= 0 && a.Int-b.Int <= slack && b.Int-a.Int <= slack
	}
}

// sameReplies compares the replies of a transaction, each under the allowance of
// the request that was queued.
func sameReplies(queued [][]string, ours, theirs resp.Value) bool {
	if ours.Kind != resp.KindArray || theirs.Kind != resp.KindArray || len(ours.Elems) != len(queued) || len(theirs.Elems) != len(queued) {
		return equal(ours, theirs)
	}
	for i, args := range queued {
		if !sameReply(args, ours.Elems[i], theirs.Elems[i]) {
			return false
		}
	}
	return true
}

func sameSet(a, b resp.Value) bool {
	x, err1 := a.AsStrings()
	y, err2 := b.AsStrings()
	sort.Strings(x)
	sort.Strings(y)
	return err1 == nil && err2 == nil && slices.Equal(x, y)
}

// nothingRead allows a wait that went on where redis-server ended it without an
// entry.
func nothingRead(a, b resp.Value) bool {
	return a.IsNull() && len(b.Elems) == 1 && len(b.Elems[0].Elems) == 2 && len(b.Elems[0].Elems[1].Elems) == 0
}

// sortedWithNUL allows another order where some element has a NUL byte; one that
// begins with it counts as 0 there, and is no number here.
func sortedWithNUL(a, b resp.Value) bool {
	return strings.HasPrefix(a.Str, "ERR One or more scores") && b.Kind != resp.KindError || slices.ContainsFunc(a.Elems, func(v resp.Value) bool { return strings.Contains(v.Str, "\x00") }) && sameItems(a, b)
}

// sameItems compares replies whose elements may come in another order, within
// each level.
func sameItems(a, b resp.Value) bool {
	if len(a.Elems) != len(b.Elems) || a.Elems == nil {
		return sameNumbers(a, b)
	}
	if a.Kind != b.Kind {
		return false
	}
	x, y := make([]string, len(a.Elems)), make([]string, len(a.Elems))
	for i := range x {
		x[i], y[i] = canonical(a.Elems[i]), canonical(b.Elems[i])
	}
	sort.Strings(x)
	sort.Strings(y)
	return slices.Equal(x, y)
}

// canonical is a text that is the same for replies that sameItems holds equal.
func canonical(v resp.Value) string {
	if v.Elems == nil {
		if v.Kind == resp.KindDouble || v.Kind == resp.KindBulk {
			return fmt.Sprint(number(v.String()))
		}
		return v.String()
	}
	parts := make([]string, len(v.Elems))
	for i, x := range v.Elems {
		parts[i] = canonical(x)
	}
	sort.Strings(parts)
	return "[" + strings.Join(parts, "|") + "]"
}

// number returns a text's value if it is a number, else the text.
func number(s string) any {
	if f, err := strconv.ParseFloat(s, 64); err == nil && !math.IsNaN(f) {
		return f
	}
	return s
}

// sameNumbers compares replies in which a text may spell the same number in
// another way.
func sameNumbers(a, b resp.Value) bool {
	if a.Kind != b.Kind || len(a.Elems) != len(b.Elems) {
		return false
	}
	for i := range a.Elems {
		if !sameNumbers(a.Elems[i], b.Elems[i]) {
			return false
		}
	}
	if a.Elems != nil || equal(a, b) {
		return true
	}
	x, ok1 := number(a.String()).(float64)
	y, ok2 := number(b.String()).(float64)
	// redis-server 7.0 writes 17 decimals, however small the number.
	return a.Kind != resp.KindError && ok1 && ok2 && (x == y || math.Abs(x-y) < 1e-16)
}

// sameButTimes compares the shape of replies, and what is not an integer.
func sameButTimes(a, b resp.Value) bool {
	if a.Kind != b.Kind || len(a.Elems) != len(b.Elems) {
		return false
	}
	for i := range a.Elems {
		if !sameButTimes(a.Elems[i], b.Elems[i]) {
			return false
		}
	}
	return a.Kind == resp.KindInt || a.Kind == resp.KindError || a.Elems != nil || equal(a, b)
}

// denser allows an encoding that is denser than redis-server's.
func denser(a, b resp.Value) bool {
	return a.Str == "listpack" && (b.Str == "hashtable" || b.Str == "quicklist" || b.Str == "skiplist") || a.Str == "hashtable" && (b.Str == "intset" || b.Str == "listpack") || a.Str == "skiplist" && b.Str == "listpack" ||
		a.Str == "int" && b.Str == "embstr" || (a.Str == "int" || a.Str == "embstr") && b.Str == "raw"
}

// stricter allows an error where redis-server finds nothing to do.
func stricter(a, b resp.Value) bool {
	return a.Kind == resp.KindError && (b.Kind == resp.KindInt && b.Int <= 0 || b.Kind == resp.KindError)
}

func bothErrors(a, b resp.Value) bool { return a.Kind == resp.KindError && b.Kind == resp.KindError }

func bothNull(a, b resp.Value) bool { return a.IsNull() == b.IsNull() }
