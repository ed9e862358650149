package command

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/resp"
)

// MaxName is the longest name a command or a subcommand can have: four words
// of eight bytes, so that a lookup compares four integers.
const MaxName = 32

// Table is a set of commands, immutable once it is in use. Its methods may then be
// called from any goroutine.
type Table struct {
	all []Spec  // every spec: top-level ones first, then subcommands
	top []*Spec // the top-level ones that clients may call, in the order given
	idx index   // these by what clients call them
	own index   // every top-level one by its own name: what logs and masters say
	// long are commands that Rename gave a name of more than MaxName bytes, in lower
	// case; nil: none.
	long map[string]*Spec
}

// NewTable checks the specs, derives what can be derived, and builds the table
// from copies of them. The error names the first spec that is wrong and says how.
func NewTable(specs ...*Spec) (*Table, error) {
	n := len(specs)
	for _, s := range specs {
		n += len(s.Sub)
	}
	t := &Table{all: make([]Spec, 0, n)}
	for _, s := range specs {
		t.all = append(t.all, *s)
	}
	for i := range specs {
		s := &t.all[i]
		t.top = append(t.top, s)
		if len(s.Sub) > 0 {
			t.addSubs(s)
		}
	}
	for i := range t.all {
		// A raw string of several lines begins below its opening quote.
		t.all[i].Examples = strings.TrimPrefix(t.all[i].Examples, "\n")
		if err := t.all[i].prepare(i); err != nil {
			return nil, fmt.Errorf("command %q: %w", t.all[i].Name, err)
		}
	}
	if dup := t.own.build(t.top, (*Spec).ShortName); dup != "" {
		return nil, fmt.Errorf("command %q: defined twice", dup)
	}
	t.idx = t.own
	for _, s := range t.top {
		for _, sub := range s.Sub {
			if sub.ShortName() == "help" {
				sub.Examples = s.helpExample()
			}
		}
		if dup := s.subs.build(s.Sub, (*Spec).ShortName); dup != "" {
			return nil, fmt.Errorf("command %q: defined twice", dup)
		}
	}
	return t, nil
}

// addSubs copies a container's subcommands into the table.
func (t *Table) addSubs(s *Spec) {
	subs := make([]*Spec, 0, len(s.Sub))
	for _, sub := range s.Sub {
		t.all = append(t.all, *sub)
		c := &t.all[len(t.all)-1]
		c.parent = s
		subs = append(subs, c)
	}
	s.Sub = subs
}

// Len returns the number of specs, subcommands included.
func (t *Table) Len() int { return len(t.all) }

// Spec returns the spec with the given ID.
func (t *Table) Spec(id int) *Spec { return &t.all[id] }

// Commands lists the top-level commands that clients may call, in the order they were
// given. The table keeps the slice: the caller does not change it.
func (t *Table) Commands() []*Spec { return t.top }

// Lookup finds a top-level command by what clients call it, in any case, nil if there
// is none. It costs a few nanoseconds and allocates nothing.
func (t *Table) Lookup(name []byte) *Spec {
	if len(name) > MaxName && t.long != nil {
		return t.long[strings.ToLower(string(name))]
	}
	return t.idx.lookup(name)
}

// Subcommand finds a subcommand by its short name in any case, nil if there is
// none.
func (s *Spec) Subcommand(name []byte) *Spec {
	if s.subs.slots == nil {
		return nil
	}
	return s.subs.lookup(name)
}

// LookupFull finds a command by its full name in any case: "get", "config|get".
func (t *Table) LookupFull(name string) *Spec {
	head, tail, isSub := strings.Cut(name, "|")
	s := t.Lookup([]byte(head))
	if s != nil && isSub {
		return s.Subcommand([]byte(tail))
	}
	return s
}

// Find returns the command of a request, or the subcommand that its second argument names.
// If there is none, it returns nil and the error to reply.
func (t *Table) Find(args [][]byte) (*Spec, error) { return find(t.Lookup(args[0]), args) }

// FindOwn is Find for a log or a master: it looks up commands by their own names, which
// rename-command does not remove, and then by the names that clients use.
func (t *Table) FindOwn(args [][]byte) (*Spec, error) {
	if s := t.own.lookup(args[0]); s != nil {
		return find(s, args)
	}
	return t.Find(args)
}

// find finds what a request of the command s runs.
func find(s *Spec, args [][]byte) (*Spec, error) {
	if s == nil {
		return nil, UnknownCommand(args)
	}
	if s.subs.slots == nil || len(args) < 2 {
		return s, nil
	}
	sub := s.Subcommand(args[1])
	if sub == nil {
		return nil, unknownSubcommand(string(args[0]), args[1])
	}
	return sub, nil
}

