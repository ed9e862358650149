package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

var bitmapSpecs = []*command.Spec{&specSetBit, &specGetBit, &specBitCount, &specBitPos, &specBitOp, &specBitField, &specBitFieldRO}

// These are the errors of the bit commands.
const (
	errBitOffset = command.ReplyError("ERR bit offset is not an integer or out of range")
	errBitValue  = command.ReplyError("ERR bit is not an integer or out of range")
	errBitArg    = command.ReplyError("ERR The bit argument must be 1 or 0.")
	errBitNot    = command.ReplyError("ERR BITOP NOT must be called with a single source key.")
	errFieldType = command.ReplyError("ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.")
	errFieldOver = command.ReplyError("ERR Invalid OVERFLOW type specified")
	errFieldRO   = command.ReplyError("ERR BITFIELD_RO only supports the GET subcommand")
)

// bitOffset reads an offset; "#n" means n times width, if width is not 0.
func bitOffset(c *command.Ctx, a []byte, width int64) (int64, error) {
	hash := width > 0 && len(a) > 0 && a[0] == '#'
	if hash {
		a = a[1:]
	} else {
		width = 1
	}
	n, ok := numeral.ParseInt(a)
	// The bound keeps the product within 64 bits.
	if !ok || n < 0 || n > int64(c.Tx.DB().MaxString())*8 || n*width>>3 >= int64(c.Tx.DB().MaxString()) {
		return 0, errBitOffset
	}
	return n * width, nil
}

var specSetBit = command.Spec{
	Name: "setbit", Group: command.GroupBitmap, Since: "2.2.0", Complexity: "O(1)",
	Summary: "Sets or clears the bit at offset of the string value. Creates the key if it doesn't exist.",
	Flags:   command.Write | command.DenyOOM | command.Reveals,
	Args:    []command.Arg{command.Key("key", command.Update|command.Access), command.Int("offset"), command.Int("value")},
	Replies: "The old bit.",
	Examples: `
> SETBIT k 7 1
(integer) 0
> SETBIT k 7 0
(integer) 1
> GET k
"\x00"
`,
	Run: runSetBit,
}

func runSetBit(c *command.Ctx) error {
	offset, err := bitOffset(c, c.Args[2], 0)
	if err != nil {
		return err
	}
	bit, ok := numeral.ParseInt(c.Args[3])
	if !ok || bit&^1 != 0 {
		return errBitValue
	}
	if err := c.Long(growth(c, offset>>3)); err != nil {
		return err
	}
	old, err := c.Tx.SetBit(c.Args[1], offset, int(bit))
	if err != nil {
		return err
	}
	c.Out.Int(int64(old))
	return nil
}

var specGetBit = command.Spec{
	Name: "getbit", Group: command.GroupBitmap, Since: "2.2.0", Complexity: "O(1)",
	Summary: "Returns a bit value by offset.",
	Flags:   command.ReadOnly | command.Fast | command.Reveals,
	Args:    []command.Arg{command.Key("key", command.Read), command.Int("offset")},
	Examples: `
> SETBIT k 7 1
(integer) 0
> GETBIT k 0
(integer) 0
> GETBIT k 7
(integer) 1
> GETBIT k 100
(integer) 0
`,
	Run: runGetBit,
}

func runGetBit(c *command.Ctx) error {
	offset, err := bitOffset(c, c.Args[2], 0)
	if err != nil {
		return err
	}
	bit, err := c.Tx.GetBit(c.Args[1], offset)
	if err != nil {
		return err
	}
	c.Out.Int(int64(bit))
	return nil
}

// bitUnit is the grammar of the unit of a range.
func bitUnit() command.Arg {
	return command.Opt(command.OneOf("index_unit", command.Token("BYTE"), command.Token("BIT"))).Since("7.0.0")
}

