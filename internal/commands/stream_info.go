package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

var specXInfo = command.Spec{
	Name: "xinfo", Group: command.GroupStream, Since: "5.0.0", Complexity: "Depends on subcommand.",
	Summary: "A container for stream introspection commands.",
	Examples: `
> XGROUP CREATE s g $ MKSTREAM
OK
> XINFO CONSUMERS s g
(empty array)
`,
	Sub: []*command.Spec{&specXInfoConsumers, &specXInfoGroups, &specXInfoHelp, &specXInfoStream},
}

var specXInfoHelp = command.HelpSpec("xinfo", command.GroupStream, 0)

var specXInfoConsumers = command.Spec{
	Name: "xinfo|consumers", Group: command.GroupStream, Since: "5.0.0", Complexity: "O(1)",
	Summary: "Returns a list of the consumers in a consumer group.",
	Flags:   command.ReadOnly | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Read), command.Str("groupname")},
	Tips:    []string{"nondeterministic_output"},
	History: []command.Change{{Since: "7.2.0", Text: "Added the `inactive` field, and changed the meaning of `idle`."}},
	Replies: "For each consumer: its name, the number of its pending entries, and the milliseconds since its last attempt " +
		"(`idle`) and since its last success (`inactive`, -1: never).",
	Examples: `
> XGROUP CREATE s g $ MKSTREAM
OK
> XGROUP CREATECONSUMER s g me
(integer) 1
~ 10ms
> XINFO CONSUMERS s g
1) 1) "name"
   2) "me"
   3) "pending"
   4) (integer) 0
   5) "idle"
   6) (integer) 10
   7) "inactive"
   8) (integer) -1
`,
	Run: runXInfoConsumers,
}

func runXInfoConsumers(c *command.Ctx) error {
	x, err := c.Tx.XGroups(c.Args[2])
	if err != nil {
		return err
	}
	g, ok := x.Group(c.Args[3])
	if !ok {
		return command.ReplyError("NOGROUP No such consumer group '" + string(c.Args[3]) + "' for key name '" + string(c.Args[2]) + "'")
	}

	now, members := c.Now()/1000, g.Members()
	c.Out.Array(len(members))
	for _, m := range members {
		c.Out.Map(4)
		c.Out.BulkString("name")
		c.Out.BulkString(m.Name)
		c.Out.BulkString("pending")
		c.Out.Int(int64(m.Pending))
		c.Out.BulkString("idle")
		c.Out.Int(max(now-m.Seen, 0))
		c.Out.BulkString("inactive")
		if m.Active < 0 {
			c.Out.Int(-1)
		} else {
			c.Out.Int(max(now-m.Active, 0))
		}
	}
	return nil
}

var specXInfoGroups = command.Spec{
	Name: "xinfo|groups", Group: command.GroupStream, Since: "5.0.0", Complexity: "O(1)",
	Summary: "Returns a list of the consumer groups of a stream.",
	Flags:   command.ReadOnly | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Read)},
	History: []command.Change{{Since: "7.0.0", Text: "Added the `entries-read` and `lag` fields"}},
	Replies: "For each group: its name, the numbers of its consumers and pending entries, the last id delivered, the " +
		"number of entries read, and the number still to read; the last two are nil where deletions hide them.",
	Examples: `
> XGROUP CREATE s g $ MKSTREAM
OK
> XADD s 1-1 f v
"1-1"
> XINFO GROUPS s
1)  1) "name"
    2) "g"
    3) "consumers"
    4) (integer) 0
    5) "pending"
    6) (integer) 0
    7) "last-delivered-id"
    8) "0-0"
    9) "entries-read"
   10) (nil)
   11) "lag"
   12) (integer) 1
`,
	Run: runXInfoGroups,
}

