package modeltest

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/compat"
	"github.com/ebbdb/ebb/internal/glob"
	"github.com/ebbdb/ebb/resp"
)

// allowance is a difference of package compat that sequences may meet. same compares two
// replies to its commands under it; nil means that they are not compared, but for whether
// they are errors.
type allowance struct {
	id   string
	same func(ours, theirs resp.Value) bool
	only string // the commands that it is about, if not all of the difference
}

// allowances returns all differences that replies in sequences may have. All other replies
// must be equal.
func allowances() []allowance {
	return []allowance{
		{"request-instants", within(200), "pttl pexpiretime hpttl hpexpiretime"},
		{"request-instants", within(1), "ttl expiretime httl hexpiretime"},
		{"key-order", sameSet, ""},
		{"random-choice", bothNull, ""},
		{"expired-keys-counted", nil, ""},
		{"scan-cursors", nil, ""},
		{"wall-clock", nil, ""},
		{"memory-sizes", nil, ""},
		{"idle-clocks", nil, ""},
		{"shared-objects", nil, ""},
		{"debug-tools", nil, ""},
		{"server-identity", nil, ""},
		{"object-encodings", denser, ""},
		{"collection-order", sameItems, ""},
		{"shortest-numbers", sameNumbers, ""},
		{"shortest-coordinates", sameNumbers, ""},
		{"delivery-times", sameButTimes, ""},
		{"consumers-made-early", nil, ""},
		{"xread-woken", nothingRead, ""},
		{"sort-nul", sortedWithNUL, ""},
		{"arguments-first", stricter, ""},
		{"cursor-forms", oneRefuses, ""},
		{"module-list", nil, ""},
		{"dump-payloads", nil, ""},
		{"cluster-off", oneRefuses, ""},
		{"reading-flags", nil, ""},
		{"bitcount-start", oneRefuses, ""},
		{"bitcount-start", bothErrors, ""}, // of the type, and of the syntax
		{"hsetex-repeats", oneRefuses, ""},
		{"field-deadline-errors", otherErrors, ""},
		{"group-gone-texts", bothErrors, ""},
		{"number-words", oneRefuses, "sort sort_ro"},
		{"getex-checks-later", checkedFirst, ""},
		{"xgroup-create-repeats", oneRefuses, ""},
		{"xsetid-below-deleted", oneRefuses, ""},
		{"embstr-size", nil, ""},
		{"scripts-waiting", oneRefuses, ""},
		{"scan-unknown-type", oneRefuses, ""},
		{"wait-long-timeout", oneRefuses, ""},
		{"wait-long-timeout", bothErrors, "waitaof"}, // of the timeout, and of appendonly
		{"scripts-waiting", bothErrors, "wait"},      // of the arguments, and of the command
	}
}

// The IDs of differences that appear elsewhere than in one command's replies.
const (
	nulEndsText        = "nul-ends-text"
	scriptsWithoutSHA  = "scripts-error-without-sha"
	wordsOfValkey      = "scripts-words-of-valkey"
	textsOfValkey      = "valkey-texts"
	pastDeadlineEvent  = "past-deadline-event"
	overwrittenWakes   = "overwritten-wakes"
	blockedWrongType   = "blocked-wrong-type"
	blockedOrder       = "blocked-order"
	smoveNewOrder      = "smove-new-order"
	expiredOverwritten = "expired-overwritten"
	keymissLookups     = "keymiss-lookups"
	xsetidWatched      = "xsetid-watched"
	streamLag          = "stream-lag"
	multiGoesOn        = "multi-goes-on"
)

// elsewhere returns the IDs of differences that appear elsewhere than in one command's
// replies.
func elsewhere() []string {
	return []string{nulEndsText, scriptsWithoutSHA, wordsOfValkey, textsOfValkey, pastDeadlineEvent, overwrittenWakes, blockedWrongType,
		blockedOrder, smoveNewOrder, expiredOverwritten, keymissLookups, xsetidWatched, streamLag, multiGoesOn}
}

// avoided returns the IDs of differences that sequences cannot have, because the generator
// leaves out their causes.
func avoided() []string { return []string{"expired-fields-counted", "push-in-transaction"} }

// allowed returns the allowances that hold for a server.
func allowed(server compat.Servers) ([]allowance, error) {
	for _, id := range slices.Concat(avoided(), elsewhere()) {
		if _, ok := compat.Find(id); !ok {
			return nil, fmt.Errorf("internal/compat has no difference %q", id)
		}
	}
	var out []allowance
	for _, a := range allowances() {
		d, ok := compat.Find(a.id)
		if !ok {
			return nil, fmt.Errorf("internal/compat has no difference %q", a.id)
		}
		if d.Servers.Has(server) {
			out = append(out, a)
		}
	}
	return out, nil
}

