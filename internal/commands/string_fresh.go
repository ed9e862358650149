package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

// These are the commands on values with two deadlines. SET with FRESH stores such a value. GETFRESH reads it,
// and elects the client that loads the next one.

const (
	errFreshAlone  = command.ReplyError("ERR FRESH needs EX, PX, EXAT or PXAT")
	errFreshLate   = command.ReplyError("ERR FRESH must end before the key does")
	errFreshSpan   = command.ReplyError("ERR FRESH must be a span above 0")
	errFreshSlides = command.ReplyError("ERR FRESH and SLIDE cannot be combined")
	errFreshLease  = command.ReplyError("ERR invalid lease, must be from 1 to 3600000 milliseconds")
	errFreshOwner  = command.ReplyError("ERR invalid owner, must be from 1 to 256 bytes")
	errEbbFresh    = command.ReplyError("ERR EBB.FRESH is an effect in the log; clients cannot call it")
	errEbbLease    = command.ReplyError("ERR EBB.LEASE is an effect in the log; clients cannot call it")
)

var freshErrors = []string{
	string(errFreshAlone) + ": the key would have no deadline of its own.",
	string(errFreshLate) + ": the value would never be stale.",
	string(errFreshSpan) + ": the span is 0 or negative.",
	string(errFreshSlides) + ": each read would move one of the two deadlines.",
	string(errToken) + ": the argument of IFTOKEN is not a token.",
}

var specGetFresh = command.Spec{
	Name: "getfresh", Group: command.GroupString, Since: "0.7.0", Complexity: "O(1)",
	Summary: "Returns the value of a key with its freshness, and elects one client to load a new value.",
	Flags:   command.ReadOnly | command.Fast | command.Blocking | command.MayReplicate | command.Blind,
	Args: []command.Arg{command.Key("key", command.Read),
		command.Opt(command.Block("lease", command.TokenArg("LEASE", command.Int("lease")), command.Opt(command.OneOf("holder",
			command.TokenArg("TOKEN", command.Int("token")), command.TokenArg("OWNER", command.Str("owner")))))),
		command.Opt(command.TokenArg("WAIT", command.Int("milliseconds")))},
	Tips: []string{"nondeterministic_output"},
	Replies: "Four elements: a state, the value, a token (nil but for `refresh`), and a time in ms.\n\n" +
		"* `fresh`: the value, and the time until it is stale, -1 for never.\n" +
		"* `stale`: the value, and the time until it is gone.\n" +
		"* `refresh`: the caller is elected to load a new value. It gets the stale value, nil if there is none, the token for SET with " +
		"IFTOKEN, and its lease.\n" +
		"* `absent`: no value, and the rest of another client's lease, -1 if there is none.\n\n" +
		"LEASE says that the caller can load the value, and how long it may take, up to an hour; without it no client is elected.\n\n" +
		"* One client at a time holds a key's token. It ends with its lease, by UNLEASE, and by each change of the key, DEL and STALE of a " +
		"missing key included: what its holder has loaded may be older than the change.\n" +
		"* LEASE with a valid TOKEN renews the lease.\n" +
		"* OWNER is a name of the caller, which it uses for this request alone. An owner that has the lease gets the same token again, and " +
		"a new lease: a request whose reply was lost can be sent once more. UNLEASE takes the owner in place of the token.\n" +
		"* WAIT waits for at most that many ms, 0 for ever, for a missing value while another client loads it. The first in line " +
		"is elected when that " +
		"lease ends. A stale value is returned at once. In transactions and scripts the command does not wait.\n" +
		"* A replica elects no client, and no server elects one while it refuses writes, or whose user may not write the key. Such a " +
		"client gets stale values, and waits for a client that loads; if it would be elected, it gets the error of a write.",
	Errors: []string{
		"READONLY, NOREPLICAS, MISCONF, NOPERM, OOM: there is no value, no client loads it, and the server may not elect the caller; or it may " +
			"not renew the lease of TOKEN.",
		string(errFreshLease) + ": the lease is not an integer in this range.",
		string(errToken) + ": the argument of TOKEN is not a token.",
		string(errFreshOwner) + ": the argument of OWNER is empty or too long.",
		waitErrors[0], waitErrors[1],
	},
	Examples: `
> GETFRESH page LEASE 5000
1) "refresh"
2) (nil)
3) (integer) $token
4) (integer) 5000
2> GETFRESH page LEASE 5000 WAIT 1000
> SET page v1 PX 60000 FRESH 10000 IFTOKEN $token
OK
2< 1) "fresh"
2) "v1"
3) (nil)
4) (integer) 10000
~ 10001ms
> GETFRESH page LEASE 5000
1) "refresh"
2) "v1"
3) (integer) $next > $token
4) (integer) 5000
2> GETFRESH page LEASE 5000
1) "stale"
2) "v1"
3) (nil)
4) (integer) 49999
`,
	Run: runGetFresh,
}

