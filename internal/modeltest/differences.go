package modeltest

import (
	"math"
	"slices"
	"sort"
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
	{"object|encoding", "a short string that spells an integer is one, also after INCRBYFLOAT; what SETBIT leaves as it is keeps its encoding", denser},
	{"bitcount bitpos", "as since Redis 7.2, arguments are checked even if there is no key", stricter},
}

// notSent are the commands that random sequences leave out.
var notSent = map[string]string{
	"wait": "blocks", "waitaof": "blocks", "migrate": "needs another server", "dump": "an encoding of its own",
	"restore": "needs a dump", "shutdown": "ends the server", "discard": "comes from the generator of MULTI",
	"exec": "comes from the generator of MULTI", "multi": "comes from the generator of MULTI",
	"object|freq": "an error that depends on the policy", "object|help": "texts are our own",
}

// ownWords are the options that redis-server 7.0.15 does not have.
var ownWords = []string{"JITTER", "SLIDE", "SPAN", "IFEQ", "IFNE", "IFDEQ", "IFDNE"}

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
	d, ok := allowance(args)
	return ok && (d.same == nil && (ours.Kind == resp.KindError) == (theirs.Kind == resp.KindError) || d.same != nil && d.same(ours, theirs))
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

// denser allows an encoding that is denser than redis-server's.
func denser(a, b resp.Value) bool {
	return a.Str == "int" && b.Str == "embstr" || (a.Str == "int" || a.Str == "embstr") && b.Str == "raw"
}

// stricter allows an error where redis-server finds nothing to do.
func stricter(a, b resp.Value) bool {
	return a.Kind == resp.KindError && b.Kind == resp.KindInt && b.Int <= 0
}

func bothNull(a, b resp.Value) bool { return a.IsNull() == b.IsNull() }
