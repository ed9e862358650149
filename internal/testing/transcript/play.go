package transcript

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// Target runs the requests of a case. One goroutine calls its methods.
type Target interface {
	// Send sends a request on a connection, and opens the connection first if it is new. It
	// does not wait for the reply.
	Send(conn int, args []string) error
	// Next returns the next value that has arrived on a connection, and waits for it if the
	// target runs in real time. ok is false if there is none; for a closed connection v is
	// Closed.
	Next(conn int) (v resp.Value, ok bool)
	// Advance lets time pass.
	Advance(d time.Duration) error
}

// Arriver is a Target that runs in real time. Arrive waits until the target has run the
// sent requests, also those without a reply: a waiting command must be in line before Play
// sends the next one on another connection.
type Arriver interface{ Arrive() error }

// Closed is the value that stands for the end of a connection.
var Closed = resp.Value{Kind: resp.KindStatus, Str: "(closed)"}

// Rules say how replies are compared. The zero value compares them as they are.
type Rules struct {
	// Loose says that the reply to a request may differ. Play takes one value as the reply,
	// and continues with any value.
	Loose func(s *Step) bool
	// Compared, if not nil, gets each compared step; same reports whether the reply is that
	// of the transcript.
	Compared func(s *Step, same bool)
	// Reword, if not nil, changes a line that differs, of the transcript or of the target,
	// before Play compares them again.
	Reword func(line string) string
	// Unseen allows messages that the transcript does not show.
	Unseen bool
	// Slack returns the amount by which an integer in the reply to a request may be smaller
	// than the expected one, because time has passed.
	Slack func(args []string) int64
	// Record stores the target's replies in the case, instead of comparing them.
	Record bool
}

// Mismatch is the error of a step whose outcome differs from the transcript.
type Mismatch struct {
	Case *Case
	Step *Step
	Got  []string
	Why  string
}

// Error shows the step and, line by line, what differs.
func (m *Mismatch) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d: %s: %s\n", m.Case.File, m.Step.Line, m.Case.Title, m.Why)
	if m.Step.Kind == Request {
		fmt.Fprintf(&b, "    %d> %s\n", m.Step.Conn, m.Step.text())
	}
	want := m.Step.Reply
	for i := range max(len(want), len(m.Got)) {
		w, g := at(want, i), at(m.Got, i)
		if i < len(want) && i < len(m.Got) && w == g {
			fmt.Fprintf(&b, "      %s\n", w)
			continue
		}
		if i < len(want) {
			fmt.Fprintf(&b, "    - %s\n", w)
		}
		if i < len(m.Got) {
			fmt.Fprintf(&b, "    + %s\n", g)
		}
	}
	return b.String()
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// Play plays a case and returns nil, a *Mismatch, or the error of the Target. With
// Rules.Record it changes the replies of the case.
func Play(c *Case, t Target, r Rules) error {
	p := player{c: c, t: t, r: r, names: map[string]string{}, open: map[int]bool{}}
	for i := range c.Steps {
		if err := p.step(i); err != nil {
			return err
		}
	}
	for conn := range p.open {
		if err := p.rest(conn, &c.Steps[len(c.Steps)-1]); err != nil {
			return err
		}
	}
	return nil
}

type player struct {
	c     *Case
	t     Target
	r     Rules
	names map[string]string // captures
	open  map[int]bool
}

func (p *player) step(i int) error {
	s := &p.c.Steps[i]
	switch s.Kind {
	case Wait:
		return p.t.Advance(s.Wait)
	case Request:
		if err := p.rest(s.Conn, s); err != nil {
			return err
		}
		p.open[s.Conn] = true
		args := make([]string, len(s.Args))
		for i, a := range s.Args {
			args[i] = p.expand(a)
		}
		err := p.t.Send(s.Conn, args)
		if a, ok := p.t.(Arriver); ok && err == nil && len(s.Reply) == 0 {
			err = a.Arrive()
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", p.c.File, s.Line, err)
		}
	}
	if p.r.Record {
		p.record(i)
		return nil
	}
	loose := s.Kind == Request && p.r.Loose != nil && p.r.Loose(s)
	got := p.receive(s, loose)
	var slack int64
	if s.Kind == Request && p.r.Slack != nil {
		slack = p.r.Slack(s.Args)
	}
	why := p.compare(s, got, slack)
	if p.r.Compared != nil && s.Kind != Wait && len(s.Reply) > 0 {
		p.r.Compared(s, why == "")
	}
	if why != "" && !loose {
		return &Mismatch{p.c, s, got, why}
	}
	return nil
}