// getFresh holds the arguments of GETFRESH.
type getFresh struct {
	engine.FreshOptions
	waits  bool
	millis int64
}

func parseGetFresh(args [][]byte) (g getFresh, err error) {
	for len(args) > 0 {
		if len(args) == 1 {
			return g, command.ErrSyntax
		}
		word, value := args[0], args[1]
		args = args[2:]
		switch {
		case command.EqualFold(word, "LEASE") && g.Lease == 0:
			var ok bool
			if g.Lease, ok = numeral.ParseInt(value); !ok || g.Lease < 1 || g.Lease > engine.MaxRefreshLease {
				err = errFreshLease
			}
		case command.EqualFold(word, "TOKEN") && g.Token == 0 && g.Lease != 0:
			g.Token, err = parseToken(value)
		case command.EqualFold(word, "OWNER") && g.Owner == nil && g.Lease != 0:
			g.Owner, err = value, checkOwner(value)
		case command.EqualFold(word, "WAIT") && !g.waits:
			g.waits = true
			g.millis, err = command.ParseBlock(value)
		default:
			err = command.ErrSyntax
		}
		if err != nil {
			return g, err
		}
	}
	if g.Token != 0 && g.Owner != nil {
		return g, command.ErrSyntax
	}
	return g, nil
}

func checkOwner(owner []byte) error {
	if len(owner) == 0 || len(owner) > engine.MaxRefreshOwner {
		return errFreshOwner
	}
	return nil
}

func runGetFresh(c *command.Ctx) error {
	key := c.Args[1]
	g, err := parseGetFresh(c.Args[2:])
	if err != nil {
		return err
	}

	var refused error // the reason for which the server elects no client
	if g.Lease > 0 {
		if refused = mayElect(c, key); refused != nil {
			g.Lease = 0
		}
	}
	g.Behind = c.Behind(key, engine.None)
	v, err := c.Tx.GetFresh(key, g.FreshOptions)
	if err != nil {
		return err
	}
	if refused != nil && electable(c, key, &g, &v) {
		return refused
	}
	if g.waits && v.Loading && v.State == engine.FreshAbsent {
		return waitForFresh(c, &g, v.Millis)
	}

	if c.Waiting != nil && v.State == engine.FreshRefresh {
		c.Waiting.Memo = v.Token // for Undo
	}
	replyFresh(c, key, v)
	return nil
}

// mayElect returns an error if the client may not be elected.
func mayElect(c *command.Ctx, key []byte) error {
	if err := c.Host.MayWrite(c, key); err != nil || !c.DB.ApartFull() {
		return err
	}
	return command.ErrApart
}

// electable reports whether a client would get or keep the lease if the server did not refuse to elect it. A
// client that gets a stale value can use it. A client that gets no value and no reason would ask again at
// once.
func electable(c *command.Ctx, key []byte, g *getFresh, v *engine.FreshValue) bool {
	if g.Token != 0 {
		return v.State != engine.FreshFresh && c.Tx.HoldsToken(key, g.Token)
	}
	return v.State == engine.FreshAbsent && !v.Loading
}

// waitForFresh makes the command wait for a value that another client is loading under a lease of ms.
func waitForFresh(c *command.Ctx, g *getFresh, ms int64) error {
	until := c.Now()/1000 + ms
	absent := func(c *command.Ctx) {
		replyFresh(c, nil, engine.FreshValue{Millis: max(0, until-c.Now()/1000)})
	}
	return c.Block(command.Wait{Keys: c.Args[1:2], Kinds: engine.AnyKind, Millis: g.millis, Relook: true, Refused: absent, Expired: absent,
		Undo: func(c *command.Ctx) {
			if token, ok := c.Waiting.Memo.(int64); ok {
				c.Tx.Unlease(c.Args[1], token)
			}
		}})
}

func replyFresh(c *command.Ctx, key []byte, v engine.FreshValue) {
	c.Out.Array(4)
	c.Out.BulkString(v.State.String())
	stringOrNull(c, key, v.Value, v.Value != nil)
	if v.State == engine.FreshRefresh {
		c.Out.Int(v.Token)
	} else {
		c.Out.Null()
	}
	c.Out.Int(v.Millis)
}

var specStale = command.Spec{
	Name: "stale", Group: command.GroupString, Since: "0.7.0", Complexity: "O(N) where N is the number of keys.",
	Summary: "Makes the values of keys stale, so that the next GETFRESH has a client load new ones.",
	Flags:   command.Write | command.Fast | command.Blind,
	Args:    []command.Arg{command.ManyKeys("key", command.Update)},
	Tips:    []string{"request_policy:multi_shard", "response_policy:agg_sum"},
	Replies: "The number of keys that are stale from now on. A value without FRESH counts as well if its key has a deadline; " +
		"a key without a deadline and a key of another type stay as they are, and do not count. A client that is loading one of the " +
		"values loses its token, even if the key is missing.",
	Examples: `
> SET page v1 EX 60 FRESH 30
OK
> SET other v2
OK
> STALE page other nothing
(integer) 1
> GETFRESH page
1) "stale"
2) "v1"
3) (nil)
4) (integer) 60000
> GET page
"v1"
`,
	Run: runStale,
}

