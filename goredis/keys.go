package goredis

import (
	"iter"

	"github.com/ebbdb/ebb/conn/driverutil"
	"github.com/ebbdb/ebb/internal/routing"
)

// keysOf returns the keys of a command.
func keysOf(plain []any) []string {
	var keys []string
	for _, at := range routing.Keys(len(plain), func(i int) string { return text0(plain[i]) }) {
		keys = append(keys, text0(plain[at]))
	}
	return keys
}

// allKeys are the keys of some commands.
func allKeys(cmds [][]any) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, plain := range cmds {
			for _, key := range keysOf(plain) {
				if !yield(key) {
					return
				}
			}
		}
	}
}

// route returns the argument that decides the node of a command, "" if every node can run
// it.
func route(plain []any) string {
	word := func(i int) string { return text0(plain[i]) }
	if at := routing.Of(len(plain), word).Route(len(plain), word); at > 0 {
		return word(at)
	}
	return ""
}

// text0 is the text of a plain argument.
func text0(a any) string {
	s, _ := driverutil.ArgText(a) // plain arguments always have a text
	return s
}

// nameOf returns the first word of a command, and the second, "" if there is none.
func nameOf(plain []any) (name, second string) {
	if len(plain) > 1 {
		second = text0(plain[1])
	}
	return text0(plain[0]), second
}

// named returns the name of a command, for messages.
func named(plain []any) string {
	name, ok := plain[0].(string)
	if !ok || len(name) > 32 {
		return "a command"
	}
	return name
}