// notSent are the commands that random sequences leave out.
var notSent = map[string]string{
	"wait": "blocks", "waitaof": "blocks", "migrate": "needs another server", "dump": "an encoding of its own",
	"restore": "needs a dump", "shutdown": "ends the server", "discard": "comes from the generator of MULTI",
	"exec": "comes from the generator of MULTI", "multi": "comes from the generator of MULTI",
	"xadd": "ids by the clock; the generator gives them", "xinfo|help": "texts are our own", "xgroup|help": "texts are our own",
	"xclaim": "the generator gives them", "xautoclaim": "likewise", "zrandmember": "random", "srandmember": "likewise",
	"hrandfield": "likewise", "spop": "likewise", "zlexcount": "unspecified unless all scores are the same", "zrangebylex": "likewise",
	"zrevrangebylex": "likewise", "zremrangebylex": "likewise", "pfdebug": "shows the inside", "pfselftest": "runs long",
	"object|freq": "an error that depends on the policy", "object|help": "texts are our own", "lolwut": "a picture of its own",
}

// wordsOf maps words of options to the servers that have them.
var wordsOf = map[string]compat.Servers{
	"JITTER": 0, "SLIDE": 0, "FRESH": 0, "IFTOKEN": 0, "SPAN": 0, "IFNE": 0, "IFDEQ": 0, "IFDNE": 0, "WITHTTL": 0,
	"IFEQ": compat.Valkey9, "NOSCORES": compat.Valkey9, "WITHSCORE": compat.Newer, "NOVALUES": compat.Newer,
}

// concerns reports whether a difference is about the replies to a request.
func concerns(d compat.Difference, args []string) bool {
	head := strings.ToLower(args[0])
	full := head
	if len(args) > 1 {
		full += "|" + strings.ToLower(args[1])
	}
	names := strings.Fields(d.Commands)
	return slices.Contains(names, head) || slices.Contains(names, full)
}

// sameReply compares the replies to a request, and counts the difference that makes them
// pass.
func (c *Campaign) sameReply(args []string, ours, theirs resp.Value) bool {
	if equal(ours, theirs) {
		return true
	}
	if bothErrors(ours, theirs) && c.Server == compat.Valkey9 {
		if id := c.asValkey(ours.Str, theirs.Str); id != "" {
			c.tally.difference(id)
			return true
		}
	}
	args = request(args)
	if bothErrors(ours, theirs) && slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "\x00") }) {
		c.tally.difference(nulEndsText)
		return true
	}
	if slices.Contains([]string{"HSCAN", "SSCAN", "ZSCAN"}, strings.ToUpper(args[0])) && !(wholeScan(args, ours) && wholeScan(args, theirs)) &&
		ours.Kind == theirs.Kind {
		c.tally.difference("scan-cursors")
		return true
	}
	for _, a := range c.allowances {
		d, _ := compat.Find(a.id)
		if a.only != "" {
			d.Commands = a.only
		}
		if !concerns(d, args) {
			continue
		}
		if a.same == nil && (ours.Kind == resp.KindError) == (theirs.Kind == resp.KindError) || a.same != nil && a.same(ours, theirs) {
			c.tally.difference(a.id)
			return true
		}
	}
	return false
}

// wholeScan reports whether one call of SCAN returned all elements.
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

// within allows integers to differ by a slack, also in an array.
func within(slack int64) func(a, b resp.Value) bool {
	var same func(a, b resp.Value) bool
	same = func(a, b resp.Value) bool {
		if a.Elems != nil {
			return slices.EqualFunc(a.Elems, b.Elems, func(x, y resp.Value) bool { return equal(x, y) || same(x, y) })
		}
		return a.Kind == resp.KindInt && b.Kind == resp.KindInt && a.Int >= 0 && b.Int >= 0 && a.Int-b.Int <= slack && b.Int-a.Int <= slack
	}
	return same
}

