package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/wire"
)

// comparison returns the comparison with the name a, Always if no comparison has that name.
func comparison(a []byte) engine.Comparison {
	switch {
	case command.EqualFold(a, "IFEQ"):
		return engine.IfEqual
	case command.EqualFold(a, "IFNE"):
		return engine.IfNotEqual
	case command.EqualFold(a, "IFDEQ"):
		return engine.IfDigestEqual
	case command.EqualFold(a, "IFDNE"):
		return engine.IfDigestDiffers
	}
	return engine.Always
}

const errDigest = command.ReplyError("ERR the digest must be exactly 16 hexadecimal characters")

// checkDigest returns an error if the comparison needs a digest and x cannot be one.
func checkDigest(c engine.Comparison, x []byte) error {
	if c != engine.IfDigestEqual && c != engine.IfDigestDiffers {
		return nil
	}
	if len(x) != 16 {
		return errDigest
	}
	for _, d := range x {
		if d-'0' > 9 && (d|0x20 < 'a' || d|0x20 > 'f') {
			return errDigest
		}
	}
	return nil
}

var specDelEx = command.Spec{
	Name: "delex", Group: command.GroupString, Since: "8.4.0",
	Complexity: "O(1) for IFEQ and IFNE, O(N) for IFDEQ and IFDNE where N is the length of the value.",
	Summary:    "Deletes a key if its string value, or the digest of it, meets a condition.",
	Flags:      command.Write | command.Fast | command.Reveals,
	Args: []command.Arg{command.Key("key", command.Delete|command.VariableFlags).Note("ACCESS due to the optional conditions"),
		command.Opt(command.OneOf("condition", command.TokenArg("IFEQ", command.Str("ifeq-value")),
			command.TokenArg("IFNE", command.Str("ifne-value")),
			command.TokenArg("IFDEQ", command.Str("ifdeq-digest")), command.TokenArg("IFDNE", command.Str("ifdne-digest"))))},
	Replies: "1 if the key was deleted, 0 if not.",
	Examples: `
> SET k v
OK
> DELEX k IFEQ other
(integer) 0
> DIGEST k
"$digest"
> DELEX k IFDEQ $digest
(integer) 1
> DELEX k
(integer) 0
`,
	Keys: delExKeys,
	Run:  runDelEx,
}

// delExKeys finds DELEX's key. With a condition the command also reads the key, because the reply reveals
// whether the condition is true.
func delExKeys(dst []command.KeyRef, args [][]byte) ([]command.KeyRef, error) {
	use := command.Delete
	if len(args) > 2 {
		use |= command.Access
	}
	return append(dst, command.KeyRef{Pos: 1, Flags: use}), nil
}

func runDelEx(c *command.Ctx) error {
	var want []byte
	compare := engine.Always
	if len(c.Args) > 2 {
		if compare = comparison(c.Args[2]); compare == engine.Always || len(c.Args) != 4 {
			return command.ErrSyntax
		}
		want = c.Args[3]
	}
	if err := checkDigest(compare, want); err != nil {
		return err
	}
	ok, err := c.Tx.DelIf(c.Args[1], compare, want)
	if err != nil {
		return err
	}
	c.Out.Int(command.BoolToInt(ok))
	return nil
}

var specDelIfEq = command.Spec{
	Name: "delifeq", Group: command.GroupString, Since: "9.0.0", Complexity: "O(1)",
	Summary: "Deletes a key if its string value equals the given one.",
	Flags:   command.Write | command.Fast | command.Reveals,
	Args:    []command.Arg{command.Key("key", command.Access|command.Delete), command.Str("value")},
	Replies: "1 if the key was deleted, 0 if not.",
	Examples: `
> SET lock token-1
OK
> DELIFEQ lock token-2
(integer) 0
> DELIFEQ lock token-1
(integer) 1
> DELIFEQ lock token-1
(integer) 0
`,
	Run: runDelIfEq,
}

func runDelIfEq(c *command.Ctx) error {
	ok, err := c.Tx.DelIf(c.Args[1], engine.IfEqual, c.Args[2])
	if err != nil {
		return err
	}
	c.Out.Int(command.BoolToInt(ok))
	return nil
}

var specDigest = command.Spec{
	Name: "digest", Group: command.GroupString, Since: "8.4.0", Complexity: "O(N) where N is the length of the string value.",
	Summary: "Returns the XXH3 digest of a string value.",
	Flags:   command.ReadOnly | command.Fast | command.Reveals,
	Args:    []command.Arg{command.Key("key", command.Read)},
	Replies: "16 hexadecimal digits, nil if there is no such key.",
	Examples: `
> SET k ""
OK
> DIGEST k
"2d06800538d394c2"
> DIGEST nothing
(nil)
`,
	Run: runDigest,
}

