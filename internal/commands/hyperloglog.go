package commands

import (
	"strconv"

	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/hll"
)

var hyperLogLogSpecs = []*command.Spec{&specPFAdd, &specPFCount, &specPFMerge, &specPFDebug, &specPFSelfTest}

var specPFAdd = command.Spec{
	Name: "pfadd", Group: command.GroupHyperLogLog, Since: "2.8.9", Complexity: "O(1) to add every element.",
	Summary: "Adds elements to a HyperLogLog key. Creates the key if it doesn't exist.",
	Flags:   command.Write | command.DenyOOM | command.Fast | command.Reveals,
	Args:    []command.Arg{command.Key("key", command.Insert), command.Opt(command.Many("element"))},
	Replies: "1 if the HyperLogLog changed or was created, 0 if not.",
	Examples: `
> PFADD visitors ann bob cat
(integer) 1
> PFADD visitors ann
(integer) 0
> PFCOUNT visitors
(integer) 3
`,
	Run: runPFAdd,
}

func runPFAdd(c *command.Ctx) error {
	if err := c.Long(pfAddWork(c)); err != nil {
		return err
	}
	changed, err := c.Tx.PFAdd(c.Args[1], c.Args[2:])
	if err != nil {
		return err
	}
	c.Out.Int(command.BoolToInt(changed))
	return nil
}

// sparseWork is the cost of one opcode of a sparse HyperLogLog, or of one hash, in bytes read sequentially:
// about a nanosecond.
const sparseWork = 8

// pfAddWork returns the cost of PFADD for Ctx.Long: the server walks over a sparse HyperLogLog once for each
// element, and an element makes it about two bytes longer.
func pfAddWork(c *command.Ctx) int {
	n := len(c.Args) - 2
	if n <= 16 {
		return 0
	}
	size := c.Tx.StrSize(c.Args[1]) + 2*n
	if size >= hll.DenseSize {
		size = 8 // one hash and one register
	}
	return n * size * sparseWork
}

var specPFCount = command.Spec{
	Name: "pfcount", Group: command.GroupHyperLogLog, Since: "2.8.9",
	Complexity: "O(1) with one key whose estimate is kept in it; O(N) with N being the number of keys, and 16384 registers each, otherwise.",
	Summary:    "Returns the approximated cardinality of the set(s) observed by the HyperLogLog key(s).",
	Flags:      command.ReadOnly | command.MayReplicate | command.Reveals,
	Args: []command.Arg{command.ManyKeys("key",
		command.KeyRW|command.Access).Note("RW because it may change the internal representation of the key, and propagate to replicas")},
	Replies: "The estimate, with a standard error of 0.81 %, of how many different elements were added to any of the keys.",
	Examples: `
> PFADD a 1 2 3
(integer) 1
> PFADD b 3 4
(integer) 1
> PFCOUNT a
(integer) 3
> PFCOUNT a b nothing
(integer) 4
> SET s text
OK
> PFCOUNT s
(error) WRONGTYPE Key is not a valid HyperLogLog string value.
`,
	Run: runPFCount,
}

func runPFCount(c *command.Ctx) error {
	if len(c.Args) > 2 {
		if err := c.Long(pfWork(c)); err != nil {
			return err
		}
	}
	n, err := c.Tx.PFCount(c.Args[1:])
	if err != nil {
		return err
	}
	c.Out.Int(n)
	return nil
}

// pfWork returns the cost of a union of HyperLogLogs for Ctx.Long.
func pfWork(c *command.Ctx) int {
	n := hll.Registers
	for _, key := range c.Args[1:] {
		n += c.Tx.StrSize(key)
	}
	return n * sparseWork
}

var specPFMerge = command.Spec{
	Name: "pfmerge", Group: command.GroupHyperLogLog, Since: "2.8.9",
	Complexity:    "O(N) to merge N HyperLogLogs, of 16384 registers each.",
	Summary:       "Merges one or more HyperLogLog values into a single key.",
	Flags:         command.Write | command.DenyOOM | command.Reveals,
	Args:          []command.Arg{command.Key("destkey", command.Access|command.Insert), command.ManyKeys("sourcekey", command.Read)},
	ArityOverride: -2, ArityReason: "without a source the destination is created, or merged with itself",
	Replies: "OK. The destination is one of the sources if it is there.",
	Examples: `
> PFADD a 1 2 3
(integer) 1
> PFADD b 3 4
(integer) 1
> PFMERGE both a b
OK
> PFCOUNT both
(integer) 4
> PFADD a 5
(integer) 1
> PFMERGE both a
OK
> PFCOUNT both
(integer) 5
`,
	Run: runPFMerge,
}