var specBitCount = command.Spec{
	Name: "bitcount", Group: command.GroupBitmap, Since: "2.6.0", Complexity: "O(N)",
	Summary: "Counts the number of set bits (population counting) in a string.",
	Flags:   command.ReadOnly | command.Reveals,
	Args: []command.Arg{command.Key("key", command.Read),
		command.Opt(command.Block("range", command.Int("start"), command.Opt(command.Block("end-unit-block", command.Int("end"), bitUnit()))))},
	History: []command.Change{{Since: "7.0.0", Text: "Added the `BYTE|BIT` option."},
		{Since: "8.0.0", Text: "`end` and `BYTE|BIT` became optional, as in Valkey."}},
	Examples: `
> SET k foobar
OK
> BITCOUNT k
(integer) 26
> BITCOUNT k 0 0
(integer) 4
> BITCOUNT k 1 1 BYTE
(integer) 6
> BITCOUNT k 5 30 BIT
(integer) 17
`,
	Run: runBitCount,
}

func runBitCount(c *command.Ctx) error {
	r := engine.Everything
	var err error
	switch len(c.Args) {
	case 2:
	case 3, 4, 5:
		r, err = bitRange(c.Args[2:])
	default:
		err = command.ErrSyntax
	}
	if err != nil {
		return err
	}
	if err := c.Long(c.Tx.StrSize(c.Args[1])); err != nil {
		return err
	}
	n, err := c.Tx.BitCount(c.Args[1], r)
	if err != nil {
		return err
	}
	c.Out.Int(n)
	return nil
}

// bitRange reads "start [end [BYTE | BIT]]".
func bitRange(args [][]byte) (r engine.BitRange, err error) {
	r = engine.Everything
	for i, p := range []*int64{&r.First, &r.Last} {
		if i < len(args) {
			n, ok := numeral.ParseInt(args[i])
			if !ok {
				return r, command.ErrNotInteger
			}
			*p = n
		}
	}
	if len(args) > 2 && !isBitUnit(args[2]) {
		return r, command.ErrSyntax
	}
	r.Bits = len(args) > 2 && command.EqualFold(args[2], "BIT")
	return r, nil
}

func isBitUnit(word []byte) bool {
	return command.EqualFold(word, "BIT") || command.EqualFold(word, "BYTE")
}

var specBitPos = command.Spec{
	Name: "bitpos", Group: command.GroupBitmap, Since: "2.8.7", Complexity: "O(N)",
	Summary: "Finds the first set (1) or clear (0) bit in a string.",
	Flags:   command.ReadOnly | command.Reveals,
	Args: []command.Arg{command.Key("key", command.Read), command.Int("bit"), command.Opt(command.Block("index", command.Int("start"),
		command.Opt(command.Block("end_index", command.Int("end"), bitUnit()))))},
	History: []command.Change{{Since: "7.0.0", Text: "Added the `BYTE|BIT` option."}},
	Replies: "The position of the bit, counted from the start of the string; -1 if there is none.",
	Examples: `
> SET k "\xff\xf0\x00"
OK
> BITPOS k 0
(integer) 12
> BITPOS k 1 2
(integer) -1
> BITPOS k 1 1 -1 BYTE
(integer) 8
> BITPOS k 0 7 15 BIT
(integer) 12
`,
	Run: runBitPos,
}

func runBitPos(c *command.Ctx) error {
	bit, ok := numeral.ParseInt(c.Args[2])
	switch {
	case !ok:
		return command.ErrNotInteger
	case bit&^1 != 0:
		return errBitArg
	case len(c.Args) > 6:
		return command.ErrSyntax
	}
	if len(c.Args) == 6 && !isBitUnit(c.Args[5]) {
		if _, ok := numeral.ParseInt(c.Args[3]); ok { // servers look at the end after the unit
			return command.ErrSyntax
		}
	}
	r, err := bitRange(c.Args[3:])
	if err != nil {
		return err
	}
	if err := c.Long(c.Tx.StrSize(c.Args[1])); err != nil {
		return err
	}
	n, err := c.Tx.BitPos(c.Args[1], int(bit), r, len(c.Args) < 5)
	if err != nil {
		return err
	}
	c.Out.Int(n)
	return nil
}