// Resolve is Find and a check of the number of arguments.
func (t *Table) Resolve(args [][]byte) (*Spec, error) {
	s, err := t.Find(args)
	return checkArity(s, args, err)
}

// ResolveOwn is FindOwn and the same check.
func (t *Table) ResolveOwn(args [][]byte) (*Spec, error) {
	s, err := t.FindOwn(args)
	return checkArity(s, args, err)
}

func checkArity(s *Spec, args [][]byte, err error) (*Spec, error) {
	if err == nil && !s.ArityOK(args) {
		return nil, WrongArity(s)
	}
	return s, err
}

// ReplyError is an error whose text is the reply, without the leading '-'.
type ReplyError = resp.ReplyError

// UnknownCommand returns the reply to a name that is not in the table. It quotes the name and as
// many arguments as fit in 128 bytes, as Redis does. args has one at least.
func UnknownCommand(args [][]byte) error {
	var b strings.Builder
	for _, a := range args[1:] {
		room := 128 - b.Len()
		if room <= 0 {
			break
		}
		fmt.Fprintf(&b, "'%s' ", Clip(a, room))
	}
	text := fmt.Sprintf("ERR unknown command '%s', with args beginning with: %s", Clip(args[0], 128), b.String())
	return ReplyError(cleantext.Reply(text))
}

// unknownSubcommand returns the reply to a subcommand that the container does not have.
func unknownSubcommand(container string, sub []byte) error {
	return ReplyError(cleantext.Reply(fmt.Sprintf("ERR unknown subcommand '%s'. Try %s HELP.", Clip(sub, 128), strings.ToUpper(container))))
}

// WrongArity returns the reply to a request with too few or too many arguments.
func WrongArity(s *Spec) error {
	return ReplyError("ERR wrong number of arguments for '" + s.Name + "' command")
}

// NotInSubscription returns the reply to a command of a RESP2 client that may not send it while it is subscribed.
func NotInSubscription(name string) error {
	return ReplyError("ERR Can't execute '" + name + "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET " +
		"are allowed in this context")
}

// Clip returns what C's "%.128s" prints of a buffer: it ends at a zero byte.
func Clip(b []byte, n int) []byte {
	if len(b) > n {
		b = b[:n]
	}
	for i, c := range b {
		if c == 0 {
			return b[:i]
		}
	}
	return b
}

// prepare checks one spec of the table and fills in its derived part.
func (s *Spec) prepare(id int) error {
	s.id = id
	s.called = s.Name
	if err := s.checkWords(); err != nil {
		return err
	}
	if err := s.checkShape(); err != nil {
		return err
	}
	if err := checkArgs(s.Args); err != nil {
		return err
	}
	s.arity = s.deriveArity()
	switch o := s.ArityOverride; {
	case o != 0 && s.ArityReason == "":
		return errors.New("ArityOverride needs an ArityReason")
	case o != 0 && o == s.arity:
		return fmt.Errorf("ArityOverride %d is what the grammar says already", o)
	case o == 0 && s.ArityReason != "":
		return errors.New("ArityReason without an ArityOverride")
	case o != 0:
		s.arity = o
	}
	if err := s.prepareKeys(); err != nil {
		return err
	}
	if err := s.checkBlind(); err != nil {
		return err
	}
	s.cats = s.categories()
	return s.prepareClient()
}

func (s *Spec) prepareKeys() error {
	s.keySpecs = s.KeySpecs
	if s.KeySpecs == nil {
		specs, err := s.deriveKeySpecs()
		if err != nil {
			return err
		}
		s.keySpecs = specs
	}
	for _, k := range s.keySpecs {
		if k.Begin == BeginUnknown && s.Keys == nil && s.KeyOptions == nil {
			return errors.New("an unknown key spec needs KeyOptions or Keys")
		}
		if k.Flags == 0 {
			return errors.New("a key needs an access: Read, Meta, Update, Insert, Delete, Overwrite, Remove")
		}
		if k.Flags.Writes() && !s.Has(Write) && !s.Has(MayReplicate) && s.Group != GroupScripting {
			return errors.New("writes a key without the flag Write")
		}
	}
	var movable bool
	s.first, s.last, s.step, movable = legacyRange(s.keySpecs)
	if movable {
		s.Flags |= MovableKeys
	}
	return nil
}

