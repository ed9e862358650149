package script

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/lua"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/wire"
)

// The debugger of scripts, as SCRIPT DEBUG begins it. The traced form of the script calls
// atLine before its lines; if the script must stop there, atLine sends the lines since the
// last stop and runs the user's commands until one lets the script continue.
//
//	script ──▶ atLine ── a step, a breakpoint, too long ──▶ stop ──▶ Console.Send
//	  ▲                                                      │  ▲
//	  └──────────── step, continue: return ◀── obey ◀── Console.Read

// Console is the user's end of a debugging session. The Engine calls it from the
// goroutine that called Debug.
type Console interface {
	// Send sends lines to the user, as one reply. A failure shows in the next Read.
	Send(lines []string)
	// Read returns the next command, one word or more, which stay valid. It returns ErrLeft
	// if no command will come and the script must continue without stops, a Misspoken with
	// which the script fails, or another error that ends the script.
	Read() ([]string, error)
	// Rest takes the lines since the last stop, when the script ends.
	Rest(lines []string)
	// Overdue reports whether the script has run for too long since it stopped last. Its
	// error ends the script.
	Overdue() (bool, error)
	// Refused reports whether the last Call of the Host did not begin its command.
	Refused() bool
}

// ErrLeft is the error of Console.Read when the script must continue by itself.
var ErrLeft = errors.New("the debugger's user has left")

// Misspoken says that the user's last request was not valid.
type Misspoken string

func (e Misspoken) Error() string { return string(e) }

// These constants limit a session: the initial length of shown values, the least length
// that the user can set, the depth of shown tables, and the number of breakpoints.
const (
	debugLength    = 256
	debugMinLength = 60
	debugDepth     = 10
	maxBreakpoints = 64
)

// Debugger is a session: one run of a script.
type Debugger struct {
	m       *machine
	console Console
	source  []string // the script's lines
	line    int      // that the script has reached
	noted   []string // lines that are to be sent

	step    bool // stop before the next line, and note what commands do
	called  bool // redis.breakpoint was called
	overdue bool
	breaks  []int // in the order in which they were set
	length  int   // how much of a value is shown; 0: all
	hinted  bool  // that values are cut was said
}

// Debug runs a script as Run does, under a debugger: the script stops before its first
// line. console gets all output except the end of the session and the result.
func (e *Engine) Debug(s *Script, h Host, keys, args [][]byte, out *wire.Writer, console Console) error {
	m := e.scripts
	d := &Debugger{m: m, console: console, source: strings.Split(strings.TrimRight(s.Body, "\r\n"), "\n"), step: true, length: debugLength}
	if strings.TrimRight(s.Body, "\r\n") == "" {
		d.source = nil
	}
	m.debug = d
	m.state.SetLine(d.atLine)
	defer func() {
		m.debug = nil
		m.state.SetLine(nil)
	}()
	main := m.state.Bind(s.proto.Traced(), m.state.Globals())
	err := e.runMain(s, main, h, keys, args, out)
	console.Rest(d.noted)
	return err
}

// note adds a line for the user.
func (d *Debugger) note(line string) { d.noted = append(d.noted, line) }

// noteValue adds a line that may be long.
func (d *Debugger) noteValue(line string) {
	if d.length == 0 || len(line) <= d.length {
		d.note(line)
		return
	}
	d.note(line[:d.length] + " ...")
	if !d.hinted {
		d.hinted = true
		d.note("<hint> The above reply was trimmed. Use 'maxlen 0' to disable trimming.")
	}
}

func (d *Debugger) send() {
	d.console.Send(d.noted)
	d.noted = nil
}

// tick is called every few thousand steps of the script.
func (d *Debugger) tick() error {
	overdue, err := d.console.Overdue()
	if overdue && !d.step && !d.breaksAt(d.line) {
		d.overdue = true
	}
	return err
}

func (d *Debugger) breaksAt(line int) bool { return slices.Contains(d.breaks, line) }

// atLine is called before a line of the script.
func (d *Debugger) atLine(line int) error {
	d.line = line
	reason := "step over"
	switch {
	case d.called:
		reason = "redis.breakpoint() called"
	case d.breaksAt(line):
		reason = "break point"
	case d.overdue:
		reason = "timeout reached, infinite loop?"
	case !d.step:
		return nil
	}
	overdue := d.overdue
	d.step, d.called, d.overdue = false, false, false
	d.note("* Stopped at " + strconv.Itoa(line) + ", stop reason = " + reason)
	d.noteLine(line)
	d.send()
	err := d.obey()
	if err != ErrLeft {
		if _, is := err.(*lua.Error); err != nil && !is {
			d.m.where = d.m.position()
		}
		return err
	}
	d.step, d.breaks = false, nil
	if overdue {
		return d.m.raise("ERR timeout during Lua debugging with client closing connection")
	}
	return nil
}

