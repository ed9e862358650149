package command

import (
	"errors"
	"slices"
	"strings"
)

// Rename gives commands other names, in turn, as the directive rename-command does:
// From is the name by which clients call the command at that moment, in any case, and To its new
// name, "" for none. A subcommand keeps its name, and goes with its container.
type Rename struct{ From, To string }

// The errors of Table.Rename, in Redis's words.
var (
	ErrNoSuchCommand = errors.New("No such command in rename-command")
	ErrNameTaken     = errors.New("Target command name already exists")
)

// Rename gives commands the names that clients call them by from now on. It is for the
// start: nothing may use the table yet. What a log, a master or a user's rules name is
// found by the command's own name all the same. After an error, ErrNoSuchCommand or
// ErrNameTaken, failed is the number of the renaming that is wrong, and the table has
// changed in part.
func (t *Table) Rename(renames []Rename) (failed int, err error) {
	if len(renames) == 0 {
		return 0, nil
	}
	names := make(map[string]*Spec, len(t.top))
	for _, s := range t.top {
		names[strings.ToLower(s.called)] = s
	}
	for i, r := range renames {
		from, to := strings.ToLower(r.From), strings.ToLower(r.To)
		s := names[from]
		if s == nil {
			return i, ErrNoSuchCommand
		}
		delete(names, from)
		if names[to] != nil {
			return i, ErrNameTaken
		}
		if s.called = to; to != "" {
			names[to] = s
		}
	}
	t.top = slices.DeleteFunc(slices.Clone(t.top), func(s *Spec) bool { return s.called == "" })
	var short []*Spec
	for _, s := range t.top {
		if len(s.called) <= MaxName {
			short = append(short, s)
			continue
		}
		if t.long == nil {
			t.long = make(map[string]*Spec)
		}
		t.long[s.called] = s
	}
	t.idx = index{}
	t.idx.build(short, func(s *Spec) string { return s.called })
	return 0, nil
}
