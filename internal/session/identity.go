package session

import (
	"github.com/ebbdb/ebb/internal/acl"
	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/command"
	"slices"
)

// This file gives embedded sessions a user and an origin: a program that serves clients by another
// protocol, such as the console, logs them in here, and runs the commands of each under its own user.

// Origin describes the origin of an embedded session's commands. CLIENT LIST, SLOWLOG, ACL LOG and MONITOR
// show it as they show a connection. Blanks and control characters in it become '?'.
type Origin struct {
	Addr string // the peer's address, such as 192.0.2.1:5312; "" is shown as "embedded"
	Name string // the name of the client, as CLIENT SETNAME gives it; "": none
	Lib  string // lib-name of CLIENT LIST
}

// Identity is a user of the server, and the way in which the program may act as that user. Any goroutine may
// use it.
type Identity struct {
	svc *Service
	acc *acl.Account
	in  letIn
	// hash is the hash of the password of Login.
	hash string
}

// letIn is the way in which an identity was let in.
type letIn uint8

const (
	byPassword letIn = iota // Login
	byNoPass                // WithoutLogin
	byProgram               // ActAs
)

// Login returns the identity of an enabled user with the given password. A failure counts like that of AUTH,
// and ACL LOG shows it with the origin; the error is AUTH's WRONGPASS, which does not reveal whether the user
// exists. Login costs one SHA-256. It does not limit attempts: the caller must.
func (s *Service) Login(user, password []byte, from Origin) (*Identity, error) {
	c := s.newSession(nil, &from)
	defer c.Closed(nil)
	cmd := []byte("AUTH")
	c.ctx.Spec = s.table.Lookup(cmd) // nil if rename-command has removed it
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

// ActAs returns the identity of a user for a program that has authenticated its client itself; nil if the
// user does not exist or is off.
func (s *Service) ActAs(user string) *Identity {
	acc := s.acl.Find(user)
	if acc == nil || !acc.User().On {
		return nil
	}
	return &Identity{svc: s, acc: acc, in: byProgram}
}

// Name returns the user's name.
func (id *Identity) Name() string { return id.acc.Name }

// Valid reports whether the user still exists and is on, and would still be let in in the same way: by the
// same password, or without one. The result changes at the moment at which ACL SETUSER, ACL DELUSER, ACL LOAD
// or CONFIG SET requirepass changes the user. The session of an identity continues after that, as a
// connection does after its user was turned off; the caller must call Valid before each request. It costs one
// atomic load and a comparison.
func (id *Identity) Valid() bool {
	u := id.acc.User() // a deleted user is off
	switch id.in {
	case byPassword:
		return u.Accepts(id.hash)
	case byNoPass:
		return u.On && u.NoPass
	}
	return u.On
}

// May reports whether the user's rules allow a request, by the same check with which the server admits it. If
// not, need is the first rule that the user lacks: +rl.reset, ~key or &channel. May runs, counts and logs
// nothing. It allows a request that the server refuses for another reason, such as an unknown command.
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

// Reads returns a function that reports whether the user may run one of the commands on a key, which is the
// only argument. The function uses the current rules. It is for a walk over many keys: if a rule allows all
// keys, it costs almost nothing.
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

// MayRun reports whether the user's rules allow a command with at least some keys and channels: for a
// screen's command, whether the screen is worth showing. argv has the command's name and, if any, the name of
// the subcommand or the first argument. It allows an unknown command, as May does.
func (id *Identity) MayRun(argv ...[]byte) bool {
	spec, err := id.svc.table.Find(argv)
	if err != nil {
		return true
	}
	return id.mayRun(spec, argv)
}

// Refused returns the error that the server replies to the user's call of a command, whatever its keys, or
// nil if the rules allow it. name is the command's original name, regardless of rename-command; a subcommand
// follows its container's name. Code that does the work of a command in another way must call it.
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

// mayRun reports whether the user's rules allow a command with at least some keys and channels.
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

// GuestOptions configure NewSessionFor. The zero value gives a session like any other client's.
type GuestOptions struct {
	From Origin
	// Unnoticed makes the reads of the session not count as accesses, as CLIENT NO-TOUCH ON does, and exempts it from
	// maxmemory-clients. It needs no permission of the user.
	Unnoticed bool
	// Restrict makes a call in a script or function fail with the error that it returns for the call; nil: it
	// allows all. The program itself must check the commands that it sends.
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

// shown returns an origin in the form that CLIENT LIST can show.
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

// SetUncounted sets whether the following calls of an embedded session are the program's own, for a screen of
// its user: their errors do not count in INFO, because no client has made a mistake, and their keys do not
// count as hot.
func (c *Session) SetUncounted(on bool) { c.uncounted = on }
