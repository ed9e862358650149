package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/numeral"
)

// These are the commands on one set; set_ops.go has those on several.

var setSpecs = []*command.Spec{&specSAdd, &specSRem, &specSCard, &specSIsMember, &specSMIsMember, &specSMembers, &specSMove,
	&specSPop, &specSRandMember, &specSScan, &specSInter, &specSInterCard, &specSInterStore, &specSUnion, &specSUnionStore,
	&specSDiff, &specSDiffStore}

var setOrder = []string{"nondeterministic_output_order"}

var specSAdd = command.Spec{
	Name: "sadd", Group: command.GroupSet, Since: "1.0.0",
	Complexity: "O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments.",
	Summary:    "Adds one or more members to a set. Creates the key if it doesn't exist.",
	Flags:      command.Write | command.DenyOOM | command.Fast,
	Args:       []command.Arg{command.Key("key", command.Insert), command.Many("member")},
	History:    []command.Change{{Since: "2.4.0", Text: "Accepts multiple `member` arguments."}},
	Replies:    "How many of the members are new.",
	Examples: `
> SADD tags go redis
(integer) 2
> SADD tags go sql
(integer) 1
> SCARD tags
(integer) 3
`,
	Run: runSAdd,
}

func runSAdd(c *command.Ctx) error {
	if err := longFields(c, len(c.Args)); err != nil {
		return err
	}
	n, err := c.Tx.SAdd(c.Args[1], c.Args[2:])
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

var specSRem = command.Spec{
	Name: "srem", Group: command.GroupSet, Since: "1.0.0", Complexity: "O(N) where N is the number of members to be removed.",
	Summary: "Removes one or more members from a set. Deletes the set if the last member was removed.",
	Flags:   command.Write | command.Fast,
	Args:    []command.Arg{command.Key("key", command.Delete), command.Many("member")},
	History: []command.Change{{Since: "2.4.0", Text: "Accepts multiple `member` arguments."}},
	Replies: "The number of members that existed.",
	Examples: `
> SADD tags go redis
(integer) 2
> SREM tags go sql
(integer) 1
> SREM tags redis
(integer) 1
> EXISTS tags
(integer) 0
`,
	Run: runSRem,
}

func runSRem(c *command.Ctx) error {
	if err := longFields(c, len(c.Args)); err != nil {
		return err
	}
	n, err := c.Tx.SRem(c.Args[1], c.Args[2:])
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

var specSCard = command.Spec{
	Name: "scard", Group: command.GroupSet, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Returns the number of members in a set.",
	Flags:   command.ReadOnly | command.Fast,
	Args:    []command.Arg{command.Key("key", command.Meta)},
	Examples: `
> SADD tags go redis
(integer) 2
> SCARD tags
(integer) 2
> SCARD nothing
(integer) 0
`,
	Run: runSCard,
}

func runSCard(c *command.Ctx) error {
	s, err := c.Tx.Members(c.Args[1])
	if err != nil {
		return err
	}
	c.Out.Int(int64(s.Len()))
	return nil
}

var specSIsMember = command.Spec{
	Name: "sismember", Group: command.GroupSet, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Determines whether a member belongs to a set.",
	Flags:   command.ReadOnly | command.Fast,
	Args:    []command.Arg{command.Key("key", command.Meta), command.Str("member")},
	Replies: "1 or 0.",
	Examples: `
> SADD tags go redis
(integer) 2
> SISMEMBER tags go
(integer) 1
> SISMEMBER tags sql
(integer) 0
`,
	Run: runSIsMember,
}

func runSIsMember(c *command.Ctx) error {
	s, err := c.Tx.Members(c.Args[1])
	if err != nil {
		return err
	}
	c.Out.Int(command.BoolToInt(s.Has(c.Args[2])))
	return nil
}

var specSMIsMember = command.Spec{
	Name: "smismember", Group: command.GroupSet, Since: "6.2.0",
	Complexity: "O(N) where N is the number of elements being checked for membership",
	Summary:    "Determines whether multiple members belong to a set.",
	Flags:      command.ReadOnly | command.Fast,
	Args:       []command.Arg{command.Key("key", command.Read), command.Many("member")},
	Replies:    "An array with 1 or 0 for each member.",
	Examples: `
> SADD tags go redis
(integer) 2
> SMISMEMBER tags go sql
1) (integer) 1
2) (integer) 0
`,
	Run: runSMIsMember,
}

func runSMIsMember(c *command.Ctx) error {
	if err := longFields(c, len(c.Args)); err != nil {
		return err
	}
	s, err := c.Tx.Members(c.Args[1])
	if err != nil {
		return err
	}
	c.Out.Array(len(c.Args) - 2)
	s.HasEach(c.Args[2:], func(has bool) { c.Out.Int(command.BoolToInt(has)) })
	return nil
}

var specSMembers = command.Spec{
	Name: "smembers", Group: command.GroupSet, Since: "1.0.0", Complexity: "O(N) where N is the set cardinality.",
	Summary: "Returns all members of a set.",
	Flags:   command.ReadOnly,
	Args:    []command.Arg{command.Key("key", command.Read), command.Opt(command.Token("WITHTTL"))},
	Tips:    setOrder,
	Replies: "A set in RESP3, an array in RESP2, of members in no order. With WITHTTL an array of arrays of member and " +
		"its time to live in ms, -1 without a deadline.",
	Examples: `
> SADD tags go
(integer) 1
> SMEMBERS tags
1) "go"
> SMEMBERS nothing
(empty array)
`,
	Run:   runSMembers,
	Takes: takesWithTTL,
}

func runSMembers(c *command.Ctx) error {
	ttls := len(c.Args) == 3
	if err := c.LongWalk(c.Args[1]); err != nil {
		return err
	}
	s, err := c.Tx.Members(c.Args[1])
	if err != nil {
		return err
	}
	if ttls {
		c.Out.Array(s.Len())
		s.EachTimed(func(member []byte, deadline int64) {
			c.Out.Array(2)
			c.Out.Bulk(member)
			c.Out.Int(ttlOf(c, deadline))
		})
		return nil
	}
	c.Out.Set(s.Len())
	s.Each(c.Out.Bulk)
	return nil
}

var specSMove = command.Spec{
	Name: "smove", Group: command.GroupSet, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Moves a member from one set to another.",
	Flags:   command.Write | command.Fast,
	Args: []command.Arg{command.Key("source", command.Access|command.Delete), command.Key("destination", command.Insert),
		command.Str("member")},
	Replies: "1 if the member was in the source, else 0. The member keeps its deadline; a member that the destination has keeps its own.",
	Examples: `
> SADD todo a b
(integer) 2
> SMOVE todo done a
(integer) 1
> SMOVE todo done a
(integer) 0
> SMEMBERS done
1) "a"
`,
	Run: runSMove,
}

func runSMove(c *command.Ctx) error {
	moved, err := c.Tx.SMove(c.Args[1], c.Args[2], c.Args[3])
	if err != nil {
		return err
	}
	c.Out.Int(command.BoolToInt(moved))
	return nil
}

var specSPop = command.Spec{
	Name: "spop", Group: command.GroupSet, Since: "1.0.0",
	Complexity: "Without the count argument O(1), otherwise O(N) where N is the value of the passed count.",
	Summary:    "Returns one or more random members from a set after removing them. Deletes the set if the last member was popped.",
	Flags:      command.Write | command.Fast,
	Args:       []command.Arg{command.Key("key", command.Access|command.Delete), command.Opt(command.Int("count")).Since("3.2.0")},
	Tips:       []string{"nondeterministic_output"},
	History:    []command.Change{{Since: "3.2.0", Text: "Added the `count` argument."}},
	Replies: "Without count the member, or nil if there is none. With it a set (an array in RESP2) of as many, " +
		"or of all if there are fewer.",
	Examples: `
> SADD coin heads
(integer) 1
> SPOP coin
"heads"
> SPOP coin
(nil)
> SADD s a
(integer) 1
> SPOP s 5
1) "a"
`,
	Run: runSPop,
}

func runSPop(c *command.Ctx) error {
	switch {
	case len(c.Args) > 3:
		return command.ErrSyntax
	case len(c.Args) == 3:
		return popMany(c)
	}
	m, ok, err := c.Tx.SPop(c.Args[1], c.Scratch[:0])
	if err != nil {
		return err
	}
	bulkOrNull(c, m, ok)
	c.KeepScratch(m)
	return nil
}

func popMany(c *command.Ctx) error {
	n, ok := numeral.ParseInt(c.Args[2])
	if !ok || n < 0 {
		return command.ErrPositive
	}
	if err := c.Long(pickWork(c, n)); err != nil {
		return err
	}
	members := c.Out.SetLater()
	popped, err := c.Tx.SPopMany(c.Args[1], command.CountTo(n), c.Out.Bulk)
	if err != nil {
		return err
	}
	c.Out.Patch(members, popped)
	return nil
}

// pickWork returns the cost, for Ctx.Long, of picking n items of the first key, or all of them if
// there are fewer.
func pickWork(c *command.Ctx, n int64) int {
	return int(min(n*fieldBytes, int64(c.Tx.ValueSize(c.Args[1]))*command.WalkBytes))
}

var specSRandMember = command.Spec{
	Name: "srandmember", Group: command.GroupSet, Since: "1.0.0",
	Complexity: "Without the count argument O(1), otherwise O(N) where N is the absolute value of the passed count.",
	Summary:    "Gets one or multiple random members from a set.",
	Flags:      command.ReadOnly,
	Args:       []command.Arg{command.Key("key", command.Read), command.Opt(command.Int("count")).Since("2.6.0")},
	Tips:       []string{"nondeterministic_output"},
	History:    []command.Change{{Since: "2.6.0", Text: "Added the optional `count` argument."}},
	Replies: "Without count the member, or nil if there is none. With it an array of as many different members, or " +
		"of all if there are fewer; a negative count allows repetitions and always returns that many.",
	Errors: command.DrawErrors,
	Examples: `
> SADD coin heads
(integer) 1
> SRANDMEMBER coin
"heads"
> SRANDMEMBER coin 2
1) "heads"
> SRANDMEMBER coin -2
1) "heads"
2) "heads"
> SRANDMEMBER nothing
(nil)
`,
	Run: runSRandMember,
}

func runSRandMember(c *command.Ctx) error {
	switch {
	case len(c.Args) > 3:
		return command.ErrSyntax
	case len(c.Args) == 3:
		return randomMembers(c)
	}
	s, err := c.Tx.Members(c.Args[1])
	if err != nil {
		return err
	}
	m, ok := s.Random()
	bulkOrNull(c, m, ok)
	return nil
}

func randomMembers(c *command.Ctx) error {
	n, _, err := command.ParseDraw(c.Args, "")
	if err != nil {
		return err
	}
	work := int(-n) * fieldBytes
	if n >= 0 {
		work = pickWork(c, min(n, command.MaxDraw))
	}
	if err := c.Long(work); err != nil {
		return err
	}
	s, err := c.Tx.Members(c.Args[1])
	if err != nil {
		return err
	}

	if n < 0 && s.Len() > 0 {
		c.Out.Array(int(-n))
		return c.Draw(int(-n), func(d *command.Drawing, n int) {
			s.Draw(n, func(m []byte) {
				if d.More(len(m)) {
					c.Out.Bulk(m)
				}
			})
		})
	}
	count := int(max(min(n, int64(s.Len())), 0))
	c.Out.Array(count)
	s.Sample(count, c.Out.Bulk)
	return nil
}

var specSScan = command.Spec{
	Name: "sscan", Group: command.GroupSet, Since: "2.8.0",
	Complexity: "O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to " +
		"return back to 0. N is the number of elements inside the collection.",
	Summary: "Iterates over members of a set.",
	Flags:   command.ReadOnly,
	Args: []command.Arg{command.Key("key", command.Read), command.Int("cursor"),
		command.Opt(command.TokenArg("MATCH", command.Pattern("pattern"))),
		command.Opt(command.TokenArg("COUNT", command.Int("count")))},
	Tips: []string{"nondeterministic_output"},
	Replies: "The cursor for the next call, 0 at the end, and an array of members. A member that is there from " +
		"the first call to the last is returned at least once.",
	Examples: `
> SADD tags go redis
(integer) 2
> SSCAN tags 0 MATCH g*
1) "0"
2) 1) "go"
> SSCAN nothing 0
1) "0"
2) (empty array)
`,
	Run: runSScan,
}

func runSScan(c *command.Ctx) error {
	cursor, err := parseCursor(c.Args[2])
	if err != nil {
		return err
	}
	s, err := c.Tx.Members(c.Args[1])
	if err != nil {
		return err
	}
	if s.Len() == 0 {
		scanned(c, 0, &names{})
		return nil
	}
	var o scanOptions
	if err := o.parse(c.Args[3:], false); err != nil {
		return err
	}
	if err := longScan(c, c.Args[1], o.count); err != nil {
		return err
	}

	if s.Small() {
		c.Out.Array(2)
		c.Out.BulkString("0")
		l, n := c.Out.ArrayLater(), 0
		s.Each(func(m []byte) {
			if o.matches(m) {
				c.Out.Bulk(m)
				n++
			}
		})
		c.Out.Patch(l, n)
		return nil
	}

	found := newNames(c)
	cursor = s.Scan(cursor, o.limit(), func(m []byte) {
		if o.matches(m) {
			found.add(m)
		}
	})

	scanned(c, cursor, &found)
	return nil
}
