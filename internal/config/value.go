package config

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/system"
)

// Value is a directive's value. It is immutable once it is in a Set.
type Value struct {
	Text string // as CONFIG GET prints it; two values are equal if their texts are
	Num  int64  // the number, 0 or 1, the choice's index, the choices' or events' bits; bytes as a uint64's bits; a percentage negated
	Data any    // []SavePoint, [3]OutputLimit, []string of Addresses, []float64 of Percentiles
}

// SavePoint is a save point: the server writes a snapshot after Seconds if there were at
// least Changes writes.
type SavePoint struct {
	Seconds int64
	Changes int
}

// OutputLimit limits the replies that are queued for a client, in bytes. The server closes
// the client at once at Hard, and after Seconds above Soft. 0 means no limit.
type OutputLimit struct {
	Hard, Soft int64
	Seconds    int
}

// Class is a kind of client in client-output-buffer-limit.
type Class uint8

const (
	Normal Class = iota
	Replica
	PubSub
)

// outputClasses names the classes in the order of Class: as CONFIG GET prints
// them, as files have them, as CONFIG SET accepts them besides.
var outputClasses = [3]struct{ get, file string }{{"normal", "normal"}, {"slave", "replica"}, {"pubsub", "pubsub"}}

// errWords is the error for a wrong number of words.
var errWords = errors.New("wrong number of arguments")

// complete is an error whose text says which values are valid, so that a message does not
// add the directive's usage.
type complete struct{ error }

func (e complete) Unwrap() error { return e.error }

// wants returns a complete error.
func wants(format string, args ...any) error { return complete{fmt.Errorf(format, args...)} }

// parse converts the words after a directive's name to a value. old is the present value,
// which some kinds change only in part. Errors are worded as Redis 7.0 words them, for
// CONFIG SET.
func (d *Directive) parse(words []string, old Value) (Value, error) {
	if d.multi() {
		if len(words) == 1 {
			words = split(words[0])
		}
	} else if len(words) != 1 {
		return Value{}, errWords
	}
	if d.check != nil {
		if err := d.check(strings.Join(words, " ")); err != nil {
			return Value{}, complete{err}
		}
	}
	switch d.Kind {
	case Bool:
		return d.parseBool(words[0])
	case Integer:
		return d.parseInteger(words[0])
	case Octal:
		return d.parseOctal(words[0])
	case Memory, MemoryOrPart, MemoryOrShare:
		return d.parseMemory(words[0])
	case Enum, Flags:
		return d.parseChoices(words)
	case Events:
		return d.parseEvents(words[0])
	case SavePoints:
		return parseSave(words)
	case OutputLimits:
		return parseOutputLimits(words, old)
	case Addresses:
		return parseAddresses(words)
	case Scores:
		return parseScores(words)
	case Percentiles:
		return d.parsePercentiles(words)
	case Master:
		return parseMaster(words)
	case Directory:
		return parseDirectory(words[0])
	}
	return Value{Text: words[0]}, nil
}

// split splits a text at single spaces, as CONFIG SET does with lists. "" has no words.
func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, " ")
}

func (d *Directive) parseBool(s string) (Value, error) {
	switch {
	case strings.EqualFold(s, "yes"):
		return Value{Text: "yes", Num: 1}, nil
	case strings.EqualFold(s, "no"):
		return Value{Text: "no"}, nil
	}
	return Value{}, wants("argument must be 'yes' or 'no'")
}

// parseInteger accepts the canonical spelling of a number only: no sign before a positive
// one, no leading zeros, no blanks.
func (d *Directive) parseInteger(s string) (Value, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != s {
		size, ok := ParseMemory(s)
		if !d.units || !ok || s == "" || s[0] < '1' || s[0] > '9' || size > math.MaxInt64 {
			return Value{}, errors.New("argument couldn't be parsed into an integer")
		}
		n = int64(size)
	}
	return d.number(n)
}

// number checks the range, adjusts and prints.
func (d *Directive) number(n int64) (Value, error) {
	if n < d.Min || n > 0 && uint64(n) > d.Max {
		return Value{}, d.rangeError()
	}
	if d.adjust != nil {
		n = d.adjust(n)
	}
	return Value{Text: strconv.FormatInt(n, 10), Num: n}, nil
}

func (d *Directive) rangeError() error {
	return wants("argument must be between %d and %d inclusive", d.Min, d.Max)
}