// obey runs the user's commands until the script must continue.
func (d *Debugger) obey() error {
	for {
		words, err := d.console.Read()
		if e, ok := err.(Misspoken); ok {
			return d.m.raise(string(e))
		}
		if err != nil {
			return err
		}
		args := words[1:]
		switch strings.ToLower(words[0]) {
		case "s", "step", "n", "next":
			d.step = true
			return nil
		case "c", "continue":
			return nil
		case "a", "abort":
			return d.m.raise("ERR script aborted for user request")
		case "h", "help":
			d.noted = append(d.noted, debugHelp...)
		case "t", "trace":
			d.trace()
		case "m", "maxlen":
			d.maxLen(args)
		case "b", "break":
			d.breakpoints(args)
		case "e", "eval":
			err = d.eval(strings.Join(args, " "))
		case "l", "list":
			d.listCommand(args)
		case "w", "whole":
			d.list(1, 1000000)
		case "p", "print":
			if len(args) == 1 {
				d.print(args[0])
			} else {
				d.printAll()
			}
		case "r", "redis":
			if len(args) == 0 {
				d.unknown()
				break
			}
			d.redis(args)
		default:
			d.unknown()
		}
		if err != nil {
			return err
		}
		d.send()
	}
}

func (d *Debugger) unknown() {
	d.note("<error> Unknown Redis Lua debugger command or wrong number of arguments.")
}

var debugHelp = strings.Split(strings.TrimSpace(`
Commands of the script debugger; the letter in brackets is enough:
[s]tep               Run the current line, then stop.
[n]ext               The same as step.
[c]ontinue           Run up to a breakpoint or the end.
[l]ist [line] [ctx]  Show the lines around the current one, or around line;
                     ctx is how many before and behind it (5).
[w]hole              Show the whole script.
[p]rint              Show the local variables and their values.
[p]rint <var>        Show one variable of any caller, KEYS or ARGV.
[b]reak              Show the breakpoints.
[b]reak <line> ...   Set a breakpoint; -line removes it, 0 removes all.
[t]race              Show which function has called which.
[e]val <code>        Run Lua code beside the script: it sees globals only.
[r]edis <cmd>        Run a command as redis.call does.
[m]axlen [len]       Show at most len bytes of a value; 0 shows all.
[a]bort              End the script with an error. In sync mode the script's
                     changes stay.
[h]elp               Show this text.

A script can call:
redis.debug(v, ...)  Show values here.
redis.breakpoint()   Stop before the next line.
`), "\n")

// sourceLine returns a line of the script.
func (d *Debugger) sourceLine(line int) string {
	if line < 1 || line > len(d.source) {
		return "<out of range source code line>"
	}
	return d.source[line-1]
}

// noteLine adds a line of the script with its number and marks.
func (d *Debugger) noteLine(line int) {
	mark := [...]string{"   ", "  #", "-> ", "->#"}
	i := 0
	if d.breaksAt(line) {
		i |= 1
	}
	if line == d.line {
		i |= 2
	}
	number := strconv.Itoa(line)
	d.note(mark[i] + number + strings.Repeat(" ", max(3-len(number), 0)) + " " + d.sourceLine(line))
}

// list adds the lines around one.
func (d *Debugger) list(around, context int) {
	for line := max(around-context, 1); line <= min(around+context, len(d.source)); line++ {
		d.noteLine(line)
	}
}

func (d *Debugger) listCommand(args []string) {
	around, context := d.line, 5
	if len(args) > 0 {
		if n := leadingNumber(args[0]); n > 0 {
			around = n
		}
	}
	if len(args) > 1 {
		context = leadingNumber(args[1])
	}
	d.list(around, context)
}

// leadingNumber parses a number as C's atoi does, for the range of a script's lines.
func leadingNumber(s string) int {
	end := 0
	for end < len(s) && end < 10 && (s[end] >= '0' && s[end] <= '9' || end == 0 && s[end] == '-') {
		end++
	}
	n, _ := strconv.Atoi(s[:end])
	return min(max(n, -1<<30), 1<<30)
}

func (d *Debugger) breakpoints(args []string) {
	if len(args) == 0 {
		if len(d.breaks) == 0 {
			d.note("No breakpoints set. Use 'b <line>' to add one.")
			return
		}
		d.note(strconv.Itoa(len(d.breaks)) + " breakpoints set:")
		for _, line := range d.breaks {
			d.noteLine(line)
		}
		return
	}
	for _, a := range args {
		line, ok := numeral.ParseInt([]byte(a))
		at := slices.Index(d.breaks, int(-line))
		switch {
		case !ok:
			d.note("Invalid argument:'" + a + "'")
		case line == 0:
			d.breaks = nil
			d.note("All breakpoints removed.")
		case line > 0 && len(d.breaks) == maxBreakpoints:
			d.note("Too many breakpoints set.")
		case line > int64(len(d.source)) || line > 0 && d.breaksAt(int(line)):
			d.note("Wrong line number.")
		case line > 0:
			d.breaks = append(d.breaks, int(line))
			d.list(int(line), 1)
		case at < 0:
			d.note("No breakpoint in the specified line.")
		default:
			d.breaks = slices.Delete(d.breaks, at, at+1)
			d.note("Breakpoint removed.")
		}
	}
}

