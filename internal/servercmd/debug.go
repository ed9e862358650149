package servercmd

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/session"
)

var specDebug = command.Spec{
	Name: "debug", Group: command.GroupServer, Since: "1.0.0", Complexity: "Depends on subcommand.",
	Summary: "A container for commands that help to test servers.",
	Flags:   adminFlags,
	SysCmd:  true,
	Sub: []*command.Spec{&specDebugChangeReplID, &specDebugDigest, &specDebugDigestValue, &specDebugError, &specDebugHelp, &specDebugListpack,
		&specDebugLoadaof, &specDebugLog, &specDebugObject, &specDebugPopulate, &specDebugProtocol, &specDebugQuicklist, &specDebugReload,
		&specDebugSdslen, &specDebugSetActiveExpire, &specDebugSleep},
}

var specDebugHelp = debugHelp()

func debugHelp() command.Spec {
	s := command.HelpSpec("debug", command.GroupServer, 0)
	s.Run = debugging(command.RunHelp)
	return s
}

// debugging wraps a handler so that it runs only for clients that enable-debug-command admits.
func debugging(run func(*command.Ctx) error) func(*command.Ctx) error {
	return func(c *command.Ctx) error {
		if !session.ServiceOf(c).Config.Allows("enable-debug-command", session.Of(c).Local()) {
			return command.ReplyError("ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", " +
				"you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.")
		}
		return run(c)
	}
}

var specDebugSleep = command.Spec{
	Name: "debug|sleep", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Keeps all data locked for a time, given in seconds with decimals.",
	Flags:   adminFlags | command.AllKeys | command.Slow,
	Args:    []command.Arg{command.Double("seconds")},
	Examples: `
> DEBUG SLEEP 0
OK
`,
	Run: debugging(runDebugSleep),
}

// maxSleep bounds DEBUG SLEEP, in seconds: more than a day is a mistake of the caller.
const maxSleep = 86400

