package session

import (
	"errors"
	"slices"

	"github.com/ebbdb/ebb/internal/acl"
	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/pubsub"
)

// noPermission returns the error reply to a request that the ACL of the user refuses.
func noPermission(why acl.Denial, spec *command.Spec, user string) error {
	if why == acl.DeniedCommand {
		return command.ReplyError("NOPERM " + acl.MayNotRun(user, spec))
	}
	return command.ReplyError(why.Reply())
}

// permit returns the error reply if the session's user may not run a request. The user u must not be an
// unlimited user.
func (c *Session) permit(u *acl.User, spec *command.Spec, args [][]byte) error {
	if c.multi.on && spec.Has(command.NoMulti) && !spec.Has(command.NoQueue) {
		return nil // the command is refused in any case, for another reason
	}
	why, at := c.svc.acl.Check(&c.ctx, u, spec, args)
	if why == acl.Allowed {
		return nil
	}
	c.ctx.Spec = spec
	refused(&c.ctx, acl.Refusal{Why: why, Object: refusedObject(why, spec, args, at), User: c.user.Name}, c.context())
	return noPermission(why, spec, c.user.Name)
}

// permitQueued does the work of permit for a command that EXEC is about to run: the rules of the user may
// have changed since the command was queued.
func (c *Session) permitQueued(spec *command.Spec, args [][]byte) error {
	u := c.user.User()
	if u.Unlimited {
		return nil
	}
	why, at := c.svc.acl.Check(&c.ctx, u, spec, args)
	if why == acl.Allowed {
		return nil
	}
	refused(&c.ctx, acl.Refusal{Why: why, Object: refusedObject(why, spec, args, at), User: c.user.Name}, acl.InMulti)
	return command.ReplyError("NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. " +
		"This command is no longer allowed for the following reason: " + why.Exec())
}

// refusedObject returns the name of the object that was refused, cut to the length that ACL LOG
// keeps.
func refusedObject(why acl.Denial, spec *command.Spec, args [][]byte, at int) string {
	if why == acl.DeniedCommand {
		return spec.Name
	}
	return admin.Clip(args[at], aclLogBytes)
}

// permitServed does the work of permit for a command that has waited and is about to be served: the rules of
// the user may have changed since the wait began. The caller holds the waiter's lock, and the session is
// parked. tx is the transaction that serves the waiter; it may be nil.
func (w *waiter) permitServed(tx *engine.Tx) error {
	x, c := &w.ctx, w.c
	u := c.user.User()
	if u.Unlimited {
		return nil
	}
	why, at := c.svc.acl.Check(x, u, x.Spec, x.Args)
	if why == acl.Allowed {
		return nil
	}
	x.Tx = tx
	refused(x, acl.Refusal{Why: why, Object: refusedObject(why, x.Spec, x.Args, at), User: c.user.Name}, acl.TopLevel)
	x.Tx = nil
	return noPermission(why, x.Spec, c.user.Name)
}

// MayReadEveryKey implements Host.
func (c *Session) MayReadEveryKey(x *command.Ctx) bool {
	return allowsToo(x, func(s *acl.Selector) bool { return s.TouchesAll(acl.Read) })
}

// allowsToo reports whether one set of rules of the session's user both lets the user run the
// command with its keys and satisfies has.
func allowsToo(c *command.Ctx, has func(*acl.Selector) bool) bool {
	return acl.AllowsToo(c, Of(c).user.User(), has)
}

// MayName implements Host. The user needs the permission that DQ.CONFIG requires for the key: that of a delay
// queue, which names its dead letters.
func (c *Session) MayName(x *command.Ctx, key []byte) error {
	if len(key) == 0 || allowsToo(x, func(s *acl.Selector) bool { return s.MayTouch(key, acl.Need(command.Insert)) }) {
		return nil
	}
	by, where := c, c.context()
	if c.script {
		by, where = c.svc.host.c, acl.InScript
	}
	refused(&by.ctx, acl.Refusal{Why: acl.DeniedKey, Object: admin.Clip(key, aclLogBytes), User: c.user.Name}, where)
	if c.script {
		return scriptDenied(acl.DeniedKey, x.Spec, c.user.Name)
	}
	return noPermission(acl.DeniedKey, x.Spec, c.user.Name)
}

// MayWrite implements Host.
func (c *Session) MayWrite(x *command.Ctx, key []byte) error {
	if closed := c.svc.gates.closed.Load(); closed != 0 {
		if err := c.svc.gates.writing(gate(closed), true, false); err != nil {
			return err
		}
	}
	switch {
	case allowsToo(x, func(s *acl.Selector) bool { return s.MayTouch(key, acl.Write) }):
		return nil
	case c.script:
		return scriptDenied(acl.DeniedKey, x.Spec, c.user.Name)
	}
	return noPermission(acl.DeniedKey, x.Spec, c.user.Name)
}

// MayReadKeys implements Host.
func (c *Session) MayReadKeys(x *command.Ctx) func(key []byte) bool {
	if c.MayReadEveryKey(x) {
		return nil
	}
	return func(key []byte) bool {
		return allowsToo(x, func(s *acl.Selector) bool { return s.MayTouch(key, acl.Read) })
	}
}

