package commands

import (
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/glob"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/wire"
)

const (
	errCursor   = command.ReplyError("ERR invalid cursor")
	errNoValues = command.ReplyError("ERR NOVALUES option can only be used in HSCAN")
)

var specKeys = command.Spec{
	Name: "keys", Group: command.GroupGeneric, Since: "1.0.0", Complexity: "O(N) with N being the number of keys in the database",
	Summary:    "Returns all key names that match a pattern. All other clients wait for it; SCAN does not block them.",
	Flags:      command.ReadOnly | command.AllKeys,
	FanOut:     command.FanOutJoin,
	Categories: command.CatDangerous,
	Args:       []command.Arg{command.Pattern("pattern")},
	Tips:       []string{"request_policy:all_shards", "nondeterministic_output_order"},
	Examples: `
> SET user:1 a
OK
> SET other b
OK
> KEYS user:*
1) "user:1"
> KEYS x?
(empty array)
`,
	Run: runKeys,
}

// keyWork is the cost of reading and matching a name, in bytes read sequentially: some 100 ns.
const keyWork = 1 << 10

func runKeys(c *command.Ctx) error {
	if err := c.Long((c.Tx.Size() + 1) * max(keyWork, len(c.Args[1]))); err != nil {
		return err
	}
	all, pattern := string(c.Args[1]) == "*", glob.New(c.Args[1])

	var found [][]byte // in the engine's memory: all shards are locked
	c.Tx.Each(func(k engine.Key) {
		if name := k.Name(); all || pattern.Match(name) {
			found = append(found, name)
		}
	})

	c.Out.Array(len(found))
	for _, name := range found {
		c.Out.Bulk(name)
	}
	return nil
}

var specRandomKey = command.Spec{
	Name: "randomkey", Group: command.GroupGeneric, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Returns a random key name from the selected database, each with the same probability.",
	Flags:   command.ReadOnly | command.AllKeys,
	FanOut:  command.FanOutAny,
	Tips:    []string{"request_policy:all_shards", "response_policy:special", "nondeterministic_output"},
	Replies: "The name, or nil if there are no keys.",
	Examples: `
> RANDOMKEY
(nil)
> SET k v
OK
> RANDOMKEY
"k"
`,
	Run: runRandomKey,
}

func runRandomKey(c *command.Ctx) error {
	key := c.Tx.RandomKey(rand.Uint64)
	bulkOrNull(c, key, key != nil)
	return nil
}

var specScan = command.Spec{
	Name: "scan", Group: command.GroupGeneric, Since: "2.8.0",
	Complexity: "O(1) for every call. O(N) for a complete iteration, where N is the number of keys in the database; with " +
		"TYPE stream, limiter, lock, semaphore or delayqueue the number of keys of that type.",
	Summary: "Iterates over the key names of the selected database.",
	Flags:   command.ReadOnly | command.SelfLock,
	FanOut:  command.FanOutScan,
	Args: []command.Arg{command.Int("cursor"), command.Opt(command.TokenArg("MATCH", command.Pattern("pattern"))),
		command.Opt(command.TokenArg("COUNT", command.Int("count"))),
		command.Opt(command.TokenArg("TYPE", command.Str("type"))).Since("6.0.0")},
	Tips:    []string{"nondeterministic_output", "request_policy:special", "response_policy:special"},
	History: []command.Change{{Since: "6.0.0", Text: "Added the `TYPE` subcommand."}},
	Replies: "The cursor for the next call, 0 at the end, and an array of names. A key that is there from the first call to the last is " +
		"returned at least once.",
	Examples: `
> SET user:1 a
OK
> SET other b
OK
> SCAN 0 MATCH user:* COUNT 100
1) "0"
2) 1) "user:1"
> SCAN 0 TYPE list
1) "0"
2) (empty array)
`,
	Run: runScan,
}

// scanOptions are the options of SCAN, HSCAN, SSCAN and ZSCAN.
type scanOptions struct {
	match glob.Pattern
	all   bool // MATCH accepts every name
	count int64
	kind  string // the type's name; empty: any

	fields   bool // for HSCAN: NOVALUES is an option
	noValues bool
}

