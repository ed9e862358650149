package command

import (
	"cmp"

	"github.com/ebbdb/ebb/internal/glob"
	"github.com/ebbdb/ebb/internal/wire"
)

// The COMMAND family needs only the table.

var SpecCommand = Spec{
	Name: "command", Group: GroupServer, Since: "2.8.13", Complexity: "O(N) where N is the number of commands",
	Summary:    "Lists all commands with their arity, flags and key positions.",
	Flags:      Loading | Stale | Inert,
	Categories: CatConnection,
	Tips:       []string{"nondeterministic_output_order"},
	Replies:    "An array with one entry per command, in the form of COMMAND INFO.",
	Examples:   "> COMMAND INFO command|count\n" + exampleCommandInfo,
	Run:        runCommand,
	Sub: []*Spec{&specCommandCount, &specCommandDocs, &specCommandGetKeys, &specCommandGetKeysAndFlags,
		&specCommandHelp, &specCommandInfo, &specCommandList},
}

func runCommand(c *Ctx) error {
	writeInfos(c.Out, c.Table.Commands())
	return nil
}

var specCommandHelp = HelpSpec("command", GroupServer, CatConnection)

var specCommandCount = Spec{
	Name: "command|count", Group: GroupServer, Since: "2.8.13", Complexity: "O(1)",
	Summary:    "Counts the commands.",
	Flags:      Loading | Stale | Inert,
	Categories: CatConnection,
	Replies:    "The number of commands, subcommands not counted.",
	Examples: `
> COMMAND COUNT
(integer) $commands > 1
`,
	Run: runCommandCount,
}

func runCommandCount(c *Ctx) error {
	c.Out.Int(int64(len(c.Table.Commands())))
	return nil
}

const exampleCommandInfo = `1)  1) "command|count"
    2) (integer) 2
    3) 1) loading
       2) stale
    4) (integer) 0
    5) (integer) 0
    6) (integer) 0
    7) 1) @slow
       2) @connection
    8) (empty array)
    9) (empty array)
   10) (empty array)
`

var specCommandInfo = Spec{
	Name: "command|info", Group: GroupServer, Since: "2.8.13", Complexity: "O(N) where N is the number of commands asked for",
	Summary:    "Describes commands: arity, flags, key positions, ACL categories, subcommands.",
	Flags:      Loading | Stale | Inert,
	Categories: CatConnection,
	Tips:       []string{"nondeterministic_output_order"},
	History:    []Change{{"7.0.0", "Without a name it describes all commands."}},
	Args:       []Arg{Opt(Many("command-name"))},
	Replies:    "An array with an entry of ten elements per name; nil for a name that does not exist.",
	Examples:   "> COMMAND INFO command|count nosuch\n" + exampleCommandInfo + "2) (nil)\n",
	Run:        runCommandInfo,
}

func runCommandInfo(c *Ctx) error {
	names := c.Args[2:]
	if len(names) == 0 {
		writeInfos(c.Out, c.Table.Commands())
		return nil
	}
	c.Out.Array(len(names))
	for _, name := range names {
		if s := c.Table.LookupFull(string(name)); s != nil {
			WriteInfo(s, c.Out)
		} else {
			c.Out.Null()
		}
	}
	return nil
}

var specCommandDocs = Spec{
	Name: "command|docs", Group: GroupServer, Since: "7.0.0", Complexity: "O(N) where N is the number of commands asked for",
	Summary:    "Documents commands: summary, history, and the grammar of their arguments.",
	Flags:      Loading | Stale | Inert,
	Categories: CatConnection,
	Tips:       []string{"nondeterministic_output_order"},
	Args:       []Arg{Opt(Many("command-name"))},
	Replies:    "A map from each name that exists to a map of its documentation.",
	Examples: `
> COMMAND DOCS command|count nosuch
1) "command|count"
2) 1) "summary"
   2) "Counts the commands."
   3) "since"
   4) "2.8.13"
   5) "group"
   6) "server"
   7) "complexity"
   8) "O(1)"
`,
	Run: runCommandDocs,
}