// sameReplies compares the replies of a transaction, each under the allowance of
// the request that was queued.
func (c *Campaign) sameReplies(queued []Op, ours, theirs resp.Value) bool {
	if ours.Kind != resp.KindArray || theirs.Kind != resp.KindArray || len(ours.Elems) != len(queued) || len(theirs.Elems) != len(queued) {
		return equal(ours, theirs)
	}
	for i, o := range queued {
		if !c.sameReply(o.Args, ours.Elems[i], theirs.Elems[i]) && !(o.Damaged && bothErrors(ours.Elems[i], theirs.Elems[i])) {
			return false
		}
		c.tally.request(c.table, o.Args, ours.Elems[i], theirs.Elems[i])
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

// nothingRead allows a wait that continues in ebb and ends without an entry in
// redis-server.
func nothingRead(a, b resp.Value) bool {
	if b.Kind == resp.KindMap { // of RESP3: keys and values
		return a.IsNull() && len(b.Elems) == 2 && len(b.Elems[1].Elems) == 0
	}
	return a.IsNull() && len(b.Elems) == 1 && len(b.Elems[0].Elems) == 2 && len(b.Elems[0].Elems[1].Elems) == 0
}

// sortedWithNUL allows another order where some element has a NUL byte; one that
// begins with it counts as 0 there, and is not a number here.
func sortedWithNUL(a, b resp.Value) bool {
	return strings.HasPrefix(a.Str, "ERR One or more scores") && b.Kind != resp.KindError ||
		slices.ContainsFunc(a.Elems, func(v resp.Value) bool { return strings.Contains(v.Str, "\x00") }) && sameItems(a, b)
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

// canonical returns a text that is the same for replies that sameItems holds equal.
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

// checkedFirst allows an error about an argument where ebb looks at the key first.
func checkedFirst(a, b resp.Value) bool { return b.Kind == resp.KindError }

// otherErrors allows other errors, and requests that are refused for their shape alone.
func otherErrors(a, b resp.Value) bool {
	return bothErrors(a, b) || strings.HasPrefix(a.Str, "ERR Mandatory argument FIELDS") || strings.HasPrefix(a.Str, "ERR unknown argument")
}

// oneRefuses allows an error of one of the two.
func oneRefuses(a, b resp.Value) bool {
	return (a.Kind == resp.KindError) != (b.Kind == resp.KindError)
}

// denser allows an encoding that is more compact than redis-server's.
func denser(a, b resp.Value) bool {
	return b.Str == "listpackex" || a.Str == "raw" && b.Str == "embstr" || a.Str == "listpack" &&
		(b.Str == "hashtable" || b.Str == "quicklist" || b.Str == "skiplist") || a.Str == "hashtable" &&
		(b.Str == "intset" || b.Str == "listpack") || a.Str == "skiplist" && b.Str == "listpack" ||
		a.Str == "int" && b.Str == "embstr" || (a.Str == "int" || a.Str == "embstr") && b.Str == "raw"
}

// stricter allows an error of ebb where redis-server replies that there is nothing to do.
func stricter(a, b resp.Value) bool {
	return a.Kind == resp.KindError && (b.Kind == resp.KindInt && b.Int <= 0 || b.Kind == resp.KindError)
}

func bothErrors(a, b resp.Value) bool { return a.Kind == resp.KindError && b.Kind == resp.KindError }

func bothNull(a, b resp.Value) bool { return a.IsNull() == b.IsNull() }

// apart reports whether an event is not compared with its neighbours, and counts why.
func (c *Campaign) apart(e event) bool {
	// XREADGROUP and XCLAIM make their consumer before they look for entries, and
	// say so, as since Redis 7.2.
	if c.Server == compat.Redis7 && (e.name == "xgroup-createconsumer" || e.name == "xgroup-delconsumer") {
		c.tally.difference("consumers-made-early")
		return true
	}
	return false
}

// allowedEvents reports whether the events of a request may differ as they do.
func (c *Campaign) allowedEvents(args []string, ours, theirs []event) bool {
	if c.Server == compat.Valkey9 && onlyPast(ours, theirs) {
		c.tally.difference(pastDeadlineEvent)
		return true
	}
	if len(args) > 0 && slices.Contains([]string{"SMOVE", "EXEC"}, strings.ToUpper(request(args)[0])) &&
		sameEvents(byName(ours), byName(theirs)) {
		c.tally.difference(smoveNewOrder)
		return true
	}
	return false
}

// byName returns events sorted by their names.
func byName(events []event) []event {
	out := slices.Clone(events)
	slices.SortStableFunc(out, func(x, y event) int { return strings.Compare(x.name, y.name) })
	return out
}

// onlyPast reports whether events tell of deadlines that had passed, in two ways.
func onlyPast(ours, theirs []event) bool {
	past := func(e event) bool {
		return slices.Contains([]string{"new", "set", "expire", "hset", "hdel", "hexpire", "del"}, e.name)
	}
	x, y := slices.DeleteFunc(slices.Clone(ours), past), slices.DeleteFunc(slices.Clone(theirs), past)
	return sameEvents(x, y)
}

var scriptAt = regexp.MustCompile("script: [^, ]*, ?")

// valkeyTexts are parts of errors with what Valkey says in their place.
var valkeyTexts = [][2]string{
	{" Please use EVAL.", ""},
	{"ERR client-id should be greater than 0", "ERR syntax error"},
	{"ERR could not decode requested zset member", "ERR member * does not exist"},
	{"ERR invalid expire time, must be >= 0", "ERR invalid expire time in '*' command"},
	{"ERR The `numfields` parameter must match the number of arguments", "ERR syntax error"},
}

// asValkey returns the difference because of which Valkey says an error as it does, "" if
// there is none.
func (c *Campaign) asValkey(ours, theirs string) string {
	without := scriptAt.ReplaceAllString(ours, "script: ")
	switch {
	case without == theirs:
		return scriptsWithoutSHA
	case strings.Replace(without, "Redis command", "Valkey command", 1) == theirs,
		strings.Replace(without, "calling Redis command", "calling command", 1) == theirs:
		return wordsOfValkey
	}
	for _, t := range valkeyTexts {
		if glob.Match(strings.Replace(without, t[0], t[1], 1), theirs) {
			return textsOfValkey
		}
	}
	return ""
}

// wrongTypeFirst allows WRONGTYPE for a wait that was served here.
func wrongTypeFirst(a, b resp.Value) bool {
	return a.Kind != resp.KindError && strings.HasPrefix(b.Str, "WRONGTYPE")
}