func (d *Directive) parseOctal(s string) (Value, error) {
	n, err := strconv.ParseUint(s, 8, 32)
	if err != nil {
		return Value{}, errors.New("argument couldn't be parsed as an octal number")
	}
	if n > d.Max {
		return Value{}, wants("argument must be between %o and %o inclusive", d.Min, d.Max)
	}
	return Value{Text: strconv.FormatUint(n, 8), Num: int64(n)}, nil
}

func (d *Directive) parseMemory(s string) (Value, error) {
	percent, isPercent := strings.CutSuffix(s, "%")
	if isPercent && d.Kind == MemoryOrShare {
		return parseShare(percent)
	}
	if isPercent && d.Kind == MemoryOrPart {
		n, err := strconv.ParseInt(percent, 10, 64)
		if err != nil || n < 0 || strconv.FormatInt(n, 10) != percent {
			return Value{}, errors.New("argument must be a memory or percent value")
		}
		if n > 100 {
			return Value{}, wants("percentage argument must be less or equal to 100")
		}
		if n == 0 {
			return Value{Text: "0"}, nil
		}
		return Value{Text: s, Num: -n}, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n < 0 && d.Min < 0 {
		return d.number(n)
	}
	n, ok := ParseMemory(s)
	if d.Kind == MemoryOrPart {
		if !ok || n > math.MaxInt64 {
			return Value{}, errors.New("argument must be a memory or percent value")
		}
	} else if !ok {
		return Value{}, errors.New("argument must be a memory value")
	}
	if n > d.Max || d.Min > 0 && n < uint64(d.Min) {
		return Value{}, d.rangeError()
	}
	if d.adjust != nil {
		n = uint64(d.adjust(int64(n)))
	}
	return Value{Text: strconv.FormatUint(n, 10), Num: int64(n)}, nil
}

// systemMemory returns the bytes of the machine's memory, or of the limit of the control group, if that is
// less; 0 where neither is known. Tests replace it.
var systemMemory = system.Memory

// parseShare converts a percentage of the machine's memory to bytes. CONFIG GET shows the bytes; a line of a
// file with the percentage stays as it is at CONFIG REWRITE, while it gives the same number.
func parseShare(percent string) (Value, error) {
	n, err := strconv.ParseInt(percent, 10, 64)
	if err != nil || n < 1 || n > 100 || strconv.FormatInt(n, 10) != percent {
		return Value{}, wants("a percentage must be a whole number from 1%% to 100%%")
	}
	all := systemMemory()
	if all <= 0 {
		return Value{}, wants("the size of this machine's memory is not known: give a number of bytes instead of a percentage")
	}
	bytes := all/100*n + all%100*n/100
	return Value{Text: strconv.FormatInt(bytes, 10), Num: bytes}, nil
}

// parseChoices stores the index of an Enum's word and the bits of Flags' words.
func (d *Directive) parseChoices(words []string) (Value, error) {
	var bits int64
	for _, w := range words {
		i := choice(d.Choices, w)
		if i < 0 {
			return Value{}, d.choiceError()
		}
		if d.Kind == Enum {
			return Value{Text: d.Choices[i], Num: int64(i)}, nil
		}
		bits |= 1 << i
	}
	if bits == 0 {
		return Value{}, d.choiceError()
	}
	// The first choice stands for none of the others.
	if bits != 1 {
		bits &^= 1
	}
	var names []string
	for i, c := range d.Choices {
		if bits&(1<<i) != 0 {
			names = append(names, c)
		}
	}
	return Value{Text: strings.Join(names, " "), Num: bits}, nil
}

func (d *Directive) choiceError() error {
	return wants("argument(s) must be one of the following: %s", strings.Join(d.Choices, ", "))
}

func choice(choices []string, w string) int {
	return slices.IndexFunc(choices, func(c string) bool { return strings.EqualFold(c, w) })
}

func (d *Directive) parseEvents(s string) (Value, error) {
	e, ok := ParseEventClasses(s)
	if !ok {
		return Value{}, wants("Invalid event class character. Use '%s'.", eventLetters)
	}
	return Value{Text: e.String(), Num: int64(e)}, nil
}

func parseSave(words []string) (Value, error) {
	var points []SavePoint
	bad := errors.New("Invalid save parameters")
	if len(words)%2 != 0 {
		return Value{}, bad
	}
	for i := 0; i < len(words); i += 2 {
		seconds, err1 := strconv.ParseInt(words[i], 10, 64)
		changes, err2 := strconv.ParseInt(words[i+1], 10, 32)
		if err1 != nil || err2 != nil || seconds < 1 || changes < 0 {
			return Value{}, bad
		}
		points = append(points, SavePoint{seconds, int(changes)})
	}
	return saveValue(points), nil
}

func saveValue(points []SavePoint) Value {
	var b strings.Builder
	for i, p := range points {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%d %d", p.Seconds, p.Changes)
	}
	return Value{Text: b.String(), Data: points}
}

// parseOutputLimits changes the classes that the words name and keeps the others.
func parseOutputLimits(words []string, old Value) (Value, error) {
	limits, _ := old.Data.([3]OutputLimit)
	if len(words)%4 != 0 {
		return Value{}, errors.New("Wrong number of arguments in buffer limit configuration.")
	}
	for ; len(words) > 0; words = words[4:] {
		class := -1
		for i, c := range outputClasses {
			if strings.EqualFold(words[0], c.get) || strings.EqualFold(words[0], c.file) {
				class = i
			}
		}
		if class < 0 {
			return Value{}, errors.New("Invalid client class specified in buffer limit configuration.")
		}
		hard, ok1 := ParseMemory(words[1])
		soft, ok2 := ParseMemory(words[2])
		seconds, err := strconv.ParseUint(words[3], 10, 31)
		if !ok1 || !ok2 || err != nil || hard > math.MaxInt64 || soft > math.MaxInt64 {
			return Value{}, errors.New("Error in hard, soft or soft_seconds setting in buffer limit configuration.")
		}
		limits[class] = OutputLimit{int64(hard), int64(soft), int(seconds)}
	}
	var parts []string
	for i, l := range limits {
		parts = append(parts, fmt.Sprintf("%s %d %d %d", outputClasses[i].get, l.Hard, l.Soft, l.Seconds))
	}
	return Value{Text: strings.Join(parts, " "), Data: limits}, nil
}

// maxAddresses is the number of addresses that a server binds; Redis has the same bound.
const maxAddresses = 16

func parseAddresses(words []string) (Value, error) {
	if len(words) > maxAddresses {
		return Value{}, errors.New("Too many bind addresses specified.")
	}
	return Value{Text: strings.Join(words, " "), Data: words}, nil
}

func parseScores(words []string) (Value, error) {
	if len(words) != 3 {
		return Value{}, errWords
	}
	for i, w := range words {
		n, err := strconv.ParseInt(w, 10, 32)
		if err != nil || n < -2000 || n > 2000 {
			return Value{}, wants("Invalid oom-score-adj-values, elements must be between -2000 and 2000.")
		}
		words[i] = strconv.FormatInt(n, 10)
	}
	return Value{Text: strings.Join(words, " ")}, nil
}

func (d *Directive) parsePercentiles(words []string) (Value, error) {
	var list []float64
	var texts []string
	for _, w := range words {
		f, err := strconv.ParseFloat(w, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(f) {
			return Value{}, fmt.Errorf("Invalid %s parameters", d.Name)
		}
		if f < 0 || f > 100 {
			return Value{}, wants("%s parameters should sit between [0.0,100.0]", d.Name)
		}
		s := strconv.FormatFloat(f, 'f', 6, 64)
		list = append(list, f)
		texts = append(texts, strings.TrimSuffix(strings.TrimRight(s, "0"), "."))
	}
	return Value{Text: strings.Join(texts, " "), Data: list}, nil
}

func parseMaster(words []string) (Value, error) {
	if len(words) != 2 {
		return Value{}, errWords
	}
	if strings.EqualFold(words[0], "no") && strings.EqualFold(words[1], "one") {
		return Value{}, nil
	}
	if _, err := strconv.ParseUint(words[1], 10, 16); err != nil {
		return Value{}, errors.New("Invalid master port")
	}
	return Value{Text: words[0] + " " + words[1]}, nil
}

func parseDirectory(s string) (Value, error) {
	info, err := os.Stat(s)
	switch {
	case err != nil && errors.Is(err, os.ErrNotExist):
		return Value{}, wants("No such file or directory")
	case err != nil:
		return Value{}, err
	case !info.IsDir():
		return Value{}, wants("Not a directory")
	}
	abs, err := filepath.Abs(s)
	return Value{Text: abs}, err
}