func runCommandDocs(c *Ctx) error {
	found := c.Table.Commands()
	if names := c.Args[2:]; len(names) > 0 {
		found = nil
		for _, name := range names {
			if s := c.Table.LookupFull(string(name)); s != nil {
				found = append(found, s)
			}
		}
	}

	c.Out.Map(len(found))
	for _, s := range found {
		WriteDocs(s, c.Out)
	}
	return nil
}

var specCommandGetKeys = Spec{
	Name: "command|getkeys", Group: GroupServer, Since: "2.8.13", Complexity: "O(N) where N is the number of arguments",
	Summary:    "Returns the keys among a command's arguments.",
	Flags:      Loading | Stale | Inert,
	Categories: CatConnection,
	Args:       []Arg{Str("command"), Opt(Many("arg"))},
	Replies:    "An array of the keys, in the order of the arguments.",
	Examples: `
> COMMAND GETKEYS COMMAND COUNT
(error) ERR The command has no key arguments
> COMMAND GETKEYS nosuch a
(error) ERR Invalid command specified
`,
	Run: runCommandGetKeys,
}

func runCommandGetKeys(c *Ctx) error {
	args := c.Args[2:]
	keys, err := findKeys(c.Table, args)
	if err != nil {
		return err
	}

	c.Out.Array(len(keys))
	for _, k := range keys {
		c.Out.Bulk(args[k.Pos])
	}
	return nil
}

var specCommandGetKeysAndFlags = Spec{
	Name: "command|getkeysandflags", Group: GroupServer, Since: "7.0.0", Complexity: "O(N) where N is the number of arguments",
	Summary:    "Returns the keys among a command's arguments, and how the command uses each.",
	Flags:      Loading | Stale | Inert,
	Categories: CatConnection,
	Args:       []Arg{Str("command"), Opt(Many("arg"))},
	Replies:    "An array of pairs: the key, and the flags of its use.",
	Examples: `
> COMMAND GETKEYSANDFLAGS COMMAND COUNT
(error) ERR The command has no key arguments
`,
	Run: runCommandGetKeysAndFlags,
}

func runCommandGetKeysAndFlags(c *Ctx) error {
	args := c.Args[2:]
	keys, err := findKeys(c.Table, args)
	if err != nil {
		return err
	}

	c.Out.Array(len(keys))
	for _, k := range keys {
		c.Out.Array(2)
		c.Out.Bulk(args[k.Pos])
		writeStatuses(c.Out, "", k.Flags.Names())
	}
	return nil
}

// The errors of COMMAND GETKEYS.
const (
	errKeysCommand = ReplyError("ERR Invalid command specified")
	errKeysNone    = ReplyError("ERR The command has no key arguments")
	errKeysArity   = ReplyError("ERR Invalid number of arguments specified for command")
	errKeysArgs    = ReplyError("ERR Invalid arguments specified for command")
)

// findKeys finds the keys of a request that is an argument of another request.
func findKeys(t *Table, args [][]byte) ([]KeyRef, error) {
	s, err := t.Find(args)
	switch {
	case err != nil:
		return nil, errKeysCommand
	case !s.HasKeys():
		return nil, errKeysNone
	case !s.ArityOK(args):
		return nil, errKeysArity
	}
	keys, err := s.AppendKeys(nil, args)
	if err != nil || len(keys) == 0 && !s.Has(NoMandatoryKeys) {
		return nil, errKeysArgs
	}
	return keys, nil
}

var specCommandList = Spec{
	Name: "command|list", Group: GroupServer, Since: "7.0.0", Complexity: "O(N) where N is the number of commands",
	Summary:    "Lists the names of all commands, or of those that match a filter.",
	Flags:      Loading | Stale | Inert,
	Categories: CatConnection,
	Tips:       []string{"nondeterministic_output_order"},
	Args: []Arg{Opt(TokenArg("FILTERBY", OneOf("filterby", TokenArg("MODULE", Str("module-name")),
		TokenArg("ACLCAT", Str("category")), TokenArg("PATTERN", Pattern("pattern")))))},
	Replies: "An array of names, with those of subcommands.",
	Examples: `
> COMMAND LIST FILTERBY PATTERN command|c*
1) "command|count"
> COMMAND LIST FILTERBY MODULE nosuch
(empty array)
`,
	Run: runCommandList,
}

