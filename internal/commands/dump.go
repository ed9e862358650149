package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

var dumpSpecs = []*command.Spec{&specDump, &specRestore, &specRestoreAsking, &specMigrate}

// These are the errors of DUMP and RESTORE.
const (
	errRestoreTTL = command.ReplyError("ERR Invalid TTL value, must be >= 0")
	errIdleTime   = command.ReplyError("ERR Invalid IDLETIME value, must be >= 0")
	errFreq       = command.ReplyError("ERR Invalid FREQ value, must be >= 0 and <= 255")
)

// dumpCost is the cost of the work on a payload, relative to reading its bytes sequentially: the server hashes,
// compresses and copies elements one by one.
const dumpCost = 16

var specDump = command.Spec{
	Name: "dump", Group: command.GroupGeneric, Since: "2.6.0", Complexity: "O(N) where N is the size of the value.",
	Summary: "Returns the serialized value of a key, for RESTORE here, on Redis or on Valkey.",
	Flags:   command.ReadOnly | command.Reveals,
	Args:    []command.Arg{command.Key("key", command.Read)},
	Tips:    []string{"nondeterministic_output"},
	Replies: "The value in the format of RDB files, with its version and a checksum; nil if there is no such key.",
	Examples: `
> SET k 10
OK
> DUMP k
"\x00\xc0\n\n\x00n\x9fWE\x0e\xaec\xbb"
> DUMP nothing
(nil)
`,
	Run: runDump,
}

func runDump(c *command.Ctx) error {
	key := c.Args[1]
	if err := c.Long(c.Tx.DumpSize(key) * dumpCost); err != nil {
		return err
	}

	payload, ok := c.Tx.Dump(c.Scratch[:0], key)

	if !ok {
		c.Out.Null()
		return nil
	}
	c.Out.Bulk(payload)
	c.KeepScratch(payload)
	return nil
}

// restoreArgs is the grammar of RESTORE and RESTORE-ASKING.
func restoreArgs() []command.Arg {
	return []command.Arg{command.Key("key", command.Overwrite), command.Int("ttl"), command.Str("serialized-value"),
		command.Opt(command.Token("REPLACE").Since("3.0.0")), command.Opt(command.Token("ABSTTL").Since("5.0.0")),
		command.Opt(command.TokenArg("IDLETIME", command.Int("seconds")).Since("5.0.0")),
		command.Opt(command.TokenArg("FREQ", command.Int("frequency")).Since("5.0.0"))}
}

var restoreHistory = []command.Change{{Since: "3.0.0", Text: "Added the `REPLACE` modifier."},
	{Since: "5.0.0", Text: "Added the `ABSTTL` modifier."},
	{Since: "5.0.0", Text: "Added the `IDLETIME` and `FREQ` options."}}

const restoreComplexity = "O(N) where N is the size of the value; for sorted sets O(N*log(N))."

var specRestore = command.Spec{
	Name: "restore", Group: command.GroupGeneric, Since: "2.6.0", Complexity: restoreComplexity,
	Summary:    "Creates a key from a serialized value, as DUMP returns it.",
	Flags:      command.Write | command.DenyOOM | command.Blind,
	Categories: command.CatDangerous,
	Args:       restoreArgs(),
	History:    restoreHistory,
	Replies: "OK; BUSYKEY if the key exists and REPLACE is not given. The time to live is in ms, 0 for none; with ABSTTL it is a Unix time. " +
		"The payload may come from Redis up to 8.0 and Valkey up to 9.2, and from a newer Redis if ebb has the type. " +
		"For a damaged payload, or a type that ebb does not have, the reply is an error that names the type, and nothing changes. " +
		"So it is for a payload that unpacks to more than maxmemory, or than the memory of the machine (OOM). " +
		"A delay queue that names a key for its dead letters needs the right to write to that key, as DQ.CONFIG does.",
	Examples: `
> RESTORE k 0 "\x00\xc0\n\n\x00n\x9fWE\x0e\xaec\xbb"
OK
> GET k
"10"
> RESTORE k 0 "\x00\xc0\n\n\x00n\x9fWE\x0e\xaec\xbb"
(error) BUSYKEY Target key name already exists.
> RESTORE k 5000 "\x00\xc0\n\n\x00n\x9fWE\x0e\xaec\xbb" REPLACE
OK
> PTTL k
(integer) 5000
`,
	Run: runRestore,
}

var specRestoreAsking = command.Spec{
	Name: "restore-asking", Group: command.GroupServer, Since: "3.0.0", Complexity: restoreComplexity,
	Summary:    "RESTORE, as the nodes of a cluster send it to each other.",
	Flags:      command.Write | command.DenyOOM | command.Asking,
	Categories: command.CatKeyspace | command.CatDangerous,
	Args:       restoreArgs(),
	History:    restoreHistory,
	SysCmd:     true,
	Examples: `
> RESTORE-ASKING k 0 "\x00\xc0\n\n\x00n\x9fWE\x0e\xaec\xbb"
OK
> GET k
"10"
`,
	Run: runRestore,
}

func runRestore(c *command.Ctx) error {
	key, payload := c.Args[1], c.Args[3]
	o, absolute, err := restoreOptions(c.Args[4:])
	if err != nil {
		return err
	}
	if o.Deadline, err = restoreTTL(c, absolute); err != nil {
		if _, ok := c.Tx.Lookup(key); ok && !o.Replace {
			err = command.ErrBusyKey // the error that Redis checks first
		}
		return err
	}
	if err := c.Long(len(payload) * dumpCost); err != nil {
		return err
	}

	o.Names = c
	if err := c.Tx.Restore(key, payload, o); err != nil {
		return err
	}

	c.Out.OK()
	return nil
}

// restoreTTL reads RESTORE's time to live and returns a deadline in ms.
func restoreTTL(c *command.Ctx, absolute bool) (int64, error) {
	ttl, ok := numeral.ParseInt(c.Args[2])
	switch {
	case !ok:
		return 0, command.ErrNotInteger
	case ttl < 0:
		return 0, errRestoreTTL
	case ttl == 0 || absolute:
		return ttl, nil
	}
	return c.Tx.DeadlineAfter(ttl), nil
}

// restoreOptions reads the options after RESTORE's payload; absolute reports whether ABSTTL is one of them.
func restoreOptions(args [][]byte) (o engine.RestoreOptions, absolute bool, err error) {
	idle := false
	for i := 0; i < len(args); i++ {
		more := i+1 < len(args)
		switch {
		case command.EqualFold(args[i], "REPLACE"):
			o.Replace = true
		case command.EqualFold(args[i], "ABSTTL"):
			absolute = true
		case command.EqualFold(args[i], "IDLETIME") && more && !o.SetFreq:
			i++
			if o.Idle, idle = numeral.ParseInt(args[i]); !idle {
				return o, false, command.ErrNotInteger
			}
			if o.Idle < 0 {
				return o, false, errIdleTime
			}
		case command.EqualFold(args[i], "FREQ") && more && !idle:
			i++
			if o.Freq, o.SetFreq = numeral.ParseInt(args[i]); !o.SetFreq {
				return o, false, command.ErrNotInteger
			}
			if o.Freq < 0 || o.Freq > 255 {
				return o, false, errFreq
			}
		default:
			return o, false, command.ErrSyntax
		}
	}
	return o, absolute, nil
}
