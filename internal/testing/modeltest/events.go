package modeltest

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/compat"
	"github.com/ebbdb/ebb/resp"
)

// event is a published event of a key.
type event struct {
	op   int // the operation that it came with or after
	name string
	key  string // behind its database
}

func (e event) String() string { return e.name + " " + e.key }

// mark tells the connection of the events that an operation has its reply.
func (c *Campaign) mark(i int, ours, theirs *end) error {
	_, _, err := c.both(ours.conns[0], theirs.conns[0], []string{"PUBLISH", "done", strconv.Itoa(i)})
	return err
}

// readEvents returns the events of keys that were published so far. at is the operation at
// which the last reading ended.
func (e *end) readEvents(at int) ([]event, error) {
	if _, err := e.conns[0].do("PUBLISH", "done", "x"); err != nil {
		return nil, err
	}
	var out []event
	seen := 0
	for {
		v, err := e.subs.receive()
		if err != nil {
			return nil, fmt.Errorf("waiting for events: %w", err)
		}
		switch {
		case v.Kind != resp.KindError && len(v.Elems) == 3:
			i, err := strconv.Atoi(v.Elems[2].Str)
			if err != nil {
				i = at
			}
			for ; seen < len(out); seen++ {
				out[seen].op = i
			}
			if err != nil {
				return out, nil
			}
		case len(v.Elems) == 4:
			db, name, _ := strings.Cut(strings.TrimPrefix(v.Elems[2].Str, "__keyevent@"), "__:")
			out = append(out, event{0, name, "db" + db + " " + v.Elems[3].Str})
		}
	}
}

// compareAllEvents compares the events of both, more than once: a key may be
// about to expire.
func (c *Campaign) compareAllEvents(ops []Op, ours, theirs *end) (f *Fault, err error) {
	var seen [2][]event
	for range 3 {
		for i, e := range []*end{ours, theirs} {
			more, err := e.readEvents(len(ops))
			if err != nil {
				return nil, err
			}
			seen[i] = append(seen[i], more...)
		}
		if f = c.compareEvents(ops, seen[0], seen[1]); f == nil {
			return nil, nil
		}
		sleep(40 * time.Millisecond)
		if _, err := theirs.state(c.fields); err != nil { // reads every key
			return nil, err
		}
	}
	return f, nil
}

// expiryEvents are the events of removals of expired data. Each server chooses their time.
var expiryEvents = []string{"expired", "hexpired"}

// compareEvents compares the events of each operation in order, but for expiries, which
// come at times of their own: those are compared as a set, unless a flush came before the
// other server had removed what had expired.
func (c *Campaign) compareEvents(ops []Op, a, b []event) *Fault {
	expired := func(e event) bool { return slices.Contains(expiryEvents, e.name) }
	// A command that stores nothing deletes what is there: redis-server also what
	// has expired and was not removed. A hash whose last field expires is deleted.
	died := map[string]bool{}
	for _, e := range append(slices.Clone(a), b...) {
		if expired(e) {
			died[e.key] = true
			if swaps(ops) { // it may have been in another database by then
				for db := range databases {
					_, key, _ := strings.Cut(e.key, " ")
					died[fmt.Sprintf("db%d %s", db, key)] = true
				}
			}
		}
	}
	drop := func(e event) bool {
		return expired(e) || e.name == "keymiss" || e.name == "del" && died[e.key] || c.apart(e)
	}
	c.countMisses(len(ops), a, b)
	x, y := slices.DeleteFunc(slices.Clone(a), drop), slices.DeleteFunc(slices.Clone(b), drop)
	for len(x) > 0 || len(y) > 0 {
		op := len(ops)
		if len(x) > 0 {
			op = x[0].op
		}
		if len(y) > 0 {
			op = min(op, y[0].op)
		}
		var these, those []event
		these, x = until(x, op)
		those, y = until(y, op)
		var args []string
		if op < len(ops) {
			args = ops[op].Args
		}
		if !sameEvents(these, those) && !c.allowedEvents(args, these, those) {
			return &Fault{op, "keyspace events of", fmt.Sprint(these), fmt.Sprint(those)}
		}
	}
	for _, o := range ops {
		if name := request(append(o.Args, ""))[0]; strings.HasPrefix(strings.ToUpper(name), "FLUSH") || strings.EqualFold(name, "SWAPDB") {
			return nil
		}
	}
	if c.Server == compat.Valkey9 {
		a, b = withoutPast(a, a), withoutPast(b, a)
	}
	return c.compareExpiries(len(ops), a, b)
}

