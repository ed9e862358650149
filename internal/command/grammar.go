package command

import "strings"

// Kind is the type of an argument, with the names of COMMAND DOCS.
type Kind uint8

// The kinds of arguments.
const (
	KindKey Kind = iota + 1
	KindString
	KindInteger
	KindDouble
	KindPattern
	KindUnixTime
	KindToken
	KindOneOf
	KindBlock
)

var kindNames = [...]string{"", "key", "string", "integer", "double", "pattern", "unix-time", "pure-token", "oneof", "block"}

// String is the kind's name in COMMAND DOCS.
func (k Kind) String() string { return kindNames[k] }

// Arg is a node of a command's grammar. Arguments are built with the
// constructors below and refined by methods, which return a changed copy:
//
//	Args: []Arg{Key("key", Update), Int("milliseconds"),
//		Opt(OneOf("condition", Token("NX"), Token("XX"))),
//		Block("FIELDS", Count("numfields"), Many("field"))}
//
// reads "key milliseconds [NX | XX] FIELDS numfields field [field ...]". An argument
// that is not wrapped in Opt must be there. Neighbouring optional arguments that begin
// with a token may come in any order, each at most once.
type Arg struct {
	Name  string // lower case
	Kind  Kind
	Token string // the word before the argument; for a pure token the word itself
	Args  []Arg  // a block's parts, a oneof's alternatives

	Optional      bool
	Multiple      bool // may be repeated
	MultipleToken bool // the token is repeated with it
	Counts        bool // an integer that says how often the next repeated argument comes

	Access   KeyFlags // of a key
	KeyNote  string   // a remark on the key's spec
	specAt   int      // 1 + the index of the key's spec where it is not simply the next
	Added    string   // the version that introduced the argument
	Obsolete string   // the version that deprecated it
}

// Key returns an argument that is a key; the flags say how the command uses it.
func Key(name string, access KeyFlags) Arg { return Arg{Name: name, Kind: KindKey, Access: access} }

// ManyKeys is one or more keys.
func ManyKeys(name string, access KeyFlags) Arg {
	return Arg{Name: name, Kind: KindKey, Access: access, Multiple: true}
}

// Str is a string: a value, a member, a field.
func Str(name string) Arg { return Arg{Name: name, Kind: KindString} }

// Int is a decimal 64-bit integer.
func Int(name string) Arg { return Arg{Name: name, Kind: KindInteger} }

// Double is a floating-point number.
func Double(name string) Arg { return Arg{Name: name, Kind: KindDouble} }

// Pattern is a glob pattern.
func Pattern(name string) Arg { return Arg{Name: name, Kind: KindPattern} }

// UnixTime is an absolute time, an integer.
func UnixTime(name string) Arg { return Arg{Name: name, Kind: KindUnixTime} }

// Count is an integer that says how often the next repeated argument comes: at
// least once, unless that one is optional.
func Count(name string) Arg { return Arg{Name: name, Kind: KindInteger, Counts: true} }

// Token is a fixed word. Its name is the word in lower case; see As. The empty
// word, which needs quotes to be seen, is Token(`""`).
func Token(word string) Arg {
	return Arg{Name: strings.ToLower(word), Kind: KindToken, Token: word}
}

// TokenArg is an argument behind a fixed word: TokenArg("EX", Int("seconds")).
func TokenArg(word string, a Arg) Arg {
	a.Token = word
	return a
}

// OneOf is exactly one of the alternatives.
func OneOf(name string, alternatives ...Arg) Arg { return group(KindOneOf, name, alternatives) }

// Block is a sequence that belongs together. A name in capitals is also the
// word the block begins with: Block("FIELDS", ...) has the name "fields" and the
// token "FIELDS".
func Block(name string, parts ...Arg) Arg { return group(KindBlock, name, parts) }

func group(k Kind, name string, args []Arg) Arg {
	a := Arg{Name: name, Kind: k, Args: args}
	if name != strings.ToLower(name) {
		a.Name, a.Token = strings.ToLower(name), name
	}
	return a
}

// Opt makes an argument optional.
func Opt(a Arg) Arg {
	a.Optional = true
	return a
}

// Many is one or more strings.
func Many(name string) Arg { return Repeat(Str(name)) }

// Repeat is an argument one or more times. A token before it comes once.
func Repeat(a Arg) Arg {
	a.Multiple = true
	return a
}

// RepeatToken is an argument one or more times, each with its token.
func RepeatToken(a Arg) Arg {
	a.Multiple, a.MultipleToken = true, true
	return a
}

