package command

import (
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/internal/numeral"
)

// ErrKeys says that the keys of a request could not be found, because its
// arguments do not fit the command's grammar.
var ErrKeys = errors.New("invalid arguments specified for command")

// KeyFlags say what a command does with a key: the words of Redis's key specs.
// Combine them: SET's key is Update|Access|VariableFlags.
type KeyFlags uint16

// Exactly one of RO, RW, OW, RM is shown: RM if KeyRM is set, OW if KeyOW, RW if
// KeyRW or one of Update, Insert, Delete is set, RO else.
const (
	KeyRW         KeyFlags = 1 << iota // reads and writes; implied by Update, Insert, Delete
	KeyOW                              // overwrites without looking
	KeyRM                              // removes without looking
	Access                             // returns or uses the value
	Update                             // changes the value or the key's metadata
	Insert                             // adds to the value
	Delete                             // removes from the value, or removes it
	NotKey                             // not a key, though routed like one (a shard channel)
	Incomplete                         // there may be keys the spec does not find
	VariableFlags                      // the access depends on other arguments
	metaOnly

	Read      = Access         // GET, HGET: the value itself
	Meta      = metaOnly       // EXISTS, STRLEN, TYPE: nothing of the value (RO alone)
	Overwrite = KeyOW | Update // the destination of a *STORE
	Remove    = KeyRM | Delete // DEL
)

var keyFlagNames = [...]string{"", "", "", "access", "update", "insert", "delete", "not_key", "incomplete", "variable_flags"}

// Writes reports whether the key may be changed.
func (f KeyFlags) Writes() bool { return f&(KeyRW|KeyOW|KeyRM|Update|Insert|Delete) != 0 }

// Names lists the flags as COMMAND INFO shows them, RO, RW, OW or RM first.
func (f KeyFlags) Names() []string {
	out := make([]string, 1, 4)
	switch {
	case f&NotKey != 0 && f&^(NotKey|metaOnly) == 0:
		return append(out[:0], "not_key")
	case f&KeyRM != 0:
		out[0] = "RM"
	case f&KeyOW != 0:
		out[0] = "OW"
	case f.Writes():
		out[0] = "RW"
	default:
		out[0] = "RO"
	}
	for i, n := range keyFlagNames {
		if n != "" && f&(1<<i) != 0 {
			out = append(out, n)
		}
	}
	return out
}

// KeyRef is a key of a request: its place in the arguments and its use.
type KeyRef struct {
	Pos   int
	Flags KeyFlags
}

// Begin says how a key spec's search starts.
type Begin uint8

// Find says how a key spec goes on from there.
type Find uint8

const (
	BeginUnknown Begin = iota
	BeginIndex         // at argument Index
	BeginKeyword       // behind Keyword, looked for from Index on (negative: backwards from the end)
)

const (
	FindUnknown Find = iota
	FindRange        // to Last (relative; negative: from the end), every Step, the first 1/Limit of them
	FindKeyNum       // the number stands at Count, the first key at First, every Step
)

// KeySpec is one rule for finding keys, as COMMAND INFO shows it.
type KeySpec struct {
	Flags   KeyFlags
	Note    string
	Begin   Begin
	Index   int
	Keyword string
	Find    Find
	Last    int
	Step    int
	Limit   int
	Count   int
	First   int
}

// keyWalk derives key specs while it walks over a grammar from left to right.
type keyWalk struct {
	specs  []KeySpec
	pos    int  // the next argument's place
	fixed  bool // pos is certain
	countA int  // the place of the last Count, 0 if it is not directly before
	err    error
}

// deriveKeySpecs finds the keys in the grammar. An error means that a key stands
// where no key spec can describe it; the spec then needs Keys and KeySpecs.
func (s *Spec) deriveKeySpecs() ([]KeySpec, error) {
	w := keyWalk{pos: s.words(), fixed: true}
	w.seq(s.Args)
	return w.specs, w.err
}

func (w *keyWalk) seq(args []Arg) {
	for i := range args {
		a := &args[i]
		tail, tailFixed := seqWidth(args[i+1:])
		if a.hasKey() {
			w.arg(a, tail, tailFixed)
		}
		w.skip(a)
	}
}