var specBitOp = command.Spec{
	Name: "bitop", Group: command.GroupBitmap, Since: "2.6.0", Complexity: "O(N)",
	Summary: "Performs bitwise operations on multiple strings, and stores the result.",
	Flags:   command.Write | command.DenyOOM | command.Reveals,
	Args:    []command.Arg{command.Str("operation"), command.Key("destkey", command.Overwrite), command.ManyKeys("key", command.Read)},
	Replies: "The length of the result, which is that of the longest string. Zeros extend shorter strings.",
	Examples: "> MSET a foobar b abcdef\nOK\n> BITOP AND dest a b\n(integer) 6\n> GET dest\n\"`bc`ab\"\n> BITOP NOT dest a b\n" +
		"(error) ERR BITOP NOT must be called with a single source key.\n",
	Run: runBitOp,
}

func runBitOp(c *command.Ctx) error {
	var o engine.BitOperation
	switch a := c.Args[1]; {
	case command.EqualFold(a, "AND"):
		o = engine.BitAnd
	case command.EqualFold(a, "OR"):
		o = engine.BitOr
	case command.EqualFold(a, "XOR"):
		o = engine.BitXor
	case command.EqualFold(a, "NOT"):
		o = engine.BitNot
	default:
		return command.ErrSyntax
	}
	if o == engine.BitNot && len(c.Args) != 4 {
		return errBitNot
	}
	size := 0
	for _, key := range c.Args[3:] {
		size += c.Tx.StrSize(key)
	}
	if err := c.Long(size); err != nil {
		return err
	}
	n, err := c.Tx.BitOp(o, c.Args[2], c.Args[3:])
	if err != nil {
		return err
	}
	c.Out.Int(int64(n))
	return nil
}

// fieldArgs is the grammar of a field: its type, and its place.
func fieldArgs(more ...command.Arg) []command.Arg {
	return append([]command.Arg{command.Str("encoding"), command.Int("offset")}, more...)
}

var specBitField = command.Spec{
	Name: "bitfield", Group: command.GroupBitmap, Since: "3.2.0", Complexity: "O(1) for each subcommand specified",
	Summary: "Performs arbitrary bitfield integer operations on strings.",
	Flags:   command.Write | command.DenyOOM | command.Reveals,
	Args: []command.Arg{command.Key("key", command.Update|command.Access|command.VariableFlags).Note("This command allows both access and " +
		"modification of the key"),
		command.Opt(command.Repeat(command.OneOf("operation",
			command.TokenArg("GET", command.Block("encoding_offset", fieldArgs()...)),
			command.Block("write",
				command.Opt(command.TokenArg("OVERFLOW",
					command.OneOf("wrap_sat_fail", command.Token("WRAP"), command.Token("SAT"), command.Token("FAIL")))),
				command.OneOf("write_operation",
					command.TokenArg("SET", command.Block("encoding_offset_value", fieldArgs(command.Int("value"))...)),
					command.TokenArg("INCRBY", command.Block("encoding_offset_increment", fieldArgs(command.Int("increment"))...)))))))},
	Replies: "An array with an element for each operation: GET returns the field, SET the old value, INCRBY the new " +
		"value; nil if OVERFLOW FAIL refused the operation.",
	Examples: `
> BITFIELD k SET u8 0 255 GET u4 #1 INCRBY i5 100 1
1) (integer) 0
2) (integer) 15
3) (integer) 1
> BITFIELD k OVERFLOW SAT INCRBY u8 0 10 OVERFLOW FAIL INCRBY u8 0 10
1) (integer) 255
2) (nil)
`,
	Keys: bitFieldKeys,
	Run:  runBitField,
}

// bitFieldKeys finds BITFIELD's key. If all operations are GET the command only reads it; an
// unknown operation counts as a write.
func bitFieldKeys(dst []command.KeyRef, args [][]byte) ([]command.KeyRef, error) {
	use := command.Read
	for i := 2; i < len(args); {
		switch {
		case command.EqualFold(args[i], "GET") && i+2 < len(args):
			i += 3
		case command.EqualFold(args[i], "OVERFLOW") && i+1 < len(args):
			i += 2
		default:
			use, i = command.Update|command.Access, len(args)
		}
	}
	return append(dst, command.KeyRef{Pos: 1, Flags: use}), nil
}

