package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/numeral"
)

var genericSpecs = []*command.Spec{&specDel, &specUnlink, &specExists, &specTouch, &specType, &specRename, &specRenameNX,
	&specCopy, &specMove, &specKeys, &specScan, &specRandomKey, &specObject, &specDBSize, &specFlushDB, &specFlushAll,
	&specSwapDB}

var errSameObject = command.ReplyError("ERR source and destination objects are the same")

var specDel = command.Spec{
	Name: "del", Group: command.GroupGeneric, Since: "1.0.0",
	Complexity: "O(N) where N is the number of keys that will be removed.",
	Summary:    "Deletes one or more keys.",
	Flags:      command.Write | command.Blind,
	Args:       []command.Arg{command.ManyKeys("key", command.Remove)},
	Tips:       []string{"request_policy:multi_shard", "response_policy:agg_sum"},
	Replies:    "The number of keys that were deleted.",
	Examples: `
> SET a 1
OK
> SET b 2
OK
> DEL a b c
(integer) 2
`,
	Run: runDel,
}

func runDel(c *command.Ctx) error {
	n := int64(0)
	for _, key := range c.Args[1:] {
		n += command.BoolToInt(c.Tx.Del(key))
	}
	c.Out.Int(n)
	return nil
}

var specUnlink = command.Spec{
	Name: "unlink", Group: command.GroupGeneric, Since: "4.0.0",
	Complexity: "O(N) where N is the number of keys that will be removed.",
	Summary:    "Deletes one or more keys, as DEL does: neither waits for the memory of large values.",
	Flags:      command.Write | command.Fast | command.Blind,
	Args:       []command.Arg{command.ManyKeys("key", command.Remove)},
	Tips:       []string{"request_policy:multi_shard", "response_policy:agg_sum"},
	Replies:    "The number of keys that were deleted.",
	Examples: `
> SET a 1
OK
> UNLINK a b
(integer) 1
`,
	Run: runDel,
}

var specExists = command.Spec{
	Name: "exists", Group: command.GroupGeneric, Since: "1.0.0", Complexity: "O(N) where N is the number of keys to check.",
	Summary: "Counts how many of the keys exist.",
	Flags:   command.ReadOnly | command.Fast | command.Blind,
	Args:    []command.Arg{command.ManyKeys("key", command.Meta)},
	Tips:    []string{"request_policy:multi_shard", "response_policy:agg_sum"},
	History: []command.Change{{Since: "3.0.3", Text: "Accepts multiple `key` arguments."}},
	Replies: "The number of keys that exist; one given twice counts twice.",
	Examples: `
> SET a 1
OK
> EXISTS a b
(integer) 1
> EXISTS a a
(integer) 2
`,
	Run: runExists,
}

func runExists(c *command.Ctx) error {
	n := int64(0)
	for _, key := range c.Args[1:] {
		n += command.BoolToInt(c.Tx.Exists(key))
	}
	c.Out.Int(n)
	return nil
}

var specTouch = command.Spec{
	Name: "touch", Group: command.GroupGeneric, Since: "3.2.1", Complexity: "O(N) where N is the number of keys that will be touched.",
	Summary: "Counts as an access to keys, and returns how many of them exist. It extends sliding deadlines.",
	Flags:   command.ReadOnly | command.Fast | command.Blind,
	Lacks:   accessLacksReadOnly,
	Args:    []command.Arg{command.ManyKeys("key", command.Meta)},
	Tips:    []string{"request_policy:multi_shard", "response_policy:agg_sum"},
	Replies: "The number of keys that exist.",
	Examples: `
> SET a 1
OK
> TOUCH a b
(integer) 1
~ 3000ms
> OBJECT IDLETIME a
(integer) 3
> TOUCH a
(integer) 1
> OBJECT IDLETIME a
(integer) 0
`,
	Run: runTouch,
}

