package session

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/reactor"
)

// Listener accepts connections at the addresses of the configuration. *transport.Server implements
// it.
type Listener interface {
	// Add binds one more TCP address and returns the function that closes it.
	Add(addr string) (stop func(), err error)
	SetMaxClients(n int)
	SetKeepAlive(d time.Duration)
	// Refused returns how many connections beyond maxclients the listener has refused.
	Refused() int64
}

// Refusal is the error that a server sends to a connection beyond maxclients.
const Refusal = "-ERR max number of clients reached\r\n"

// listeners are the addresses that the directives port and bind name.
type listeners struct {
	most int64      // see Options.MostClients
	mu   sync.Mutex // guards the fields below
	l    Listener
	open map[string]func() // the functions that close a listener, by address
	base int64             // the value of Refused at the last reset of statistics
}

// refused returns how many connections the listener has refused since the last reset.
func (o *listeners) refused() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.l == nil {
		return 0
	}
	return o.l.Refused() - o.base
}

// listens reports whether the server has a listener.
func (o *listeners) listens() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.l != nil
}

// resetRefused makes refused begin at 0 again.
func (o *listeners) resetRefused() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.l != nil {
		o.base = o.l.Refused()
	}
}

// Open makes d listen at the addresses of the directives bind and port, and passes maxclients and
// tcp-keepalive to it. It follows these directives when they change. It fails if no address can be
// bound, or if one cannot be that is not marked as optional.
func (s *Service) Open(d Listener) error {
	s.listeners.mu.Lock()
	s.listeners.l = d
	s.listeners.mu.Unlock()
	if err := s.listeners.adjust(s.Config); err != nil {
		return err
	}
	return s.listeners.rebind(s.Config)
}

// adjust passes the limits of connections to the listener.
func (o *listeners) adjust(c *config.Set) error {
	if o.most > 0 && c.MaxClients() > o.most {
		return fmt.Errorf("The operating system is not able to handle the specified number of clients, try with %d", o.most)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.l != nil {
		o.l.SetMaxClients(int(c.MaxClients()))
		o.l.SetKeepAlive(time.Duration(c.TCPKeepalive()) * time.Second)
	}
	return nil
}

// rebind opens the listeners that the configuration wants and closes all others. If one cannot be
// opened, nothing changes.
func (o *listeners) rebind(c *config.Set) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.l == nil {
		return nil
	}
	next, added := map[string]func(){}, []func(){}
	for _, b := range listenAddrs(c) {
		stop := o.open[b.addr]
		if stop == nil {
			var err error
			if stop, err = o.l.Add(b.addr); err != nil {
				if b.dispensable {
					continue
				}
				for _, undo := range added {
					undo()
				}
				return err
			}
			added = append(added, stop)
		}
		next[b.addr] = stop
	}
	if len(next) == 0 && len(listenAddrs(c)) > 0 {
		return fmt.Errorf("none of the addresses '%s' can be bound", strings.Join(c.Bind(), " "))
	}
	for addr, stop := range o.open {
		if next[addr] == nil {
			stop()
		}
	}
	o.open = next
	return nil
}

// listenAddr is an address to bind, and whether it may fail.
type listenAddr struct {
	addr        string
	dispensable bool
}

func listenAddrs(c *config.Set) []listenAddr {
	port := c.Int("port")
	if port == 0 {
		return nil
	}
	var all []listenAddr
	for _, b := range c.Bind() {
		host, dispensable := strings.CutPrefix(b, "-")
		switch host {
		case "*":
			host = "0.0.0.0"
		case "::*":
			host = "::"
		}
		all = append(all, listenAddr{net.JoinHostPort(host, strconv.FormatInt(port, 10)), dispensable})
	}
	return all
}

// deniedText is the error that a client from another machine gets in protected mode. Clients look
// for the first word; the advice is that of Redis.
const deniedText = "-DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user. " +
	"In this mode connections are only accepted from the loopback interface. " +
	"If you want to connect from external computers to Redis you may adopt one of the following solutions: " +
	"1) Just disable protected mode sending the command 'CONFIG SET protected-mode no' from the loopback interface by connecting to Redis from the " +
	"same host the server is running, " +
	"however MAKE SURE Redis is not publicly accessible from internet if you do so. Use CONFIG REWRITE to make this change permanent. " +
	"2) Alternatively you can just disable the protected mode by editing the Redis configuration file, and setting the protected mode option to 'no', " +
	"and then restarting the server. " +
	"3) If you started the server manually just for testing, restart it with the '--protected-mode no' option. " +
	"4) Setup a an authentication password for the default user. " +
	"NOTE: You only need to do one of the above things in order for the server to start accepting connections from the outside.\r\n"

// denied reports whether protected mode refuses a connection.
func (s *Service) denied(conn reactor.Conn) bool {
	return conn != nil && s.Denied() != "" && !isLocal(conn)
}

// Denied returns the error that protected mode gives to clients from other machines now, "" if it lets
// them in.
func (s *Service) Denied() string {
	if !s.Config.ProtectedMode() || !s.acl.Default().User().NoPass {
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(deniedText, "-"), "\r\n")
}

// isLocal reports whether the peer is on this machine: it is, unless it connects by TCP from an
// address that is not a loopback one. A nil connection is the program itself.
func isLocal(conn reactor.Conn) bool {
	if conn == nil || conn.Network() != "tcp" && conn.Network() != "tls" {
		return true
	}
	return isLoopback(conn.RemoteAddr())
}

func isLoopback(addr string) bool {
	peer, err := netip.ParseAddrPort(addr)
	return err == nil && peer.Addr().Unmap().IsLoopback()
}

// Local reports whether the client is on this machine, for directives with the value local.
func (c *Session) Local() bool {
	if c.origin != nil && c.origin.Addr != embeddedAddr {
		return isLoopback(c.origin.Addr)
	}
	return isLocal(c.conn)
}
