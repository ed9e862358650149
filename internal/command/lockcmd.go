package command

import (
	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/resp"
)

var lockSpecs = []*Spec{&specLockAcquire, &specLockRenew, &specLockRelease, &specLockInfo}

const (
	errLease = ReplyError("ERR invalid lease, must be a positive number of milliseconds")
	errToken = ReplyError("ERR invalid token, must be a positive integer")
)

// What the commands of locks and semaphores refuse.
var (
	leaseLength = []string{
		"ERR invalid lease, must be a positive number of milliseconds: lease is no integer above 0.",
	}
	waitErrors = append(leaseLength[:1:1],
		"ERR timeout is not an integer or out of range: WAIT takes whole milliseconds.",
		"ERR timeout is negative: WAIT takes 0 (for ever) or more.")
	lostError = "LOST the lease on 'key' has expired: the owner does not hold it, or not any more. It must stop what it does under the lock, and acquire it again."
)

// parseLease reads the length of a lease in ms.
func parseLease(b []byte) (ms int64, err error) {
	ms, ok := resp.ParseInt(b)
	if !ok || ms < 1 {
		return 0, errLease
	}
	return ms, nil
}

// acquire is what LOCK.ACQUIRE and SEM.ACQUIRE are asked with.
type acquire struct {
	engine.AcquireOptions
	count  int64 // permits
	millis int64 // of WAIT
}

// parseAcquire reads the options behind the lease; shared and count say which
// there are beside WAIT.
func (c *Ctx) parseAcquire(lease []byte, args [][]byte, shared, count bool) (a acquire, err error) {
	a.Since = c.Since()
	if a.Lease, err = parseLease(lease); err != nil {
		return a, err
	}
	for len(args) > 0 {
		word, value := args[0], []byte(nil)
		if args = args[1:]; shared && EqualFold(word, "SHARED") && !a.Shared {
			a.Shared = true
			continue
		}
		if len(args) == 0 {
			return a, ErrSyntax
		}
		value, args = args[0], args[1:]
		switch {
		case EqualFold(word, "WAIT") && !a.Waits:
			a.Waits = true
			a.millis, err = parseBlock(value)
		case count && EqualFold(word, "COUNT") && a.count == 0:
			a.count, err = parsePermits(value)
		case c.Host.Replaying() && EqualFold(word, "TOKEN"):
			a.Token, err = c.parseReplayed(value)
		default:
			err = ErrSyntax
		}
		if err != nil {
			return a, err
		}
	}
	return a, nil
}

func parseToken(b []byte) (token int64, err error) {
	token, ok := resp.ParseInt(b)
	if !ok || token < 1 {
		return 0, errToken
	}
	return token, nil
}

// granted replies to an ACQUIRE, or has it wait for a key of that kind; undo gives
// back what has not reached who waited.
func (c *Ctx) granted(a *acquire, g engine.Lease, ok bool, err error, k engine.Kind, undo func(c *Ctx)) error {
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
	return c.Block(Wait{Keys: c.Args[1:2], Kinds: engine.KindsOf(engine.None, k), Millis: a.millis, Relook: true,
		Refused: replyNull, Expired: replyNull, Undo: undo})
}

// lease is what Undo is to give back.
func (c *Ctx) lease() engine.Lease {
	l, _ := c.Waiting.Memo.(engine.Lease)
	return l
}

func replyNull(c *Ctx) { c.Out.Null() }

