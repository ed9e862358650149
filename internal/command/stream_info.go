package command

import (
	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/resp"
)

var specXInfo = Spec{
	Name: "xinfo", Group: GroupStream, Since: "5.0.0", Complexity: "Depends on subcommand.",
	Summary: "A container for stream introspection commands.",
	Examples: `
> XGROUP CREATE s g $ MKSTREAM
OK
> XINFO CONSUMERS s g
(empty array)
`,
	Sub: []*Spec{&specXInfoConsumers, &specXInfoGroups, &specXInfoHelp, &specXInfoStream},
}

var specXInfoHelp = HelpSpec("xinfo", GroupStream, 0)

var specXInfoConsumers = Spec{
	Name: "xinfo|consumers", Group: GroupStream, Since: "5.0.0", Complexity: "O(1)",
	Summary: "Returns a list of the consumers in a consumer group.",
	Flags:   ReadOnly,
	Args:    []Arg{Key("key", Read), Str("groupname")},
	Tips:    []string{"nondeterministic_output"},
	History: []Change{{"7.2.0", "Added the `inactive` field, and changed the meaning of `idle`."}},
	Replies: "For each consumer: its name, how many entries are pending for it, and the milliseconds since it last tried (`idle`) and since it last got something (`inactive`, -1: never).",
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

func runXInfoConsumers(c *Ctx) error {
	x, err := c.Tx.XInfo(c.Args[2])
	if err != nil {
		return err
	}
	g, ok := x.Group(c.Args[3])
	if !ok {
		return ReplyError("NOGROUP No such consumer group '" + string(c.Args[3]) + "' for key name '" + string(c.Args[2]) + "'")
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

var specXInfoGroups = Spec{
	Name: "xinfo|groups", Group: GroupStream, Since: "5.0.0", Complexity: "O(1)",
	Summary: "Returns a list of the consumer groups of a stream.",
	Flags:   ReadOnly,
	Args:    []Arg{Key("key", Read)},
	History: []Change{{"7.0.0", "Added the `entries-read` and `lag` fields"}},
	Replies: "For each group: its name, how many consumers and pending entries it has, the last id delivered, how many entries it has read, and how many it has still to read; the last two are nil where deletions hide them.",
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

func runXInfoGroups(c *Ctx) error {
	x, err := c.Tx.XInfo(c.Args[2])
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
		c.groupPosition(g)
	}
	return nil
}

// groupPosition replies how far a group has read: six elements of a map.
func (c *Ctx) groupPosition(g *engine.GroupInfo) {
	c.Out.BulkString("last-delivered-id")
	c.streamID(g.Last)
	c.Out.BulkString("entries-read")
	c.intOrNull(g.Read, g.Read >= 0)
	c.Out.BulkString("lag")
	c.intOrNull(g.Lag, g.Known)
}

var specXInfoStream = Spec{
	Name: "xinfo|stream", Group: GroupStream, Since: "5.0.0", Complexity: "O(1)",
	Summary: "Returns information about a stream.",
	Flags:   ReadOnly,
	Args:    []Arg{Key("key", Read), Opt(Block("FULL", Opt(TokenArg("COUNT", Int("count")))))},
	History: []Change{{"6.0.0", "Added the `FULL` modifier."},
		{"7.0.0", "Added the `max-deleted-entry-id`, `entries-added`, `recorded-first-entry-id`, `entries-read` and `lag` fields"},
		{"7.2.0", "Added the `active-time` field, and changed the meaning of `seen-time`."}},
	Replies: "A map. FULL shows entries, groups, pending entries and consumers, COUNT of each at most (10 by default, 0 for all). The radix-tree figures are those that Redis would have, about.",
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

func runXInfoStream(c *Ctx) error {
	full, count, err := c.parseXInfoStream()
	if err != nil {
		return err
	}
	x, err := c.Tx.XInfo(c.Args[2])
	if err != nil {
		return err
	}
	if full && count == 0 {
		if err := c.longWalk(c.Args[2]); err != nil {
			return err
		}
	}

	if full {
		c.Out.Map(9)
	} else {
		c.Out.Map(10)
	}
	c.streamFigures(&x)
	if full {
		c.streamFull(&x, count)
		return nil
	}
	c.Out.BulkString("groups")
	c.Out.Int(int64(len(x.Groups())))
	c.Out.BulkString("first-entry")
	c.edgeEntry(&x, false)
	c.Out.BulkString("last-entry")
	c.edgeEntry(&x, true)
	return nil
}

// parseXInfoStream reads FULL [COUNT n].
func (c *Ctx) parseXInfoStream() (full bool, count int, err error) {
	wrong := ReplyError("ERR unknown subcommand or wrong number of arguments for '" + shortName(c.Args[1]) + "'. Try XINFO HELP.")
	if len(c.Args) == 3 {
		return false, 0, nil
	}
	if !EqualFold(c.Args[3], "FULL") || len(c.Args) == 5 || len(c.Args) > 6 {
		return false, 0, wrong
	}
	if len(c.Args) == 4 {
		return true, 10, nil
	}
	if !EqualFold(c.Args[4], "COUNT") {
		return false, 0, wrong
	}
	n, ok := resp.ParseInt(c.Args[5])
	if !ok {
		return false, 0, ErrNotInteger
	}
	if n < 0 {
		n = 10
	}
	return true, int(n), nil
}

// streamFigures replies the first seven pairs of XINFO STREAM.
func (c *Ctx) streamFigures(x *engine.StreamInfo) {
	c.Out.BulkString("length")
	c.Out.Int(int64(x.Length))
	c.Out.BulkString("radix-tree-keys")
	c.Out.Int(int64(x.Nodes))
	c.Out.BulkString("radix-tree-nodes")
	c.Out.Int(int64(x.RadixNodes))
	c.Out.BulkString("last-generated-id")
	c.streamID(x.Last)
	c.Out.BulkString("max-deleted-entry-id")
	c.streamID(x.MaxDeleted)
	c.Out.BulkString("entries-added")
	c.Out.Int(int64(x.Added))
	c.Out.BulkString("recorded-first-entry-id")
	c.streamID(x.First)
}

// edgeEntry replies the first or the last entry, nil if there is none.
func (c *Ctx) edgeEntry(x *engine.StreamInfo, last bool) {
	if x.Length == 0 {
		c.Out.Null()
		return
	}
	x.Entries(engine.XRange{Last: engine.MaxStreamID, Count: 1, Reverse: last}, func(e *engine.StreamEntry) { streamEntry(c, e) })
}

// streamFull replies the entries and groups of XINFO STREAM FULL.
func (c *Ctx) streamFull(x *engine.StreamInfo, count int) {
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
		c.groupFull(&groups[i], count)
	}
}

func (c *Ctx) groupFull(g *engine.GroupInfo, count int) {
	c.Out.Map(7)
	c.Out.BulkString("name")
	c.Out.BulkString(g.Name)
	c.groupPosition(g)
	c.Out.BulkString("pel-count")
	c.Out.Int(int64(g.Pending))
	c.Out.BulkString("pending")
	l, n := c.Out.ArrayLater(), 0
	g.All(count, func(p engine.XPending) {
		n++
		c.Out.Array(4)
		c.streamID(p.ID)
		c.Out.BulkString(p.Consumer)
		c.Out.Int(p.Time)
		c.Out.Int(p.Count)
	})
	c.Out.Patch(l, n)
	c.Out.BulkString("consumers")
	members := g.Members()
	c.Out.Array(len(members))
	for i := range members {
		c.consumerFull(g, &members[i], count)
	}
}

func (c *Ctx) consumerFull(g *engine.GroupInfo, m *engine.XConsumer, count int) {
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
		c.streamID(p.ID)
		c.Out.Int(p.Time)
		c.Out.Int(p.Count)
	})
	c.Out.Patch(l, n)
}