func runCommandList(c *Ctx) error {
	accept, err := listFilter(c.Args[2:])
	if err != nil {
		return err
	}

	var names []string
	for _, s := range c.Table.Commands() {
		if accept == nil || accept(s) {
			names = append(names, s.Name)
		}
		for _, sub := range s.Sub {
			if accept == nil || accept(sub) {
				names = append(names, sub.Name)
			}
		}
	}

	c.Out.Array(len(names))
	for _, n := range names {
		c.Out.BulkString(n)
	}
	return nil
}

// listFilter parses [FILTERBY kind value]; a nil filter accepts every command.
func listFilter(args [][]byte) (func(*Spec) bool, error) {
	if len(args) == 0 {
		return nil, nil
	}
	if len(args) != 3 || !EqualFold(args[0], "FILTERBY") {
		return nil, ErrSyntax
	}
	value := string(args[2])
	switch {
	case EqualFold(args[1], "MODULE"):
		return func(s *Spec) bool { return s.Group == GroupBloom && value == "bf" }, nil
	case EqualFold(args[1], "ACLCAT"):
		cat, _ := CategoryByName(value)
		return func(s *Spec) bool { return s.ACL()&cat != 0 }, nil
	case EqualFold(args[1], "PATTERN"):
		return func(s *Spec) bool { return glob.MatchFold(value, s.Name) }, nil
	}
	return nil, ErrSyntax
}

func writeInfos(w *wire.Writer, specs []*Spec) {
	w.Array(len(specs))
	for _, s := range specs {
		WriteInfo(s, w)
	}
}

// WriteInfo writes the ten elements of COMMAND INFO.
func WriteInfo(s *Spec, w *wire.Writer) {
	w.Array(10)
	w.BulkString(s.Name)
	w.Int(int64(s.Arity()))
	writeStatuses(w, "", s.Flags.Names())
	first, last, step := s.KeyRange()
	w.Int(int64(first))
	w.Int(int64(last))
	w.Int(int64(step))
	writeStatuses(w, "@", s.ACL().Names())
	w.Set(len(s.Tips))
	for _, tip := range s.Tips {
		w.BulkString(tip)
	}
	w.Set(len(s.AllKeySpecs()))
	for i := range s.AllKeySpecs() {
		s.AllKeySpecs()[i].write(w)
	}
	if len(s.Sub) == 0 {
		w.Set(0)
		return
	}
	writeInfos(w, s.Sub)
}

func writeStatuses(w *wire.Writer, prefix string, names []string) {
	w.Set(len(names))
	for _, n := range names {
		w.Simple(prefix + n)
	}
}

// write writes a key spec as COMMAND INFO shows it.
func (k *KeySpec) write(w *wire.Writer) {
	n := 3
	if k.Note != "" {
		n++
	}
	w.Map(n)
	if k.Note != "" {
		writePair(w, "notes", k.Note)
	}
	w.BulkString("flags")
	writeStatuses(w, "", k.Flags.Names())

	w.BulkString("begin_search")
	w.Map(2)
	switch k.Begin {
	case BeginIndex:
		writeRule(w, "index", 1)
		writeIntPair(w, "index", k.Index)
	case BeginKeyword:
		writeRule(w, "keyword", 2)
		writePair(w, "keyword", k.Keyword)
		writeIntPair(w, "startfrom", k.Index)
	default:
		writeRule(w, "unknown", 0)
	}

	w.BulkString("find_keys")
	w.Map(2)
	switch k.Find {
	case FindRange:
		writeRule(w, "range", 3)
		writeIntPair(w, "lastkey", k.Last)
		writeIntPair(w, "keystep", k.Step)
		writeIntPair(w, "limit", k.Limit)
	case FindKeyNum:
		writeRule(w, "keynum", 3)
		writeIntPair(w, "keynumidx", k.Count)
		writeIntPair(w, "firstkey", k.First)
		writeIntPair(w, "keystep", k.Step)
	default:
		writeRule(w, "unknown", 0)
	}
}

