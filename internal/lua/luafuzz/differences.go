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
	same   func(ours, theirs string) bool
}

// differences is the one list of what is allowed to differ. Whatever is not on it
// must be equal, byte by byte.
var differences = []difference{
	{"", "how often an error handler that fails is called depends on the depth of the C stack around it", sameButTurns},
	{"", "names in messages are known for more than 256 constants of a function", manyConstants},
	{"lua5.1", "redis-server, and we, do not load bytecode", bytecode},
	{"lua5.1", "redis-server, and we, let [[ stand in a long string", nested},
}

// manyTurns is above what programs print in a loop, and below what a handler
// prints that is called until the C stack overflows; longestTurn is above how many
// lines it prints each time.
const (
	manyTurns   = 20
	longestTurn = 40
)

// sameButTurns compares outputs up to where the same lines come again and again,
// if they do in both: from there on it matters how much C stack is left.
func sameButTurns(ours, theirs string) bool {
	a, b := beforeTurns(ours), beforeTurns(theirs)
	return a != ours && a == b
}

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

func manyConstants(ours, theirs string) bool {
	return nameOfMany.ReplaceAllString(ours, "$1 '?'") == nameOfMany.ReplaceAllString(theirs, "$1 '?'")
}

func bytecode(_, theirs string) bool { return strings.Contains(theirs, "precompiled chunk") }

func nested(_, theirs string) bool {
	return strings.Contains(theirs, "nesting of [[...]] is deprecated")
}
