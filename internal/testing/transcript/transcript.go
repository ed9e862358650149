// Package transcript reads and runs transcripts: tests that look like a
// session with redis-cli.
//
//	# a lease that ran out                  a title starts a case, on a fresh engine
//	> SET k v PX 1500                       a request; arguments are quoted as in redis-cli
//	OK                                      its reply, as redis-cli --no-raw prints it
//	~ 1501ms                                time passes
//	2> GET k                                a second connection speaks
//	(nil)
//	> KEYS * (unordered)                    the elements come in any order
//	1) "a"
//	2) "b"
//	> TIME
//	1) "$now"                               captures; $now in what follows stands for it
//	...                                     any further lines
//	2< 1) "message"                         a message arrives on connection 2
//	2) "news"
//	3) "hello"
//
// $_ stands for any text. A comparison with a number or an earlier capture may follow a
// capture: (integer) $second > $first. A request without a reply below it gets none at
// once; the transcript shows a late reply as a message. It must show every message.
// "(closed)" stands for the end of a connection. Blank lines have no meaning. Further
// lines that begin with "# " between the title and the first step are comments, or a
// directive:
//
//	# oracle: none, sliding deadlines are our own
//
// means that no test plays the case against a real server, and
//
//	# differs: shortest-numbers
//
// names the difference of package compat because of which some servers reply differently.
// The same word after one request concerns only its reply:
//
//	> GETRANGE k 0 -100 (differs: getrange-end)
//
// Several IDs are separated by commas.
// The clock of a case begins at Start and stands still between steps.
//
// Start reading at Parse, then Play; Engine is what cases usually run on, and
// Server is a real one.
package transcript

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/wire"
)

// Start is the time at which the clock of a case begins. It is a whole number of seconds,
// and in the past for real servers.
var Start = time.Unix(1_700_000_000, 0).UTC()

// Case is one test, from a title to the next title.
type Case struct {
	File   string
	Line   int // of the title
	Title  string
	Oracle string // the text of the oracle directive
	// Differs are the IDs of the differences that the differs directive names.
	Differs []string
	Steps   []Step
}

// Kind is the kind of a step.
type Kind uint8

// These are the kinds of steps.
const (
	Request Kind = iota // connection Conn sends Args and gets Reply
	Message             // Reply arrives on connection Conn
	Wait                // Wait passes
)

// Step is one step of a case: a request, a message or a wait.
type Step struct {
	Kind      Kind
	Line      int // in the file
	Conn      int // from 1
	Text      string
	Args      []string
	Unordered bool
	Differs   []string // the IDs of the differences that the request names
	Reply     []string // lines
	Wait      time.Duration
}

// Load parses a file.
func Load(path string) ([]Case, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, string(text))
}

// Parse splits a transcript into its cases. Messages show the name, which is also the
// title of the lines before the first title. Errors name file and line.
func Parse(name, text string) ([]Case, error) {
	p := parser{file: name}
	for i, line := range strings.Split(text, "\n") {
		if err := p.line(i+1, strings.TrimRight(line, " \t\r")); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
	}
	return p.cases, nil
}

type parser struct {
	file  string
	cases []Case
}

// current returns the case that the parser reads. It makes one if there was no title yet.
func (p *parser) current(line int) *Case {
	if len(p.cases) == 0 {
		p.cases = append(p.cases, Case{File: p.file, Line: line, Title: p.file})
	}
	return &p.cases[len(p.cases)-1]
}

func (p *parser) line(n int, line string) error {
	switch {
	case line == "":
		return nil
	case strings.HasPrefix(line, "#") && !looksLikeReply(line):
		p.comment(n, strings.TrimSpace(line[1:]))
		return nil
	}
	c := p.current(n)
	if rest, ok := strings.CutPrefix(line, "~"); ok {
		d, err := time.ParseDuration(strings.TrimSpace(rest))
		if err != nil || d < 0 {
			return fmt.Errorf("%q is not a duration; write 1500ms or 2s", strings.TrimSpace(rest))
		}
		c.Steps = append(c.Steps, Step{Kind: Wait, Line: n, Wait: d})
		return nil
	}
	if conn, sign, rest, ok := prompt(line); ok {
		s := Step{Line: n, Conn: conn, Text: rest}
		if sign == '<' {
			s.Kind = Message
			if rest != "" {
				s.Reply = []string{rest}
			}
		} else if err := s.request(); err != nil {
			return err
		}
		c.Steps = append(c.Steps, s)
		return nil
	}
	if len(c.Steps) == 0 || c.Steps[len(c.Steps)-1].Kind == Wait {
		return fmt.Errorf("a reply without a request: %q", line)
	}
	s := &c.Steps[len(c.Steps)-1]
	s.Reply = append(s.Reply, line)
	return nil
}