// countMisses counts the operations that had different events about keys that are not there.
func (c *Campaign) countMisses(ops int, a, b []event) {
	for op := range ops {
		other := func(e event) bool { return e.op != op || e.name != "keymiss" }
		if !sameEvents(slices.DeleteFunc(slices.Clone(a), other), slices.DeleteFunc(slices.Clone(b), other)) {
			c.tally.difference(keymissLookups)
		}
	}
}

// until splits events behind those of an operation.
func until(events []event, op int) (these, rest []event) {
	n := 0
	for n < len(events) && events[n].op <= op {
		n++
	}
	return events[:n], events[n:]
}

func sameEvents(a, b []event) bool {
	return slices.EqualFunc(a, b, func(x, y event) bool { return x.name == y.name && x.key == y.key })
}

// withoutPast leaves out the expiries of keys that a command on ebb has set with a
// deadline in the past. Valkey publishes the event at once for a key that existed before,
// and later or never for another.
func withoutPast(events, ours []event) []event {
	set, past := map[event]bool{}, map[string]bool{}
	for _, e := range ours {
		if e.name == "set" {
			set[e] = true
		}
		if e.name == "expired" && set[event{e.op, "set", e.key}] {
			past[e.key] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(events), func(e event) bool { return e.name == "expired" && past[e.key] })
}

// compareExpiries compares the keys that have expired. One that a command has deleted,
// which stored nothing there, may have expired on one server alone.
func (c *Campaign) compareExpiries(at int, a, b []event) *Fault {
	deleted := map[string]bool{}
	for _, e := range append(slices.Clone(a), b...) {
		if e.name == "del" {
			deleted[e.key] = true
		}
	}
	names := func(all []event) (out []string) {
		for _, e := range all {
			if e.name == "expired" && !deleted[e.key] {
				out = append(out, e.String())
			}
		}
		sort.Strings(out)
		return out
	}
	x, y := names(a), names(b)
	if !slices.Equal(x, y) {
		// The other server may overwrite an expired key without an event.
		written := map[string]bool{}
		for _, e := range b {
			written["expired "+e.key] = written["expired "+e.key] || e.name != "expired"
		}
		told := slices.Clone(y)
		rest := slices.DeleteFunc(slices.Clone(x), func(s string) bool {
			if i := slices.Index(told, s); i >= 0 {
				told = slices.Delete(told, i, i+1)
				return true
			}
			return written[s]
		})
		if len(rest)+len(told) == 0 {
			c.tally.difference(expiredOverwritten)
			return nil
		}
	}
	if !slices.Equal(x, y) {
		return &Fault{at, "expired events", firstDifference(x, y), firstDifference(y, x)}
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

// comparePushes compares the messages that came to the connections of RESP3, in order.
func comparePushes(ops []Op, ours, theirs *end) (*Fault, error) {
	for i := 1; i < len(ours.conns); i++ {
		x, y := ours.conns[i], theirs.conns[i]
		if x == ours.subs {
			break
		}
		if err := x.drain(); err != nil {
			return nil, err
		}
		if err := y.drain(); err != nil {
			return nil, err
		}
		a, b := settle(x.pushed), settle(y.pushed)
		if !slices.Equal(a, b) {
			return &Fault{len(ops), fmt.Sprintf("messages to connection %d", i), firstDifference(a, b), firstDifference(b, a)}, nil
		}
	}
	return nil, nil
}

// settle sorts runs of messages for patterns, because their order is not defined.
func settle(pushed []string) []string {
	out := slices.Clone(pushed)
	byPattern := func(i int) bool { return strings.Contains(out[i], "\"pmessage\"") }
	for i := 0; i < len(out); i++ {
		n := i
		for n < len(out) && byPattern(n) {
			n++
		}
		if n > i {
			slices.Sort(out[i:n])
			i = n
		}
	}
	return out
}

// drain reads the pushes on a connection.
func (p *peer) drain() error {
	_, err := p.do("PING")
	return err
}
