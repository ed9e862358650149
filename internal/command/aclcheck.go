package command

import (
	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/internal/acl"
	"github.com/ebbdb/ebb/internal/pubsub"
)

// denied is why a request is refused. Of two reasons the larger one is told.
type denied uint8

const (
	deniedNot denied = iota // allowed
	deniedCommand
	deniedKey
	deniedAuth
	deniedChannel

	deniedKinds
)

// denials are the words about a reason: in ACL LOG, in the reply to a request,
// and in that of EXEC.
var denials = [deniedKinds]struct{ log, reply, exec string }{
	deniedCommand: {"command", "", "no permission to execute the command or subcommand"},
	deniedKey:     {"key", "NOPERM No permissions to access a key", "no permission to touch the specified keys"},
	deniedAuth:    {"auth", "", "no permission"},
	deniedChannel: {"channel", "NOPERM No permissions to access a channel", "no permission to access one of the channels used as arguments"},
}

// noPermission is the reply to a request of a user that is refused.
func noPermission(why denied, spec *Spec, user string) error {
	if why == deniedCommand {
		return ReplyError("NOPERM " + mayNotRun(user, spec))
	}
	return ReplyError(denials[why].reply)
}

// mayNotRun says that a user may not run a command, on one line whatever the user's name.
func mayNotRun(user string, spec *Spec) string {
	return "User " + oneLine(user) + " has no permissions to run the '" + spec.Name + "' command"
}

// channelUse says which arguments of a command are channels.
type channelUse struct {
	first   int // 0: none
	all     bool
	literal bool // they are patterns: what is allowed must say just that
}

// channelUses are the commands whose channels are checked. Leaving is free.
var channelUses = map[string]channelUse{
	"subscribe":  {first: 1, all: true},
	"ssubscribe": {first: 1, all: true},
	"psubscribe": {first: 1, all: true, literal: true},
	"publish":    {first: 1},
	"spublish":   {first: 1},
}

// access is what the flags of a key need.
func (f KeyFlags) access() (need acl.Access) {
	if f&Access != 0 {
		need = acl.Read
	}
	if f&(Update|Insert|Delete) != 0 {
		need |= acl.Write
	}
	return need
}

// judge decides whether a user may run a request, whose arity is right. at is the
// place of the argument that is refused. It allocates nothing, unless the
// request has more keys than any before with this Ctx, whose room it uses. Arguments
// in which no keys can be found are let through: the command will refuse them.
func (c *Ctx) judge(u *acl.User, spec *Spec, args [][]byte) (why denied, at int) {
	if u.Unlimited {
		return deniedNot, 0
	}
	why = deniedCommand
	keys, found := c.Keys[:0], false
	list := u.Selectors()
	for i := range list {
		s := &list[i]
		if spec.Has(NoAuth) || s.MayRun(spec.ID(), args) {
			if !found && !s.AllKeys() && spec.HasKeys() {
				keys, _ = spec.AppendKeys(keys, args)
				c.Keys, found = keys, true
			}
			got, pos := judgeKeys(s, args, keys)
			if got == deniedNot {
				got, pos = judgeChannels(s, args, serviceOf(c).acl.channels[spec.ID()])
			}
			switch {
			case got == deniedNot:
				return deniedNot, 0
			case got > why || got == why && pos > at:
				why, at = got, pos
			}
		}
	}
	return why, at
}

func judgeKeys(s *acl.Selector, args [][]byte, keys []KeyRef) (denied, int) {
	if s.AllKeys() {
		return deniedNot, 0
	}
	for _, k := range keys {
		if !s.MayTouch(args[k.Pos], k.Flags.access()) {
			return deniedKey, k.Pos
		}
	}
	return deniedNot, 0
}

func judgeChannels(s *acl.Selector, args [][]byte, use channelUse) (denied, int) {
	if use.first == 0 || s.AllChannels() {
		return deniedNot, 0
	}
	end := use.first + 1
	if use.all {
		end = len(args)
	}
	for i := use.first; i < end; i++ {
		if !s.MayUse(args[i], use.literal) {
			return deniedChannel, i
		}
	}
	return deniedNot, 0
}

// permit returns the error to reply if the session's user, who is not
// unlimited, may not run a request.
func (c *Session) permit(u *acl.User, spec *Spec, args [][]byte) error {
	if c.multi.on && spec.Has(NoMulti) && !spec.Has(NoQueue) {
		return nil // refused in any case, and for that
	}
	why, at := c.ctx.judge(u, spec, args)
	if why == deniedNot {
		return nil
	}
	c.ctx.Spec = spec
	c.ctx.refused(refusal{why: why, object: refusedObject(why, spec, args, at), user: c.user.name}, c.context())
	return noPermission(why, spec, c.user.name)
}

