package acl

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/config"
)

// DefaultUser is the name of the user that a connection has from the start.
const DefaultUser = "default"

// Account is a user as connections hold it. The name never changes. A change replaces the
// user's permissions as a whole. A check loads the User once and sees either the old or
// the new rules. Any goroutine may use an Account.
type Account struct {
	Name string
	user atomic.Pointer[User] // sealed
}

func newAccount(u *User) *Account {
	a := &Account{Name: u.Name}
	a.user.Store(u.Seal())
	return a
}

// User returns the user's present permissions. It costs one atomic load.
func (a *Account) User() *User { return a.user.Load() }

// Memory counts the bytes that users take up as used memory. engine.DB implements it.
type Memory interface{ ChargeApart(n int64) }

// Change is the effect of a change of users on connections. The caller closes the
// connections that lost their rights.
type Change struct {
	Gone   []*Account // they were deleted, and have no rights
	Narrow []*Account // they may not use some channels that they could use before
}

// Accounts are the users of a server. Init prepares them. The methods are safe for
// concurrent use.
type Accounts struct {
	// Log has the refused requests.
	Log Log

	config  *config.Set
	logger  *slog.Logger
	mem     Memory
	catalog *Catalog
	first   *Account // the default user; it always exists
	super   *Account // may do everything, and is in no list
	nothing *User    // what deleted users may do

	mu     sync.Mutex // guards what follows, and changes of accounts
	byName map[string]*Account
	bytes  int64 // the estimated memory of all users
}

// Init prepares accounts with the default user alone. Load adds those of the configuration.
func (a *Accounts) Init(catalog *Catalog, cfg *config.Set, logger *slog.Logger, mem Memory) {
	a.catalog, a.config, a.logger, a.mem = catalog, cfg, logger, mem
	a.first = newAccount(NewDefault(DefaultUser, a.Rules()))
	a.super = newAccount(NewDefault("(superuser)", a.Rules()))
	a.nothing = New("", a.Rules()).Seal()
	a.byName = map[string]*Account{DefaultUser: a.first}
	a.bytes = a.first.User().Bytes() // every server has this user: it is not charged
}

// settle counts n more bytes of users as used memory. The caller holds the lock.
func (a *Accounts) settle(n int64) {
	a.bytes += n
	a.mem.ChargeApart(n)
}

// size returns the estimated memory of all users.
func (a *Accounts) size() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bytes
}

// Rules returns the rules for new users.
func (a *Accounts) Rules() Rules {
	return Rules{Catalog: a.catalog, AllChannels: a.config.String("acl-pubsub-default") == "allchannels"}
}

// Default returns the account of the default user.
func (a *Accounts) Default() *Account { return a.first }

// Super returns an account that may do everything and that no list shows.
func (a *Accounts) Super() *Account { return a.super }

// Find returns the account of a name, nil if there is none.
func (a *Accounts) Find(name string) *Account {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byName[name]
}

// List returns the accounts by name.
func (a *Accounts) List() []*Account {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]*Account, 0, len(a.byName))
	for _, name := range slices.Sorted(maps.Keys(a.byName)) {
		all = append(all, a.byName[name])
	}
	return all
}

// Login calls login with the account of a name, if the user is on and has the password, and
// reports whether it did. It holds the lock meanwhile: a goroutine that deletes the user
// either finds the connection or comes before the login.
func (a *Accounts) Login(name, password []byte, login func(*Account)) bool {
	hash := Hash(password)
	a.mu.Lock()
	defer a.mu.Unlock()
	acc := a.byName[string(name)]
	if acc == nil || !acc.User().Accepts(hash) {
		return false
	}
	login(acc)
	return true
}

// Edit changes the rules of a user, or creates the user. It calls edit with a copy of the
// rules. If edit fails, Edit changes nothing and returns the error.
func (a *Accounts) Edit(name string, edit func(*User) error) (c Change, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	acc := a.byName[name]
	u := New(name, a.Rules())
	if acc != nil {
		u = acc.User().Clone()
	}
	if err := edit(u); err != nil {
		return Change{}, err
	}
	if acc == nil {
		a.byName[name] = newAccount(u)
		a.settle(u.Bytes())
		return Change{}, nil
	}
	a.settle(u.Bytes() - acc.User().Bytes())
	a.put(acc, u, &c)
	return c, nil
}

// put gives an account other rules, and adds the effect to c. The caller holds the lock.
func (a *Accounts) put(acc *Account, u *User, c *Change) {
	old := acc.User()
	acc.user.Store(u.Seal())
	if !u.KeepsChannels(old) {
		c.Narrow = append(c.Narrow, acc)
	}
}

// drop deletes an account's rules. The caller holds the lock.
func (a *Accounts) drop(acc *Account, c *Change) {
	acc.user.Store(a.nothing)
	c.Gone = append(c.Gone, acc)
}

// Remove deletes users, except the default one. Gone of the result has those that existed.
func (a *Accounts) Remove(names []string) (c Change) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range names {
		if acc := a.byName[name]; acc != nil && acc != a.first {
			delete(a.byName, name)
			a.settle(-acc.User().Bytes())
			a.drop(acc, &c)
		}
	}
	return c
}

// Replace replaces all users. If the default user is not among the new ones, it gets its
// initial rules.
func (a *Accounts) Replace(users []*User) (c Change) {
	next := map[string]*Account{}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, u := range users {
		acc := a.byName[u.Name]
		if acc == nil {
			acc = newAccount(u)
		} else {
			a.put(acc, u, &c)
		}
		next[u.Name] = acc
	}
	for name, acc := range a.byName {
		switch {
		case next[name] != nil:
		case acc == a.first:
			a.put(acc, NewDefault(DefaultUser, a.Rules()), &c)
			next[name] = acc
		default:
			a.drop(acc, &c)
		}
	}
	a.byName = next
	n := -a.bytes
	for _, acc := range next {
		n += acc.User().Bytes()
	}
	a.settle(n)
	return c
}