func runDigest(c *command.Ctx) error {
	d, ok, err := c.Tx.Digest(c.Args[1])
	if err != nil {
		return err
	}
	if !ok {
		c.Out.Null()
		return nil
	}
	c.Out.BulkString(d)
	return nil
}

var specLCS = command.Spec{
	Name: "lcs", Group: command.GroupString, Since: "7.0.0", Complexity: "O(N*M) where N and M are the lengths of the strings",
	Summary: "Finds the longest common substring.",
	Flags:   command.ReadOnly | command.Reveals,
	Args: []command.Arg{command.Key("key1", command.Read).Spec(0), command.Key("key2", command.Read).Spec(0),
		command.Opt(command.Token("LEN")),
		command.Opt(command.Token("IDX")),
		command.Opt(command.TokenArg("MINMATCHLEN", command.Int("len"))), command.Opt(command.Token("WITHMATCHLEN"))},
	KeySpecs: []command.KeySpec{{Flags: command.Read, Begin: command.BeginIndex, Index: 1, Find: command.FindRange, Last: 1, Step: 1}},
	Replies:  "The subsequence; with LEN its length; with IDX its runs, from the last to the first, and its length.",
	Examples: `
> MSET a ohmytext b mynewtext
OK
> LCS a b
"mytext"
> LCS a b LEN
(integer) 6
> LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN
1) "matches"
2) 1) 1) 1) (integer) 4
         2) (integer) 7
      2) 1) (integer) 5
         2) (integer) 8
      3) (integer) 4
3) "len"
4) (integer) 6
`,
	Run: runLCS,
}

// These are the errors of LCS.
const (
	errLCSType = command.ReplyError("ERR The specified keys must contain string values")
	errLCSBoth = command.ReplyError("ERR If you want both the length and indexes, please just use IDX.")
	errLCSSize = command.ReplyError("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len")
)

// lcsCell is the cost of comparing one pair of bytes in LCS, in the unit of Ctx.Long: about a nanosecond.
const lcsCell = 10

// lcsOptions holds the options of LCS.
type lcsOptions struct {
	length, runs, withLen bool
	least                 int64
}

func runLCS(c *command.Ctx) error {
	a, _, err1 := c.Tx.Get(c.Args[1])
	b, _, err2 := c.Tx.Get(c.Args[2])
	if err1 != nil || err2 != nil {
		return errLCSType
	}
	o, err := readLCS(c.Args[3:])
	if err != nil {
		return err
	}
	if !c.Tx.DB().LCSFits(len(a), len(b)) {
		return errLCSSize
	}
	if err := c.Long(lcsCell * len(a) * len(b)); err != nil {
		return err
	}

	if o.length {
		c.Out.Int(int64(engine.CommonLen(a, b)))
		return nil
	}
	seq, runs := engine.Common(a, b)

	if o.runs {
		writeMatches(c.Out, runs, len(seq), o)
		return nil
	}
	c.Out.Bulk(seq)
	return nil
}

func readLCS(args [][]byte) (o lcsOptions, err error) {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case command.EqualFold(a, "LEN"):
			o.length = true
		case command.EqualFold(a, "IDX"):
			o.runs = true
		case command.EqualFold(a, "WITHMATCHLEN"):
			o.withLen = true
		case command.EqualFold(a, "MINMATCHLEN") && i+1 < len(args):
			i++
			n, ok := numeral.ParseInt(args[i])
			if !ok {
				return o, command.ErrNotInteger
			}
			o.least = n
		default:
			return o, command.ErrSyntax
		}
	}
	if o.length && o.runs {
		return o, errLCSBoth
	}
	return o, nil
}

// writeMatches replies with the runs that are long enough, and with the total length of all runs.
func writeMatches(w *wire.Writer, runs []engine.Match, length int, o lcsOptions) {
	w.Map(2)
	w.BulkString("matches")
	later := w.ArrayLater()
	n := 0
	for _, m := range runs {
		if int64(m.Len()) < o.least {
			continue
		}
		n++
		w.Array(2 + int(command.BoolToInt(o.withLen)))
		w.Array(2)
		w.Int(int64(m.FirstA))
		w.Int(int64(m.LastA))
		w.Array(2)
		w.Int(int64(m.FirstB))
		w.Int(int64(m.LastB))
		if o.withLen {
			w.Int(int64(m.Len()))
		}
	}
	w.Patch(later, n)
	w.BulkString("len")
	w.Int(int64(length))
}
