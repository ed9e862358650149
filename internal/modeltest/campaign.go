package modeltest

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/ebbdb/ebb/internal/transcript"
	"github.com/ebbdb/ebb/resp"
)

// Campaign plays sequences on two servers, in step, and compares.
type Campaign struct {
	Ours, Theirs string // addresses
	// After is called after each sequence, when ours is quiet; may be nil.
	After func() error
	// HasDigest: both have DEBUG DIGEST.
	HasDigest bool
	// Small: containers become large with a few items.
	Small bool
}

// Fault is what differed first.
type Fault struct {
	At           int // index of the operation; len(ops) for the state at the end
	What         string
	Ours, Theirs string
}

// patience is how long a reply may take before it is missing.
const patience = time.Minute

// end is one server during a sequence.
type end struct {
	conns []*peer // by number; 0 is for looking at the state
	ids   []int64 // of the connections, as CLIENT ID gives them
	subs  *peer   // gets the keyspace events
}

type peer struct {
	net.Conn
	r *bufio.Reader
}

func dial(addr string) (*peer, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &peer{c, bufio.NewReaderSize(c, 1<<17)}, nil
}

func (p *peer) send(args []string) error {
	_, err := p.Write(resp.AppendCommand(nil, args...))
	return err
}

func (p *peer) receive() (resp.Value, error) {
	if err := p.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return resp.Value{}, err
	}
	return resp.ReadValue(p.r)
}

func (p *peer) do(args ...string) (resp.Value, error) {
	if err := p.send(args); err != nil {
		return resp.Value{}, err
	}
	return p.receive()
}

