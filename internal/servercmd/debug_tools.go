package servercmd

import (
	"fmt"
	"strings"

	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/wire"
)

// These are the subcommands of DEBUG that the test suites of servers and clients use.

var specDebugListpack = command.Spec{
	Name: "debug|listpack", Group: command.GroupServer, Since: "7.0.0", Complexity: "O(N) where N is the length of the value",
	Summary: "Describes the compact form of a small collection in the server's log.",
	Flags:   adminFlags | command.ReadOnly,
	Args:    []command.Arg{command.Key("key", command.Meta)},
	Replies: "A line that says so, the one of Redis, for a value whose OBJECT ENCODING is listpack. The log gets the " +
		"number of its items, and its bytes in memory and in a snapshot.",
	Examples: `
> RPUSH l a b
(integer) 2
> DEBUG LISTPACK l
Listpack structure printed on stdout
> SET k v
OK
> DEBUG LISTPACK k
(error) ERR Not a listpack encoded object.
`,
	Run: debugging(runDebugListpack),
}

func runDebugListpack(c *command.Ctx) error {
	key := c.Args[2]
	if err := c.LongWalk(key); err != nil {
		return err
	}
	k, ok := c.Tx.Lookup(key)
	switch {
	case !ok:
		return command.ErrNoSuchKey
	case c.Tx.Encoding(key) != "listpack":
		return command.ReplyError("ERR Not a listpack encoded object.")
	}
	items := 0
	k.Items(func(engine.Item) { items++ })
	memory, _ := c.Tx.MemoryUsage(key)
	length, _ := c.Tx.SerializedSize(key)
	session.ServiceOf(c).Log.Info("DEBUG LISTPACK", "key", cleantext.Line(string(command.Clip(key, 128)), 128), "kind", k.Kind().String(),
		"items", items, "memory",
		memory, "snapshot", length)
	c.Out.Simple("Listpack structure printed on stdout")
	return nil
}

var specDebugSdslen = command.Spec{
	Name: "debug|sdslen", Group: command.GroupServer, Since: "3.0.0", Complexity: "O(1)",
	Summary: "Returns the lengths of a key and of its string.",
	Flags:   adminFlags | command.ReadOnly,
	Args:    []command.Arg{command.Key("key", command.Meta)},
	Replies: "One line in the form of Redis. Key and value are in one record of exactly their length: avail is 0, and val_zmalloc is " +
		"the reply of MEMORY USAGE. A string that is a number has no text in memory, and gets an error.",
	Examples: `
> SET k text
OK
> DEBUG SDSLEN k
key_sds_len:1, key_sds_avail:0, key_zmalloc: 1, val_sds_len:4, val_sds_avail:0, val_zmalloc: $_
> SET n 12
OK
> DEBUG SDSLEN n
(error) ERR Not an sds encoded string.
`,
	Run: debugging(runDebugSdslen),
}

func runDebugSdslen(c *command.Ctx) error {
	key := c.Args[2]
	switch c.Tx.Encoding(key) {
	case "":
		return command.ErrNoSuchKey
	case "raw", "embstr":
	default:
		return command.ReplyError("ERR Not an sds encoded string.")
	}
	n, err := c.Tx.StrLen(key)
	if err != nil {
		return err
	}
	memory, _ := c.Tx.MemoryUsage(key)
	c.Out.Simple(fmt.Sprintf("key_sds_len:%d, key_sds_avail:0, key_zmalloc: %d, val_sds_len:%d, val_sds_avail:0, val_zmalloc: %d",
		len(key), len(key), n, memory))
	return nil
}

var specDebugError = command.Spec{
	Name: "debug|error", Group: command.GroupServer, Since: "3.0.0", Complexity: "O(1)",
	Summary: "Replies with an error, so that a client can test its handling of errors.",
	Flags:   adminFlags,
	Args:    []command.Arg{command.Str("message")},
	Replies: "The error, whose first word is its code. Line ends become spaces.",
	Examples: `
> DEBUG ERROR "MOVED 1 127.0.0.1:7000"
(error) MOVED 1 127.0.0.1:7000
`,
	Run: debugging(func(c *command.Ctx) error { return command.ReplyError(cleantext.Reply(string(c.Args[2]))) }),
}

