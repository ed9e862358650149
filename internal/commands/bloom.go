package commands

import (
	"github.com/ebbdb/ebb/internal/bloom"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

// These are RedisBloom's commands, and WINDOW, with which items expire.

var bloomSpecs = []*command.Spec{&specBFReserve, &specBFAdd, &specBFMAdd, &specBFInsert, &specBFExists, &specBFMExists,
	&specBFCard, &specBFInfo, &specBFScanDump, &specBFLoadChunk}

const (
	errBloomRate       = command.ReplyError("ERR bad error rate")
	errBloomRateRange  = command.ReplyError("ERR (0 < error rate range < 1)")
	errBloomRateSmall  = command.ReplyError("ERR the error rate must be at least 1e-12")
	errBloomCapacity   = command.ReplyError("ERR bad capacity")
	errBloomNone       = command.ReplyError("ERR (capacity should be larger than 0)")
	errBloomMany       = command.ReplyError("ERR the capacity must be at most 1073741824; spread the items over several filters")
	errBloomExpansion  = command.ReplyError("ERR bad expansion")
	errBloomNoExpand   = command.ReplyError("ERR Nonscaling filters cannot expand")
	errBloomWindow     = command.ReplyError("ERR the window must be from 1 ms to 35184372088832 ms")
	errBloomSteps      = command.ReplyError("ERR GENERATIONS must be from 1 to 64, and at most the window in ms")
	errBloomBoth       = command.ReplyError("ERR WINDOW and GENERATIONS come together")
	errBloomIterator   = command.ReplyError("ERR the iterator is not an integer, or negative")
	errBloomInfoField  = command.ReplyError("ERR Invalid information value")
	errBloomFilterFull = "ERR non scaling filter is full: it was made with NONSCALING, and has as many items as its capacity"
	errBloomTooLarge   = "ERR the filter would be larger than 4 GiB, or have more than 64 sub-filters: reserve a larger " +
		"capacity, or spread the items"
)

// bloomConfigErrors are the errors in the options of a new filter.
var bloomConfigErrors = []string{
	"ERR bad error rate: the error rate is not a number",
	"ERR (0 < error rate range < 1): the error rate is not between 0 and 1",
	"ERR the error rate must be at least 1e-12: it is smaller",
	"ERR bad capacity: the capacity is not an integer",
	"ERR (capacity should be larger than 0): the capacity is 0 or negative",
	"ERR the capacity must be at most 1073741824; spread the items over several filters: it is larger",
	"ERR bad expansion: EXPANSION is not from 1 to 32768",
	"ERR Nonscaling filters cannot expand: EXPANSION and NONSCALING together",
	"ERR the window must be from 1 ms to 35184372088832 ms: WINDOW is out of range",
	"ERR GENERATIONS must be from 1 to 64, and at most the window in ms: GENERATIONS is out of range",
	"ERR WINDOW and GENERATIONS come together: one is there without the other",
	errBloomTooLarge,
}

// itemWork is the cost of one item, which causes several cache misses, in bytes read sequentially.
const itemWork = 1024

// longBloom is Ctx.Long for a command on some items.
func longBloom(c *command.Ctx, items int) error { return c.Long(items * itemWork) }

func windowArg() command.Arg {
	return command.Opt(command.TokenArg("WINDOW", command.Block("window", command.Int("milliseconds"), command.TokenArg("GENERATIONS",
		command.Int("generations")))))
}

func growthArg() command.Arg {
	return command.Opt(command.OneOf("growth", command.TokenArg("EXPANSION", command.Int("expansion")), command.Token("NONSCALING")))
}

// windowNotes explains WINDOW in the documentation.
const windowNotes = " With WINDOW an item is found for at least that many ms after it was last added, and forgotten at most " +
	"a generation, WINDOW / " +
	"GENERATIONS ms, later; " +
	"adding it again renews it. The capacity is then that of a window. The filter stays when all its items are forgotten."

// bloomOptions reads the options of a new filter from args, up to the word ITEMS if there is one.
// rest begins with the first argument that is not such an option.
func bloomOptions(args [][]byte, c *engine.BloomConfig) (rest [][]byte, err error) {
	expands, fixed := false, false
	for ; len(args) > 0; args = args[1:] {
		switch {
		case command.EqualFold(args[0], "NONSCALING"):
			fixed = true
			continue
		case len(args) < 2:
			return args, nil
		case command.EqualFold(args[0], "EXPANSION"):
			expands = true
			err = bloomNumber(args[1], 1, bloom.MaxExpansion, &c.Expansion, errBloomExpansion)
		case command.EqualFold(args[0], "WINDOW"):
			err = bloomNumber(args[1], 1, bloom.MaxWindow, &c.Window, errBloomWindow)
		case command.EqualFold(args[0], "GENERATIONS"):
			err = bloomNumber(args[1], 1, bloom.MaxGenerations, &c.Generations, errBloomSteps)
		default:
			return args, bloomTogether(c, expands, fixed)
		}
		if err != nil {
			return nil, err
		}
		args = args[1:]
	}
	return nil, bloomTogether(c, expands, fixed)
}

// bloomTogether verifies that options fit together.
func bloomTogether(c *engine.BloomConfig, expands, fixed bool) error {
	switch {
	case expands && fixed:
		return errBloomNoExpand
	case (c.Window == 0) != (c.Generations == 0):
		return errBloomBoth
	case c.Generations > c.Window:
		return errBloomSteps
	case fixed:
		c.Expansion = 0
	}
	return nil
}

func bloomNumber(arg []byte, low, high int64, to *int64, wrong command.ReplyError) error {
	n, ok := numeral.ParseInt(arg)
	if !ok || n < low || n > high {
		return wrong
	}
	*to = n
	return nil
}

func bloomRate(arg []byte, c *engine.BloomConfig) error {
	f, ok := numeral.ParseDouble(arg)
	switch {
	case !ok:
		return errBloomRate
	case !(f > 0 && f < 1):
		return errBloomRateRange
	case f < bloom.MinError:
		return errBloomRateSmall
	}
	c.Error = f
	return nil
}

func bloomCapacity(arg []byte, c *engine.BloomConfig) error {
	n, ok := numeral.ParseInt(arg)
	switch {
	case !ok:
		return errBloomCapacity
	case n < 1:
		return errBloomNone
	case n > bloom.MaxCapacity:
		return errBloomMany
	}
	c.Capacity = n
	return nil
}

var specBFReserve = command.Spec{
	Name: "bf.reserve", Group: command.GroupBloom, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Creates an empty Bloom filter for a number of items and a rate of errors.",
	Flags:   command.Write | command.DenyOOM | command.Fast,
	Args: []command.Arg{command.Key("key", command.Insert), command.Double("error_rate"), command.Int("capacity"),
		growthArg(), windowArg()},
	Replies: "OK. The filter allocates memory when items are added. It grows by sub-filters, each EXPANSION (2) times as " +
		"large as the last, and keeps its error rate; with NONSCALING it is full at its capacity." + windowNotes,
	Errors: append([]string{"ERR item exists: a filter of this name exists"}, bloomConfigErrors...),
	Examples: `
> BF.RESERVE seen 0.001 1000
OK
> BF.ADD seen ann
(integer) 1
> BF.EXISTS seen ann
(integer) 1
> BF.EXISTS seen bob
(integer) 0
> BF.RESERVE seen 0.001 1000
(error) ERR item exists
> BF.RESERVE today 0.01 10000 WINDOW 86400000 GENERATIONS 24
OK
> BF.ADD today ann
(integer) 1
~ 86400000ms
> BF.EXISTS today ann
(integer) 1
~ 3600001ms
> BF.EXISTS today ann
(integer) 0
`,
	Run: runBFReserve,
}

func runBFReserve(c *command.Ctx) error {
	config := engine.DefaultBloom
	if err := bloomRate(c.Args[2], &config); err != nil {
		return err
	}
	if err := bloomCapacity(c.Args[3], &config); err != nil {
		return err
	}
	rest, err := bloomOptions(c.Args[4:], &config)
	if err == nil && len(rest) > 0 {
		err = command.ErrSyntax
	}
	if err != nil {
		return err
	}

	if err := c.Tx.BFReserve(c.Args[1], config); err != nil {
		return err
	}

	c.Out.OK()
	return nil
}

// addErrors are the errors of commands that add items.
var addErrors = []string{errBloomFilterFull, errBloomTooLarge}

const addComplexity = "O(L*k) where L is the number of sub-filters and k that of bits for an item."

var specBFAdd = command.Spec{
	Name: "bf.add", Group: command.GroupBloom, Since: "1.0.0", Complexity: addComplexity,
	Summary: "Adds an item to a Bloom filter. Creates the filter if it doesn't exist.",
	Flags:   command.Write | command.DenyOOM,
	Args:    []command.Arg{command.Key("key", command.Insert), command.Str("item")},
	Replies: "1 (RESP3: true) if the item is new; 0 if it was added before, or is a false positive. A new filter is for " +
		"100 items at an error rate of 0.01, and grows. " +
		"In a filter with a window, adding an item again renews it.",
	Errors: addErrors,
	Examples: `
> BF.ADD seen ann
(integer) 1
> BF.ADD seen ann
(integer) 0
> BF.EXISTS seen ann
(integer) 1
`,
	Run: runBFAdd,
}

func runBFAdd(c *command.Ctx) error {
	added, err := c.Tx.BFAdd(c.Args[1], c.Args[2])
	if err != nil {
		return err
	}
	c.Out.Bool(added)
	return nil
}

var specBFMAdd = command.Spec{
	Name: "bf.madd", Group: command.GroupBloom, Since: "1.0.0",
	Complexity: "O(N*L*k) where N is the number of items, L that of sub-filters and k that of bits for an item.",
	Summary:    "Adds items to a Bloom filter. Creates the filter if it doesn't exist.",
	Flags:      command.Write | command.DenyOOM,
	Args:       []command.Arg{command.Key("key", command.Insert), command.Many("item")},
	Replies:    "For each item the reply of BF.ADD, or an error if the filter refused it.",
	Errors:     addErrors,
	Examples: `
> BF.MADD seen ann bob ann
1) (integer) 1
2) (integer) 1
3) (integer) 0
`,
	Run: runBFMAdd,
}

func runBFMAdd(c *command.Ctx) error {
	return bfInsert(c, &engine.DefaultBloom, c.Args[2:])
}

// bfInsert adds items and replies with the result of each.
func bfInsert(c *command.Ctx, config *engine.BloomConfig, items [][]byte) error {
	if err := longBloom(c, len(items)); err != nil {
		return err
	}
	mark := c.Out.Mark()
	c.Out.Array(len(items))
	err := c.Tx.BFInsert(c.Args[1], config, items, func(added bool, err error) {
		if err != nil {
			c.Out.Error(command.WireText(err))
		} else {
			c.Out.Bool(added)
		}
	})
	if err != nil {
		c.Out.Rollback(mark)
	}
	return err
}

var specBFInsert = command.Spec{
	Name: "bf.insert", Group: command.GroupBloom, Since: "1.0.0",
	Complexity: "O(N*L*k) where N is the number of items, L that of sub-filters and k that of bits for an item.",
	Summary:    "Adds items to a Bloom filter. Creates the filter with the given options if it doesn't exist.",
	Flags:      command.Write | command.DenyOOM | command.Timed,
	Args: []command.Arg{command.Key("key", command.Insert), command.Opt(command.TokenArg("CAPACITY", command.Int("capacity"))),
		command.Opt(command.TokenArg("ERROR", command.Double("error"))), growthArg(),
		command.Opt(command.Token("NOCREATE")), windowArg(), command.Repeat(command.TokenArg("ITEMS", command.Str("item")))},
	Replies: "For each item the reply of BF.ADD, or an error if the filter refused it. A new filter has the defaults of " +
		"BF.ADD for missing options; an existing filter ignores all options." + windowNotes,
	Errors: append(append([]string{"ERR not found: NOCREATE is given, and there is no filter"}, addErrors[0]), bloomConfigErrors...),
	Examples: `
> BF.INSERT seen CAPACITY 1000 ERROR 0.001 ITEMS ann bob
1) (integer) 1
2) (integer) 1
> BF.INFO seen CAPACITY
1) (integer) 1000
> BF.INSERT nothing NOCREATE ITEMS ann
(error) ERR not found
`,
	Run: runBFInsert,
}

func runBFInsert(c *command.Ctx) error {
	config, create, items, err := insertOptions(c, c.Args[2:])
	if err != nil {
		return err
	}
	if len(items) == 0 && !c.Host.Replaying() { // a replayed one removes the generations that are too old
		return command.WrongArity(c.Spec)
	}
	if !create {
		return bfInsert(c, nil, items)
	}
	return bfInsert(c, &config, items)
}

// insertOptions reads the options after BF.INSERT's key.
func insertOptions(c *command.Ctx, args [][]byte) (config engine.BloomConfig, create bool, items [][]byte, err error) {
	config, create = engine.DefaultBloom, true
	for i, a := range args {
		if command.EqualFold(a, "ITEMS") {
			args, items = args[:i], args[i+1:]
			break
		}
	}
	if len(items) == 0 && len(args) == len(c.Args)-2 {
		return config, false, nil, command.ErrSyntax
	}
	var own [12][]byte // room for the options that BF.RESERVE has as well
	rest := own[:0]
	for ; len(args) > 0 && err == nil; args = args[1:] {
		switch {
		case command.EqualFold(args[0], "NOCREATE"):
			create = false
		case len(args) > 1 && command.EqualFold(args[0], "CAPACITY"):
			err = bloomCapacity(args[1], &config)
			args = args[1:]
		case len(args) > 1 && command.EqualFold(args[0], "ERROR"):
			err = bloomRate(args[1], &config)
			args = args[1:]
		default:
			rest = append(rest, args[0])
		}
	}
	if err == nil {
		if rest, err = bloomOptions(rest, &config); err == nil && len(rest) > 0 {
			err = command.ErrSyntax
		}
	}
	return config, create, items, err
}

var specBFExists = command.Spec{
	Name: "bf.exists", Group: command.GroupBloom, Since: "1.0.0", Complexity: addComplexity,
	Summary: "Determines whether an item was added to a Bloom filter.",
	Flags:   command.ReadOnly,
	Args:    []command.Arg{command.Key("key", command.Read), command.Str("item")},
	Replies: "1 (RESP3: true) if the item was added, and is not too old; 0 if it was not, or if there is no filter. An item " +
		"that was not added gets 1 at the filter's error rate.",
	Examples: `
> BF.ADD seen ann
(integer) 1
> BF.EXISTS seen ann
(integer) 1
> BF.EXISTS seen bob
(integer) 0
> BF.EXISTS nothing bob
(integer) 0
`,
	Run: runBFExists,
}

func runBFExists(c *command.Ctx) error {
	found, err := c.Tx.BFHas(c.Args[1], c.Args[2])
	if err != nil {
		return err
	}
	c.Out.Bool(found)
	return nil
}

var specBFMExists = command.Spec{
	Name: "bf.mexists", Group: command.GroupBloom, Since: "1.0.0",
	Complexity: "O(N*L*k) where N is the number of items, L that of sub-filters and k that of bits for an item.",
	Summary:    "Determines for each item whether it was added to a Bloom filter.",
	Flags:      command.ReadOnly,
	Args:       []command.Arg{command.Key("key", command.Read), command.Many("item")},
	Replies:    "For each item the reply of BF.EXISTS.",
	Examples: `
> BF.MADD seen ann bob
1) (integer) 1
2) (integer) 1
> BF.MEXISTS seen ann cat bob
1) (integer) 1
2) (integer) 0
3) (integer) 1
`,
	Run: runBFMExists,
}

func runBFMExists(c *command.Ctx) error {
	items := c.Args[2:]
	if err := longBloom(c, len(items)); err != nil {
		return err
	}
	mark := c.Out.Mark()
	c.Out.Array(len(items))
	err := c.Tx.BFExists(c.Args[1], items, c.Out.Bool)
	if err != nil {
		c.Out.Rollback(mark)
	}
	return err
}

var specBFCard = command.Spec{
	Name: "bf.card", Group: command.GroupBloom, Since: "2.4.4", Complexity: "O(1)",
	Summary: "Returns the number of items that were added to a Bloom filter.",
	Flags:   command.ReadOnly | command.Fast,
	Args:    []command.Arg{command.Key("key", command.Read)},
	Replies: "The number of items that were new when they were added; 0 if there is no filter. In a filter with a window, " +
		"the number of them that are not too old yet. This is an estimate: " +
		"when a false positive is added, it counts as renewed.",
	Examples: `
> BF.MADD seen ann bob ann
1) (integer) 1
2) (integer) 1
3) (integer) 0
> BF.CARD seen
(integer) 2
> BF.CARD nothing
(integer) 0
`,
	Run: runBFCard,
}

func runBFCard(c *command.Ctx) error {
	n, err := c.Tx.BFCard(c.Args[1])
	if err != nil {
		return err
	}
	c.Out.Int(n)
	return nil
}

var specBFInfo = command.Spec{
	Name: "bf.info", Group: command.GroupBloom, Since: "1.0.0", Complexity: "O(L) where L is the number of sub-filters.",
	Summary: "Returns information about a Bloom filter.",
	Flags:   command.ReadOnly | command.Fast,
	Args: []command.Arg{command.Key("key", command.Read),
		command.Opt(command.OneOf("single_value", command.Token("CAPACITY"), command.Token("SIZE"), command.Token("FILTERS"),
			command.Token("ITEMS"),
			command.Token("EXPANSION"),
			command.Token("ERROR"), command.Token("WINDOW"), command.Token("GENERATIONS")))},
	Replies: "A map in RESP3, a flat array in RESP2: the capacity of all sub-filters, bytes, sub-filters, items, " +
		"expansion (nil: NONSCALING). For a single value an array of one. ERROR, WINDOW (ms, 0: none) and GENERATIONS are returned only " +
		"by name, because clients expect those five.",
	Errors: []string{"ERR not found: the filter does not exist", "ERR Invalid information value: there is no value of this name"},
	Examples: `
> BF.RESERVE seen 0.01 500 EXPANSION 3
OK
> BF.INFO seen
 1) Capacity
 2) (integer) 500
 3) Size
 4) (integer) 272
 5) Number of filters
 6) (integer) 1
 7) Number of items inserted
 8) (integer) 0
 9) Expansion rate
10) (integer) 3
> BF.INFO seen FILTERS
1) (integer) 1
> BF.INFO nothing
(error) ERR not found
`,
	Run: runBFInfo,
}

func runBFInfo(c *command.Ctx) error {
	if len(c.Args) > 3 {
		return command.ErrSyntax
	}
	i, err := c.Tx.BFInfo(c.Args[1])
	if err != nil {
		return err
	}
	if len(c.Args) == 3 {
		return bfInfoOf(c, &i, c.Args[2])
	}

	w := c.Out
	w.Map(5)
	w.Simple("Capacity")
	w.Int(i.Capacity)
	w.Simple("Size")
	w.Int(i.Size)
	w.Simple("Number of filters")
	w.Int(i.Filters)
	w.Simple("Number of items inserted")
	w.Int(i.Items)
	w.Simple("Expansion rate")
	expansion(c, &i)
	return nil
}

// bfInfoOf replies with a single value.
func bfInfoOf(c *command.Ctx, i *engine.BloomInfo, name []byte) error {
	var n int64
	switch {
	case command.EqualFold(name, "CAPACITY"):
		n = i.Capacity
	case command.EqualFold(name, "SIZE"):
		n = i.Size
	case command.EqualFold(name, "FILTERS"):
		n = i.Filters
	case command.EqualFold(name, "ITEMS"):
		n = i.Items
	case command.EqualFold(name, "EXPANSION"):
		c.Out.Array(1)
		expansion(c, i)
		return nil
	case command.EqualFold(name, "ERROR"):
		c.Out.Array(1)
		c.Out.Double(i.Config.Error)
		return nil
	case command.EqualFold(name, "WINDOW"):
		n = i.Config.Window
	case command.EqualFold(name, "GENERATIONS"):
		n = i.Config.Generations
	default:
		return errBloomInfoField
	}
	c.Out.Array(1)
	c.Out.Int(n)
	return nil
}

// expansion replies with the growth factor of a filter.
func expansion(c *command.Ctx, i *engine.BloomInfo) {
	if i.Config.Expansion == 0 {
		c.Out.Null()
		return
	}
	c.Out.Int(i.Config.Expansion)
}

var specBFScanDump = command.Spec{
	Name: "bf.scandump", Group: command.GroupBloom, Since: "1.0.0",
	Complexity: "O(L+B) for each call, where L is the number of sub-filters, and their pieces of 64 KiB, and B that of bytes returned.",
	Summary:    "Returns a Bloom filter in parts of about a MiB, for BF.LOADCHUNK.",
	Flags:      command.ReadOnly,
	Args:       []command.Arg{command.Key("key", command.Read), command.Int("iterator")},
	Replies: "The next iterator, and its part; 0 and an empty part at the end. The first iterator is 0. The filter " +
		"must not change meanwhile. The parts have ebb's own format: ebb and RedisBloom do not read each other's " +
		"parts. They do not contain TTLs.",
	Errors: []string{"ERR not found: the filter does not exist", "ERR the iterator is not an integer, or negative: the iterator is invalid"},
	Examples: `
> BF.RESERVE seen 0.5 5
OK
> BF.ADD seen a
(integer) 1
> BF.SCANDUMP seen 0
1) (integer) 1
2) "\x01\x00\x00\x00\x00\x00\x00\xe0?\n\x04\x00\x00\x02\x00\x02\x02\n\x02\x80\x02\x02\x04"
> BF.SCANDUMP seen 1
1) (integer) 2
2) "\x01\x01\x00\x00\x00\x00\x00\x80\x00\x00\x00\x00\x00\x00\x00 \x00\x00"
> BF.SCANDUMP seen 2
1) (integer) 0
2) ""
`,
	Run: runBFScanDump,
}

func runBFScanDump(c *command.Ctx) error {
	it, ok := numeral.ParseInt(c.Args[2])
	if !ok || it < 0 {
		return errBloomIterator
	}

	next, chunk, err := c.Tx.BFScanDump(c.Args[1], it)
	if err != nil {
		return err
	}

	c.Out.Array(2)
	c.Out.Int(next)
	c.Out.Bulk(chunk)
	return nil
}

var specBFLoadChunk = command.Spec{
	Name: "bf.loadchunk", Group: command.GroupBloom, Since: "1.0.0", Complexity: "O(B) where B is the number of bytes.",
	Summary: "Loads a part of a Bloom filter that BF.SCANDUMP returned.",
	Flags:   command.Write | command.DenyOOM,
	Args:    []command.Arg{command.Key("key", command.Overwrite), command.Int("iterator"), command.Str("data")},
	Replies: "OK. The first part, with the iterator 1, creates the filter and replaces an existing one, whose time to live stays. " +
		"A part may be loaded again. The filter is complete when all parts are loaded.",
	Errors: []string{"ERR received bad data: the part is damaged, or belongs to " +
		"another filter", "ERR not found: the filter does not exist, and the part is not the first",
		"ERR the iterator is not an integer, or negative: the iterator is invalid"},
	Examples: `
> BF.LOADCHUNK copy 1 "\x01\x00\x00\x00\x00\x00\x00\xe0?\n\x04\x00\x00\x02\x00\x02\x02\n\x02\x80\x02\x02\x04"
OK
> BF.LOADCHUNK copy 2 "\x01\x01\x00\x00\x00\x00\x00\x80\x00\x00\x00\x00\x00\x00\x00 \x00\x00"
OK
> BF.MEXISTS copy a b
1) (integer) 1
2) (integer) 0
`,
	Run: runBFLoadChunk,
}

func runBFLoadChunk(c *command.Ctx) error {
	it, ok := numeral.ParseInt(c.Args[2])
	if !ok || it < 1 {
		return errBloomIterator
	}
	if err := c.Long(len(c.Args[3])); err != nil {
		return err
	}

	if err := c.Tx.BFLoadChunk(c.Args[1], it, c.Args[3]); err != nil {
		return err
	}

	c.Out.OK()
	return nil
}