// open connects to a server and empties it. Its containers become large with a
// few items if small is set.
func open(addr string, small bool) (*end, error) {
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
	for _, x := range []struct {
		p    *peer
		args []string
	}{
		{e.conns[0], []string{"FLUSHALL"}},
		{e.conns[0], []string{"CONFIG", "SET", "notify-keyspace-events", "KEA"}},
		{e.conns[2], []string{"HELLO", "3"}},
		{e.subs, []string{"PSUBSCRIBE", "__keyevent@*"}},
		{e.subs, []string{"SUBSCRIBE", "done"}},
	} {
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

// setLimits sets from which size on containers are large; one of the two
// servers may not know each directive.
func (e *end) setLimits(small bool) error {
	limits := []string{"hash-max-listpack-entries", "512", "set-max-intset-entries", "512", "set-max-listpack-entries", "128", "zset-max-listpack-entries", "128", "list-max-listpack-size", "-2", "stream-node-max-entries", "100"}
	if small {
		limits = []string{"hash-max-listpack-entries", "4", "set-max-intset-entries", "5", "set-max-listpack-entries", "4", "zset-max-listpack-entries", "4", "list-max-listpack-size", "3", "stream-node-max-entries", "3"}
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
	ours, err := open(c.Ours, c.Small)
	if err != nil {
		return nil, err
	}
	defer ours.close()
	theirs, err := open(c.Theirs, c.Small)
	if err != nil {
		return nil, err
	}
	defer theirs.close()

	queued := map[int][][]string{} // what waits for EXEC, by connection
	waits := map[int]int{}         // connections that wait for a reply, and since which operation
	for i, o := range ops {
		if o.Wait > 0 {
			sleep(o.Wait)
			continue
		}
		if o.Blocks {
			if _, waiting := waits[o.Conn]; waiting {
				continue // it cannot be known yet whether the earlier one was served
			}
			waits[o.Conn] = i
			if err := errors.Join(ours.conns[o.Conn].send(o.Args), theirs.conns[o.Conn].send(o.Args)); err != nil {
				return nil, err
			}
			if err := settled(ours, o.Conn); err != nil {
				return nil, err
			}
			if err := settled(theirs, o.Conn); err != nil {
				return nil, err
			}
			continue
		}
		a, b, err := both(ours.conns[o.Conn], theirs.conns[o.Conn], o.Args)
		if err != nil {
			return nil, fmt.Errorf("operation %d, %s: %w", i, transcript.Line(o.Args), err)
		}
		same := false
		switch {
		case strings.EqualFold(o.Args[0], "EXEC"):
			same = sameReplies(queued[o.Conn], a, b)
			delete(queued, o.Conn)
		case a.Str == "QUEUED" && equal(a, b):
			same = true
			queued[o.Conn] = append(queued[o.Conn], o.Args)
		default:
			same = sameReply(o.Args, a, b) || o.Damaged && bothErrors(a, b)
			if strings.EqualFold(o.Args[0], "DISCARD") {
				delete(queued, o.Conn)
			}
		}
		if !same && len(waits) > 0 && overwrites(ops[:i]) {
			return nil, nil // see errOverwritten
		}
		if !same {
			return &Fault{i, "reply", tty(a), tty(b)}, nil
		}
	}
	if f, err := compareWaiters(ops, waits, ours, theirs); f != nil || err != nil {
		if err == errOverwritten {
			return nil, nil
		}
		return f, err
	}
	return c.compareState(ops, ours, theirs)
}

// settled returns when a request that may block has been answered, or is
// waiting: when the server no longer counts bytes of it as unread.
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

// errOverwritten ends the comparison of a sequence: a value that took the place of
// one of another type woke who waited on ebb, and not on redis-server, which
// wakes for new keys only; or SWAPDB made several keys ready at once, in no order.
var errOverwritten = errors.New("a value was overwritten by what somebody waits for")

// overwrites reports whether some request stores a result under a key.
func overwrites(ops []Op) bool {
	return slices.ContainsFunc(ops, func(o Op) bool {
		return len(o.Args) > 0 && slices.ContainsFunc(o.Args, func(a string) bool { return strings.Contains(strings.ToUpper(a), "STORE") })
	})
}

func swaps(ops []Op) bool {
	return slices.ContainsFunc(ops, func(o Op) bool { return len(o.Args) > 0 && strings.EqualFold(request(o.Args)[0], "SWAPDB") })
}

// compareWaiters ends all waiting, and compares what the waiters were told.
func compareWaiters(ops []Op, waits map[int]int, ours, theirs *end) (*Fault, error) {
	for conn, i := range waits {
		for _, e := range []*end{ours, theirs} {
			if _, err := e.conns[0].do("CLIENT", "UNBLOCK", strconv.FormatInt(e.ids[conn], 10)); err != nil {
				return nil, err
			}
		}
		a, err := ours.conns[conn].receive()
		if err != nil {
			return nil, fmt.Errorf("ebb: %s: %w", transcript.Line(ops[i].Args), err)
		}
		b, err := theirs.conns[conn].receive()
		if err != nil {
			return nil, fmt.Errorf("redis-server: %s: %w", transcript.Line(ops[i].Args), err)
		}
		if b.IsNull() && !a.IsNull() && overwrites(ops) || swaps(ops) && !sameReply(ops[i].Args, a, b) {
			return nil, errOverwritten
		}
		if !sameReply(ops[i].Args, a, b) {
			return &Fault{len(ops), "late reply to " + transcript.Line(ops[i].Args), tty(a), tty(b)}, nil
		}
	}
	return nil, nil
}

// both sends a request to both ends before it waits for either.
func both(a, b *peer, args []string) (x, y resp.Value, err error) {
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
		return x, y, fmt.Errorf("redis-server: %w", err)
	}
	return x, y, nil
}

func sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	<-t.C
}

// tty shows a reply; errors may hold any bytes.
func tty(v resp.Value) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r >= ' ' && r != unicode.ReplacementChar {
			return r
		}
		return '.'
	}, strings.TrimRight(string(v.AppendTTY(nil)), "\n"))
}

// databases are looked at in the end: those that SELECT, MOVE and COPY go to.
const databases = 3

// compareState compares what is left: keys, values, deadlines, the digest, and
// the events on the way.
func (c *Campaign) compareState(ops []Op, ours, theirs *end) (*Fault, error) {
	var states [2]string
	for try := range 3 {
		for i, e := range []*end{ours, theirs} {
			var err error
			if states[i], err = e.state(); err != nil {
				return nil, err
			}
		}
		if states[0] == states[1] {
			break
		}
		if try == 2 {
			return &Fault{len(ops), "keyspace", states[0], states[1]}, nil
		}
		sleep(40 * time.Millisecond) // a key may just be expiring
	}
	if f, err := compareAllEvents(ops, ours, theirs); f != nil || err != nil {
		return f, err
	}
	if c.HasDigest {
		return c.compareDigests(ops, ours, theirs)
	}
	return nil, nil
}

// compareDigests compares DEBUG DIGEST, more than once because redis-server
// counts what has expired until it is removed.
func (c *Campaign) compareDigests(ops []Op, ours, theirs *end) (f *Fault, err error) {
	for range 3 {
		x, y, err := both(ours.conns[0], theirs.conns[0], []string{"DEBUG", "DIGEST"})
		if err != nil || equal(x, y) {
			return nil, err
		}
		f = &Fault{len(ops), "DEBUG DIGEST", tty(x), tty(y)}
		sleep(40 * time.Millisecond)
		if _, err := theirs.state(); err != nil { // reads every key
			return nil, err
		}
	}
	return f, nil
}

