package modeltest

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/compat"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// Campaign runs sequences of requests on two servers, one request at a time on both, and
// compares them.
type Campaign struct {
	Ours, Theirs string         // addresses
	Server       compat.Servers // the one at Theirs
	// HasDigest: both servers have DEBUG DIGEST, and compute the same digest for the same
	// data.
	HasDigest bool
	// Small: containers become large with a few items.
	Small bool
	// RESP3: all connections speak it. If not, the second one does.
	RESP3 bool

	table      *command.Table
	allowances []allowance // those of the server
	fields     bool        // both have deadlines of fields
	tally      *Tally      // nil: nothing is counted
}

// Fault is the first difference.
type Fault struct {
	At           int // index of the operation; len(ops) for the state at the end
	What         string
	Ours, Theirs string
}

// patience is the time limit of a reply.
var patience = tier.Patience

// end is one of the two servers during a sequence.
type end struct {
	conns []*peer // by number; 0 is for looking at the state
	ids   []int64 // of the connections, as CLIENT ID gives them
	subs  *peer   // gets the keyspace events
}

type peer struct {
	net.Conn
	r      *bufio.Reader
	pushed []string // messages that came between replies
}

func dial(addr string) (*peer, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &peer{Conn: c, r: bufio.NewReaderSize(c, 1<<17)}, nil
}

func (p *peer) send(args []string) error {
	_, err := p.Write(wire.AppendCommand(nil, args...))
	return err
}

func (p *peer) receive() (resp.Value, error) {
	if err := p.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return resp.Value{}, err
	}
	for {
		v, err := wire.ReadValue(p.r)
		if err != nil || v.Kind != resp.KindPush || len(v.Elems) == 0 || !slices.Contains(messages, v.Elems[0].Str) {
			return v, err
		}
		p.pushed = append(p.pushed, tty(v))
	}
}

// messages are the pushes that are not replies.
var messages = []string{"message", "pmessage", "smessage", "invalidate"}

func (p *peer) do(args ...string) (resp.Value, error) {
	if err := p.send(args); err != nil {
		return resp.Value{}, err
	}
	return p.receive()
}

// open connects to a server and empties it. Its containers become large with a
// few items if small is set. All connections of a sequence speak RESP3 if resp3 is set.
func open(addr string, small, resp3 bool) (*end, error) {
	e := &end{}
	for i := range connections + 2 {
		p, err := dial(addr)
		if err != nil {
			e.close()
			return nil, err
		}
		e.conns = append(e.conns, p)
		if i == connections+1 {
			e.subs = p
		}
	}
	// The events of the flush itself must not be among those compared.
	type step struct {
		p    *peer
		args []string
	}
	steps := []step{
		{e.conns[0], []string{"FLUSHALL"}},
		{e.conns[0], []string{"SCRIPT", "FLUSH"}},
		{e.conns[0], []string{"FUNCTION", "FLUSH"}},
		{e.conns[0], []string{"CONFIG", "SET", "notify-keyspace-events", "KEAnm"}},
		{e.subs, []string{"PSUBSCRIBE", "__keyevent@*"}},
		{e.subs, []string{"SUBSCRIBE", "done"}},
	}
	for i := 1; i <= connections; i++ {
		if resp3 || i == 2 {
			steps = append(steps, step{e.conns[i], []string{"HELLO", "3"}})
		}
	}
	for _, x := range steps {
		if _, err := x.p.do(x.args...); err != nil {
			e.close()
			return nil, err
		}
	}
	for _, p := range e.conns {
		if p == e.subs {
			break
		}
		v, err := p.do("CLIENT", "ID")
		if err != nil {
			e.close()
			return nil, err
		}
		e.ids = append(e.ids, v.Int)
	}
	return e, e.setLimits(small)
}

