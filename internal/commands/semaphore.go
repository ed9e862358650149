package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

var semaphoreSpecs = []*command.Spec{&specSemAcquire, &specSemRenew, &specSemRelease, &specSemInfo}

const (
	errPermits = command.ReplyError("ERR a number of permits must be between 1 and 2147483647")
	errTooMany = command.ReplyError("ERR COUNT is greater than the limit")
)

// parsePermits reads a number of permits.
func parsePermits(b []byte) (n int64, err error) {
	n, ok := numeral.ParseInt(b)
	if !ok || n < 1 || n > engine.MaxPermits {
		return 0, errPermits
	}
	return n, nil
}

var specSemAcquire = command.Spec{
	Name: "sem.acquire", Group: command.GroupSemaphore, Since: "0.4.0", Complexity: "O(N) where N is the number of holders",
	Summary: "Acquires permits of a semaphore under a lease, and returns their fencing token.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Blocking | command.Timed,
	Args: []command.Arg{command.Key("key", command.Update), command.Str("owner"), command.Int("limit"), command.Int("lease"),
		command.Opt(command.TokenArg("COUNT", command.Int("permits"))), command.Opt(command.TokenArg("WAIT", command.Int("milliseconds")))},
	Replies: "* The fencing token, an integer that is greater than all before it: the owner then holds COUNT permits, by default 1.\n" +
		"* nil if they are not free, or when the WAIT milliseconds are over: all owners together never hold more than limit.\n\n" +
		"The lease is in milliseconds. Permits end when their owner releases them, or when the lease is over.\n\n" +
		"* An owner that holds as many, or more, gets the same token and a new lease for all of them, even while other owners wait. One that " +
		"holds fewer gets the difference, if that is free.\n" +
		"* WAIT waits for at most the number of milliseconds, 0 for ever. The longest waiter is served first, even if it needs " +
		"more than the other waiters, " +
		"and a request without WAIT never gets permits for which others wait. In transactions and scripts the command does not wait.\n" +
		"* The limit may change from call to call: it applies to the permits held then.",
	Errors: append(waitErrors[:len(waitErrors):len(waitErrors)],
		"ERR a number of permits must be between 1 and 2147483647: limit or COUNT is not.",
		"ERR COUNT is greater than the limit: it could never be granted."),
	Examples: `
> SEM.ACQUIRE pool a 2 30000
(integer) $a
> SEM.ACQUIRE pool b 2 30000
(integer) $b > $a
> SEM.ACQUIRE pool c 2 30000
(nil)
2> SEM.ACQUIRE pool c 2 30000 WAIT 5000
> SEM.RELEASE pool a
(integer) 1
2< (integer) $c > $b
`,
	Run: runSemAcquire,
}

func runSemAcquire(c *command.Ctx) error {
	limit, err := parsePermits(c.Args[3])
	if err != nil {
		return err
	}
	a, err := parseAcquire(c, c.Args[4], c.Args[5:], false, true)
	if err != nil {
		return err
	}
	if a.count = max(a.count, 1); a.count > limit {
		return errTooMany
	}

	key, owner := c.Args[1], c.Args[2]
	a.Behind = c.Behind(key, engine.Semaphore)
	g, ok, err := c.Tx.AcquirePermits(key, owner, a.count, limit, a.AcquireOptions)

	return granted(c, &a, g, ok, err, engine.Semaphore, func(c *command.Ctx) { c.Tx.ReturnPermits(c.Args[1], c.Args[2], lease(c)) })
}

var specSemRenew = command.Spec{
	Name: "sem.renew", Group: command.GroupSemaphore, Since: "0.4.0", Complexity: "O(N) where N is the number of holders",
	Summary: "Renews the lease of the permits that an owner holds, from now on.",
	Flags:   command.Write | command.Fast | command.Timed,
	Args:    []command.Arg{command.Key("key", command.Update), command.Str("owner"), command.Int("lease")},
	Replies: "1. The new lease, in milliseconds, may also end before the old one.",
	Errors:  append(leaseLength[:1:1], lostError),
	Examples: `
> SEM.ACQUIRE pool a 2 30000
(integer) $a
~ 20s
> SEM.RENEW pool a 30000
(integer) 1
~ 30001ms
> SEM.RENEW pool a 30000
(error) LOST the lease on 'pool' has expired
`,
	Run: runSemRenew,
}