func runDebugSleep(c *command.Ctx) error {
	timer := time.NewTimer(time.Duration(min(max(leadingNumber(c.Args[2]), 0), maxSleep) * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.Host.Context().Done():
	}
	c.Out.OK()
	return nil
}

// leadingNumber returns the number at the beginning of text, or 0 if there is none. DEBUG SLEEP of Redis
// reads any text in this way.
func leadingNumber(text []byte) float64 {
	text = bytes.TrimLeft(text, " \t\n\v\f\r")
	for n := min(len(text), 64); n > 0; n-- {
		if f, ok := numeral.ParseDouble(text[:n]); ok && f == f {
			return f
		}
	}
	return 0
}

var specDebugSetActiveExpire = command.Spec{
	Name: "debug|set-active-expire", Group: command.GroupServer, Since: "3.0.0", Complexity: "O(1)",
	Summary: "Turns active expiration off (0) and on (1). Expired keys and items stay invisible either way.",
	Flags:   adminFlags | command.SelfLock,
	Args:    []command.Arg{command.Int("on")},
	Examples: `
> DEBUG SET-ACTIVE-EXPIRE 0
OK
> SET k v PX 10
OK
~ 20ms
> GET k
(nil)
> DEBUG SET-ACTIVE-EXPIRE 1
OK
`,
	Run: debugging(runDebugSetActiveExpire),
}

func runDebugSetActiveExpire(c *command.Ctx) error {
	n, ok := numeral.ParseInt(c.Args[2])
	if !ok {
		return command.ErrNotInteger
	}
	c.Tx.SetActiveExpiry(n != 0)
	c.Out.OK()
	return nil
}

var specDebugObject = command.Spec{
	Name: "debug|object", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(N) where N is the length of the value",
	Summary: "Describes how a value is stored.",
	Flags:   adminFlags | command.ReadOnly,
	Args:    []command.Arg{command.Key("key", command.Meta)},
	Replies: "One line. serializedlength is the value's length in a snapshot without compression; its address is left out.",
	Examples: `
> SET k v
OK
> DEBUG OBJECT k
Value at:0x0 refcount:1 encoding:embstr serializedlength:2 $_
> DEBUG OBJECT nothing
(error) ERR no such key
`,
	Run: debugging(runDebugObject),
}

func runDebugObject(c *command.Ctx) error {
	key := c.Args[2]
	if err := c.LongWalk(key); err != nil {
		return err
	}
	idle, ok := c.Tx.IdleTime(key)
	if !ok {
		return command.ErrNoSuchKey
	}
	length, _ := c.Tx.SerializedSize(key)
	c.Out.Simple(fmt.Sprintf("Value at:0x0 refcount:1 encoding:%s serializedlength:%d lru:%d lru_seconds_idle:%d",
		c.Tx.Encoding(key), length, (c.Now()/1e6-idle)&(1<<24-1), idle))
	return nil
}

var specDebugQuicklist = command.Spec{
	Name: "debug|quicklist-packed-threshold", Group: command.GroupServer, Since: "7.0.0", Complexity: "O(1)",
	Summary: "Accepts the size from which on Redis gives a list's element a node of its own. It has no effect in ebb.",
	Flags:   adminFlags,
	Args:    []command.Arg{command.Str("size")},
	Examples: `
> DEBUG QUICKLIST-PACKED-THRESHOLD 100kb
OK
`,
	Run: debugging(runDebugQuicklist),
}

const errPackedThreshold = command.ReplyError("ERR argument must be a memory value bigger than 1 and smaller than 4gb")

func runDebugQuicklist(c *command.Ctx) error {
	if n, ok := config.ParseMemory(string(c.Args[2])); !ok || n >= math.MaxUint32 {
		return errPackedThreshold
	}
	c.Out.OK()
	return nil
}

var specDebugDigest = command.Spec{
	Name: "debug|digest", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(N) where N is the size of all data",
	Summary: "Returns a signature of all data: equal data has equal ones, on Redis up to 7.2 as well.",
	Flags:   adminFlags | command.AllKeys | command.Slow,
	Replies: "40 hex digits; zeros if there is no data. The signature covers whether a key has a deadline, not its value.",
	Examples: `
> DEBUG DIGEST
0000000000000000000000000000000000000000
> SET k v
OK
> DEBUG DIGEST
264ccf65edec66bccfa7cc659414ccca432057d2
`,
	Run: debugging(runDebugDigest),
}

func runDebugDigest(c *command.Ctx) error {
	d := digestOf(c.Tx)
	c.Out.Simple(d.String())
	return nil
}

var specDebugDigestValue = command.Spec{
	Name: "debug|digest-value", Group: command.GroupServer, Since: "5.0.0", Complexity: "O(N) where N is the size of the values",
	Summary: "Returns signatures of values, independent of the names of their keys.",
	Flags:   adminFlags | command.ReadOnly,
	Args:    []command.Arg{command.ManyKeys("key", command.Read)},
	Examples: `
> SET k v
OK
> DEBUG DIGEST-VALUE k nothing
1) d79ee9fe5d5ad902d7f6620efc3b07b75ddd742f
2) 0000000000000000000000000000000000000000
`,
	Run: debugging(runDebugDigestValue),
}

func runDebugDigestValue(c *command.Ctx) error {
	size := 0
	for _, key := range c.Args[2:] {
		size += c.Tx.ValueSize(key) * command.WalkBytes
	}
	if err := c.Long(size); err != nil {
		return err
	}
	c.Out.Array(len(c.Args) - 2)
	for _, key := range c.Args[2:] {
		var d digest
		if k, ok := c.Tx.Lookup(key); ok {
			d.value(k)
		}
		c.Out.Simple(d.String())
	}
	return nil
}

var specDebugPopulate = command.Spec{
	Name: "debug|populate", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(N) where N is the number of keys",
	Summary: "Creates those of the string keys key:0, key:1 and so on that do not exist yet.",
	Flags:   adminFlags&^command.Loading | command.SelfLock | command.Slow, // the keys may be some that no file has
	Args: []command.Arg{command.Int("count"),
		command.Opt(command.Block("options", command.Str("prefix"), command.Opt(command.Int("size"))))},
	Replies: "OK. The values are value:0, value:1 and so on, cut or filled with zero bytes to size.",
	Examples: `
> DEBUG POPULATE 3
OK
> DBSIZE
(integer) 3
> GET key:2
"value:2"
> DEBUG POPULATE 1 pre 10
OK
> GET pre:0
"value:0\x00\x00\x00"
`,
	Run: debugging(runDebugPopulate),
}

func runDebugPopulate(c *command.Ctx) error {
	count, prefix, size := int64(0), "key", int64(0)
	positive := func(b []byte, n *int64) (ok bool) {
		*n, ok = numeral.ParseInt(b)
		return ok && *n >= 0
	}
	if len(c.Args) > 5 {
		return wrongSubcommand(c)
	}
	if !positive(c.Args[2], &count) || len(c.Args) > 4 && !positive(c.Args[4], &size) {
		return command.ReplyError("ERR value is out of range, must be positive")
	}
	if size > int64(session.ServiceOf(c).DB.MaxString()) {
		return command.ErrTooLarge
	}
	if len(c.Args) > 3 {
		prefix = string(c.Args[3])
	}
	if err := populate(c, count, prefix, int(size)); err != nil {
		return err
	}
	c.Out.OK()
	return nil
}

// populate locks one shard at a time, unless it runs inside EXEC.
func populate(c *command.Ctx, count int64, prefix string, size int) error {
	key, value := []byte(prefix+":"), []byte("value:")
	fill := make([]byte, size)
	nk, nv := len(key), len(value)
	held, db := c.Tx.Begun(), c.Tx.Selected()
	for i := range count {
		if err := c.Host.Context().Err(); err != nil {
			return err
		}
		key, value = strconv.AppendInt(key[:nk], i, 10), strconv.AppendInt(value[:nv], i, 10)
		v := value
		if size > 0 {
			clear(fill)
			copy(fill, value)
			v = fill
		}
		if !held {
			c.Tx.LockKey(db, key)
		}
		_, _, err := c.Tx.Set(key, v, engine.SetOptions{IfAbsent: true}, nil)
		if !held {
			c.Tx.Unlock()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