func runXInfoGroups(c *command.Ctx) error {
	x, err := c.Tx.XGroups(c.Args[2])
	if err != nil {
		return err
	}
	groups := x.Groups()
	c.Out.Array(len(groups))
	for i := range groups {
		g := &groups[i]
		c.Out.Map(6)
		c.Out.BulkString("name")
		c.Out.BulkString(g.Name)
		c.Out.BulkString("consumers")
		c.Out.Int(int64(g.Consumers))
		c.Out.BulkString("pending")
		c.Out.Int(int64(g.Pending))
		groupPosition(c, g)
	}
	return nil
}

// groupPosition replies with the position of a group: six elements of a map.
func groupPosition(c *command.Ctx, g *engine.GroupInfo) {
	c.Out.BulkString("last-delivered-id")
	streamID(c, g.Last)
	c.Out.BulkString("entries-read")
	intOrNull(c, g.Read, g.Read >= 0)
	c.Out.BulkString("lag")
	intOrNull(c, g.Lag, g.Known)
}

var specXInfoStream = command.Spec{
	Name: "xinfo|stream", Group: command.GroupStream, Since: "5.0.0", Complexity: "O(1)",
	Summary: "Returns information about a stream.",
	Flags:   command.ReadOnly | command.Blind,
	Args: []command.Arg{command.Key("key", command.Read),
		command.Opt(command.Block("FULL", command.Opt(command.TokenArg("COUNT", command.Int("count")))))},
	History: []command.Change{{Since: "6.0.0", Text: "Added the `FULL` modifier."},
		{Since: "7.0.0", Text: "Added the `max-deleted-entry-id`, `entries-added`, `recorded-first-entry-id`, `entries-read` and `lag` fields"},
		{Since: "7.2.0", Text: "Added the `active-time` field, and changed the meaning of `seen-time`."}},
	Replies: "A map. FULL shows entries, groups, pending entries and consumers, COUNT of each at most (10 by default, " +
		"0 for all). The radix-tree figures are those that Redis would have, about.",
	Examples: `
> XADD s 1-1 f v
"1-1"
> XINFO STREAM s
 1) "length"
 2) (integer) 1
 3) "radix-tree-keys"
 4) (integer) 1
 5) "radix-tree-nodes"
 6) (integer) 2
 7) "last-generated-id"
 8) "1-1"
 9) "max-deleted-entry-id"
10) "0-0"
11) "entries-added"
12) (integer) 1
13) "recorded-first-entry-id"
14) "1-1"
15) "groups"
16) (integer) 0
17) "first-entry"
18) 1) "1-1"
    2) 1) "f"
       2) "v"
19) "last-entry"
20) 1) "1-1"
    2) 1) "f"
       2) "v"
`,
	Run: runXInfoStream,
}

func runXInfoStream(c *command.Ctx) error {
	full, count, err := parseXInfoStream(c)
	if err != nil {
		return err
	}
	x, err := c.Tx.XInfo(c.Args[2])
	if err != nil {
		return err
	}
	if full && count == 0 {
		if err := c.LongWalk(c.Args[2]); err != nil {
			return err
		}
	}

	if full {
		c.Out.Map(9)
	} else {
		c.Out.Map(10)
	}
	streamFigures(c, &x)
	if full {
		streamFull(c, &x, count)
		return nil
	}
	c.Out.BulkString("groups")
	c.Out.Int(int64(len(x.Groups())))
	c.Out.BulkString("first-entry")
	edgeEntry(c, &x, false)
	c.Out.BulkString("last-entry")
	edgeEntry(c, &x, true)
	return nil
}

// parseXInfoStream reads FULL [COUNT n].
func parseXInfoStream(c *command.Ctx) (full bool, count int, err error) {
	wrong := command.ReplyError("ERR unknown subcommand or wrong number of arguments for '" + shortName(c.Args[1]) + "'. Try XINFO HELP.")
	if len(c.Args) == 3 {
		return false, 0, nil
	}
	if !command.EqualFold(c.Args[3], "FULL") || len(c.Args) == 5 || len(c.Args) > 6 {
		return false, 0, wrong
	}
	if len(c.Args) == 4 {
		return true, 10, nil
	}
	if !command.EqualFold(c.Args[4], "COUNT") {
		return false, 0, wrong
	}
	n, ok := numeral.ParseInt(c.Args[5])
	if !ok {
		return false, 0, command.ErrNotInteger
	}
	if n < 0 {
		n = 10
	}
	return true, int(n), nil
}