// accessLacksReadOnly implements Spec.Lacks: TOUCH has the flag readonly as in Redis, but changes idle times
// and sliding deadlines.
func accessLacksReadOnly([][]byte) command.Flags { return command.ReadOnly }

func runTouch(c *command.Ctx) error {
	// CLIENT NO-TOUCH applies to the other commands of the client, not to TOUCH.
	c.Tx.NoTouch(false)
	defer c.Tx.NoTouch(c.Host.NoTouch())
	n := int64(0)
	for _, key := range c.Args[1:] {
		n += command.BoolToInt(c.Tx.Touch(key))
	}
	c.Out.Int(n)
	return nil
}

var specType = command.Spec{
	Name: "type", Group: command.GroupGeneric, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Determines the type of value stored at a key.",
	Flags:   command.ReadOnly | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Meta)},
	Replies: "The type's name; \"none\" if there is no such key.",
	Examples: `
> SET k v
OK
> TYPE k
string
> TYPE nothing
none
`,
	Run: runType,
}

func runType(c *command.Ctx) error {
	c.Out.Simple(c.Tx.Type(c.Args[1]).String())
	return nil
}

var specRename = command.Spec{
	Name: "rename", Group: command.GroupGeneric, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Renames a key, and replaces a key of the new name.",
	Flags:   command.Write | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Access|command.Delete), command.Key("newkey", command.Overwrite)},
	Replies: "OK, or an error if there is no such key.",
	Examples: `
> SET a 1 EX 10
OK
> SET b 2
OK
> RENAME a b
OK
> GET b
"1"
> TTL b
(integer) 10
> RENAME a b
(error) ERR no such key
`,
	Run: runRename,
}

func runRename(c *command.Ctx) error {
	if err := c.Host.MayName(c, c.Tx.Named(c.Args[1])); err != nil {
		return err
	}
	if _, err := c.Tx.Rename(c.Args[1], c.Args[2], false); err != nil {
		return err
	}
	c.Out.OK()
	return nil
}

var specRenameNX = command.Spec{
	Name: "renamenx", Group: command.GroupGeneric, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Renames a key only when no key has the new name.",
	Flags:   command.Write | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Access|command.Delete), command.Key("newkey", command.KeyOW|command.Insert)},
	History: []command.Change{{Since: "3.2.0", Text: "The command no longer returns an error when source and " +
		"destination names are the same."}},
	Replies: "1 if the key was renamed, 0 if a key of the new name exists, an error if there is no such key.",
	Examples: `
> SET a 1
OK
> SET b 2
OK
> RENAMENX a b
(integer) 0
> RENAMENX a c
(integer) 1
> GET c
"1"
`,
	Run: runRenameNX,
}

func runRenameNX(c *command.Ctx) error {
	if err := c.Host.MayName(c, c.Tx.Named(c.Args[1])); err != nil {
		return err
	}
	done, err := c.Tx.Rename(c.Args[1], c.Args[2], true)
	if err != nil {
		return err
	}
	c.Out.Int(command.BoolToInt(done))
	return nil
}

var specCopy = command.Spec{
	Name: "copy", Group: command.GroupGeneric, Since: "6.2.0", Complexity: "O(N) where N is the size of the value.",
	Summary: "Copies a key, with its deadline, to another key.",
	Flags:   command.Write | command.DenyOOM | command.Blind,
	Args: []command.Arg{command.Key("source", command.Read), command.Key("destination", command.Overwrite),
		command.Opt(command.TokenArg("DB", command.Int("destination-db"))),
		command.Opt(command.Token("REPLACE"))},
	Replies: "1 if it was copied, 0 if there is no such key, or one at the destination and no REPLACE.",
	Examples: `
> SET a 1
OK
> COPY a b
(integer) 1
> COPY a b
(integer) 0
> SET a 2
OK
> COPY a b REPLACE
(integer) 1
> GET b
"2"
`,
	Run: runCopy,
}