// rest checks that a connection has no values that the transcript does not show.
func (p *player) rest(conn int, s *Step) error {
	if !p.open[conn] || p.r.Record || p.r.Unseen {
		return nil
	}
	v, ok := p.t.Next(conn)
	if !ok || v.Kind == Closed.Kind && v.Str == Closed.Str {
		return nil
	}
	return &Mismatch{p.c, &Step{Kind: Message, Line: s.Line, Conn: conn}, Lines(v),
		fmt.Sprintf("connection %d got something that is not shown", conn)}
}

// receive takes the values that make up the expected lines, or one value if the reply may
// differ.
func (p *player) receive(s *Step, one bool) (got []string) {
	want := len(s.Reply)
	if want == 0 && s.Kind == Request {
		return nil
	}
	for {
		v, ok := p.t.Next(s.Conn)
		if !ok {
			return got
		}
		got = append(got, Lines(v)...)
		if len(got) >= want || one || s.Kind == Message || hasEllipsis(s.Reply) {
			return got
		}
	}
}

// record takes all values, but leaves one for each message that the transcript shows next.
func (p *player) record(i int) {
	s := &p.c.Steps[i]
	var vals []resp.Value
	for {
		v, ok := p.t.Next(s.Conn)
		if !ok || v.Str == Closed.Str && len(vals) > 0 {
			break
		}
		vals = append(vals, v)
		if s.Kind == Message || v.Str == Closed.Str {
			break
		}
	}
	keep := len(vals)
	if u, ok := p.t.(interface{ Unread(int, []resp.Value) }); ok && s.Kind == Request {
		for _, next := range p.c.Steps[i+1:] {
			if next.Kind != Message {
				break
			}
			if next.Conn == s.Conn && keep > 1 {
				keep--
			}
		}
		u.Unread(s.Conn, vals[keep:])
	}
	var got []string
	for _, v := range vals[:keep] {
		got = append(got, Lines(v)...)
	}
	if p.compare(s, got, 0) == "" {
		return
	}
	s.Reply = got
	if slices.ContainsFunc(got, ambiguous) {
		s.Reply = []string{"..."}
	}
}

// ambiguous reports whether Parse would read a line of a reply as another kind of line.
// The line must be from a text that is printed without quotes.
func ambiguous(line string) bool {
	_, _, _, isPrompt := prompt(line)
	return isPrompt || line[0] == '~' || line[0] == '#' && !looksLikeReply(line)
}

// Lines prints a value as redis-cli --no-raw does, line by line, without blank
// lines.
func Lines(v resp.Value) []string {
	var out []string
	for _, line := range strings.Split(string(wire.AppendTTY(nil, v)), "\n") {
		if line = strings.TrimRight(line, " \t\r"); line != "" {
			out = append(out, line)
		}
	}
	return out
}

var name = regexp.MustCompile(`\$[A-Za-z_][A-Za-z0-9_]*`)

// expand replaces the captures in an argument. Other text stays.
func (p *player) expand(arg string) string {
	return name.ReplaceAllStringFunc(arg, func(n string) string {
		if v, ok := p.names[n]; ok {
			return v
		}
		return n
	})
}

func hasEllipsis(lines []string) bool {
	return slices.ContainsFunc(lines, func(l string) bool { return strings.TrimSpace(l) == "..." })
}