// streamFigures replies with the first seven pairs of XINFO STREAM.
func streamFigures(c *command.Ctx, x *engine.StreamInfo) {
	c.Out.BulkString("length")
	c.Out.Int(int64(x.Length))
	c.Out.BulkString("radix-tree-keys")
	c.Out.Int(int64(x.Nodes))
	c.Out.BulkString("radix-tree-nodes")
	c.Out.Int(int64(x.RadixNodes))
	c.Out.BulkString("last-generated-id")
	streamID(c, x.Last)
	c.Out.BulkString("max-deleted-entry-id")
	streamID(c, x.MaxDeleted)
	c.Out.BulkString("entries-added")
	c.Out.Int(int64(x.Added))
	c.Out.BulkString("recorded-first-entry-id")
	streamID(c, x.First)
}

// edgeEntry replies with the first or the last entry, or with null if there is none.
func edgeEntry(c *command.Ctx, x *engine.StreamInfo, last bool) {
	if x.Length == 0 {
		c.Out.Null()
		return
	}
	x.Entries(engine.XRange{Last: engine.MaxStreamID, Count: 1, Reverse: last}, func(e *engine.StreamEntry) { streamEntry(c, e) })
}

// streamFull replies with the entries and groups of XINFO STREAM FULL.
func streamFull(c *command.Ctx, x *engine.StreamInfo, count int) {
	c.Out.BulkString("entries")
	l, n := c.Out.ArrayLater(), 0
	x.Entries(engine.XRange{Last: engine.MaxStreamID, Count: count}, func(e *engine.StreamEntry) {
		n++
		streamEntry(c, e)
	})
	c.Out.Patch(l, n)
	c.Out.BulkString("groups")
	groups := x.Groups()
	c.Out.Array(len(groups))
	for i := range groups {
		groupFull(c, &groups[i], count)
	}
}

func groupFull(c *command.Ctx, g *engine.GroupInfo, count int) {
	c.Out.Map(7)
	c.Out.BulkString("name")
	c.Out.BulkString(g.Name)
	groupPosition(c, g)
	c.Out.BulkString("pel-count")
	c.Out.Int(int64(g.Pending))
	c.Out.BulkString("pending")
	l, n := c.Out.ArrayLater(), 0
	g.All(count, func(p engine.XPending) {
		n++
		c.Out.Array(4)
		streamID(c, p.ID)
		c.Out.BulkString(p.Consumer)
		c.Out.Int(p.Time)
		c.Out.Int(p.Count)
	})
	c.Out.Patch(l, n)
	c.Out.BulkString("consumers")
	members := g.Members()
	c.Out.Array(len(members))
	for i := range members {
		consumerFull(c, g, &members[i], count)
	}
}

func consumerFull(c *command.Ctx, g *engine.GroupInfo, m *engine.XConsumer, count int) {
	c.Out.Map(5)
	c.Out.BulkString("name")
	c.Out.BulkString(m.Name)
	c.Out.BulkString("seen-time")
	c.Out.Int(m.Seen)
	c.Out.BulkString("active-time")
	c.Out.Int(m.Active)
	c.Out.BulkString("pel-count")
	c.Out.Int(int64(m.Pending))
	c.Out.BulkString("pending")
	l, n := c.Out.ArrayLater(), 0
	g.Of(m.Name, count, func(p engine.XPending) {
		n++
		c.Out.Array(3)
		streamID(c, p.ID)
		c.Out.Int(p.Time)
		c.Out.Int(p.Count)
	})
	c.Out.Patch(l, n)
}