// permitQueued is permit for a command that EXEC is about to run: its user's
// rules may have changed since it was queued.
func (c *Session) permitQueued(spec *Spec, args [][]byte) error {
	u := c.user.user.Load()
	if u.Unlimited {
		return nil
	}
	why, at := c.ctx.judge(u, spec, args)
	if why == deniedNot {
		return nil
	}
	c.ctx.refused(refusal{why: why, object: refusedObject(why, spec, args, at), user: c.user.name}, contextMulti)
	return ReplyError("NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. " +
		"This command is no longer allowed for the following reason: " + denials[why].exec)
}

// refusedObject names what was refused, as far as ACL LOG keeps it.
func refusedObject(why denied, spec *Spec, args [][]byte, at int) string {
	if why == deniedCommand {
		return spec.Name
	}
	return clipped(args[at], aclLogBytes)
}

// permitServed is permit for a command that has waited and is about to be answered:
// its user's rules may have changed since it began to wait. The caller holds the
// waiter's lock; the session is parked. tx is the transaction that serves it, nil for
// none.
func (w *waiter) permitServed(tx *engine.Tx) error {
	x, c := &w.ctx, w.c
	u := c.user.user.Load()
	if u.Unlimited {
		return nil
	}
	why, at := x.judge(u, x.Spec, x.Args)
	if why == deniedNot {
		return nil
	}
	x.Tx = tx
	x.refused(refusal{why: why, object: refusedObject(why, x.Spec, x.Args, at), user: c.user.name}, contextTop)
	x.Tx = nil
	return noPermission(why, x.Spec, c.user.name)
}

// MayReadEveryKey implements Host.
func (c *Session) MayReadEveryKey(x *Ctx) bool {
	return x.allowsToo(func(s *acl.Selector) bool { return s.TouchesAll(acl.Read) })
}

// allowsToo reports whether one set of rules of the session's user lets it run the
// command with its keys, and has what else the command needs.
func (c *Ctx) allowsToo(has func(*acl.Selector) bool) bool {
	u := sessionOf(c).user.user.Load()
	if u.Unlimited {
		return true
	}
	list := u.Selectors()
	for i := range list {
		s := &list[i]
		if !has(s) || !c.Spec.Has(NoAuth) && !s.MayRun(c.Spec.ID(), c.Args) {
			continue
		}
		keys, _ := c.Spec.AppendKeys(nil, c.Args)
		if why, _ := judgeKeys(s, c.Args, keys); why == deniedNot {
			return true
		}
	}
	return false
}

// MayName implements Host. The user needs what DQ.CONFIG asks of a user that names
// the key: a delay queue and its dead letters.
func (c *Session) MayName(x *Ctx, key []byte) error {
	if len(key) == 0 || x.allowsToo(func(s *acl.Selector) bool { return s.MayTouch(key, Insert.access()) }) {
		return nil
	}
	by, where := c, c.context()
	if c.script {
		by, where = c.svc.host.c, contextLua
	}
	by.ctx.refused(refusal{why: deniedKey, object: clipped(key, aclLogBytes), user: c.user.name}, where)
	if c.script {
		return scriptDenied(deniedKey, x.Spec, c.user.name)
	}
	return noPermission(deniedKey, x.Spec, c.user.name)
}

// stayAllowed ends the connection if its user lost the channels it has just
// subscribed to, after the request was let through: whoever took them away has
// not seen the subscriptions.
func (c *Session) stayAllowed(k pubsub.Kind, names [][]byte) {
	u := c.user.user.Load()
	if u.AllChannels() {
		return
	}
	for _, name := range names {
		if !u.MayUse(name, k == pubsub.Pattern) {
			c.svc.pubsub.Leave(c)
			c.expelled(c)
			return
		}
	}
}

// revoked removes the subscriptions of sessions whose user is acc and that have
// one which u, its rules from now on, does not allow. It returns them.
func (a *accounts) revoked(acc *account, u *acl.User) (lost []*Session) {
	p := &a.svc.pubsub
	if !p.Active() {
		return nil
	}
	other := func(k pubsub.Kind, name string) bool { return !u.MayUse([]byte(name), k == pubsub.Pattern) }
	for _, c := range a.svc.clients.everybody() {
		if c.view.user.Load() == acc && p.Any(c, other) {
			lost = append(lost, c)
			p.Leave(c)
		}
	}
	return lost
}
