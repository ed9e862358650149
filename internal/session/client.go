package session

import (
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/pubsub"
)

var specClient = command.Spec{
	Name: "client", Group: command.GroupConnection, Since: "2.4.0", Complexity: "Depends on subcommand.",
	Summary: "A container for commands about connections.",
	Sub: []*command.Spec{&specClientCaching, &specClientGetname, &specClientGetredir, &specClientHelp, &specClientID, &specClientInfo, &specClientKill,
		&specClientList, &specClientNoEvict, &specClientNoTouch, &specClientPause, &specClientReply, &specClientSetinfo,
		&specClientSetname, &specClientTracking, &specClientTrackinginfo, &specClientUnblock, &specClientUnpause},
}

var specClientHelp = command.HelpSpec("client", command.GroupConnection, 0)

// ownFlags are the flags of subcommands that look at their own connection. adminFlags are those of
// subcommands that reach other connections.
const (
	ownFlags   = command.NoScript | command.Loading | command.Stale
	adminFlags = ownFlags | command.Admin
)

var specClientID = command.Spec{
	Name: "client|id", Group: command.GroupConnection, Since: "5.0.0", Complexity: "O(1)",
	Summary: "Returns the connection's number. Later connections have larger numbers, and the server uses no number twice.",
	Flags:   ownFlags,
	Examples: `
> CLIENT ID
(integer) 1
2> CLIENT ID
(integer) 2
`,
	Run: runClientID,
}

func runClientID(c *command.Ctx) error {
	c.Out.Int(sessionOf(c).id)
	return nil
}

var specClientGetname = command.Spec{
	Name: "client|getname", Group: command.GroupConnection, Since: "2.6.9", Complexity: "O(1)",
	Summary: "Returns the connection's name.",
	Flags:   ownFlags,
	Examples: `
> CLIENT GETNAME
(nil)
> CLIENT SETNAME worker-1
OK
> CLIENT GETNAME
"worker-1"
`,
	Run: runClientGetname,
}

func runClientGetname(c *command.Ctx) error {
	if name := sessionOf(c).view.name.Load(); name != nil {
		c.Out.BulkString(*name)
	} else {
		c.Out.Null()
	}
	return nil
}

var specClientSetname = command.Spec{
	Name: "client|setname", Group: command.GroupConnection, Since: "2.6.9", Complexity: "O(1)",
	Summary: "Names the connection. An empty name removes the name.",
	Flags:   ownFlags,
	FanOut:  command.FanOutOne,
	Client:  command.Stateful,
	Tips:    everyNode,
	Args:    []command.Arg{command.Str("connection-name")},
	Examples: `
> CLIENT SETNAME worker-1
OK
> CLIENT SETNAME "worker 1"
(error) ERR Client names cannot contain spaces, newlines or special characters.
`,
	Run: runClientSetname,
}

const errClientName = command.ReplyError("ERR Client names cannot contain spaces, newlines or special characters.")

func runClientSetname(c *command.Ctx) error {
	if !printable(c.Args[2]) {
		return errClientName
	}
	if sessionOf(c).full(int64(len(c.Args[2]))) {
		return command.ErrApart
	}
	sessionOf(c).setName(c.Args[2])
	c.Out.OK()
	return nil
}

