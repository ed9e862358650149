package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// endOfSession is the line by which a server says that the script has ended: the
// reply of EVAL follows.
const endOfSession = "<endsession>"

// debug runs the script of --eval under the server's debugger, as --ldb asks: SCRIPT DEBUG
// turns it on for the next EVAL, whose reply comes at the end. The server replies to each
// line of the user with an array of lines. When the script ends, the last line is
// endOfSession. The script runs on a copy of the data (--ldb), or on the data while all
// other clients wait (--ldb-sync-mode). After the session the lines are commands as usual.
func (c *client) debug() int {
	c.talk = true
	read, stop, err := c.lines()
	if err != nil {
		fmt.Fprintln(c.env.Err, "Error:", err)
		return 1
	}
	defer stop()
	if status, ok := c.beginSession(); !ok {
		return status
	}
	for c.ctx.Err() == nil {
		line, err := read()
		switch {
		case err == errGivenUp:
			continue
		case err != nil:
			return c.linesEnded(err)
		}
		word := strings.ToLower(strings.TrimSpace(line))
		switch {
		case word == "quit" || word == "exit":
			return 0
		case word == "restart":
			if !c.connect() {
				return 1
			}
			fmt.Fprintln(c.env.Out)
			if status, ok := c.beginSession(); !ok {
				return status
			}
		case !c.debugging:
			c.line(line)
		case !c.debugLine(line):
			return 1
		}
	}
	return 1
}

// beginSession starts the script. If that fails, it returns the exit status.
func (c *client) beginSession() (status int, ok bool) {
	_, _ = io.WriteString(c.env.Out, "Lua debugging session started, please use:\n"+
		"quit    -- End the session.\n"+
		"restart -- Restart the script in debug mode again.\n"+
		"help    -- Show Lua script debugging commands.\n\n")
	args, err := c.evalArgs()
	if err != nil {
		fmt.Fprintln(c.env.Err, err)
		return 1, false
	}
	mode := "YES"
	if c.opt.DebugSync {
		mode = "SYNC"
	}
	if _, err := c.conn.do("SCRIPT", "DEBUG", mode); err != nil {
		fmt.Fprintf(c.env.Err, "Error: --ldb needs a server with a debugger of scripts; this one answered SCRIPT DEBUG %s with: %s\n",
			mode, describe(err))
		return 1, false
	}
	c.debugging = true
	v, err := c.debugReply(args)
	switch {
	case err != nil:
		c.failed(c.ctx, nil, err)
		return 1, false
	case v.Kind == resp.KindError: // refused before the debugger had it
		c.debugging = false
	case c.debugging:
		return 0, true
	default:
		if v, err = c.reply(); err != nil {
			c.failed(c.ctx, nil, err)
			return 1, false
		}
	}
	fmt.Fprintln(c.env.Out, "Eval debugging session can't start:")
	c.out.format = FormatTTY
	c.out.reply(v, false)
	return 0, false
}

// debugLine sends a line to the debugger, and prints the reply of EVAL if the script has
// ended. It returns false if the connection is lost.
func (c *client) debugLine(line string) bool {
	words, ok := splitDebug(strings.TrimRight(line, "\r\n"))
	if !ok {
		fmt.Fprintln(c.env.Out, "Invalid argument(s)")
		return true
	}
	if len(words) == 0 {
		return true
	}
	ctx, stop := c.interruptible()
	defer stop()
	defer context.AfterFunc(ctx, c.conn.close)()
	_, err := c.debugReply(words)
	if err == nil && !c.debugging {
		var v resp.Value
		if v, err = c.reply(); err == nil {
			c.endSession(v)
			return true
		}
	}
	if err != nil {
		c.debugging = false
		c.failed(c.ctx, nil, err)
		return false
	}
	return true
}

// splitDebug splits a line as SplitArgs does, except the code after eval, which stays as
// it is.
func splitDebug(line string) (words []string, ok bool) {
	for _, name := range []string{"eval", "e"} {
		if code, found := strings.CutPrefix(line, name+" "); found {
			return []string{name, code}, true
		}
	}
	return wire.SplitArgs(line)
}

// endSession prints the script's reply. The process that ran the script is gone with
// its connection.
func (c *client) endSession(v resp.Value) {
	c.out.format = FormatTTY
	c.out.reply(v, false)
	fate := " -- dataset changes rolled back"
	if c.opt.DebugSync {
		fate = ""
	}
	fmt.Fprintf(c.env.Out, "\n(Lua debugging session ended%s)\n\n", fate)
	c.connect()
}

// debugReply sends a line or the script and prints the debugger's lines. It clears
// c.debugging at the end of the session.
func (c *client) debugReply(args []string) (resp.Value, error) {
	v, err := c.exchange(args)
	if err != nil || v.Kind == resp.KindError {
		return v, err
	}
	lines := []resp.Value{v}
	if v.Kind == resp.KindArray {
		lines = v.Elems
	}
	var out []byte
	for i, l := range lines {
		if i > 0 {
			out = append(out, '\n')
		}
		if strings.HasPrefix(l.Str, endOfSession) {
			c.debugging = false
			continue
		}
		out = c.colour(out, l.Str)
	}
	_, _ = c.env.Out.Write(append(out, '\n'))
	return v, nil
}

// colour appends a line of the debugger, in a colour on a terminal.
func (c *client) colour(out []byte, line string) []byte {
	if !c.env.OutTTY {
		return append(out, line...)
	}
	bold, colour := 0, 37 // white
	for _, mark := range []struct {
		text         string
		bold, colour int
	}{
		{"<debug>", 1, 37}, {"<redis>", 0, 32}, {"<reply>", 0, 36}, {"<error>", 0, 31}, {"<hint>", 1, 37},
		{"<value>", 0, 35}, {"<retval>", 0, 35},
	} {
		if strings.Contains(line, mark.text) {
			bold, colour = mark.bold, mark.colour
		}
	}
	if len(line) > 4 && line[3] >= '0' && line[3] <= '9' { // source: "-> 12  " is where the script stands, "  #12  " a breakpoint
		switch {
		case line[1] == '>':
			bold, colour = 0, 33
		case line[2] == '#':
			bold, colour = 1, 37
		}
	}
	return fmt.Appendf(out, "\x1b[%d;%d;49m%s\x1b[0m", bold, colour, line)
}
