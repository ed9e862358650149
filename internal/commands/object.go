package commands

import "github.com/ebbdb/ebb/internal/command"

var specObject = command.Spec{
	Name: "object", Group: command.GroupGeneric, Since: "2.2.3", Complexity: "Depends on subcommand.",
	Summary: "A container for commands that show how a value is stored.",
	Examples: `
> SET k 12
OK
> OBJECT ENCODING k
"int"
`,
	Sub: []*command.Spec{&specObjectEncoding, &specObjectFreq, &specObjectHelp, &specObjectIdleTime, &specObjectRefCount},
}

var specObjectHelp = objectHelp()

func objectHelp() command.Spec {
	s := command.HelpSpec("object", command.GroupGeneric, 0)
	s.Since = "6.2.0"
	return s
}

var specObjectEncoding = command.Spec{
	Name: "object|encoding", Group: command.GroupGeneric, Since: "2.2.3", Complexity: "O(1)",
	Summary: "Returns the name of the encoding that Redis would use for a value.",
	Flags:   command.ReadOnly | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Meta)},
	Tips:    []string{"nondeterministic_output"},
	Replies: "The name, or nil if there is no such key.",
	Examples: `
> SET k 12
OK
> OBJECT ENCODING k
"int"
> SET k hello
OK
> OBJECT ENCODING k
"embstr"
> APPEND k !
(integer) 6
> OBJECT ENCODING k
"raw"
> OBJECT ENCODING nothing
(nil)
`,
	Run: runObjectEncoding,
}

func runObjectEncoding(c *command.Ctx) error {
	name := c.Tx.Encoding(c.Args[2])
	if name == "" {
		c.Out.Null()
		return nil
	}
	c.Out.BulkString(name)
	return nil
}

var specObjectFreq = command.Spec{
	Name: "object|freq", Group: command.GroupGeneric, Since: "4.0.0", Complexity: "O(1)",
	Summary:  "Returns a key's logarithmic access counter, 0 to 255, under an LFU maxmemory-policy.",
	Flags:    command.ReadOnly | command.Blind,
	Args:     []command.Arg{command.Key("key", command.Meta)},
	Tips:     []string{"nondeterministic_output"},
	Replies:  "The counter, or nil if there is no such key.",
	Examples: "> OBJECT FREQ nothing\n(nil)\n> SET k v\nOK\n> OBJECT FREQ k\n(error) " + string(errNoLFU) + "\n",
	Run:      runObjectFreq,
}

const (
	errNoLFU = command.ReplyError("ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note " +
		"that when switching between policies at runtime LRU and LFU data will take some time to adjust.")
	errLFU = command.ReplyError("ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when " +
		"switching between policies at runtime LRU and LFU data will take some time to adjust.")
)

func runObjectFreq(c *command.Ctx) error {
	n, ok := c.Tx.Frequency(c.Args[2])
	if ok && !c.DB.LFU() {
		return errNoLFU
	}
	intOrNull(c, n, ok)
	return nil
}

var specObjectIdleTime = command.Spec{
	Name: "object|idletime", Group: command.GroupGeneric, Since: "2.2.3", Complexity: "O(1)",
	Summary: "Returns the seconds since a key was last accessed. It is not an access itself.",
	Flags:   command.ReadOnly | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Meta)},
	Tips:    []string{"nondeterministic_output"},
	Replies: "The seconds, or nil if there is no such key.",
	Examples: `
> SET k v
OK
~ 5000ms
> OBJECT IDLETIME k
(integer) 5
> GET k
"v"
> OBJECT IDLETIME k
(integer) 0
`,
	Run: runObjectIdleTime,
}

func runObjectIdleTime(c *command.Ctx) error {
	n, ok := c.Tx.IdleTime(c.Args[2])
	if ok && c.DB.LFU() {
		return errLFU
	}
	intOrNull(c, n, ok)
	return nil
}

var specObjectRefCount = command.Spec{
	Name: "object|refcount", Group: command.GroupGeneric, Since: "2.2.3", Complexity: "O(1)",
	Summary: "Returns the number of references to a value that Redis would have: 2^31-1 for integers below 10000, else 1.",
	Flags:   command.ReadOnly | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Meta)},
	Tips:    []string{"nondeterministic_output"},
	Replies: "The number, or nil if there is no such key.",
	Examples: `
> SET k v
OK
> OBJECT REFCOUNT k (differs: refcount-shared)
(integer) 1
> SET k 12
OK
> OBJECT REFCOUNT k (differs: refcount-shared)
(integer) 2147483647
`,
	Run: runObjectRefCount,
}

func runObjectRefCount(c *command.Ctx) error {
	n, ok := c.Tx.RefCount(c.Args[2])
	intOrNull(c, n, ok)
	return nil
}

// intOrNull replies with a number, or with null if ok is false.
func intOrNull(c *command.Ctx, n int64, ok bool) {
	if ok {
		c.Out.Int(n)
	} else {
		c.Out.Null()
	}
}