// writeRule writes the type of a search and announces its n parameters.
func writeRule(w *wire.Writer, kind string, n int) {
	writePair(w, "type", kind)
	w.BulkString("spec")
	w.Map(n)
}

func writePair(w *wire.Writer, key, value string) {
	w.BulkString(key)
	w.BulkString(value)
}

func writeIntPair(w *wire.Writer, key string, value int) {
	w.BulkString(key)
	w.Int(int64(value))
}

// WriteDocs writes a name and the map that COMMAND DOCS gives for it.
func WriteDocs(s *Spec, w *wire.Writer) {
	w.BulkString(s.Name)
	at := w.MapLater()
	complexity := cmp.Or(s.Complexity, "Depends on subcommand.")
	writePair(w, "summary", s.Summary)
	writePair(w, "since", s.Since)
	writePair(w, "group", string(s.Group))
	writePair(w, "complexity", complexity)
	n := 4 + s.writeDocFlags(w)
	if len(s.History) > 0 {
		n++
		w.BulkString("history")
		w.Set(len(s.History))
		for _, h := range s.History {
			w.Array(2)
			w.BulkString(h.Since)
			w.BulkString(h.Text)
		}
	}
	if len(s.Args) > 0 {
		n++
		w.BulkString("arguments")
		next := 0
		writeArgs(w, s.Args, &next)
	}
	if len(s.Sub) > 0 {
		n++
		w.BulkString("subcommands")
		w.Map(len(s.Sub))
		for _, sub := range s.Sub {
			WriteDocs(sub, w)
		}
	}
	w.Patch(at, n)
}

// writeDocFlags writes what marks a command as deprecated or internal, and
// returns the number of pairs.
func (s *Spec) writeDocFlags(w *wire.Writer) (n int) {
	var flags []string
	if s.Deprecated != nil {
		flags = append(flags, "deprecated")
	}
	if s.SysCmd {
		flags = append(flags, "syscmd")
	}
	if len(flags) > 0 {
		n++
		w.BulkString("doc_flags")
		writeStatuses(w, "", flags)
	}
	if d := s.Deprecated; d != nil {
		n += 2
		writePair(w, "deprecated_since", d.Since)
		writePair(w, "replaced_by", d.ReplacedBy)
	}
	return n
}

// writeArgs writes a grammar; next is the index of the next key's spec.
func writeArgs(w *wire.Writer, args []Arg, next *int) {
	w.Array(len(args))
	for i := range args {
		args[i].write(w, next)
	}
}

func (a *Arg) write(w *wire.Writer, next *int) {
	at := w.MapLater()
	n := 2
	writePair(w, "name", a.Name)
	writePair(w, "type", a.docKind().String())
	if a.docKind() == KindKey || a.specAt != 0 {
		n++
		writeIntPair(w, "key_spec_index", a.specIndex(next))
	}
	if a.Token != "" {
		n++
		writePair(w, "token", a.word())
	}
	if a.Added != "" {
		n++
		writePair(w, "since", a.Added)
	}
	if a.Obsolete != "" {
		n++
		writePair(w, "deprecated_since", a.Obsolete)
	}
	if flags := a.docFlags(); len(flags) > 0 {
		n++
		w.BulkString("flags")
		writeStatuses(w, "", flags)
	}
	if len(a.Args) > 0 {
		n++
		w.BulkString("arguments")
		writeArgs(w, a.Args, next)
	}
	w.Patch(at, n)
}

// docKind is the kind COMMAND DOCS shows: an argument that is only routed like a key is a
// string.
func (a *Arg) docKind() Kind {
	if a.Kind == KindKey && a.Access&NotKey != 0 {
		return KindString
	}
	return a.Kind
}

func (a *Arg) specIndex(next *int) int {
	if a.specAt != 0 {
		*next = a.specAt - 1
	}
	*next++
	return *next - 1
}

func (a *Arg) docFlags() []string {
	var flags []string
	if a.Optional {
		flags = append(flags, "optional")
	}
	if a.Multiple {
		flags = append(flags, "multiple")
	}
	if a.MultipleToken {
		flags = append(flags, "multiple_token")
	}
	return flags
}
