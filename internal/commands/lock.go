package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/holders"
	"github.com/ebbdb/ebb/internal/numeral"
)

var lockSpecs = []*command.Spec{&specLockAcquire, &specLockRenew, &specLockRelease, &specLockInfo}

const (
	errLease = command.ReplyError("ERR invalid lease, must be a positive number of milliseconds")
	errToken = command.ReplyError("ERR invalid token, must be a positive integer")
)

// These are the errors of locks and semaphores.
var (
	leaseLength = []string{
		"ERR invalid lease, must be a positive number of milliseconds: lease is not an integer above 0.",
	}
	waitErrors = append(leaseLength[:1:1],
		"ERR timeout is not an integer or out of range: WAIT takes whole milliseconds.",
		"ERR timeout is negative: WAIT takes 0 (for ever) or more.")
	lostError = "LOST the lease on 'key' has expired: the owner does not hold it, or no longer does. It must stop what it does " +
		"under the lock, " +
		"and acquire it again."
)

// parseLease reads the length of a lease in ms.
func parseLease(b []byte) (ms int64, err error) {
	ms, ok := numeral.ParseInt(b)
	if !ok || ms < 1 {
		return 0, errLease
	}
	return ms, nil
}

// acquire holds the arguments of LOCK.ACQUIRE and SEM.ACQUIRE.
type acquire struct {
	engine.AcquireOptions
	count  int64 // permits
	millis int64 // the timeout of WAIT
}

// parseAcquire reads the options after the lease; shared and count report whether the command has these
// options besides WAIT.
func parseAcquire(c *command.Ctx, lease []byte, args [][]byte, shared, count bool) (a acquire, err error) {
	a.Since = c.Since()
	if a.Lease, err = parseLease(lease); err != nil {
		return a, err
	}
	for len(args) > 0 {
		word, value := args[0], []byte(nil)
		if args = args[1:]; shared && command.EqualFold(word, "SHARED") && !a.Shared {
			a.Shared = true
			continue
		}
		if len(args) == 0 {
			return a, command.ErrSyntax
		}
		value, args = args[0], args[1:]
		switch {
		case command.EqualFold(word, "WAIT") && !a.Waits:
			a.Waits = true
			a.millis, err = command.ParseBlock(value)
		case count && command.EqualFold(word, "COUNT") && a.count == 0:
			a.count, err = parsePermits(value)
		case c.Host.Replaying() && command.EqualFold(word, "TOKEN"):
			a.Token, err = parseReplayed(c, value)
		default:
			err = command.ErrSyntax
		}
		if err != nil {
			return a, err
		}
	}
	return a, nil
}

func parseToken(b []byte) (token int64, err error) {
	token, ok := numeral.ParseInt(b)
	if !ok || token < 1 {
		return 0, errToken
	}
	return token, nil
}

// parseReplayed reads the fencing token of an effect.
func parseReplayed(c *command.Ctx, b []byte) (token int64, err error) {
	if token, err = parseToken(b); err == nil {
		err = c.Tx.CheckToken(token)
	}
	return token, err
}

// granted replies to an ACQUIRE, or makes it wait for a key of kind k. undo gives a grant back if the reply
// does not reach the waiting client.
func granted(c *command.Ctx, a *acquire, g engine.Lease, ok bool, err error, k engine.Kind, undo func(c *command.Ctx)) error {
	switch {
	case err != nil:
		return err
	case ok:
		if c.Waiting != nil {
			c.Waiting.Memo = g // for Undo
		}
		c.Out.Int(g.Token)
		return nil
	case !a.Waits || g.Held:
		c.Out.Null()
		return nil
	}
	return c.Block(command.Wait{Keys: c.Args[1:2], Kinds: engine.KindsOf(engine.None, k), Millis: a.millis, Relook: true,
		Refused: replyNull, Expired: replyNull, Undo: undo})
}

// lease returns the lease that Undo gives back.
func lease(c *command.Ctx) engine.Lease {
	l, _ := c.Waiting.Memo.(engine.Lease)
	return l
}

func replyNull(c *command.Ctx) { c.Out.Null() }

