package acl

import (
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/glob"
)

// Access is a set of reads and writes: the use of a key by a command, or the uses that a
// pattern allows.
type Access uint8

const (
	Read Access = 1 << iota
	Write
)

// Selector is one set of permissions. It allows a request if it allows the command, all of
// its keys and all of its channels.
type Selector struct {
	allCommands bool     // also future ones: the rules began with +@all
	bits        []uint64 // by command ID
	future      bool     // a command that the catalog does not have would be allowed
	firstArgs   map[int][]firstArg
	allKeys     bool
	keys        []pattern
	allChannels bool
	channels    []glob.Pattern
	rules       []string // rules about commands since the last +@all or -@all
}

// pattern is a key pattern and the access that it allows.
type pattern struct {
	glob  glob.Pattern
	allow Access
}

// firstArg is a first argument with which a command is allowed that is not allowed
// otherwise. It is stored as given, and compared in lower case.
type firstArg struct{ given, folded string }

// MayRun reports whether the command with this ID is allowed; args is the whole
// request. It costs O(1), or O(first arguments) for a command that has some.
func (s *Selector) MayRun(id int, args [][]byte) bool {
	if s.bits[id>>6]&(1<<(id&63)) != 0 {
		return true
	}
	if s.firstArgs == nil || len(args) < 2 {
		return false
	}
	for _, f := range s.firstArgs[id] {
		if foldedIs(args[1], f.folded) {
			return true
		}
	}
	return false
}

// AllKeys reports whether every key is allowed.
func (s *Selector) AllKeys() bool { return s.allKeys }

// AllChannels reports whether every channel is allowed.
func (s *Selector) AllChannels() bool { return s.allChannels }

// MayTouch reports whether the selector allows this use of a key. A use that is neither
// Read nor Write, such as EXISTS, is allowed by any pattern that matches. It costs
// O(patterns).
func (s *Selector) MayTouch(key []byte, use Access) bool {
	if s.allKeys {
		return true
	}
	for i := range s.keys {
		if p := &s.keys[i]; p.allow&use == use && p.glob.Match(key) {
			return true
		}
	}
	return false
}

// TouchesAll reports whether the selector allows this use of every key. Keys that are not
// arguments, such as those of SORT BY, cannot be checked one by one.
func (s *Selector) TouchesAll(use Access) bool {
	return s.allKeys || slices.ContainsFunc(s.keys, func(p pattern) bool {
		return p.allow&use == use && p.glob.String() == "*"
	})
}

// MayUse reports whether the selector allows a channel. literal says that the channel is a
// pattern of PSUBSCRIBE, which must be equal to one of the user's patterns. It costs
// O(patterns).
func (s *Selector) MayUse(channel []byte, literal bool) bool {
	if s.allChannels {
		return true
	}
	for i := range s.channels {
		if p := &s.channels[i]; literal && p.String() == string(channel) || !literal && p.Match(channel) {
			return true
		}
	}
	return false
}

// newSelector returns a selector that allows nothing, except channels if they are open by
// default.
func newSelector(c *Catalog, allChannels bool) Selector {
	return Selector{bits: make([]uint64, len(c.commands)/64+1), allChannels: allChannels}
}

func (s *Selector) clone() Selector {
	n := *s
	n.bits = slices.Clone(s.bits)
	n.keys = slices.Clone(s.keys)
	n.channels = slices.Clone(s.channels)
	n.rules = slices.Clone(s.rules)
	n.firstArgs = nil
	for id, list := range s.firstArgs {
		n.addFirstArgs(id, list...)
	}
	return n
}

// apply changes the selector by one rule.
func (s *Selector) apply(c *Catalog, op string) error {
	switch lower(op) {
	case "":
		return ErrSyntax
	case "allkeys", "~*":
		s.allKeys, s.keys = true, nil
	case "resetkeys":
		s.allKeys, s.keys = false, nil
	case "allchannels", "&*":
		s.allChannels, s.channels = true, nil
	case "resetchannels":
		s.allChannels, s.channels = false, nil
	case "allcommands", "+@all":
		s.everyCommand(true)
	case "nocommands", "-@all":
		s.everyCommand(false)
	default:
		switch op[0] {
		case '~', '%':
			return s.addKeys(op)
		case '&':
			return s.addChannels(op[1:])
		case '+', '-':
			err := s.addCommands(c, op[1:], op[0] == '+')
			if err == nil {
				s.note(lower(op))
			}
			return err
		}
		return ErrSyntax
	}
	return nil
}

