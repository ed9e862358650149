package command

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/acl"
)

// defaultUser is the user that a connection is from the start.
const defaultUser = "default"

// account is a user as sessions hold it: the name stays, what the user may do
// is replaced as a whole when it changes. Checks load it once and see either
// the old or the new rules.
type account struct {
	name string
	user atomic.Pointer[acl.User] // sealed
}

func newAccount(u *acl.User) *account {
	a := &account{name: u.Name}
	a.user.Store(u.Seal())
	return a
}

// accounts are the users, and what was refused to them.
type accounts struct {
	svc      *Service
	catalog  *acl.Catalog
	channels []channelUse // by spec ID
	first    *account     // the default user; there is always one
	super    *account     // may do everything, and is in no list: replay
	nobody   *acl.User    // what users that were deleted may do
	log      aclLog

	mu     sync.Mutex // guards what follows, and publishing to accounts
	byName map[string]*account
	bytes  int64 // about what they take up
}

// settle counts what the accounts take up as used memory: n bytes more. The caller holds
// the lock.
func (a *accounts) settle(n int64) {
	a.bytes += n
	a.svc.DB.Charge(n)
}

func (a *accounts) init(s *Service) {
	a.svc = s
	commands := make([]acl.Command, s.table.Len())
	a.channels = make([]channelUse, s.table.Len())
	for id := range commands {
		spec := s.table.Spec(id)
		commands[id] = acl.Command{Name: spec.Name, Categories: uint64(spec.ACL()), Parent: -1}
		if spec.Parent() != nil {
			commands[id].Parent = spec.Parent().ID()
		}
		a.channels[id] = channelUses[spec.Name]
	}
	a.catalog = acl.NewCatalog(CategoryNames(), commands)
	a.first = newAccount(acl.NewDefault(defaultUser, a.rules()))
	a.super = newAccount(acl.NewDefault("(superuser)", a.rules()))
	a.nobody = acl.New("", a.rules()).Seal()
	a.byName = map[string]*account{defaultUser: a.first}
	a.bytes = a.first.user.Load().Bytes() // which every server has, and is not charged
}

// rules is what new users are made with.
func (a *accounts) rules() acl.Rules {
	return acl.Rules{Catalog: a.catalog, AllChannels: a.svc.Config.String("acl-pubsub-default") == "allchannels"}
}

// authRequired reports whether a connection that has not logged in may do
// nothing.
func (s *Service) authRequired() bool {
	u := s.acl.first.user.Load()
	return !u.On || !u.NoPass
}

// find returns the account of a name, nil if there is none.
func (a *accounts) find(name string) *account {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byName[name]
}

// list returns the accounts by name.
func (a *accounts) list() []*account {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]*account, 0, len(a.byName))
	for _, name := range sortedNames(a.byName) {
		all = append(all, a.byName[name])
	}
	return all
}

// change gives a user, which need not exist, other rules: edit is called with a
// copy. If it fails nothing changes. Subscriptions that the user may not have
// any more end with their connections; by is the session that asks, or nil.
func (a *accounts) change(name string, by *Session, edit func(*acl.User) error) error {
	a.mu.Lock()
	var old, u *acl.User
	acc := a.byName[name]
	if acc != nil {
		old = acc.user.Load()
		u = old.Clone()
	} else {
		u = acl.New(name, a.rules())
	}
	if err := edit(u); err != nil {
		a.mu.Unlock()
		return err
	}
	n := u.Bytes()
	if acc != nil {
		n -= old.Bytes()
		acc.user.Store(u.Seal())
	} else {
		a.byName[name] = newAccount(u)
	}
	a.settle(n)
	a.mu.Unlock()
	if old != nil {
		a.revoke(acc, old, by)
	}
	return nil
}