func runStale(c *command.Ctx) error {
	n := int64(0)
	for _, key := range c.Args[1:] {
		ok, err := c.Tx.MakeStale(key)
		if err != nil {
			return err
		}
		n += command.BoolToInt(ok)
	}
	c.Out.Int(n)
	return nil
}

var specUnlease = command.Spec{
	Name: "unlease", Group: command.GroupString, Since: "0.7.0", Complexity: "O(1)",
	Summary: "Gives up the loading of a value: the next client is elected.",
	Flags:   command.Write | command.Fast | command.Blind,
	Args: []command.Arg{command.Key("key", command.Update), command.OneOf("holder",
		command.Int("token"), command.TokenArg("OWNER", command.Str("owner")))},
	Replies: "1 if this was the key's refresh token, or the owner of its lease, 0 if not.",
	Errors: []string{
		string(errToken) + ": the argument is not a token.",
		string(errFreshOwner) + ": the argument of OWNER is empty or too long.",
	},
	Examples: `
> GETFRESH page LEASE 5000
1) "refresh"
2) (nil)
3) (integer) $token
4) (integer) 5000
> UNLEASE page $token
(integer) 1
> UNLEASE page $token
(integer) 0
> GETFRESH page LEASE 5000 OWNER program-1
1) "refresh"
2) (nil)
3) (integer) $other > $token
4) (integer) 5000
> UNLEASE page OWNER program-1
(integer) 1
> GETFRESH page
1) "absent"
2) (nil)
3) (nil)
4) (integer) -1
`,
	Run: runUnlease,
}

func runUnlease(c *command.Ctx) error {
	if len(c.Args) > 3 {
		if len(c.Args) > 4 || !command.EqualFold(c.Args[2], "OWNER") {
			return command.ErrSyntax
		}
		if err := checkOwner(c.Args[3]); err != nil {
			return err
		}
		c.Out.Int(command.BoolToInt(c.Tx.UnleaseOwner(c.Args[1], c.Args[3])))
		return nil
	}
	token, err := parseToken(c.Args[2])
	if err != nil {
		return err
	}

	c.Out.Int(command.BoolToInt(c.Tx.Unlease(c.Args[1], token)))
	return nil
}

var specEbbFresh = command.Spec{
	Name: "ebb.fresh", Group: command.GroupString, Since: "0.7.0", Complexity: "O(1)",
	Summary: "Records the fresh deadline of a string, in the log. Clients cannot call it.",
	Flags:   command.Write | command.Fast, SysCmd: true,
	Args:    []command.Arg{command.Key("key", command.Update), command.UnixTime("unix-time-milliseconds")},
	Replies: "OK, when a log is replayed. The value is fresh up to this instant; 1: STALE has made it stale; 2: the instant has passed.",
	Errors:  []string{string(errEbbFresh) + ": the caller is not a replay"},
	Examples: `
> EBB.FRESH page 1
(error) ERR EBB.FRESH is an effect in the log; clients cannot call it
`,
	Run: runEbbFresh,
}

func runEbbFresh(c *command.Ctx) error {
	if !c.Host.Replaying() {
		return errEbbFresh
	}
	at, ok := numeral.ParseInt(c.Args[2])
	if !ok {
		return command.ErrNotInteger
	}

	if err := c.Tx.Refresh(c.Args[1], at); err != nil {
		return err
	}
	c.Out.OK()
	return nil
}

var specEbbLease = command.Spec{
	Name: "ebb.lease", Group: command.GroupString, Since: "0.7.0", Complexity: "O(1)",
	Summary: "Records the lease of the client that loads a value, in the log. Clients cannot call it.",
	Flags:   command.Write | command.Fast, SysCmd: true,
	Args: []command.Arg{command.Key("key", command.Update), command.Int("token"), command.Int("until"), command.Opt(command.Str("owner"))},
	Replies: "OK, when a log is replayed. The lease lasts up to and including this ms since 1970; 0: it has ended. " +
		"The owner is what GETFRESH had.",
	Errors: []string{string(errEbbLease) + ": the caller is not a replay"},
	Examples: `
> EBB.LEASE page 1 0
(error) ERR EBB.LEASE is an effect in the log; clients cannot call it
`,
	Run: runEbbLease,
}

func runEbbLease(c *command.Ctx) error {
	if !c.Host.Replaying() {
		return errEbbLease
	}
	token, err := parseToken(c.Args[2])
	if err != nil {
		return err
	}
	until, ok := numeral.ParseInt(c.Args[3])
	if !ok {
		return command.ErrNotInteger
	}

	var owner []byte
	if len(c.Args) > 4 {
		owner = c.Args[4]
	}
	if err := c.Tx.Leased(c.Args[1], token, until, owner); err != nil {
		return err
	}
	c.Out.OK()
	return nil
}
