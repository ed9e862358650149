package commands

import (
	"math"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
)

var sortSpecs = []*command.Spec{&specSort, &specSortRO}

// sortArgs returns the grammar of SORT_RO, and of SORT without its STORE.
func sortArgs() []command.Arg {
	return []command.Arg{command.Key("key", command.Read), command.Opt(command.TokenArg("BY", command.Pattern("pattern"))).Spec(1),
		command.Opt(command.Block("LIMIT", command.Int("offset"), command.Int("count")).As("offset_count")),
		command.Opt(command.RepeatToken(command.TokenArg("GET", command.Pattern("pattern")))).Spec(1),
		command.Opt(command.OneOf("order", command.Token("ASC"), command.Token("DESC"))), command.Opt(command.Token("ALPHA").As("sorting"))}
}

var sortKeySpecs = []command.KeySpec{
	{Flags: command.Read, Begin: command.BeginIndex, Index: 1, Find: command.FindRange, Step: 1},
	{Flags: command.Read, Note: "The keys of BY and GET follow from the elements."},
	{Flags: command.Overwrite, Note: "STORE can stand anywhere among the options."},
}

// sortKeys finds the key to sort and the destination; of several STOREs the last one counts.
var sortKeys = command.KeyOptions{First: command.KeyRef{Pos: 1, Flags: command.Read}, From: 2, Take: command.TakeLast,
	Options: []command.KeyOption{{Word: "LIMIT", Args: 2}, {Word: "BY", Args: 1}, {Word: "GET", Args: 1},
		{Word: "STORE", Args: 1, Key: command.Overwrite}}}

const sortComplexity = "O(N+M*log(M)) where N is the number of elements, and M the number of returned elements. " +
	"O(N) where they are not sorted."

var specSort = command.Spec{
	Name: "sort", Group: command.GroupGeneric, Since: "1.0.0", Complexity: sortComplexity,
	Summary:    "Returns the elements of a list, set or sorted set in an order, or stores them.",
	Flags:      command.Write | command.DenyOOM | command.Reveals,
	Categories: command.CatSet | command.CatSortedSet | command.CatList | command.CatDangerous,
	Without:    command.CatKeyspace,
	Args:       append(sortArgs(), command.Opt(command.TokenArg("STORE", command.Key("destination", command.Overwrite)).Spec(2))),
	KeyOptions: &sortKeys,
	KeySpecs:   sortKeySpecs,
	Wide:       sortsByKeys,
	Replies: "The elements; with GET, for each of them the values that the patterns find, nil where a pattern finds nothing; " +
		"with STORE their number, and they have no deadlines at the destination. " +
		"In a pattern the first * is the element, and ->field after it is a field of a hash; # is the element itself. " +
		"Elements are numbers unless ALPHA is given.",
	Examples: `
> RPUSH l 3 1 2
(integer) 3
> SORT l
1) "1"
2) "2"
3) "3"
> MSET w1 30 w2 20 w3 10
OK
> SORT l BY w* GET # GET w* LIMIT 0 2
1) "3"
2) "10"
3) "2"
4) "20"
> SORT l DESC STORE s
(integer) 3
`,
	Run: runSort,
}

var specSortRO = command.Spec{
	Name: "sort_ro", Group: command.GroupGeneric, Since: "7.0.0", Complexity: sortComplexity,
	Summary:    "Returns the elements of a list, set or sorted set in an order. SORT without STORE.",
	Flags:      command.ReadOnly | command.Reveals,
	Categories: command.CatSet | command.CatSortedSet | command.CatList | command.CatDangerous,
	Without:    command.CatKeyspace,
	Args:       sortArgs(),
	KeyOptions: &sortKeys,
	KeySpecs:   sortKeySpecs[:2],
	Wide:       sortsByKeys,
	Replies:    "The elements, as SORT.",
	Examples: `
> RPUSH l b a
(integer) 2
> SORT_RO l ALPHA
1) "a"
2) "b"
> SORT_RO l ALPHA STORE x
(error) ERR syntax error
`,
	Run: runSort,
}

// sortOption returns the number of arguments after the option at args[0] of SORT, -1 if it is not
// an option.
func sortOption(args [][]byte) int {
	switch {
	case command.EqualFold(args[0], "ASC"), command.EqualFold(args[0], "DESC"), command.EqualFold(args[0], "ALPHA"):
		return 0
	case command.EqualFold(args[0], "LIMIT"):
		return 2
	case command.EqualFold(args[0], "BY"), command.EqualFold(args[0], "GET"), command.EqualFold(args[0], "STORE"):
		return 1
	}
	return -1
}

// sortsByKeys reports whether a SORT reads keys that it does not name.
func sortsByKeys(args [][]byte) bool {
	for i := 2; i < len(args); i++ {
		n := max(0, sortOption(args[i:]))
		if n == 1 && i+1 < len(args) && !command.EqualFold(args[i], "STORE") && engine.Patterned(args[i+1]) {
			return true
		}
		i += n
	}
	return false
}

func runSort(c *command.Ctx) error {
	o, store, err := sortOptions(c)
	if err != nil {
		return err
	}
	if err := c.Long(c.Tx.DumpSize(c.Args[1]) * dumpCost); err != nil {
		return err
	}

	o.Store, o.Settled = store != nil, c.Host.InScript()
	sorted, err := c.Tx.Sort(c.Args[1], o)
	if err != nil {
		return err
	}
	if store != nil {
		n, err := sorted.Store(store)
		if err != nil {
			return err
		}
		c.Out.Int(int64(n))
		return nil
	}

	c.Out.Array(sorted.Len())
	sorted.Each(func(val []byte, ok bool) {
		if !ok {
			c.Out.Null()
			return
		}
		c.Out.Bulk(val)
	})
	return nil
}

// sortOptions reads the options after the key; store is STORE's destination.
func sortOptions(c *command.Ctx) (o engine.SortOptions, store []byte, err error) {
	o.Count = math.MaxInt64
	for i := 2; i < len(c.Args); i++ {
		args := c.Args[i:]
		n := sortOption(args)
		if n < 0 || n >= len(args) {
			return o, nil, command.ErrSyntax
		}
		switch {
		case command.EqualFold(args[0], "ASC"):
			o.Desc = false
		case command.EqualFold(args[0], "DESC"):
			o.Desc = true
		case command.EqualFold(args[0], "ALPHA"):
			o.Alpha = true
		case command.EqualFold(args[0], "BY"):
			if o.By = args[1]; engine.Patterned(o.By) {
				err = sortDenied(c, "BY")
			}
		case command.EqualFold(args[0], "GET"):
			o.Get, err = append(o.Get, args[1]), sortDenied(c, "GET")
		case command.EqualFold(args[0], "LIMIT"):
			o.Offset, o.Count, err = command.ParseTwo(args[1], args[2])
		case c.Spec != nil && c.Spec.Has(command.ReadOnly):
			return o, nil, command.ErrSyntax
		default:
			store = args[1]
		}
		if err != nil {
			return o, nil, err
		}
		i += n
	}
	return o, store, nil
}

// sortDenied refuses options that read keys which are not among the arguments, if the user may not
// read all keys, or in a cluster.
func sortDenied(c *command.Ctx, option string) error {
	switch {
	case c.Host.Clustered():
		return command.ReplyError("ERR " + option + " option of SORT denied in Cluster mode.")
	case !c.Host.MayReadEveryKey(c):
		return command.ReplyError("ERR " + option + " option of SORT denied due to insufficient ACL permissions.")
	}
	return nil
}
