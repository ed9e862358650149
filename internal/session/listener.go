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

// Listener accepts connections; the configuration says where. *transport.Server
// is one.
type Listener interface {
	// Add binds one more TCP address and returns what ends it.
	Add(addr string) (stop func(), err error)
	SetMaxClients(n int)
	SetKeepAlive(d time.Duration)
	// Refused is how many connections beyond maxclients were turned away.
	Refused() int64
}

// Refusal is what a server sends to a connection beyond maxclients.
const Refusal = "-ERR max number of clients reached\r\n"

// listeners are the addresses that the directives port and bind name.
type listeners struct {
	mu   sync.Mutex // guards what follows
	l    Listener
	open map[string]func() // what ends a listener, by address
	base int64             // what Refused said at the last reset of statistics
}

// refused is how many connections were turned away since the last reset.
func (o *listeners) refused() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.l == nil {
		return 0
	}
	return o.l.Refused() - o.base
}

// listens reports whether there is a listening side.
func (o *listeners) listens() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.l != nil
}

// resetRefused has refused begin anew.
func (o *listeners) resetRefused() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.l != nil {
		o.base = o.l.Refused()
	}
}

// Open has d listen where the directives bind and port say, keep maxclients and
// tcp-keepalive, and follow them when they change. It fails if an address that
// is not marked as dispensable cannot be bound, or none at all.
func (s *Service) Open(d Listener) error {
	s.listeners.mu.Lock()
	s.listeners.l = d
	s.listeners.mu.Unlock()
	if err := s.listeners.adjust(s.Config); err != nil {
		return err
	}
	return s.listeners.rebind(s.Config)
}

// adjust passes the limits of connections on.
func (o *listeners) adjust(c *config.Set) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.l != nil {
		o.l.SetMaxClients(int(c.MaxClients()))
		o.l.SetKeepAlive(time.Duration(c.TCPKeepalive()) * time.Second)
	}
	return nil
}

// rebind opens the listeners that are asked for and closes those that are not
// any more. If one cannot be opened, all stays as it was.
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
	if len(next) == 0 && c.Int("port") != 0 {
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

// deniedText is what a stranger reads in protected mode. Clients look for the
// first word; the advice is that of Redis.
const deniedText = "-DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user. " +
	"In this mode connections are only accepted from the loopback interface. " +
	"If you want to connect from external computers to Redis you may adopt one of the following solutions: " +
	"1) Just disable protected mode sending the command 'CONFIG SET protected-mode no' from the loopback interface by connecting to Redis from the same host the server is running, " +
	"however MAKE SURE Redis is not publicly accessible from internet if you do so. Use CONFIG REWRITE to make this change permanent. " +
	"2) Alternatively you can just disable the protected mode by editing the Redis configuration file, and setting the protected mode option to 'no', and then restarting the server. " +
	"3) If you started the server manually just for testing, restart it with the '--protected-mode no' option. " +
	"4) Setup a an authentication password for the default user. " +
	"NOTE: You only need to do one of the above things in order for the server to start accepting connections from the outside.\r\n"

// denied reports whether protected mode keeps a connection out.
func (s *Service) denied(conn reactor.Conn) bool {
	return conn != nil && s.Config.ProtectedMode() && s.acl.Default().User().NoPass && !isLocal(conn)
}

// isLocal reports whether the peer is on this machine: anything but TCP from
// another address than a loopback one. A nil connection is the program itself.
func isLocal(conn reactor.Conn) bool {
	if conn == nil || conn.Network() != "tcp" && conn.Network() != "tls" {
		return true
	}
	peer, err := netip.ParseAddrPort(conn.RemoteAddr())
	return err == nil && peer.Addr().Unmap().IsLoopback()
}
