package routing

import (
	"sync"
	"time"
)

// Command is what a client knows of a command. The table has one for each command and
// subcommand of ebb and of Redis 7.0; internal/gen writes it from the commands' Specs.
// The methods of a nil *Command answer for a command that the table does not have.
type Command struct {
	// Name is in lower case; a subcommand's is "config|get".
	Name  string
	Flags Flags
	// FanOut says how the command runs if it concerns all masters of a cluster.
	FanOut FanOut
	// Wait says where a request names the time that it waits at most.
	Wait Timeout
	// Keys are the rules that find the keys; Options takes their place if it is not nil.
	Keys    []KeyRule
	Options *KeyOptions
}

// Flags say how a client treats a command.
type Flags uint8

const (
	// Write: the command may change data, by a script if it runs one.
	Write Flags = 1 << iota
	// Stateful: the command changes the connection for the commands behind it.
	Stateful
	// Pipelined: the command takes next to no time and does not wait, or only with the
	// keyword of its Wait. Its reply may come together with those of other commands.
	Pipelined
	// Container: the second word of a request names a subcommand.
	Container
	// NoKeys: the number of keys in a request may be 0.
	NoKeys
)

// Timeout is where a request says how long it waits. The zero value: it does not wait.
type Timeout struct {
	// At is the place of the argument, negative from the end, -1 being the last.
	At int
	// Keyword, if it is not "", is the option before the argument, in place of At.
	Keyword string
	// Unit is that of the argument.
	Unit time.Duration
}

// KeyRule finds keys: one at Index or, with a Keyword, behind that word. The places of
// Last and Count are relative to it.
type KeyRule struct {
	// Index is the first place, or the one from which on the keyword is looked for;
	// negative: from the end, and backwards.
	Index   int
	Keyword string
	// Last is the place of the last key; negative: from the end of the request, -1 being
	// the last word.
	Last int
	// Step is the distance from one key to the next; 0 means 1.
	Step int
	// Half: only the first half of what follows are keys.
	Half bool
	// First is the place of the first key if the request says how many there are, at
	// Count; 0: it does not.
	First, Count int
}

// KeyOptions finds keys among options whose arguments may look like other options.
type KeyOptions struct {
	// First is the place of a key before the options; 0: there is none.
	First int
	// Instead: the options are read only if the first key is empty, and a key that they
	// name takes its place.
	Instead bool
	// Only is what the word at place 2 must be for the request to have keys; "": any.
	Only string
	// From is the place of the first option.
	From int
	// Options are those that take arguments; others take none, or one with Pairs.
	Options []KeyOption
	// Take says which keys count if several options name one.
	Take Take
	// Pairs: each option takes one argument, and an empty one is no key.
	Pairs bool
}

// KeyOption is an option with its arguments: Args of them, or -1 for all that follow.
type KeyOption struct {
	Word string
	Args int
	Key  bool
}

// Take says which of several keys among options count.
type Take uint8

const (
	TakeAll Take = iota
	TakeLast
	TakeFirst // a request without one has no keys
)

// slots is how many places the index has: four for each command, so that a search
// usually ends at the first.
const slots = 2048

// index is a hash table of the commands' names: 1 + the place in commands, 0 for none.
var index = sync.OnceValue(func() *[slots]uint16 {
	var x [slots]uint16
	for i := range commands {
		at := hashOf(0, commands[i].Name) % slots
		for x[at] != 0 {
			at = (at + 1) % slots
		}
		x[at] = uint16(i + 1)
	}
	return &x
})

// hashOf continues a hash with a word in any case of letters.
func hashOf(h uint32, word string) uint32 {
	for i := range len(word) {
		h = h*31 + uint32(word[i]|0x20)
	}
	return h
}

// Find returns what is known of a command, by its name and its second word ("" if it has
// none), in any case of letters: the subcommand if there is one of that name. It returns
// nil for a command that the table does not have. It allocates nothing.
func Find(name, second string) *Command {
	h := hashOf(0, name)
	c := search(h, name, "")
	if c == nil || c.Flags&Container == 0 || second == "" {
		return c
	}
	if sub := search(hashOf(h*31+'|', second), name, second); sub != nil {
		return sub
	}
	return c
}

// search finds a command by its hash and its name in two parts.
func search(h uint32, name, second string) *Command {
	x := index()
	for at := h % slots; x[at] != 0; at = (at + 1) % slots {
		if c := &commands[x[at]-1]; c.named(name, second) {
			return c
		}
	}
	return nil
}

// named reports whether the command has a name in two parts.
func (c *Command) named(name, second string) bool {
	n := len(name)
	if second == "" {
		return lowerIs(name, c.Name)
	}
	return len(c.Name) == n+1+len(second) && c.Name[n] == '|' && lowerIs(name, c.Name[:n]) && lowerIs(second, c.Name[n+1:])
}

// lowerIs compares a word with one in small letters, in ASCII as servers do.
func lowerIs(word, small string) bool {
	if len(word) != len(small) {
		return false
	}
	for i := range len(word) {
		c := word[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != small[i] {
			return false
		}
	}
	return true
}

// Of is Find for a request of n words, at least one.
func Of(n int, word func(i int) string) *Command {
	second := ""
	if n > 1 {
		second = word(1)
	}
	return Find(word(0), second)
}

// equalFold compares with a word in capitals, in ASCII as servers do.
func equalFold(s, capitals string) bool {
	if len(s) != len(capitals) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if 'a' <= c && c <= 'z' {
			c &^= 0x20
		}
		if c != capitals[i] {
			return false
		}
	}
	return true
}

// Commands returns the table, which must not be changed.
func Commands() []Command { return commands[:] }

// Has reports whether the command has all of the flags. An unknown command has Write
// alone.
func (c *Command) Has(f Flags) bool {
	if c == nil {
		return f&^Write == 0
	}
	return c.Flags&f == f
}

// MakesWait reports whether a word of a request, in any case of letters, is the option with
// which the command waits.
func (c *Command) MakesWait(word string) bool {
	return c.Wait.Keyword != "" && equalFold(word, c.Wait.Keyword)
}