// parse reads MATCH and COUNT, and TYPE where keyspace is set.
func (o *scanOptions) parse(args [][]byte, keyspace bool) error {
	o.count, o.all = 10, true
	for i := 0; i < len(args); i += 2 {
		if command.EqualFold(args[i], "NOVALUES") {
			if o.noValues = true; !o.fields {
				return errNoValues
			}
			i--
			continue
		}
		if i+1 >= len(args) {
			return command.ErrSyntax
		}
		switch a := args[i]; {
		case command.EqualFold(a, "COUNT"):
			n, ok := numeral.ParseInt(args[i+1])
			if !ok {
				return command.ErrNotInteger
			}
			if n < 1 {
				return command.ErrSyntax
			}
			o.count = n
		case command.EqualFold(a, "MATCH"):
			if o.all = string(args[i+1]) == "*"; !o.all {
				o.match = glob.New(args[i+1])
			}
		case keyspace && command.EqualFold(a, "TYPE"):
			o.kind = string(args[i+1])
		default:
			return command.ErrSyntax
		}
	}
	return nil
}

// indexed returns the kind that TYPE names if the engine has an index of its keys, else
// engine.None.
func (o *scanOptions) indexed() engine.Kind {
	for k := engine.Stream; o.kind != "" && k.Indexed(); k++ {
		if strings.EqualFold(o.kind, k.String()) {
			return k
		}
	}
	return engine.None
}

// matches reports whether MATCH accepts a name.
func (o *scanOptions) matches(name []byte) bool { return o.all || o.match.Match(name) }

// limit returns count as an int, cut to a range in which sums do not overflow.
func (o *scanOptions) limit() int { return int(min(o.count, 1<<30)) }

// scanKeyBytes is the cost of one key of a scan, two or three cache misses, in bytes read sequentially.
const scanKeyBytes = 1 << 10

func runScan(c *command.Ctx) error {
	cursor, err := parseCursor(c.Args[1])
	if err != nil {
		return err
	}
	var o scanOptions
	if err := o.parse(c.Args[2:], true); err != nil {
		return err
	}
	count := o.limit()
	if err := c.Long(count * scanKeyBytes); err != nil {
		return err
	}
	if c.Host.OthersRun() {
		return command.ErrBackground // another command may hold a shard for long
	}

	found := newNames(c)
	visit := func(k engine.Key) {
		if o.kind != "" && !strings.EqualFold(o.kind, k.Kind().String()) {
			return
		}
		if name := k.Name(); o.matches(name) {
			found.add(name)
		}
	}
	kind := o.indexed()
	if c.Tx.Begun() {
		cursor = c.Tx.ScanKind(kind, cursor, count, visit)
	} else {
		cursor = c.DB.ScanKind(c.Tx.Selected(), kind, cursor, count, visit)
	}

	scanned(c, cursor, &found)
	return nil
}

// longScan is Ctx.Long for a command that visits count items of a container.
func longScan(c *command.Ctx, key []byte, count int64) error {
	return c.Long(min(c.Tx.ValueSize(key)*command.WalkBytes, int(min(count, 1<<30))*scanKeyBytes))
}

// scanned replies with the names that a scan has found, and with the next cursor.
func scanned(c *command.Ctx, cursor uint64, found *names) {
	c.Out.Array(2)
	c.Out.BulkString(strconv.FormatUint(cursor, 10))
	found.reply(c.Out)
}

// parseCursor parses a cursor as C's strtoul does, but refuses an empty and a negative one.
func parseCursor(arg []byte) (uint64, error) {
	s, _, _ := strings.Cut(string(arg), "\x00") // a C string ends there
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	digits := strings.TrimPrefix(s, "+")
	if s == "-0" {
		digits = "0"
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0, errCursor
	}
	return n, nil
}

// names is a list of copied strings. If a bound leaves out names of the reply, the list copies only the bytes
// that fit in it.
type names struct {
	flat  []byte
	ends  []int
	bound wire.Bound
	sizes []int // the lengths of the whole strings, where there is a bound
}

// newNames returns a list with memory for the result of a usual scan.
func newNames(c *command.Ctx) names {
	return names{flat: make([]byte, 0, 512), ends: make([]int, 0, 32), bound: c.Out.Bound()}
}

func (n *names) add(name []byte) {
	if n.bound != (wire.Bound{}) {
		n.sizes = append(n.sizes, len(name))
		if limit := n.bound.Part; limit > 0 && len(name) > limit {
			name = name[:limit]
		}
		if limit := n.bound.Most; limit > 0 && len(n.flat) > limit {
			name = nil // the reply's bound comes before this name
		}
	}
	n.flat = append(n.flat, name...)
	n.ends = append(n.ends, len(n.flat))
}

func (n *names) reply(w *wire.Writer) {
	w.Array(len(n.ends))
	start := 0
	for i, end := range n.ends {
		if name := n.flat[start:end]; n.sizes != nil {
			w.BulkBegin(name, n.sizes[i])
		} else {
			w.Bulk(name)
		}
		start = end
	}
}
