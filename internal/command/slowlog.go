package command

import (
	"fmt"
	"strings"
	"sync"

	"github.com/ebbdb/ebb/resp"
)

// slowlog keeps the latest calls that took long.
type slowlog struct {
	mu      sync.Mutex // guards what follows
	next    int64
	entries []slowCall // oldest first
}

// slowCall is one of them.
type slowCall struct {
	id, at, us int64 // at in seconds since 1970
	args       []string
	addr, name string
}

// How much of a call's arguments is kept, and of its client's name.
const (
	slowArgs  = 32
	slowBytes = 128
)

// clipped returns a copy of the first limit bytes of a text that a log keeps, and says
// how many more there were.
func clipped[T string | []byte](text T, limit int) string {
	if len(text) <= limit {
		return strings.Clone(string(text))
	}
	return fmt.Sprintf("%s... (%d more bytes)", text[:limit], len(text)-limit)
}

// add keeps a call, whose end was at us since 1970, and lets go of the oldest ones
// beyond limit.
func (l *slowlog) add(c *Session, args [][]byte, end, us int64, limit int) {
	e := slowCall{at: end / 1e6, us: us, args: trimArgs(args), addr: "embedded"}
	if c.conn != nil {
		e.addr = c.conn.RemoteAddr()
	}
	if n := c.view.name.Load(); n != nil {
		e.name = clipped(*n, slowBytes)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.id = l.next
	l.next++
	l.entries = append(l.entries, e)
	if over := len(l.entries) - limit; over > 0 {
		clear(l.entries[:over])
		l.entries = l.entries[over:]
	}
}

// trimArgs copies a call's arguments as far as they are kept.
func trimArgs(args [][]byte) []string {
	n := min(len(args), slowArgs)
	out := make([]string, n)
	for i := range out {
		switch a := args[i]; {
		case len(args) > slowArgs && i == slowArgs-1:
			out[i] = fmt.Sprintf("... (%d more arguments)", len(args)-slowArgs+1)
		default:
			out[i] = clipped(a, slowBytes)
		}
	}
	return out
}

// latest returns up to n calls, the latest first; all of them if n is -1.
func (l *slowlog) latest(n int64) []slowCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n < 0 || n > int64(len(l.entries)) {
		n = int64(len(l.entries))
	}
	out := make([]slowCall, 0, n)
	for i := range n {
		out = append(out, l.entries[int64(len(l.entries))-1-i])
	}
	return out
}

func (l *slowlog) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries)
}

func (l *slowlog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}

var specSlowlog = Spec{
	Name: "slowlog", Group: GroupServer, Since: "2.2.12", Complexity: "Depends on subcommand.",
	Summary: "A container for commands about calls that took long.",
	Sub:     []*Spec{&specSlowlogGet, &specSlowlogHelp, &specSlowlogLen, &specSlowlogReset},
}

var specSlowlogHelp = helpSince("slowlog", "6.2.0")

// helpSince is a container's HELP that came with a version.
func helpSince(container, since string) Spec {
	s := HelpSpec(container, GroupServer, 0)
	s.Since = since
	return s
}

var specSlowlogGet = Spec{
	Name: "slowlog|get", Group: GroupServer, Since: "2.2.12", Complexity: "O(N) where N is the number of entries returned",
	Summary: "Returns the latest calls that took longer than slowlog-log-slower-than.",
	Flags:   Admin | Loading | Stale,
	FanOut:  FanOutOne,
	Tips:    []string{"request_policy:all_nodes", "nondeterministic_output"},
	Args:    []Arg{Opt(Int("count"))},
	History: []Change{{"4.0.0", "Added client IP address, port and name to the reply."}},
	Replies: "Up to count calls, 10 by default, -1 for all, the latest first: number, time, microseconds, arguments (32 at most, of 128 bytes), the client's address and name.",
	Examples: `
> CONFIG SET slowlog-log-slower-than 0
OK
> SET k v
OK
> SLOWLOG GET 1
1) 1) (integer) 1
   2) (integer) 1700000000
   3) (integer) 0
   4) 1) "SET"
      2) "k"
      3) "v"
   5) $_
   6) ""
`,
	Run: runSlowlogGet,
}

func runSlowlogGet(c *Ctx) error {
	n := int64(10)
	switch {
	case len(c.Args) > 3:
		return wrongSubcommand(c)
	case len(c.Args) == 3:
		var ok bool
		if n, ok = resp.ParseInt(c.Args[2]); !ok || n < -1 {
			return ReplyError("ERR count should be greater than or equal to -1")
		}
	}

	calls := serviceOf(c).slowlog.latest(n)

	c.Out.Array(len(calls))
	for _, e := range calls {
		c.Out.Array(6)
		c.Out.Int(e.id)
		c.Out.Int(e.at)
		c.Out.Int(e.us)
		c.Out.Array(len(e.args))
		for _, a := range e.args {
			c.Out.BulkString(a)
		}
		c.Out.BulkString(e.addr)
		c.Out.BulkString(e.name)
	}
	return nil
}

var specSlowlogLen = Spec{
	Name: "slowlog|len", Group: GroupServer, Since: "2.2.12", Complexity: "O(1)",
	Summary: "Returns how many calls the slow log holds.",
	Flags:   Admin | Loading | Stale,
	FanOut:  FanOutOne,
	Tips:    []string{"request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"},
	Examples: `
> SLOWLOG LEN
(integer) 0
`,
	Run: runSlowlogLen,
}

func runSlowlogLen(c *Ctx) error {
	c.Out.Int(int64(serviceOf(c).slowlog.len()))
	return nil
}

var specSlowlogReset = Spec{
	Name: "slowlog|reset", Group: GroupServer, Since: "2.2.12", Complexity: "O(N) where N is the number of entries in the slowlog",
	Summary: "Empties the slow log.",
	Flags:   Admin | Loading | Stale,
	FanOut:  FanOutOne,
	Tips:    everyNode,
	Examples: `
> SLOWLOG RESET
OK
> SLOWLOG LEN
(integer) 0
`,
	Run: runSlowlogReset,
}

func runSlowlogReset(c *Ctx) error {
	serviceOf(c).slowlog.reset()
	c.Out.OK()
	return nil
}
