package routing

import (
	"sync"
	"time"
)

// Command holds the properties of a command that a client needs. The table has one for
// each command and subcommand of ebb and of Redis 7.0; internal/gen writes it from the
// commands' Specs. The methods of a nil *Command return the results for a command that the
// table does not have.
type Command struct {
	// Name is in lower case; a subcommand's is "config|get".
	Name  string
	Flags Flags
	// FanOut says how the command runs if it concerns all masters of a cluster.
	FanOut FanOut
	// Wait says where a request has its timeout.
	Wait Timeout
	// Keys are the rules that find the keys; Options replaces them if it is not nil.
	Keys    []KeyRule
	Options *KeyOptions
}

// Flags say how a client treats a command.
type Flags uint8

const (
	// Write: the command may change data, by a script if it runs one.
	Write Flags = 1 << iota
	// Stateful: the command changes the connection for the commands after it.
	Stateful
	// Pipelined: the command is fast and does not wait, or waits only with the keyword of
	// its Wait. So it may share a pipeline with commands of other goroutines.
	Pipelined
	// Container: the second word of a request names a subcommand.
	Container
	// NoKeys: the number of keys in a request may be 0.
	NoKeys
)

// Timeout is the position of the timeout in a request. The zero value: the command does
// not wait.
type Timeout struct {
	// At is the position of the argument; a negative one counts from the end, -1 is the
	// last.
	At int
	// Keyword, if it is not "", is the option before the argument, in place of At.
	Keyword string
	// Unit is the unit of the argument.
	Unit time.Duration
}

// KeyRule finds keys: the first at Index or, with a Keyword, after that word. Last and
// Count are relative to that position.
type KeyRule struct {
	// Index is the position of the first key, or the position at which the search for the
	// keyword begins. A negative one counts from the end, and the search goes backwards.
	Index   int
	Keyword string
	// Last is the position of the last key; a negative one counts from the end of the
	// request, -1 is the last word.
	Last int
	// Step is the distance from one key to the next; 0 means 1.
	Step int
	// Half: only the first half of what follows are keys.
	Half bool
	// First is the position of the first key if the request has the number of keys at Count;
	// 0: it does not have the number.
	First, Count int
}

// KeyOptions finds keys among options whose arguments may look like other options.
type KeyOptions struct {
	// First is the position of a key before the options; 0: there is none.
	First int
	// Instead: the options have a key only if the first key is empty; their key then
	// replaces it.
	Instead bool
	// Only is the word that must be at position 2 if the request has keys; "": any word.
	Only string
	// From is the position of the first option.
	From int
	// Options are the options with arguments. Other options have none, or one with Pairs.
	Options []KeyOption
	// Take says which keys count if several options name one.
	Take Take
	// Pairs: each option takes one argument, and an empty one is not a key.
	Pairs bool
}

// KeyOption is an option with its arguments: Args of them, or -1 for all that follow. Before is a word
// that may stand before the argument; it is an argument itself if it is the last word, or if another
// option follows it.
type KeyOption struct {
	Word   string
	Args   int
	Key    bool
	Before string
}

// Take says which of several keys among options count.
type Take uint8

const (
	TakeAll Take = iota
	TakeLast
	TakeFirst // a request without one has no keys
)

// slots is the size of the index: four slots for each command, so that a search usually
// ends at the first one.
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

// Find returns the entry of a command, by its name and its second word ("" if it has
// none), without regard to case. It returns the subcommand if there is one of that name.
// It returns nil for a command that the table does not have. It allocates nothing.
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

// Of returns the entry of the command in a request of n words, at least one.
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
