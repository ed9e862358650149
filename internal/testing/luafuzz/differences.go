package luafuzz

import (
	"regexp"
	"slices"
	"strings"
)

// difference is a way in which our outputs may differ from an oracle's, on
// purpose or by nature.
type difference struct {
	oracle string // "" for both
	reason string
	// without returns an output without the parts that may differ; the test applies it to
	// both outputs.
	without func(output string) string
	// ends, if without is nil, reports that the test does not compare this output of the
	// oracle.
	ends func(theirs string) bool
}

// differences lists all allowed differences. Everything else must be equal, byte by byte.
var differences = []difference{
	{"", "names in messages are known for more than 256 constants of a function", withoutNamesOfMany, nil},
	{"", "how often an error handler that fails is called depends on the depth of the C stack around it", beforeTurns, nil},
	{"lua5.1", "redis-server, and we, do not load bytecode", nil, bytecode},
	{"lua5.1", "redis-server, and we, let [[ stand in a long string", nil, nested},
}

// allowed returns the reason for which two outputs may differ, "" if they may not differ.
func allowed(oracle, ours, theirs string) (reason string) {
	for _, d := range differences {
		switch {
		case d.oracle != "" && d.oracle != oracle:
		case d.without == nil:
			if d.ends(theirs) {
				return d.reason
			}
		default:
			ours, theirs = d.without(ours), d.without(theirs)
			if ours == theirs {
				return d.reason
			}
		}
	}
	return ""
}

// manyTurns is above what programs print in a loop, and below what a handler
// prints that is called until the C stack overflows; longestTurn is above how many
// lines it prints each time.
const (
	manyTurns   = 20
	longestTurn = 100
)

// beforeTurns returns an output up to where the same lines come again and again: from
// there on it matters how much C stack is left.
func beforeTurns(s string) string {
	lines := strings.Split(s, "\n")
	for from := range lines {
		for size := 1; size <= longestTurn && from+size*manyTurns <= len(lines); size++ {
			if lines[from] == lines[from+size] && slices.Equal(lines[from:from+size*(manyTurns-1)], lines[from+size:from+size*manyTurns]) {
				return strings.Join(lines[:from], "\n")
			}
		}
	}
	return s
}

// nameOfMany is a name as the generator gives them where there are many constants.
var nameOfMany = regexp.MustCompile(`(field|method) '[a-z]+\d\d\d'`)

// withoutNamesOfMany replaces such names with Lua's text for a value without a name.
func withoutNamesOfMany(s string) string { return nameOfMany.ReplaceAllString(s, "$1 '?'") }

func bytecode(theirs string) bool { return strings.Contains(theirs, "precompiled chunk") }

func nested(theirs string) bool {
	return strings.Contains(theirs, "nesting of [[...]] is deprecated")
}
