package commands

import "github.com/ebbdb/ebb/internal/command"

var specHRandField = command.Spec{
	Name: "hrandfield", Group: command.GroupHash, Since: "6.2.0", Complexity: "O(N) where N is the number of fields returned",
	Summary: "Returns one or more random fields from a hash.",
	Flags:   command.ReadOnly | command.Blind,
	Args: []command.Arg{command.Key("key", command.Read),
		command.Opt(command.Block("options", command.Int("count"), command.Opt(command.Token("WITHVALUES"))))},
	Tips: []string{"nondeterministic_output"},
	Replies: "Without count a field, or nil if there is no such key. With count an array of that many different " +
		"fields, or of all if there are fewer; a negative count allows repetitions and always returns that many. WITHVALUES adds the " +
		"values after the fields, in RESP3 as pairs.",
	Errors: command.DrawErrors,
	Examples: `
> HSET coin heads obverse
(integer) 1
> HRANDFIELD coin
"heads"
> HRANDFIELD coin 5 WITHVALUES
1) "heads"
2) "obverse"
> HRANDFIELD coin -3
1) "heads"
2) "heads"
3) "heads"
> HRANDFIELD nothing
(nil)
`,
	Run: runHRandField,
}

func runHRandField(c *command.Ctx) error {
	if len(c.Args) == 2 {
		h, err := c.Tx.Hash(c.Args[1])
		if err != nil {
			return err
		}
		field, _, ok := h.Random()
		bulkOrNull(c, field, ok)
		return nil
	}
	n, values, err := command.ParseDraw(c.Args, "WITHVALUES")
	if err != nil {
		return err
	}
	return randomFields(c, n, values)
}

// randomFields replies with n different fields, or, if n is negative, with -n fields that may repeat.
func randomFields(c *command.Ctx, n int64, values bool) error {
	work := c.Tx.ValueSize(c.Args[1]) * command.WalkBytes
	if n < 0 {
		work = int(-n) * fieldBytes
	} else if n < int64(work)/fieldBytes {
		work = int(n) * fieldBytes
	}
	if err := c.Long(work); err != nil {
		return err
	}
	h, err := c.Tx.Hash(c.Args[1])
	if err != nil {
		return err
	}

	count := int(min(n, int64(h.Len())))
	if n < 0 && h.Len() > 0 {
		count = int(-n)
	}
	count = max(count, 0)
	pairs := values && c.Out.Proto == 3
	if values && !pairs {
		c.Out.Array(2 * count)
	} else {
		c.Out.Array(count)
	}
	reply := func(field, value []byte) {
		if pairs {
			c.Out.Array(2)
		}
		c.Out.Bulk(field)
		if values {
			c.Out.Bulk(value)
		}
	}
	if n >= 0 {
		h.Sample(count, reply)
		return nil
	}
	return c.Draw(count, func(d *command.Drawing, n int) {
		h.Draw(n, func(field, value []byte) {
			size := len(field)
			if values {
				size += len(value)
			}
			if d.More(size) {
				reply(field, value)
			}
		})
	})
}

var specHScan = command.Spec{
	Name: "hscan", Group: command.GroupHash, Since: "2.8.0",
	Complexity: "O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to " +
		"return back to 0. N is the number of elements inside the collection.",
	Summary: "Iterates over fields and values of a hash.",
	Flags:   command.ReadOnly | command.Blind,
	Args: []command.Arg{command.Key("key", command.Read), command.Int("cursor"),
		command.Opt(command.TokenArg("MATCH", command.Pattern("pattern"))),
		command.Opt(command.TokenArg("COUNT", command.Int("count"))),
		command.Opt(command.Token("NOVALUES")).Since("7.4.0")},
	Tips: []string{"nondeterministic_output"},
	Replies: "The cursor for the next call, 0 at the end, and an array of fields and values, with NOVALUES of fields. " +
		"A field that is there from the first call to the last is returned at least once.",
	Examples: `
> HSET user name Ada age 36
(integer) 2
> HSCAN user 0 MATCH n*
1) "0"
2) 1) "name"
   2) "Ada"
> HSCAN user 0 NOVALUES
1) "0"
2) 1) "name"
   2) "age"
`,
	Run: runHScan,
}

func runHScan(c *command.Ctx) error {
	cursor, err := parseCursor(c.Args[2])
	if err != nil {
		return err
	}
	h, err := c.Tx.Hash(c.Args[1])
	if err != nil {
		return err
	}
	if h.Len() == 0 {
		scanned(c, 0, &names{})
		return nil
	}
	o := scanOptions{fields: true}
	if err := o.parse(c.Args[3:], false); err != nil {
		return err
	}
	if err := longScan(c, c.Args[1], o.count); err != nil {
		return err
	}

	found := newNames(c)
	cursor = h.Scan(cursor, o.limit(), func(field, value []byte) {
		if !o.matches(field) {
			return
		}
		found.add(field)
		if !o.noValues {
			found.add(value)
		}
	})

	scanned(c, cursor, &found)
	return nil
}
