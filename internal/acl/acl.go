// Package acl holds the users of a server and their permissions. It parses the rules of
// ACL SETUSER into patterns and bit sets, and writes them back as text. It has the
// accounts by which connections hold users, the check of a request, and the log of refused
// requests. It uses the Specs of commands, and does not know connections.
//
//	Accounts ── name ─▶ Account ── atomic pointer ─▶ User
//	   ▲                                              │
//	   └─ ACL SETUSER, ACL LOAD: a new User           ▼
//	a request ─▶ Accounts.Check(User, Spec, args) ─▶ Allowed, or a Denial ─▶ Log
//
//	User ── on, passwords
//	 └── selectors: the root one, then those in parentheses; one that allows the request is enough
//	      ├── commands   a bit each, plus "first arguments" of commands that are not allowed
//	      ├── keys       all, or patterns that allow reads, writes or both
//	      └── channels   all, or patterns
//
// New or Clone and some calls of Apply build a User; Accounts seals and publishes it. From then
// on nothing changes it, and any number of goroutines read it. The checks allocate nothing.
//
// Invariants: the root selector is always there; a command's bit is set whenever the selector's
// allCommands is; a selector with allKeys (allChannels) has no patterns of keys (channels).
// Start reading at Accounts.Check, then User.Apply and Selector.MayRun.
package acl

import (
	"errors"
	"slices"
	"strings"
)

// The reasons why a rule is refused. Clients see the texts, so these are Redis's.
var (
	ErrUnknown = errors.New("Unknown command or category name in ACL")
	ErrSyntax  = errors.New("Syntax error")
	ErrKeys    = errors.New("Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try " +
		"'resetkeys' to start with an empty list of patterns")
	ErrChannels = errors.New("Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and " +
		"does not have any effect. Try 'resetchannels' to start with an empty list of channels")
	ErrPassword = errors.New("The password you are trying to remove from the user does not exist")
	ErrHash     = errors.New("The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters")
	ErrFirstArg = errors.New("Allowing first-arg of a subcommand is not supported")
)

// Command holds the properties of a command that rules need.
type Command struct {
	Name       string // in lower case; a subcommand's is the full one, "config|get"
	Categories uint64 // bit i: it is in Catalog's category i
	Parent     int    // the ID of a subcommand's container, -1 for a top-level command
}

// Catalog is the set of commands and categories that rules speak of. It is never
// changed, and may be shared.
type Catalog struct {
	categories []string
	commands   []Command // by ID
	byName     map[string]int
	subs       [][]int      // IDs of a container's subcommands, by name
	order      []int        // all IDs: by name, subcommands after their container
	channels   []channelUse // by ID
}

// NewCatalog returns a catalog of commands; a command's ID is its index. There
// are at most 64 categories, with names in lower case.
func NewCatalog(categories []string, commands []Command) *Catalog {
	c := &Catalog{categories: categories, commands: commands, byName: map[string]int{}, subs: make([][]int, len(commands)),
		channels: make([]channelUse, len(commands))}
	byName := func(a, b int) int { return strings.Compare(commands[a].Name, commands[b].Name) }
	var top []int
	for id, cmd := range commands {
		c.byName[cmd.Name] = id
		c.channels[id] = channelUses[cmd.Name]
		if cmd.Parent >= 0 {
			c.subs[cmd.Parent] = append(c.subs[cmd.Parent], id)
		} else {
			top = append(top, id)
		}
	}
	slices.SortFunc(top, byName)
	for _, id := range top {
		slices.SortFunc(c.subs[id], byName)
		c.order = append(append(c.order, id), c.subs[id]...)
	}
	return c
}

// lookup finds a command by its full name, in upper or lower case.
func (c *Catalog) lookup(name string) (id int, ok bool) {
	id, ok = c.byName[lower(name)]
	return id, ok
}

// category finds a category's bit by its name, in upper or lower case.
func (c *Catalog) category(name string) (bit uint64, ok bool) {
	i := slices.Index(c.categories, lower(name))
	if i < 0 {
		return 0, false
	}
	return 1 << i, true
}

// lower folds ASCII letters.
func lower(s string) string {
	for i := range len(s) {
		if s[i]-'A' < 26 {
			b := []byte(s)
			for ; i < len(b); i++ {
				if b[i]-'A' < 26 {
					b[i] |= 0x20
				}
			}
			return string(b)
		}
	}
	return s
}

// HasSpaces reports whether a name or a pattern has blanks or zero bytes, which
// no line of a file could hold.
func HasSpaces(s string) bool { return strings.ContainsAny(s, " \t\n\v\f\r\x00") }

// foldedIs reports whether b is word, without regard to case. word is in lower case.
func foldedIs(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i, x := range b {
		if x-'A' < 26 {
			x |= 0x20
		}
		if x != word[i] {
			return false
		}
	}
	return true
}