// skip moves past an argument.
func (w *keyWalk) skip(a *Arg) {
	n, fixed := a.width()
	w.countA = 0
	if a.Counts && w.fixed {
		w.countA = w.pos
	}
	if w.fixed = w.fixed && fixed; w.fixed {
		w.pos += n
	}
}

func (a *Arg) hasKey() bool {
	if a.Kind == KindKey {
		return true
	}
	for i := range a.Args {
		if a.Args[i].hasKey() {
			return true
		}
	}
	return false
}

// arg derives the specs of an argument that has keys. tail is the width of what
// must follow.
func (w *keyWalk) arg(a *Arg, tail int, tailFixed bool) {
	switch {
	case a.Kind == KindKey && a.Token != "":
		w.add(a, KeySpec{Begin: BeginKeyword, Keyword: a.Token, Index: w.pos, Find: FindRange, Last: lastOf(a, 0), Step: 1})
	case a.Kind == KindKey:
		w.plain(a, 0, 1, tail, tailFixed, a.Multiple)
	case a.Kind == KindOneOf:
		for i := range a.Args {
			if a.Args[i].hasKey() {
				w.arg(&a.Args[i], tail, tailFixed)
			}
		}
	case a.Token != "":
		w.keywordBlock(a)
	case a.Multiple:
		step, _ := seqWidth(a.Args)
		at := 0
		for i := range a.Args {
			n, fixed := a.Args[i].width()
			if a.Args[i].Kind == KindKey {
				w.plain(&a.Args[i], at, step, tail, tailFixed, true)
			}
			if !fixed {
				w.fail(a)
			}
			at += n
		}
	default:
		inner := *w
		inner.fixed = w.fixed && !a.Optional
		inner.seq(a.Args)
		w.specs, w.err = inner.specs, inner.err
	}
}

// plain is a key, or a run of keys with others between, at a place of its own.
func (w *keyWalk) plain(a *Arg, at, step, tail int, tailFixed, many bool) {
	k := KeySpec{Begin: BeginIndex, Index: w.pos + at, Find: FindRange, Step: step}
	switch {
	case many && w.countA != 0:
		k = KeySpec{Begin: BeginIndex, Index: w.countA, Find: FindKeyNum, First: w.pos - w.countA + at, Step: step}
	case !w.fixed || many && !tailFixed:
		w.fail(a)
		return
	case many:
		k.Last = -1 - tail
	}
	w.add(a, k)
}

// keywordBlock is a block of keys behind a word. Keys with as many other
// arguments behind them, as in "STREAMS key ... id ...", are the first half.
func (w *keyWalk) keywordBlock(a *Arg) {
	k := &a.Args[0]
	spec := KeySpec{Begin: BeginKeyword, Keyword: a.Token, Index: w.pos, Find: FindRange, Last: lastOf(k, 0), Step: 1}
	switch {
	case len(a.Args) > 1 && a.Args[0].Counts:
		w.fail(a)
		return
	case k.Kind != KindKey:
		w.fail(a)
		return
	case k.Multiple && len(a.Args) == 2 && a.Args[1].Multiple:
		spec.Limit = 2
	}
	w.add(k, spec)
}

func lastOf(a *Arg, tail int) int {
	if a.Multiple {
		return -1 - tail
	}
	return 0
}

func (w *keyWalk) add(a *Arg, k KeySpec) {
	k.Flags, k.Note = a.Access, a.KeyNote
	w.specs = append(w.specs, k)
}

func (w *keyWalk) fail(a *Arg) {
	if w.err == nil {
		w.err = fmt.Errorf("key %q stands where no key spec can describe it: give Keys and KeySpecs", a.Name)
	}
}

// legacyRange condenses key specs into first, last, step: the run of keys at
// fixed places. What it leaves out makes the command's keys movable.
func legacyRange(specs []KeySpec) (first, last, step int, movable bool) {
	if len(specs) == 1 && specs[0].Begin == BeginIndex && specs[0].Find == FindRange {
		k := &specs[0]
		return k.Index, k.absLast(), k.Step, k.Flags&Incomplete != 0
	}
	for i := range specs {
		k := &specs[i]
		plain := k.Begin == BeginIndex && k.Find == FindRange && k.Step == 1
		if !plain || last != 0 && k.Index != last+1 {
			movable = true
			continue
		}
		movable = movable || k.Flags&Incomplete != 0
		if first == 0 {
			first, step = k.Index, 1
		}
		last = k.absLast()
	}
	return first, last, step, movable
}

