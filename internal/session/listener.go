package session

import (
	"github.com/ebbdb/ebb/internal/listen"
	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/system"
)

// Refusal is the error that a server sends to a connection beyond maxclients.
const Refusal = "-ERR max number of clients reached\r\n"

// Open makes d listen at the addresses of the directives bind and port, and passes maxclients and
// tcp-keepalive to it. It follows these directives when they change. It fails if no address can be bound, or
// if an address cannot be bound that is not marked as optional.
func (s *Service) Open(d listen.Listener) error { return s.listeners.Open(d, s.Config) }

// ProtectedMode is the error that a client from another machine gets in protected mode. Clients look
// for the first word; the advice is that of Redis.
const ProtectedMode = "DENIED Redis is running in protected mode because protected mode is enabled and no password " +
	"is set for the default user. In this mode connections are only accepted from the loopback interface. " +
	"If you want to connect from external computers to Redis you may adopt one of the following solutions: " +
	"1) Just disable protected mode sending the command 'CONFIG SET protected-mode no' from the loopback interface by " +
	"connecting to Redis from the same host the server is running, " +
	"however MAKE SURE Redis is not publicly accessible from internet if you do so. Use CONFIG REWRITE to make this change permanent. " +
	"2) Alternatively you can just disable the protected mode by editing the Redis configuration file, and setting the " +
	"protected mode option to 'no', and then restarting the server. " +
	"3) If you started the server manually just for testing, restart it with the '--protected-mode no' option. " +
	"4) Setup a an authentication password for the default user. " +
	"NOTE: You only need to do one of the above things in order for the server to start accepting connections from the outside."

// denied reports whether protected mode refuses a connection.
func (s *Service) denied(conn reactor.Conn) bool {
	return conn != nil && s.Denied() != "" && !isLocal(conn)
}

// Denied returns the error that protected mode currently gives to clients from other machines, "" if they are
// let in.
func (s *Service) Denied() string {
	if !s.Config.ProtectedMode() || !s.acl.Default().User().NoPass {
		return ""
	}
	return ProtectedMode
}

// isLocal reports whether the peer is on this machine: it is, unless it connects by TCP from an
// address that is not a loopback one. A nil connection is the program itself.
func isLocal(conn reactor.Conn) bool {
	if conn == nil || conn.Network() != "tcp" && conn.Network() != "tls" {
		return true
	}
	return system.LoopbackPeer(conn.RemoteAddr())
}

// Local reports whether the client is on this machine, for directives with the value local.
func (c *Session) Local() bool {
	if c.origin != nil && c.origin.Addr != embeddedAddr {
		return system.LoopbackPeer(c.origin.Addr)
	}
	return isLocal(c.conn)
}
