package acl

import "github.com/ebbdb/ebb/internal/command"

// CatalogOf returns the catalog of a table's commands.
func CatalogOf(t *command.Table) *Catalog {
	commands := make([]Command, t.Len())
	for id := range commands {
		spec := t.Spec(id)
		commands[id] = Command{Name: spec.Name, Categories: uint64(spec.ACL()), Parent: -1}
		if spec.Parent() != nil {
			commands[id].Parent = spec.Parent().ID()
		}
	}
	return NewCatalog(command.CategoryNames(), commands)
}

// channelUse says which arguments of a command are channels.
type channelUse struct {
	first   int  // 0: none
	all     bool // the first one and all after it
	literal bool // they are patterns: the user needs the same pattern, not one that matches it
}

// channelUses are the commands whose channels Check looks at. The commands that end
// subscriptions are not among them.
var channelUses = map[string]channelUse{
	"subscribe":  {first: 1, all: true},
	"ssubscribe": {first: 1, all: true},
	"psubscribe": {first: 1, all: true, literal: true},
	"publish":    {first: 1},
	"spublish":   {first: 1},
}

// Need returns the access that the flags of a key need.
func Need(f command.KeyFlags) (need Access) {
	if f&command.Access != 0 {
		need = Read
	}
	if f&(command.Update|command.Insert|command.Delete) != 0 {
		need |= Write
	}
	return need
}

// Check decides whether a user may run a request, whose arity is right. at is the position of
// the argument for which the request is refused. It gets the request's keys from c, which
// finds them once (Ctx.KeysOf), and allocates nothing. It allows a request whose keys it
// cannot find, because the command will refuse it.
func (a *Accounts) Check(c *command.Ctx, u *User, spec *command.Spec, args [][]byte) (why Denial, at int) {
	if u.Unlimited {
		return Allowed, 0
	}
	why = DeniedCommand
	var keys []command.KeyRef
	for i := range u.Selectors() {
		s := &u.Selectors()[i]
		if !spec.Has(command.NoAuth) && !s.MayRun(spec.ID(), args) {
			continue
		}
		if !s.AllKeys() && spec.HasKeys() {
			keys, _ = c.KeysOf(spec, args)
		}
		got, pos := s.checkKeys(args, keys)
		if got == Allowed {
			got, pos = s.checkChannels(args, a.catalog.channels[spec.ID()])
		}
		switch {
		case got == Allowed:
			return Allowed, 0
		case got > why || got == why && pos > at:
			why, at = got, pos
		}
	}
	return why, at
}

// AllowsToo reports whether one selector of a user allows the request of c and its keys,
// and also has the right that has checks.
func AllowsToo(c *command.Ctx, u *User, has func(*Selector) bool) bool {
	if u.Unlimited {
		return true
	}
	for i := range u.Selectors() {
		s := &u.Selectors()[i]
		if !has(s) || !c.Spec.Has(command.NoAuth) && !s.MayRun(c.Spec.ID(), c.Args) {
			continue
		}
		keys, _ := c.KeysOf(c.Spec, c.Args)
		if why, _ := s.checkKeys(c.Args, keys); why == Allowed {
			return true
		}
	}
	return false
}

func (s *Selector) checkKeys(args [][]byte, keys []command.KeyRef) (why Denial, at int) {
	if s.AllKeys() {
		return Allowed, 0
	}
	for _, k := range keys {
		if !s.MayTouch(args[k.Pos], Need(k.Flags)) {
			return DeniedKey, k.Pos
		}
	}
	return Allowed, 0
}

func (s *Selector) checkChannels(args [][]byte, use channelUse) (why Denial, at int) {
	if use.first == 0 || s.AllChannels() {
		return Allowed, 0
	}
	end := use.first + 1
	if use.all {
		end = len(args)
	}
	for i := use.first; i < end; i++ {
		if !s.MayUse(args[i], use.literal) {
			return DeniedChannel, i
		}
	}
	return Allowed, 0
}
