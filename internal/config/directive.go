package config

import (
	"fmt"
	"math"
	"strings"
)

// Kind says how a directive's words become a value.
type Kind uint8

const (
	Bool          Kind = iota // yes or no
	Integer                   // a decimal number between Min and Max
	Octal                     // file permissions
	Memory                    // bytes, with the units b k kb m mb g gb
	MemoryOrPart              // the same, or a percentage of maxmemory
	MemoryOrShare             // the same, or a percentage of the machine's memory, which is converted to bytes
	Enum                      // one of Choices
	Flags                     // some of Choices
	Text                      // any string
	Events                    // the letters of notify-keyspace-events
	SavePoints                // pairs of seconds and changes; lines add up
	OutputLimits              // class, hard, soft and seconds, for some classes
	Addresses                 // at most 16 addresses; "-" marks the dispensable
	Scores                    // three numbers between -2000 and 2000
	Percentiles               // numbers between 0 and 100
	Master                    // host and port, or "no one"
	Directory                 // an existing directory
)

// Directive describes one name of the configuration. The table of all is in table.go; it
// never changes after the package's variables are initialised.
type Directive struct {
	Name  string
	Alias string // a second name, "" for none; CONFIG GET * lists both
	Kind  Kind

	// Default is the value as CONFIG GET prints it. FileDefault, if it is not "", replaces
	// it when a configuration file is read: with a redis.conf ebb behaves as Redis does.
	Default, FileDefault string

	Min     int64
	Max     uint64
	Choices []string

	Immutable bool // can be given at start only
	Protected bool // CONFIG SET needs enable-protected-configs
	Hidden    bool // CONFIG GET shows it by its full name only
	Sensitive bool // a secret: messages do not repeat its value

	// Unused is the reason for which ebb does not use the directive, "" if it does.
	Unused string
	// Doc is its meaning and unit in one line, "" if unused.
	Doc string

	check  func(string) error // a further test of the words, joined
	adjust func(int64) int64  // the number that is stored for the one given
	units  bool               // an Integer that files of earlier releases give with units
	index  int

	initial, fileInitial Value // Default and FileDefault, or Default twice
}

// Lookup returns the directive of a name or an alias, without regard to case, or nil.
func Lookup(name string) *Directive {
	if d := byName[name]; d != nil {
		return d
	}
	return byName[strings.ToLower(name)]
}

// Directives returns the table, sorted by name. It is shared: do not change it.
func Directives() []*Directive { return directives }

// multi reports whether the directive takes any number of words.
func (d *Directive) multi() bool {
	switch d.Kind {
	case Flags, SavePoints, OutputLimits, Addresses, Scores, Percentiles, Master:
		return true
	}
	return false
}

// Usage describes the valid values, for messages about an invalid one.
func (d *Directive) Usage() string {
	switch d.Kind {
	case Bool:
		return "yes or no"
	case Integer:
		if d.Max == math.MaxInt64 {
			return fmt.Sprintf("a whole number from %d", d.Min)
		}
		return fmt.Sprintf("a whole number from %d to %d", d.Min, d.Max)
	case Octal:
		return "octal permissions such as 700"
	case Memory:
		if d.Min > 0 {
			return fmt.Sprintf("a size such as 104857600, 100mb or 1gb, at least %s", formatMemory(uint64(d.Min)))
		}
		return "a size such as 104857600, 100mb or 1gb"
	case MemoryOrPart:
		return "a size such as 100mb, or a percentage of maxmemory such as 5%"
	case MemoryOrShare:
		return "a size such as 100mb or 1gb, or a percentage of the machine's memory such as 70%"
	case Enum:
		return "one of " + strings.Join(d.Choices, ", ")
	case Flags:
		return "some of " + strings.Join(d.Choices, ", ")
	case Events:
		return `letters of ` + eventLetters + ` such as KEA, or ""`
	case SavePoints:
		return `pairs of seconds and changes such as 3600 1 300 100, or ""`
	case OutputLimits:
		return "class hard soft seconds, such as normal 0 0 0; the classes are normal, replica, pubsub"
	case Addresses:
		return "at most 16 addresses such as 127.0.0.1 -::1"
	case Scores:
		return "three numbers from -2000 to 2000"
	case Percentiles:
		return "numbers from 0 to 100"
	case Master:
		return `a host and a port, or "no one"`
	case Directory:
		return "an existing directory"
	}
	return "one string; quote it if it holds spaces"
}

