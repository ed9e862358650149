package session

import (
	"github.com/ebbdb/ebb/internal/acl"
	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/command"
	"slices"
)

// This file gives embedded sessions a user and an origin: a program that serves clients by another
// protocol, such as the console, logs them in here, and runs the commands of each under its own user.

// Origin says where the commands of an embedded session come from. CLIENT LIST, SLOWLOG, ACL LOG and
// MONITOR show it as they show a connection. Blanks and control characters in it become '?'.
type Origin struct {
	Addr string // the peer's address, such as 192.0.2.1:5312; "" is shown as "embedded"
	Name string // the name of the client, as CLIENT SETNAME gives it; "": none
	Lib  string // lib-name of CLIENT LIST
}

// Identity is a user of the server and the reason why the program may act as that user. Any goroutine
// may use it.
type Identity struct {
	svc *Service
	acc *acl.Account
	in  letIn
	// hash is that of the password of Login.
	hash string
}

// letIn is the way in which an identity logged in.
type letIn uint8

const (
	byPassword letIn = iota // Login
	byNoPass                // WithoutLogin
	byProgram               // ActAs
)

// Login returns the identity of a user that is on and has the password. A failure counts as that of
// AUTH does, and ACL LOG shows it with the origin; the error is AUTH's WRONGPASS, which does not say
// whether there is such a user. Login takes the time of one SHA-256 and bounds no attempts: the caller does.
func (s *Service) Login(user, password []byte, from Origin) (*Identity, error) {
	c := s.newSession(nil, &from)
	defer c.Closed(nil)
	cmd := []byte("AUTH")
	c.ctx.Spec = s.table.Lookup(cmd) // nil where rename-command has removed it
	if err := c.Authenticate(cmd, user, password); err != nil {
		return nil, err
	}
	return &Identity{svc: s, acc: c.user, hash: acl.Hash(password)}, nil
}

// WithoutLogin returns the identity of the default user, or the error NOAUTH if that user is off or
// needs a password.
func (s *Service) WithoutLogin() (*Identity, error) {
	if s.NeedsLogin() {
		return nil, command.ErrNoAuth
	}
	return &Identity{svc: s, acc: s.acl.Default(), in: byNoPass}, nil
}

// ActAs returns the identity of a user for a program that has checked by itself who its client is;
// nil if there is no such user or it is off.
func (s *Service) ActAs(user string) *Identity {
	acc := s.acl.Find(user)
	if acc == nil || !acc.User().On {
		return nil
	}
	return &Identity{svc: s, acc: acc, in: byProgram}
}

// Name returns the user's name.
func (id *Identity) Name() string { return id.acc.Name }

// Valid reports whether the user still exists and is on, and would still be let in in the same way:
// by the same password, or without any. It changes in the moment in which ACL SETUSER, ACL DELUSER,
// ACL LOAD or CONFIG SET requirepass changes the user. The session of an identity goes on after that,
// as a connection does after its user was turned off; the caller must ask before each request. It
// costs one atomic load and a comparison.
func (id *Identity) Valid() bool {
	u := id.acc.User() // that of a deleted user is off
	switch id.in {
	case byPassword:
		return u.Accepts(id.hash)
	case byNoPass:
		return u.On && u.NoPass
	}
	return u.On
}

// May reports whether the user's rules allow a request, by the judgement with which the server admits
// it. If not, need is the rule that it lacks first: +rl.reset, ~key or &channel. May runs, counts and
// logs nothing. It allows a request that the server refuses for another reason, such as an unknown
// command.
func (id *Identity) May(argv [][]byte) (ok bool, need string) {
	if len(argv) == 0 {
		return true, ""
	}
	spec, err := id.svc.table.Resolve(argv)
	if err != nil {
		return true, ""
	}
	switch why, at := id.svc.acl.Check(&command.Ctx{}, id.acc.User(), spec, argv); why {
	case acl.Allowed:
		return true, ""
	case acl.DeniedKey:
		return false, "~" + string(argv[at])
	case acl.DeniedChannel:
		return false, "&" + string(argv[at])
	}
	return false, "+" + spec.Name
}