var specLockAcquire = command.Spec{
	Name: "lock.acquire", Group: command.GroupLock, Since: "0.4.0",
	Complexity: "O(N) where N is the number of owners that share the lock, mostly O(1)",
	Summary:    "Acquires a lock under a lease, and returns its fencing token.",
	Flags:      command.Write | command.DenyOOM | command.Fast | command.Blocking | command.Timed,
	Args: []command.Arg{command.Key("key", command.Update), command.Str("owner"), command.Int("lease"),
		command.Opt(command.TokenArg("WAIT", command.Int("milliseconds"))), command.Opt(command.Token("SHARED"))},
	Replies: "* The fencing token: an integer that is greater than all before it.\n" +
		"* nil if another owner holds the lock, or when the WAIT milliseconds are over.\n\n" +
		"The lease is in milliseconds. The lock ends when its owner releases it, or when its lease is over.\n\n" +
		"* The owner that holds the lock gets the same token and a new lease, even while other owners wait.\n" +
		"* WAIT waits for at most the number of milliseconds, 0 for ever. The longest waiter is served first, and a request " +
		"without WAIT never gets a lock " +
		"for which others wait. In transactions and scripts the command does not wait.\n" +
		"* With SHARED several owners that use SHARED hold the lock together. They wait behind exclusive requests.\n" +
		"* If the only holder of a shared lock sends a request without SHARED, it holds the lock exclusively, with a new token. One of " +
		"several holders gets nil at once.\n" +
		"* An exclusive holder that sends a request with SHARED shares the lock from then on, with the same token.",
	Errors: waitErrors,
	Examples: `
> LOCK.ACQUIRE report worker-1 30000
(integer) $first
> LOCK.ACQUIRE report worker-2 30000
(nil)
2> LOCK.ACQUIRE report worker-2 30000 WAIT 5000
> LOCK.RELEASE report worker-1 $first
(integer) 1
2< (integer) $second > $first
`,
	Run: runLockAcquire,
}

func runLockAcquire(c *command.Ctx) error {
	a, err := parseAcquire(c, c.Args[3], c.Args[4:], true, false)
	if err != nil {
		return err
	}

	key, owner := c.Args[1], c.Args[2]
	a.Behind = c.Behind(key, engine.Lock)
	g, ok, err := c.Tx.AcquireLock(key, owner, a.AcquireOptions)

	return granted(c, &a, g, ok, err, engine.Lock, func(c *command.Ctx) { c.Tx.ReturnLock(c.Args[1], c.Args[2], lease(c)) })
}

var specLockRenew = command.Spec{
	Name: "lock.renew", Group: command.GroupLock, Since: "0.4.0",
	Complexity: "O(N) where N is the number of owners that share the lock, mostly O(1)",
	Summary:    "Renews the lease of a lock's holder, from now on.",
	Flags:      command.Write | command.Fast | command.Timed,
	Args:       []command.Arg{command.Key("key", command.Update), command.Str("owner"), command.Int("token"), command.Int("lease")},
	Replies:    "1. The new lease, in milliseconds, may also end before the old one.",
	Errors:     append(leaseLength[:1:1], "ERR invalid token, must be a positive integer: the argument is not a token.", lostError),
	Examples: `
> LOCK.ACQUIRE report worker-1 30000
(integer) $t
~ 20s
> LOCK.RENEW report worker-1 $t 30000
(integer) 1
~ 30001ms
> LOCK.RENEW report worker-1 $t 30000
(error) LOST the lease on 'report' has expired
`,
	Run: runLockRenew,
}

func runLockRenew(c *command.Ctx) error {
	token, err := parseToken(c.Args[3])
	if err != nil {
		return err
	}
	lease, err := parseLease(c.Args[4])
	if err != nil {
		return err
	}

	ok, err := c.Tx.RenewLock(c.Args[1], c.Args[2], token, lease)
	return renewed(c, ok, err)
}

// renewed replies to a RENEW.
func renewed(c *command.Ctx, ok bool, err error) error {
	switch {
	case err != nil:
		return err
	case !ok:
		return command.ReplyError("LOST the lease on '" + string(c.Args[1]) + "' has expired")
	}
	c.Out.Int(1)
	return nil
}

