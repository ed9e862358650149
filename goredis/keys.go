package goredis

import (
	"fmt"
	"iter"
	"strings"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/routing"
)

// firstKey returns the first key of a command, as plainArgs has it.
func firstKey(plain []any) (key string, ok bool) {
	keys := keysOf(plain)
	if len(keys) == 0 {
		return "", false
	}
	return keys[0], true
}

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

// oneSlot returns the first of some keys, all of which must be in its slot.
func oneSlot(what string, keys iter.Seq[string]) (first string, err error) {
	if first, err = routing.OneSlot(what, keys); err != nil {
		return "", fmt.Errorf("%w: %w", conn.ErrArgument, err)
	}
	return first, nil
}

// route returns what decides about the node of a command: its first key, or the
// channel of PUBLISH, so that its reply counts the subscribers that Subscribe has
// sent to the same node.
func route(plain []any) string {
	key, ok := firstKey(plain)
	if !ok && len(plain) > 1 && strings.EqualFold(text0(plain[0]), "publish") {
		return text0(plain[1])
	}
	return key
}

// text0 is the text of a plain argument.
func text0(a any) string {
	s, _ := conn.ArgText(a) // plain arguments have one
	return s
}

// nameOf returns the first word of a command, and the second, "" if there is none.
func nameOf(plain []any) (name, second string) {
	if len(plain) > 1 {
		second = text0(plain[1])
	}
	return text0(plain[0]), second
}

// named is the name of a command of plain arguments, for messages.
func named(plain []any) string {
	name, ok := plain[0].(string)
	if !ok || len(name) > 32 {
		return "a command"
	}
	return name
}