// lines returns the lines of a file that set the directive to v. CONFIG REWRITE writes
// them.
func (d *Directive) lines(v Value) []string {
	switch d.Kind {
	case Memory, MemoryOrShare:
		if v.Num < 0 && d.Min < 0 {
			return []string{d.Name + " " + v.Text}
		}
		return []string{d.Name + " " + formatMemory(uint64(v.Num))}
	case MemoryOrPart:
		if v.Num >= 0 {
			return []string{d.Name + " " + formatMemory(uint64(v.Num))}
		}
	case Text, Directory, Events:
		return []string{d.Name + " " + Quote(v.Text)}
	case SavePoints:
		points := v.Data.([]SavePoint)
		if len(points) == 0 {
			return []string{d.Name + ` ""`}
		}
		lines := make([]string, len(points))
		for i, p := range points {
			lines[i] = fmt.Sprintf("%s %d %d", d.Name, p.Seconds, p.Changes)
		}
		return lines
	case OutputLimits:
		limits := v.Data.([3]OutputLimit)
		lines := make([]string, len(limits))
		for i, l := range limits {
			lines[i] = fmt.Sprintf("%s %s %s %s %d", d.Name, outputClasses[i].file, formatMemory(uint64(l.Hard)),
				formatMemory(uint64(l.Soft)), l.Seconds)
		}
		return lines
	case Master:
		if v.Text == "" {
			return []string{d.Name + " no one"}
		}
	}
	if v.Text == "" {
		return []string{d.Name + ` ""`}
	}
	return []string{d.Name + " " + v.Text}
}

// The constructors and modifiers below keep the table at one line per entry.

func yesno(name, def string) Directive { return Directive{Name: name, Kind: Bool, Default: def} }

func integer(name string, def, low int64, high uint64) Directive {
	return Directive{Name: name, Kind: Integer, Default: fmt.Sprint(def), Min: low, Max: high}
}

func memory(name string, def uint64, low int64, high uint64) Directive {
	return Directive{Name: name, Kind: Memory, Default: fmt.Sprint(def), Min: low, Max: high}
}

func enum(name, def string, choices ...string) Directive {
	return Directive{Name: name, Kind: Enum, Default: def, Choices: choices}
}

func text(name, def string) Directive { return Directive{Name: name, Kind: Text, Default: def} }

func special(name string, kind Kind, def string) Directive {
	return Directive{Name: name, Kind: kind, Default: def}
}

func (d Directive) alias(name string) Directive             { d.Alias = name; return d }
func (d Directive) immutable() Directive                    { d.Immutable = true; return d }
func (d Directive) protected() Directive                    { d.Protected = true; return d }
func (d Directive) withUnits() Directive                    { d.units = true; return d }
func (d Directive) hidden() Directive                       { d.Hidden = true; return d }
func (d Directive) secret() Directive                       { d.Sensitive = true; return d }
func (d Directive) withFile(def string) Directive           { d.FileDefault = def; return d }
func (d Directive) unused(why string) Directive             { d.Unused = why; return d }
func (d Directive) does(doc string) Directive               { d.Doc = doc; return d }
func (d Directive) only(check func(string) error) Directive { d.check = check; return d }
func (d Directive) stored(adj func(int64) int64) Directive  { d.adjust = adj; return d }
func (d Directive) choose(choices ...string) Directive      { d.Choices = choices; return d }