var specLockAcquire = Spec{
	Name: "lock.acquire", Group: GroupLock, Since: "0.4.0", Complexity: "O(N) where N is the number of those who share the lock, mostly O(1)",
	Summary: "Acquires a lock under a lease, and returns its fencing token.",
	Flags:   Write | DenyOOM | Fast | Blocking | Timed,
	Args: []Arg{Key("key", Update), Str("owner"), Int("lease"),
		Opt(TokenArg("WAIT", Int("milliseconds"))), Opt(Token("SHARED"))},
	Replies: "The fencing token, an integer greater than all before it; nil if somebody else holds the lock. The lease is in milliseconds: a lock ends when it is " +
		"released, or when its lease is over. The owner that holds the lock gets the same token and a new lease, also while others wait. " +
		"WAIT waits for so many milliseconds, 0 for ever; who waits longest is served first, and without WAIT nobody gets a lock that others wait for. " +
		"SHARED lets others hold the lock who say SHARED; they wait behind those who want it for themselves. " +
		"The only holder of a shared lock who asks without SHARED holds it exclusively, with a new token; one of several gets nil at once. " +
		"The exclusive holder who asks with SHARED shares it from then on, with the same token. In transactions and scripts nobody waits.",
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

func runLockAcquire(c *Ctx) error {
	a, err := c.parseAcquire(c.Args[3], c.Args[4:], true, false)
	if err != nil {
		return err
	}

	key, owner := c.Args[1], c.Args[2]
	a.Behind = c.Behind(key, engine.Lock)
	g, ok, err := c.Tx.AcquireLock(key, owner, a.AcquireOptions)

	return c.granted(&a, g, ok, err, engine.Lock, func(c *Ctx) { c.Tx.ReturnLock(c.Args[1], c.Args[2], c.lease()) })
}

var specLockRenew = Spec{
	Name: "lock.renew", Group: GroupLock, Since: "0.4.0", Complexity: "O(N) where N is the number of those who share the lock, mostly O(1)",
	Summary: "Gives the holder of a lock another lease, from now on.",
	Flags:   Write | Fast | Timed,
	Args:    []Arg{Key("key", Update), Str("owner"), Int("token"), Int("lease")},
	Replies: "1. The lease, in milliseconds, may also be shorter than what is left of the old one.",
	Errors:  append(leaseLength[:1:1], "ERR invalid token, must be a positive integer: what is given is no token.", lostError),
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

func runLockRenew(c *Ctx) error {
	token, err := parseToken(c.Args[3])
	if err != nil {
		return err
	}
	lease, err := parseLease(c.Args[4])
	if err != nil {
		return err
	}

	return c.renewed(c.Tx.RenewLock(c.Args[1], c.Args[2], token, lease))
}

// renewed replies to a RENEW.
func (c *Ctx) renewed(ok bool, err error) error {
	switch {
	case err != nil:
		return err
	case !ok:
		return ReplyError("LOST the lease on '" + string(c.Args[1]) + "' has expired")
	}
	c.Out.Int(1)
	return nil
}

var specLockRelease = Spec{
	Name: "lock.release", Group: GroupLock, Since: "0.4.0", Complexity: "O(N) where N is the number of those who share the lock, mostly O(1)",
	Summary: "Gives a lock back; who has waited longest gets it.",
	Flags:   Write | Fast,
	Args:    []Arg{Key("key", Update|Delete), Str("owner"), Int("token")},
	Replies: "1 if it was held by this owner under this token, 0 if not.",
	Errors:  []string{"ERR invalid token, must be a positive integer: what is given is no token."},
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

func runLockRelease(c *Ctx) error {
	token, err := parseToken(c.Args[3])
	if err != nil {
		return err
	}

	ok, err := c.Tx.ReleaseLock(c.Args[1], c.Args[2], token)
	if err != nil {
		return err
	}

	c.Out.Int(b2i(ok))
	return nil
}

var specLockInfo = Spec{
	Name: "lock.info", Group: GroupLock, Since: "0.4.0", Complexity: "O(N) where N is the number of holders and of those who wait",
	Summary: "Returns who holds a lock, and who waits for it.",
	Flags:   ReadOnly,
	Args:    []Arg{Key("key", Read)},
	Tips:    []string{"nondeterministic_output"},
	Replies: "A map; nil if nobody holds the lock, and then nobody waits for it. `mode`: exclusive or shared. " +
		"`holders`: of each owner, token, and what is left of the lease in milliseconds. " +
		"`line`: of each who waits, first come first: owner, mode, the connection's CLIENT ID, and how long it has waited in milliseconds.",
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

func runLockInfo(c *Ctx) error {
	holders, err := c.Tx.Holders(c.Args[1], engine.Lock)
	if err != nil {
		return err
	}

	return c.replyHeld(holders, false, func() {
		c.Out.BulkString("mode")
		c.Out.BulkString(lockMode(holders.Shared()))
	}, func(args [][]byte) {
		a, _ := c.parseAcquire(args[3], args[4:], true, false)
		c.Out.BulkString(lockMode(a.Shared))
	})
}

// replyHeld replies with what INFO tells of a lock or a semaphore: what head tells,
// the holders, and who waits, of each what wants tells of its request.
func (c *Ctx) replyHeld(holders engine.Holders, count bool, head func(), wants func(args [][]byte)) error {
	if holders == nil {
		c.Out.Null()
		return nil
	}
	line := c.Queue(c.Args[1])
	if err := c.Long(len(holders) + len(line)*inLineBytes); err != nil {
		return err
	}
	c.Out.Map(3)
	head()
	c.replyHolders(holders, count)
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

// inLineBytes is what telling of one who waits costs, in bytes of a walk over
// memory.
const inLineBytes = 512

func lockMode(shared bool) string {
	if shared {
		return "shared"
	}
	return "exclusive"
}

// replyHolders replies who holds a lock or a semaphore: owner, permits where they
// count, token and what is left of the lease.
func (c *Ctx) replyHolders(holders engine.Holders, count bool) {
	c.Out.BulkString("holders")
	c.Out.Array(holders.Len())
	for h := range holders.All() {
		c.Out.Array(3 + int(b2i(count)))
		c.Out.Bulk(h.Owner)
		if count {
			c.Out.Int(h.Count)
		}
		c.Out.Int(h.Token)
		c.Out.Int(max(0, h.Deadline-c.Tx.Millis()))
	}
}
