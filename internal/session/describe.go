package session

import (
	"strconv"

	"github.com/ebbdb/ebb/internal/acl"
	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/pubsub"
)

// This file describes a client: what CLIENT LIST, ACL LOG, SLOWLOG and MONITOR show of it. Any goroutine
// may call the methods that return something.

// Describe appends the session's line of CLIENT LIST, for the command x of this session or of another.
// Connections share the buffers for reading and writing, and have none of their own except for data that
// waits: so qbuf-free, rbs, rbp, obl and oll are 0.
func (c *Session) Describe(b []byte, x *command.Ctx) []byte {
	v, now := &c.view, x.Now()
	last, lastAt := v.last.Load(), c.Active()
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
	lib := c.Library()
	f := fields{b}
	f.num("id", c.id)
	f.text("addr", c.RemoteAddr())
	f.text("laddr", c.LocalAddr())
	f.num("fd", int64(fd))
	f.text("name", c.Name())
	f.num("age", (now-c.created)/1e6)
	f.num("idle", (now-lastAt)/1e6)
	f.text("flags", c.Flags())
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
	f.num("redir", c.Redirect())
	f.num("resp", int64(max(c.proto.Load(), 2)))
	f.text("lib-name", lib[0])
	f.text("lib-ver", lib[1])
	return f.b
}

// fields builds a line of name=value pairs.
type fields struct{ b []byte }

// text adds a text, as a part of one clean line.
func (f *fields) text(name, value string) { f.add(name, cleantext.Line(value, maxField)) }

// maxField is the number of bytes of a text in CLIENT LIST. The path of a socket and the name of a user may be long.
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

// Flags returns the letters of CLIENT LIST, N if there are none.
func (c *Session) Flags() string {
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

// Type returns the client's type, as CLIENT LIST TYPE names it: normal, master, replica or pubsub.
func (c *Session) Type() string {
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

// RemoteAddr returns the client's end of the connection, as CLIENT LIST shows it. An embedded session has the address of its
// origin, or "embedded".
func (c *Session) RemoteAddr() string {
	switch {
	case c.conn != nil:
		return c.conn.RemoteAddr()
	case c.origin != nil:
		return c.origin.Addr
	}
	return embeddedAddr
}

// LocalAddr returns the server's end of the connection, as CLIENT LIST shows it.
func (c *Session) LocalAddr() string {
	if c.conn == nil {
		return embeddedAddr
	}
	return c.conn.LocalAddr()
}

// embeddedAddr replaces the address of a connection for an embedded session, which has none.
const embeddedAddr = "embedded"

// Name returns the name that the client has given itself, "" if it has none.
func (c *Session) Name() string {
	if n := c.view.name.Load(); n != nil {
		return *n
	}
	return ""
}

// Library returns the name and the version of the client's library.
func (c *Session) Library() (lib [2]string) {
	if l := c.view.lib.Load(); l != nil {
		lib = *l
	}
	return lib
}

// SetName gives the client a name; "" removes it.
func (c *Session) SetName(name []byte) {
	if len(name) == 0 {
		c.view.name.Store(nil)
	} else {
		s := string(name)
		c.view.name.Store(&s)
	}
	c.countNames()
}

// countNames counts the bytes of the names that the client has given itself.
func (c *Session) countNames() {
	n := int64(0)
	if name := c.view.name.Load(); name != nil {
		n = int64(len(*name))
	}
	if lib := c.view.lib.Load(); lib != nil {
		n += int64(len(lib[0]) + len(lib[1]))
	}
	c.svc.DB.ChargeApart(n - c.view.nameBytes.Swap(n))
}

// SetLibrary sets the name and the version of the client's library.
func (c *Session) SetLibrary(lib [2]string) {
	c.view.lib.Store(&lib)
	c.countNames()
}

// Created returns when the client connected, in us since 1970.
func (c *Session) Created() int64 { return c.created }

// Active returns when the client's last batch of requests ended, in us since 1970; before the first one it is Created.
func (c *Session) Active() int64 { return max(c.view.active.Load(), c.created) }

// Database returns the database that the client has selected.
func (c *Session) Database() int { return int(c.view.dbi.Load()) }

// User returns the client's user.
func (c *Session) User() *acl.Account { return c.view.user.Load() }
