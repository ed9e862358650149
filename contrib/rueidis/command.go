package rueidisebb

import (
	"iter"
	"strings"

	"github.com/redis/rueidis"

	"github.com/ebbdb/ebb/conn/driverutil"
	"github.com/ebbdb/ebb/internal/remote"
	"github.com/ebbdb/ebb/internal/routing"
)

// noSlot is the slot of a cluster's command without a key.
const noSlot = routing.Slots

// command builds a command. In a cluster it goes to the node of its first key.
func (d *driver) command(words []string) rueidis.Completed {
	at := d.keyAt(words)
	if at == 0 {
		return d.client.B().Arbitrary(words...).Build()
	}
	return d.client.B().Arbitrary(words[:at]...).Keys(words[at]).Args(words[at+1:]...).Build()
}

// blocking builds a command that waits, which needs a connection of its own.
func (d *driver) blocking(words []string) rueidis.Completed {
	at := d.keyAt(words)
	if at == 0 {
		return d.client.B().Arbitrary(words...).Blocking()
	}
	return d.client.B().Arbitrary(words[:at]...).Keys(words[at]).Args(words[at+1:]...).Blocking()
}

// routed builds a command for the shared connections. PUBLISH goes to the node of its
// channel.
func (d *driver) routed(words []string) rueidis.Completed {
	word := func(i int) string { return words[i] }
	if at := routing.Of(len(words), word).Route(len(words), word); d.cluster && at > 0 {
		return d.client.B().Arbitrary(words[:at]...).Keys(words[at]).Args(words[at+1:]...).Build()
	}
	return d.client.B().Arbitrary(words...).Build()
}

// keyAt returns the position of the key that decides the node of a command, 0 for none.
func (d *driver) keyAt(words []string) int {
	if !d.cluster {
		return 0
	}
	return firstKey(words)
}

// texts returns the arguments in the form in which they are sent.
func texts(args []any) ([]string, error) {
	words := make([]string, len(args))
	for i, a := range args {
		w, err := driverutil.ArgText(a)
		if err != nil {
			return nil, err
		}
		words[i] = w
	}
	return words, nil
}

// allTexts converts the arguments of a batch as texts does.
func allTexts(cmds [][]any) ([][]string, error) {
	all := make([][]string, len(cmds))
	for i, args := range cmds {
		var err error
		if all[i], err = texts(args); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// mayCache reports whether a command's reply may come from the cache.
func (d *driver) mayCache(words []string) bool {
	if d.cached == nil || len(words) < 2 {
		return false
	}
	_, ok := d.cached[words[0]]
	if !ok {
		_, ok = d.cached[strings.ToUpper(words[0])]
	}
	return ok
}

// keyPlaces returns the positions of a command's keys.
func keyPlaces(words []string) []int {
	return routing.Keys(len(words), func(i int) string { return words[i] })
}

// firstKey returns the position of a command's first key, 0 if it has none.
func firstKey(words []string) int {
	word := func(i int) string { return words[i] }
	return routing.Of(len(words), word).FirstKey(len(words), word)
}

// keyOf returns a command's first key, "" if it has none.
func keyOf(words []string) string {
	if at := firstKey(words); at > 0 {
		return words[at]
	}
	return ""
}

// keysOf are the keys of some commands.
func keysOf(cmds ...[]string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, words := range cmds {
			for _, at := range keyPlaces(words) {
				if !yield(words[at]) {
					return
				}
			}
		}
	}
}

// oneSlot returns the first of the keys. In a cluster it fails unless all keys are in one
// slot.
func (d *driver) oneSlot(what string, keys iter.Seq[string]) (first string, err error) {
	if !d.cluster {
		return "", nil
	}
	return remote.OneSlot(what, keys)
}

// nameOf returns the first word of a command, and the second, "" if there is none.
func nameOf(words []string) (name, second string) {
	if len(words) > 1 {
		second = words[1]
	}
	return words[0], second
}

// mayWrite reports whether a command may change data.
func mayWrite(words []string) bool { return routing.MayWrite(nameOf(words)) }