func (c *Session) setName(name []byte) {
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

// printable reports whether b is visible ASCII without blanks, as texts in CLIENT LIST must be.
func printable(b []byte) bool {
	for _, x := range b {
		if x < '!' || x > '~' {
			return false
		}
	}
	return true
}

var specClientSetinfo = command.Spec{
	Name: "client|setinfo", Group: command.GroupConnection, Since: "7.2.0", Complexity: "O(1)",
	Summary: "Sets the name or version of the connection's client library.",
	Flags:   ownFlags,
	FanOut:  command.FanOutOne,
	Client:  command.Stateful,
	Tips:    everyNode,
	Args:    []command.Arg{command.OneOf("attr", command.TokenArg("LIB-NAME", command.Str("libname")), command.TokenArg("LIB-VER", command.Str("libver")))},
	Examples: `
> CLIENT SETINFO LIB-NAME mylib
OK
> CLIENT SETINFO LIB-AGE 3
(error) ERR Unrecognized option 'LIB-AGE'
`,
	Run: runClientSetinfo,
}

func runClientSetinfo(c *command.Ctx) error {
	var lib [2]string
	if old := sessionOf(c).view.lib.Load(); old != nil {
		lib = *old
	}
	at := 0
	switch {
	case command.EqualFold(c.Args[2], "LIB-NAME"):
	case command.EqualFold(c.Args[2], "LIB-VER"):
		at = 1
	default:
		return command.ReplyError("ERR Unrecognized option '" + string(c.Args[2]) + "'")
	}
	if !printable(c.Args[3]) {
		return command.ReplyError("ERR " + string(c.Args[2]) + " cannot contain spaces, newlines or special characters.")
	}
	lib[at] = string(c.Args[3])
	sessionOf(c).view.lib.Store(&lib)
	sessionOf(c).countNames()
	c.Out.OK()
	return nil
}

// onOff returns the argument of a switch.
func onOff() command.Arg { return command.OneOf("enabled", command.Token("ON"), command.Token("OFF")) }

func parseOnOff(b []byte) (on bool, err error) {
	switch {
	case command.EqualFold(b, "ON"):
		return true, nil
	case command.EqualFold(b, "OFF"):
		return false, nil
	}
	return false, command.ErrSyntax
}

var specClientNoEvict = command.Spec{
	Name: "client|no-evict", Group: command.GroupConnection, Since: "7.0.0", Complexity: "O(1)",
	Summary: "Exempts the connection from eviction by maxmemory-clients.",
	Flags:   adminFlags,
	Client:  command.Stateful,
	Args:    []command.Arg{onOff()},
	Examples: `
> CLIENT NO-EVICT ON
OK
> CLIENT NO-EVICT MAYBE
(error) ERR syntax error
`,
	Run: runClientNoEvict,
}

func runClientNoEvict(c *command.Ctx) error {
	on, err := parseOnOff(c.Args[2])
	if err != nil {
		return err
	}
	sessionOf(c).view.show(viewNoEvict, on)
	c.Out.OK()
	return nil
}

var specClientNoTouch = command.Spec{
	Name: "client|no-touch", Group: command.GroupConnection, Since: "7.2.0", Complexity: "O(1)",
	Summary: "Makes the connection's reads not count as accesses: they change no idle times and no sliding deadlines.",
	Flags:   ownFlags,
	Client:  command.Stateful,
	Args:    []command.Arg{onOff()},
	Examples: `
> SET k v EX 10 SLIDE
OK
> CLIENT NO-TOUCH ON
OK
~ 4s
> GET k
"v"
> TTL k
(integer) 6
> CLIENT NO-TOUCH OFF
OK
> GET k
"v"
> TTL k
(integer) 10
`,
	Run: runClientNoTouch,
}

func runClientNoTouch(c *command.Ctx) error {
	on, err := parseOnOff(c.Args[2])
	if err != nil {
		return err
	}
	sessionOf(c).noTouch = on
	sessionOf(c).view.show(viewNoTouch, on)
	c.Out.OK()
	return nil
}

// Restrict makes the calls of scripts and functions of an embedded session fail with the error that of returns for them. The
// program itself checks the commands that it sends.
func (c *Session) Restrict(of func(spec *command.Spec, args [][]byte) error) { c.restrict = of }

// Aside says whether the calls of an embedded session that follow are those of the program itself, which shows its user something:
// their errors do not count in INFO, because no client has made a mistake.
func (c *Session) Aside(on bool) { c.aside = on }

// Unnoticed makes the reads of an embedded session not count as accesses, as CLIENT NO-TOUCH ON does,
// and exempts it from maxmemory-clients. It needs no permission of the session's user.
func (c *Session) Unnoticed() {
	c.noTouch = true
	c.view.show(viewNoTouch|viewNoEvict, true)
}

var specClientReply = command.Spec{
	Name: "client|reply", Group: command.GroupConnection, Since: "3.2.0", Complexity: "O(1)",
	Summary: "Turns replies off and on, or skips the next one. Messages are sent all the same.",
	Flags:   ownFlags,
	Client:  command.Stateful,
	Args:    []command.Arg{command.OneOf("on_off_skip", command.Token("ON"), command.Token("OFF"), command.Token("SKIP"))},
	Replies: "OK to ON; nothing to the others.",
	Examples: `
> CLIENT REPLY OFF
> SET k v
> CLIENT REPLY ON
OK
> CLIENT REPLY SKIP
> SET k w
> GET k
"w"
`,
	Run: runClientReply,
}

func runClientReply(c *command.Ctx) error {
	s := sessionOf(c)
	switch {
	case command.EqualFold(c.Args[2], "ON"):
		s.reply = replyOn
		c.Out.OK()
	case command.EqualFold(c.Args[2], "OFF"):
		s.reply = replyOff
	case command.EqualFold(c.Args[2], "SKIP"):
		if s.reply != replyOff {
			s.reply = replySkipNext
		}
	default:
		return command.ErrSyntax
	}
	return nil
}

var specClientInfo = command.Spec{
	Name: "client|info", Group: command.GroupConnection, Since: "6.2.0", Complexity: "O(1)",
	Summary: "Describes the connection in the form of CLIENT LIST.",
	Flags:   ownFlags,
	Tips:    []string{"nondeterministic_output"},
	Examples: `
> CLIENT SETNAME me
OK
> CLIENT INFO
"id=1 $_ name=me age=0 idle=0 flags=N db=0 $_ cmd=client|info $_"
`,
	Run: runClientInfo,
}

func runClientInfo(c *command.Ctx) error {
	c.Out.Verbatim("txt", string(describe(c, nil, sessionOf(c))))
	return nil
}

var specClientList = command.Spec{
	Name: "client|list", Group: command.GroupConnection, Since: "2.4.0", Complexity: "O(N) where N is the number of client connections",
	Summary: "Lists the connections, one to a line.",
	Flags:   adminFlags,
	Tips:    []string{"nondeterministic_output"},
	Args: append([]command.Arg{
		command.Opt(command.TokenArg("TYPE", command.OneOf("normal_master_replica_pubsub", command.Token("NORMAL"), command.Token("MASTER"), command.Token("REPLICA"),
			command.Token("PUBSUB")))).Since("5.0.0"),
		command.Opt(command.TokenArg("ID", command.Block("id", command.Repeat(command.Int("client-id"))))).Since("6.2.0"),
		command.Opt(command.TokenArg("USER", command.Str("username"))), command.Opt(command.TokenArg("ADDR", command.Str("ip:port"))),
		command.Opt(command.TokenArg("LADDR", command.Str("ip:port"))),
		command.Opt(command.TokenArg("SKIPME", command.Str("yes/no"))), command.Opt(command.TokenArg("MAXAGE", command.Int("seconds")))}, clientFilters()...),
	History: []command.Change{{Since: "2.8.12", Text: "Added unique client `id` field."}, {Since: "5.0.0", Text: "Added optional `TYPE` filter."},
		{Since: "6.0.0", Text: "Added `user` field."},
		{Since: "6.2.0", Text: "Added `argv-mem`, `tot-mem`, `laddr` and `redir` fields and the optional `ID` filter."},
		{Since: "7.0.0", Text: "Added `resp`, `multi-mem`, `rbs` and `rbp` fields."}, {Since: "7.0.3", Text: "Added `ssub` field."},
		{Since: "9.0.0", Text: "Valkey's filters in addition to `TYPE` and `ID`."}},
	Replies: "A text. " + clientFilterWords,
	Examples: `
> CLIENT LIST ID 1 99
"id=1 $_\n"
> CLIENT LIST TYPE pubsub
""
> CLIENT LIST TYPE robot
(error) ERR Unknown client type 'robot'
`,
	Run: runClientList,
}

// clientBytes is the number of bytes that a command walks over in the time that it takes to
// describe or close one connection.
const clientBytes = 1024

func runClientList(c *command.Ctx) error {
	const bad = command.ReplyError("ERR Invalid client ID")
	f := clientFilter{badID: bad, oddID: bad, leastID: math.MinInt64}
	if err := f.parse(c, c.Args[2:]); err != nil {
		return err
	}
	all := serviceOf(c).clients.shown()
	if err := c.Long(len(all) * clientBytes); err != nil {
		return err
	}
	var b []byte
	now := c.Now()
	for _, s := range all {
		if !(f.skipMe && s == sessionOf(c)) && f.matches(s, now) {
			b = append(describe(c, b, s), '\n')
		}
	}
	c.Out.Verbatim("txt", string(b))
	return nil
}

func parseClientType(b []byte) (string, error) {
	switch t := strings.ToLower(string(b)); t {
	case "normal", "master", "replica", "pubsub":
		return t, nil
	case "slave":
		return "replica", nil
	case "primary":
		return "master", nil
	}
	return "", command.ReplyError("ERR Unknown client type '" + string(b) + "'")
}

func (c *Session) clientType() string {
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

// describe appends a session's line of CLIENT LIST. Connections share the buffers for reading and
// writing, and have none of their own except for data that waits: so qbuf-free, rbs, rbp, obl and
// oll are 0.
func describe(c *command.Ctx, b []byte, s *Session) []byte {
	v, now := &s.view, c.Now()
	last, lastAt := v.last.Load(), max(v.active.Load(), s.created)
	if s == sessionOf(c) {
		last, lastAt = c.Spec, now
		s.showTransaction()
	}
	mem := s.memory()
	if s == sessionOf(c) {
		mem.argv = command.ArgsBytes(c.Args)
	}
	fd := -1
	if s.conn != nil {
		fd = s.conn.FD()
	}
	subs := serviceOf(c).pubsub.Counts(s)
	cmd := "NULL"
	if last != nil {
		cmd = last.Name
	}
	lib := s.library()
	f := fields{b}
	f.num("id", s.id)
	f.text("addr", s.remoteAddr())
	f.text("laddr", s.localAddr())
	f.num("fd", int64(fd))
	f.text("name", s.clientName())
	f.num("age", (now-s.created)/1e6)
	f.num("idle", (now-lastAt)/1e6)
	f.text("flags", s.flags())
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
	f.num("redir", s.redirect())
	f.num("resp", int64(max(s.proto.Load(), 2)))
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

// sortedNames returns the keys of a set in ascending order.
func sortedNames[V any](set map[string]V) []string {
	names := make([]string, 0, len(set))
	for n := range set {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}
