// Package routing is what both doors to servers know, that of the root, over go-redis, and
// that of contrib/rueidis: from a command's words where it has to go, and from a reply
// whether the command has run.
//
//	keys.go   the keys of a command, their slot, and whether it may write
//	wide.go   commands that concern all masters of a cluster
//	reply.go  replies that say that nothing was run
//	feed.go   how subscriptions are kept
//
// Start reading at Keys.
package routing

import (
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/ebbdb/ebb/internal/command"
)

var table = sync.OnceValues(command.DefaultTable)

// Table returns the commands that a door knows: ebb's own, and Redis's. It is made once.
func Table() (*command.Table, error) { return table() }

// find returns what is known of a command, or of its subcommand: nil for nothing.
func find(name, second string) *command.Spec {
	t, err := table()
	if err != nil {
		return nil
	}
	spec := t.LookupFull(name)
	if spec != nil && len(spec.Sub) > 0 && second != "" {
		if sub := spec.Subcommand([]byte(second)); sub != nil {
			return sub
		}
	}
	return spec
}

// Keys returns the places of the keys among n words of a command. One that nobody knows
// is taken to have one, its first argument; the channel of SPUBLISH is one too, since it
// belongs to a node.
func Keys(n int, word func(i int) string) []int {
	if n < 2 {
		return nil
	}
	name := strings.ToLower(word(0))
	spec := find(name, word(1))
	if spec == nil || name == "spublish" {
		return []int{1}
	}
	if !spec.HasKeys() && spec.Keys == nil {
		return nil
	}
	words := make([][]byte, n)
	for i := range words {
		words[i] = []byte(word(i))
	}
	refs, err := spec.AppendKeys(nil, words)
	if err != nil {
		return nil
	}
	at := make([]int, len(refs))
	for i, r := range refs {
		at[i] = r.Pos
	}
	return at
}

// MayWrite reports whether a command, by its name and its second word (""), may change
// data: what nobody knows may, and so may scripts.
func MayWrite(name, second string) bool {
	name = strings.ToLower(name)
	switch name {
	case "eval", "evalsha", "fcall":
		return true
	}
	spec := find(name, second)
	return spec == nil || spec.Has(command.Write)
}

// Slots is how many a cluster has.
const Slots = 16384

// Slot is the hash slot of a key: CRC16 (XMODEM) of it, or of what stands between the
// first { and the next }, if that is not empty.
func Slot(key string) int {
	if i := strings.IndexByte(key, '{'); i >= 0 {
		if n := strings.IndexByte(key[i+1:], '}'); n > 0 {
			key = key[i+1 : i+1+n]
		}
	}
	crc := uint16(0)
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % Slots
}

// OneSlot returns the first of some keys, "" if there is none, and an error if another
// is not in its slot; what is what has them.
func OneSlot(what string, keys iter.Seq[string]) (first string, err error) {
	slot := -1
	for key := range keys {
		switch s := Slot(key); {
		case slot < 0:
			first, slot = key, s
		case s != slot:
			return "", fmt.Errorf("%s in a cluster has its keys in one slot, and %q and %q are not: give them a common hash tag, as in {tag}:%s", what, first, key, first)
		}
	}
	return first, nil
}