// checkWords checks the parts that are text.
func (s *Spec) checkWords() error {
	short := s.ShortName()
	switch {
	case s.Name == "":
		return errors.New("has no name")
	case s.Name != strings.ToLower(s.Name):
		return errors.New("the name must be lower case")
	case strings.ContainsAny(s.Name, " \t\r\n"):
		return errors.New("the name has a blank")
	case len(short) > MaxName:
		return fmt.Errorf("the name is longer than %d bytes", MaxName)
	case s.Summary == "":
		return errors.New("has no summary")
	case !strings.HasSuffix(s.Summary, "."):
		return errors.New("the summary must end in a full stop")
	case s.Since == "":
		return errors.New("does not say since when")
	case !slices.Contains(Groups[:], s.Group):
		return fmt.Errorf("group %q is unknown", s.Group)
	case s.Complexity == "" && s.Run != nil:
		return errors.New("has no complexity")
	case s.Run != nil && strings.TrimSpace(s.Examples) == "":
		return errors.New("has no examples")
	case s.Run != nil && !strings.HasPrefix(firstLine(s.Examples), "> ") && !strings.Contains(s.Examples, "\n> "):
		return errors.New(`the examples have no line that starts with "> "`)
	}
	return nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// isForTools reports whether the command, or its container, is meant for servers and tools.
func (s *Spec) isForTools() bool { return s.SysCmd || s.parent != nil && s.parent.SysCmd }

// noValues are the groups of the types that have names and numbers, and no values that a console hides.
var noValues = []Group{GroupSet, GroupSortedSet, GroupGeo, GroupLimiter, GroupLock, GroupSemaphore, GroupBloom}

// checkBlind checks that a command on keys that may have values says whether it reveals them: so it is decided for each new one.
func (s *Spec) checkBlind() error {
	switch decided := s.Flags & (Reveals | Blind); {
	case decided == Reveals|Blind:
		return errors.New("is both Reveals and Blind")
	case decided == 0 && s.HasKeys() && !s.isForTools() && !s.Has(Scripts) && !slices.Contains(noValues, s.Group):
		return errors.New("must be Blind or Reveals: whether its reply or effect depends on what a value is, not only on its length")
	}
	return nil
}

// checkShape checks what must not go together.
func (s *Spec) checkShape() error {
	want := ""
	if s.parent != nil {
		want = s.parent.Name + "|"
	}
	switch {
	case s.parent == nil && strings.Contains(s.Name, "|"):
		return errors.New("a subcommand must stand in its container's Sub")
	case s.parent != nil && (!strings.HasPrefix(s.Name, want) || strings.Count(s.Name, "|") != 1 || s.Name == want):
		return fmt.Errorf("a subcommand's name must begin with %q", want)
	case s.parent != nil && len(s.Sub) > 0:
		return errors.New("a subcommand cannot have subcommands")
	case s.Run == nil && len(s.Sub) == 0:
		return errors.New("has no Run")
	case len(s.Sub) > 0 && len(s.Args) > 0:
		return errors.New("a container has no arguments of its own")
	case s.Has(Write) && s.Has(ReadOnly):
		return errors.New("is both Write and ReadOnly")
	case s.Has(DenyOOM) && !s.Has(Write) && s.Group != GroupScripting && s.Group != GroupTransactions:
		return errors.New("is DenyOOM but not Write")
	case s.Has(Fast) && s.Has(Slow):
		return errors.New("is both Fast and Slow")
	case s.Has(Inert) && (s.Flags&(ReadOnly|MayReplicate) != 0 || s.Has(Write) && s.Lacks == nil):
		return errors.New("is Inert, and changes data or is ReadOnly")
	case s.Has(MovableKeys):
		return errors.New("MovableKeys is derived")
	}
	return nil
}

// checkArgs checks a grammar: names, tokens, and that an optional argument can be
// told from the next one.
func checkArgs(args []Arg) error {
	for i := range args {
		a := &args[i]
		switch {
		case a.Name == "":
			return fmt.Errorf("argument %d has no name", i+1)
		case a.Kind == 0:
			return fmt.Errorf("argument %q was not built by a constructor", a.Name)
		case (a.Kind == KindBlock || a.Kind == KindOneOf) && len(a.Args) == 0:
			return fmt.Errorf("argument %q is empty", a.Name)
		case a.Kind == KindToken && a.Token == "":
			return fmt.Errorf("token %q has no word", a.Name)
		case a.MultipleToken && a.Token == "":
			return fmt.Errorf("argument %q repeats a token it does not have", a.Name)
		case a.Counts && !repeats(args[i+1:]):
			return fmt.Errorf("count %q has nothing repeated behind it", a.Name)
		}
		if err := checkArgs(a.Args); err != nil {
			return err
		}
	}
	return nil
}

func repeats(args []Arg) bool {
	for i := range args {
		if args[i].Multiple || repeats(args[i].Args) {
			return true
		}
	}
	return false
}

// index finds specs by name: open addressing over three-word keys, at most a
// quarter full, so that a miss usually costs one empty slot.
type index struct {
	slots []slot
	shift uint8
}

type slot struct {
	key  name
	spec *Spec
}

// name is a name of up to MaxName bytes as four words of lower-case letters,
// zero padded, and its length.
type name struct {
	w0, w1, w2, w3 uint64
	n              int
}

// build fills the index with specs by a name of each; it returns a name that occurs
// twice, "" if none does.
func (x *index) build(specs []*Spec, nameOf func(*Spec) string) string {
	if len(specs) == 0 {
		return ""
	}
	bits := 3
	for 1<<bits < 4*len(specs) {
		bits++
	}
	x.slots, x.shift = make([]slot, 1<<bits), uint8(64-bits)
	for _, s := range specs {
		key, _ := fold([]byte(nameOf(s)))
		i := key.hash() >> x.shift
		for ; x.slots[i].spec != nil; i = (i + 1) & uint64(len(x.slots)-1) {
			if x.slots[i].key == key {
				return s.Name
			}
		}
		x.slots[i] = slot{key, s}
	}
	return ""
}

func (x *index) lookup(b []byte) *Spec {
	key, ok := fold(b)
	if !ok {
		return nil
	}
	slots := x.slots
	mask := uint64(len(slots) - 1)
	for i := key.hash() >> x.shift; ; i++ {
		s := &slots[i&mask]
		if s.spec == nil || s.key == key {
			return s.spec
		}
	}
}

// hash multiplies each word by an odd constant (from the digits of pi) and keeps
// the top bits, which depend on all bytes but the last eight of the longest
// names.
func (k name) hash() uint64 {
	const m0, m1, m2 = 0x9216d5d98979fb1b, 0xd1310ba698dfb5ad, 0x2ffd72dbd01adfb7
	return (k.w0*m0 ^ k.w1*m1 ^ k.w2*m2) * m1
}

// fold packs a name into words, in lower case.
func fold(b []byte) (k name, ok bool) {
	n := len(b)
	k.n = n
	switch {
	case n <= 8:
		k.w0 = lower(load(b))
	case n <= 16:
		k.w0 = lower(binary.LittleEndian.Uint64(b))
		k.w1 = lower(load(b[8:]))
	case n <= 24:
		k.w0 = lower(binary.LittleEndian.Uint64(b))
		k.w1 = lower(binary.LittleEndian.Uint64(b[8:]))
		k.w2 = lower(load(b[16:]))
	case n <= MaxName:
		k.w0 = lower(binary.LittleEndian.Uint64(b))
		k.w1 = lower(binary.LittleEndian.Uint64(b[8:]))
		k.w2 = lower(binary.LittleEndian.Uint64(b[16:]))
		k.w3 = lower(load(b[24:]))
	default:
		return k, false
	}
	return k, true
}

// load reads up to eight bytes, the first lowest, the rest zero.
func load(b []byte) uint64 {
	switch n := len(b); {
	case n >= 8:
		return binary.LittleEndian.Uint64(b)
	case n >= 4:
		lo, hi := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[n-4:])
		return uint64(lo) | uint64(hi)<<(8*(n-4))
	case n >= 2:
		return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[n-1])<<(8*(n-1))
	case n == 1:
		return uint64(b[0])
	}
	return 0
}

// lower turns 'A'..'Z' into 'a'..'z' in all eight bytes at once: adding to the
// low seven bits carries into the top bit of exactly the bytes >= 'A' and > 'Z'.
func lower(w uint64) uint64 {
	const ones = 0x0101010101010101
	low := w & (0x7f * ones)
	upper := (low + (0x80-'A')*ones) &^ (low + (0x7f-'Z')*ones) &^ w & (0x80 * ones)
	return w | upper>>2
}

// EqualFold reports whether b is the word, which must be ASCII, in any case. It
// is for a command's tokens: no folding outside ASCII, no allocation.
func EqualFold(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i, c := range b {
		w := word[i]
		if c != w && (c|0x20 != w|0x20 || c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return true
}
