// Package config holds the server's configuration, with the names, the values
// and the files of Redis 7.2.
//
//	redis.conf ──Parse──┐                            ┌── MaxMemory(), Timeout() ...
//	--port 7000 ParseArgs ──▶ Set: one cell each ────┼── Get("maxmemory*")
//	CONFIG SET ──Change─┘      │        ▲            └── Rewrite() ──▶ redis.conf
//	                           ▼ hooks  │ rollback
//	                        OnChange ───┘
//
// The table (table.go) describes every directive: name, alias, kind, default, bounds, and
// either its meaning or why nothing reads it. ebb accepts directives that it does not use,
// so that it starts with a file written for Redis, and Ignored returns them.
//
// Invariants: a Set always holds a valid value for every directive; Change
// applies all of its pairs or none; readers take no lock and see each value
// whole. Start reading at Set.Change, then Set.Parse.
package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/glob"
)

// Set is a configuration: a value for every directive. Reading is lock-free and
// safe from any goroutine, even while Change runs. Create it with New or Load.
type Set struct {
	cells []cell // by Directive.index

	mu        sync.Mutex // guards what follows, and writing to cells
	given     map[*Directive]Given
	hooks     map[*Directive][]*hook
	renames   []RenameLine
	modules   []Given
	users     []UserLine
	userLines func() []string // the lines about users for Rewrite; nil: none
	path      string          // the configuration file, "" if there is none
	fromFile  bool            // each FileDefault is in force
	saveGiven bool            // a save line was read: further ones add to it
}

// cell is one directive's value. num repeats val's Num, so that hot getters
// load one word.
type cell struct {
	num atomic.Int64
	val atomic.Pointer[Value]
}

type hook struct {
	apply func(*Set) error
}

// Given is a directive that a file or the command line set.
type Given struct {
	Name  string
	Value string // as CONFIG GET prints it; "" for secrets
	Where string // "redis.conf:12" or "command line"
	Why   string // why it is unused, "" if it is not
	// AtDefault says that the value is equal to the default.
	AtDefault bool
}

// New returns a configuration of defaults.
func New() *Set {
	s := &Set{
		cells: make([]cell, len(directives)),
		given: make(map[*Directive]Given),
		hooks: make(map[*Directive][]*hook),
	}
	for _, d := range directives {
		s.store(d, d.initial)
	}
	return s
}

func (s *Set) store(d *Directive, v Value) {
	s.cells[d.index].num.Store(v.Num)
	s.cells[d.index].val.Store(&v)
}

func (s *Set) load(d *Directive) Value { return *s.cells[d.index].val.Load() }

// Get returns the reply of CONFIG GET: names and values in turn, for the names that match
// one of the patterns, each once, sorted. A name without wildcards is returned in the
// caller's spelling, even if the directive is hidden.
func (s *Set) Get(patterns ...string) []string {
	found := make(map[string]string)
	seen := make(map[string]bool) // names in lower case
	add := func(name string, d *Directive) {
		if lower := strings.ToLower(name); !seen[lower] {
			seen[lower] = true
			found[name] = s.text(d)
		}
	}
	for _, p := range patterns {
		if !strings.ContainsAny(p, "*?[") {
			if d := Lookup(p); d != nil {
				add(p, d)
			}
			continue
		}
		for name, d := range byName {
			if !d.Hidden && glob.MatchFold(p, name) {
				add(name, d)
			}
		}
	}
	out := make([]string, 0, 2*len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, name, found[name])
	}
	return out
}

// text returns the value for CONFIG GET. The directory is the process's own until one is
// given.
func (s *Set) text(d *Directive) string {
	v := s.load(d).Text
	if d.Kind == Directory && v == "" {
		v, _ = os.Getwd()
	}
	return v
}

// OnChange makes Change call apply, once per Change, when it has given new values to one
// or more of the directives. apply reads them from the set, and may return an error, which
// CONFIG SET shows. Then all directives get their old values back, and Change calls the
// hooks that had run again. apply may call only Get and the getters of the set, because
// the set's lock is held. OnChange panics for an unknown name.
func (s *Set) OnChange(apply func(*Set) error, names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &hook{apply}
	for _, name := range names {
		s.hooks[must(name)] = append(s.hooks[must(name)], h)
	}
}

// ErrSyntax is Change's error for an odd number of arguments.
var ErrSyntax = errors.New("ERR syntax error")

// ChangeError says which directive CONFIG SET could not set, and why. Its text
// is the reply, with "ERR".
type ChangeError struct {
	Name string
	Err  error // nil: there is no such directive
}

func (e *ChangeError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("ERR Unknown option or number of arguments for CONFIG SET - '%s'", e.Name)
	}
	return fmt.Sprintf("ERR CONFIG SET failed (possibly related to argument '%s') - %v", e.Name, e.Err)
}

func (e *ChangeError) Unwrap() error { return e.Err }

// The reasons inside a ChangeError that are not about the value.
var (
	ErrImmutable = errors.New("can't set immutable config")
	ErrProtected = errors.New("can't set protected config")
	ErrDuplicate = errors.New("duplicate parameter")
)

// change is one directive's old and new value.
type change struct {
	d        *Directive
	name     string // as it was given
	arg      string
	old, new Value
}

