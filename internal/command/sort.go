package command

import (
	"math"

	"github.com/ebbdb/ebb/engine"
)

var sortSpecs = []*Spec{&specSort, &specSortRO}

// sortArgs is the grammar of SORT_RO, and of SORT but for its STORE.
func sortArgs() []Arg {
	return []Arg{Key("key", Read), Opt(TokenArg("BY", Pattern("pattern"))).Spec(1),
		Opt(Block("LIMIT", Int("offset"), Int("count")).As("offset_count")),
		Opt(RepeatToken(TokenArg("GET", Pattern("pattern")))).Spec(1),
		Opt(OneOf("order", Token("ASC"), Token("DESC"))), Opt(Token("ALPHA").As("sorting"))}
}

var sortKeySpecs = []KeySpec{
	{Flags: Read, Begin: BeginIndex, Index: 1, Find: FindRange, Step: 1},
	{Flags: Read, Note: "The keys of BY and GET follow from the elements."},
	{Flags: Overwrite, Note: "STORE can stand anywhere among the options."},
}

// sortKeys are the key to sort and the destination; of several STOREs the last one
// counts.
var sortKeys = KeyOptions{First: KeyRef{1, Read}, From: 2, Take: TakeLast,
	Options: []KeyOption{{Word: "LIMIT", Args: 2}, {Word: "BY", Args: 1}, {Word: "GET", Args: 1}, {Word: "STORE", Args: 1, Key: Overwrite}}}

const sortComplexity = "O(N+M*log(M)) where N is the number of elements, and M the number of returned elements. O(N) where they are not sorted."

var specSort = Spec{
	Name: "sort", Group: GroupGeneric, Since: "1.0.0", Complexity: sortComplexity,
	Summary:    "Returns the elements of a list, set or sorted set in an order, or stores them.",
	Flags:      Write | DenyOOM,
	Categories: CatSet | CatSortedSet | CatList | CatDangerous,
	Without:    CatKeyspace,
	Args:       append(sortArgs(), Opt(TokenArg("STORE", Key("destination", Overwrite)).Spec(2))),
	KeyOptions: &sortKeys,
	KeySpecs:   sortKeySpecs,
	Wide:       sortsByKeys,
	Replies: "The elements; with GET, for each of them what each pattern finds, nil where it finds nothing; with STORE their number. " +
		"In a pattern the first * stands for the element, and ->field behind it for a field of a hash; # is the element itself. " +
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

var specSortRO = Spec{
	Name: "sort_ro", Group: GroupGeneric, Since: "7.0.0", Complexity: sortComplexity,
	Summary:    "Returns the elements of a list, set or sorted set in an order. SORT without STORE.",
	Flags:      ReadOnly,
	Categories: CatSet | CatSortedSet | CatList | CatDangerous,
	Without:    CatKeyspace,
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

// sortOption tells how many arguments follow the option at args[0] of SORT, -1
// if it is none.
func sortOption(args [][]byte) int {
	switch {
	case EqualFold(args[0], "ASC"), EqualFold(args[0], "DESC"), EqualFold(args[0], "ALPHA"):
		return 0
	case EqualFold(args[0], "LIMIT"):
		return 2
	case EqualFold(args[0], "BY"), EqualFold(args[0], "GET"), EqualFold(args[0], "STORE"):
		return 1
	}
	return -1
}

// sortsByKeys reports whether a SORT looks at keys that it does not name.
func sortsByKeys(args [][]byte) bool {
	for i := 2; i < len(args); i++ {
		n := max(0, sortOption(args[i:]))
		if n == 1 && i+1 < len(args) && !EqualFold(args[i], "STORE") && engine.Patterned(args[i+1]) {
			return true
		}
		i += n
	}
	return false
}

func runSort(c *Ctx) error {
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

// sortOptions reads what follows the key; store is STORE's destination.
func sortOptions(c *Ctx) (o engine.SortOptions, store []byte, err error) {
	o.Count = math.MaxInt64
	for i := 2; i < len(c.Args); i++ {
		args := c.Args[i:]
		n := sortOption(args)
		if n < 0 || n >= len(args) {
			return o, nil, ErrSyntax
		}
		switch {
		case EqualFold(args[0], "ASC"):
			o.Desc = false
		case EqualFold(args[0], "DESC"):
			o.Desc = true
		case EqualFold(args[0], "ALPHA"):
			o.Alpha = true
		case EqualFold(args[0], "BY"):
			if o.By = args[1]; engine.Patterned(o.By) {
				err = c.sortDenied("BY")
			}
		case EqualFold(args[0], "GET"):
			o.Get, err = append(o.Get, args[1]), c.sortDenied("GET")
		case EqualFold(args[0], "LIMIT"):
			o.Offset, o.Count, err = parseTwo(args[1], args[2])
		case c.Spec != nil && c.Spec.Has(ReadOnly):
			return o, nil, ErrSyntax
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

// sortDenied refuses options that lead to keys which are not among the
// arguments: to those who may not read all keys, and in a cluster.
func (c *Ctx) sortDenied(option string) error {
	switch {
	case c.Host.Clustered():
		return ReplyError("ERR " + option + " option of SORT denied in Cluster mode.")
	case !c.Host.MayReadEveryKey(c):
		return ReplyError("ERR " + option + " option of SORT denied due to insufficient ACL permissions.")
	}
	return nil
}