// state lists the keys of the first databases with type, value and whether, and
// about when, they expire. Reading every pool key removes the expired ones.
func (e *end) state() (string, error) {
	var b strings.Builder
	p := e.conns[0]
	for db := range databases {
		if _, err := p.do("SELECT", fmt.Sprint(db)); err != nil {
			return "", err
		}
		names, err := e.scan()
		if err != nil {
			return "", err
		}
		for _, k := range names {
			line, err := e.describe(k)
			if err != nil {
				return "", err
			}
			if line != "" {
				fmt.Fprintf(&b, "db%d %s\n", db, line)
			}
		}
	}
	_, err := p.do("SELECT", "0")
	return b.String(), err
}

func (e *end) describe(key string) (string, error) {
	typ, err := e.conns[0].do("TYPE", key)
	if err != nil {
		return "", err
	}
	val, err := e.value(key, typ.Str)
	if err != nil {
		return "", err
	}
	ttl, err := e.conns[0].do("PTTL", key)
	if err != nil {
		return "", err
	}
	if typ.Str == "none" {
		return "", nil
	}
	life := "for ever"
	if ttl.Int >= 0 {
		life = fmt.Sprintf("for about %d s", (ttl.Int+5000)/10000*10) // the two ends are asked some ms apart
	}
	return fmt.Sprintf("%q %s %.300q (%d bytes), %s", key, typ.Str, val, len(val), life), nil
}

// value reads a whole value as text, the same for equal values.
func (e *end) value(key, typ string) (string, error) {
	read := map[string][]string{
		"string": {"GET", key}, "hash": {"HGETALL", key}, "list": {"LRANGE", key, "0", "-1"}, "set": {"SMEMBERS", key},
		"zset": {"ZRANGE", key, "0", "-1", "WITHSCORES"}, "stream": {"XRANGE", key, "-", "+"}, "none": {"EXISTS", key},
	}[typ]
	if read == nil {
		return "", fmt.Errorf("%q is a %q", key, typ)
	}
	v, err := e.conns[0].do(read...)
	if err != nil || v.Elems == nil {
		return v.Str, err
	}
	var parts []string
	switch typ {
	case "stream":
		return e.streamState(key, tty(v))
	case "hash":
		for i := 0; i+1 < len(v.Elems); i += 2 {
			parts = append(parts, fmt.Sprintf("%q=%q", v.Elems[i].Str, v.Elems[i+1].Str))
		}
	case "zset":
		for i := 0; i+1 < len(v.Elems); i += 2 {
			parts = append(parts, fmt.Sprintf("%q=%v", v.Elems[i].Str, number(v.Elems[i+1].Str)))
		}
	default:
		for _, x := range v.Elems {
			parts = append(parts, strconv.Quote(x.Str))
		}
	}
	if typ == "hash" || typ == "set" {
		sort.Strings(parts)
	}
	return strings.Join(parts, " "), nil
}

// streamState adds to a stream's entries what else it consists of, but for
// times.
func (e *end) streamState(key, entries string) (string, error) {
	v, err := e.conns[0].do("XINFO", "STREAM", key, "FULL", "COUNT", "0")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(entries)
	timeless(&b, v)
	return b.String(), nil
}

// timeless writes a reply without the numbers that depend on when it was asked
// for, or on the structure inside.
func timeless(b *strings.Builder, v resp.Value) {
	for i := 0; i < len(v.Elems); i++ {
		x := v.Elems[i]
		switch x.Str {
		case "radix-tree-keys", "radix-tree-nodes", "seen-time", "active-time":
			i++
			continue
		case "entries":
			i++ // compared by XRANGE
			continue
		}
		switch {
		case idle(x):
		case x.Kind == resp.KindArray:
			b.WriteByte('[')
			timeless(b, x)
			b.WriteByte(']')
		case x.Kind == resp.KindInt && x.Int > 1e12: // the time of a delivery
		case x.Kind == resp.KindInt:
			fmt.Fprintf(b, " %d", x.Int)
		default:
			fmt.Fprintf(b, " %q", x.Str)
		}
	}
}

// idle reports whether a part of XINFO's reply is a consumer without an entry:
// redis-server 7.0 makes one when it gets its first.
func idle(x resp.Value) bool {
	if len(x.Elems) < 2 || !strings.HasPrefix(x.Elems[1].Str, "c") {
		return false
	}
	for i, e := range x.Elems[:len(x.Elems)-1] {
		if e.Str == "pel-count" {
			return x.Elems[i+1].Int == 0
		}
	}
	return false
}

