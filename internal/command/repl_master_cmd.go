package command

import (
	"context"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/resp"
)

var replSpecs = []*Spec{&specPsync, &specSync, &specReplconf}

var specPsync = Spec{
	Name: "psync", Group: GroupServer, Since: "2.8.0", Complexity: "O(1)",
	Summary:       "Asks for the stream of changes from an offset on; the connection becomes a replica's.",
	Flags:         Admin | NoScript | NoAsyncLoading | NoMulti | AllKeys, // the stream is one thing meanwhile
	Args:          []Arg{Str("replicationid"), Int("offset")},
	ArityOverride: -3, ArityReason: "FAILOVER may follow, which Redis does not document",
	Replies: "CONTINUE where the stream goes on from there, else FULLRESYNC with its name and offset, and then a snapshot. " +
		"A replica that has not said REPLCONF capa ebb gets what Redis 7.0 knows; offsets are the same.",
	SysCmd: true,
	Errors: []string{"NOMASTERLINK: this is a replica without its master"},
	Examples: `
> PSYNC ? x
(error) ERR value is not an integer or out of range
`,
	Run: runPsync,
}

var specSync = Spec{
	Name: "sync", Group: GroupServer, Since: "1.0.0", Complexity: "O(1)",
	Summary: "Asks for a snapshot and the stream behind it, as replicas did before PSYNC and tools do.",
	Flags:   Admin | NoScript | NoAsyncLoading | NoMulti,
	Replies: "The length of the snapshot as of a bulk string, the snapshot, and then the stream.",
	SysCmd:  true,
	Examples: `
> MULTI
OK
> SYNC
(error) ERR Command not allowed inside a transaction
> DISCARD
OK
`,
	Run: runSync,
}

var errNoMasterLink = ReplyError("NOMASTERLINK Can't SYNC while not connected with my master")

func runPsync(c *Ctx) error {
	next, ok := resp.ParseInt(c.Args[2])
	if !ok {
		return ErrNotInteger
	}
	s, id := c.Service, string(c.Args[1])
	if len(c.Args) > 3 {
		if !EqualFold(c.Args[3], "FAILOVER") {
			return ErrSyntax
		}
		if err := s.repl.promotedBy(c, id); err != nil {
			return err
		}
	}
	f, err := c.newReplicaConn()
	if err != nil {
		return err
	}

	m := &s.master
	if f.goOn(id, next) {
		m.partial.Add(1)
	} else if id != "?" {
		m.refused.Add(1)
	}

	return c.handOver(f)
}

func runSync(c *Ctx) error {
	f, err := c.newReplicaConn()
	if err != nil {
		return err
	}
	f.old = true
	return c.handOver(f)
}

// newReplicaConn makes the client a replica, or says why it cannot be one.
func (c *Ctx) newReplicaConn() (*replicaConn, error) {
	s := c.Service
	if _, ok := c.Session.conn.(reactor.Hijacker); !ok {
		return nil, ReplyError("ERR a replica needs a connection")
	}
	if !s.repl.linked() {
		return nil, errNoMasterLink
	}
	f := &replicaConn{m: &s.master, c: c.Session, said: c.Session.announced, ready: make(chan struct{}), heard: make(chan struct{}, 1)}
	f.plain.Knows = f.said.knows
	f.ctx, f.stop = context.WithCancel(s.ctx)
	f.ackAt.Store(c.Now())
	return f, nil
}

// goOn arranges that the stream goes on from the byte that PSYNC calls next, if it
// is the stream of that name and still there. All shards are locked.
func (f *replicaConn) goOn(id string, next int64) bool {
	r, log := &f.m.svc.repl, f.m.svc.DB.Log()
	if !r.knows(id, next) || !f.m.keeps() {
		return false
	}
	reader, err := log.ReaderAt(next-1, oplog.ForReplica)
	if err != nil {
		return false
	}
	if !f.said.ebb && !beginsCommand(log, next-1) {
		reader.Close()
		return false
	}
	f.reader = reader
	f.sent.Store(next - 1)
	f.acked.Store(next - 1)
	f.continues = "+CONTINUE\r\n"
	if now, _, _ := r.names(); f.said.psync2 {
		f.continues = "+CONTINUE " + now + "\r\n"
	}
	return true
}