// addKeys adds "~pattern" or "%RW~pattern". A pattern that is added twice allows the union
// of both.
func (s *Selector) addKeys(op string) error {
	if s.allKeys {
		return ErrKeys
	}
	p := pattern{allow: Read | Write, glob: glob.New(op[1:])}
	if op[0] == '%' {
		var err error
		if p, err = parseKeys(op); err != nil {
			return err
		}
	}
	if HasSpaces(p.glob.String()) {
		return ErrSyntax
	}
	for i := range s.keys {
		if s.keys[i].glob.String() == p.glob.String() {
			s.keys[i].allow |= p.allow
			return nil
		}
	}
	s.keys = append(s.keys, p)
	return nil
}

// parseKeys reads the letters of "%RW~pattern". If nothing follows the letters, the
// pattern is empty, as in Redis.
func parseKeys(op string) (p pattern, err error) {
	for i := 1; i < len(op); i++ {
		switch x := op[i] &^ 0x20; {
		case x == 'R' && p.allow&Read == 0:
			p.allow |= Read
		case x == 'W' && p.allow&Write == 0:
			p.allow |= Write
		case op[i] == '~' && p.allow != 0:
			p.glob = glob.New(op[i+1:])
			return p, nil
		default:
			return p, ErrSyntax
		}
	}
	if p.allow == 0 {
		return p, ErrSyntax
	}
	return p, nil
}

func (s *Selector) addChannels(channels string) error {
	switch {
	case s.allChannels:
		return ErrChannels
	case HasSpaces(channels):
		return ErrSyntax
	}
	if !slices.ContainsFunc(s.channels, func(p glob.Pattern) bool { return p.String() == channels }) {
		s.channels = append(s.channels, glob.New(channels))
	}
	return nil
}

// addCommands allows or forbids a command, a subcommand, a category, or allows
// a command with a first argument.
func (s *Selector) addCommands(c *Catalog, name string, allow bool) error {
	if category, ok := strings.CutPrefix(name, "@"); ok {
		bit, ok := c.category(category)
		if !ok {
			return ErrUnknown
		}
		s.setCategory(c, bit, allow)
		return nil
	}
	bar := strings.LastIndexByte(name, '|')
	if bar < 0 || !allow {
		id, ok := c.lookup(name)
		if !ok {
			return ErrUnknown
		}
		s.setCommand(c, id, allow)
		return nil
	}
	head, tail := name[:bar], name[bar+1:]
	id, ok := c.lookup(head)
	switch {
	case !ok:
		return ErrUnknown
	case c.commands[id].Parent >= 0:
		return ErrFirstArg
	case tail == "":
		return ErrSyntax
	case len(c.subs[id]) == 0:
		s.addFirstArgs(id, firstArg{tail, lower(tail)})
		return nil
	}
	if id, ok = c.lookup(name); !ok {
		return ErrUnknown
	}
	s.setCommand(c, id, true)
	return nil
}

// note stores a rule about commands, in lower case. It replaces an earlier rule about the
// same command or category, and rules about the command's subcommands.
func (s *Selector) note(rule string) {
	s.rules = slices.DeleteFunc(s.rules, func(r string) bool {
		rest, ok := strings.CutPrefix(r[1:], rule[1:])
		return ok && (rest == "" || rest[0] == '|')
	})
	s.rules = append(s.rules, rule)
}

// addFirstArgs allows a command with first arguments, each once.
func (s *Selector) addFirstArgs(id int, list ...firstArg) {
	if s.firstArgs == nil {
		s.firstArgs = map[int][]firstArg{}
	}
	for _, f := range list {
		if !slices.ContainsFunc(s.firstArgs[id], func(g firstArg) bool { return g.folded == f.folded }) {
			s.firstArgs[id] = append(s.firstArgs[id], f)
		}
	}
}

// everyCommand allows or forbids all commands, also future ones.
func (s *Selector) everyCommand(allow bool) {
	s.allCommands, s.future, s.firstArgs, s.rules = allow, allow, nil, nil
	for i := range s.bits {
		s.bits[i] = 0
		if allow {
			s.bits[i] = ^uint64(0)
		}
	}
}

// setCategory allows or forbids every command of a category. A container includes its
// subcommands, as in a rule that names it.
func (s *Selector) setCategory(c *Catalog, bit uint64, allow bool) {
	for _, id := range c.order {
		if c.commands[id].Categories&bit != 0 {
			s.setCommand(c, id, allow)
		}
	}
}

// setCommand allows or forbids a command and its subcommands.
func (s *Selector) setCommand(c *Catalog, id int, allow bool) {
	s.set(id, allow)
	delete(s.firstArgs, id)
	for _, sub := range c.subs[id] {
		s.set(sub, allow)
	}
}

func (s *Selector) set(id int, allow bool) {
	if allow {
		s.bits[id>>6] |= 1 << (id & 63)
	} else {
		s.bits[id>>6] &^= 1 << (id & 63)
		s.allCommands = false
	}
}