func runCopy(c *command.Ctx) error {
	from, to := c.Args[1], c.Args[2]
	dbi, replace := c.Tx.Selected(), false
	for i := 3; i < len(c.Args); i++ {
		switch {
		case command.EqualFold(c.Args[i], "REPLACE"):
			replace = true
		case command.EqualFold(c.Args[i], "DB") && i+1 < len(c.Args):
			i++
			var err error
			if dbi, err = database(c, c.Args[i]); err != nil {
				return err
			}
			if dbi != 0 && c.Host.Clustered() {
				return command.ErrNoDatabases("Copying to another database")
			}
		default:
			return command.ErrSyntax
		}
	}
	if dbi == c.Tx.Selected() && string(from) == string(to) {
		return errSameObject
	}

	if err := c.Host.MayName(c, c.Tx.Named(from)); err != nil {
		return err
	}
	done, err := c.Tx.Copy(from, to, dbi, replace)
	if err != nil {
		return err
	}

	c.Out.Int(command.BoolToInt(done))
	return nil
}

// database parses the number of a database.
func database(c *command.Ctx, arg []byte) (int, error) {
	n, ok := numeral.ParseInt(arg)
	switch {
	case !ok:
		return 0, command.ErrNotInteger
	case n != int64(int32(n)):
		return 0, command.ErrInt32
	case n < 0 || n >= int64(c.DB.Databases()):
		return 0, command.ErrDBIndex
	}
	return int(n), nil
}

var specMove = command.Spec{
	Name: "move", Group: command.GroupGeneric, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Moves a key, with its deadline, to another database.",
	Flags:   command.Write | command.Fast | command.Blind,
	Args:    []command.Arg{command.Key("key", command.Access|command.Update), command.Int("db")},
	Replies: "1 if it was moved, 0 if there is no such key, or one in the other database.",
	Examples: `
> SET k v
OK
> MOVE k 1
(integer) 1
> EXISTS k
(integer) 0
> MOVE k 1
(integer) 0
> SET k v
OK
> MOVE k 0
(error) ERR source and destination objects are the same
`,
	Run: runMove,
}

func runMove(c *command.Ctx) error {
	if c.Host.Clustered() {
		return command.ErrNoDatabases("MOVE")
	}
	dbi, err := database(c, c.Args[2])
	if err != nil {
		return err
	}
	if dbi == c.Tx.Selected() {
		return errSameObject
	}

	if err := c.Host.MayName(c, c.Tx.Named(c.Args[1])); err != nil {
		return err
	}
	done, err := c.Tx.Move(c.Args[1], dbi)
	if err != nil {
		return err
	}

	c.Out.Int(command.BoolToInt(done))
	return nil
}

var specDBSize = command.Spec{
	Name: "dbsize", Group: command.GroupServer, Since: "1.0.0", Complexity: "O(1)",
	Summary:    "Returns the number of keys in the selected database. Expired keys do not count, removed or not.",
	Flags:      command.ReadOnly | command.Fast | command.AllKeys,
	FanOut:     command.FanOutSum,
	Categories: command.CatKeyspace,
	Tips:       []string{"request_policy:all_shards", "response_policy:agg_sum"},
	Examples: `
> SET a 1
OK
> SET b 2 PX 100
OK
> DBSIZE
(integer) 2
~ 101ms
> DBSIZE
(integer) 1
`,
	Run: runDBSize,
}

func runDBSize(c *command.Ctx) error {
	c.Out.Int(int64(c.Tx.Size()))
	return nil
}

// flushArgs returns the grammar of FLUSHDB and FLUSHALL.
func flushArgs() []command.Arg {
	return []command.Arg{command.Opt(command.OneOf("async", command.Token("ASYNC").Since("4.0.0"), command.Token("SYNC").Since("6.2.0")))}
}

var flushHistory = []command.Change{{Since: "4.0.0", Text: "Added the `ASYNC` flushing mode modifier."},
	{Since: "6.2.0", Text: "Added the `SYNC` flushing mode modifier."}}