func runPFMerge(c *command.Ctx) error {
	if err := c.Long(pfWork(c)); err != nil {
		return err
	}
	if err := c.Tx.PFMerge(c.Args[1], c.Args[2:]); err != nil {
		return err
	}
	c.Out.OK()
	return nil
}

var specPFDebug = command.Spec{
	Name: "pfdebug", Group: command.GroupHyperLogLog, Since: "2.8.9", Complexity: "O(N) where N is the number of registers",
	Summary: "Shows how a HyperLogLog is stored: its registers, opcodes or encoding, or makes it dense.",
	Flags:   command.Write | command.DenyOOM | command.Admin,
	SysCmd:  true,
	Args:    []command.Arg{command.Str("subcommand"), command.Key("key", command.KeyRW|command.Access)},
	Replies: "GETREG makes it dense and gives 16384 integers. DECODE gives the opcodes of a sparse one: z (ZERO) and Z (XZERO) with the " +
		"number of registers, v (VAL) with value and number. ENCODING gives dense or sparse. TODENSE gives 1 if it was sparse.",
	Examples: `
> PFADD k a
(integer) 1
> PFDEBUG ENCODING k
sparse
> PFDEBUG DECODE k
"Z:12711 v:2,1 Z:3672"
> PFDEBUG TODENSE k
(integer) 1
> PFDEBUG ENCODING k
dense
> PFDEBUG TODENSE k
(integer) 0
> PFDEBUG ENCODING nothing
(error) ERR The specified key does not exist
`,
	Run: runPFDebug,
}

const (
	errPFNoKey     = command.ReplyError("ERR The specified key does not exist")
	errPFNotSparse = command.ReplyError("ERR HLL encoding is not sparse")
)

func runPFDebug(c *command.Ctx) error {
	img, err := c.Tx.HLL(c.Args[2])
	switch {
	case err != nil:
		return err
	case img == nil:
		return errPFNoKey
	}
	switch a := c.Args[1]; {
	case command.EqualFold(a, "GETREG"):
		return pfGetReg(c)
	case command.EqualFold(a, "DECODE"):
		return pfDecode(c, img)
	case command.EqualFold(a, "ENCODING"):
		c.Out.Simple(hll.EncodingOf(img).String())
	case command.EqualFold(a, "TODENSE"):
		made, err := c.Tx.PFDense(c.Args[2])
		if err != nil {
			return err
		}
		c.Out.Int(command.BoolToInt(made))
	default:
		return command.ReplyError(cleantext.Reply("ERR Unknown PFDEBUG subcommand '" + string(a) + "'"))
	}
	return nil
}

func pfGetReg(c *command.Ctx) error {
	if _, err := c.Tx.PFDense(c.Args[2]); err != nil {
		return err
	}
	img, err := c.Tx.HLL(c.Args[2])
	if err != nil {
		return err
	}
	var set hll.Set
	if err := set.Unite(img); err != nil {
		return err
	}
	c.Out.Array(len(set))
	for _, v := range set {
		c.Out.Int(int64(v))
	}
	return nil
}

func pfDecode(c *command.Ctx, img []byte) error {
	if hll.EncodingOf(img) != hll.Sparse {
		return errPFNotSparse
	}
	var out []byte
	// DECODE shows a corrupt HyperLogLog up to the fault: this is its purpose.
	_ = hll.Walk(img, func(op hll.Op) {
		name := "z:"
		switch {
		case op.Value > 0:
			name = "v:" + strconv.Itoa(int(op.Value)) + ","
		case op.XZero:
			name = "Z:"
		}
		if len(out) > 0 {
			name = " " + name
		}
		out = strconv.AppendInt(append(out, name...), int64(op.Len), 10)
	})
	c.Out.Bulk(out)
	return nil
}

var specPFSelfTest = command.Spec{
	Name: "pfselftest", Group: command.GroupHyperLogLog, Since: "2.8.9", Complexity: "O(1); a few milliseconds.",
	Summary: "Tests that HyperLogLogs count as well as they should.",
	Flags:   command.Admin | command.Slow,
	SysCmd:  true,
	Replies: "OK, or an error that says what is wrong.",
	Examples: `
> PFSELFTEST
OK
`,
	Run: runPFSelfTest,
}

func runPFSelfTest(c *command.Ctx) error {
	if err := hll.SelfTest(); err != nil {
		return command.ReplyError("TESTFAILED " + err.Error())
	}
	c.Out.OK()
	return nil
}