var specLockRelease = command.Spec{
	Name: "lock.release", Group: command.GroupLock, Since: "0.4.0",
	Complexity: "O(N) where N is the number of owners that share the lock, mostly O(1)",
	Summary:    "Releases a lock; the longest waiter acquires it.",
	Flags:      command.Write | command.Fast,
	Args:       []command.Arg{command.Key("key", command.Update|command.Delete), command.Str("owner"), command.Int("token")},
	Replies:    "1 if this owner held the lock under this token, 0 if not.",
	Errors:     []string{"ERR invalid token, must be a positive integer: the argument is not a token."},
	Examples: `
> LOCK.ACQUIRE report worker-1 30000
(integer) $t
> LOCK.RELEASE report worker-2 $t
(integer) 0
> LOCK.RELEASE report worker-1 $t
(integer) 1
> LOCK.RELEASE report worker-1 $t
(integer) 0
`,
	Run: runLockRelease,
}

func runLockRelease(c *command.Ctx) error {
	token, err := parseToken(c.Args[3])
	if err != nil {
		return err
	}

	ok, err := c.Tx.ReleaseLock(c.Args[1], c.Args[2], token)
	if err != nil {
		return err
	}

	c.Out.Int(command.BoolToInt(ok))
	return nil
}

var specLockInfo = command.Spec{
	Name: "lock.info", Group: command.GroupLock, Since: "0.4.0", Complexity: "O(N) where N is the number of holders and of waiting calls",
	Summary: "Returns the holders of a lock, and its waiting calls.",
	Flags:   command.ReadOnly,
	Args:    []command.Arg{command.Key("key", command.Read)},
	Tips:    []string{"nondeterministic_output"},
	Replies: "A map; nil if the lock has no holder, and then it has no waiters. `mode`: exclusive or shared. " +
		"`holders`: of each the owner, the token, and the rest of the lease in milliseconds. " +
		"`line`: of each waiter, in FIFO order: owner, mode, the connection's CLIENT ID, and how long it has waited in milliseconds.",
	Examples: `
> LOCK.ACQUIRE report worker-1 30000
(integer) $t
2> LOCK.ACQUIRE report worker-2 30000 WAIT 0
~ 500ms
> LOCK.INFO report
1) "mode"
2) "exclusive"
3) "holders"
4) 1) 1) "worker-1"
      2) (integer) $t
      3) (integer) 29500
5) "line"
6) 1) 1) "worker-2"
      2) "exclusive"
      3) (integer) 2
      4) (integer) 500
`,
	Run: runLockInfo,
}

func runLockInfo(c *command.Ctx) error {
	all, err := c.Tx.Holders(c.Args[1], engine.Lock)
	if err != nil {
		return err
	}

	return replyHeld(c, all, false, func() {
		c.Out.BulkString("mode")
		c.Out.BulkString(lockMode(all.IsShared()))
	}, func(args [][]byte) {
		a, _ := parseAcquire(c, args[3], args[4:], true, false)
		c.Out.BulkString(lockMode(a.Shared))
	})
}

// replyHeld replies with the map that INFO returns for a lock or a semaphore. head writes its first pairs.
// Then follow the holders, and the waiting clients; wants writes what a client's request asks for.
func replyHeld(c *command.Ctx, all holders.List, count bool, head func(), wants func(args [][]byte)) error {
	if all == nil {
		c.Out.Null()
		return nil
	}
	line := c.Queue(c.Args[1])
	if err := c.Long(len(all) + len(line)*inLineBytes); err != nil {
		return err
	}
	c.Out.Map(3)
	head()
	replyHolders(c, all, count)
	c.Out.BulkString("line")
	c.Out.Array(len(line))
	for _, q := range line {
		c.Out.Array(4)
		c.Out.Bulk(q.Args[2])
		wants(q.Args)
		c.Out.Int(q.Client)
		c.Out.Int((c.Now() - q.Since) / 1000)
	}
	return nil
}

// inLineBytes is the cost of describing one waiting client, in bytes read sequentially.
const inLineBytes = 512

func lockMode(shared bool) string {
	if shared {
		return "shared"
	}
	return "exclusive"
}

// replyHolders replies with the holders of a lock or a semaphore: owner, permits if count is set, token and
// the rest of the lease.
func replyHolders(c *command.Ctx, all holders.List, count bool) {
	c.Out.BulkString("holders")
	c.Out.Array(all.Len())
	for h := range all.All() {
		c.Out.Array(3 + int(command.BoolToInt(count)))
		c.Out.Bulk(h.Owner)
		if count {
			c.Out.Int(h.Count)
		}
		c.Out.Int(h.Token)
		c.Out.Int(max(0, h.Deadline-c.Tx.Millis()))
	}
}