// Change runs CONFIG SET with names and values in turn. It checks all pairs before it
// applies one. If a hook returns an error, all directives get their old values back. local
// says that the client came over a loopback connection or a unix socket, which
// enable-protected-configs may trust. Errors are ErrSyntax or a *ChangeError, and their
// text is the reply.
func (s *Set) Change(local bool, pairs ...string) error {
	if len(pairs)%2 != 0 {
		return ErrSyntax
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	changes, err := s.resolve(local, pairs)
	if err != nil {
		return err
	}
	for i := range changes {
		c := &changes[i]
		c.old = s.load(c.d)
		if c.new, err = c.d.parse([]string{c.arg}, c.old); err != nil {
			return &ChangeError{c.name, err}
		}
	}
	for _, c := range changes {
		s.store(c.d, c.new)
	}
	return s.runHooks(changes)
}

// resolve finds the directives and checks that they may be set.
func (s *Set) resolve(local bool, pairs []string) ([]change, error) {
	changes := make([]change, 0, len(pairs)/2)
	seen := make(map[string]bool)
	for i := 0; i < len(pairs); i += 2 {
		name := pairs[i]
		d := Lookup(name)
		switch {
		case d == nil:
			return nil, &ChangeError{Name: name}
		case d.Immutable:
			return nil, &ChangeError{name, ErrImmutable}
		case d.Protected && !s.Allows("enable-protected-configs", local):
			return nil, &ChangeError{name, ErrProtected}
		case seen[strings.ToLower(name)]:
			return nil, &ChangeError{name, ErrDuplicate}
		}
		seen[strings.ToLower(name)] = true
		changes = append(changes, change{d: d, name: name, arg: pairs[i+1]})
	}
	return changes, nil
}

// runHooks calls the hooks of the directives whose value is new, each once, and
// undoes everything if one fails. The caller holds the lock.
func (s *Set) runHooks(changes []change) error {
	var ran []*hook
	for _, c := range changes {
		if c.new.Text == c.old.Text {
			continue
		}
		for _, h := range s.hooks[c.d] {
			if slices.Contains(ran, h) {
				continue
			}
			ran = append(ran, h)
			err := h.apply(s)
			if err == nil {
				continue
			}
			for _, undo := range slices.Backward(changes) {
				s.store(undo.d, undo.old)
			}
			// A hook that accepted the old values before accepts them
			// again; if it does not, the first error is the one to show.
			for _, h := range ran {
				_ = h.apply(s)
			}
			return &ChangeError{c.name, err}
		}
	}
	return nil
}

// Note sets a directive to a value that a command has caused; CONFIG GET and CONFIG
// REWRITE show it. Note does not check the value, also changes immutable directives, and
// calls no hook. It panics for an unknown name.
func (s *Set) Note(name, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(must(name), Value{Text: text})
}

// Ignored lists the directives that were given at start and that nothing reads,
// by name. It is meant to be logged once.
func (s *Set) Ignored() []Given {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Given
	for d, g := range s.given {
		if d.Unused != "" {
			out = append(out, g)
		}
	}
	out = append(out, s.modules...)
	slices.SortFunc(out, func(a, b Given) int { return strings.Compare(a.Name+a.Value, b.Name+b.Value) })
	return out
}

// Setting is a directive with its present value.
type Setting struct {
	*Directive
	Value, Initial string // as CONFIG GET prints it, and the default that is in force
	Where          string // "redis.conf:12" or "command line" if it was given at start, else ""
}

// Changed reports whether the value differs from the default.
func (s *Setting) Changed() bool { return s.Value != s.Initial }

// Settings returns all directives with their present values, secrets included, sorted by name.
func (s *Set) Settings() []Setting {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Setting, len(directives))
	for i, d := range directives {
		out[i] = Setting{Directive: d, Value: s.load(d).Text, Initial: s.defaultOf(d).Text, Where: s.given[d].Where}
	}
	return out
}

// WasGiven reports whether a file or the command line set the directive.
func (s *Set) WasGiven(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.given[must(name)]
	return ok
}

// Durable reports whether the server keeps its data in files. It does so if dir is given,
// if a directive asks for files, which are then in the working directory, or if there is a
// configuration file, with which all defaults are Redis's. Otherwise data is in memory
// only.
func (s *Set) Durable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fromFile || s.asksForFiles() || s.load(must("save")).Text != ""
}

// Shares reports whether the directory of the files is shared with other servers: a
// configuration file was read, and it says nothing about files. Test programs start many
// servers like this, in one working directory.
func (s *Set) Shares() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, saves := s.given[must("save")]
	return s.fromFile && !saves && !s.asksForFiles()
}

// asksForFiles reports whether a directive names a file or a directory, or asks for
// append-only files. s.mu is held.
func (s *Set) asksForFiles() bool {
	for _, name := range []string{"dir", "dbfilename", "appendfilename", "appenddirname"} {
		if _, given := s.given[must(name)]; given {
			return true
		}
	}
	return s.num(hAppendOnly) != 0
}

// FromFile reports whether a configuration file was read. Then all defaults are Redis's.
func (s *Set) FromFile() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fromFile
}

// RenameLine is a line "rename-command from to" of a file or the command line. The package
// does not check that the command exists.
type RenameLine struct {
	From, To string // "" in To removes the command
	Where    string // "redis.conf:12"
}

// Renames returns the rename-command lines, in order.
func (s *Set) Renames() []RenameLine {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.renames)
}

// Path returns the absolute path of the configuration file, "" if there is none.
func (s *Set) Path() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.path
}

func must(name string) *Directive {
	d := Lookup(name)
	if d == nil {
		panic("config: there is no directive " + name)
	}
	return d
}