// scan lists the keys of the selected database, and all keys of the pools.
func (e *end) scan() ([]string, error) {
	names := slices.Clone(keys)
	for cursor := "0"; ; {
		v, err := e.conns[0].do("SCAN", cursor, "COUNT", "1000")
		if err != nil {
			return nil, err
		}
		if len(v.Elems) != 2 { // no SCAN yet
			break
		}
		more, err := v.Elems[1].AsStrings()
		if err != nil {
			return nil, err
		}
		names = append(names, more...)
		if cursor = v.Elems[0].Str; cursor == "0" {
			break
		}
	}
	sort.Strings(names)
	return slices.Compact(names), nil
}

// events returns what was published about keys so far.
func (e *end) events() ([]string, error) {
	if _, err := e.conns[0].do("PUBLISH", "done", "x"); err != nil {
		return nil, err
	}
	var out []string
	for {
		v, err := e.subs.receive()
		if err != nil {
			return nil, fmt.Errorf("waiting for events: %w", err)
		}
		if v.Kind != resp.KindError && len(v.Elems) == 3 {
			return out, nil
		}
		if len(v.Elems) == 4 {
			out = append(out, strings.TrimPrefix(v.Elems[2].Str, "__keyevent@")+" "+v.Elems[3].Str)
		}
	}
}

// compareAllEvents compares the events of both, more than once: a key may be
// about to expire.
func compareAllEvents(ops []Op, ours, theirs *end) (f *Fault, err error) {
	var seen [2][]string
	for range 3 {
		for i, e := range []*end{ours, theirs} {
			more, err := e.events()
			if err != nil {
				return nil, err
			}
			seen[i] = append(seen[i], more...)
		}
		if f = compareEvents(ops, seen[0], seen[1]); f == nil {
			return nil, nil
		}
		sleep(40 * time.Millisecond)
		if _, err := theirs.state(); err != nil { // reads every key
			return nil, err
		}
	}
	return f, nil
}

// compareEvents compares the events in order, but for expiries: the two servers
// remove what has expired at times of their own. Those are compared as a set,
// unless a flush came before redis-server had removed what had expired.
func compareEvents(ops []Op, a, b []string) *Fault {
	expired := func(s string) bool { return strings.Contains(s, "__:expired ") }
	// XREADGROUP and XCLAIM make their consumer before they look for entries, and
	// say so, as since Redis 7.2.
	apart := func(s string) bool {
		return expired(s) || strings.Contains(s, "__:xgroup-createconsumer ") || strings.Contains(s, "__:xgroup-delconsumer ")
	}
	// A command that stores nothing deletes what is there: redis-server also what
	// has expired and was not removed.
	died := map[string]bool{}
	for _, s := range append(slices.Clone(a), b...) {
		if expired(s) {
			died[strings.Replace(s, "__:expired ", "__:del ", 1)] = true
		}
	}
	drop := func(s string) bool { return apart(s) || died[s] }
	x, y := slices.DeleteFunc(slices.Clone(a), drop), slices.DeleteFunc(slices.Clone(b), drop)
	if !slices.Equal(x, y) {
		return &Fault{len(ops), "keyspace events", firstDifference(x, y), firstDifference(y, x)}
	}
	for _, o := range ops {
		if name := request(append(o.Args, ""))[0]; strings.HasPrefix(strings.ToUpper(name), "FLUSH") || strings.EqualFold(name, "SWAPDB") {
			return nil
		}
	}
	// Likewise the expiry of what such a command has deleted.
	deleted := func(s string) bool {
		del := strings.Replace(s, "__:expired ", "__:del ", 1)
		return slices.Contains(a, del) || slices.Contains(b, del)
	}
	notExpired := func(s string) bool { return !expired(s) || deleted(s) }
	x, y = slices.DeleteFunc(slices.Clone(a), notExpired), slices.DeleteFunc(slices.Clone(b), notExpired)
	sort.Strings(x)
	sort.Strings(y)
	if !slices.Equal(x, y) {
		return &Fault{len(ops), "expired events", firstDifference(x, y), firstDifference(y, x)}
	}
	return nil
}

// firstDifference shows where a differs from b, with what came before.
func firstDifference(a, b []string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return fmt.Sprintf("%d events; from %d on: %s", len(a), i, strings.Join(a[max(0, i-2):min(len(a), i+3)], ", "))
}