var specBitFieldRO = command.Spec{
	Name: "bitfield_ro", Group: command.GroupBitmap, Since: "6.0.0", Complexity: "O(1) for each subcommand specified",
	Summary: "Performs arbitrary read-only bitfield integer operations on strings.",
	Flags:   command.ReadOnly | command.Fast | command.Reveals,
	Args: []command.Arg{command.Key("key", command.Read),
		command.Opt(command.RepeatToken(command.TokenArg("GET", command.Block("encoding_offset", fieldArgs()...))))},
	Examples: `
> SET k ab
OK
> BITFIELD_RO k GET u8 0 GET i8 #1
1) (integer) 97
2) (integer) 98
> BITFIELD_RO k SET u8 0 1
(error) ERR BITFIELD_RO only supports the GET subcommand
`,
	Run: runBitField,
}

func runBitField(c *command.Ctx) error {
	var few [8]engine.FieldOp // as many as fit on the stack
	ops, reach, err := fieldOps(c, few[:0])
	if err != nil {
		return err
	}
	if reach >= 0 && c.Spec.Has(command.ReadOnly) {
		return errFieldRO
	}
	if err := c.Long(growth(c, reach>>3)); err != nil {
		return err
	}

	mark := c.Out.Mark()
	c.Out.Array(len(ops))
	err = c.Tx.BitField(c.Args[1], ops, func(n int64, ok bool) {
		if ok {
			c.Out.Int(n)
		} else {
			c.Out.Null()
		}
	})
	if err != nil {
		c.Out.Rollback(mark)
	}
	return err
}

// fieldOps reads the operations. reach is the highest offset to which they write, -1 if they only read.
func fieldOps(c *command.Ctx, ops []engine.FieldOp) (_ []engine.FieldOp, reach int64, err error) {
	overflow := engine.Wrap
	reach = -1
	for args := c.Args[2:]; len(args) > 0; {
		o := engine.FieldOp{Overflow: overflow}
		n := 3
		switch a := args[0]; {
		case command.EqualFold(a, "GET") && len(args) >= 3:
		case command.EqualFold(a, "SET") && len(args) >= 4:
			o.Kind, n = engine.FieldSet, 4
		case command.EqualFold(a, "INCRBY") && len(args) >= 4:
			o.Kind, n = engine.FieldIncrBy, 4
		case command.EqualFold(a, "OVERFLOW") && len(args) >= 2:
			if overflow, err = overflowPolicy(args[1]); err != nil {
				return nil, 0, err
			}
			args = args[2:]
			continue
		default:
			return nil, 0, command.ErrSyntax
		}
		if o.Signed, o.Width, err = fieldType(args[1]); err != nil {
			return nil, 0, err
		}
		if o.Offset, err = bitOffset(c, args[2], int64(o.Width)); err != nil {
			return nil, 0, err
		}
		if n == 4 {
			var ok bool
			if o.Value, ok = numeral.ParseInt(args[3]); !ok {
				return nil, 0, command.ErrNotInteger
			}
			reach = max(reach, o.Offset)
		}
		ops, args = append(ops, o), args[n:]
	}
	return ops, reach, nil
}

func overflowPolicy(a []byte) (engine.Overflow, error) {
	switch {
	case command.EqualFold(a, "WRAP"):
		return engine.Wrap, nil
	case command.EqualFold(a, "SAT"):
		return engine.Saturate, nil
	case command.EqualFold(a, "FAIL"):
		return engine.Fail, nil
	}
	return 0, errFieldOver
}

// fieldType reads "i1" to "i64" and "u1" to "u63".
func fieldType(a []byte) (signed bool, width uint8, err error) {
	if len(a) < 2 || a[0] != 'i' && a[0] != 'u' {
		return false, 0, errFieldType
	}
	signed = a[0] == 'i'
	n, ok := numeral.ParseInt(a[1:])
	if !ok || n < 1 || n > 63+command.BoolToInt(signed) {
		return false, 0, errFieldType
	}
	return signed, uint8(n), nil
}