// setLimits sets the size from which containers are large. One of the two servers may not
// know each directive.
func (e *end) setLimits(small bool) error {
	limits := []string{"hash-max-listpack-entries", "512", "set-max-intset-entries", "512", "set-max-listpack-entries", "128",
		"zset-max-listpack-entries", "128", "list-max-listpack-size", "-2", "stream-node-max-entries", "100"}
	if small {
		limits = []string{"hash-max-listpack-entries", "4", "set-max-intset-entries", "5", "set-max-listpack-entries", "4",
			"zset-max-listpack-entries", "4", "list-max-listpack-size", "3", "stream-node-max-entries", "3"}
	}
	for i := 0; i < len(limits); i += 2 {
		if _, err := e.conns[0].do("CONFIG", "SET", limits[i], limits[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (e *end) close() {
	for _, c := range e.conns {
		_ = c.Close()
	}
}

// Run plays a sequence and returns the first fault, nil if there is none. The
// error is that of a connection.
func (c *Campaign) Run(ops []Op) (*Fault, error) {
	ours, err := open(c.Ours, c.Small, c.RESP3)
	if err != nil {
		return nil, err
	}
	defer ours.close()
	theirs, err := open(c.Theirs, c.Small, c.RESP3)
	if err != nil {
		return nil, err
	}
	defer theirs.close()

	queued := map[int][]Op{} // what waits for EXEC, by connection
	waits := map[int]int{}   // connections that wait for a reply, and since which operation
	for i, o := range ops {
		if o.Wait > 0 {
			sleep(o.Wait)
			if err := c.mark(i, ours, theirs); err != nil {
				return nil, err
			}
			continue
		}
		if o.Blocks {
			if _, waiting := waits[o.Conn]; waiting {
				continue // it cannot be known yet whether the earlier one was served
			}
			waits[o.Conn] = i
			if err := c.block(i, o, ours, theirs); err != nil {
				return nil, err
			}
			continue
		}
		a, b, err := c.both(ours.conns[o.Conn], theirs.conns[o.Conn], o.Args)
		if err != nil {
			return nil, fmt.Errorf("operation %d, %s: %w", i, transcript.Line(o.Args), err)
		}
		same := false
		switch {
		case strings.EqualFold(o.Args[0], "EXEC"):
			same = c.sameReplies(queued[o.Conn], a, b)
			delete(queued, o.Conn)
		case a.Str == "QUEUED" && equal(a, b):
			same = true
			queued[o.Conn] = append(queued[o.Conn], o)
		default:
			same = c.sameReply(o.Args, a, b) || o.Damaged && bothErrors(a, b)
			if strings.EqualFold(o.Args[0], "DISCARD") || strings.EqualFold(o.Args[0], "RESET") {
				delete(queued, o.Conn)
			}
		}
		if !same {
			if id, _, err := c.compareWaiters(ops[:i], waits, ours, theirs); id != "" || err != nil {
				c.tally.difference(id)
				return nil, err
			}
			if id := c.allowedHere(ops[:i], o, a, b); id != "" {
				c.tally.difference(id)
				return nil, nil
			}
			return &Fault{i, "reply to", typedReply(a), typedReply(b)}, nil
		}
		c.tally.request(c.table, o.Args, a, b)
		if c.parted(o.Args, a, b) {
			return nil, nil
		}
		if err := c.mark(i, ours, theirs); err != nil {
			return nil, err
		}
	}
	if id, f, err := c.compareWaiters(ops, waits, ours, theirs); id != "" || f != nil || err != nil {
		c.tally.difference(id)
		return f, err
	}
	return c.compareState(ops, ours, theirs)
}

// block sends operation i, whose reply may come much later, to both, and waits until both
// have it.
func (c *Campaign) block(i int, o Op, ours, theirs *end) error {
	if err := errors.Join(ours.conns[o.Conn].send(o.Args), theirs.conns[o.Conn].send(o.Args)); err != nil {
		return err
	}
	if err := settled(ours, o.Conn); err != nil {
		return err
	}
	if err := settled(theirs, o.Conn); err != nil {
		return err
	}
	return c.mark(i, ours, theirs)
}

// allowedHere returns the allowance for replies a and b that differ because of the
// operations before o, "" if there is none. The data may differ from there on.
func (c *Campaign) allowedHere(before []Op, o Op, a, b resp.Value) string {
	exec := strings.EqualFold(o.Args[0], "EXEC") && a.IsNull() && !b.IsNull()
	switch {
	case exec && slices.ContainsFunc(before, func(o Op) bool { return len(o.Args) > 0 && strings.EqualFold(request(o.Args)[0], "XSETID") }):
		return xsetidWatched
	case c.Server == compat.Valkey9 && bothErrors(a, b) && strings.HasSuffix(b.Str, "not allowed inside a transaction"):
		return multiGoesOn
	case c.Server == compat.Valkey9 && exec && slices.ContainsFunc(before, setsToPast):
		return pastDeadlineEvent
	}
	return ""
}

// parted reports whether a write that one of the two has refused, as an allowance says, makes
// their data differ from there on.
func (c *Campaign) parted(args []string, ours, theirs resp.Value) bool {
	if !oneRefuses(ours, theirs) {
		return false
	}
	var raw [][]byte
	for _, a := range request(args) {
		raw = append(raw, []byte(a))
	}
	spec, err := c.table.Find(raw)
	return err == nil && spec.Has(command.Write)
}

// settled returns when a request that may block has its reply or waits, which means that
// the server has read all of its bytes.
func settled(e *end, conn int) error {
	for range 1000 {
		v, err := e.conns[0].do("CLIENT", "LIST", "ID", strconv.FormatInt(e.ids[conn], 10))
		if err != nil {
			return err
		}
		if line := v.String(); !strings.Contains(line, "cmd=client|id") {
			return nil
		}
		sleep(100 * time.Microsecond)
	}
	return errors.New("a request that may block was not read")
}

// overwrites reports whether some request stores a result under a key.
func overwrites(ops []Op) bool {
	return slices.ContainsFunc(ops, func(o Op) bool {
		return len(o.Args) > 0 && slices.ContainsFunc(o.Args, func(a string) bool { return strings.Contains(strings.ToUpper(a), "STORE") })
	})
}

// setsToPast reports whether a request sets a key with a deadline that has passed.
func setsToPast(o Op) bool {
	return slices.ContainsFunc(o.Args, func(a string) bool { return strings.EqualFold(a, "EXAT") || strings.EqualFold(a, "PXAT") })
}

// setsSoon reports whether a request sets a deadline that may pass while the sequence runs: see Generator.soon.
func setsSoon(ops []Op) bool {
	return slices.ContainsFunc(ops, func(o Op) bool {
		args := o.Args
		if len(args) > 0 {
			args = request(args)
		}
		inMillis := slices.ContainsFunc(args, func(a string) bool {
			a = strings.ToUpper(a)
			return a == "PX" || a == "PSETEX" || strings.HasSuffix(a, "PEXPIRE")
		})
		return inMillis && slices.ContainsFunc(args, func(a string) bool {
			ms, err := strconv.Atoi(a)
			return err == nil && ms > 0 && ms <= soonest
		})
	})
}

func swaps(ops []Op) bool {
	return slices.ContainsFunc(ops, func(o Op) bool { return len(o.Args) > 0 && strings.EqualFold(request(o.Args)[0], "SWAPDB") })
}

// compareWaiters ends all waiting, and compares the replies of the waiting requests. If
// they were served in ways that may differ, and the keyspaces with them, it returns the
// difference.
func (c *Campaign) compareWaiters(ops []Op, waits map[int]int, ours, theirs *end) (id string, f *Fault, err error) {
	for conn, i := range waits {
		for _, e := range []*end{ours, theirs} {
			if _, err := e.conns[0].do("CLIENT", "UNBLOCK", strconv.FormatInt(e.ids[conn], 10)); err != nil {
				return "", nil, err
			}
		}
		a, err := ours.conns[conn].receive()
		if err != nil {
			return "", nil, fmt.Errorf("ebb: %s: %w", transcript.Line(ops[i].Args), err)
		}
		b, err := theirs.conns[conn].receive()
		if err != nil {
			return "", nil, fmt.Errorf("%s: %s: %w", c.Server, transcript.Line(ops[i].Args), err)
		}
		if b.IsNull() && !a.IsNull() && overwrites(ops) || swaps(ops) && !c.sameReply(ops[i].Args, a, b) {
			return overwrittenWakes, nil, nil
		}
		if compat.Newer.Has(c.Server) && wrongTypeFirst(a, b) {
			return blockedWrongType, nil, nil
		}
		if compat.Newer.Has(c.Server) && len(waits) > 1 && !a.IsNull() && !b.IsNull() && !c.sameReply(ops[i].Args, a, b) {
			return blockedOrder, nil, nil
		}
		if !c.sameReply(ops[i].Args, a, b) {
			f = &Fault{len(ops), "late reply to " + transcript.Line(ops[i].Args), tty(a), tty(b)}
			continue
		}
		c.tally.request(c.table, ops[i].Args, a, b)
	}
	return "", f, nil
}

// both sends a request to both ends before it waits for either.
func (c *Campaign) both(a, b *peer, args []string) (x, y resp.Value, err error) {
	if err = a.send(args); err == nil {
		err = b.send(args)
	}
	if err != nil {
		return x, y, err
	}
	if x, err = a.receive(); err != nil {
		return x, y, fmt.Errorf("ebb: %w", err)
	}
	if y, err = b.receive(); err != nil {
		return x, y, fmt.Errorf("%s: %w", c.Server, err)
	}
	return x, y, nil
}

func sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	<-t.C
}

// tty returns a reply as redis-cli prints it; errors may contain any bytes.
func tty(v resp.Value) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r >= ' ' && r != unicode.ReplacementChar {
			return r
		}
		return '.'
	}, strings.TrimRight(string(wire.AppendTTY(nil, v)), "\n"))
}

// typedReply returns a reply as tty does, with its type.
func typedReply(v resp.Value) string { return fmt.Sprintf("%s (%s)", tty(v), v.Kind) }