var specFlushDB = command.Spec{
	Name: "flushdb", Group: command.GroupServer, Since: "1.0.0",
	Complexity: "O(N) where N is the number of 256 KiB slabs that the database holds",
	Summary:    "Removes all keys from the selected database. ASYNC and SYNC do the same.",
	Flags:      command.Write | command.AllKeys | command.Slow,
	FanOut:     command.FanOutLast,
	Categories: command.CatKeyspace | command.CatDangerous,
	Args:       flushArgs(),
	Tips:       []string{"request_policy:all_shards", "response_policy:all_succeeded"},
	History:    flushHistory,
	Examples: `
> SET k v
OK
> FLUSHDB
OK
> DBSIZE
(integer) 0
`,
	Run: func(c *command.Ctx) error { return runFlush(c, c.Tx.Selected()) },
}

var specFlushAll = command.Spec{
	Name: "flushall", Group: command.GroupServer, Since: "1.0.0",
	Complexity: "O(N) where N is the number of 256 KiB slabs that all databases hold",
	Summary:    "Removes all keys from all databases. ASYNC and SYNC do the same.",
	Flags:      command.Write | command.AllKeys | command.Slow,
	FanOut:     command.FanOutLast,
	Categories: command.CatKeyspace | command.CatDangerous,
	Args:       flushArgs(),
	Tips:       []string{"request_policy:all_shards", "response_policy:all_succeeded"},
	History:    flushHistory,
	Examples: `
> SET k v
OK
> MOVE k 1
(integer) 1
> FLUSHALL
OK
> SET k w
OK
> MOVE k 1
(integer) 1
`,
	Run: func(c *command.Ctx) error { return runFlush(c, -1) },
}

// runFlush runs FLUSHDB and FLUSHALL. The engine releases the memory in one step, so ASYNC has nothing to
// postpone.
func runFlush(c *command.Ctx, dbi int) error {
	switch {
	case len(c.Args) == 1:
	case len(c.Args) > 2 || !command.EqualFold(c.Args[1], "ASYNC") && !command.EqualFold(c.Args[1], "SYNC"):
		return command.ErrSyntax
	}

	c.Tx.Flush(dbi)
	if dbi < 0 {
		c.Host.Emptied(c.Tx)
	}

	c.Out.OK()
	return nil
}

var specSwapDB = command.Spec{
	Name: "swapdb", Group: command.GroupServer, Since: "4.0.0",
	Complexity: "O(N) where N is the count of clients watching or blocking on keys from both databases.",
	Summary:    "Swaps two databases: clients that selected one see the keys of the other at once.",
	Flags:      command.Write | command.Fast | command.AllKeys,
	Categories: command.CatKeyspace | command.CatDangerous,
	Args:       []command.Arg{command.Int("index1"), command.Int("index2")},
	Examples: `
> SET k v
OK
> SWAPDB 0 1
OK
> GET k
(nil)
> SWAPDB 1 0
OK
> GET k
"v"
`,
	Run: runSwapDB,
}

// watchedBytes is the cost of looking up one watched key, in bytes read sequentially.
const watchedBytes = 256

func runSwapDB(c *command.Ctx) error {
	if c.Host.Clustered() {
		return command.ErrNoDatabases("SWAPDB")
	}
	if err := c.Long(int(c.DB.Watches()) * watchedBytes); err != nil {
		return err
	}
	var dbs [2]int
	for i, which := range []string{"first", "second"} {
		n, ok := numeral.ParseInt(c.Args[1+i])
		if !ok || n != int64(int32(n)) {
			return command.ReplyError("ERR invalid " + which + " DB index")
		}
		dbs[i] = int(n)
	}
	for _, n := range dbs {
		if n < 0 || n >= c.DB.Databases() {
			return command.ErrDBIndex
		}
	}

	c.Tx.Swap(dbs[0], dbs[1])

	c.Out.OK()
	return nil
}