// Reads returns a function that reports whether the user may run one of some commands on a key. The key is their only
// argument. The function uses the rules of this moment. A walk over many keys calls it: where a rule allows all keys, it
// takes no time.
func (id *Identity) Reads(commands ...string) func(key []byte) bool {
	u := id.acc.User()
	type way struct {
		s   *acl.Selector
		use acl.Access
	}
	var ways []way
	for _, name := range commands {
		spec := id.svc.table.Lookup([]byte(name))
		if spec == nil {
			continue
		}
		use := acl.Read
		if refs, err := spec.AppendKeys(nil, [][]byte{[]byte(name), []byte("k")}); err == nil && len(refs) == 1 {
			use = acl.Need(refs[0].Flags)
		}
		for i := range u.Selectors() {
			s := &u.Selectors()[i]
			if !u.Unlimited && !s.MayRun(spec.ID(), nil) {
				continue
			}
			if u.Unlimited || s.AllKeys() {
				return func([]byte) bool { return true }
			}
			ways = append(ways, way{s, use})
		}
	}
	return func(key []byte) bool {
		return slices.ContainsFunc(ways, func(w way) bool { return w.s.MayTouch(key, w.use) })
	}
}

// MayRun reports whether the user's rules allow a command with some keys and channels: with a screen's
// command, whether the screen is worth showing. argv has the command's name and, if it has them, the
// name of the subcommand or the first argument. It allows an unknown command, as May does.
func (id *Identity) MayRun(argv ...[]byte) bool {
	spec, err := id.svc.table.Find(argv)
	if err != nil {
		return true
	}
	return id.mayRun(spec, argv)
}

// Refused returns the error that the server replies to the user's call of a command, whatever its keys, nil if the rules allow it. name
// is the command's own, whatever rename-command makes of it; a subcommand follows its container's. Other ways to have the same done ask
// this.
func (id *Identity) Refused(name string, sub ...string) error {
	argv := [][]byte{[]byte(name)}
	for _, word := range sub {
		argv = append(argv, []byte(word))
	}
	spec, err := id.svc.table.FindOwn(argv)
	if err != nil {
		return err
	}
	called := spec.Called()
	if container := spec.Parent(); container != nil {
		called = container.Called()
	}
	switch {
	case called == "":
		return command.ReplyError("NOPERM the directive rename-command has removed the command " + name)
	case !id.mayRun(spec, argv):
		return noPermission(acl.DeniedCommand, spec, id.Name())
	}
	return nil
}

// mayRun reports whether the user's rules allow a command with some keys and channels.
func (id *Identity) mayRun(spec *command.Spec, argv [][]byte) bool {
	u := id.acc.User()
	if u.Unlimited || spec.Has(command.NoAuth) {
		return true
	}
	for i := range u.Selectors() {
		if u.Selectors()[i].MayRun(spec.ID(), argv) {
			return true
		}
	}
	return false
}

// GuestOptions say how NewSessionFor sets up a session. The zero value is that of a client like any other.
type GuestOptions struct {
	From Origin
	// Unnoticed makes the reads of the session not count as accesses, as CLIENT NO-TOUCH ON does, and exempts it from
	// maxmemory-clients. It needs no permission of the user.
	Unnoticed bool
	// Restrict makes the calls of scripts and functions fail with the error that it returns for them; nil: it allows all.
	// The program itself checks the commands that it sends.
	Restrict func(spec *command.Spec, args [][]byte) error
	// Quit ends the session's waits with engine.ErrClosed when it is closed; nil: never.
	Quit <-chan struct{}
}

// NewSessionFor returns an embedded session of an identity. CLIENT LIST shows it, and CLIENT KILL and
// maxmemory-clients do not close it. RESET makes the identity's user the session's user again. Closed ends it.
func (s *Service) NewSessionFor(id *Identity, o GuestOptions) *Session {
	c := s.newSession(nil, &o.From)
	c.identity, c.restrict, c.quit = id, o.Restrict, o.Quit
	c.setUser(id.acc)
	c.setLimits()
	if o.Unnoticed {
		c.SetNoTouch(true)
		c.SetNoEvict(true)
	}
	return c
}

// shown returns an origin as CLIENT LIST can show it.
func (o *Origin) shown() *Origin {
	clean := func(s string) string {
		b := []byte(s)
		for i := range b {
			if !cleantext.Visible(b[i : i+1]) {
				b[i] = '?'
			}
		}
		return string(b)
	}
	addr := clean(o.Addr)
	if addr == "" {
		addr = embeddedAddr
	}
	return &Origin{Addr: addr, Name: clean(o.Name), Lib: clean(o.Lib)}
}

// introduce gives an embedded session its origin.
func (c *client) introduce(o *Origin) {
	c.origin = o
	if o.Lib != "" {
		c.view.lib.Store(&[2]string{o.Lib})
	}
	c.SetName([]byte(o.Name))
}

// SetUncounted says whether the calls of an embedded session that follow are those of the program itself, which shows its user something:
// their errors do not count in INFO, because no client has made a mistake, and their keys are not hot.
func (c *Session) SetUncounted(on bool) { c.uncounted = on }