// remove deletes users and closes their connections; it returns how many there
// were.
func (a *accounts) remove(names []string, by *Session) int {
	var gone []*account
	a.mu.Lock()
	for _, name := range names {
		if acc := a.byName[name]; acc != nil && acc != a.first {
			delete(a.byName, name)
			a.settle(-acc.user.Load().Bytes())
			acc.user.Store(a.nobody)
			gone = append(gone, acc)
		}
	}
	a.mu.Unlock()
	a.expel(gone, by)
	return len(gone)
}

// replace makes users the only ones. Connections of those that go are closed;
// those that stay lose what they may not do any more.
func (a *accounts) replace(users []*acl.User, by *Session) {
	type step struct {
		acc *account
		old *acl.User
	}
	var changed []step
	var gone []*account
	next := map[string]*account{}
	a.mu.Lock()
	for _, u := range users {
		acc := a.byName[u.Name]
		if acc == nil {
			acc = newAccount(u)
		} else {
			changed = append(changed, step{acc, acc.user.Load()})
			acc.user.Store(u.Seal())
		}
		next[u.Name] = acc
	}
	for name, acc := range a.byName {
		switch {
		case next[name] != nil:
		case acc == a.first: // it cannot go: it is as at the start
			changed = append(changed, step{acc, acc.user.Load()})
			acc.user.Store(acl.NewDefault(defaultUser, a.rules()).Seal())
			next[name] = acc
		default:
			acc.user.Store(a.nobody)
			gone = append(gone, acc)
		}
	}
	a.byName = next
	n := -a.bytes
	for _, acc := range next {
		n += acc.user.Load().Bytes()
	}
	a.settle(n)
	a.mu.Unlock()
	a.expel(gone, by)
	for _, s := range changed {
		a.revoke(s.acc, s.old, by)
	}
}

// expel closes the connections of users that are gone. Whoever logs in does so
// under the lock, so none of them can be new. An embedded session stays, as
// nobody.
func (a *accounts) expel(gone []*account, by *Session) {
	if len(gone) == 0 {
		return
	}
	for _, c := range a.svc.clients.everybody() {
		for _, acc := range gone {
			if c.view.user.Load() == acc {
				a.svc.pubsub.Leave(c)
				c.expelled(by)
			}
		}
	}
}

// revoke ends the subscriptions that a user may not have any more, and the
// connections that had them.
func (a *accounts) revoke(acc *account, old *acl.User, by *Session) {
	now := acc.user.Load()
	if now.KeepsChannels(old) {
		return
	}
	for _, c := range a.revoked(acc, now) {
		c.expelled(by)
	}
}

// expelled closes a connection on behalf of the session by, which may be the
// same: then it gets its reply first.
func (c *Session) expelled(by *Session) {
	switch {
	case c.conn == nil:
	case c == by:
		c.closing = true
	default:
		if w := c.view.waiting.Load(); w != nil {
			w.abandon(by.transaction()) // it gets nothing more
		}
		c.conn.Kill(errExpelled)
	}
}

var errExpelled = errors.New("its user was deleted, or may not use its channels any more")

// become makes the session another user's.
func (c *Session) become(acc *account) {
	c.user = acc
	c.view.user.Store(acc)
}

// beDefault makes the session the default user's, as it is from the start:
// logged in if that takes no password, or if the session is embedded.
func (c *Session) beDefault() {
	c.become(c.svc.acl.first)
	c.authed = c.conn == nil || !c.svc.authRequired()
	c.setLimits()
}

const errWrongPass = ReplyError("WRONGPASS invalid username-password pair or user is disabled.")

// authenticate logs in with a name and a password, for the command that cmd
// names.
func (c *Session) authenticate(cmd, name, password []byte) error {
	a, hash := &c.svc.acl, acl.Hash(password)
	a.mu.Lock()
	acc := a.byName[string(name)]
	ok := acc != nil && acc.user.Load().Accepts(hash)
	if ok {
		c.become(acc)
	}
	a.mu.Unlock()
	if !ok {
		c.ctx.refused(refusal{why: deniedAuth, object: string(cmd), user: string(name)}, c.context())
		return errWrongPass
	}
	c.authed = true
	c.setLimits()
	return nil
}