// As names an argument; for tokens whose name is not the word in lower case.
func (a Arg) As(name string) Arg {
	a.Name = name
	return a
}

// Since notes the version that introduced the argument, where that is later than
// the command's.
func (a Arg) Since(version string) Arg {
	a.Added = version
	return a
}

// DeprecatedSince notes the version that deprecated the argument.
func (a Arg) DeprecatedSince(version string) Arg {
	a.Obsolete = version
	return a
}

// Note is a remark on a key's spec, shown by COMMAND INFO.
func (a Arg) Note(text string) Arg {
	a.KeyNote = text
	return a
}

// Spec ties a key to the i-th of the command's KeySpecs, for commands that
// declare them.
func (a Arg) Spec(i int) Arg {
	a.specAt = i + 1
	return a
}

// width is the least number of words an argument takes, and whether it never
// takes more.
func (a *Arg) width() (min int, fixed bool) {
	switch a.Kind {
	case KindBlock:
		min, fixed = seqWidth(a.Args)
	case KindOneOf:
		min, fixed = oneOfWidth(a.Args)
	default:
		min, fixed = 1, true
	}
	if a.Token != "" && a.Kind != KindToken {
		min++
	}
	if a.Optional {
		return 0, false
	}
	return min, fixed && !a.Multiple
}

func seqWidth(args []Arg) (min int, fixed bool) {
	fixed = true
	for i := range args {
		m, f := args[i].width()
		min, fixed = min+m, fixed && f
	}
	return min, fixed
}

func oneOfWidth(args []Arg) (min int, fixed bool) {
	fixed = true
	for i := range args {
		m, f := args[i].width()
		fixed = fixed && f && (i == 0 || m == min)
		if i == 0 || m < min {
			min = m
		}
	}
	return min, fixed
}

// deriveArity counts the words of the name and of the required arguments. A
// container cannot be run without a subcommand, unless it says so by its Run.
func (s *Spec) deriveArity() int {
	if len(s.Sub) > 0 {
		if s.Run != nil {
			return -1
		}
		return -2
	}
	n, fixed := seqWidth(s.Args)
	n += s.words()
	if !fixed {
		return -n
	}
	return n
}

// Usage is the command line as the documentation and the CLI's hints show it:
//
//	SET key value [NX | XX] [GET] [EX seconds | PX milliseconds | ...]
func (s *Spec) Usage() string {
	b := []byte(strings.ToUpper(strings.ReplaceAll(s.Name, "|", " ")))
	for i := range s.Args {
		b = append(b, ' ')
		b = s.Args[i].appendUsage(b)
	}
	return string(b)
}

// Hint is the usage of one argument.
func (a *Arg) Hint() string { return string(a.appendUsage(nil)) }

// appendUsage writes an argument with its brackets: [] for what may be left out,
// <> around a choice that must be made.
func (a *Arg) appendUsage(b []byte) []byte {
	if a.Optional {
		b = append(b, '[')
	}
	if a.Token != "" && a.Kind != KindToken && !a.MultipleToken {
		b = append(append(b, a.Token...), ' ')
	}
	b = a.appendItem(b)
	if a.Multiple {
		b = append(b, " ["...)
		b = a.appendItem(b)
		b = append(b, " ...]"...)
	}
	if a.Optional {
		b = append(b, ']')
	}
	return b
}

// appendItem writes one occurrence of an argument.
func (a *Arg) appendItem(b []byte) []byte {
	if a.MultipleToken && a.Kind != KindToken {
		b = append(append(b, a.Token...), ' ')
	}
	switch a.Kind {
	case KindToken:
		return append(b, a.Token...)
	case KindBlock:
		return appendJoined(b, a.Args, " ")
	case KindOneOf:
		bracket := len(a.Args) > 1 && (!a.Optional || a.Multiple || a.Token != "")
		if !bracket {
			return appendJoined(b, a.Args, " | ")
		}
		return append(appendJoined(append(b, '<'), a.Args, " | "), '>')
	default:
		return append(b, a.Name...)
	}
}

func appendJoined(b []byte, args []Arg, sep string) []byte {
	for i := range args {
		if i > 0 {
			b = append(b, sep...)
		}
		b = args[i].appendUsage(b)
	}
	return b
}

// word is the token as COMMAND DOCS gives it: the token "\"\"" is the empty word.
func (a *Arg) word() string {
	if a.Token == `""` {
		return ""
	}
	return a.Token
}
