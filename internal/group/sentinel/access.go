package sentinel

import (
	"net"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/system"
)

// Access authenticates clients. Its methods are safe for concurrent use and do not block.
type Access interface {
	// Denied returns the error for clients of other machines (protected-mode), or "" if they may connect.
	Denied() string
	// Guest returns the user of clients that have not logged in, or nil if they have to log in.
	Guest() User
	// Login returns the user with a name and a password, or nil. addr is the client's address.
	Login(name, password, addr string) User
}

// User is the user of a client.
type User interface {
	// Valid reports whether the login still holds: the user exists and has the same password.
	Valid() bool
	// Refusal returns the error if the user may not run a command of a server that changes the group, or "" if it
	// may.
	Refusal(command string, sub ...string) string
}

// as returns the client's user, or nil if the client has to log in.
func (c *client) as() User {
	if c.user != nil && c.user.Valid() {
		return c.user
	}
	return c.opt.Access.Guest()
}

// may reports whether the client may run a command of a server that changes the group. If not, it has written the
// error.
func (c *client) may(name string, sub ...string) bool {
	u := c.as()
	if u == nil {
		c.fail(command.ErrNoAuth)
		return false
	}
	if why := u.Refusal(name, sub...); why != "" {
		c.w.Error(why)
		return false
	}
	return true
}

// isLocal reports whether the peer of a connection is on this machine.
func isLocal(c net.Conn) bool {
	return c.RemoteAddr().Network() != "tcp" || system.LoopbackPeer(c.RemoteAddr().String())
}