var specDebugLog = command.Spec{
	Name: "debug|log", Group: command.GroupServer, Since: "6.2.0", Complexity: "O(1)",
	Summary: "Writes a line into the server's log.",
	Flags:   adminFlags,
	Args:    []command.Arg{command.Str("message")},
	Examples: `
> DEBUG LOG "the test begins"
OK
`,
	Run: debugging(runDebugLog),
}

func runDebugLog(c *command.Ctx) error {
	const limit = session.MaxLogged
	session.ServiceOf(c).Log.Warn("DEBUG LOG", "message", cleantext.Line(string(command.Clip(c.Args[2], limit)), limit))
	c.Out.OK()
	return nil
}

// protocolSamples are the replies of DEBUG PROTOCOL, which the tests of client libraries
// compare with those of Redis.
var protocolSamples = []struct {
	name  string
	write func(c *command.Ctx)
}{
	{"string", func(c *command.Ctx) { c.Out.BulkString("Hello World") }},
	{"integer", func(c *command.Ctx) { c.Out.Int(12345) }},
	{"double", func(c *command.Ctx) { c.Out.Double(3.141) }},
	{"bignum", func(c *command.Ctx) { c.Out.BigNumber("1234567999999999999999999999999999999") }},
	{"null", func(c *command.Ctx) { c.Out.Null() }},
	{"array", func(c *command.Ctx) { c.Out.Array(3); threeInts(c.Out) }},
	{"set", func(c *command.Ctx) { c.Out.Set(3); threeInts(c.Out) }},
	{"map", protocolMap},
	{"attrib", protocolAttribute},
	{"push", protocolPush},
	{"verbatim", func(c *command.Ctx) { c.Out.Verbatim("txt", "This is a verbatim\nstring") }},
	{"true", func(c *command.Ctx) { c.Out.Bool(true) }},
	{"false", func(c *command.Ctx) { c.Out.Bool(false) }},
}

func threeInts(w *wire.Writer) {
	for i := range int64(3) {
		w.Int(i)
	}
}

func protocolMap(c *command.Ctx) {
	c.Out.Map(3)
	for i := range int64(3) {
		c.Out.Int(i)
		c.Out.Bool(i == 1)
	}
}

func protocolAttribute(c *command.Ctx) {
	if c.Out.Attribute(1) {
		c.Out.BulkString("key-popularity")
		c.Out.Array(2)
		c.Out.BulkString("key:123")
		c.Out.Int(90)
	}
	c.Out.BulkString("Some real reply following the attribute")
}

// protocolPush writes the reply, and then the message. An embedded caller gets no message.
func protocolPush(c *command.Ctx) {
	c.Out.BulkString("Some real reply following the push reply")
	if c.Out.Collecting() {
		return
	}
	c.Out.Push(2)
	c.Out.BulkString("server-cpu-usage")
	c.Out.Int(42)
}

var specDebugProtocol = command.Spec{
	Name: "debug|protocol", Group: command.GroupServer, Since: "6.0.0", Complexity: "O(1)",
	Summary: "Replies with a value of a type of the protocol, so that a client can test how it reads it.",
	Flags:   adminFlags,
	Args:    []command.Arg{command.Str("type")},
	Replies: "A value of the type: string, integer, double, bignum, null, array, set, map, attrib, push, verbatim, true " +
		"or false. RESP2 has no push.",
	Examples: `
> DEBUG PROTOCOL integer
(integer) 12345
> DEBUG PROTOCOL array
1) (integer) 0
2) (integer) 1
3) (integer) 2
`,
	Run: debugging(runDebugProtocol),
}

func runDebugProtocol(c *command.Ctx) error {
	names := make([]string, 0, len(protocolSamples))
	for _, s := range protocolSamples {
		if !command.EqualFold(c.Args[2], s.name) {
			names = append(names, s.name)
			continue
		}
		if s.name == "push" && c.Out.Proto != 3 {
			return command.ReplyError("ERR RESP2 is not supported by this command")
		}
		s.write(c)
		return nil
	}
	return command.ReplyError("ERR Wrong protocol type name. Please use one of the following: " + strings.Join(names, "|"))
}
