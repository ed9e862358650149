package sentinel

import (
	"net"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/system"
)

// Access says which clients are let in, and as whom. Its methods are safe for concurrent use, and do not block.
type Access interface {
	// Denied returns the error that clients of other machines get now (protected-mode), "" if they are let in.
	Denied() string
	// Guest returns the user of clients that have not logged in, nil if they have to.
	Guest() User
	// Login returns the user with a name and a password, nil if there is none. addr is that of the client.
	Login(name, password, addr string) User
}

// User is as whom a client is let in.
type User interface {
	// Valid reports whether the user would still be let in as when the client has logged in.
	Valid() bool
	// Refusal returns the error that the user gets for what a command of a server does to the group, "" if it may run that command.
	Refusal(command string, sub ...string) string
}

// as returns the client's user, nil if it has to log in.
func (c *client) as() User {
	if c.user != nil && c.user.Valid() {
		return c.user
	}
	return c.opt.Access.Guest()
}

// may reports whether the client may change the group as a command of a server does. If not, it has written why.
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

// isLocal reports whether the peer of a connection is on this machine, as on the server's own port.
func isLocal(c net.Conn) bool {
	return c.RemoteAddr().Network() != "tcp" || system.LoopbackPeer(c.RemoteAddr().String())
}