func runSemRenew(c *command.Ctx) error {
	lease, err := parseLease(c.Args[3])
	if err != nil {
		return err
	}

	ok, err := c.Tx.RenewPermits(c.Args[1], c.Args[2], lease)
	return renewed(c, ok, err)
}

var specSemRelease = command.Spec{
	Name: "sem.release", Group: command.GroupSemaphore, Since: "0.4.0", Complexity: "O(N) where N is the number of holders",
	Summary: "Releases permits of a semaphore; the longest waiter acquires them.",
	Flags:   command.Write | command.Fast,
	Args: []command.Arg{command.Key("key", command.Update|command.Delete), command.Str("owner"),
		command.Opt(command.TokenArg("COUNT", command.Int("permits")))},
	Replies: "1 if the owner held any, 0 if not. COUNT releases that many, by default all; a greater COUNT releases all, too.",
	Errors:  []string{"ERR a number of permits must be between 1 and 2147483647: COUNT is not."},
	Examples: `
> SEM.ACQUIRE pool a 3 30000 COUNT 3
(integer) $a
> SEM.RELEASE pool a COUNT 1
(integer) 1
> SEM.RELEASE pool a
(integer) 1
> SEM.RELEASE pool a
(integer) 0
`,
	Run: runSemRelease,
}

func runSemRelease(c *command.Ctx) error {
	n := int64(engine.MaxPermits)
	switch args := c.Args[3:]; {
	case len(args) == 0:
	case len(args) == 2 && command.EqualFold(args[0], "COUNT"):
		var err error
		if n, err = parsePermits(args[1]); err != nil {
			return err
		}
	default:
		return command.ErrSyntax
	}

	ok, err := c.Tx.ReleasePermits(c.Args[1], c.Args[2], n)
	if err != nil {
		return err
	}

	c.Out.Int(command.BoolToInt(ok))
	return nil
}

var specSemInfo = command.Spec{
	Name: "sem.info", Group: command.GroupSemaphore, Since: "0.4.0", Complexity: "O(N) where N is the number of holders and of waiting calls",
	Summary: "Returns the holders of a semaphore's permits, and its waiting calls.",
	Flags:   command.ReadOnly,
	Args:    []command.Arg{command.Key("key", command.Read)},
	Tips:    []string{"nondeterministic_output"},
	Replies: "A map; nil if the semaphore has no holder, and then it has no waiters. `taken`: the number of held permits. " +
		"`holders`: of each the owner, the permits, the token, and the rest of the lease in milliseconds. " +
		"`line`: of each waiter, in FIFO order: owner, the permits that it is to hold, the connection's CLIENT ID, and how long " +
		"it has waited in milliseconds.",
	Examples: `
> SEM.ACQUIRE pool a 2 30000 COUNT 2
(integer) $a
2> SEM.ACQUIRE pool b 2 30000 WAIT 0
~ 500ms
> SEM.INFO pool
1) "taken"
2) (integer) 2
3) "holders"
4) 1) 1) "a"
      2) (integer) 2
      3) (integer) $a
      4) (integer) 29500
5) "line"
6) 1) 1) "b"
      2) (integer) 1
      3) (integer) 2
      4) (integer) 500
`,
	Run: runSemInfo,
}

func runSemInfo(c *command.Ctx) error {
	holders, err := c.Tx.Holders(c.Args[1], engine.Semaphore)
	if err != nil {
		return err
	}

	return replyHeld(c, holders, true, func() {
		c.Out.BulkString("taken")
		c.Out.Int(holders.Taken())
	}, func(args [][]byte) {
		a, _ := parseAcquire(c, args[4], args[5:], false, true)
		c.Out.Int(max(a.count, 1))
	})
}
