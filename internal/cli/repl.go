package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ergochat/readline"
)

// repl reads commands line by line until the input ends or the user quits. From a terminal
// it offers the line editor.
func (c *client) repl() int {
	c.talk = true
	read, stop, err := c.lines()
	if err != nil {
		fmt.Fprintln(c.env.Err, "Error:", err)
		return 1
	}
	defer stop()
	for c.ctx.Err() == nil {
		line, err := read()
		switch {
		case err == errGivenUp:
			continue
		case err != nil:
			return c.linesEnded(err)
		}
		if quit := c.line(line); quit {
			return 0
		}
	}
	return 1
}

// linesEnded returns the exit status when there is no further line.
func (c *client) linesEnded(err error) int {
	if errors.Is(err, readline.ErrInterrupt) || err == io.EOF {
		return 0
	}
	fmt.Fprintln(c.env.Err, "Error:", err)
	return 1
}

// errGivenUp says that the user discarded a line with Ctrl-C.
var errGivenUp = errors.New("line given up")

// lines returns a function that reads the next line, and one that closes the input.
func (c *client) lines() (read func() (string, error), stop func(), err error) {
	if !c.env.InTTY {
		r := bufio.NewReader(c.env.In)
		return func() (string, error) {
			line, err := r.ReadString('\n')
			if err == io.EOF && line != "" {
				err = nil
			}
			return line, err
		}, func() {}, nil
	}
	c.lookUp()
	if c.env.Getenv("TERM") == "dumb" { // it knows no escape sequences
		r := bufio.NewReader(c.env.In)
		return func() (string, error) {
			fmt.Fprint(c.env.Out, c.prompt())
			return r.ReadString('\n')
		}, func() {}, nil
	}
	e := &editor{commands: func() []command { return c.docs.all(false) }, hints: func() bool { return c.hints && !c.debugging }}
	rl, err := newLineEditor(e, historyFile(c.env.Getenv))
	if err != nil {
		return nil, nil, err
	}
	return func() (string, error) {
		e.prompt = c.prompt()
		rl.SetPrompt(e.prompt)
		line, err := rl.ReadLine()
		if errors.Is(err, readline.ErrInterrupt) && e.length > 0 {
			return "", errGivenUp
		}
		if err == nil && strings.TrimSpace(line) != "" && !secret(line) {
			_ = rl.SaveToHistory(line)
		}
		return line, err
	}, func() { rl.Close() }, nil
}

// lookUp begins to fetch the command table of the present server.
func (c *client) lookUp() {
	c.docs.stop()
	c.docs = startLookup(c.ctx, c.opt)
}

// prompt returns the prompt, such as 127.0.0.1:6379[2](TX)> . It leaves out database 0 and
// (TX) outside of a transaction.
func (c *client) prompt() string {
	switch {
	case c.conn == nil:
		return "not connected> "
	case c.debugging:
		return "lua debugger> "
	}
	s := c.opt.addr()
	if c.opt.Socket != "" {
		s = "redis " + s
	}
	if c.db != 0 {
		s += "[" + strconv.Itoa(c.db) + "]"
	}
	if c.tx {
		s += "(TX)"
	}
	return s + "> "
}

// line runs a line, and returns true if it was quit.
func (c *client) line(line string) (quit bool) {
	words, ok := wire.SplitArgs(line)
	if !ok {
		fmt.Fprintln(c.env.Out, "Invalid argument(s)")
		return false
	}
	if len(words) == 0 {
		return false
	}
	switch strings.ToLower(words[0]) {
	case "quit", "exit":
		return true
	case "help", "?":
		c.help(words[1:])
		return false
	case ":set":
		c.preference(words[1:])
		return false
	case "clear":
		if len(words) == 1 {
			_, _ = io.WriteString(c.env.Out, "\x1b[H\x1b[2J")
			return false
		}
	case "connect":
		if len(words) == 3 {
			c.reconnect(words[1], words[2])
			return false
		}
	}
	c.repeat(words)
	return false
}

// repeat runs a command. A number before the command is the number of runs.
func (c *client) repeat(words []string) {
	times := 1
	if n, err := strconv.Atoi(words[0]); err == nil && len(words) > 1 {
		if n <= 0 || n > math.MaxInt32 {
			fmt.Fprintln(c.env.Out, "Invalid repeat count: it must be a positive number.")
			return
		}
		times, words = n, words[1:]
	}
	start := time.Now()
	for ; times > 0; times-- {
		if !c.run(words) {
			return
		}
		if times > 1 && !c.pause(c.opt.Interval) {
			return
		}
	}
	if d := time.Since(start); d >= 500*time.Millisecond && c.out.format == FormatTTY {
		fmt.Fprintf(c.env.Out, "(%.2fs)\n", d.Seconds())
	}
}

// reconnect goes to another server.
func (c *client) reconnect(host, port string) {
	n, err := strconv.Atoi(port)
	if err != nil {
		fmt.Fprintln(c.env.Out, "Usage: connect host port")
		return
	}
	c.opt.Host, c.opt.Port, c.opt.Socket = host, n, ""
	if c.connect() && c.env.InTTY {
		c.lookUp()
	}
}

func (c *client) preference(words []string) {
	switch strings.ToLower(strings.Join(words, " ")) {
	case "hints":
		c.hints = true
	case "nohints":
		c.hints = false
	default:
		fmt.Fprintln(c.env.Out, "Unknown preference; known are hints and nohints.")
	}
}

// secret reports whether a line contains a password and must not go into the history.
func secret(line string) bool {
	words := strings.Fields(strings.ToLower(line))
	if len(words) == 0 {
		return false
	}
	rest := " " + strings.Join(words[1:], " ") + " "
	switch words[0] {
	case "auth":
		return true
	case "acl":
		return strings.HasPrefix(rest, " setuser ")
	case "config":
		return strings.HasPrefix(rest, " set ") && (strings.Contains(rest, " requirepass ") || strings.Contains(rest, " masterauth ") ||
			strings.Contains(rest, " masteruser "))
	case "hello", "migrate":
		return strings.Contains(rest, " auth ") || strings.Contains(rest, " auth2 ")
	}
	return false
}
