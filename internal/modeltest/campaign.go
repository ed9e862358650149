package modeltest

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"sort"
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
}

// Fault is what differed first.
type Fault struct {
	At           int // index of the operation; len(ops) for the state at the end
	What         string
	Ours, Theirs string
}

// patience is how long a reply may take before it is missing.
const patience = 10 * time.Second

// end is one server during a sequence.
type end struct {
	conns []*peer // by number; 0 is for looking at the state
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

// open connects to a server and empties it.
func open(addr string) (*end, error) {
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
	return e, nil
}

func (e *end) close() {
	for _, c := range e.conns {
		_ = c.Close()
	}
}

// Run plays a sequence and returns the first fault, nil if there is none. The
// error is that of a connection.
func (c *Campaign) Run(ops []Op) (*Fault, error) {
	ours, err := open(c.Ours)
	if err != nil {
		return nil, err
	}
	defer ours.close()
	theirs, err := open(c.Theirs)
	if err != nil {
		return nil, err
	}
	defer theirs.close()

	queued := map[int][][]string{} // what waits for EXEC, by connection
	for i, o := range ops {
		if o.Wait > 0 {
			sleep(o.Wait)
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
			same = sameReply(o.Args, a, b)
			if strings.EqualFold(o.Args[0], "DISCARD") {
				delete(queued, o.Conn)
			}
		}
		if !same {
			return &Fault{i, "reply", tty(a), tty(b)}, nil
		}
	}
	return c.compareState(ops, ours, theirs)
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
	a, err := ours.events()
	if err != nil {
		return nil, err
	}
	b, err := theirs.events()
	if err != nil {
		return nil, err
	}
	if f := compareEvents(ops, a, b); f != nil {
		return f, nil
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
	val, err := e.conns[0].do("GET", key)
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
	return fmt.Sprintf("%q %s %.100q (%d bytes), %s", key, typ.Str, val.Str, len(val.Str), life), nil
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

// compareEvents compares the events in order, but for expiries: the two servers
// remove what has expired at times of their own. Those are compared as a set,
// unless a flush came before redis-server had removed what had expired.
func compareEvents(ops []Op, a, b []string) *Fault {
	expired := func(s string) bool { return strings.Contains(s, "__:expired ") }
	x, y := slices.DeleteFunc(slices.Clone(a), expired), slices.DeleteFunc(slices.Clone(b), expired)
	if !slices.Equal(x, y) {
		return &Fault{len(ops), "keyspace events", firstDifference(x, y), firstDifference(y, x)}
	}
	for _, o := range ops {
		if o.Args != nil && (strings.HasPrefix(strings.ToUpper(o.Args[0]), "FLUSH") || strings.EqualFold(o.Args[0], "SWAPDB")) {
			return nil
		}
	}
	notExpired := func(s string) bool { return !expired(s) }
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