// looksLikeReply tells the boolean #t from a comment: comments have a blank.
func looksLikeReply(line string) bool { return len(line) > 1 && line[1] != ' ' && line[1] != '#' }

// comment reads a line that begins with "#": a title, or further lines about the case that
// has just begun.
func (p *parser) comment(n int, text string) {
	if k := len(p.cases); k > 0 && len(p.cases[k-1].Steps) == 0 && p.cases[k-1].Title != p.file {
		if rest, ok := strings.CutPrefix(text, "oracle:"); ok {
			p.cases[k-1].Oracle = strings.TrimSpace(rest)
		}
		if rest, ok := strings.CutPrefix(text, "differs:"); ok {
			p.cases[k-1].Differs = strings.Split(strings.TrimSpace(rest), ", ")
		}
		return
	}
	p.cases = append(p.cases, Case{File: p.file, Line: n, Title: text})
}

// prompt splits "> ...", "2> ..." and "2< ...".
func prompt(line string) (conn int, sign byte, rest string, ok bool) {
	i := 0
	for i < len(line) && line[i] >= '0' && line[i] <= '9' {
		i++
	}
	if i == len(line) || line[i] != '>' && line[i] != '<' || i+1 < len(line) && line[i+1] != ' ' {
		return 0, 0, "", false
	}
	conn = 1
	if i > 0 {
		conn, _ = strconv.Atoi(line[:i])
	}
	return conn, line[i], strings.TrimPrefix(line[i+1:], " "), conn > 0
}

// unordered is the remark after a request whose reply has no order.
const unordered = "(unordered)"

// differs matches the remark after a request to which some servers reply differently.
var differs = regexp.MustCompile(` \(differs: ([a-z0-9-]+(, [a-z0-9-]+)*)\)$`)

func (s *Step) request() error {
	text := s.Text
	if m := differs.FindStringSubmatchIndex(text); m != nil {
		s.Differs, text = strings.Split(text[m[2]:m[3]], ", "), text[:m[0]]
	}
	if rest, ok := strings.CutSuffix(text, unordered); ok {
		s.Unordered, text = true, rest
	}
	args, ok := wire.SplitArgs(text)
	if !ok {
		return fmt.Errorf("unbalanced quotes in %q", text)
	}
	if len(args) == 0 {
		return fmt.Errorf("an empty request")
	}
	s.Args = args
	return nil
}

// Format writes cases as Parse reads them, titles included. Random tests print a failing
// sequence with it.
func Format(cases ...Case) string {
	var b strings.Builder
	for i, c := range cases {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "# %s\n", c.Title)
		for _, s := range c.Steps {
			s.format(&b)
		}
	}
	return b.String()
}

func (s *Step) format(b *strings.Builder) {
	conn := ""
	if s.Conn > 1 {
		conn = strconv.Itoa(s.Conn)
	}
	reply := s.Reply
	switch s.Kind {
	case Wait:
		fmt.Fprintf(b, "~ %v\n", s.Wait)
		return
	case Request:
		fmt.Fprintf(b, "%s> %s\n", conn, s.text())
	case Message:
		fmt.Fprintf(b, "%d< ", s.Conn)
		if len(reply) > 0 {
			b.WriteString(reply[0])
			reply = reply[1:]
		}
		b.WriteByte('\n')
	}
	for _, line := range reply {
		b.WriteString(line + "\n")
	}
}

// text returns the request's line; it makes the line from Args if the step has none.
func (s *Step) text() string {
	if s.Text != "" {
		return s.Text
	}
	return Line(s.Args)
}

// Line returns a request as one line, with the quotes that it needs.
func Line(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = a
		if quoted := string(wire.AppendQuoted(nil, a)); a == "" || quoted != `"`+a+`"` || strings.ContainsAny(a, " '") {
			words[i] = quoted
		}
	}
	return strings.Join(words, " ")
}