func (k *KeySpec) absLast() int {
	if k.Last >= 0 {
		return k.Last + k.Index
	}
	return k.Last
}

// HasKeys reports whether a request of this command can name keys.
func (s *Spec) HasKeys() bool {
	for i := range s.keySpecs {
		if s.keySpecs[i].Flags&NotKey == 0 {
			return true
		}
	}
	return s.Keys != nil || s.KeyOptions != nil
}

// LocksAll reports whether a request locks every shard.
func (s *Spec) LocksAll(args [][]byte) bool { return s.Has(AllKeys) || s.Wide != nil && s.Wide(args) }

// AllKeySpecs lists the rules for the command's keys, derived or declared. The table keeps
// the slice: the caller does not change it.
func (s *Spec) AllKeySpecs() []KeySpec { return s.keySpecs }

// AppendKeys appends the keys of a request, whose arity is right, to dst. It
// costs O(keys) and allocates only to grow dst. ErrKeys means that the arguments
// do not fit; dst then comes back as it was.
func (s *Spec) AppendKeys(dst []KeyRef, args [][]byte) ([]KeyRef, error) {
	if s.Keys != nil {
		return s.Keys(dst, args)
	}
	if s.KeyOptions != nil {
		return s.KeyOptions.append(dst, args)
	}
	n, least := len(dst), 1
	if s.Has(NoMandatoryKeys) {
		least = 0
	}
	for i := range s.keySpecs {
		if s.keySpecs[i].Flags&NotKey != 0 {
			continue
		}
		var ok bool
		if dst, ok = s.keySpecs[i].appendTo(dst, args, least); !ok {
			return dst[:n], ErrKeys
		}
	}
	return dst, nil
}

// AppendNotKeys appends those arguments to dst that are routed like keys and are none:
// shard channels.
func (s *Spec) AppendNotKeys(dst []KeyRef, args [][]byte) []KeyRef {
	for i := range s.keySpecs {
		if k := &s.keySpecs[i]; k.Flags&NotKey != 0 {
			dst, _ = k.appendTo(dst, args, 0)
		}
	}
	return dst
}

// OneKey returns the position of the only key of a request, whose arity is right. It returns 0 if the request has more keys, or
// none, or if their positions do not follow from the number of arguments. The channel of SPUBLISH counts as a key.
func (s *Spec) OneKey(args [][]byte) int {
	last := s.last
	if last < 0 && s.HasKeys() {
		last += len(args)
	}
	if last != s.first || s.Has(MovableKeys) {
		return 0
	}
	return last
}

// appendTo appends the keys one spec finds. A count must be at least least.
func (k *KeySpec) appendTo(dst []KeyRef, args [][]byte, least int) ([]KeyRef, bool) {
	first := k.Index
	switch k.Begin {
	case BeginUnknown:
		return dst, true
	case BeginKeyword:
		if first = k.findKeyword(args); first == 0 {
			return dst, true
		}
	}
	var last int
	step := k.Step
	switch {
	case k.Find == FindKeyNum:
		if first+k.Count >= len(args) {
			return dst, false
		}
		n, ok := numeral.ParseInt(args[first+k.Count])
		if !ok || n < int64(least) || n > int64(len(args)) {
			return dst, false
		}
		first += k.First
		last = first + (int(n)-1)*step
	case k.Last >= 0:
		last = first + k.Last
	case k.Limit > 1:
		last = first + (len(args)-first)/k.Limit + k.Last
	default:
		last = len(args) + k.Last
	}
	if last >= len(args) {
		return dst, false
	}
	for p := first; p <= last; p += step {
		dst = append(dst, KeyRef{p, k.Flags})
	}
	return dst, true
}

// findKeyword gives the place behind the keyword, 0 if it is not there.
func (k *KeySpec) findKeyword(args [][]byte) int {
	from, to, step := k.Index, len(args)-1, 1
	if from < 0 {
		from, to, step = len(args)+from, 0, -1
	}
	for i := from; i != to && i > 0 && i < len(args)-1; i += step {
		if EqualFold(args[i], k.Keyword) {
			return i + 1
		}
	}
	return 0
}