// beginsCommand reports whether a command begins at an offset, as far as one byte
// tells: what overwrites commands has to know where they begin.
func beginsCommand(log *oplog.Log, offset int64) bool {
	r, err := log.ReaderAt(offset, oplog.ForReplica)
	if err != nil {
		return false
	}
	defer r.Close()
	b := r.Next()
	return len(b) == 0 || b[0] == '*' || b[0] == '\n'
}

// handOver takes the connection out of its transport.
func (c *Ctx) handOver(f *replicaConn) error {
	host, port := f.place()
	c.Service.Log.Info("a replica asks for the stream", "host", host, "port", port, "capa", f.said.describeCapa(), "partial", f.continues != "")
	s := c.Session
	s.view.show(viewReplica, true)
	s.closing = true // of the transport; run goes on with the connection
	c.Service.pubsub.Leave(s)
	f.m.add(f)
	s.follows.Store(f) // Serve has it hijacked
	return nil
}

var specReplconf = Spec{
	Name: "replconf", Group: GroupServer, Since: "3.0.0", Complexity: "O(1)",
	Summary:       "Says what a replica is and can do, before it asks for the stream with PSYNC.",
	Flags:         Admin | NoScript | Loading | Stale | AllowBusy,
	ArityOverride: -1, ArityReason: "any number of options and values, which Redis does not document",
	SysCmd:  true,
	Replies: "OK. listening-port and ip-address are for INFO and ROLE; capa eof, psync2 or ebb say what it understands.",
	Examples: `
> REPLCONF listening-port 6380 capa eof capa psync2
OK
> REPLCONF colour blue
(error) ERR Unrecognized REPLCONF option: colour
`,
	Run: runReplconf,
}

func runReplconf(c *Ctx) error {
	if len(c.Args)%2 == 0 {
		return ErrSyntax
	}
	said := c.Session.announced
	for i := 1; i < len(c.Args); i += 2 {
		if err := said.take(strings.ToLower(string(c.Args[i])), string(c.Args[i+1])); err != nil {
			return err
		}
	}

	c.Session.announced = said

	c.Out.OK()
	return nil
}

// validHost reports whether s can be an address or a host name, of which INFO, ROLE, the
// log and metrics show what a replica says: letters, digits, and what stands between them.
// Empty is none.
func validHost(s string) bool {
	for _, c := range []byte(s) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && !('0' <= c && c <= '9') && strings.IndexByte(".-_:%[]", c) < 0 {
			return false
		}
	}
	return true
}

// take takes one option.
func (a *announced) take(option, value string) error {
	switch option {
	case "listening-port":
		port, ok := resp.ParseInt([]byte(value))
		if !ok {
			return ErrNotInteger
		}
		if port < 0 || port > 65535 {
			return ReplyError("ERR REPLCONF listening-port must be 0 to 65535")
		}
		a.port = int(port)
	case "ip-address":
		if len(value) > 255 {
			return ReplyError("ERR REPLCONF ip-address provided by replica instance is too long: " + value[:64] + "...")
		}
		if !validHost(value) {
			return ReplyError("ERR REPLCONF ip-address must be an address or a host name")
		}
		a.ip = value
	case "capa":
		switch strings.ToLower(value) {
		case "eof":
			a.eof = true
		case "psync2":
			a.psync2 = true
		case "ebb":
			a.ebb = true
		case "rdb-channel-repl": // Redis from 8.0 on says this whatever its configuration
			a.knows = max(a.knows, oplog.Redis8)
		}
	case "rdb-only":
		a.rdbOnly = value != "0"
	case "rdb-filter-only":
		for _, what := range strings.Fields(strings.ToLower(value)) {
			if what != "functions" {
				return ReplyError("ERR Unsupported rdb-filter-only option: " + what)
			}
		}
		a.data = true
	case "version": // said by Valkey from 8.1 on
		if major, err := strconv.Atoi(strings.SplitN(value, ".", 2)[0]); err == nil && major >= 9 {
			a.knows = oplog.Valkey9
		}
	case "getack":
	case "ack", "fack":
		return ReplyError("ERR REPLCONF ACK is what replicas say: send PSYNC first")
	default:
		return ReplyError("ERR Unrecognized REPLCONF option: " + option)
	}
	return nil
}