// callsOfScript yields the calls of the script's functions that are under way, innermost first.
func (d *Debugger) callsOfScript(yield func(a lua.Activation) bool) {
	for a, ok := d.m.state.Innermost(); ok; a, ok = a.Outer() {
		if a.Source() == scriptChunk && !yield(a) {
			return
		}
	}
}

func (d *Debugger) trace() {
	word := "In "
	for a := range d.callsOfScript {
		name := a.Name()
		if name == "" {
			name = "top level"
		}
		d.note(word + name + ":")
		d.noteLine(a.Line())
		word = "From "
	}
}

func (d *Debugger) printAll() {
	n := 0
	for a := range d.callsOfScript {
		for name, v := range a.Locals {
			d.noteValue("<value> " + name + " = " + d.show(v))
			n++
		}
		break
	}
	if n == 0 {
		d.note("No local variables in the current context.")
	}
}

func (d *Debugger) print(name string) {
	for a := range d.callsOfScript {
		for local, v := range a.Locals {
			if local == name {
				d.noteValue("<value> " + d.show(v))
				return
			}
		}
	}
	switch name {
	case "KEYS":
		d.noteValue("<value> " + d.show(lua.TableValue(d.m.keys)))
	case "ARGV":
		d.noteValue("<value> " + d.show(lua.TableValue(d.m.argv)))
	default:
		d.note("No such variable.")
	}
}

func (d *Debugger) maxLen(args []string) {
	if len(args) == 1 {
		d.length = max(leadingNumber(args[0]), 0)
		if d.length > 0 {
			d.length = max(d.length, debugMinLength)
		}
		d.hinted = true
	}
	if d.length == 0 {
		d.note("<value> replies are unlimited.")
		return
	}
	d.note("<value> replies are truncated at " + strconv.Itoa(d.length) + " bytes.")
}

// eval runs the user's code, which is an expression or a chunk. The error is one that ends
// the script.
func (d *Debugger) eval(code string) error {
	f, err := d.m.state.Load("return "+code, "@ldb_eval")
	if err != nil {
		f, err = d.m.state.Load(code, "@ldb_eval")
	}
	var v lua.Value
	if err == nil {
		v, err = d.m.state.Aside(f)
	}
	if e, ok := err.(*lua.Error); ok {
		text := ""
		if e.Value.IsTable() {
			text = d.m.message(e)
		} else {
			text = d.m.text(e.Value)
		}
		d.note("<error> " + text)
		return nil
	}
	if err != nil {
		return err
	}
	d.noteValue("<retval> " + d.show(v))
	return nil
}

// redis runs the user's command.
func (d *Debugger) redis(words []string) {
	args := make([][]byte, len(words))
	for i, w := range words {
		args[i] = []byte(w)
	}
	d.step = true
	d.m.command(args)
	d.step = false
}

// maxShownArgs is the number of words of a command that are shown.
const maxShownArgs = 10

// calls adds a line about a command that the script runs.
func (d *Debugger) calls(args [][]byte) {
	if !d.step {
		return
	}
	line := "<redis>"
	for i, a := range args {
		if i == maxShownArgs {
			line += " ... (" + strconv.Itoa(len(args)-i-1) + " more)"
			break
		}
		line += " " + string(a)
	}
	d.note(line)
}

// replied adds a line about the reply of a command.
func (d *Debugger) replied(reply []byte) {
	if !d.step {
		return
	}
	if len(reply) > 0 && reply[0] == '-' {
		text := strings.TrimRight(string(reply), "\r\n")
		if d.console.Refused() {
			d.note("<error> " + strings.TrimPrefix(text, "-ERR "))
			return
		}
		d.note("<error> " + text)
	}
	line, _ := showReply([]byte("<reply> "), string(reply))
	d.noteValue(string(line))
}

// raised adds a line about an error of the table redis.
func (d *Debugger) raised(text string) {
	if d.step {
		d.note("<error> " + strings.TrimPrefix(text, "ERR "))
	}
}

// redisDebug implements redis.debug.
func (d *Debugger) redisDebug(c lua.Call) {
	line := "<debug> line " + strconv.Itoa(d.line) + ":"
	for i := 1; i <= c.N(); i++ {
		if i > 1 {
			line += ","
		}
		line += " " + d.show(c.Arg(i))
	}
	d.note(line)
}
