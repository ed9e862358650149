package group

import (
	"cmp"
	"crypto/subtle"

	"github.com/ebbdb/ebb/internal/group/sentinel"
	"github.com/ebbdb/ebb/internal/session"
)

// Access to sentinel-port. A server has its users and the protected mode of its own port; a witness has only the
// directives that it was started with.

// serverAccess authenticates clients of sentinel-port as users of the server.
type serverAccess struct{ svc *session.Service }

// Denied implements sentinel.Access.
func (a serverAccess) Denied() string { return a.svc.Denied() }

// Guest implements sentinel.Access.
func (a serverAccess) Guest() sentinel.User {
	id, err := a.svc.WithoutLogin()
	if err != nil {
		return nil
	}
	return serverUser{id}
}

// Login implements sentinel.Access.
func (a serverAccess) Login(name, password, addr string) sentinel.User {
	id, err := a.svc.Login([]byte(name), []byte(password), session.Origin{Addr: addr, Lib: "sentinel-port"})
	if err != nil {
		return nil
	}
	return serverUser{id}
}

// serverUser is a user of a server.
type serverUser struct{ id *session.Identity }

// Valid implements sentinel.User.
func (u serverUser) Valid() bool { return u.id.Valid() }

// Refusal implements sentinel.User.
func (u serverUser) Refusal(command string, sub ...string) string {
	if err := u.id.Refused(command, sub...); err != nil {
		return err.Error()
	}
	return ""
}

// witnessAccess authenticates clients of a witness as the user default, with requirepass. If requirepass is empty,
// all clients may read; clients that change the group log in with masterauth.
type witnessAccess struct {
	password, secret string
	protected        bool // protected-mode
}

// Denied implements sentinel.Access.
func (a witnessAccess) Denied() string {
	if a.protected && a.password == "" {
		return session.ProtectedMode
	}
	return ""
}

// Guest implements sentinel.Access.
func (a witnessAccess) Guest() sentinel.User {
	if a.password != "" {
		return nil
	}
	return witnessUser{operates: a.secret == ""}
}

// Login implements sentinel.Access.
func (a witnessAccess) Login(name, password, _ string) sentinel.User {
	want := cmp.Or(a.password, a.secret)
	if name != "default" || want != "" && subtle.ConstantTimeCompare([]byte(password), []byte(want)) != 1 {
		return nil
	}
	return witnessUser{operates: true}
}

// witnessUser is a client of a witness.
type witnessUser struct{ operates bool }

// Valid implements sentinel.User: the directives of a witness do not change.
func (u witnessUser) Valid() bool { return true }

// Refusal implements sentinel.User.
func (u witnessUser) Refusal(string, ...string) string {
	if u.operates {
		return ""
	}
	return "NOAUTH Authentication required: AUTH with requirepass, or with masterauth."
}
