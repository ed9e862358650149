// Package listen keeps the addresses at which a server listens: those of the directives bind and port, even
// after CONFIG SET has changed them. Start reading at Addresses.Open.
package listen

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/config"
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

// Addresses are the addresses that the directives port and bind name. The zero value has no listener. Its methods are safe
// for concurrent use.
type Addresses struct {
	Most int64 // the greatest value of maxclients; 0: any

	mu   sync.Mutex // guards the fields below
	l    Listener
	open map[string]func() // the functions that close a listener, by address
	base int64             // the value of Refused at the last reset of statistics
}

// Refused returns how many connections the listener has refused since the last reset.
func (o *Addresses) Refused() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.l == nil {
		return 0
	}
	return o.l.Refused() - o.base
}

// Listening reports whether the server has a listener.
func (o *Addresses) Listening() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.l != nil
}

// ResetRefused makes Refused begin at 0 again.
func (o *Addresses) ResetRefused() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.l != nil {
		o.base = o.l.Refused()
	}
}

// Open makes l listen at the addresses of the configuration, and passes its limits to it. It fails if no address can be
// bound, or if one cannot be that is not marked as optional.
func (o *Addresses) Open(l Listener, c *config.Set) error {
	o.mu.Lock()
	o.l = l
	o.mu.Unlock()
	if err := o.Adjust(c); err != nil {
		return err
	}
	return o.Rebind(c)
}

// Adjust passes the limits of connections to the listener.
func (o *Addresses) Adjust(c *config.Set) error {
	if o.Most > 0 && c.MaxClients() > o.Most {
		return fmt.Errorf("The operating system is not able to handle the specified number of clients, try with %d", o.Most)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.l != nil {
		o.l.SetMaxClients(int(c.MaxClients()))
		o.l.SetKeepAlive(time.Duration(c.TCPKeepalive()) * time.Second)
	}
	return nil
}

// Rebind opens the listeners that the configuration wants and closes all others. If one cannot be
// opened, nothing changes.
func (o *Addresses) Rebind(c *config.Set) error {
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
	return addrsOf(c.Bind(), port)
}

// At listens at another port of the addresses that the directive bind names. It fails if none can be bound, or if one cannot be that is
// not marked as optional. The caller closes the listeners.
func At(bind []string, port int) (all []net.Listener, err error) {
	for _, b := range addrsOf(bind, int64(port)) {
		l, err := net.Listen(family(b.addr), b.addr)
		switch {
		case err == nil:
			all = append(all, l)
		case !b.dispensable:
			for _, l := range all {
				l.Close()
			}
			return nil, err
		}
	}
	if len(all) == 0 && len(bind) > 0 {
		return nil, fmt.Errorf("none of the addresses '%s' can be bound with port %d", strings.Join(bind, " "), port)
	}
	return all, nil
}

// family returns the network of an address: that of all addresses of IPv6 leaves IPv4 to another listener.
func family(addr string) string {
	at, err := netip.ParseAddrPort(addr)
	switch {
	case err != nil:
		return "tcp" // a name
	case at.Addr().Is4():
		return "tcp4"
	}
	return "tcp6"
}

// addrsOf returns the addresses to bind.
func addrsOf(bind []string, port int64) []listenAddr {
	var all []listenAddr
	for _, b := range bind {
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