// stayAllowed ends the connection if its user has lost the channels that the client has just subscribed to.
// The rules may have changed after the request was permitted, and that change did not see the new
// subscriptions.
func (c *Session) stayAllowed(k pubsub.Kind, names [][]byte) {
	u := c.user.User()
	if u.AllChannels() {
		return
	}
	for _, name := range names {
		if !u.MayUse(name, k == pubsub.Pattern) {
			c.svc.pubsub.Leave(c)
			c.closeRemoved(c)
			return
		}
	}
}

// revoked returns the sessions of the user acc that have a subscription which u, the new rules,
// does not allow. It removes the subscriptions of these sessions.
func (s *Service) revoked(acc *acl.Account, u *acl.User) (lost []*Session) {
	p := &s.pubsub
	if !p.Active() {
		return nil
	}
	other := func(k pubsub.Kind, name string) bool { return !u.MayUse([]byte(name), k == pubsub.Pattern) }
	for _, c := range s.clients.snapshot() {
		if c.view.user.Load() == acc && p.Any(c, other) {
			lost = append(lost, c)
			p.Leave(c)
		}
	}
	return lost
}

// NeedsLogin reports whether a client must log in before it may run commands: the default user has a
// password, or is off.
func (s *Service) NeedsLogin() bool {
	u := s.acl.Default().User()
	return !u.On || !u.NoPass
}

// Accounts returns the users of the server.
func (s *Service) Accounts() *acl.Accounts { return &s.acl }

// ReloadUsers reloads the users as ACL LOAD does. Without the directive aclfile it does nothing.
func (s *Service) ReloadUsers() error {
	file := s.Config.File("aclfile")
	if file == "" {
		return nil
	}
	change, err := s.acl.LoadFile(file, s.DB.ApartGrows)
	if err == nil {
		s.UsersChanged(change, nil)
	}
	return err
}

// setPassword applies requirepass, which is the default user's password.
func (s *Service) setPassword(c *config.Set) error {
	change, err := s.acl.SetPassword(c.RequirePass())
	s.UsersChanged(change, nil)
	return err
}

// UsersChanged closes the connections whose user was deleted or lost its channels. by is the session that
// made the change, or nil. An embedded session stays open, but the server refuses all its commands.
func (s *Service) UsersChanged(c acl.Change, by *Session) {
	if len(c.Gone) > 0 { // sessions log in under the lock of the accounts, so no session logs in as a deleted user now
		for _, x := range s.clients.snapshot() {
			if slices.Contains(c.Gone, x.view.user.Load()) {
				s.pubsub.Leave(x)
				x.closeRemoved(by)
			}
		}
	}
	for _, acc := range c.Narrow {
		for _, x := range s.revoked(acc, acc.User()) {
			x.closeRemoved(by)
		}
	}
}

// closeRemoved closes a connection for the session by, which may be the same session: it then gets
// its reply first.
func (c *Session) closeRemoved(by *Session) {
	switch {
	case c.conn == nil:
	case c == by:
		c.closing = true
	default:
		if w := c.view.waiting.Load(); w != nil {
			w.abandon(by.transaction()) // the client gets no further replies
		}
		c.conn.Kill(errRemoved)
	}
}

var errRemoved = errors.New("its user was deleted, or may no longer use its channels")

// setDefaultUser makes the default user the user of the session, as at its start; for the session of an
// identity, the identity's user. The session is logged in if the default user needs no password or if the
// session is embedded.
func (c *Session) setDefaultUser() {
	acc := c.svc.acl.Default()
	if c.identity != nil {
		acc = c.identity.acc
	}
	c.setUser(acc)
	c.authed = c.conn == nil || !c.svc.NeedsLogin()
	c.setLimits()
}

// Authenticate logs the session in with a name and a password. cmd is the name of the command for ACL LOG.
func (c *Session) Authenticate(cmd, name, password []byte) error {
	if !c.svc.acl.Login(name, password, c.setUser) {
		refused(&c.ctx, acl.Refusal{Why: acl.DeniedAuth, Object: string(cmd), User: string(name)}, c.context())
		return command.ErrWrongPass
	}
	c.authed = true
	c.setLimits()
	return nil
}

// context returns the context in which ACL LOG reports the session's refused requests: at top level, in a
// transaction or in a script.
func (c *client) context() acl.Context {
	if c.multi.on {
		return acl.InMulti
	}
	return acl.TopLevel
}

const (
	// aclLogBytes is the number of bytes that ACL LOG keeps of the refused object and of the user's name.
	// aclLogClient is the number that it keeps of the client's description, which contains texts of the client.
	aclLogBytes  = admin.ClipBytes
	aclLogClient = 1024
)

// refused counts and logs a refusal.
func refused(c *command.Ctx, r acl.Refusal, where acl.Context) {
	s := ServiceOf(c)
	s.admin.Totals.Denied[r.Why].Add(1)
	r.User = admin.Clip(r.User, aclLogBytes)
	client := admin.Clip(Of(c).Describe(nil, c), aclLogClient)
	s.acl.Log.Add(r, where, c.Now(), client, s.Config.Int("acllog-max-len"))
}
