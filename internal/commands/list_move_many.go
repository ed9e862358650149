package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

// These commands move several elements from one list to another.

// howMany returns the grammar of the number and the order of the elements to move.
func howMany() command.Arg {
	return command.Opt(command.Block("how-many",
		command.OneOf("selector", command.TokenArg("COUNT", command.Int("count")), command.TokenArg("EXACTLY", command.Int("exactly"))),
		command.OneOf("ordering", command.Token("OBO"), command.Token("BULK"))))
}

const (
	moveManyComplexity = "O(N) where N is the number of elements moved."
	moveManyOrder      = "* COUNT moves up to count elements, EXACTLY moves that many or none. Without these words the command moves " +
		"one element.\n" +
		"* OBO pushes them one by one, as LMOVE would: from one end to the same end their order is reversed. BULK keeps their order.\n" +
		"* Elements keep their deadlines.\n"
)

var specLMoveM = command.Spec{
	Name: "lmovem", Group: command.GroupList, Since: "8.10.0", Complexity: moveManyComplexity,
	Summary: "Returns elements after popping them from one list and pushing them to another. Deletes the list if the last element was moved.",
	Flags:   command.Write | command.DenyOOM | command.Blind,
	Args:    append(fromTo(), leftRight("wherefrom"), leftRight("whereto"), howMany()),
	Replies: "* An array of the moved elements, as they lie in the destination from left to right: empty if the source is.\n" +
		"* nil with EXACTLY if the source has fewer elements.\n\n" +
		moveManyOrder,
	Errors: []string{"ERR count should be greater than 0: of COUNT or EXACTLY"},
	Examples: `
> RPUSH a 1 2 3 4 5
(integer) 5
> LMOVEM a b LEFT RIGHT COUNT 2 BULK
1) "1"
2) "2"
> LMOVEM a b LEFT LEFT COUNT 2 OBO
1) "4"
2) "3"
> LRANGE b 0 -1
1) "4"
2) "3"
3) "1"
4) "2"
> LMOVEM a b LEFT RIGHT EXACTLY 2 BULK
(nil)
`,
	Run: runLMoveM,
}

func runLMoveM(c *command.Ctx) error {
	m, err := parseMoveMany(c.Args[3:5], c.Args[5:])
	if err != nil {
		return err
	}
	moved, err := moveMany(c, m)
	switch {
	case moved || err != nil:
	case m.Exactly:
		c.Out.NullArray()
	default:
		c.Out.Array(0)
	}
	return err
}

// parseMoveMany reads the two ends, and "[<COUNT n | EXACTLY n> <OBO | BULK>]".
func parseMoveMany(ends, rest [][]byte) (m engine.ListMove, err error) {
	if m.From, m.To, err = parseEnds(ends); err != nil {
		return m, err
	}
	m.Count = 1
	switch len(rest) {
	case 0:
		return m, nil
	case 3:
	default:
		return m, command.ErrSyntax
	}
	m.Exactly, m.OneByOne = command.EqualFold(rest[0], "EXACTLY"), command.EqualFold(rest[2], "OBO")
	if !m.Exactly && !command.EqualFold(rest[0], "COUNT") || !m.OneByOne && !command.EqualFold(rest[2], "BULK") {
		return m, command.ErrSyntax
	}
	n, ok := numeral.ParseInt(rest[1])
	if !ok || n < 1 {
		return m, command.ErrCount
	}
	m.Count = command.CountTo(n)
	return m, nil
}

// moveMany replies with the moved elements, and reports whether there are any.
func moveMany(c *command.Ctx, m engine.ListMove) (moved bool, err error) {
	if err := longPart(c, c.Args[1], int64(m.Count)); err != nil {
		return false, err
	}
	n, err := c.Tx.LMoveMany(c.Args[1], c.Args[2], m, c.Out.Array, c.Out.Bulk)
	return n > 0, err
}

var specBLMoveM = command.Spec{
	Name: "blmovem", Group: command.GroupList, Since: "8.10.0", Complexity: moveManyComplexity,
	Summary: "Pops elements from a list, pushes them to another list and returns them. Waits until they are available " +
		"otherwise. Deletes the list if the last element was moved.",
	Flags: command.Write | command.DenyOOM | command.Blocking | command.Blind,
	Args:  append(fromTo(), leftRight("wherefrom"), leftRight("whereto"), command.Double("timeout"), howMany()),
	Replies: "* An array of the moved elements, as they lie in the destination from left to right.\n" +
		"* nil when the timeout, in seconds, is over.\n\n" +
		moveManyOrder +
		"* With EXACTLY the command waits until the source has that many elements, and clients behind it in line that need fewer are served " +
		"meanwhile. In a transaction or a script it does not wait.",
	Errors: []string{"ERR count should be greater than 0: of COUNT or EXACTLY"},
	Examples: `
2> BLMOVEM a b LEFT RIGHT 0 EXACTLY 3 BULK
> RPUSH a 1 2
(integer) 2
> RPUSH a 3 4
(integer) 4
2< 1) "1"
2) "2"
3) "3"
> BLMOVEM a b RIGHT LEFT 0
1) "4"
> BLMOVEM a b LEFT RIGHT 0.1 COUNT 10 BULK
~ 101ms
1< (nil)
`,
	Run: runBLMoveM,
}

func runBLMoveM(c *command.Ctx) error {
	m, err := parseMoveMany(c.Args[3:5], c.Args[6:])
	if err != nil {
		return err
	}
	ms, err := command.ParseTimeout(c.Args[5])
	if err != nil {
		return err
	}

	for range c.Candidates(c.Args[1:2]) {
		moved, err := moveMany(c, m)
		if moved || err != nil {
			return err
		}
	}

	var want engine.Want
	if m.Exactly {
		want.Elems = m.Count
	}
	return c.Block(command.Wait{Keys: c.Args[1:2], Also: c.Args[2:3], Kinds: engine.KindsOf(engine.List), Want: want, Millis: ms})
}
