package session

import (
	"strconv"

	"github.com/ebbdb/ebb/internal/acl"
	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/pubsub"
)

// This file describes a client: what CLIENT LIST, ACL LOG, SLOWLOG and MONITOR show of it.

// ClientInfo has the fields of a client that the filters of CLIENT LIST compare.
type ClientInfo struct {
	ID              int64
	User            *acl.Account
	Type            string    // normal, master, replica or pubsub
	Flags           string    // the letters of CLIENT LIST
	Name            string    // the name that the client has set; "": none
	Library         [2]string // name and version
	Addr, LocalAddr string    // the two ends of the connection, "embedded" for a session without one
	Database        int
	Created, Active int64 // us since 1970: when it connected, and when its last batch of requests ended
}

// Info returns the current state of the client. Any goroutine may call it.
func (c *Session) Info() ClientInfo {
	return ClientInfo{ID: c.id, User: c.view.user.Load(), Type: c.clientType(), Flags: c.flags(), Name: c.name(), Library: c.library(),
		Addr: c.remoteAddr(), LocalAddr: c.localAddr(), Database: int(c.view.dbi.Load()), Created: c.svc.engineTime(c.created),
		Active: c.svc.engineTime(c.lastActive())}
}

// lastActive returns the end of the client's last batch, by the clock for intervals; before the first batch,
// the instant of its connection.
func (c *client) lastActive() int64 { return max(c.view.active.Load(), c.created) }

// Describe appends the session's line of CLIENT LIST, for the command x of this session or of another.
// Connections share their buffers for reading and writing, and have buffers of their own only for waiting
// data: so qbuf-free, rbs, rbp, obl and oll are 0.
func (c *Session) Describe(b []byte, x *command.Ctx) []byte {
	v, now := &c.view, c.svc.steady()
	last, lastAt := v.last.Load(), c.lastActive()
	if c == Of(x) {
		last, lastAt = x.Spec, now
		c.showTransaction()
	}
	mem := c.memory()
	if c == Of(x) {
		mem.argv = command.ArgsBytes(x.Args)
	}
	fd := -1
	if c.conn != nil {
		fd = c.conn.FD()
	}
	subs := c.svc.pubsub.Counts(c)
	cmd := "NULL"
	if last != nil {
		cmd = last.Name
	}
	lib := c.library()
	f := fields{b}
	f.num("id", c.id)
	f.text("addr", c.remoteAddr())
	f.text("laddr", c.localAddr())
	f.num("fd", int64(fd))
	f.text("name", c.name())
	f.num("age", (now-c.created)/1e6)
	f.num("idle", (now-lastAt)/1e6)
	f.text("flags", c.flags())
	f.num("db", int64(v.dbi.Load()))
	f.num("sub", int64(subs[pubsub.Channel]))
	f.num("psub", int64(subs[pubsub.Pattern]))
	f.num("ssub", int64(subs[pubsub.Shard]))
	f.num("multi", int64(v.multi.Load()))
	f.num("watch", int64(v.watch.Load()))
	f.num("qbuf", mem.in)
	f.num("qbuf-free", 0)
	f.num("argv-mem", mem.argv)
	f.num("multi-mem", mem.multi)
	f.num("rbs", 0)
	f.num("rbp", 0)
	f.num("obl", 0)
	f.num("oll", command.BoolToInt(mem.out > 0))
	f.num("omem", mem.out)
	f.num("tot-mem", mem.total())
	f.text("events", "r")
	f.text("cmd", cmd)
	f.text("user", v.user.Load().Name)
	f.num("redir", c.track.Redirect())
	f.num("resp", int64(max(c.proto.Load(), 2)))
	f.text("lib-name", lib[0])
	f.text("lib-ver", lib[1])
	return f.b
}

// fields builds a line of name=value pairs.
type fields struct{ b []byte }

// text adds a text, as a part of one clean line.
func (f *fields) text(name, value string) { f.add(name, cleantext.Line(value, maxField)) }

// maxField is the greatest number of bytes of a text in CLIENT LIST. The path of a socket and the name of a
// user may be long.
const maxField = 4 << 10

func (f *fields) add(name, value string) {
	if n := len(f.b); n > 0 && f.b[n-1] != '\n' {
		f.b = append(f.b, ' ')
	}
	f.b = append(append(append(f.b, name...), '='), value...)
}

func (f *fields) num(name string, n int64) {
	var buf [20]byte
	f.add(name, string(strconv.AppendInt(buf[:0], n, 10)))
}

// flags returns the letters of CLIENT LIST, N if there are none.
func (c *Session) flags() string {
	var b []byte
	add := func(letter byte, on bool) {
		if on {
			b = append(b, letter)
		}
	}
	f, m := c.view.flags.Load(), c.track.Mode()
	add('M', f&viewMaster != 0)
	add('S', f&viewReplica != 0)
	add('O', f&viewMonitor != 0)
	add('P', c.subs.Len() > 0)
	add('x', c.view.multi.Load() >= 0)
	add('t', m != nil)
	add('R', c.track.Broken())
	add('B', m != nil && m.BCast)
	add('b', c.view.waiting.Load() != nil)
	add('U', c.conn != nil && c.conn.Network() == "unix")
	add('e', f&viewNoEvict != 0)
	add('T', f&viewNoTouch != 0)
	if len(b) == 0 {
		return "N"
	}
	return string(b)
}

// clientType returns the client's type, as CLIENT LIST TYPE names it.
func (c *client) clientType() string {
	if c.view.flags.Load()&viewMaster != 0 {
		return "master"
	}
	if c.view.flags.Load()&viewReplica != 0 {
		return "replica"
	}
	if c.subs.Len() > 0 {
		return "pubsub"
	}
	return "normal"
}

// remoteAddr returns the client's end of the connection, as CLIENT LIST shows it. An embedded session has the address of its
// origin, or "embedded".
func (c *Session) remoteAddr() string {
	switch {
	case c.conn != nil:
		return c.conn.RemoteAddr()
	case c.origin != nil:
		return c.origin.Addr
	}
	return embeddedAddr
}

// embeddedAddr replaces the address of a connection for an embedded session, which has none.
const embeddedAddr = "embedded"

// name returns the name that the client has set, "" if none.
func (c *client) name() string {
	if n := c.view.name.Load(); n != nil {
		return *n
	}
	return ""
}

// library returns the name and the version of the client's library.
func (c *client) library() (lib [2]string) {
	if l := c.view.lib.Load(); l != nil {
		lib = *l
	}
	return lib
}

// SetName gives the client a name; "" removes it.
func (c *client) SetName(name []byte) {
	if len(name) == 0 {
		c.view.name.Store(nil)
	} else {
		s := string(name)
		c.view.name.Store(&s)
	}
	c.countNames()
}

// countNames counts the bytes of the names that the client has set.
func (c *client) countNames() {
	lib := c.library()
	n := int64(len(c.name()) + len(lib[0]) + len(lib[1]))
	c.charger.ChargeApart(n - c.view.nameBytes.Swap(n))
}

// SetLibrary sets the name and the version of the client's library.
func (c *client) SetLibrary(lib [2]string) {
	c.view.lib.Store(&lib)
	c.countNames()
}
