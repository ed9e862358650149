package modeltest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/resp"
)

// Tally counts the commands of a campaign, and the differences that it found.
type Tally struct {
	Sequences, Requests int
	// Differences counts by the IDs of package compat.
	Differences map[string]int
	// Commands counts by full name; Encodings by "type: ours / theirs".
	Commands  map[string]*Sent
	Encodings map[string]int
}

// Sent holds the number of times that a campaign sent a command, and the number of times
// that both servers answered it without an error.
type Sent struct{ All, OK int }

// NewTally returns an empty Tally.
func NewTally() *Tally {
	return &Tally{Differences: map[string]int{}, Commands: map[string]*Sent{}, Encodings: map[string]int{}}
}

// difference counts a difference that is allowed. A nil tally counts nothing.
func (t *Tally) difference(id string) {
	if t != nil && id != "" {
		t.Differences[id]++
	}
}

// request counts a request with its replies, and the request that a script makes.
func (t *Tally) request(table *command.Table, args []string, ours, theirs resp.Value) {
	if t == nil {
		return
	}
	t.Requests++
	ok := ours.Kind != resp.KindError && theirs.Kind != resp.KindError && ours.Str != "QUEUED"
	t.one(table, args, ok)
	if inner := request(args); len(inner) < len(args) {
		t.one(table, inner, ok)
	}
}

func (t *Tally) one(table *command.Table, args []string, ok bool) {
	spec, err := table.Find(byteArgs(args))
	if err != nil {
		return
	}
	s := t.Commands[spec.Name]
	if s == nil {
		s = &Sent{}
		t.Commands[spec.Name] = s
	}
	s.All++
	if ok {
		s.OK++
	}
}

func byteArgs(args []string) [][]byte {
	out := make([][]byte, len(args))
	for i, a := range args {
		out[i] = []byte(a)
	}
	return out
}

// String shows all counts as a few tables.
func (t *Tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d sequences, %d requests, %d kinds of command\n", t.Sequences, t.Requests, len(t.Commands))
	total := 0
	for _, n := range t.Differences {
		total += n
	}
	fmt.Fprintf(&b, "\n%-32s %8s\n", "allowed difference", "times")
	for _, id := range slices.Sorted(maps.Keys(t.Differences)) {
		fmt.Fprintf(&b, "%-32s %8d\n", id, t.Differences[id])
	}
	fmt.Fprintf(&b, "%-32s %8d\n", "all", total)
	fmt.Fprintf(&b, "\n%-40s %8s\n", "other encodings, ebb / server", "keys")
	for _, pair := range slices.Sorted(maps.Keys(t.Encodings)) {
		fmt.Fprintf(&b, "%-40s %8d\n", pair, t.Encodings[pair])
	}
	b.WriteString("\nsent / answered by both without an error\n")
	for i, name := range slices.Sorted(maps.Keys(t.Commands)) {
		s := t.Commands[name]
		end := "  "
		if i%4 == 3 {
			end = "\n"
		}
		fmt.Fprintf(&b, "%-22s %6d %6d%s", name, s.All, s.OK, end)
	}
	return b.String()
}

// Missing returns which of the commands that both servers have, and that read or write
// keys, were not answered once without an error, with notSent's reasons taken into
// account.
func (t *Tally) Missing(table *command.Table, both func(name string) bool) (names []string) {
	for id := range table.Len() {
		s := table.Spec(id)
		if s.Run == nil || !both(s.Name) || !s.Has(command.Write) && !s.Has(command.ReadOnly) || notSent[s.Name] != "" {
			continue
		}
		if c := t.Commands[s.Name]; c == nil || c.OK == 0 {
			names = append(names, s.Name)
		}
	}
	return names
}
