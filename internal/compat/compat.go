// Package compat lists the differences between ebb and the servers that it is
// compared with: Redis 7.0.15, Redis 8.0.6 and Valkey 9.1.2.
//
//	differences ──> docs/compatibility.md     (internal/gen)
//	     │
//	     └────────> what tests may tolerate   (the ID of a difference stands
//	                                           beside each allowance)
//
// A test that compares ebb with one of these servers fails where they differ, unless it
// names a difference of this list that covers the server. A difference that no test names
// fails a test as well, so that the page says what is true today. To add a difference,
// add an entry to the list of its area in differences.go, name its ID in the test that
// needs it, and run `make docs`.
//
// Start reading at Difference.
package compat

import (
	"fmt"
	"slices"
	"strings"
)

// Servers is a set of the servers that ebb is compared with.
type Servers uint8

// These constants are the servers, and sets of them.
const (
	Redis7  Servers = 1 << iota // redis-server 7.0.15
	Redis8                      // Redis 8.0.6
	Valkey9                     // Valkey 9.1.2

	Newer = Redis8 | Valkey9
	Redis = Redis7 | Redis8
	All   = Redis7 | Redis8 | Valkey9
)

// servers are the members of the full set in order: the program, as package
// realserver names it, and the name and version for readers.
var servers = []struct {
	one           Servers
	program, name string
}{
	{Redis7, "redis-server", "Redis 7.0.15"},
	{Redis8, "redis-server-8", "Redis 8.0.6"},
	{Valkey9, "valkey-server-9", "Valkey 9.1.2"},
}

// Of returns the server of a program of package realserver, 0 for any other program.
func Of(program string) Servers {
	for _, s := range servers {
		if s.program == program {
			return s.one
		}
	}
	return 0
}

// Has reports whether all servers of other are in the set.
func (s Servers) Has(other Servers) bool { return s&other == other }

// Programs returns the names that package realserver has for the servers of the set.
func (s Servers) Programs() []string {
	var out []string
	for _, one := range servers {
		if s.Has(one.one) {
			out = append(out, one.program)
		}
	}
	return out
}

// String names the servers of the set with their versions.
func (s Servers) String() string {
	var out []string
	for _, one := range servers {
		if s.Has(one.one) {
			out = append(out, one.name)
		}
	}
	return strings.Join(out, ", ")
}

// Area is a section of docs/compatibility.md.
type Area string

// The areas, in the order of the page.
const (
	Commands    Area = "Commands and their descriptions"
	Replies     Area = "Replies"
	Errors      Area = "Errors"
	Collections Area = "Hashes, lists, sets and sorted sets"
	Streams     Area = "Streams"
	Scripting   Area = "Scripts and functions"
	Connections Area = "Connections and users"
	Directives  Area = "Configuration"
	Effects     Area = "Replication, files and notifications"
	Statistics  Area = "INFO and statistics"
	Nature      Area = "What differs between any two servers"
)

// Areas lists the areas in the order of the page.
var Areas = []Area{Commands, Replies, Errors, Collections, Streams, Scripting, Connections, Directives, Effects, Statistics, Nature}

// Difference is one way in which ebb differs from some of the servers.
type Difference struct {
	// ID is a short name in lower case with hyphens, which tests and transcripts use.
	ID   string
	Area Area
	// Servers are the servers from which ebb differs.
	Servers Servers
	// Commands are names as in command.Spec ("config|get"), separated by spaces. Empty
	// means that the difference belongs to no command in particular.
	Commands string
	// What describes in one sentence the behaviour of ebb and of the servers.
	What string
	// Reason explains why ebb differs.
	Reason string
}

// Find returns the difference with an ID.
func Find(id string) (d Difference, ok bool) {
	i := slices.IndexFunc(differences, func(d Difference) bool { return d.ID == id })
	if i < 0 {
		return d, false
	}
	return differences[i], true
}

// Covers reports whether the difference with an ID holds for a program of package
// realserver. An ID that is not on the list is an error.
func Covers(id, program string) (bool, error) {
	d, ok := Find(id)
	if !ok {
		return false, fmt.Errorf("internal/compat has no difference %q; add it to the list in differences.go", id)
	}
	one := Of(program)
	return one != 0 && d.Servers.Has(one), nil
}

// List returns the differences of an area, in the order of the list.
func List(a Area) []Difference {
	var out []Difference
	for _, d := range differences {
		if d.Area == a {
			out = append(out, d)
		}
	}
	return out
}