// compare matches lines and stores captures; it returns a description of the difference,
// "" if there is none.
func (p *player) compare(s *Step, got []string, slack int64) string {
	if s.Unordered {
		if !sameElements(s.Reply, got) {
			return "the elements differ"
		}
		return ""
	}
	i := 0
	for w := 0; w < len(s.Reply); w++ {
		line := s.Reply[w]
		if strings.TrimSpace(line) == "..." {
			if w == len(s.Reply)-1 {
				return ""
			}
			for i < len(got) && !p.match(s.Reply[w+1], got[i], slack) {
				i++
			}
			continue
		}
		if i == len(got) {
			return p.missing(s, got)
		}
		if !p.match(line, got[i], slack) {
			return "the reply differs"
		}
		i++
	}
	if i < len(got) {
		return "the reply is longer"
	}
	return ""
}

func (p *player) missing(s *Step, got []string) string {
	switch {
	case len(got) > 0:
		return "the reply is shorter"
	case s.Kind == Message:
		return fmt.Sprintf("nothing arrived on connection %d", s.Conn)
	}
	return "there is no reply"
}

var (
	relation = regexp.MustCompile(`^(.*\$[A-Za-z_][A-Za-z0-9_]*) (<|<=|>|>=) (\$[A-Za-z_][A-Za-z0-9_]*|-?[0-9]+)$`)
	integer  = regexp.MustCompile(`^(.*)\(integer\) (-?[0-9]+)$`)
)

// match matches one line, unchanged or reworded.
func (p *player) match(want, got string, slack int64) bool {
	return p.matchAs(want, got, slack) || p.r.Reword != nil && p.matchAs(p.r.Reword(want), p.r.Reword(got), slack)
}

func (p *player) matchAs(want, got string, slack int64) bool {
	if want == got {
		return true
	}
	op, bound := "", ""
	if m := relation.FindStringSubmatch(want); m != nil {
		want, op, bound = m[1], m[2], p.expand(m[3])
	}
	pattern, names := p.pattern(want)
	m := pattern.FindStringSubmatch(got)
	if m == nil {
		return slack > 0 && nearly(p.expand(want), got, slack)
	}
	if op != "" {
		last := m[len(m)-1]
		if len(names) == 0 || !compareNumbers(last, op, bound) {
			return false
		}
	}
	for i, n := range names {
		if n != "$_" {
			p.names[n] = m[i+1]
		}
	}
	return true
}

// pattern turns a line into a regular expression; names are the captures that
// are new.
func (p *player) pattern(line string) (*regexp.Regexp, []string) {
	var b strings.Builder
	var names []string
	b.WriteString("^")
	rest := line
	for {
		loc := name.FindStringIndex(rest)
		if loc == nil {
			break
		}
		n := rest[loc[0]:loc[1]]
		b.WriteString(regexp.QuoteMeta(rest[:loc[0]]))
		if v, ok := p.names[n]; ok {
			b.WriteString(regexp.QuoteMeta(v))
		} else {
			b.WriteString("(.+)")
			names = append(names, n)
		}
		rest = rest[loc[1]:]
	}
	b.WriteString(regexp.QuoteMeta(rest) + "$")
	return regexp.MustCompile(b.String()), names
}

func compareNumbers(a, op, b string) bool {
	x, err1 := strconv.ParseInt(a, 10, 64)
	y, err2 := strconv.ParseInt(b, 10, 64)
	if err1 != nil || err2 != nil {
		return false
	}
	switch op {
	case "<":
		return x < y
	case "<=":
		return x <= y
	case ">":
		return x > y
	}
	return x >= y
}

// nearly reports whether two integers are equal, or the second is smaller by at most
// slack.
func nearly(want, got string, slack int64) bool {
	w, g := integer.FindStringSubmatch(want), integer.FindStringSubmatch(got)
	if w == nil || g == nil || w[1] != g[1] {
		return false
	}
	x, _ := strconv.ParseInt(w[2], 10, 64)
	y, _ := strconv.ParseInt(g[2], 10, 64)
	return x > 0 && y >= 0 && y <= x && x-y <= slack
}
